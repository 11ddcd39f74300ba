// SPDX-License-Identifier: MIT
#include <stdlib.h>

#include "ops/activation.h"
#include "ops/blas.h"
#include "ops/block.h"
#include "ops/cpu.h"
#include "ops/gemm.h"
#include "ops/matmul/int8.h"
#include "ops/matmul/layout.h"
#include "ops/simd.h"

enum {
	Y = AIR_MATMUL_Y,
	A = AIR_MATMUL_A,
	B = AIR_MATMUL_B,
	C = AIR_MATMUL_C,
	BIAS = AIR_MATMUL_BIAS
};

/* How the product is computed. */
enum way {
	INT8,
	TILED,		   /* by air_gemm() */
	DIRECT,		   /* BLAS on the operands as they are */
	DIRECT_TRANSPOSED, /* likewise, with y = (B' A')' */
};

/* A matrix as BLAS takes it. */
struct blas_matrix {
	bool trans;
	int64_t ld;
};

struct plan {
	struct air_cpu_plan base;
	struct air_matmul_layout l;
	enum way way;
	float alpha;
	float beta;
	uint32_t activation;
	int64_t bias_step; /* elements */
	struct air_vec bias;
	struct air_vec col[4]; /* along rows of y, a, b and c */
	int64_t row[4];	       /* bytes from one to the next */
	struct blas_matrix a, b, y;
};

/* One of the batch: where its matrices begin. */
struct product {
	const struct plan *plan;
	char *at[4];
	const char *bias;
	bool add_c; /* after multiplying; not where BLAS adds it */
};

AIR_INLINE void add_scaled(float *y, const float *x, uint64_t n, float by)
{
	AIR_IVDEP
	for (uint64_t i = 0; i < n; i++)
		y[i] += by * x[i];
}
AIR_VERSIONS(add_scaled, (float *y, const float *x, uint64_t n, float by),
	     (y, x, n, by))

/* @acc is the product in columns [j, j + n) of row @i, n <= AIR_BLOCK. */
static void finish_block(const struct product *p, float *acc, int64_t i,
			 int64_t j, int64_t n)
{
	const struct plan *plan = p->plan;
	float tmp[AIR_BLOCK];

	if (p->add_c)
		AIR_BEST(add_scaled)
	(acc,
	 air_vec_load(&plan->col[C], p->at[C] + i * plan->row[C], j, n, tmp), n,
	 plan->beta);
	if (p->bias)
		AIR_BEST(add_scaled)
	(acc, air_vec_load(&plan->bias, p->bias, j, n, tmp), n, 1);
	air_activate(plan->activation, acc, n);
}

static void finish_tile(void *arg, float *acc, int64_t i0, int64_t rows,
			int64_t j0, int64_t cols)
{
	const struct product *p = arg;
	const struct air_vec *y = &p->plan->col[Y];

	for (int64_t r = 0; r < rows; r++) {
		for (int64_t j = 0; j < cols; j += AIR_BLOCK) {
			int64_t n = cols - j < AIR_BLOCK ? cols - j : AIR_BLOCK;
			float *at = acc + r * cols + j;

			finish_block(p, at, i0 + r, j0 + j, n);
			y->store(p->at[Y] + (i0 + r) * p->plan->row[Y] +
					 (j0 + j) * y->stride,
				 y->stride, at, n);
		}
	}
}

static void finish_rows(void *arg, uint64_t begin, uint64_t end)
{
	const struct product *p = arg;
	const struct plan *plan = p->plan;

	for (int64_t i = begin; i < (int64_t)end; i++) {
		float *y = (float *)(p->at[Y] + i * plan->row[Y]);

		for (int64_t j = 0; j < plan->l.n; j += AIR_BLOCK)
			finish_block(p, y + j, i, j,
				     plan->l.n - j < AIR_BLOCK ? plan->l.n - j
							       : AIR_BLOCK);
	}
}

