// SPDX-License-Identifier: MIT
#include "ops/elementwise.h"

#include <stdlib.h>

#include "ops/block.h"
#include "ops/iter.h"
#include "ops/stream.h"

#define STREAM_BLOCK 64

struct plan {
	struct air_cpu_plan base;
	air_ew_fn kernel;
	float param;
	bool flat;  /* all operands are contiguous f32: no rows, no blocks */
	bool large; /* and together too large for any cache */
	uint64_t grain;
	struct air_iter it;
	struct air_vec vec[AIR_ITER_MAX];
};

struct job {
	const struct plan *plan;
	void *operand[AIR_ITER_MAX];
	bool stream;
};

static void row(void *arg, char *const *p, uint64_t n)
{
	const struct plan *plan = arg;
	const struct air_vec *v = plan->vec;
	float ty[AIR_BLOCK], ta[AIR_BLOCK], tb[AIR_BLOCK];
	const float *a, *b = NULL;

	for (uint64_t at = 0; at < n; at += AIR_BLOCK) {
		uint64_t m = n - at < AIR_BLOCK ? n - at : AIR_BLOCK;
		float *y = air_vec_target(&v[0], p[0], at, ty);

		/* What repeats along the row was loaded with its first block.
		 */
		if (!at || v[1].stride)
			a = air_vec_load(&v[1], p[1], at, m, ta);
		if (plan->it.n == 3 && (!at || v[2].stride))
			b = air_vec_load(&v[2], p[2], at, m, tb);
		plan->kernel(y, a, b, m, plan->param);
		air_vec_store(&v[0], p[0], at, m, y);
	}
}

/*
 * By small blocks, so that the loads of the next one are under way while this
 * one is stored. Measured with blocks of 64 to 1024.
 */
static void part_streamed(const struct plan *plan, float *const *p,
			  uint64_t begin, uint64_t end)
{
	float block[STREAM_BLOCK];

	for (uint64_t at = begin, m; at < end; at += m) {
		/* blocks end with a line: parts of lines cannot be streamed */
		m = STREAM_BLOCK -
		    (uintptr_t)(p[0] + at) % 64 / sizeof(*block);
		if (m > end - at)
			m = end - at;
		plan->kernel(block, p[1] + at,
			     plan->it.n == 3 ? p[2] + at : NULL, m,
			     plan->param);
		air_stream_store(p[0] + at, block, m);
	}
	air_stream_end();
}

static void part(void *arg, uint64_t begin, uint64_t end)
{
	const struct job *job = arg;
	const struct plan *plan = job->plan;

	if (plan->flat) {
		float *const *p = (float *const *)job->operand;

		if (job->stream) {
			part_streamed(plan, p, begin, end);
			return;
		}
		plan->kernel(p[0] + begin, p[1] + begin,
			     plan->it.n == 3 ? p[2] + begin : NULL, end - begin,
			     plan->param);
		return;
	}
	air_iter_rows(&plan->it, job->operand, begin, end, row, (void *)plan);
}

static air_status run(const struct air_cpu_plan *base,
		      void *const operand[AIRUNNER_MAX_TENSORS + 1],
		      struct air_pool *pool)
{
	const struct plan *plan = (const struct plan *)base;
	struct job job = { .plan = plan };

	for (uint32_t i = 0; i < plan->it.n; i++)
		job.operand[i] = operand[i];
	/* in place its memory has been read anyway */
	job.stream = plan->large && operand[0] != operand[1] &&
		     (plan->it.n < 3 || operand[0] != operand[2]);
	if (plan->it.total < 2 * plan->grain)
		part(&job, 0, plan->it.total);
	else
		air_pool_for(pool, plan->it.total, plan->grain, part, &job);
	return AIR_OK;
}

static void destroy(struct air_cpu_plan *base)
{
	free(base);
}

air_status air_ew_plan(const struct airunner_desc *d, air_ew_fn kernel,
		       float param, uint64_t grain, struct air_cpu_plan **out,
		       struct air_error *e)
{
	const struct airunner_tensor *t[AIR_ITER_MAX];
	struct plan *plan = calloc(1, sizeof(*plan));

	if (!plan)
		return air_fail(e, AIR_NO_MEMORY, "no memory for a plan");
	for (uint32_t i = 0; i < d->n_tensors; i++)
		t[i] = &d->tensor[i];
	air_iter_init(&plan->it, d->n_tensors, t, ~0U);
	plan->flat = plan->it.ndim == 1;
	for (uint32_t i = 0; i < d->n_tensors; i++) {
		air_vec_init(&plan->vec[i], t[i]->dtype,
			     plan->it.stride[i][plan->it.ndim - 1]);
		plan->flat =
			plan->flat && plan->vec[i].direct && !plan->it.base[i];
	}
	plan->large = plan->flat && air_stream_pays(plan->it.total *
						    plan->it.n * sizeof(float));
	plan->base.run = run;
	plan->base.destroy = destroy;
	plan->kernel = kernel;
	plan->param = param;
	plan->grain = grain;
	*out = &plan->base;
	return AIR_OK;
}
