/* SPDX-License-Identifier: MIT */
/*
 * Loads, stores and fences of the resident kernel by their scope and order, as
 * PTX names them. tests/gpu/emulate.h has them for a CPU.
 */
#ifndef AIR_RES_MEMORY_CUH
#define AIR_RES_MEMORY_CUH

#include <stdint.h>

#include "ops/worker/resident/resident.h"

typedef unsigned long long ull;

__device__ __forceinline__ uint64_t load_sys(const uint64_t *p)
{
	uint64_t v;

	asm volatile("ld.relaxed.sys.global.u64 %0, [%1];"
		     : "=l"(v)
		     : "l"(p)
		     : "memory");
	return v;
}

__device__ __forceinline__ void store_sys(uint64_t *p, uint64_t v)
{
	asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(p), "l"(v)
		     : "memory");
}

__device__ __forceinline__ void store_release_sys(uint64_t *p, uint64_t v)
{
	asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(p), "l"(v)
		     : "memory");
}

/*
 * Two words, 16-byte aligned, by one access: behind a release that waits for
 * the bus there must not be another access that waits as well.
 */
__device__ __forceinline__ void store_pair_sys(uint64_t *p, uint64_t v0,
					       uint64_t v1)
{
	asm volatile("{ .reg .b128 v; mov.b128 v, {%1, %2}; "
		     "st.relaxed.sys.global.b128 [%0], v; }" ::"l"(p),
		     "l"(v0), "l"(v1)
		     : "memory");
}

__device__ __forceinline__ void store_pair_release_sys(uint64_t *p, uint64_t v0,
						       uint64_t v1)
{
	asm volatile("{ .reg .b128 v; mov.b128 v, {%1, %2}; "
		     "st.release.sys.global.b128 [%0], v; }" ::"l"(p),
		     "l"(v0), "l"(v1)
		     : "memory");
}

__device__ __forceinline__ uint64_t load_acquire(const uint64_t *p)
{
	uint64_t v;

	asm volatile("ld.acquire.gpu.global.u64 %0, [%1];"
		     : "=l"(v)
		     : "l"(p)
		     : "memory");
	return v;
}

__device__ __forceinline__ uint32_t load_acquire(const uint32_t *p)
{
	uint32_t v;

	asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
		     : "=r"(v)
		     : "l"(p)
		     : "memory");
	return v;
}

__device__ __forceinline__ uint64_t load_gpu(const uint64_t *p)
{
	uint64_t v;

	asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];"
		     : "=l"(v)
		     : "l"(p)
		     : "memory");
	return v;
}

__device__ __forceinline__ void store_gpu(uint64_t *p, uint64_t v)
{
	asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(p), "l"(v)
		     : "memory");
}

__device__ __forceinline__ void store_release(uint64_t *p, uint64_t v)
{
	asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(p), "l"(v)
		     : "memory");
}

__device__ __forceinline__ void store_release(uint32_t *p, uint32_t v)
{
	asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(p), "r"(v)
		     : "memory");
}

/* Take a lock: whether it was free. */
__device__ __forceinline__ bool take_acquire(uint32_t *p)
{
	uint32_t was;

	asm volatile("atom.acquire.gpu.global.cas.b32 %0, [%1], 0, 1;"
		     : "=r"(was)
		     : "l"(p)
		     : "memory");
	return !was;
}

__device__ __forceinline__ void add_release(uint32_t *p, uint32_t v)
{
	asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(p), "r"(v)
		     : "memory");
}

__device__ __forceinline__ void fence_sys(void)
{
	asm volatile("fence.acq_rel.sys;" ::: "memory");
}

/* Not __threadfence_block(): that is sequentially consistent, and slower. */
__device__ __forceinline__ void fence_block(void)
{
	asm volatile("fence.acq_rel.cta;" ::: "memory");
}

