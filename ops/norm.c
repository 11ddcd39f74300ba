// SPDX-License-Identifier: MIT
#include "ops/norm.h"

#include <stdlib.h>

#include "ops/iter.h"

/* Elements worth waking another thread for. */
#define GRAIN 32768

/* Operand @i is a vector as long as a row; in x's dtype or f32. */
static air_status check_vector(const struct air_op *op,
			       const struct airunner_desc *d, uint32_t i,
			       struct air_error *e)
{
	const struct airunner_tensor *y = &d->tensor[0];
	air_status st;

	if (!air_has_operand(d, i))
		return AIR_OK;
	st = air_check_dtype(
		op, d, i, AIR_DTYPE_BIT(y->dtype) | AIR_DTYPE_BIT(AIRUNNER_F32),
		e);
	if (!st)
		st = air_check_ndim(op, d, i, 1, 1, e);
	if (!st)
		st = air_check_dim(op, d, i, 0, y->shape[y->ndim - 1],
				   "y's last dimension", e);
	return st;
}

air_status air_norm_check(const struct air_op *op,
			  const struct airunner_desc *d, uint32_t epsilon,
			  struct air_error *e)
{
	air_status st = air_check_dtype(op, d, AIR_NORM_Y, AIR_DTYPES_FLOAT, e);

	if (!st)
		st = air_check_dtype_as(op, d, AIR_NORM_X, AIR_NORM_Y, e);
	if (!st)
		st = air_check_shape_as(op, d, AIR_NORM_X, AIR_NORM_Y, e);
	if (!st)
		st = air_check_ndim(op, d, AIR_NORM_Y, 1, AIRUNNER_MAX_DIMS, e);
	for (uint32_t i = AIR_NORM_WEIGHT; !st && i < op->n_tensors; i++)
		st = check_vector(op, d, i, e);
	if (!st)
		st = air_check_epsilon(op, d, epsilon, "epsilon", e);
	return st;
}

struct plan {
	struct air_cpu_plan base;
	struct air_iter rows;
	struct air_norm norm;
	air_norm_row_fn row;
};

struct job {
	const struct plan *plan;
	void *const *operand;
};

static void some_rows(void *arg, char *const *p, uint64_t n)
{
	const struct job *job = arg;
	const struct plan *plan = job->plan;
	uint32_t last = plan->rows.ndim - 1;
	char *at[4] = { p[AIR_NORM_Y], p[AIR_NORM_X],
			job->operand[AIR_NORM_WEIGHT],
			job->operand[AIR_NORM_BIAS] };

	for (uint64_t i = 0; i < n; i++) {
		plan->row(&plan->norm, at);
		at[AIR_NORM_Y] += plan->rows.stride[AIR_NORM_Y][last];
		at[AIR_NORM_X] += plan->rows.stride[AIR_NORM_X][last];
	}
}

static void part(void *arg, uint64_t begin, uint64_t end)
{
	const struct job *job = arg;

	air_iter_rows(&job->plan->rows, job->operand, begin, end, some_rows,
		      arg);
}

static air_status run(const struct air_cpu_plan *base,
		      void *const operand[AIRUNNER_MAX_TENSORS + 1],
		      struct air_pool *pool)
{
	const struct plan *plan = (const struct plan *)base;
	struct job job = { plan, operand };
	uint64_t n = plan->norm.length;

	if (n && plan->rows.total)
		air_pool_for(pool, plan->rows.total, (GRAIN + n - 1) / n, part,
			     &job);
	return AIR_OK;
}

static void destroy(struct air_cpu_plan *base)
{
	free(base);
}

air_status air_norm_plan(const struct airunner_desc *d, double epsilon,
			 air_norm_row_fn row, struct air_cpu_plan **out,
			 struct air_error *e)
{
	const struct airunner_tensor *t[2] = { &d->tensor[AIR_NORM_Y],
					       &d->tensor[AIR_NORM_X] };
	struct plan *plan = calloc(1, sizeof(*plan));
	uint32_t last = t[0]->ndim - 1;

	if (!plan)
		return air_fail(e, AIR_NO_MEMORY, "no memory for a plan");
	plan->base.run = run;
	plan->base.destroy = destroy;
	plan->row = row;
	plan->norm.length = t[0]->shape[last];
	plan->norm.epsilon = (float)epsilon;
	air_iter_init(&plan->rows, 2, t, ~(1U << last));
	for (uint32_t i = 0; i < d->n_tensors; i++) {
		const struct airunner_tensor *v = &d->tensor[i];

		if (v->dtype)
			air_vec_init(&plan->norm.vec[i], v->dtype,
				     v->stride[v->ndim - 1] *
					     air_elem_size(v->dtype));
	}
	*out = &plan->base;
	return AIR_OK;
}
