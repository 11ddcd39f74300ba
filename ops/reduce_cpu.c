// SPDX-License-Identifier: MIT
#include "ops/reduce_cpu.h"

#include <stdlib.h>

#include "ops/iter.h"

/* Elements of x worth waking another thread for. */
#define GRAIN 65536

/*
 * Where y has few elements, what is reduced is split among threads. How, only
 * depends on the shape, so that the result does not depend on the threads.
 */
#define MAX_PIECES  64
#define MAX_PARTIAL 1024

enum { Y, X };

struct plan {
	struct air_cpu_plan base;
	const struct air_reducer *reducer;
	struct air_iter keep; /* y and x, dimensions that stay */
	struct air_iter away; /* x, dimensions that are reduced */
	struct air_reduce_in in;
	uint32_t dtype; /* of y */
	bool columns;
	uint64_t pieces;
};

struct job {
	const struct plan *plan;
	char *y;
	char *x;
	union air_acc *partial;
};

struct fold {
	const struct plan *plan;
	union air_acc *acc;
	uint64_t n;
};

static void fold_row(void *arg, char *const *p, uint64_t n)
{
	const struct fold *f = arg;

	f->plan->reducer->row(f->acc, &f->plan->in, p[0], n);
}

static void fold_columns(void *arg, char *const *p, uint64_t n)
{
	const struct fold *f = arg;

	f->plan->reducer->columns(f->acc, &f->plan->in, p[0], n, f->n);
}

static void away(const struct plan *plan, char *x, uint64_t from, uint64_t to,
		 union air_acc *acc, uint64_t n)
{
	struct fold fold = { plan, acc, n };
	void *operand[1] = { x };

	air_iter_rows(&plan->away, operand, from, to,
		      plan->columns ? fold_columns : fold_row, &fold);
}

/*
 * Fold reduced elements [from, to) into elements [begin, end) of y, all of one
 * row of the kept loop if the plan goes by columns.
 */
static void fold_some(const struct plan *plan, char *x, uint64_t begin,
		      uint64_t end, uint64_t from, uint64_t to,
		      union air_acc *acc)
{
	const struct air_iter *keep = &plan->keep;
	struct air_cursor c;

	for (uint64_t i = begin; i < end; i++)
		acc[i - begin] = plan->reducer->start;
	air_cursor_set(&c, keep, keep->ndim, begin);
	if (plan->columns) {
		away(plan, x + c.offset[X], from, to, acc, end - begin);
		return;
	}
	for (uint64_t i = begin; i < end; i++) {
		away(plan, x + c.offset[X], from, to, &acc[i - begin], 1);
		air_cursor_next(&c, keep, keep->ndim);
	}
}

static void store_one(char *y, uint32_t dtype, union air_acc acc,
		      air_store_fn store)
{
	float f;

	switch (dtype) {
	case AIRUNNER_I8:
		*(int8_t *)y = (int8_t)acc.i;
		break;
	case AIRUNNER_I32:
		*(int32_t *)y = (int32_t)acc.i;
		break;
	case AIRUNNER_I64:
		*(int64_t *)y = acc.i;
		break;
	default:
		f = (float)acc.f;
		store(y, 0, &f, 1);
	}
}

/* A part of a row of y at once. */
static void store_row(const struct plan *plan, char *y, uint64_t n,
		      const union air_acc *acc, air_store_fn store)
{
	float row[AIR_COLUMNS];

	for (uint64_t i = 0; i < n; i++)
		row[i] = (float)acc[i].f;
	store(y, plan->keep.stride[Y][plan->keep.ndim - 1], row, n);
}

static bool floating(uint32_t dtype)
{
	return AIR_DTYPES_FLOAT & AIR_DTYPE_BIT(dtype);
}

/* Elements [begin, end), a group: see group_end(). */
static void store(const struct plan *plan, char *y, uint64_t begin,
		  uint64_t end, const union air_acc *acc)
{
	air_store_fn fn = air_storer(plan->dtype);
	struct air_cursor c;

	air_cursor_set(&c, &plan->keep, plan->keep.ndim, begin);
	if (plan->columns && floating(plan->dtype)) {
		store_row(plan, y + c.offset[Y], end - begin, acc, fn);
		return;
	}
	for (uint64_t i = begin; i < end; i++) {
		store_one(y + c.offset[Y], plan->dtype, acc[i - begin], fn);
		air_cursor_next(&c, &plan->keep, plan->keep.ndim);
	}
}

/* The end of what can be folded together with element @begin of y. */
static uint64_t group_end(const struct plan *plan, uint64_t begin, uint64_t end)
{
	uint64_t row = plan->keep.shape[plan->keep.ndim - 1];

	if (plan->columns && end > begin - begin % row + row)
		end = begin - begin % row + row;
	return end - begin > AIR_COLUMNS ? begin + AIR_COLUMNS : end;
}

static void outputs(void *arg, uint64_t begin, uint64_t end)
{
	const struct job *job = arg;
	union air_acc acc[AIR_COLUMNS];

	while (begin < end) {
		uint64_t to = group_end(job->plan, begin, end);

		fold_some(job->plan, job->x, begin, to, 0,
			  job->plan->away.total, acc);
		store(job->plan, job->y, begin, to, acc);
		begin = to;
	}
}

