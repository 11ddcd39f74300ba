/* SPDX-License-Identifier: MIT */
/*
 * Arithmetic on tensor descriptions: counts, extents, layouts, and the check
 * that makes the rest of it safe to do on what an untrusted client wrote.
 */
#ifndef AIR_TENSOR_H
#define AIR_TENSOR_H

#include <stdbool.h>
#include <stdint.h>

#include "ops/op.h"

/* Bytes of an element; 0 for an unknown dtype. */
uint32_t air_elem_size(uint32_t dtype);
/* "f32"; "?" for an unknown dtype. */
const char *air_elem_name(uint32_t dtype);

#define AIR_DTYPE_BIT(dtype) (1U << (dtype))
#define AIR_DTYPES_FLOAT                                             \
	(AIR_DTYPE_BIT(AIRUNNER_F32) | AIR_DTYPE_BIT(AIRUNNER_F16) | \
	 AIR_DTYPE_BIT(AIRUNNER_BF16))
#define AIR_DTYPES_INT                                              \
	(AIR_DTYPE_BIT(AIRUNNER_I32) | AIR_DTYPE_BIT(AIRUNNER_I8) | \
	 AIR_DTYPE_BIT(AIRUNNER_I64))

/*
 * Whether @t can be computed with at all: a known dtype, dimensions and
 * strides in range, unused entries zero, at most 2^62 elements (a zero-size
 * dimension counts as one, so that partial products are safe as well) whose
 * addresses span at most 2^62 bytes. @op and @operand name it in the sentence.
 * The functions below need a tensor that has passed.
 */
air_status air_tensor_check(const struct airunner_tensor *t, const char *op,
			    const char *operand, struct air_error *e);

int64_t air_tensor_count(const struct airunner_tensor *t);
bool air_tensor_contiguous(const struct airunner_tensor *t);
bool air_tensor_same_shape(const struct airunner_tensor *a,
			   const struct airunner_tensor *b);
/* Same dtype, shape and strides; strides of size-1 dimensions don't count. */
bool air_tensor_same_layout(const struct airunner_tensor *a,
			    const struct airunner_tensor *b);

/* Bytes before and from the first element on; both 0 without elements. */
void air_tensor_extent(const struct airunner_tensor *t, uint64_t *below,
		       uint64_t *above);

/*
 * Whether every element has memory of its own, as an output must: sorted by
 * size, each stride is larger than everything the smaller ones reach. (That
 * refuses a few odd interleavings that would do.)
 */
bool air_tensor_distinct(const struct airunner_tensor *t);

/*
 * Whether an element of @a at address @pa may share a byte with one of @b at
 * @pb. Knows views of one buffer that interleave (columns of a matrix, every
 * other element); when in doubt it answers true.
 */
bool air_tensor_overlap(const struct airunner_tensor *a, uint64_t pa,
			const struct airunner_tensor *b, uint64_t pb);

/* "[4, 5]" */
#define AIR_SHAPE_STRING 96
const char *air_shape_string(char buf[AIR_SHAPE_STRING], const __s64 *shape,
			     uint32_t ndim);

#endif /* AIR_TENSOR_H */
