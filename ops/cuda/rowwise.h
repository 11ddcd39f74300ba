/* SPDX-License-Identifier: MIT */
/*
 * Operators that work on rows: softmax, rms_norm, layer_norm. A row is what
 * one normalisation runs over.
 */
#ifndef AIR_CUDA_ROWWISE_H
#define AIR_CUDA_ROWWISE_H

#include "ops/cuda/abi.h"

/**
 * struct air_row_params
 * @rows: how many
 * @length: elements of a row
 * @lanes: threads that share a row: a power of two up to 32, or all of a block
 * @cluster: blocks that share a row; 1 unless lanes is a block
 * @wide: 64-bit divisions: 2^31 rows or more
 * @ndim: dimensions that number the rows, innermost first
 * @size, @div, @x_stride, @y_stride: of those
 * @x_step, @y_step: from one element of a row to the next
 * @w_step, @b_step: the same in weight and bias
 * @w_f32, @b_f32: weight or bias is f32, whatever x is
 * @epsilon: the operator's
 */
struct air_row_params {
	uint64_t rows;
	uint64_t length;
	uint32_t lanes;
	uint32_t cluster;
	uint32_t wide;
	uint32_t ndim;
	uint64_t size[AIRUNNER_MAX_DIMS];
	struct air_div div[AIRUNNER_MAX_DIMS];
	int64_t x_stride[AIRUNNER_MAX_DIMS];
	int64_t y_stride[AIRUNNER_MAX_DIMS];
	int64_t x_step, y_step;
	int64_t w_step, b_step;
	uint32_t w_f32, b_f32;
	float epsilon;
	uint32_t resv;
};

/* Kernels and bodies, beside the dtype: how a thread holds its share. */
enum air_row_variant {
	AIR_ROW_1 = 1,	/* 1 vector of 16 bytes */
	AIR_ROW_2,
	AIR_ROW_4,
	AIR_ROW_8,
	AIR_ROW_ELEMENTS,	/* up to 8 single elements */
	AIR_ROW_LOOP,	/* not at all: rows are read again */
	/* not in the resident kernel: */
	AIR_ROW_SHARED,	/* 8 vectors, the rest in shared memory */
	AIR_ROW_AHEAD,	/* 8 vectors, and 8 of the next row */
	AIR_ROW_VARIANTS
};

/* Warps that share a row of AIR_ROW_AHEAD, at most. */
#define AIR_ROW_AHEAD_WARPS 128

#endif /* AIR_CUDA_ROWWISE_H */
