// SPDX-License-Identifier: MIT
/*
 * Products whose epilogue no library has: cuBLASLt leaves some rows of the bare
 * product in f32, a kernel makes the result of them, and so on down the rows.
 * The f32 rows are few enough to stay in the GPU's cache.
 */
#include <stdlib.h>
#include <string.h>

#include "ops/worker/cuda/cuda.h"

/*
 * @body: the library's plan for @rows rows; @tail: for the last @rest ones
 */
struct air_wide {
	struct air_lt_plan *body, *tail;
	uint32_t rows, rest;
	uint32_t size_a, size_y;
};

static air_status plan_rows(struct air_cuda *c, const struct airunner_desc *d,
			    const struct air_matmul_params *p, uint64_t rows,
			    struct air_lt_plan **out, struct air_error *e)
{
	struct air_matmul_params bare = *p;
	struct airunner_desc f32 = *d;

	bare.m = rows;
	bare.batch = 1;
	bare.n_batch = 0;
	bare.y_m = (int64_t)p->n;
	bare.y_n = 1;
	bare.alpha = 1.0f;
	bare.beta = 0.0f;
	bare.activation = AIR_ACT_NONE;
	f32.tensor[0].dtype = AIRUNNER_F32;
	f32.tensor[4].dtype = 0;
	return air_lt_plan(c, &f32, &bare, out, e);
}

air_status air_wide_plan(struct air_cuda *c, const struct airunner_desc *d,
			 const struct air_matmul_params *p, uint32_t rows,
			 struct air_wide **out, struct air_error *e)
{
	struct air_wide *w = calloc(1, sizeof(*w));
	air_status st;

	if (!w)
		return air_fail(e, AIR_NO_MEMORY, "cuBLASLt: out of memory");
	w->rows = rows;
	w->rest = (uint32_t)(p->m % rows);
	w->size_a = air_elem_size(d->tensor[1].dtype);
	w->size_y = air_elem_size(d->tensor[0].dtype);
	st = plan_rows(c, d, p, rows, &w->body, e);
	if (!st && w->rest)
		st = plan_rows(c, d, p, w->rest, &w->tail, e);
	if (st) {
		air_wide_unplan(w);
		return st;
	}
	*out = w;
	return AIR_OK;
}

void air_wide_unplan(struct air_wide *w)
{
	if (w->body)
		air_lt_unplan(w->body);
	if (w->tail)
		air_lt_unplan(w->tail);
	free(w);
}

/* The operands of cuBLASLt for rows @from.. of number @which of the batch. */
static struct air_lt_plan *
rows_of(const struct air_wide *w, const struct air_matmul_params *p,
	const uint64_t *addr, uint64_t wide, uint64_t which, uint64_t from,
	uint64_t lt_addr[AIRUNNER_MAX_TENSORS])
{
	int64_t at = (int64_t)which, row = (int64_t)from;

	memset(lt_addr, 0, AIRUNNER_MAX_TENSORS * sizeof(*lt_addr));
	lt_addr[0] = wide;
	lt_addr[1] = addr[1] +
		     (uint64_t)(at * p->a[0] + row * p->a_m) * w->size_a;
	lt_addr[2] = addr[2] + (uint64_t)(at * p->b[0]) * w->size_a;
	return from + w->rows > p->m ? w->tail : w->body;
}

bool air_wide_warm(const struct air_cuda *c, const struct air_wide *w,
		   const struct air_matmul_params *p, const uint64_t *addr)
{
	uint64_t lt_addr[AIRUNNER_MAX_TENSORS];

	for (uint64_t i = 0; i < p->batch; i++) {
		for (uint64_t m = 0; m < p->m; m += w->rows) {
			/* the scratch memory is aligned to anything */
			struct air_lt_plan *q = rows_of(w, p, addr, 0, i, m,
							lt_addr);

			if (!air_lt_warm(c, q, lt_addr))
				return false;
		}
	}
	return true;
}

/* Rows @from.. of number @which of the batch. */
static CUresult run_rows(struct air_cuda *c, struct air_wide *w,
			 const struct air_wide_run *r, uint64_t which,
			 uint64_t from)
{
	struct air_matmul_params p = *r->params;
	uint64_t lt_addr[AIRUNNER_MAX_TENSORS];
	struct air_lt_plan *q;
	struct air_operands ops;
	void *args[] = { &p, &ops };
	int64_t at = (int64_t)which, row = (int64_t)from;
	CUresult st;

	for (uint32_t i = 0; i < AIRUNNER_MAX_TENSORS; i++)
		ops.addr[i] = r->addr[i];
	q = rows_of(w, &p, r->addr, r->wide, which, from, lt_addr);
	ops.addr[1] = lt_addr[1];
	ops.addr[2] = lt_addr[2];
	ops.addr[AIR_WORKSPACE_ADDR] = r->wide;
	st = air_lt_run(c, q, lt_addr, r->scratch, r->stream);
	if (st != CUDA_SUCCESS)
		return st;
	p.m = q == w->tail ? w->rest : w->rows;
	ops.addr[0] += (uint64_t)(at * p.y[0] + row * p.y_m) * w->size_y;
	ops.addr[3] += (uint64_t)(at * p.c[0] + row * p.c_m) * w->size_y;
	return cu.LaunchKernel(r->finish, r->step->grid[0], 1, 1,
			       r->step->block, 1, 1, 0, r->stream, args, NULL);
}

CUresult air_wide_run(struct air_cuda *c, struct air_wide *w,
		      const struct air_wide_run *r)
{
	CUresult st = CUDA_SUCCESS;

	for (uint64_t i = 0; i < r->params->batch; i++)
		for (uint64_t m = 0; m < r->params->m && st == CUDA_SUCCESS;
		     m += w->rows)
			st = run_rows(c, w, r, i, m);
	return st;
}
