// SPDX-License-Identifier: MIT
#include "ops/blas.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "ops/cpu.h"
#include "ops/simd.h"

enum { ROW_MAJOR = 101, NO_TRANS = 111, TRANS = 112 };

/* The library as built for 32-bit integers, which libopenblas.so.0 is. */
static struct {
	pthread_once_t once;
	void (*sgemm)(int order, int trans_a, int trans_b, int m, int n, int k,
		      float alpha, const float *a, int lda, const float *b,
		      int ldb, float beta, float *c, int ldc);
	void (*set_threads)(int n);
	int (*get_threads)(void);
	const char *(*config)(void);
	atomic_int threads;
	atomic_bool forbidden;
} blas = { .once = PTHREAD_ONCE_INIT };

static void load(void)
{
	const char *name = getenv("AIRUNNER_BLAS");
	void *lib;

	if (!name || !*name)
		name = "libopenblas.so.0";
	if (!strcmp(name, "none"))
		return;
	lib = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	if (!lib)
		return;
	*(void **)&blas.set_threads = dlsym(lib, "openblas_set_num_threads");
	*(void **)&blas.get_threads = dlsym(lib, "openblas_get_num_threads");
	*(void **)&blas.config = dlsym(lib, "openblas_get_config");
	*(void **)&blas.sgemm = dlsym(lib, "cblas_sgemm");
}

const char *air_blas_name(void)
{
	pthread_once(&blas.once, load);
	if (!blas.sgemm)
		return NULL;
	return blas.config ? blas.config() : "BLAS";
}

void air_blas_allow(bool allow)
{
	atomic_store(&blas.forbidden, !allow);
}

/*
 * The library has threads of its own. Its pool is given the size of ours, once
 * unless pools of different sizes are in use: resizing is not cheap.
 */
static void match_threads(const struct air_pool *pool)
{
	int want = (int)air_pool_threads(pool);

	if (!blas.set_threads || !blas.get_threads ||
	    atomic_load_explicit(&blas.threads, memory_order_relaxed) == want)
		return;
	if (blas.get_threads() != want)
		blas.set_threads(want);
	atomic_store(&blas.threads, want);
}

static bool fits_int(const struct air_sgemm *g)
{
	return g->m <= INT32_MAX && g->n <= INT32_MAX && g->k <= INT32_MAX &&
	       g->lda <= INT32_MAX && g->ldb <= INT32_MAX &&
	       g->ldc <= INT32_MAX;
}

/*
 * The plain kernel. Columns of C are taken in panels of 32; the panel of B is
 * packed on the stack, and ROWS rows of C are kept in registers.
 */
typedef float lanes __attribute__((vector_size(64), aligned(4), may_alias));

#define LANES 16
#define PANEL (2 * LANES)
#define DEPTH 128
#define ROWS  4

struct panel {
	const struct air_sgemm *g;
	int64_t j0; /* first column */
	int64_t k0; /* first of what is summed */
	int64_t depth;
	float b[DEPTH * PANEL];
};

static void pack_panel(struct panel *p)
{
	const struct air_sgemm *g = p->g;
	int64_t n = g->n - p->j0 < PANEL ? g->n - p->j0 : PANEL;

	for (int64_t k = 0; k < p->depth; k++) {
		float *to = p->b + k * PANEL;
		int64_t at = p->k0 + k;

		for (int64_t j = 0; j < PANEL; j++) {
			int64_t col = p->j0 + j;

			if (j >= n)
				to[j] = 0;
			else if (g->trans_b)
				to[j] = g->b[col * g->ldb + at];
			else
				to[j] = g->b[at * g->ldb + col];
		}
	}
}

