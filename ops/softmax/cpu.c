// SPDX-License-Identifier: MIT
#include <stdlib.h>

#include "ops/block.h"
#include "ops/cpu.h"
#include "ops/iter.h"
#include "ops/math.h"
#include "ops/softmax/softmax.h"

/* Elements worth waking another thread for. */
#define GRAIN 16384

/* Rows done side by side when neighbours in memory belong to different rows. */
#define COLUMNS AIR_BLOCK

enum { Y, X };

struct plan {
	struct air_cpu_plan base;
	struct air_iter rows; /* all dimensions but the axis */
	int64_t length;
	struct air_vec along[2];
	struct air_vec across[2];
	bool columns;
};

struct job {
	const struct plan *plan;
	char *y;
	char *x;
};

/* y = exp(x - m) */
AIR_INLINE void exp_block(float *y, const float *x, uint64_t n, float m)
{
	AIR_IVDEP
	for (uint64_t i = 0; i < n; i++)
		y[i] = air_expf(x[i] - m);
}
AIR_VERSIONS(exp_block, (float *y, const float *x, uint64_t n, float m),
	     (y, x, n, m))

AIR_INLINE void scale_block(float *y, uint64_t n, float by)
{
	for (uint64_t i = 0; i < n; i++)
		y[i] *= by;
}
AIR_VERSIONS(scale_block, (float *y, uint64_t n, float by), (y, n, by))

static uint64_t block_at(uint64_t at, uint64_t n)
{
	return n - at < AIR_BLOCK ? n - at : AIR_BLOCK;
}

static float row_max(const struct plan *plan, const char *x)
{
	const struct air_vec *v = &plan->along[X];
	air_max_fn largest = air_maximizer();
	uint64_t n = plan->length;
	float tmp[AIR_BLOCK];
	float m = -INFINITY;

	for (uint64_t at = 0; at < n; at += AIR_BLOCK) {
		uint64_t k = block_at(at, n);
		float top;

		largest(air_vec_load(v, x, at, k, tmp), k, &top);
		/* A NaN need not be kept: its exponential makes the sum NaN. */
		m = top > m ? top : m;
	}
	return m;
}

/*
 * f32 rows keep the exponentials in y. Others would lose digits there, and
 * compute them twice unless all of the row is one block.
 */
static void row(const struct plan *plan, char *y, const char *x)
{
	const struct air_vec *vx = &plan->along[X], *vy = &plan->along[Y];
	air_sum_fn sum = air_summer();
	uint64_t n = plan->length;
	bool kept = vy->direct || n <= AIR_BLOCK;
	float m = row_max(plan, x);
	float tx[AIR_BLOCK], ty[AIR_BLOCK];
	double total = 0;
	float inverse;

	for (uint64_t at = 0; at < n; at += AIR_BLOCK) {
		float *e = air_vec_target(vy, y, at, ty);
		uint64_t k = block_at(at, n);
		double part;

		AIR_BEST(exp_block)(e, air_vec_load(vx, x, at, k, tx), k, m);
		sum(e, k, &part);
		total += part;
	}
	inverse = (float)(1 / total);
	for (uint64_t at = 0; at < n; at += AIR_BLOCK) {
		float *e = air_vec_target(vy, y, at, ty);
		uint64_t k = block_at(at, n);

		if (!kept)
			AIR_BEST(exp_block)
		(e, air_vec_load(vx, x, at, k, tx), k, m);
		AIR_BEST(scale_block)(e, k, inverse);
		air_vec_store(vy, y, at, k, e);
	}
}

AIR_INLINE void max_columns(float *m, const float *x, uint64_t n)
{
	AIR_IVDEP
	for (uint64_t i = 0; i < n; i++)
		m[i] = x[i] > m[i] ? x[i] : m[i];
}
AIR_VERSIONS(max_columns, (float *m, const float *x, uint64_t n), (m, x, n))

AIR_INLINE void exp_columns(float *y, const float *x, const float *m,
			    uint64_t n)
{
	AIR_IVDEP
	for (uint64_t i = 0; i < n; i++)
		y[i] = air_expf(x[i] - m[i]);
}
AIR_VERSIONS(exp_columns,
	     (float *y, const float *x, const float *m, uint64_t n),
	     (y, x, m, n))

AIR_INLINE void add_columns(double *s, const float *e, uint64_t n)
{
	AIR_IVDEP
	for (uint64_t i = 0; i < n; i++)
		s[i] += e[i];
}
AIR_VERSIONS(add_columns, (double *s, const float *e, uint64_t n), (s, e, n))

