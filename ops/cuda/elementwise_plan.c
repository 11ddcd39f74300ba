// SPDX-License-Identifier: MIT
#include "ops/cuda/elementwise_plan.h"

#include <stdio.h>
#include <string.h>

#include "ops/cuda/dims.h"
#include "ops/cuda/elementwise.h"

#define THREADS 256
#define MAX_GRID 0x7fffffffu

/* Divisions of numbers below 2^31 only (struct air_div). */
#define MAX_UNITS_32 0x7fffffffu

/* Of all operands' @bytes. */
static enum air_ew_fit fit_of(uint64_t bytes, const struct air_cuda_device *dev)
{
	if (bytes <= dev->l2_bytes / 3)
		return AIR_EW_FITS;
	return bytes <= dev->l2_bytes / 3 * 4 ? AIR_EW_NEARLY : AIR_EW_PASSES;
}

static bool is_flat(const struct air_dims *dims, uint32_t operands)
{
	if (dims->n != 1)
		return false;
	for (uint32_t i = 0; i < operands; i++)
		if (dims->stride[i][0] != 1)
			return false;
	return true;
}

/*
 * Whether @width neighbours in the innermost dimension can be one unit: they
 * are neighbours in memory, or all the same element, in every operand, and
 * units begin at multiples of the width from the operand's first element.
 */
static bool has_units(const struct air_dims *dims, uint32_t operands,
		      uint32_t width)
{
	if (dims->size[0] % width)
		return false;
	for (uint32_t i = 0; i < operands; i++) {
		if (dims->stride[i][0] != 1 &&
		    (i == 0 || dims->stride[i][0] != 0))
			return false;
		for (uint32_t k = 1; k < dims->n; k++)
			if (dims->stride[i][0] == 1 &&
			    dims->stride[i][k] % (int64_t)width)
				return false;
	}
	return true;
}

static void strided(struct air_ew_params *p, struct air_dims *dims,
		    uint32_t operands, uint32_t width)
{
	p->unit = has_units(dims, operands, width) ? width : 1;
	p->ndim = dims->n;
	for (uint32_t i = 0; i < operands; i++) {
		if (dims->stride[i][0] == 0 && p->unit > 1)
			p->repeat |= 1u << i;
		for (uint32_t k = 0; k < dims->n; k++)
			p->stride[i][k] = dims->stride[i][k];
		p->stride[i][0] *= p->unit;
	}
	for (uint32_t k = 0; k < dims->n; k++)
		p->size[k] = dims->size[k] / (k == 0 ? p->unit : 1);
	p->n = dims->count / p->unit;
	p->mode = p->n <= MAX_UNITS_32 ? AIR_EW_STRIDED : AIR_EW_STRIDED_64;
	if (p->mode == AIR_EW_STRIDED)
		for (uint32_t k = 0; k < dims->n; k++)
			p->div[k] = air_div_make((uint32_t)p->size[k]);
}

air_status air_ew_plan(const struct airunner_desc *d,
		       const struct air_cuda_device *dev, const char *kernel,
		       uint32_t inputs, uint32_t variant, const float *scalar,
		       struct air_cuda_plan *plan)
{
	struct air_ew_params *p = (struct air_ew_params *)plan->params;
	const struct airunner_tensor *t[AIR_EW_OPERANDS];
	uint32_t operands = inputs + 1, widest = 0, width;
	uint32_t threads = THREADS, unroll = 1;
	struct air_dims dims;
	uint64_t blocks;

	_Static_assert(sizeof(*p) <= AIR_PARAMS_MAX, "parameters fit");
	for (uint32_t i = 0; i < operands; i++) {
		uint32_t size = air_elem_size(d->tensor[i].dtype);

		t[i] = &d->tensor[i];
		plan->bytes += (uint64_t)air_tensor_count(t[i]) * size;
		/* operands are as wide as the output and the first input */
		if (i < 2 && size > widest)
			widest = size;
	}
	width = 16 / widest;
	/* AIR_EW_DEAR_KERNEL */
	if (d->op == AIR_OP_gelu) {
		threads = AIR_EW_DEAR_THREADS;
		unroll = 2;
	}
	air_dims_sorted(&dims, t, operands);
	plan->params_size = sizeof(*p);
	plan->variant = variant;
	if (scalar)
		memcpy(p->scalar, scalar, sizeof(p->scalar));
	if (dims.count == 0)
		return AIR_OK;

	if (is_flat(&dims, operands)) {
		p->mode = AIR_EW_FLAT;
		p->n = dims.count;
		p->unit = width;
		p->fit = fit_of(plan->bytes, dev);
		/* more blocks than run at a time, all from the cache */
		p->pairs = unroll == 1 && p->fit == AIR_EW_FITS &&
			   dims.count / width > (uint64_t)dev->sms * 2048;
		if (p->pairs)
			unroll = 2;
		blocks = (dims.count / width + threads * unroll - 1) /
			 (threads * unroll);
	} else {
		strided(p, &dims, operands, width);
		blocks = (p->n + threads * 2 - 1) / (threads * 2);
	}
	/* small work is spread wide: latency, not bandwidth, is its cost */
	if (blocks < dev->sms) {
		uint64_t wide = (p->mode == AIR_EW_FLAT ?
					 dims.count / width : p->n) / threads;

		blocks = wide < dev->sms ? wide : dev->sms;
	}
	if (blocks == 0)
		blocks = 1;
	plan->tiles = blocks < dev->sms ? (uint32_t)blocks : dev->sms;
	plan->n_steps = 1;
	plan->step[0] = (struct air_cuda_step){
		.kernel = kernel,
		.grid = { blocks < MAX_GRID ? (uint32_t)blocks : MAX_GRID, 1,
			  1 },
		.block = threads,
	};
	return AIR_OK;
}

air_status air_ew_plan_same(const struct airunner_desc *d,
			    const struct air_cuda_device *dev,
			    const char *name, uint32_t inputs,
			    const float *scalar, struct air_cuda_plan *plan)
{
	snprintf(plan->name[0], sizeof(plan->name[0]), "air_%s_%s", name,
		 air_elem_name(d->tensor[0].dtype));
	return air_ew_plan(d, dev, plan->name[0], inputs, d->tensor[0].dtype,
			   scalar, plan);
}