/* @from: ROWS rows of A, one element a step of @step; @sum: ROWS x PANEL. */
AIR_INLINE void multiply_panel(const struct panel *p, const float *const *from,
			       int64_t step, float *sum)
{
	lanes acc[ROWS][2] = { 0 };

	for (int64_t k = 0; k < p->depth; k++) {
		lanes b0 = *(const lanes *)(p->b + k * PANEL);
		lanes b1 = *(const lanes *)(p->b + k * PANEL + LANES);

		for (int r = 0; r < ROWS; r++) {
			float a = from[r][k * step];

			acc[r][0] += a * b0;
			acc[r][1] += a * b1;
		}
	}
	memcpy(sum, acc, sizeof(acc));
}
AIR_VERSIONS(multiply_panel,
	     (const struct panel *p, const float *const *from, int64_t step,
	      float *sum),
	     (p, from, step, sum))

static void add_rows(const struct panel *p, int64_t i0, const float *sum)
{
	const struct air_sgemm *g = p->g;
	int64_t n = g->n - p->j0 < PANEL ? g->n - p->j0 : PANEL;

	for (int64_t r = 0; r < ROWS && i0 + r < g->m; r++) {
		float *c = g->c + (i0 + r) * g->ldc + p->j0;

		for (int64_t j = 0; j < n; j++) {
			float before = 0;

			if (p->k0)
				before = c[j];
			else if (g->beta != 0)
				before = g->beta * c[j];
			c[j] = before + g->alpha * sum[r * PANEL + j];
		}
	}
}

static void panels(void *arg, uint64_t begin, uint64_t end)
{
	const struct air_sgemm *g = arg;
	int64_t step = g->trans_a ? g->lda : 1;
	struct panel p = { .g = g };
	float sum[ROWS * PANEL];

	for (p.j0 = begin * PANEL; p.j0 < (int64_t)end * PANEL; p.j0 += PANEL) {
		for (p.k0 = 0; p.k0 < g->k; p.k0 += DEPTH) {
			p.depth = g->k - p.k0 < DEPTH ? g->k - p.k0 : DEPTH;
			pack_panel(&p);
			for (int64_t i = 0; i < g->m; i += ROWS) {
				const float *from[ROWS];

				/* Beyond the last row, the last once more. */
				for (int64_t r = 0; r < ROWS; r++) {
					int64_t row =
						i + r < g->m ? i + r : g->m - 1;

					from[r] =
						g->a + p.k0 * step +
						row * (g->trans_a ? 1 : g->lda);
				}
				AIR_BEST(multiply_panel)(&p, from, step, sum);
				add_rows(&p, i, sum);
			}
		}
	}
}

static void plain(const struct air_sgemm *g, struct air_pool *pool)
{
	uint64_t cost = (uint64_t)g->m * g->k * PANEL;

	air_pool_for(pool, (g->n + PANEL - 1) / PANEL,
		     AIR_SGEMM_SMALL / cost + 1, panels, (void *)g);
}

static void scale(const struct air_sgemm *g)
{
	for (int64_t i = 0; i < g->m; i++) {
		float *c = g->c + i * g->ldc;

		if (g->beta == 0)
			memset(c, 0, g->n * sizeof(*c));
		else if (g->beta != 1)
			for (int64_t j = 0; j < g->n; j++)
				c[j] *= g->beta;
	}
}

void air_sgemm(const struct air_sgemm *g, struct air_pool *pool)
{
	if (!g->m || !g->n)
		return;
	if (!g->k || g->alpha == 0) {
		scale(g);
		return;
	}
	pthread_once(&blas.once, load);
	if (!blas.sgemm || !fits_int(g) ||
	    atomic_load_explicit(&blas.forbidden, memory_order_relaxed)) {
		plain(g, pool);
		return;
	}
	match_threads(pool);
	blas.sgemm(ROW_MAJOR, g->trans_a ? TRANS : NO_TRANS,
		   g->trans_b ? TRANS : NO_TRANS, (int)g->m, (int)g->n,
		   (int)g->k, g->alpha, g->a, (int)g->lda, g->b, (int)g->ldb,
		   g->beta, g->c, (int)g->ldc);
}
