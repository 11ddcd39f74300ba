// SPDX-License-Identifier: MIT
#include <airunner/ops/rope.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "ops/block.h"
#include "ops/copy/cast.h"
#include "ops/cpu.h"
#include "ops/iter.h"
#include "ops/math.h"
#include "ops/rope/rope.h"

/* Elements worth waking another thread for. */
#define GRAIN 32768

/* Pairs rotated at a time. */
#define PAIRS (AIR_BLOCK / 2)

/* The loop over tokens goes over y, x and positions. */
enum { Y, X, POSITIONS };

struct plan {
	struct air_cpu_plan base;
	struct air_iter tokens;
	/* Of positions; 0: a token's position is the loop's offset itself. */
	uint32_t index_dtype;
	int64_t heads;
	int64_t head_stride[2];
	int64_t size;	 /* elements of a head */
	int64_t step[2]; /* bytes from one to the next, y and x */
	int64_t pairs;
	struct air_vec pair[2]; /* elements i of the pairs (i, j), y and x */
	int64_t other[2];	/* bytes from i to j */
	int64_t table_rows;
	int64_t table_stride[2]; /* cos, sin */
	struct air_vec table[2];
	air_cast_fn move;
};

struct job {
	const struct plan *plan;
	void *const *operand;
	atomic_bool out_of_range;
};

AIR_INLINE void rotate(float *yi, float *yj, const float *xi, const float *xj,
		       const float *c, const float *s, uint64_t n)
{
	AIR_IVDEP
	for (uint64_t k = 0; k < n; k++) {
		float a = xi[k], b = xj[k];

		yi[k] = a * c[k] - b * s[k];
		yj[k] = b * c[k] + a * s[k];
	}
}
AIR_VERSIONS(rotate,
	     (float *yi, float *yj, const float *xi, const float *xj,
	      const float *c, const float *s, uint64_t n),
	     (yi, yj, xi, xj, c, s, n))

static int64_t position(const struct job *job, int64_t offset)
{
	const char *p = (const char *)job->operand[AIR_ROPE_POSITIONS] + offset;

	switch (job->plan->index_dtype) {
	case AIRUNNER_I32:
		return *(const int32_t *)p;
	case AIRUNNER_I64:
		return *(const int64_t *)p;
	default:
		return offset;
	}
}

/* Pairs [at, at + n) of all heads of a token; @c NULL makes them NaN. */
static void rotate_heads(const struct plan *plan, char *y, const char *x,
			 uint64_t at, uint64_t n, const float *c,
			 const float *s)
{
	const struct air_vec *vy = &plan->pair[Y], *vx = &plan->pair[X];
	float xi[PAIRS], xj[PAIRS], yi[PAIRS], yj[PAIRS];

	for (int64_t h = 0; h < plan->heads; h++) {
		float *ti = air_vec_target(vy, y, at, yi);
		float *tj = air_vec_target(vy, y + plan->other[Y], at, yj);

		if (c)
			AIR_BEST(rotate)
		(ti, tj, air_vec_load(vx, x, at, n, xi),
		 air_vec_load(vx, x + plan->other[X], at, n, xj), c, s, n);
		for (uint64_t k = 0; !c && k < n; k++)
			ti[k] = tj[k] = NAN;
		air_vec_store(vy, y, at, n, ti);
		air_vec_store(vy, y + plan->other[Y], at, n, tj);
		y += plan->head_stride[Y];
		x += plan->head_stride[X];
	}
}

static void token(struct job *job, char *y, const char *x, int64_t pos)
{
	const struct plan *plan = job->plan;
	const char *cos = job->operand[AIR_ROPE_COS];
	const char *sin = job->operand[AIR_ROPE_SIN];
	int64_t rest = plan->size - 2 * plan->pairs;
	bool valid = pos >= 0 && pos < plan->table_rows;
	float tc[PAIRS], ts[PAIRS];

	for (int64_t at = 0; at < plan->pairs; at += PAIRS) {
		int64_t n = plan->pairs - at < PAIRS ? plan->pairs - at : PAIRS;
		const float *c = NULL, *s = NULL;

		if (valid) {
			c = air_vec_load(&plan->table[0],
					 cos + pos * plan->table_stride[0], at,
					 n, tc);
			s = air_vec_load(&plan->table[1],
					 sin + pos * plan->table_stride[1], at,
					 n, ts);
		}
		rotate_heads(plan, y, x, at, n, c, s);
	}
	if (!valid && plan->pairs)
		atomic_store_explicit(&job->out_of_range, true,
				      memory_order_relaxed);
	if (!rest || y == x)
		return;
	y += 2 * plan->pairs * plan->step[Y];
	x += 2 * plan->pairs * plan->step[X];
	for (int64_t h = 0; h < plan->heads; h++) {
		plan->move(y, plan->step[Y], x, plan->step[X], rest);
		y += plan->head_stride[Y];
		x += plan->head_stride[X];
	}
}