static void pieces(void *arg, uint64_t first, uint64_t last)
{
	const struct job *job = arg;
	const struct plan *plan = job->plan;
	uint64_t n = plan->keep.total;
	uint64_t total = plan->away.total;
	uint64_t size = (total + plan->pieces - 1) / plan->pieces;

	for (uint64_t i = first; i < last; i++) {
		uint64_t from = i * size < total ? i * size : total;
		uint64_t to = total - from < size ? total : from + size;

		for (uint64_t b = 0; b < n;) {
			uint64_t end = group_end(plan, b, n);

			fold_some(plan, job->x, b, end, from, to,
				  job->partial + i * n + b);
			b = end;
		}
	}
}

static void run_pieces(struct job *job, struct air_pool *pool)
{
	const struct plan *plan = job->plan;
	union air_acc partial[MAX_PARTIAL];
	uint64_t n = plan->keep.total;

	job->partial = partial;
	air_pool_for(pool, plan->pieces, 1, pieces, job);
	for (uint64_t i = 1; i < plan->pieces; i++)
		for (uint64_t k = 0; k < n; k++)
			plan->reducer->combine(&partial[k],
					       &partial[i * n + k]);
	for (uint64_t b = 0; b < n;) {
		uint64_t end = group_end(plan, b, n);

		store(plan, job->y, b, end, partial + b);
		b = end;
	}
}

static air_status run(const struct air_cpu_plan *base,
		      void *const operand[AIRUNNER_MAX_TENSORS + 1],
		      struct air_pool *pool)
{
	const struct plan *plan = (const struct plan *)base;
	struct job job = { .plan = plan, .y = operand[Y], .x = operand[X] };
	uint64_t cost = plan->away.total ? plan->away.total : 1;

	if (plan->pieces > 1)
		run_pieces(&job, pool);
	else if (plan->keep.total)
		air_pool_for(pool, plan->keep.total, (GRAIN + cost - 1) / cost,
			     outputs, &job);
	return AIR_OK;
}

static void destroy(struct air_cpu_plan *base)
{
	free(base);
}

/* Dimensions of @t that are reduced or not, with its dtype. */
static void pick(const struct airunner_tensor *t, uint64_t mask, bool reduced,
		 struct airunner_tensor *out)
{
	memset(out, 0, sizeof(*out));
	out->dtype = t->dtype;
	for (uint32_t i = 0; i < t->ndim; i++) {
		if ((mask >> i & 1) != reduced)
			continue;
		out->shape[out->ndim] = t->shape[i];
		out->stride[out->ndim] = t->stride[i];
		out->ndim++;
	}
}

static void plan_loops(struct plan *plan, const struct airunner_desc *d)
{
	const struct airunner_tensor *x = &d->tensor[AIR_REDUCE_X];
	struct airunner_tensor y = d->tensor[AIR_REDUCE_Y];
	uint64_t mask = d->attr[AIR_REDUCE_AXES];
	struct airunner_tensor keep_y, keep_x, away_x;
	const struct airunner_tensor *keep[2] = { &keep_y, &keep_x };
	const struct airunner_tensor *gone[1] = { &away_x };
	int64_t along, across, row;

	pick(x, mask, false, &keep_x);
	pick(x, mask, true, &away_x);
	pick(&y, d->attr[AIR_REDUCE_KEEPDIM] ? mask : 0, false, &keep_y);
	air_iter_init(&plan->keep, 2, keep, ~0U);
	air_iter_init(&plan->away, 1, gone, ~0U);

	row = plan->keep.shape[plan->keep.ndim - 1];
	along = plan->away.stride[0][plan->away.ndim - 1];
	across = plan->keep.stride[X][plan->keep.ndim - 1];
	plan->columns = row >= 8 && llabs(across) < llabs(along);
	air_vec_init(&plan->in.along, x->dtype, along);
	air_vec_init(&plan->in.across, x->dtype, across);
}

static uint64_t plan_pieces(const struct plan *plan)
{
	uint64_t n = plan->keep.total;
	uint64_t most = plan->away.total / GRAIN;

	if (!n || n > MAX_PARTIAL / 2)
		return 1;
	/* Long enough together, if not each. */
	if (most < MAX_PIECES)
		most = plan->away.total * n / GRAIN;
	if (most > MAX_PIECES)
		most = MAX_PIECES;
	if (most > MAX_PARTIAL / n)
		most = MAX_PARTIAL / n;
	/* Enough elements of y for every thread: no need. */
	return most > n ? most : 1;
}

air_status air_reduce_plan(const struct airunner_desc *d,
			   const struct air_reducer *reducer,
			   struct air_cpu_plan **out, struct air_error *e)
{
	struct plan *plan = calloc(1, sizeof(*plan));

	if (!plan)
		return air_fail(e, AIR_NO_MEMORY, "no memory for a plan");
	plan->base.run = run;
	plan->base.destroy = destroy;
	plan->reducer = reducer;
	plan->dtype = d->tensor[AIR_REDUCE_Y].dtype;
	plan_loops(plan, d);
	plan->pieces = plan_pieces(plan);
	*out = &plan->base;
	return AIR_OK;
}
