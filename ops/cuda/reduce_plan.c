// SPDX-License-Identifier: MIT
#include "ops/cuda/reduce_plan.h"

#include <stdio.h>

#include "ops/cuda/dims.h"
#include "ops/cuda/reduce.h"
#include "ops/reduce.h"

#define MAX_GRID 0x7fffffffu
/* Elements that a part of a split result has at least: 64 KiB of f32. */
#define MIN_CHUNK 16384u
#define ACC_BYTES 8u
#define ROW_BLOCK 256u	/* threads; larger blocks wait for each other */

static void walk_init(struct air_reduce_walk *w, const struct air_dims *dims,
		      uint32_t x)
{
	w->n = dims->n;
	w->wide = dims->count > 0x7fffffffu;
	for (uint32_t i = 0; i < dims->n; i++) {
		w->size[i] = dims->size[i];
		if (!w->wide && dims->size[i])
			w->div[i] = air_div_make((uint32_t)dims->size[i]);
		w->x[i] = dims->stride[x][i];
	}
}

/*
 * y with x's dimensions: stride 0 where they are reduced. (Whatever keepdim
 * is, the kept dimensions of y are x's, in order.)
 */
static void spread_y(const struct airunner_desc *d, int64_t stride[])
{
	const struct airunner_tensor *y = &d->tensor[AIR_REDUCE_Y];
	const struct airunner_tensor *x = &d->tensor[AIR_REDUCE_X];
	uint64_t axes = d->attr[AIR_REDUCE_AXES];
	bool keepdim = d->attr[AIR_REDUCE_KEEPDIM];
	uint32_t at = 0;

	for (uint32_t i = 0; i < x->ndim; i++) {
		bool reduced = axes >> i & 1;

		stride[i] = reduced ? 0 : (int64_t)y->stride[at];
		if (!reduced || keepdim)
			at++;
	}
}

static uint32_t sorted(const struct airunner_tensor *x, uint64_t mask,
		       uint32_t dim[])
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < x->ndim; i++) {
		int64_t s = x->stride[i] < 0 ? -x->stride[i] : x->stride[i];
		uint32_t at = n;

		if (!(mask >> i & 1))
			continue;
		while (at > 0) {
			int64_t o = x->stride[dim[at - 1]];

			if ((o < 0 ? -o : o) >= s)
				break;
			dim[at] = dim[at - 1];
			at--;
		}
		dim[at] = i;
		n++;
	}
	return n;
}

static bool multiples(const struct air_reduce_walk *w, uint32_t from,
		      uint32_t width)
{
	for (uint32_t i = from; i < w->n; i++)
		if (w->x[i] % (int64_t)width)
			return false;
	return true;
}

static uint32_t pow2_at_least(uint64_t n)
{
	uint32_t p = 1;

	while (p < n && p < (1u << 30))
		p *= 2;
	return p;
}

/* Too few results to fill the GPU: divide the elements of each. */
static void split(struct air_reduce_params *p, uint64_t jobs, uint32_t width,
		  const struct air_cuda_device *dev, uint32_t *scratch)
{
	uint64_t want = 4ull * dev->sms;
	uint64_t most = AIR_CUDA_SCRATCH / ACC_BYTES / p->outer;
	uint64_t n;

	p->split = 1;
	p->chunk = p->inner;
	if (dev->block || jobs >= want || !jobs)
		return;
	n = (want + jobs - 1) / jobs;
	if (n > p->inner / MIN_CHUNK)
		n = p->inner / MIN_CHUNK;
	if (n > most)
		n = most;
	if (n <= 1)
		return;
	p->chunk = (p->inner + n - 1) / n;
	p->chunk = (p->chunk + width - 1) / width * width;
	p->split = (p->inner + p->chunk - 1) / p->chunk;
	*scratch = (uint32_t)(p->split * p->outer * ACC_BYTES);
}

/*
 * Rows of vectors side by side, enough of them: threads for each so that all
 * have some vectors in flight. Returns whether so.
 */
static bool plan_line(struct air_reduce_params *p, uint64_t accesses,
		      uint32_t width, const struct air_cuda_device *dev)
{
	uint32_t flight = width == 8 ? 8 : 4, lanes = ROW_BLOCK;

	while (lanes > 32 && lanes * flight > accesses)
		lanes /= 2;
	if (dev->block || !p->vector || p->kept.n != 1 ||
	    p->inner > 0x7fffffffu || p->outer * lanes < 1024ull * dev->sms)
		return false;
	p->lanes = lanes;
	p->split = 1;
	p->chunk = p->inner;
	return true;
}

