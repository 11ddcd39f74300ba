// SPDX-License-Identifier: MIT
#include "ops/matmul/int8.h"

#include "ops/cpu.h"
#include "ops/simd.h"

/*
 * A tile of B is laid down by columns, so that an element of the result is the
 * product of two contiguous rows. Partial sums stay below 2^31.
 */
#define TILE_N 256
#define TILE_K 1024

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

uint64_t air_matmul_int8_workspace(int64_t n, int64_t k)
{
	return (uint64_t)least(n, TILE_N) * least(k, TILE_K);
}

struct tile {
	const struct air_matmul_int8 *g;
	int8_t *b; /* cols x depth */
	int64_t j0, cols;
	int64_t k0, depth;
};

AIR_INLINE void dot(const int8_t *a, const int8_t *b, int64_t n, int32_t *out)
{
	int32_t sum = 0;

	for (int64_t i = 0; i < n; i++)
		sum += (int16_t)a[i] * (int16_t)b[i];
	*out = sum;
}
AIR_VERSIONS(dot, (const int8_t *a, const int8_t *b, int64_t n, int32_t *out),
	     (a, b, n, out))

static void pack_columns(void *arg, uint64_t begin, uint64_t end)
{
	const struct tile *t = arg;
	const struct air_matmul_int8 *g = t->g;

	for (uint64_t j = begin; j < end; j++) {
		const int8_t *from = g->b + (t->j0 + (int64_t)j) * g->b_col +
				     t->k0 * g->b_row;
		int8_t *to = t->b + j * t->depth;

		for (int64_t k = 0; k < t->depth; k++)
			to[k] = from[k * g->b_row];
	}
}

/* What y is before any product is added. */
static uint32_t initial(const struct air_matmul_int8 *g, int64_t i, int64_t j)
{
	uint32_t v = g->c ? (uint32_t)g->c[i * g->c_row + j * g->c_col] : 0;

	return g->bias ? v + (uint32_t)g->bias[j * g->bias_step] : v;
}

static void row(const struct tile *t, int64_t i)
{
	const struct air_matmul_int8 *g = t->g;
	const int8_t *a = g->a + i * g->a_row + t->k0 * g->a_col;
	bool last = t->k0 + t->depth >= g->k;
	int8_t packed[TILE_K];

	if (g->a_col != 1) {
		for (int64_t k = 0; k < t->depth; k++)
			packed[k] = a[k * g->a_col];
		a = packed;
	}
	for (int64_t j = 0; j < t->cols; j++) {
		int32_t *y = g->y + i * g->y_row + (t->j0 + j) * g->y_col;
		uint32_t v = t->k0 ? (uint32_t)*y : initial(g, i, t->j0 + j);
		int32_t sum;

		AIR_BEST(dot)(a, t->b + j * t->depth, t->depth, &sum);
		v += (uint32_t)sum;
		*y = last && g->relu && (int32_t)v < 0 ? 0 : (int32_t)v;
	}
}

static void rows(void *arg, uint64_t begin, uint64_t end)
{
	for (uint64_t i = begin; i < end; i++)
		row(arg, (int64_t)i);
}

void air_matmul_int8(const struct air_matmul_int8 *g, void *workspace,
		     struct air_pool *pool)
{
	struct tile t = { .g = g, .b = workspace };

	for (t.j0 = 0; t.j0 < g->n; t.j0 += TILE_N) {
		t.cols = least(g->n - t.j0, TILE_N);
		t.k0 = 0;
		do {
			t.depth = least(g->k - t.k0, TILE_K);
			air_pool_for(pool, t.cols, 64, pack_columns, &t);
			air_pool_for(pool, g->m, 16, rows, &t);
			t.k0 += t.depth;
		} while (t.k0 < g->k);
	}
}