AIR_INLINE void scale_columns(float *y, const float *by, uint64_t n)
{
	AIR_IVDEP
	for (uint64_t i = 0; i < n; i++)
		y[i] *= by[i];
}
AIR_VERSIONS(scale_columns, (float *y, const float *by, uint64_t n), (y, by, n))

/* @n <= COLUMNS rows that lie side by side. */
static void columns(const struct plan *plan, char *y, const char *x, uint64_t n)
{
	const struct air_vec *vx = &plan->across[X], *vy = &plan->across[Y];
	int64_t sx = plan->along[X].stride, sy = plan->along[Y].stride;
	float m[COLUMNS], inverse[COLUMNS], tx[COLUMNS], ty[COLUMNS];
	double total[COLUMNS];

	for (uint64_t i = 0; i < n; i++) {
		m[i] = -INFINITY;
		total[i] = 0;
	}
	for (int64_t k = 0; k < plan->length; k++)
		AIR_BEST(max_columns)
	(m, air_vec_load(vx, x + k * sx, 0, n, tx), n);
	for (int64_t k = 0; k < plan->length; k++) {
		AIR_BEST(exp_columns)
		(ty, air_vec_load(vx, x + k * sx, 0, n, tx), m, n);
		AIR_BEST(add_columns)(total, ty, n);
	}
	for (uint64_t i = 0; i < n; i++)
		inverse[i] = (float)(1 / total[i]);
	for (int64_t k = 0; k < plan->length; k++) {
		float *e = air_vec_target(vy, y + k * sy, 0, ty);

		AIR_BEST(exp_columns)
		(e, air_vec_load(vx, x + k * sx, 0, n, tx), m, n);
		AIR_BEST(scale_columns)(e, inverse, n);
		air_vec_store(vy, y + k * sy, 0, n, e);
	}
}

static void one_row(void *arg, char *const *p, uint64_t n)
{
	const struct plan *plan = arg;
	uint32_t last = plan->rows.ndim - 1;

	for (uint64_t i = 0; i < n; i++)
		row(plan, p[Y] + (int64_t)i * plan->rows.stride[Y][last],
		    p[X] + (int64_t)i * plan->rows.stride[X][last]);
}

static void some_columns(void *arg, char *const *p, uint64_t n)
{
	const struct plan *plan = arg;

	for (uint64_t at = 0; at < n; at += COLUMNS)
		columns(plan, p[Y] + (int64_t)at * plan->across[Y].stride,
			p[X] + (int64_t)at * plan->across[X].stride,
			n - at < COLUMNS ? n - at : COLUMNS);
}

static void part(void *arg, uint64_t begin, uint64_t end)
{
	const struct job *job = arg;
	void *operand[2] = { job->y, job->x };

	air_iter_rows(&job->plan->rows, operand, begin, end,
		      job->plan->columns ? some_columns : one_row,
		      (void *)job->plan);
}

static air_status run(const struct air_cpu_plan *base,
		      void *const operand[AIRUNNER_MAX_TENSORS + 1],
		      struct air_pool *pool)
{
	const struct plan *plan = (const struct plan *)base;
	struct job job = { plan, operand[Y], operand[X] };

	if (plan->length && plan->rows.total)
		air_pool_for(pool, plan->rows.total,
			     (GRAIN + plan->length - 1) / plan->length, part,
			     &job);
	return AIR_OK;
}

static void destroy(struct air_cpu_plan *base)
{
	free(base);
}

air_status air_softmax_cpu_plan(const struct airunner_desc *d,
				struct air_cpu_plan **out, struct air_error *e)
{
	const struct airunner_tensor *t[2] = { &d->tensor[Y], &d->tensor[X] };
	uint32_t axis = (uint32_t)d->attr[AIR_SOFTMAX_AXIS];
	struct plan *plan = calloc(1, sizeof(*plan));
	uint32_t last;

	if (!plan)
		return air_fail(e, AIR_NO_MEMORY, "no memory for a plan");
	plan->base.run = run;
	plan->base.destroy = destroy;
	plan->length = t[Y]->shape[axis];
	air_iter_init(&plan->rows, 2, t, ~(1U << axis));
	last = plan->rows.ndim - 1;
	for (int i = 0; i < 2; i++) {
		air_vec_init(&plan->along[i], t[i]->dtype,
			     t[i]->stride[axis] * air_elem_size(t[i]->dtype));
		air_vec_init(&plan->across[i], t[i]->dtype,
			     plan->rows.stride[i][last]);
	}
	plan->columns =
		plan->rows.shape[last] >= 8 &&
		llabs(plan->across[X].stride) < llabs(plan->along[X].stride) &&
		llabs(plan->across[Y].stride) < llabs(plan->along[Y].stride);
	*out = &plan->base;
	return AIR_OK;
}
