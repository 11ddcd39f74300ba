// SPDX-License-Identifier: MIT
#include "ops/cuda/rowwise_plan.h"

#include <stdio.h>

#include "ops/cuda/dims.h"
#include "ops/cuda/rowwise.h"

#define WARP_BLOCK 256		/* threads, where a row has a warp or less */
#define MAX_BLOCK 512		/* threads, where it has a block */
#define MAX_CLUSTER 8		/* what every GPU with clusters has */
#define MAX_GRID 0x7fffffffu
#define HELD 8			/* accesses a thread can keep */
/* More work than that has the GPU for itself (launch.c: YIELD_BYTES). */
#define ALONE_BYTES (16u << 20)

/* Rows, with twice as many clusters as there are, are counted in 32 bits. */
#define MAX_ROWS (1u << 31)

/* Shared memory that a block has besides rows or weights in it, at most. */
#define SHARED_OTHER 9216

static const char *const how[AIR_ROW_VARIANTS] = {
	[AIR_ROW_1] = "1",
	[AIR_ROW_2] = "2",
	[AIR_ROW_4] = "4",
	[AIR_ROW_8] = "8",
	[AIR_ROW_ELEMENTS] = "elements",
	[AIR_ROW_LOOP] = "loop",
	[AIR_ROW_SHARED] = "shared",
	[AIR_ROW_AHEAD] = "ahead",
};

static uint32_t pow2_at_least(uint64_t n)
{
	uint32_t p = 1;

	while (p < n && p < (1u << 30))
		p *= 2;
	return p;
}

/* Rows start at multiples of 16 bytes from the first, elements are dense. */
static bool has_vectors(const struct air_row_params *p, uint32_t width)
{
	if (p->x_step != 1 || p->y_step != 1 || p->length % width)
		return false;
	for (uint32_t i = 0; i < p->ndim; i++)
		if (p->size[i] > 1 && (p->x_stride[i] % (int64_t)width ||
				       p->y_stride[i] % (int64_t)width))
			return false;
	return true;
}

static uint64_t ceil_div(uint64_t a, uint64_t b)
{
	return (a + b - 1) / b;
}

/* Threads for @accesses if each has @hold: some of a warp, or whole ones. */
static uint64_t lanes_of(uint64_t accesses, uint32_t hold)
{
	uint64_t n = ceil_div(accesses, hold);

	return n > 32 ? (n + 31) / 32 * 32 : pow2_at_least(n);
}

/*
 * Share a row of @accesses among threads so that each has four in flight; fewer
 * when there are not enough rows to fill the GPU otherwise, eight when a block
 * would have more than @most threads: blocks of many warps wait for each other.
 * Returns what each thread holds; 0: does not fit into registers.
 */
static uint32_t share(struct air_row_params *p, uint64_t accesses,
		      uint32_t most, const struct air_cuda_device *dev)
{
	uint64_t fill = (uint64_t)dev->sms * 1024, lanes;
	uint32_t hold = 4;

	while (hold > 1 && p->rows * ceil_div(accesses, hold) < fill)
		hold /= 2;
	lanes = lanes_of(accesses, hold);
	if (lanes > most && hold == 4)
		lanes = lanes_of(accesses, HELD);
	p->cluster = 1;
	if (dev->block && lanes > 32)
		lanes = dev->block;
	if (lanes > MAX_BLOCK) {
		lanes = MAX_BLOCK;
		while (p->cluster < MAX_CLUSTER && dev->cc >= 90 &&
		       lanes * p->cluster * 4 < accesses)
			p->cluster *= 2;
	}
	p->lanes = (uint32_t)lanes;
	hold = pow2_at_least(ceil_div(accesses, lanes * p->cluster));
	return hold <= HELD ? hold : 0;
}

/*
 * Rows of more than 64 KiB, and enough of them: a block each, with the end of
 * the row in shared memory. A cluster takes longer to start and to agree than
 * the row takes to come. Only for work that has the GPU for itself: nothing
 * else fits beside such blocks. Returns bytes of shared memory, 0: not so.
 */
