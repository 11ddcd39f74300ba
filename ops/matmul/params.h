/* SPDX-License-Identifier: MIT */
/* matmul: parameters of the CUDA kernels in kernel.cuh. */
#ifndef AIR_MATMUL_PARAMS_H
#define AIR_MATMUL_PARAMS_H

#include "ops/cuda/abi.h"

#define AIR_MATMUL_MAX_BATCH 6

/**
 * struct air_matmul_params - strides in elements; M and N may have changed
 *	places (the product of the transposed is the transpose)
 * @beta: 0: c is not read
 * @n_batch: dimensions of the batch, innermost first
 * @swapped: a and b have changed places: operands 1 and 2 with them
 */
struct air_matmul_params {
	uint64_t m, n, k, batch;
	int64_t y_m, y_n, a_m, a_k, b_k, b_n, c_m, c_n, bias_m, bias_n;
	float alpha, beta;
	uint32_t activation;
	uint32_t n_batch;
	uint32_t swapped;
	uint64_t size[AIR_MATMUL_MAX_BATCH];
	int64_t y[AIR_MATMUL_MAX_BATCH];
	int64_t a[AIR_MATMUL_MAX_BATCH];
	int64_t b[AIR_MATMUL_MAX_BATCH];
	int64_t c[AIR_MATMUL_MAX_BATCH];
};

/* How; with the types it makes the variant: see AIR_MATMUL_VARIANT. */
enum air_matmul_how {
	AIR_MATMUL_FMA = 0, /* tiles, multiply and add */
	AIR_MATMUL_MMA_64,  /* tiles of 64x64 on tensor cores */
	AIR_MATMUL_MMA_128,
	AIR_MATMUL_DOT,	  /* few rows, b dense along k */
	AIR_MATMUL_SWEEP, /* few rows, b dense along n */
	AIR_MATMUL_HOWS
};

#define AIR_MATMUL_VARIANT(y, a, how) (((y)*8 + (a)) * 8 + (how))

/* Rows that AIR_MATMUL_DOT and _SWEEP take on at once. */
#define AIR_MATMUL_FEW 4
/* Columns a block of AIR_MATMUL_SWEEP has: this many threads, 16 bytes each. */
#define AIR_MATMUL_SWEEP_ACROSS 4

#endif /* AIR_MATMUL_PARAMS_H */
