/* SPDX-License-Identifier: MIT */
/* y = relu(A B + beta c + bias) in integers: i8 by i8 to i32, modulo 2^32. */
#ifndef AIR_MATMUL_INT8_H
#define AIR_MATMUL_INT8_H

#include <stdbool.h>
#include <stdint.h>

struct air_pool;

/**
 * struct air_matmul_int8 - one matrix product
 * @c: added, or NULL; may be @y
 * @bias: one for each column, or NULL
 *
 * Steps are elements.
 */
struct air_matmul_int8 {
	int64_t m, n, k;
	const int8_t *a, *b;
	int32_t *y;
	const int32_t *c, *bias;
	int64_t a_row, a_col, b_row, b_col, y_row, y_col, c_row, c_col;
	int64_t bias_step;
	bool relu;
};

uint64_t air_matmul_int8_workspace(int64_t m, int64_t n, int64_t k);
void air_matmul_int8(const struct air_matmul_int8 *g, void *workspace,
		     struct air_pool *pool);

#endif /* AIR_MATMUL_INT8_H */
