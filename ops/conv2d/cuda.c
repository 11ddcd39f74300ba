// SPDX-License-Identifier: MIT
#include <stdio.h>

#include "ops/conv2d/conv2d.h"
#include "ops/conv2d/params.h"
#include "ops/cuda/cuda_op.h"

AIR_CUDA_FATBIN_DECLARE(conv2d);

#define TILE 64
#define MAX_GRID 0x7fffffffu
/* Rows and depths are divided as 32-bit numbers. */
#define MAX_INDEX 0x7fffffffu

static void set_strides(struct air_conv2d_params *p,
			const struct airunner_desc *d)
{
	const struct airunner_tensor *y = &d->tensor[AIR_CONV2D_Y];
	const struct airunner_tensor *x = &d->tensor[AIR_CONV2D_X];
	const struct airunner_tensor *w = &d->tensor[AIR_CONV2D_WEIGHT];

	p->y_n = y->stride[0];
	p->y_o = y->stride[1];
	p->y_h = y->stride[2];
	p->y_w = y->stride[3];
	p->x_n = x->stride[0];
	p->x_c = x->stride[1];
	p->x_h = x->stride[2];
	p->x_w = x->stride[3];
	p->w_o = w->stride[0];
	p->w_c = w->stride[1];
	p->w_h = w->stride[2];
	p->w_w = w->stride[3];
	p->bias_o = d->tensor[AIR_CONV2D_BIAS].stride[0];
}

static air_status plan(const struct airunner_desc *d,
		       const struct air_cuda_device *dev,
		       struct air_cuda_plan *plan, struct air_error *e)
{
	struct air_conv2d_params *p = (struct air_conv2d_params *)plan->params;
	const struct airunner_tensor *y = &d->tensor[AIR_CONV2D_Y];
	const struct airunner_tensor *x = &d->tensor[AIR_CONV2D_X];
	const struct airunner_tensor *w = &d->tensor[AIR_CONV2D_WEIGHT];
	uint64_t kernel = (uint64_t)w->shape[2] * (uint64_t)w->shape[3];
	uint64_t blocks;

	_Static_assert(sizeof(*p) <= AIR_PARAMS_MAX, "parameters fit");
	plan->params_size = sizeof(*p);
	if (air_tensor_count(y) == 0)
		return AIR_OK;
	p->images = (uint64_t)y->shape[0];
	p->groups = d->attr[AIR_CONV2D_GROUPS];
	p->pixels = (uint64_t)y->shape[2] * (uint64_t)y->shape[3];
	p->outputs = (uint64_t)y->shape[1] / p->groups;
	p->channels = (uint32_t)w->shape[1];
	p->depth = p->channels * kernel;
	p->height = x->shape[2];
	p->width = x->shape[3];
	set_strides(p, d);
	p->stride_h = (int32_t)d->attr[AIR_CONV2D_STRIDE];
	p->stride_w = (int32_t)d->attr[AIR_CONV2D_STRIDE + 1];
	p->pad_h = (int32_t)d->attr[AIR_CONV2D_PADDING];
	p->pad_w = (int32_t)d->attr[AIR_CONV2D_PADDING + 1];
	p->dilation_h = (int32_t)d->attr[AIR_CONV2D_DILATION];
	p->dilation_w = (int32_t)d->attr[AIR_CONV2D_DILATION + 1];
	p->activation = (uint32_t)d->attr[AIR_CONV2D_ACTIVATION];
	if (p->pixels > MAX_INDEX || p->depth > MAX_INDEX)
		return air_fail(e, AIR_UNSUPPORTED,
				"cuda: conv2d of images with 2^31 pixels or kernels with 2^31 elements");
	p->by_ow = air_div_make((uint32_t)y->shape[3]);
	if (kernel) {
		p->by_kw = air_div_make((uint32_t)w->shape[3]);
		p->by_kernel = air_div_make((uint32_t)kernel);
	}

	blocks = (p->pixels + TILE - 1) / TILE *
		 ((p->outputs + TILE - 1) / TILE) * p->images * p->groups;
	plan->bytes = (uint64_t)(air_tensor_count(y) + air_tensor_count(x) +
				 air_tensor_count(w)) *
		      air_elem_size(y->dtype);
	plan->variant = y->dtype;
	plan->tiles = blocks < dev->sms ? (uint32_t)blocks : dev->sms;
	snprintf(plan->name[0], sizeof(plan->name[0]), "air_conv2d_%s",
		 air_elem_name(y->dtype));
	plan->n_steps = 1;
	plan->step[0] = (struct air_cuda_step){
		.kernel = plan->name[0],
		.grid = { blocks < MAX_GRID ? (uint32_t)blocks : MAX_GRID, 1,
			  1 },
		.block = 256,
	};
	return AIR_OK;
}

const struct air_cuda_op air_cuda_conv2d = {
	.name = "conv2d",
	.fatbin = AIR_CUDA_FATBIN(conv2d),
	.plan = plan,
};
