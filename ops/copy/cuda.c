// SPDX-License-Identifier: MIT
#include <stdio.h>

#include "ops/copy/transpose.h"
#include "ops/copy/variant.h"
#include "ops/cuda/dims.h"
#include "ops/cuda/elementwise_plan.h"

AIR_CUDA_FATBIN_DECLARE(copy);

#define MAX_GRID 0x7fffffffu
/* Fewer elements side by side gain nothing from tiles. */
#define MIN_SIDE 8

/*
 * A copy that is dense along one dimension in y and another in x. False: it is
 * not of that kind, or too small in one of the two to gain from tiles.
 */
static bool plan_transpose(const struct airunner_desc *d, uint32_t size,
			   struct air_cuda_plan *p)
{
	struct air_transpose_params *t =
		(struct air_transpose_params *)p->params;
	const struct airunner_tensor *tensor[] = { &d->tensor[0],
						   &d->tensor[1] };
	uint32_t h = 0, side = AIR_TRANSPOSE_TILE(size), width = 16 / size;
	struct air_dims dims;

	air_dims_sorted(&dims, tensor, 2);
	if (dims.count == 0 || dims.stride[0][0] != 1 ||
	    dims.stride[1][0] == 1 || dims.stride[1][0] == 0)
		return false;
	while (h < dims.n && dims.stride[1][h] != 1)
		h++;
	if (h == dims.n || dims.size[0] < MIN_SIDE || dims.size[h] < MIN_SIDE)
		return false;
	t->width = dims.size[0];
	t->height = dims.size[h];
	t->y_height = dims.stride[0][h];
	t->x_width = dims.stride[1][0];
	t->tiles_w = (t->width + side - 1) / side;
	t->tiles_h = (t->height + side - 1) / side;
	t->tiles = t->tiles_w * t->tiles_h;
	t->vector = t->width % width == 0 && t->height % width == 0 &&
		    t->y_height % (int64_t)width == 0 &&
		    t->x_width % (int64_t)width == 0;
	for (uint32_t i = 1; i < dims.n; i++) {
		if (i == h)
			continue;
		t->size[t->ndim] = dims.size[i];
		t->y_stride[t->ndim] = dims.stride[0][i];
		t->x_stride[t->ndim] = dims.stride[1][i];
		t->tiles *= dims.size[i];
		if (dims.stride[0][i] % (int64_t)width ||
		    dims.stride[1][i] % (int64_t)width)
			t->vector = 0;
		t->ndim++;
	}
	snprintf(p->name[0], sizeof(p->name[0]), "air_transpose_%u", size);
	p->params_size = sizeof(*t);
	p->bytes = dims.count * size * 2;
	p->n_steps = 1;
	p->step[0] = (struct air_cuda_step){
		.kernel = p->name[0],
		.grid = { t->tiles < MAX_GRID ? (uint32_t)t->tiles : MAX_GRID,
			  1, 1 },
		.block = AIR_TRANSPOSE_THREADS,
	};
	return true;
}

static air_status plan(const struct airunner_desc *d,
		       const struct air_cuda_device *dev,
		       struct air_cuda_plan *p, struct air_error *e)
{
	uint32_t to = d->tensor[0].dtype, from = d->tensor[1].dtype;
	uint32_t size = air_elem_size(to);

	if (to == from && plan_transpose(d, size, p))
		return AIR_OK;
	if (to == from) {
		snprintf(p->name[0], sizeof(p->name[0]), "air_copy_%u", size);
		return air_ew_plan(d, dev, p->name[0], 1, AIR_COPY_BITS(size),
				   NULL, p);
	}
	snprintf(p->name[0], sizeof(p->name[0]), "air_cast_%s_%s",
		 air_elem_name(to), air_elem_name(from));
	return air_ew_plan(d, dev, p->name[0], 1,
			   to <= AIRUNNER_BF16 && from <= AIRUNNER_BF16 &&
					   (to == AIRUNNER_F32 ||
					    from == AIRUNNER_F32) ?
				   AIR_COPY_CAST(to, from) : 0,
			   NULL, p);
}

const struct air_cuda_op air_cuda_copy = {
	.name = "copy",
	.fatbin = AIR_CUDA_FATBIN(copy),
	.plan = plan,
};