static uint32_t share_shared(struct air_row_params *p, uint64_t accesses,
			     const struct air_cuda_device *dev)
{
	uint32_t cluster, lanes;

	if (dev->block || accesses <= MAX_BLOCK * HELD ||
	    p->rows < dev->sms || p->rows * accesses * 32 <= ALONE_BYTES)
		return 0;
	for (cluster = 1; cluster <= (dev->cc >= 90 ? MAX_CLUSTER : 1);
	     cluster *= 2) {
		uint64_t mine = ceil_div(accesses, cluster), bytes;

		/* two blocks a multiprocessor if they are small enough */
		lanes = mine <= 2 * MAX_BLOCK * HELD ? MAX_BLOCK :
						       2 * MAX_BLOCK;
		bytes = mine > lanes * HELD ?
				(ceil_div(mine, lanes) - HELD) * lanes * 16 : 0;
		if (bytes + SHARED_OTHER > dev->shared_optin)
			continue;
		p->cluster = cluster;
		p->lanes = lanes;
		return (uint32_t)bytes;
	}
	return 0;
}

/*
 * Long rows one after the other, the next one on its way into registers, by
 * clusters that stay, with @weights vectors as long as a row in their shared
 * memory. Blocks as large as there are, for clusters of few; where there is
 * @much to compute, two a multiprocessor, one of which is busy while the other
 * waits, as long as that does not take more blocks than every GPU's clusters
 * have. Returns whether so.
 */
static bool share_ahead(struct air_row_params *p, uint64_t accesses,
			uint32_t weights, bool much,
			const struct air_cuda_device *dev, uint32_t *shared)
{
	uint32_t lanes = MAX_BLOCK / (much ? 2 : 1), cluster = 1, bytes;

	if (dev->block || dev->cc < 90 || accesses <= MAX_BLOCK * HELD ||
	    p->rows * accesses * 32 <= ALONE_BYTES || p->rows > MAX_ROWS)
		return false;
	if (accesses > (uint64_t)lanes * HELD * MAX_CLUSTER)
		lanes = MAX_BLOCK;
	while (accesses > (uint64_t)lanes * HELD * cluster)
		cluster *= 2;
	bytes = weights * lanes * HELD * 16;
	if (cluster > MAX_CLUSTER || bytes + SHARED_OTHER > dev->shared_optin)
		return false;
	p->lanes = lanes;
	p->cluster = cluster;
	*shared = bytes;
	return true;
}

/*
 * For share(), as measured. The more there is to compute of an access, the more
 * it pays that fewer threads do what is of the row: 16-bit accesses have twice
 * the elements, softmax an exponential of each, layer_norm two sums and a bias.
 * Where blocks are what they are, the more threads the better.
 */
static uint32_t most_threads(const struct airunner_desc *d, uint32_t size,
			     const struct air_cuda_device *dev)
{
	if (dev->block)
		return 256;
	switch (d->op) {
	case AIR_OP_softmax:
		return size > 2 ? 128 : 16;
	case AIR_OP_layer_norm:
		return size > 2 ? 256 : 16;
	default:
		return size > 2 ? 256 : 128;
	}
}

static uint32_t weights_of(const struct airunner_desc *d)
{
	if (d->op == AIR_OP_layer_norm)
		return d->tensor[3].dtype ? 2 : 1;
	return d->op == AIR_OP_rms_norm;
}

static void set_steps(struct air_row_params *p, const struct airunner_desc *d)
{
	const struct airunner_tensor *w = &d->tensor[2], *b = &d->tensor[3];

	if (w->dtype) {
		p->w_f32 = w->dtype == AIRUNNER_F32;
		p->w_step = w->stride[0];
	}
	if (b->dtype) {
		p->b_f32 = b->dtype == AIRUNNER_F32;
		p->b_step = b->stride[0];
	}
}

