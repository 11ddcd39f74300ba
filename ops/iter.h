/* SPDX-License-Identifier: MIT */
/*
 * Loops over the elements of several tensors of one shape: dimensions are put
 * in the order of the output's memory and merged where all tensors allow, so
 * that what is left is as few and as long rows as possible.
 */
#ifndef AIR_ITER_H
#define AIR_ITER_H

#include <string.h>

#include "ops/tensor.h"

#define AIR_ITER_MAX 4

/**
 * struct air_iter - a loop
 * @n: tensors
 * @ndim: dimensions left; the last is the row. At least 1
 * @shape: elements
 * @stride: bytes, by tensor
 * @base: bytes from a tensor's first element to where the loop begins (a
 *	dimension that ran backwards is turned round)
 * @total: elements
 */
struct air_iter {
	uint32_t n;
	uint32_t ndim;
	int64_t shape[AIRUNNER_MAX_DIMS];
	int64_t stride[AIR_ITER_MAX][AIRUNNER_MAX_DIMS];
	int64_t base[AIR_ITER_MAX];
	uint64_t total;
};

/*
 * A loop over @n tensors of the shape of the first, in the order of the
 * first's memory. Dimensions whose bit is not set in @dims are left out; ~0
 * for all.
 */
void air_iter_init(struct air_iter *it, uint32_t n,
		   const struct airunner_tensor *const *t, uint32_t dims);

/**
 * struct air_cursor - where a loop is
 * @index: by dimension
 * @offset: bytes from a tensor's first element, by tensor
 */
struct air_cursor {
	int64_t index[AIRUNNER_MAX_DIMS];
	int64_t offset[AIR_ITER_MAX];
};

/* Go to the element with number @at of the loop over the first @ndim. */
void air_cursor_set(struct air_cursor *c, const struct air_iter *it,
		    uint32_t ndim, uint64_t at);

/* One step of the loop over the first @ndim dimensions. */
static inline void air_cursor_next(struct air_cursor *c,
				   const struct air_iter *it, uint32_t ndim)
{
	for (uint32_t i = ndim; i-- > 0;) {
		if (++c->index[i] < it->shape[i]) {
			for (uint32_t k = 0; k < it->n; k++)
				c->offset[k] += it->stride[k][i];
			return;
		}
		c->index[i] = 0;
		for (uint32_t k = 0; k < it->n; k++)
			c->offset[k] -= it->stride[k][i] * (it->shape[i] - 1);
	}
}

/*
 * Call @row for the elements [begin, end) of the loop, a row or a part of one
 * at a time: @p holds their addresses, it->stride[][it->ndim - 1] the steps.
 */
typedef void (*air_row_fn)(void *arg, char *const *p, uint64_t n);
void air_iter_rows(const struct air_iter *it, void *const *operand,
		   uint64_t begin, uint64_t end, air_row_fn row, void *arg);

#endif /* AIR_ITER_H */
