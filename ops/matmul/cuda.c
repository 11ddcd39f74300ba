// SPDX-License-Identifier: MIT
#include <stdio.h>

#include "ops/cuda/cuda_op.h"
#include "ops/cuda/dims.h"
#include "ops/matmul/matmul.h"
#include "ops/matmul/params.h"

AIR_CUDA_FATBIN_DECLARE(matmul);

#define THREADS 256
#define MAX_GRID 0x7fffffffu
/* Products smaller than this are not worth a library's large tiles. */
#define SMALL_MACS (1ull << 18)
/* Of y, as a library's kernels have them. */
#define TILE_M 128
#define TILE_N 256

static const char *const how_name[AIR_MATMUL_HOWS] = {
	[AIR_MATMUL_FMA] = "FMA",
	[AIR_MATMUL_MMA_64] = "MMA_64",
	[AIR_MATMUL_MMA_128] = "MMA_128",
	[AIR_MATMUL_DOT] = "DOT",
	[AIR_MATMUL_SWEEP] = "SWEEP",
};

static void swap(int64_t *a, int64_t *b)
{
	int64_t t = *a;

	*a = *b;
	*b = t;
}

/* y' = b' a': operands change places, rows become columns. */
static void transpose(struct air_matmul_params *p)
{
	uint64_t m = p->m;

	p->m = p->n;
	p->n = m;
	swap(&p->y_m, &p->y_n);
	swap(&p->c_m, &p->c_n);
	swap(&p->bias_m, &p->bias_n);
	swap(&p->a_m, &p->b_n);
	swap(&p->a_k, &p->b_k);
	for (uint32_t i = 0; i < p->n_batch; i++)
		swap(&p->a[i], &p->b[i]);
	p->swapped = !p->swapped;
}

static void set_batch(struct air_matmul_params *p,
		      const struct airunner_desc *d)
{
	static const uint32_t dim[] = { 0, 1, 2, 3, 4, 5 };
	static const int64_t none[AIRUNNER_MAX_DIMS];
	const struct airunner_tensor *t = d->tensor;
	const int64_t *stride[4];
	struct air_dims dims;

	for (uint32_t i = 0; i < 4; i++)
		stride[i] = t[i].dtype ? (const int64_t *)t[i].stride : none;
	air_dims_merge(&dims, (const int64_t *)t[0].shape, dim, t[0].ndim - 2,
		       stride, 4);
	p->batch = dims.count;
	p->n_batch = dims.n;
	for (uint32_t i = 0; i < dims.n; i++) {
		p->size[i] = dims.size[i];
		p->y[i] = dims.stride[0][i];
		p->a[i] = dims.stride[1][i];
		p->b[i] = dims.stride[2][i];
		p->c[i] = dims.stride[3][i];
	}
}

static void set_params(struct air_matmul_params *p,
		       const struct airunner_desc *d)
{
	const struct airunner_tensor *y = &d->tensor[AIR_MATMUL_Y];
	const struct airunner_tensor *a = &d->tensor[AIR_MATMUL_A];
	const struct airunner_tensor *b = &d->tensor[AIR_MATMUL_B];
	const struct airunner_tensor *c = &d->tensor[AIR_MATMUL_C];
	const struct airunner_tensor *bias = &d->tensor[AIR_MATMUL_BIAS];
	bool ta = d->attr[AIR_MATMUL_TRANS_A], tb = d->attr[AIR_MATMUL_TRANS_B];
	uint32_t r = y->ndim - 2, s = y->ndim - 1;

	p->m = (uint64_t)y->shape[r];
	p->n = (uint64_t)y->shape[s];
	p->k = (uint64_t)a->shape[ta ? r : s];
	p->y_m = y->stride[r];
	p->y_n = y->stride[s];
	p->a_m = a->stride[ta ? s : r];
	p->a_k = a->stride[ta ? r : s];
	p->b_k = b->stride[tb ? s : r];
	p->b_n = b->stride[tb ? r : s];
	/* strides of size-1 dimensions mean nothing: let them be dense */
	if (p->k == 1)
		p->a_k = p->b_k = 1;
	if (c->dtype) {
		p->c_m = c->stride[r];
		p->c_n = c->stride[s];
	}
	if (bias->dtype)
		p->bias_n = bias->stride[0];
	p->alpha = (float)air_attr_f64(d, AIR_MATMUL_ALPHA);
	p->beta = (float)air_attr_f64(d, AIR_MATMUL_BETA);
	p->activation = (uint32_t)d->attr[AIR_MATMUL_ACTIVATION];
	/* the product counts as 0 then, whatever a and b hold */
	if (p->alpha == 0.0f)
		p->k = 0;
	set_batch(p, d);
}

static bool batches_are_multiples(const struct air_matmul_params *p,
				  int64_t width)
{
	for (uint32_t i = 0; i < p->n_batch; i++)
		if (p->size[i] > 1 && (p->a[i] % width || p->b[i] % width))
			return false;
	return true;
}

/* Few rows: read the other operand at the memory's speed. */
static bool choose_few(const struct air_matmul_params *p, int64_t width,
		       enum air_matmul_how *how)
{
	if (p->m > AIR_MATMUL_FEW || p->k < 32 ||
	    !batches_are_multiples(p, width))
		return false;
	if (p->b_k == 1 && p->b_n % width == 0 && p->k % (uint64_t)width == 0 &&
	    p->a_k == 1 && (p->a_m % width == 0 || p->m == 1)) {
		*how = AIR_MATMUL_DOT;
		return true;
	}
	if (p->b_n == 1 && p->b_k % width == 0 &&
	    p->n % (uint64_t)width == 0) {
		*how = AIR_MATMUL_SWEEP;
		return true;
	}
	return false;
}

