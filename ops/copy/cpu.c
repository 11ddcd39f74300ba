// SPDX-License-Identifier: MIT
#include <stdlib.h>

#include "ops/copy/cast.h"
#include "ops/copy/copy.h"
#include "ops/cpu.h"
#include "ops/iter.h"

/* Elements of one side of a tile of a transposition: 16 lines of a cache. */
#define TILE  32
#define GRAIN 131072

enum { Y, X };

struct plan {
	struct air_cpu_plan base;
	air_cast_fn cast;
	struct air_iter it;
	/*
	 * y's memory runs along the last dimension and x's along the one
	 * before it: go by tiles, so that cache lines of both are used whole.
	 */
	bool tiled;
};

struct job {
	const struct plan *plan;
	void *operand[2];
};

static void row(void *arg, char *const *p, uint64_t n)
{
	const struct plan *plan = arg;
	uint32_t last = plan->it.ndim - 1;

	plan->cast(p[Y], plan->it.stride[Y][last], p[X],
		   plan->it.stride[X][last], n);
}

static void part(void *arg, uint64_t begin, uint64_t end)
{
	const struct job *job = arg;

	air_iter_rows(&job->plan->it, job->operand, begin, end, row,
		      (void *)job->plan);
}

static uint64_t div_up(uint64_t a, uint64_t b)
{
	return (a + b - 1) / b;
}

/* One strip of TILE rows, the whole length of the last dimension. */
static void strip(const struct plan *plan, char *y, const char *x, int64_t rows)
{
	const struct air_iter *it = &plan->it;
	uint32_t last = it->ndim - 1;
	int64_t sy = it->stride[Y][last], sx = it->stride[X][last];
	int64_t ry = it->stride[Y][last - 1], rx = it->stride[X][last - 1];
	int64_t n = it->shape[last];

	for (int64_t at = 0; at < n; at += TILE) {
		int64_t m = n - at < TILE ? n - at : TILE;

		for (int64_t r = 0; r < rows; r++)
			plan->cast(y + r * ry + at * sy, sy,
				   x + r * rx + at * sx, sx, m);
	}
}

static void strips(void *arg, uint64_t begin, uint64_t end)
{
	const struct job *job = arg;
	const struct air_iter *it = &job->plan->it;
	uint32_t outer = it->ndim - 2;
	int64_t rows = it->shape[outer];
	uint64_t per = div_up(rows, TILE);
	struct air_cursor c;

	for (uint64_t i = begin; i < end; i++) {
		int64_t at = (int64_t)(i % per) * TILE;

		air_cursor_set(&c, it, outer, i / per);
		strip(job->plan,
		      (char *)job->operand[Y] + c.offset[Y] +
			      at * it->stride[Y][outer],
		      (const char *)job->operand[X] + c.offset[X] +
			      at * it->stride[X][outer],
		      rows - at < TILE ? rows - at : TILE);
	}
}

static air_status run(const struct air_cpu_plan *base,
		      void *const operand[AIRUNNER_MAX_TENSORS + 1],
		      struct air_pool *pool)
{
	const struct plan *plan = (const struct plan *)base;
	const struct air_iter *it = &plan->it;
	struct job job = { plan, { operand[Y], operand[X] } };

	if (!it->total || operand[Y] == operand[X])
		return AIR_OK;
	if (plan->tiled) {
		uint64_t area = it->shape[it->ndim - 1] * TILE;
		uint64_t n = it->total / it->shape[it->ndim - 1] /
			     it->shape[it->ndim - 2] *
			     div_up(it->shape[it->ndim - 2], TILE);

		air_pool_for(pool, n, div_up(GRAIN, area), strips, &job);
	} else if (it->total < 2 * GRAIN) {
		part(&job, 0, it->total);
	} else {
		air_pool_for(pool, it->total, GRAIN, part, &job);
	}
	return AIR_OK;
}

static void destroy(struct air_cpu_plan *base)
{
	free(base);
}

/* Bring the dimension along which x's memory runs next to the last. */
static void plan_tiles(struct plan *plan, uint32_t size)
{
	struct air_iter *it = &plan->it;
	uint32_t last = it->ndim - 1;
	uint32_t dim = last;

	for (uint32_t i = 0; i < last; i++)
		if (llabs(it->stride[X][i]) == size)
			dim = i;
	if (dim == last || llabs(it->stride[X][last]) == size ||
	    !it->stride[X][last])
		return;
	for (; dim + 1 < last; dim++) {
		int64_t n = it->shape[dim];

		it->shape[dim] = it->shape[dim + 1];
		it->shape[dim + 1] = n;
		for (uint32_t k = 0; k < 2; k++) {
			n = it->stride[k][dim];
			it->stride[k][dim] = it->stride[k][dim + 1];
			it->stride[k][dim + 1] = n;
		}
	}
	plan->tiled = true;
}

air_status air_copy_cpu_plan(const struct airunner_desc *d,
			     struct air_cpu_plan **out, struct air_error *e)
{
	const struct airunner_tensor *t[2] = { &d->tensor[Y], &d->tensor[X] };
	struct plan *plan = calloc(1, sizeof(*plan));

	if (!plan)
		return air_fail(e, AIR_NO_MEMORY, "no memory for a plan");
	air_iter_init(&plan->it, 2, t, ~0U);
	plan_tiles(plan, air_elem_size(t[X]->dtype));
	plan->cast = air_cast(t[Y]->dtype, t[X]->dtype);
	plan->base.run = run;
	plan->base.destroy = destroy;
	*out = &plan->base;
	return AIR_OK;
}
