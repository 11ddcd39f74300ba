// SPDX-License-Identifier: MIT
#include "ops/gemm.h"

#include "ops/blas.h"
#include "ops/cpu.h"

/*
 * Sides of tiles. An element that is packed takes part in as many products as
 * the tile is wide, so packing costs next to nothing from some hundreds on.
 */
#define TILE_M 1024
#define TILE_N 1024
#define TILE_K 512

/* Elements worth waking another thread for. */
#define GRAIN 32768

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Rounded so that each part of the workspace begins at a cache line. */
static int64_t area(int64_t rows, int64_t cols)
{
	return (rows * cols + 15) / 16 * 16;
}

uint64_t air_gemm_workspace(int64_t m, int64_t n, int64_t k)
{
	int64_t tm = least(m, TILE_M), tn = least(n, TILE_N);
	int64_t tk = least(k, TILE_K);

	return (area(tm, tk) + area(tk, tn) + area(tm, tn)) * sizeof(float);
}

void air_pack_matrix(const void *source, float *dst, int64_t r0, int64_t rows,
		     int64_t c0, int64_t cols)
{
	const struct air_matrix *m = source;

	for (int64_t r = 0; r < rows; r++)
		m->load(dst + r * cols, m->at + (r0 + r) * m->row + c0 * m->col,
			m->col, cols);
}

struct pack {
	air_pack_fn fn;
	const void *source;
	float *dst;
	int64_t r0, c0, cols;
};

static void pack_rows(void *arg, uint64_t begin, uint64_t end)
{
	const struct pack *p = arg;

	p->fn(p->source, p->dst + begin * p->cols, p->r0 + begin, end - begin,
	      p->c0, p->cols);
}

static void pack(struct air_pool *pool, air_pack_fn fn, const void *source,
		 float *dst, int64_t r0, int64_t rows, int64_t c0, int64_t cols)
{
	struct pack p = { fn, source, dst, r0, c0, cols };

	air_pool_for(pool, rows, GRAIN / cols + 1, pack_rows, &p);
}

struct finish {
	const struct air_gemm *g;
	float *acc;
	int64_t i0, j0, cols;
};

static void finish_rows(void *arg, uint64_t begin, uint64_t end)
{
	const struct finish *f = arg;

	f->g->finish(f->g->arg, f->acc + begin * f->cols, f->i0 + begin,
		     end - begin, f->j0, f->cols);
}

static void tile(const struct air_gemm *g, float *workspace,
		 struct air_pool *pool, int64_t i0, int64_t rows, int64_t j0,
		 int64_t cols)
{
	float *a = workspace;
	float *b = a + area(rows, least(g->k, TILE_K));
	float *acc = b + area(least(g->k, TILE_K), cols);
	struct finish f = { g, acc, i0, j0, cols };
	struct air_sgemm s = { .m = rows,
			       .n = cols,
			       .alpha = g->alpha,
			       .trans_a = g->trans_a,
			       .trans_b = g->trans_b,
			       .a = a,
			       .b = b,
			       .c = acc,
			       .ldc = cols };
	int64_t k0 = 0;

	do {
		s.k = g->alpha == 0 ? 0 : least(g->k - k0, TILE_K);
		s.lda = g->trans_a ? rows : s.k;
		s.ldb = g->trans_b ? s.k : cols;
		s.beta = k0 ? 1 : 0;
		if (s.k && g->trans_a)
			pack(pool, g->pack_a, g->a, a, k0, s.k, i0, rows);
		else if (s.k)
			pack(pool, g->pack_a, g->a, a, i0, rows, k0, s.k);
		if (s.k && g->trans_b)
			pack(pool, g->pack_b, g->b, b, j0, cols, k0, s.k);
		else if (s.k)
			pack(pool, g->pack_b, g->b, b, k0, s.k, j0, cols);
		air_sgemm(&s, pool);
		k0 += s.k;
	} while (s.k && k0 < g->k);
	air_pool_for(pool, rows, GRAIN / cols + 1, finish_rows, &f);
}

void air_gemm(const struct air_gemm *g, void *workspace, struct air_pool *pool)
{
	for (int64_t j = 0; j < g->n; j += TILE_N)
		for (int64_t i = 0; i < g->m; i += TILE_M)
			tile(g, workspace, pool, i, least(g->m - i, TILE_M), j,
			     least(g->n - j, TILE_N));
}
