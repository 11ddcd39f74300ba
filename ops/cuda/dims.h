/* SPDX-License-Identifier: MIT */
/*
 * Dimensions of several tensors of one shape, merged: the fewer dimensions a
 * kernel walks, the fewer divisions it makes.
 */
#ifndef AIR_CUDA_DIMS_H
#define AIR_CUDA_DIMS_H

#include <stdbool.h>
#include <stdint.h>

#include "include/uapi/airunner.h"

/**
 * struct air_dims - innermost dimension first
 * @n: dimensions; at least 1 unless there are no elements
 * @count: elements
 * @size: of each dimension
 * @stride: elements, by tensor and dimension
 */
struct air_dims {
	uint32_t n;
	uint64_t count;
	uint64_t size[AIRUNNER_MAX_DIMS];
	int64_t stride[AIRUNNER_MAX_TENSORS][AIRUNNER_MAX_DIMS];
};

/*
 * Take dimensions @dim[0..n_dim-1] (outermost first) of @shape with strides
 * @stride[t] of @tensors tensors. Dimensions of size 1 are dropped, and
 * neighbours that all tensors walk with one stride become one.
 */
void air_dims_merge(struct air_dims *out, const int64_t *shape,
		    const uint32_t *dim, uint32_t n_dim,
		    const int64_t *const *stride, uint32_t tensors);

/* All dimensions of @t[0], all tensors of its shape. */
void air_dims_of(struct air_dims *out, const struct airunner_tensor *const *t,
		 uint32_t tensors);

/*
 * As air_dims_of(), but with the dimensions sorted so that the first tensor's
 * smallest stride is innermost: for operators without a meaning of order.
 */
void air_dims_sorted(struct air_dims *out,
		     const struct airunner_tensor *const *t, uint32_t tensors);

#endif /* AIR_CUDA_DIMS_H */