static void direct(struct product *p, struct air_pool *pool)
{
	const struct plan *plan = p->plan;
	const struct air_matmul_layout *l = &plan->l;
	/* BLAS adds what is in y already; c elsewhere is added afterwards. */
	bool in_place = plan->beta != 0 && p->at[C] == p->at[Y];
	struct air_sgemm g = {
		.m = l->m,
		.n = l->n,
		.k = l->k,
		.alpha = plan->alpha,
		.beta = in_place ? plan->beta : 0,
		.trans_a = plan->a.trans,
		.trans_b = plan->b.trans,
		.a = (const float *)p->at[A],
		.b = (const float *)p->at[B],
		.c = (float *)p->at[Y],
		.lda = plan->a.ld,
		.ldb = plan->b.ld,
		.ldc = plan->y.ld,
	};

	p->add_c = plan->beta != 0 && !in_place;
	air_sgemm(&g, pool);
	if (p->add_c || p->bias || plan->activation)
		air_pool_for(pool, l->m, 32768 / l->n + 1, finish_rows, p);
}

static void direct_transposed(struct product *p, struct air_pool *pool)
{
	const struct plan *plan = p->plan;
	struct air_sgemm g = {
		.m = plan->l.n,
		.n = plan->l.m,
		.k = plan->l.k,
		.alpha = plan->alpha,
		.trans_a = !plan->b.trans,
		.trans_b = !plan->a.trans,
		.a = (const float *)p->at[B],
		.b = (const float *)p->at[A],
		.c = (float *)p->at[Y],
		.lda = plan->b.ld,
		.ldb = plan->a.ld,
		.ldc = plan->y.ld,
	};

	air_sgemm(&g, pool);
}

/* @m's rows become the matrix's, unless its columns lie closer in memory. */
static bool source(const struct product *p, uint32_t i, struct air_matrix *m)
{
	const struct plan *plan = p->plan;
	bool trans = llabs(plan->row[i]) < llabs(plan->col[i].stride);

	m->at = p->at[i];
	m->row = trans ? plan->col[i].stride : plan->row[i];
	m->col = trans ? plan->row[i] : plan->col[i].stride;
	m->load = plan->col[i].load;
	return trans;
}

static void tiled(struct product *p, void *workspace, struct air_pool *pool)
{
	const struct plan *plan = p->plan;
	struct air_matrix a, b;
	struct air_gemm g = {
		.m = plan->l.m,
		.n = plan->l.n,
		.k = plan->l.k,
		.alpha = plan->alpha,
		.a = &a,
		.b = &b,
		.pack_a = air_pack_matrix,
		.pack_b = air_pack_matrix,
		.arg = p,
		.finish = finish_tile,
	};

	g.trans_a = source(p, A, &a);
	g.trans_b = source(p, B, &b);
	p->add_c = plan->beta != 0;
	air_gemm(&g, workspace, pool);
}

static void int8(const struct product *p, void *workspace,
		 struct air_pool *pool)
{
	const struct plan *plan = p->plan;
	const struct air_matmul_steps *s = plan->l.step;
	struct air_matmul_int8 g = {
		.m = plan->l.m,
		.n = plan->l.n,
		.k = plan->l.k,
		.a = (const int8_t *)p->at[A],
		.b = (const int8_t *)p->at[B],
		.y = (int32_t *)p->at[Y],
		.c = plan->beta != 0 ? (const int32_t *)p->at[C] : NULL,
		.bias = (const int32_t *)p->bias,
		.a_row = s[A].row,
		.a_col = s[A].col,
		.b_row = s[B].row,
		.b_col = s[B].col,
		.y_row = s[Y].row,
		.y_col = s[Y].col,
		.c_row = s[C].row,
		.c_col = s[C].col,
		.bias_step = plan->bias_step,
		.relu = plan->activation == AIR_ACT_RELU,
	};

	air_matmul_int8(&g, workspace, pool);
}

struct job {
	const struct plan *plan;
	void *const *operand;
	struct air_pool *pool;
};

static void batches(void *arg, uint64_t begin, uint64_t end)
{
	const struct job *job = arg;
	const struct plan *plan = job->plan;
	const struct air_iter *it = &plan->l.batch;
	void *workspace = job->operand[AIRUNNER_MAX_TENSORS];
	struct air_cursor c;

	air_cursor_set(&c, it, it->ndim, begin);
	for (; begin < end; begin++) {
		struct product p = { .plan = plan, .bias = job->operand[BIAS] };

		/* An absent c, and empty operands, stay NULL. */
		for (uint32_t i = 0; i < 4; i++)
			if (job->operand[i])
				p.at[i] = (char *)job->operand[i] + c.offset[i];
		if (plan->way == INT8)
			int8(&p, workspace, job->pool);
		else if (plan->way == TILED)
			tiled(&p, workspace, job->pool);
		else if (plan->way == DIRECT)
			direct(&p, job->pool);
		else
			direct_transposed(&p, job->pool);
		air_cursor_next(&c, it, it->ndim);
	}
}