static void plan_rows(struct air_reduce_params *p, uint32_t width,
		      const struct air_cuda_device *dev, uint32_t *block,
		      uint64_t *blocks, uint32_t *scratch, bool *line)
{
	uint64_t fill = (uint64_t)dev->sms * 1024, accesses, jobs;
	uint32_t hold = 8, most = dev->block ? dev->block : ROW_BLOCK, teams;

	p->vector = p->reduced.n == 1 && p->reduced.x[0] == 1 &&
		    p->inner >= width && multiples(&p->kept, 0, width);
	accesses = p->vector ? p->inner / width : p->inner;
	/* a warp has whole lines of memory, if not of one row then of some */
	if (accesses <= 128) {
		hold = accesses <= 8 ? 1 : accesses <= 32 ? 2 : 4;
	} else if (plan_line(p, accesses, width, dev)) {
		*line = true;
		*block = ROW_BLOCK;
		teams = ROW_BLOCK / p->lanes;
		*blocks = (p->outer + teams - 1) / teams;
		return;
	}
	while (hold > 1 && p->outer * (accesses / hold) < fill)
		hold /= 2;
	p->lanes = pow2_at_least((accesses + hold - 1) / hold);
	if (p->lanes > 32 && (dev->block || p->lanes > most))
		p->lanes = most;
	/* the more a thread has of a 16-bit row the better, if all have some */
	while (width == 8 && !dev->block && p->lanes > 32 &&
	       p->outer * p->lanes / 2 >= fill)
		p->lanes /= 2;
	*block = p->lanes > 32 ? p->lanes : ROW_BLOCK;
	split(p, p->lanes > 32 ? p->outer : ~0ull, width, dev, scratch);
	teams = *block / p->lanes;
	jobs = p->outer * p->split;
	if (p->vector && hold <= 4 && p->lanes <= 32 &&
	    accesses <= p->lanes * hold && p->kept.n == 1) {
		p->hold = hold;
		/* rows a team has at once: air_reduce_rows_short() */
		teams *= 4 / hold;
	}
	*blocks = (jobs + teams - 1) / teams;
}

static void plan_columns(struct air_reduce_params *p, uint32_t width,
			 const struct air_cuda_device *dev, uint32_t *block,
			 uint64_t *blocks, uint32_t *scratch)
{
	uint64_t groups, tiles;

	/* integers are summed in 8 bytes: 16 results would be too many */
	p->vector = width <= 8 && p->kept.size[0] % width == 0 &&
		    multiples(&p->kept, 1, width) &&
		    multiples(&p->reduced, 0, width);
	groups = p->outer / (p->vector ? width : 1);
	tiles = (groups + AIR_REDUCE_ACROSS - 1) / AIR_REDUCE_ACROSS;
	*block = 256;
	split(p, tiles, 1, dev, scratch);
	*blocks = tiles * p->split;
}

air_status air_reduce_plan(const struct airunner_desc *d,
			   const struct air_cuda_device *dev,
			   const char *kernel, uint32_t variant,
			   struct air_cuda_plan *plan)
{
	struct air_reduce_params *p = (struct air_reduce_params *)plan->params;
	const struct airunner_tensor *x = &d->tensor[AIR_REDUCE_X];
	uint32_t size = air_elem_size(x->dtype), width = 16 / size;
	uint64_t axes = d->attr[AIR_REDUCE_AXES], blocks;
	uint32_t dim[AIRUNNER_MAX_DIMS], n, block, scratch = 0;
	int64_t y_stride[AIRUNNER_MAX_DIMS];
	const int64_t *stride[] = { (const int64_t *)x->stride, y_stride };
	struct air_dims dims;
	bool columns, line = false;

	_Static_assert(sizeof(*p) <= AIR_PARAMS_MAX, "parameters fit");
	plan->params_size = sizeof(*p);
	if (air_tensor_count(&d->tensor[AIR_REDUCE_Y]) == 0)
		return AIR_OK;
	spread_y(d, y_stride);
	n = sorted(x, ~axes, dim);
	air_dims_merge(&dims, (const int64_t *)x->shape, dim, n, stride, 2);
	walk_init(&p->kept, &dims, 0);
	for (uint32_t i = 0; i < dims.n; i++)
		p->y[i] = dims.stride[1][i];
	p->outer = dims.count;
	n = sorted(x, axes, dim);
	air_dims_merge(&dims, (const int64_t *)x->shape, dim, n, stride, 1);
	walk_init(&p->reduced, &dims, 0);
	p->inner = dims.count;

	columns = p->kept.x[0] == 1 && p->outer > 1 &&
		  p->kept.size[0] >= 8 && p->reduced.x[0] != 1 && p->inner > 1;
	if (columns)
		plan_columns(p, width, dev, &block, &blocks, &scratch);
	else
		plan_rows(p, width, dev, &block, &blocks, &scratch, &line);

	plan->scratch = scratch;
	plan->bytes = p->outer * p->inner * size;
	plan->tiles = blocks < dev->sms ? (uint32_t)blocks : dev->sms;
	if (variant)
		plan->variant = variant + columns;
	snprintf(plan->name[0], sizeof(plan->name[0]), "%s_%s", kernel,
		 columns ? "COLUMNS" : line ? "LINE" : p->hold ? "SHORT" :
								   "ROWS");
	plan->step[plan->n_steps++] = (struct air_cuda_step){
		.kernel = plan->name[0],
		.grid = { blocks < MAX_GRID ? (uint32_t)blocks : MAX_GRID, 1,
			  1 },
		.block = block,
	};
	if (p->split > 1) {
		blocks = (p->outer + 7) / 8;
		snprintf(plan->name[1], sizeof(plan->name[1]), "%s_FINISH",
			 kernel);
		plan->step[plan->n_steps++] = (struct air_cuda_step){
			.kernel = plan->name[1],
			.grid = { blocks < MAX_GRID ? (uint32_t)blocks :
						      MAX_GRID, 1, 1 },
			.block = 256,
		};
	}
	return AIR_OK;
}