/* Of the multiprocessor's clock: some cycles, where gpu_now() takes 1000. */
__device__ __forceinline__ uint64_t gpu_ticks(void)
{
	uint64_t t;

	asm volatile("mov.u64 %0, %clock64;" : "=l"(t)::"memory");
	return t;
}

/* Nanoseconds, the same for all of the GPU. */
__device__ __forceinline__ uint64_t gpu_now(void)
{
	uint64_t t;

	asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t));
	return t;
}

/*
 * Gates: how one thread of a block hands on what it and those before it have
 * written. An mbarrier of one arrival releases without the fence that a store
 * with release semantics waits for; looking at it acquires.
 */
__device__ __forceinline__ uint32_t air_shared(const void *p)
{
	return (uint32_t)__cvta_generic_to_shared(p);
}

__device__ __forceinline__ void gate_init(uint64_t *g)
{
	asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(air_shared(g))
		     : "memory");
}

__device__ __forceinline__ void gate_end(uint64_t *g)
{
	asm volatile("mbarrier.inval.shared.b64 [%0];" ::"r"(air_shared(g))
		     : "memory");
}

__device__ __forceinline__ void gate_open(uint64_t *g)
{
	asm volatile(
		"{ .reg .b64 s; mbarrier.arrive.shared.b64 s, [%0]; }" ::"r"(
			air_shared(g))
		: "memory");
}

/* Whether it was opened for the @turn-th time (0 is the first), not later. */
__device__ __forceinline__ bool gate_passed(uint64_t *g, uint32_t turn)
{
	uint32_t passed;

	asm volatile("{ .reg .pred p; "
		     "mbarrier.test_wait.parity.shared.b64 p, [%1], %2; "
		     "selp.u32 %0, 1, 0, p; }"
		     : "=r"(passed)
		     : "r"(air_shared(g)), "r"(turn & 1)
		     : "memory");
	return passed;
}

/*
 * The same, and if it was not, wait for a while: without taking turns from
 * warps that have something to do, where the hardware can.
 */
__device__ __forceinline__ bool gate_await(uint64_t *g, uint32_t turn)
{
#if __CUDA_ARCH__ >= 900
	uint32_t passed;

	asm volatile("{ .reg .pred p; "
		     "mbarrier.try_wait.parity.shared.b64 p, [%1], %2; "
		     "selp.u32 %0, 1, 0, p; }"
		     : "=r"(passed)
		     : "r"(air_shared(g)), "r"(turn & 1)
		     : "memory");
	return passed;
#else
	return gate_passed(g, turn);
#endif
}

/*
 * Forget what the first-level cache holds: what the host or a copy has written
 * before it submitted is not seen there. The load is only what the
 * invalidation comes with.
 */
__device__ __forceinline__ void renew_cache(const uint32_t *shared)
{
	asm volatile(
		"{ .reg .b32 v; ld.acquire.sys.shared.u32 v, [%0]; }" ::"r"(
			air_shared(shared))
		: "memory");
}

/* Have @bytes, a multiple of 16, from @from on in the second-level cache. */
__device__ __forceinline__ void fetch_ahead(uint64_t from, uint32_t bytes)
{
#if __CUDA_ARCH__ >= 900
	asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from),
		     "r"(bytes)
		     : "memory");
#else
	for (uint32_t i = 0; i < bytes; i += 128)
		asm volatile("prefetch.global.L2 [%0];" ::"l"(from + i)
			     : "memory");
#endif
}

/*
 * Where the working warps of a job that was posted ahead wait until it may go
 * on: another warp waits for the word, and joins them here.
 */
__device__ __forceinline__ void air_go(void)
{
	/* all lanes of a warp at once, wherever they come from */
	__syncwarp();
	asm volatile("bar.sync 2, %0;" ::"n"(AIR_RES_WORKERS + 32) : "memory");
}

/* In loops that wait for another warp or block. */
__device__ __forceinline__ void spin(void)
{
}

#endif /* AIR_RES_MEMORY_CUH */
