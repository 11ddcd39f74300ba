// SPDX-License-Identifier: MIT
/*
 * Device memory. Blocks come in sizes with three significant bits, so that a
 * freed one fits the next request of about its size.
 */
#include "ops/worker/cuda/cuda.h"

#include <stdlib.h>

#define MIN_BLOCK 512u

struct air_dev_block {
	struct air_dev_block *next;
	uint64_t addr;
	uint64_t size;
};

static uint64_t block_size(uint64_t size)
{
	uint64_t step = MIN_BLOCK;

	while (size > step * 8)
		step *= 2;
	return (size + step - 1) & ~(step - 1);
}

static struct air_dev_block *take(struct air_dev_block **list, uint64_t addr,
				  uint64_t size)
{
	for (; *list; list = &(*list)->next) {
		struct air_dev_block *b = *list;

		if (addr ? b->addr == addr : b->size == size) {
			*list = b->next;
			return b;
		}
	}
	return NULL;
}

static CUresult fresh(struct air_cuda *c, uint64_t size, CUdeviceptr *addr)
{
	CUresult r = cu.MemAlloc(addr, size);

	if (r != CUDA_ERROR_OUT_OF_MEMORY || !c->cached ||
	    !c->services->block_begin())
		return r;
	/* all the cache has is given back before the user hears of it */
	air_cuda_quiet_begin(c);
	air_devmem_trim(c);
	air_cuda_quiet_end(c);
	c->services->block_end();
	return cu.MemAlloc(addr, size);
}

air_status air_devmem_alloc(struct air_cuda *c, uint64_t size, uint64_t *addr,
			    struct air_error *e)
{
	uint64_t rounded = block_size(size);
	struct air_dev_block *b = take(&c->cached, 0, rounded);
	CUdeviceptr p = 0;
	CUresult r;

	if (!b) {
		b = calloc(1, sizeof(*b));
		if (!b)
			return air_fail(e, AIR_NO_MEMORY,
					"cuda: out of memory");
		r = fresh(c, rounded, &p);
		if (r != CUDA_SUCCESS) {
			free(b);
			return air_fail(e, AIR_NO_MEMORY,
					"cuda: %llu bytes of device memory: %s",
					(unsigned long long)size,
					air_cuda_error_name(r));
		}
		b->addr = p;
		b->size = rounded;
	}
	/* what another client left there is not this one's to see */
	r = cu.MemsetD8Async(b->addr, 0, b->size, c->service);
	if (r == CUDA_SUCCESS)
		r = cu.StreamSynchronize(c->service);
	if (r != CUDA_SUCCESS) {
		air_cuda_is_fatal(c, r);
		b->next = c->cached;
		c->cached = b;
		return air_fail(e, AIR_SYSTEM,
				"cuda: device memory cannot be cleared: %s",
				air_cuda_error_name(r));
	}
	b->next = c->blocks;
	c->blocks = b;
	*addr = b->addr;
	return AIR_OK;
}

void air_devmem_free(struct air_cuda *c, uint64_t addr)
{
	struct air_dev_block *b = take(&c->blocks, addr, 0);

	if (!b)
		return;
	b->next = c->cached;
	c->cached = b;
}

void air_devmem_trim(struct air_cuda *c)
{
	while (c->cached) {
		struct air_dev_block *b = c->cached;

		c->cached = b->next;
		cu.MemFree(b->addr);
		free(b);
	}
}

static void forget(struct air_dev_block **list)
{
	while (*list) {
		struct air_dev_block *b = *list;

		*list = b->next;
		free(b);
	}
}

void air_devmem_lost(struct air_cuda *c)
{
	forget(&c->blocks);
	forget(&c->cached);
}
