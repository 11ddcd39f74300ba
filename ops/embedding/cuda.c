// SPDX-License-Identifier: MIT
#include <stdio.h>

#include "ops/cuda/cuda_op.h"
#include "ops/cuda/dims.h"
#include "ops/embedding/embedding.h"
#include "ops/embedding/params.h"

AIR_CUDA_FATBIN_DECLARE(embedding);

#define THREADS 256
#define MAX_GRID 0x7fffffffu

/* NaN for floating point types, 0 for integers. */
static uint64_t fill_bits(uint32_t dtype)
{
	switch (dtype) {
	case AIRUNNER_F32:
		return 0x7fc00000;
	case AIRUNNER_F16:
		return 0x7e00;
	case AIRUNNER_BF16:
		return 0x7fc0;
	default:
		return 0;
	}
}

static bool multiples(const int64_t *stride, uint32_t n, int64_t width)
{
	for (uint32_t i = 0; i < n; i++)
		if (stride[i] % width)
			return false;
	return true;
}

static air_status plan(const struct airunner_desc *d,
		       const struct air_cuda_device *dev,
		       struct air_cuda_plan *plan, struct air_error *e)
{
	struct air_embedding_params *p =
		(struct air_embedding_params *)plan->params;
	const struct airunner_tensor *y = &d->tensor[AIR_EMBEDDING_Y];
	const struct airunner_tensor *table = &d->tensor[AIR_EMBEDDING_TABLE];
	const struct airunner_tensor *index = &d->tensor[AIR_EMBEDDING_INDICES];
	static const uint32_t all[] = { 0, 1, 2, 3, 4, 5, 6, 7 };
	const int64_t *ys = (const int64_t *)y->stride;
	const int64_t *shape = (const int64_t *)y->shape;
	const int64_t *item[] = { ys, (const int64_t *)index->stride };
	const int64_t *row[] = { ys + index->ndim,
				 (const int64_t *)table->stride + 1 };
	uint32_t size = air_elem_size(y->dtype), width = 16 / size;
	struct air_dims items, rows;
	uint64_t total, blocks;

	_Static_assert(sizeof(*p) <= AIR_PARAMS_MAX, "parameters fit");
	plan->params_size = sizeof(*p);
	if (air_tensor_count(y) == 0)
		return AIR_OK;
	air_dims_merge(&items, shape, all, index->ndim, item, 2);
	air_dims_merge(&rows, shape + index->ndim, all, table->ndim - 1, row,
		       2);
	p->items = items.count;
	p->item_n = items.n;
	p->row_n = rows.n;
	for (uint32_t i = 0; i < items.n; i++) {
		p->item_size[i] = items.size[i];
		p->item_y[i] = items.stride[0][i];
		p->item_index[i] = items.stride[1][i];
	}
	for (uint32_t i = 0; i < rows.n; i++) {
		p->row_size[i] = rows.size[i];
		p->row_y[i] = rows.stride[0][i];
		p->row_table[i] = rows.stride[1][i];
	}
	p->rows = (uint64_t)table->shape[0];
	p->table_row = table->stride[0];
	p->fill = fill_bits(y->dtype);
	p->index_bytes = air_elem_size(index->dtype);
	p->unit = 1;
	if (rows.n == 1 && rows.stride[0][0] == 1 && rows.stride[1][0] == 1 &&
	    rows.count % width == 0 && p->table_row % (int64_t)width == 0 &&
	    multiples(p->item_y, items.n, width))
		p->unit = width;
	p->units = rows.count / p->unit;
	total = p->items * p->units;
	p->wide = total > 0x7fffffffu;
	if (!p->wide)
		p->by_units = air_div_make((uint32_t)p->units);

	blocks = (total + THREADS - 1) / THREADS;
	plan->bytes = (uint64_t)air_tensor_count(y) * size * 2;
	/* the resident kernel has the floating point types only */
	plan->variant = y->dtype <= AIRUNNER_BF16 ? size : 0;
	plan->tiles = blocks < dev->sms ? (uint32_t)blocks : dev->sms;
	snprintf(plan->name[0], sizeof(plan->name[0]), "air_embedding_%u",
		 size);
	plan->n_steps = 1;
	plan->step[0] = (struct air_cuda_step){
		.kernel = plan->name[0],
		.grid = { blocks < MAX_GRID ? (uint32_t)blocks : MAX_GRID, 1,
			  1 },
		.block = THREADS,
	};
	return AIR_OK;
}

const struct air_cuda_op air_cuda_embedding = {
	.name = "embedding",
	.fatbin = AIR_CUDA_FATBIN(embedding),
	.plan = plan,
};
