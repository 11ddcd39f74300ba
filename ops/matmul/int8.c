// SPDX-License-Identifier: MIT
/*
 * Integers through the f32 multiplication: products of i8 are at most 2^14, so
 * sums of up to 1024 of them are integers that f32 holds exactly, in whatever
 * order they are added. Beyond that, tiles are added up as integers.
 */
#include "ops/matmul/int8.h"

#include "ops/blas.h"
#include "ops/cpu.h"
#include "ops/simd.h"

#define TILE_K 1024
#define TILE_M 512
#define TILE_N 512

/* Elements worth waking another thread for. */
#define GRAIN 32768

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

uint64_t air_matmul_int8_workspace(int64_t m, int64_t n, int64_t k)
{
	uint64_t tm = least(m, TILE_M), tn = least(n, TILE_N);
	uint64_t tk = least(k, TILE_K);

	return (tm * tk + tk * tn + tm * tn) * sizeof(float);
}

AIR_INLINE void widen(float *dst, const int8_t *src, int64_t step, int64_t n)
{
	if (step == 1) {
		for (int64_t i = 0; i < n; i++)
			dst[i] = src[i];
		return;
	}
	for (int64_t i = 0; i < n; i++)
		dst[i] = src[i * step];
}
AIR_VERSIONS(widen, (float *dst, const int8_t *src, int64_t step, int64_t n),
	     (dst, src, step, n))

/* Rows of a tile of A or B on their way into f32. */
struct pack {
	float *dst;
	const int8_t *src;
	int64_t row, col; /* steps */
	int64_t cols;
};

static void pack_rows(void *arg, uint64_t begin, uint64_t end)
{
	const struct pack *p = arg;

	for (int64_t i = begin; i < (int64_t)end; i++)
		AIR_BEST(widen)
	(p->dst + i * p->cols, p->src + i * p->row, p->col, p->cols);
}

/* The tile as it is or transposed, whichever reads along the memory. */
static bool pack(struct air_pool *pool, float *dst, const int8_t *src,
		 int64_t row, int64_t col, int64_t rows, int64_t cols)
{
	bool trans = row == 1 && col != 1;
	struct pack p = { dst, src, trans ? col : row, trans ? row : col,
			  trans ? rows : cols };

	air_pool_for(pool, trans ? cols : rows, GRAIN / p.cols + 1, pack_rows,
		     &p);
	return trans;
}

struct tile {
	const struct air_matmul_int8 *g;
	const float *product;
	int64_t i0, j0, cols;
	bool first, last; /* of what is summed over */
};

/* What y is before any product is added. */
static uint32_t initial(const struct air_matmul_int8 *g, int64_t i, int64_t j)
{
	uint32_t v = g->c ? (uint32_t)g->c[i * g->c_row + j * g->c_col] : 0;

	return g->bias ? v + (uint32_t)g->bias[j * g->bias_step] : v;
}

static void add_rows(void *arg, uint64_t begin, uint64_t end)
{
	const struct tile *t = arg;
	const struct air_matmul_int8 *g = t->g;

	for (int64_t r = begin; r < (int64_t)end; r++) {
		int64_t i = t->i0 + r;

		for (int64_t c = 0; c < t->cols; c++) {
			int64_t j = t->j0 + c;
			int32_t *y = g->y + i * g->y_row + j * g->y_col;
			uint32_t v = t->first ? initial(g, i, j) : (uint32_t)*y;

			if (g->k)
				v += (uint32_t)(int32_t)
					     t->product[r * t->cols + c];
			*y = t->last && g->relu && (int32_t)v < 0 ? 0
								  : (int32_t)v;
		}
	}
}

static void tile(const struct air_matmul_int8 *g, float *workspace,
		 struct air_pool *pool, int64_t i0, int64_t rows, int64_t j0,
		 int64_t cols)
{
	float *a = workspace;
	float *b = a + rows * least(g->k, TILE_K);
	float *product = b + least(g->k, TILE_K) * cols;
	struct tile t = { g, product, i0, j0, cols, true, false };
	struct air_sgemm s = { .m = rows,
			       .n = cols,
			       .alpha = 1,
			       .a = a,
			       .b = b,
			       .c = product,
			       .ldc = cols };
	int64_t k0 = 0;

	do {
		s.k = least(g->k - k0, TILE_K);
		if (s.k) {
			s.trans_a = pack(pool, a,
					 g->a + i0 * g->a_row + k0 * g->a_col,
					 g->a_row, g->a_col, rows, s.k);
			s.trans_b = pack(pool, b,
					 g->b + k0 * g->b_row + j0 * g->b_col,
					 g->b_row, g->b_col, s.k, cols);
			s.lda = s.trans_a ? rows : s.k;
			s.ldb = s.trans_b ? s.k : cols;
			air_sgemm(&s, pool);
		}
		t.first = !k0;
		k0 += s.k;
		t.last = k0 >= g->k;
		air_pool_for(pool, rows, GRAIN / cols + 1, add_rows, &t);
	} while (!t.last);
}

void air_matmul_int8(const struct air_matmul_int8 *g, void *workspace,
		     struct air_pool *pool)
{
	for (int64_t j = 0; j < g->n; j += TILE_N)
		for (int64_t i = 0; i < g->m; i += TILE_M)
			tile(g, workspace, pool, i, least(g->m - i, TILE_M), j,
			     least(g->n - j, TILE_N));
}
