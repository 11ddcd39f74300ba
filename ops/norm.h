/* SPDX-License-Identifier: MIT */
/*
 * Operators that turn each row (the last dimension) into one of the same
 * length: their check, and what walks the rows. A row is computed by the
 * operator.
 */
#ifndef AIR_NORM_H
#define AIR_NORM_H

#include "ops/block.h"
#include "ops/check.h"
#include "ops/cpu.h"

enum { AIR_NORM_Y, AIR_NORM_X, AIR_NORM_WEIGHT, AIR_NORM_BIAS };

/*
 * The descriptor's check: y and x alike, weight and bias, as far as @op has
 * them and they are given, vectors as long as a row. @epsilon: its attribute.
 */
air_status air_norm_check(const struct air_op *op,
			  const struct airunner_desc *d, uint32_t epsilon,
			  struct air_error *e);

/**
 * struct air_norm - a row and the vectors that go with it
 * @length: of a row
 * @epsilon: added under the root
 * @vec: steps of y, x, weight and bias
 */
struct air_norm {
	uint64_t length;
	float epsilon;
	struct air_vec vec[4];
};

/* @p: where y's and x's row, weight and bias begin; NULL for left out. */
typedef void (*air_norm_row_fn)(const struct air_norm *norm, char *const p[4]);

air_status air_norm_plan(const struct airunner_desc *d, double epsilon,
			 air_norm_row_fn row, struct air_cpu_plan **out,
			 struct air_error *e);

static inline uint64_t air_norm_block(const struct air_norm *norm, uint64_t at)
{
	return norm->length - at < AIR_BLOCK ? norm->length - at : AIR_BLOCK;
}

#endif /* AIR_NORM_H */