air_status air_row_plan(const struct airunner_desc *d,
			const struct air_cuda_device *dev, const char *name,
			uint32_t axis, double epsilon,
			struct air_cuda_plan *plan)
{
	struct air_row_params *p = (struct air_row_params *)plan->params;
	const struct airunner_tensor *y = &d->tensor[0], *x = &d->tensor[1];
	uint32_t size = air_elem_size(y->dtype), width = 16 / size;
	struct airunner_tensor ry = *y, rx = *x;
	const struct airunner_tensor *t[] = { &ry, &rx };
	uint32_t hold = 0, shared = 0, block;
	uint32_t variant = AIR_ROW_LOOP;
	bool ahead = false;
	struct air_dims dims;
	uint64_t blocks;

	_Static_assert(sizeof(*p) <= AIR_PARAMS_MAX, "parameters fit");
	plan->params_size = sizeof(*p);
	if (air_tensor_count(y) == 0)
		return AIR_OK;
	/* the rows: everything but the axis */
	ry.shape[axis] = rx.shape[axis] = 1;
	air_dims_sorted(&dims, t, 2);
	p->rows = dims.count;
	p->length = (uint64_t)y->shape[axis];
	p->ndim = dims.n;
	p->wide = dims.count > 0x7fffffffu;
	for (uint32_t i = 0; i < dims.n; i++) {
		p->size[i] = dims.size[i];
		if (!p->wide)
			p->div[i] = air_div_make((uint32_t)dims.size[i]);
		p->y_stride[i] = dims.stride[0][i];
		p->x_stride[i] = dims.stride[1][i];
	}
	p->y_step = p->length == 1 ? 1 : y->stride[axis];
	p->x_step = p->length == 1 ? 1 : x->stride[axis];
	p->epsilon = (float)epsilon;
	set_steps(p, d);

	if (has_vectors(p, width)) {
		ahead = share_ahead(p, p->length / width, weights_of(d),
				    d->op == AIR_OP_softmax, dev, &shared);
		if (!ahead)
			shared = share_shared(p, p->length / width, dev);
		hold = HELD;
		if (!ahead && !shared)
			hold = share(p, p->length / width,
				     most_threads(d, size, dev), dev);
		variant = ahead ? AIR_ROW_AHEAD : shared ? AIR_ROW_SHARED :
			  hold == 1 ? AIR_ROW_1 : hold == 2 ? AIR_ROW_2 :
			  hold == 4 ? AIR_ROW_4 : AIR_ROW_8;
	} else if (p->x_step == 1 && p->y_step == 1) {
		hold = share(p, p->length, 256, dev);
		variant = AIR_ROW_ELEMENTS;
	}
	if (!hold) {
		variant = AIR_ROW_LOOP;
		p->cluster = 1;
		/*
		 * Rows side by side: a thread each, so that neighbours read
		 * neighbours. Else a block each.
		 */
		p->lanes = p->x_step != 1 && p->x_stride[0] == 1 &&
					   p->rows >= 4096 ? 1 :
			   p->length <= 256 ? 32 :
			   dev->block ? dev->block : MAX_BLOCK;
	}
	block = p->lanes > 32 ? p->lanes : WARP_BLOCK;
	blocks = p->lanes <= 32 ?
			 (p->rows + block / p->lanes - 1) / (block / p->lanes) :
			 p->rows * p->cluster;
	if (blocks > MAX_GRID)
		blocks = MAX_GRID / MAX_CLUSTER * MAX_CLUSTER;
	snprintf(plan->name[0], sizeof(plan->name[0]), "air_%s_%s_%s", name,
		 air_elem_name(y->dtype), how[variant]);
	plan->bytes = (uint64_t)air_tensor_count(y) * size * 2;
	plan->tiles = blocks < dev->sms ? (uint32_t)blocks : dev->sms;
	plan->variant = y->dtype * 16 + variant;
	plan->counter = ahead;
	plan->n_steps = 1;
	plan->step[0] = (struct air_cuda_step){
		.kernel = plan->name[0],
		.grid = { (uint32_t)blocks, 1, 1 },
		.block = block,
		.shared = shared,
		.cluster = p->cluster,
		.stays = ahead,
	};
	return AIR_OK;
}