static air_status run(const struct air_cpu_plan *base,
		      void *const operand[AIRUNNER_MAX_TENSORS + 1],
		      struct air_pool *pool)
{
	const struct plan *plan = (const struct plan *)base;
	const struct air_matmul_layout *l = &plan->l;
	struct job job = { plan, operand, pool };
	double work = (double)l->m * l->n * (l->k ? l->k : 1);

	if (!l->m || !l->n || !l->batch.total)
		return AIR_OK;
	/* Many small products: one thread each. Else: threads within each. */
	if (plan->way != INT8 && plan->way != TILED && work <= AIR_SGEMM_SMALL)
		air_pool_for(pool, l->batch.total,
			     (uint64_t)(4 * AIR_SGEMM_SMALL / work) + 1,
			     batches, &job);
	else
		batches(&job, 0, l->batch.total);
	return AIR_OK;
}

static void destroy(struct air_cpu_plan *base)
{
	free(base);
}

/* Whether BLAS can take @rows x @cols elements with these steps, and how. */
static bool fit(int64_t rows, int64_t cols, const struct air_matmul_steps *s,
		struct blas_matrix *out)
{
	if ((cols == 1 || s->col == 1) && (rows == 1 || s->row >= cols)) {
		out->trans = false;
		out->ld = rows == 1 ? cols : s->row;
		return true;
	}
	if ((rows == 1 || s->row == 1) && (cols == 1 || s->col >= rows)) {
		out->trans = true;
		out->ld = cols == 1 ? rows : s->col;
		return true;
	}
	return false;
}

static enum way choose(struct plan *plan, const struct airunner_desc *d)
{
	const struct air_matmul_layout *l = &plan->l;

	if (d->tensor[A].dtype == AIRUNNER_I8)
		return INT8;
	if (d->tensor[A].dtype != AIRUNNER_F32 ||
	    !fit(l->m, l->k, &l->step[A], &plan->a) ||
	    !fit(l->k, l->n, &l->step[B], &plan->b) ||
	    !fit(l->m, l->n, &l->step[Y], &plan->y))
		return TILED;
	if (!plan->y.trans)
		return DIRECT;
	if (plan->beta != 0 || air_has_operand(d, BIAS) || plan->activation)
		return TILED;
	return DIRECT_TRANSPOSED;
}

static void fill(struct plan *plan, const struct airunner_desc *d)
{
	const struct airunner_tensor *bias = &d->tensor[BIAS];

	memset(plan, 0, sizeof(*plan));
	air_matmul_layout(&plan->l, d);
	plan->alpha = (float)air_attr_f64(d, AIR_MATMUL_ALPHA);
	plan->beta = (float)air_attr_f64(d, AIR_MATMUL_BETA);
	plan->activation = (uint32_t)d->attr[AIR_MATMUL_ACTIVATION];
	for (uint32_t i = 0; i < 4; i++) {
		uint32_t dtype = d->tensor[i].dtype;
		int64_t size = air_elem_size(dtype);

		plan->row[i] = plan->l.step[i].row * size;
		air_vec_init(&plan->col[i], dtype, plan->l.step[i].col * size);
	}
	plan->bias_step = bias->stride[0];
	air_vec_init(&plan->bias, bias->dtype,
		     bias->stride[0] * air_elem_size(bias->dtype));
	plan->way = choose(plan, d);
}

uint64_t air_matmul_cpu_workspace(const struct airunner_desc *d)
{
	struct plan plan;
	const struct air_matmul_layout *l = &plan.l;

	fill(&plan, d);
	if (plan.way == INT8)
		return air_matmul_int8_workspace(l->m, l->n, l->k);
	if (plan.way == TILED)
		return air_gemm_workspace(l->m, l->n, l->k);
	return 0;
}

air_status air_matmul_cpu_plan(const struct airunner_desc *d,
			       struct air_cpu_plan **out, struct air_error *e)
{
	struct plan *plan = malloc(sizeof(*plan));

	if (!plan)
		return air_fail(e, AIR_NO_MEMORY, "no memory for a plan");
	fill(plan, d);
	plan->base.run = run;
	plan->base.destroy = destroy;
	*out = &plan->base;
	return AIR_OK;
}
