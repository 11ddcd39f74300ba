// SPDX-License-Identifier: MIT
#include <stdio.h>

#include <airunner/ops/rope.h>

#include "ops/cuda/cuda_op.h"
#include "ops/cuda/dims.h"
#include "ops/rope/params.h"
#include "ops/rope/rope.h"

AIR_CUDA_FATBIN_DECLARE(rope);

#define THREADS 256
#define MAX_GRID 0x7fffffffu

/* Strides of the positions along the rows' dimensions (y's but the last). */
static void position_strides(const struct airunner_desc *d, int64_t stride[])
{
	const struct airunner_tensor *pos = &d->tensor[AIR_ROPE_POSITIONS];
	uint32_t n = d->tensor[AIR_ROPE_Y].ndim;

	for (uint32_t i = 0; i < n; i++)
		stride[i] = 0;
	if (!pos->dtype)
		/* the token's number is its position */
		stride[n - 3] = 1;
	for (uint32_t i = 0; pos->dtype && i < n - 2; i++)
		stride[i] = pos->stride[i];
}

static air_status plan(const struct airunner_desc *d,
		       const struct air_cuda_device *dev,
		       struct air_cuda_plan *plan, struct air_error *e)
{
	static const uint32_t all[] = { 0, 1, 2, 3, 4, 5, 6 };
	struct air_rope_params *p = (struct air_rope_params *)plan->params;
	const struct airunner_tensor *y = &d->tensor[AIR_ROPE_Y];
	const struct airunner_tensor *x = &d->tensor[AIR_ROPE_X];
	const struct airunner_tensor *cos = &d->tensor[AIR_ROPE_COS];
	const struct airunner_tensor *sin = &d->tensor[AIR_ROPE_SIN];
	const struct airunner_tensor *pos = &d->tensor[AIR_ROPE_POSITIONS];
	int64_t position[AIRUNNER_MAX_DIMS];
	const int64_t *stride[] = { (const int64_t *)y->stride,
				    (const int64_t *)x->stride, position };
	uint32_t last = y->ndim - 1;
	struct air_dims dims;
	uint64_t total, blocks;

	_Static_assert(sizeof(*p) <= AIR_PARAMS_MAX, "parameters fit");
	plan->params_size = sizeof(*p);
	if (air_tensor_count(y) == 0)
		return AIR_OK;
	position_strides(d, position);
	air_dims_merge(&dims, (const int64_t *)y->shape, all, last, stride, 3);
	p->heads = dims.count;
	p->length = (uint64_t)y->shape[last];
	p->half = (uint64_t)cos->shape[1];
	p->units = p->length - p->half;
	p->limit = (uint64_t)cos->shape[0];
	p->pairs = d->attr[AIR_ROPE_STYLE] == AIR_ROPE_PAIRS;
	p->positions = pos->dtype ? air_elem_size(pos->dtype) : 0;
	p->table_f32 = cos->dtype == AIRUNNER_F32;
	total = p->heads * p->units;
	p->wide = total > 0x7fffffffu;
	p->ndim = dims.n;
	for (uint32_t i = 0; i < dims.n; i++) {
		p->size[i] = dims.size[i];
		if (!p->wide)
			p->div[i] = air_div_make((uint32_t)dims.size[i]);
		p->y_stride[i] = dims.stride[0][i];
		p->x_stride[i] = dims.stride[1][i];
		p->p_stride[i] = dims.stride[2][i];
	}
	if (!p->wide)
		p->by_units = air_div_make((uint32_t)p->units);
	p->y_step = y->stride[last];
	p->x_step = x->stride[last];
	p->cos_p = cos->stride[0];
	p->cos_k = cos->stride[1];
	p->sin_p = sin->stride[0];
	p->sin_k = sin->stride[1];

	blocks = (total + THREADS - 1) / THREADS;
	plan->bytes = (uint64_t)air_tensor_count(y) *
		      air_elem_size(y->dtype) * 2;
	plan->variant = y->dtype;
	plan->tiles = blocks < dev->sms ? (uint32_t)blocks : dev->sms;
	snprintf(plan->name[0], sizeof(plan->name[0]), "air_rope_%s",
		 air_elem_name(y->dtype));
	plan->n_steps = 1;
	plan->step[0] = (struct air_cuda_step){
		.kernel = plan->name[0],
		.grid = { blocks < MAX_GRID ? (uint32_t)blocks : MAX_GRID, 1,
			  1 },
		.block = THREADS,
	};
	return AIR_OK;
}

const struct air_cuda_op air_cuda_rope = {
	.name = "rope",
	.fatbin = AIR_CUDA_FATBIN(rope),
	.plan = plan,
};
