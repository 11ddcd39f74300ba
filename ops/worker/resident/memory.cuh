/* SPDX-License-Identifier: MIT */
/*
 * Loads, stores and fences of the resident kernel by their scope and order, as
 * PTX names them. tests/gpu/emulate.h has them for a CPU.
 */
#ifndef AIR_RES_MEMORY_CUH
#define AIR_RES_MEMORY_CUH

#include <stdint.h>

typedef unsigned long long ull;

__device__ __forceinline__ uint64_t load_sys(const uint64_t *p)
{
	uint64_t v;

	asm volatile("ld.relaxed.sys.global.u64 %0, [%1];"
		     : "=l"(v) : "l"(p) : "memory");
	return v;
}

__device__ __forceinline__ void store_sys(uint64_t *p, uint64_t v)
{
	asm volatile("st.relaxed.sys.global.u64 [%0], %1;"
		     ::"l"(p), "l"(v) : "memory");
}

__device__ __forceinline__ void store_release_sys(uint64_t *p, uint64_t v)
{
	asm volatile("st.release.sys.global.u64 [%0], %1;"
		     ::"l"(p), "l"(v) : "memory");
}

/*
 * Two words, 16-byte aligned, by one access: behind a release that waits for
 * the bus there must not be another access that waits as well.
 */
__device__ __forceinline__ void store_pair_sys(uint64_t *p, uint64_t v0,
					       uint64_t v1)
{
	asm volatile("{ .reg .b128 v; mov.b128 v, {%1, %2}; "
		     "st.relaxed.sys.global.b128 [%0], v; }"
		     ::"l"(p), "l"(v0), "l"(v1) : "memory");
}

__device__ __forceinline__ void store_pair_release_sys(uint64_t *p, uint64_t v0,
						       uint64_t v1)
{
	asm volatile("{ .reg .b128 v; mov.b128 v, {%1, %2}; "
		     "st.release.sys.global.b128 [%0], v; }"
		     ::"l"(p), "l"(v0), "l"(v1) : "memory");
}

__device__ __forceinline__ uint64_t load_acquire(const uint64_t *p)
{
	uint64_t v;

	asm volatile("ld.acquire.gpu.global.u64 %0, [%1];"
		     : "=l"(v) : "l"(p) : "memory");
	return v;
}

__device__ __forceinline__ uint32_t load_acquire(const uint32_t *p)
{
	uint32_t v;

	asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
		     : "=r"(v) : "l"(p) : "memory");
	return v;
}

__device__ __forceinline__ uint64_t load_gpu(const uint64_t *p)
{
	uint64_t v;

	asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];"
		     : "=l"(v) : "l"(p) : "memory");
	return v;
}

__device__ __forceinline__ void store_release(uint64_t *p, uint64_t v)
{
	asm volatile("st.release.gpu.global.u64 [%0], %1;"
		     ::"l"(p), "l"(v) : "memory");
}

__device__ __forceinline__ void add_release(uint32_t *p, uint32_t v)
{
	asm volatile("red.release.gpu.global.add.u32 [%0], %1;"
		     ::"l"(p), "r"(v) : "memory");
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

__device__ __forceinline__ uint64_t gpu_now(void)
{
	uint64_t t;

	asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t));
	return t;
}

/* In loops that wait for another warp or block. */
__device__ __forceinline__ void spin(void)
{
}

#endif /* AIR_RES_MEMORY_CUH */
