/* SPDX-License-Identifier: MIT */
/*
 * Elementwise operators: parameters of the kernels in elementwise.cuh, and the
 * plan that all of them share.
 */
#ifndef AIR_CUDA_ELEMENTWISE_H
#define AIR_CUDA_ELEMENTWISE_H

#include "ops/cuda/abi.h"

/* The output and at most two inputs. */
#define AIR_EW_OPERANDS 3

enum air_ew_mode {
	/* All operands are dense and alike: one index serves all. */
	AIR_EW_FLAT,
	/* Any strides, fewer than 2^31 units. */
	AIR_EW_STRIDED,
	/* Any strides and any size: 64-bit divisions. */
	AIR_EW_STRIDED_64,
};

/* What the second-level cache holds of all operands. */
enum air_ew_fit {
	AIR_EW_FITS,   /* all: results are found there, inputs may go */
	AIR_EW_NEARLY, /* about half: results go, so that inputs stay */
	AIR_EW_PASSES, /* nothing to speak of */
};

/**
 * struct air_ew_params
 * @n: elements (flat) or units (strided): a unit is @unit neighbours in the
 *	innermost dimension
 * @mode: enum air_ew_mode
 * @unit: 1, or as many elements as a thread loads at once
 * @ndim: dimensions left after merging, innermost first; the innermost counts
 *	units
 * @repeat: bit i: operand i has one element for all of a unit (stride 0)
 * @size: of each dimension
 * @div: division by it; modes other than AIR_EW_STRIDED_64
 * @stride: elements, by operand and dimension
 * @scalar: the operator's
 * @fit: enum air_ew_fit (AIR_EW_FLAT)
 * @pairs: launched threads take two units at once (AIR_EW_FLAT)
 */
struct air_ew_params {
	uint64_t n;
	uint32_t mode;
	uint32_t unit;
	uint32_t ndim;
	uint32_t repeat;
	uint64_t size[AIRUNNER_MAX_DIMS];
	struct air_div div[AIRUNNER_MAX_DIMS];
	int64_t stride[AIR_EW_OPERANDS][AIRUNNER_MAX_DIMS];
	float scalar[2];
	uint32_t fit;
	uint32_t pairs;
};

/* Threads of a block of operators that compute much (gelu). */
#define AIR_EW_DEAR_THREADS 128

#endif /* AIR_CUDA_ELEMENTWISE_H */
