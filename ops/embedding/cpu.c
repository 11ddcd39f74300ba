// SPDX-License-Identifier: MIT
#include <stdatomic.h>
#include <stdlib.h>

#include "ops/copy/cast.h"
#include "ops/cpu.h"
#include "ops/embedding/embedding.h"
#include "ops/iter.h"

/* Bytes worth waking another thread for. */
#define GRAIN 262144

enum { Y, FROM }; /* y and indices; y and table */

struct plan {
	struct air_cpu_plan base;
	struct air_iter lookups;
	struct air_iter row;
	uint32_t index_dtype;
	uint32_t dtype;
	int64_t table_rows;
	int64_t table_stride;
	air_cast_fn move;
};

struct job {
	const struct plan *plan;
	void *const *operand;
	atomic_bool out_of_range;
};

/* What a row consists of whose index is not in the table. */
static const void *filler(uint32_t dtype)
{
	static const uint32_t f32 = 0x7fc00000;
	static const uint16_t f16 = 0x7e00, bf16 = 0x7fc0;
	static const uint64_t zero;

	switch (dtype) {
	case AIRUNNER_F32:
		return &f32;
	case AIRUNNER_F16:
		return &f16;
	case AIRUNNER_BF16:
		return &bf16;
	default:
		return &zero;
	}
}

static void move_row(void *arg, char *const *p, uint64_t n)
{
	const struct plan *plan = arg;
	uint32_t last = plan->row.ndim - 1;

	plan->move(p[Y], plan->row.stride[Y][last], p[FROM],
		   plan->row.stride[FROM][last], n);
}

static void fill_row(void *arg, char *const *p, uint64_t n)
{
	const struct plan *plan = arg;

	plan->move(p[Y], plan->row.stride[Y][plan->row.ndim - 1],
		   filler(plan->dtype), 0, n);
}

static void lookup(struct job *job, char *y, const char *index)
{
	const struct plan *plan = job->plan;
	int64_t i = plan->index_dtype == AIRUNNER_I32 ? *(const int32_t *)index
						      : *(const int64_t *)index;
	bool valid = i >= 0 && i < plan->table_rows;
	char *table = job->operand[AIR_EMBEDDING_TABLE];
	void *operand[2] = { y, valid ? table + i * plan->table_stride : y };

	if (!valid)
		atomic_store_explicit(&job->out_of_range, true,
				      memory_order_relaxed);
	air_iter_rows(&plan->row, operand, 0, plan->row.total,
		      valid ? move_row : fill_row, (void *)plan);
}

static void part(void *arg, uint64_t begin, uint64_t end)
{
	struct job *job = arg;
	const struct air_iter *it = &job->plan->lookups;
	struct air_cursor c;

	air_cursor_set(&c, it, it->ndim, begin);
	for (; begin < end; begin++) {
		lookup(job, (char *)job->operand[AIR_EMBEDDING_Y] + c.offset[Y],
		       (const char *)job->operand[AIR_EMBEDDING_INDICES] +
			       c.offset[FROM]);
		air_cursor_next(&c, it, it->ndim);
	}
}

static air_status run(const struct air_cpu_plan *base,
		      void *const operand[AIRUNNER_MAX_TENSORS + 1],
		      struct air_pool *pool)
{
	const struct plan *plan = (const struct plan *)base;
	struct job job = { .plan = plan, .operand = operand };
	uint64_t cost = plan->row.total;

	if (!cost || !plan->lookups.total)
		return AIR_OK;
	air_pool_for(pool, plan->lookups.total, (GRAIN + cost - 1) / cost, part,
		     &job);
	return job.out_of_range ? AIR_BAD_RANGE : AIR_OK;
}

static void destroy(struct air_cpu_plan *base)
{
	free(base);
}

/* Dimensions [from, to) of @t. */
static struct airunner_tensor some_dims(const struct airunner_tensor *t,
					uint32_t from, uint32_t to)
{
	struct airunner_tensor out = { .dtype = t->dtype, .ndim = to - from };

	memcpy(out.shape, t->shape + from, out.ndim * sizeof(out.shape[0]));
	memcpy(out.stride, t->stride + from, out.ndim * sizeof(out.stride[0]));
	return out;
}

air_status air_embedding_cpu_plan(const struct airunner_desc *d,
				  struct air_cpu_plan **out,
				  struct air_error *e)
{
	const struct airunner_tensor *y = &d->tensor[AIR_EMBEDDING_Y];
	const struct airunner_tensor *table = &d->tensor[AIR_EMBEDDING_TABLE];
	const struct airunner_tensor *index = &d->tensor[AIR_EMBEDDING_INDICES];
	struct airunner_tensor outer = some_dims(y, 0, index->ndim);
	struct airunner_tensor inner = some_dims(y, index->ndim, y->ndim);
	struct airunner_tensor row = some_dims(table, 1, table->ndim);
	const struct airunner_tensor *lookups[2] = { &outer, index };
	const struct airunner_tensor *rows[2] = { &inner, &row };
	struct plan *plan = calloc(1, sizeof(*plan));

	if (!plan)
		return air_fail(e, AIR_NO_MEMORY, "no memory for a plan");
	plan->base.run = run;
	plan->base.destroy = destroy;
	plan->dtype = y->dtype;
	plan->index_dtype = index->dtype;
	plan->table_rows = table->shape[0];
	plan->table_stride = table->stride[0] * air_elem_size(table->dtype);
	plan->move = air_cast(y->dtype, y->dtype);
	air_iter_init(&plan->lookups, 2, lookups, ~0U);
	air_iter_init(&plan->row, 2, rows, ~0U);
	*out = &plan->base;
	return AIR_OK;
}
