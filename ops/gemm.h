/* SPDX-License-Identifier: MIT */
/*
 * Multiplication of matrices that BLAS cannot take as they are: other dtypes,
 * other strides, or computed on the way (conv2d). Tiles of both are brought
 * into f32 in the workspace, multiplied there, and the result is handed to the
 * operator tile by tile.
 */
#ifndef AIR_GEMM_H
#define AIR_GEMM_H

#include <stdbool.h>
#include <stdint.h>

#include "ops/block.h"

struct air_pool;

/**
 * struct air_matrix - a strided matrix in memory
 * @row: bytes from one row to the next
 * @col: bytes from one column to the next
 */
struct air_matrix {
	const char *at;
	int64_t row;
	int64_t col;
	air_load_fn load;
};

/* Write rows [r0, r0 + rows), columns [c0, c0 + cols), row after row. */
typedef void (*air_pack_fn)(const void *source, float *dst, int64_t r0,
			    int64_t rows, int64_t c0, int64_t cols);

/* For a struct air_matrix. */
void air_pack_matrix(const void *source, float *dst, int64_t r0, int64_t rows,
		     int64_t c0, int64_t cols);

/**
 * struct air_gemm - alpha A B, m x n, summed over k
 * @pack_a: A from @a; its transpose where @trans_a
 * @pack_b: B from @b; its transpose where @trans_b
 * @finish: take rows [i0, i0 + rows) and columns [j0, j0 + cols) of the
 *	product; rows of @acc are @cols elements and may be written over
 *
 * All three may be called by several threads at once.
 */
struct air_gemm {
	int64_t m, n, k;
	float alpha;
	bool trans_a, trans_b;
	const void *a, *b;
	air_pack_fn pack_a, pack_b;
	void *arg;
	void (*finish)(void *arg, float *acc, int64_t i0, int64_t rows,
		       int64_t j0, int64_t cols);
};

/* Bytes of workspace for a product of that size. */
uint64_t air_gemm_workspace(int64_t m, int64_t n, int64_t k);

void air_gemm(const struct air_gemm *g, void *workspace, struct air_pool *pool);

#endif /* AIR_GEMM_H */
