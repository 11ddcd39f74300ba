// SPDX-License-Identifier: MIT
/*
 * Registrations of host memory with CUDA. CUDA refuses a range that overlaps
 * a registered one, so what is registered are pieces that do not overlap: a
 * request registers the gaps between the pieces that are there.
 *
 * A piece that nobody maps any more stays registered (unregistering waits for
 * the whole GPU) until the GPU is quiet for some other reason, a lot has come
 * together, or its addresses are asked for again: by then other memory may
 * have been mapped there.
 */
#include "ops/worker/cuda/cuda.h"

#include <stdlib.h>
#include <unistd.h>

#define STALE_MAX (64ull << 20)

struct air_host_range {
	struct air_host_range *next;
	uint64_t begin, end;
	uint64_t addr;		/* device address of begin */
	uint32_t maps;
	bool owned;
};

static CUresult register_piece(struct air_host_range *r)
{
	CUdeviceptr first = 0, last = 0;
	uint64_t size = r->end - r->begin;
	CUresult res;

	res = cu.MemHostRegister((void *)r->begin, size,
				 CU_MEMHOSTREGISTER_DEVICEMAP |
					 CU_MEMHOSTREGISTER_PORTABLE);
	r->owned = res == CUDA_SUCCESS;
	if (res != CUDA_SUCCESS &&
	    res != CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED)
		return res;
	res = cu.MemHostGetDevicePointer(&first, (void *)r->begin, 0);
	if (res == CUDA_SUCCESS)
		res = cu.MemHostGetDevicePointer(&last, (void *)(r->end - 1),
						 0);
	/* somebody else's registrations may cover it in parts only */
	if (res == CUDA_SUCCESS && last - first != size - 1)
		res = CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	if (res != CUDA_SUCCESS && r->owned)
		cu.MemHostUnregister((void *)r->begin);
	r->addr = first;
	return res;
}

static bool overlaps(const struct air_host_range *r, uint64_t begin,
		     uint64_t end)
{
	return r->begin < end && begin < r->end;
}

/* Find or make the piece that begins at or covers @at, no longer than @end. */
static CUresult piece_at(struct air_cuda *c, uint64_t at, uint64_t end,
			 struct air_host_range **out)
{
	struct air_host_range **where = &c->ranges, *r;
	CUresult res;

	while (*where && (*where)->end <= at)
		where = &(*where)->next;
	r = *where;
	if (r && r->begin <= at) {
		*out = r;
		return CUDA_SUCCESS;
	}
	if (r && r->begin < end)
		end = r->begin;
	r = calloc(1, sizeof(*r));
	if (!r)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r->begin = at;
	r->end = end;
	res = register_piece(r);
	if (res != CUDA_SUCCESS) {
		free(r);
		return res;
	}
	r->next = *where;
	*where = r;
	*out = r;
	return CUDA_SUCCESS;
}

static void pages(void *host, uint64_t size, uint64_t *begin, uint64_t *end)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	*begin = (uint64_t)host & ~(page - 1);
	*end = ((uint64_t)host + size + page - 1) & ~(page - 1);
}

static void unmap_until(struct air_cuda *c, uint64_t begin, uint64_t end)
{
	for (struct air_host_range *r = c->ranges; r; r = r->next)
		if (overlaps(r, begin, end))
			r->maps--;
}

air_status air_hostmem_map(struct air_cuda *c, void *host, uint64_t size,
			   uint64_t *addr, struct air_error *e)
{
	uint64_t begin, end, delta = 0;
	struct air_host_range *r;
	bool stale = false;
	CUresult res;

	pages(host, size, &begin, &end);
	for (r = c->ranges; r; r = r->next)
		stale |= overlaps(r, begin, end) && r->maps == 0;
	if (stale) {
		air_cuda_quiet_begin(c);
		air_hostmem_trim(c);
		air_cuda_quiet_end(c);
	}
	for (uint64_t at = begin; at < end; at = r->end) {
		res = piece_at(c, at, end, &r);
		if (res == CUDA_SUCCESS && at > begin &&
		    r->addr - r->begin != delta)
			res = CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
		if (res != CUDA_SUCCESS) {
			unmap_until(c, begin, at);
			return air_fail(e, AIR_NO_MEMORY,
					"cuda: %llu bytes of host memory at %p cannot be registered: %s",
					(unsigned long long)size, host,
					air_cuda_error_name(res));
		}
		delta = r->addr - r->begin;
		r->maps++;
	}
	*addr = (uint64_t)host + delta;
	return AIR_OK;
}

bool air_hostmem_pinned(const struct air_cuda *c, void *host, uint64_t size,
			uint64_t *addr)
{
	CUdeviceptr first = 0, last = 0;
	uint64_t begin, end;

	pages(host, size, &begin, &end);
	/* also what is registered here has an address, until it is trimmed */
	for (const struct air_host_range *r = c->ranges; r; r = r->next)
		if (overlaps(r, begin, end))
			return false;
	if (cu.MemHostGetDevicePointer(&first, host, 0) != CUDA_SUCCESS ||
	    cu.MemHostGetDevicePointer(&last, (char *)host + size - 1, 0) !=
		    CUDA_SUCCESS ||
	    last - first != size - 1)
		return false;
	*addr = first;
	return true;
}

void air_hostmem_unmap(struct air_cuda *c, void *host, uint64_t size)
{
	uint64_t begin, end, stale = 0;

	pages(host, size, &begin, &end);
	unmap_until(c, begin, end);
	for (struct air_host_range *r = c->ranges; r; r = r->next)
		if (r->maps == 0)
			stale += r->end - r->begin;
	if (stale > STALE_MAX) {
		air_cuda_quiet_begin(c);
		air_hostmem_trim(c);
		air_cuda_quiet_end(c);
	}
}

void air_hostmem_trim(struct air_cuda *c)
{
	struct air_host_range **where = &c->ranges, *r;

	/* it can wait for the next time the GPU is quiet */
	if (!c->services->block_begin())
		return;
	while ((r = *where)) {
		if (r->maps) {
			where = &r->next;
			continue;
		}
		if (r->owned)
			cu.MemHostUnregister((void *)r->begin);
		*where = r->next;
		free(r);
	}
	c->services->block_end();
}

void air_hostmem_lost(struct air_cuda *c)
{
	struct air_host_range **where = &c->ranges, *r;

	while ((r = *where)) {
		if (r->maps) {
			where = &r->next;
			continue;
		}
		*where = r->next;
		free(r);
	}
}

air_status air_hostmem_restore(struct air_cuda *c)
{
	for (struct air_host_range *r = c->ranges; r; r = r->next)
		if (register_piece(r) != CUDA_SUCCESS)
			return AIR_NO_MEMORY;
	return AIR_OK;
}