static uint64_t tiles_of(const struct air_matmul_params *p, uint64_t size)
{
	return (p->m + size - 1) / size * ((p->n + size - 1) / size) * p->batch;
}

/* Which kernel of ours; @p may become the transposed problem if @may_swap. */
static enum air_matmul_how choose(struct air_matmul_params *p, uint32_t size,
				  const struct air_cuda_device *dev,
				  bool may_swap)
{
	int64_t width = 16 / size;
	enum air_matmul_how how;

	if (size > 1 && choose_few(p, width, &how))
		return how;
	if (size > 1 && may_swap && p->n <= AIR_MATMUL_FEW) {
		struct air_matmul_params t = *p;

		transpose(&t);
		if (choose_few(&t, width, &how)) {
			*p = t;
			return how;
		}
	}
	if (size == 2 && p->m > 16 && p->n > 16)
		return tiles_of(p, 128) >= dev->sms ? AIR_MATMUL_MMA_128 :
						      AIR_MATMUL_MMA_64;
	return AIR_MATMUL_FMA;
}

static uint64_t blocks_for(const struct air_matmul_params *p,
			   enum air_matmul_how how, uint32_t size)
{
	switch (how) {
	case AIR_MATMUL_DOT:
		return (p->n * p->batch + THREADS / 32 - 1) / (THREADS / 32);
	case AIR_MATMUL_SWEEP:
		return (p->n * size / 16 + AIR_MATMUL_SWEEP_ACROSS - 1) /
		       AIR_MATMUL_SWEEP_ACROSS * p->batch;
	case AIR_MATMUL_MMA_128:
		return tiles_of(p, 128);
	default:
		return tiles_of(p, 64);
	}
}

/* Rows of a product kept in f32: what the GPU does in one go, and fits. */
static uint32_t piece_of(const struct air_matmul_params *p,
			 const struct air_cuda_device *dev)
{
	uint64_t across = (p->n + TILE_N - 1) / TILE_N;
	uint64_t most = AIR_CUDA_WIDE / 4 / p->n / TILE_M * TILE_M;
	uint64_t rows = dev->sms / across * TILE_M;

	if (rows < TILE_M)
		rows = TILE_M;
	if (rows > most)
		rows = most;
	return (uint32_t)(rows < p->m ? rows : p->m);
}

/*
 * cuBLASLt's own activations lose NaN or are other functions. One more pass
 * over y does it; where that would round twice, the library's result is left
 * in f32 first, some rows at a time, which stay in the cache.
 */
static void set_after(const struct air_matmul_params *p, uint32_t y,
		      const struct air_cuda_device *dev,
		      struct air_cuda_plan *plan)
{
	bool wide = y != AIRUNNER_F32 && p->activation != AIR_ACT_RELU;

	if (p->activation == AIR_ACT_NONE)
		return;
	if (wide) {
		plan->piece = p->n_batch <= 1 ? piece_of(p, dev) : 0;
		plan->library = plan->piece > 0;
	}
	snprintf(plan->name[1], sizeof(plan->name[1]), "air_matmul_%s_%s",
		 air_elem_name(y), wide ? "finish" : "activate");
	plan->after = (struct air_cuda_step){
		.kernel = plan->name[1],
		.grid = { dev->sms * 8, 1, 1 },
		.block = THREADS,
	};
}

static air_status plan(const struct airunner_desc *d,
		       const struct air_cuda_device *dev,
		       struct air_cuda_plan *plan, struct air_error *e)
{
	struct air_matmul_params *p = (struct air_matmul_params *)plan->params;
	uint32_t y = d->tensor[AIR_MATMUL_Y].dtype;
	uint32_t a = d->tensor[AIR_MATMUL_A].dtype;
	enum air_matmul_how how;
	uint64_t blocks;

	_Static_assert(sizeof(*p) <= AIR_PARAMS_MAX, "parameters fit");
	plan->params_size = sizeof(*p);
	if (air_tensor_count(&d->tensor[AIR_MATMUL_Y]) == 0)
		return AIR_OK;
	set_params(p, d);
	plan->library = p->k > 0 &&
			p->m * p->n * p->k * p->batch >= SMALL_MACS;
	how = choose(p, air_elem_size(a), dev, !plan->library);
	plan->bytes = ((p->m + p->n) * p->k * air_elem_size(a) +
		       p->m * p->n * air_elem_size(y)) * p->batch;
	if (plan->library)
		set_after(p, y, dev, plan);
	blocks = blocks_for(p, how, air_elem_size(a));
	if (y == a && a <= AIRUNNER_BF16)
		plan->variant = AIR_MATMUL_VARIANT(y, a, how);
	plan->tiles = blocks < dev->sms ? (uint32_t)blocks : dev->sms;
	snprintf(plan->name[0], sizeof(plan->name[0]), "air_matmul_%s_%s_%s",
		 air_elem_name(y), air_elem_name(a), how_name[how]);
	plan->n_steps = 1;
	plan->step[0] = (struct air_cuda_step){
		.kernel = plan->name[0],
		.grid = { blocks < MAX_GRID ? (uint32_t)blocks : MAX_GRID, 1,
			  1 },
		.block = THREADS,
	};
	return AIR_OK;
}

const struct air_cuda_op air_cuda_matmul = {
	.name = "matmul",
	.fatbin = AIR_CUDA_FATBIN(matmul),
	.plan = plan,
};
