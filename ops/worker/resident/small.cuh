/* SPDX-License-Identifier: MIT */
/*
 * Elementwise operators that a block does by some vectors a thread. An operator
 * that is all latency is not to run through code that is ready for any shape:
 * what its descriptor allows was found out when that was made (executor.c),
 * what its operands allow when it was fetched.
 */
#ifndef AIR_RES_SMALL_CUH
#define AIR_RES_SMALL_CUH

#include "ops/cuda/elementwise.cuh"
#include "ops/worker/resident/resident.h"

/*
 * Through the first-level cache, where an operator finds what the one before
 * it has written: what others may have written meanwhile is forgotten whenever
 * submissions are fetched.
 */
template <class F, int U>
__device__ __forceinline__ void
air_small_group(const air_ew_params &p, const air_operands &ops, uint32_t i)
{
	constexpr int V = 16 / sizeof(typename F::out);
	using vec = air_vec<typename F::out, V>;
	vec a[U], b[U];

#pragma unroll
	for (int u = 0; u < U; u++) {
		a[u] = ((const vec *)ops.addr[1])[i + u * AIR_RES_WORKERS];
		if (F::inputs > 1)
			b[u] = ((const vec *)
					ops.addr[2])[i + u * AIR_RES_WORKERS];
	}
#pragma unroll
	for (int u = 0; u < U; u++) {
		float x[V], z[V];

		air_numbers(a[u], x);
		air_numbers(F::inputs > 1 ? b[u] : a[u], z);
#pragma unroll
		for (int k = 0; k < V; k++)
			x[k] = F::number(p, x[k], z[k]);
		((vec *)ops.addr[0])[i + u * AIR_RES_WORKERS] =
			air_vec_from<typename F::out, V>(x);
	}
}

/* Two at once where there are so many: they wait together. */
template <class F>
__device__ __forceinline__ void air_small_vectors(const air_ew_params &p,
						  const air_operands &ops,
						  uint32_t vectors)
{
	uint32_t i = threadIdx.x;

#pragma unroll 1
	for (; i + AIR_RES_WORKERS < vectors; i += 2 * AIR_RES_WORKERS)
		air_small_group<F, 2>(p, ops, i);
	if (i < vectors)
		air_small_group<F, 1>(p, ops, i);
}

template <template <class> class F>
__device__ __forceinline__ bool
air_small(const air_ew_float_body<F> *, const void *params,
	  const air_operands *ops, uint32_t vectors, uint32_t variant, void *)
{
	const air_ew_params &p = *(const air_ew_params *)params;
	if (variant == AIRUNNER_F32)
		air_small_vectors<F<float>>(p, *ops, vectors);
	else if (variant == AIRUNNER_BF16)
		air_small_vectors<F<__nv_bfloat16>>(p, *ops, vectors);
	else
		air_small_vectors<F<__half>>(p, *ops, vectors);
	return true;
}

/* Operators of another kind have nothing of that sort. */
__device__ __forceinline__ bool air_small(const void *, const void *,
					  const air_operands *, uint32_t,
					  uint32_t, void *)
{
	return false;
}

#endif /* AIR_RES_SMALL_CUH */