static void part(void *arg, uint64_t begin, uint64_t end)
{
	struct job *job = arg;
	const struct air_iter *it = &job->plan->tokens;
	struct air_cursor c;

	air_cursor_set(&c, it, it->ndim, begin);
	for (; begin < end; begin++) {
		token(job, (char *)job->operand[AIR_ROPE_Y] + c.offset[Y],
		      (const char *)job->operand[AIR_ROPE_X] + c.offset[X],
		      position(job, c.offset[POSITIONS]));
		air_cursor_next(&c, it, it->ndim);
	}
}

static air_status run(const struct air_cpu_plan *base,
		      void *const operand[AIRUNNER_MAX_TENSORS + 1],
		      struct air_pool *pool)
{
	const struct plan *plan = (const struct plan *)base;
	struct job job = { .plan = plan, .operand = operand };
	uint64_t cost = plan->heads * plan->size;

	if (!cost || !plan->tokens.total)
		return AIR_OK;
	air_pool_for(pool, plan->tokens.total, (GRAIN + cost - 1) / cost, part,
		     &job);
	return job.out_of_range ? AIR_BAD_RANGE : AIR_OK;
}

static void destroy(struct air_cpu_plan *base)
{
	free(base);
}

/* The first dimensions of @t, those that number tokens. */
static struct airunner_tensor outer_dims(const struct airunner_tensor *t,
					 uint32_t ndim)
{
	struct airunner_tensor out = *t;

	out.ndim = ndim;
	return out;
}

static void plan_tokens(struct plan *plan, const struct airunner_desc *d)
{
	const struct airunner_tensor *y = &d->tensor[AIR_ROPE_Y];
	uint32_t n = y->ndim - 2;
	struct airunner_tensor ty = outer_dims(y, n);
	struct airunner_tensor tx = outer_dims(&d->tensor[AIR_ROPE_X], n);
	struct airunner_tensor pos;
	const struct airunner_tensor *t[3] = { &ty, &tx, &pos };

	if (air_has_operand(d, AIR_ROPE_POSITIONS)) {
		pos = d->tensor[AIR_ROPE_POSITIONS];
		plan->index_dtype = pos.dtype;
	} else {
		/* One byte a step along T: then offsets are positions. */
		pos = ty;
		pos.dtype = AIRUNNER_I8;
		memset(pos.stride, 0, sizeof(pos.stride));
		pos.stride[n - 1] = 1;
	}
	air_iter_init(&plan->tokens, 3, t, ~0U);
}

air_status air_rope_cpu_plan(const struct airunner_desc *d,
			     struct air_cpu_plan **out, struct air_error *e)
{
	const struct airunner_tensor *t = d->tensor;
	uint32_t n = t[AIR_ROPE_Y].ndim;
	bool halves = d->attr[AIR_ROPE_STYLE] == AIR_ROPE_HALVES;
	struct plan *plan = calloc(1, sizeof(*plan));

	if (!plan)
		return air_fail(e, AIR_NO_MEMORY, "no memory for a plan");
	plan->base.run = run;
	plan->base.destroy = destroy;
	plan->heads = t[AIR_ROPE_Y].shape[n - 2];
	plan->size = t[AIR_ROPE_Y].shape[n - 1];
	plan->table_rows = t[AIR_ROPE_COS].shape[0];
	plan->pairs = t[AIR_ROPE_COS].shape[1];
	plan->move = air_cast(t[AIR_ROPE_Y].dtype, t[AIR_ROPE_Y].dtype);
	plan_tokens(plan, d);
	for (uint32_t i = 0; i < 2; i++) {
		const struct airunner_tensor *v = &t[AIR_ROPE_Y + i];
		const struct airunner_tensor *table = &t[AIR_ROPE_COS + i];
		int64_t size = air_elem_size(v->dtype);

		plan->head_stride[i] = v->stride[n - 2] * size;
		plan->step[i] = v->stride[n - 1] * size;
		plan->other[i] = plan->step[i] * (halves ? plan->pairs : 1);
		air_vec_init(&plan->pair[i], v->dtype,
			     plan->step[i] * (halves ? 1 : 2));
		size = air_elem_size(table->dtype);
		plan->table_stride[i] = table->stride[0] * size;
		air_vec_init(&plan->table[i], table->dtype,
			     table->stride[1] * size);
	}
	*out = &plan->base;
	return AIR_OK;
}
