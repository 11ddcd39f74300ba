/* SPDX-License-Identifier: MIT */
/* rope: parameters of the CUDA kernels in kernel.cuh. */
#ifndef AIR_ROPE_PARAMS_H
#define AIR_ROPE_PARAMS_H

#include "ops/cuda/abi.h"

/**
 * struct air_rope_params - strides in elements
 * @heads: rows of @length elements, numbered by @ndim dimensions
 * @half: pairs in a row
 * @units: pairs and single elements of a row: half + length - 2 half
 * @limit: positions there are
 * @pairs: AIR_ROPE_PAIRS
 * @positions: whether the operand is given: 4 or 8 bytes; 0: p_stride itself
 *	counts
 * @table_f32: cos and sin are f32
 * @y_step, @x_step: within a row
 */
struct air_rope_params {
	uint64_t heads;
	uint64_t length, half, units;
	uint64_t limit;
	uint32_t pairs, positions, table_f32, wide;
	uint32_t ndim, resv;
	uint64_t size[AIRUNNER_MAX_DIMS];
	struct air_div div[AIRUNNER_MAX_DIMS];
	struct air_div by_units;
	int64_t y_stride[AIRUNNER_MAX_DIMS];
	int64_t x_stride[AIRUNNER_MAX_DIMS];
	int64_t p_stride[AIRUNNER_MAX_DIMS];
	int64_t y_step, x_step;
	int64_t cos_p, cos_k, sin_p, sin_k;
};

#endif /* AIR_ROPE_PARAMS_H */
