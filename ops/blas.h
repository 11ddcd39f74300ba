/* SPDX-License-Identifier: MIT */
/*
 * Multiplication of f32 matrices: OpenBLAS, loaded when the first matrix is
 * multiplied, or a plain kernel where there is none. The environment variable
 * AIRUNNER_BLAS names another library with cblas_sgemm(), or "none".
 */
#ifndef AIR_BLAS_H
#define AIR_BLAS_H

#include <stdbool.h>
#include <stdint.h>

struct air_pool;

/**
 * struct air_sgemm - C = alpha A B + beta C, row by row
 * @m: rows of C
 * @n: columns of C
 * @k: what is summed over
 * @trans_a: a holds A by columns
 * @trans_b: b holds B by columns
 * @lda: elements from a row (column) of a to the next, and so on
 *
 * With beta 0, c is not read; with alpha or k 0, a and b are not.
 */
struct air_sgemm {
	int64_t m, n, k;
	float alpha, beta;
	bool trans_a, trans_b;
	const float *a, *b;
	float *c;
	int64_t lda, ldb, ldc;
};

/* @pool: for the plain kernel, and how many threads the library may use. */
void air_sgemm(const struct air_sgemm *g, struct air_pool *pool);

/* Multiplications up to this size (m n k) stay on the calling thread. */
#define AIR_SGEMM_SMALL 262144

/* "OpenBLAS 0.3.21 ...", loading it; NULL if there is none. */
const char *air_blas_name(void);

/* For tests: whether a library may be used. */
void air_blas_allow(bool allow);

#endif /* AIR_BLAS_H */
