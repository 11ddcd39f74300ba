/* SPDX-License-Identifier: MIT */
/*
 * rms_norm of one row by one block: the row and its weight are read at once,
 * as it is the memory's latency that such a small operator takes.
 */
#ifndef AIR_RES_NORM_CUH
#define AIR_RES_NORM_CUH

#include "ops/rms_norm/kernel.cuh"
#include "ops/worker/resident/small.cuh"

/* J: vectors a thread. */
template <class T, int J>
__device__ __forceinline__ void
air_small_norm(float epsilon, const air_operands &ops, void *shared)
{
	constexpr int V = 16 / sizeof(T);
	constexpr float part_of_length = 1.0f / (J * AIR_RES_WORKERS * V);
	using vec = air_vec<T, V>;
	const air_part part = { 0, 1, threadIdx.x, AIR_RES_WORKERS, shared };
	const vec *from = (const vec *)ops.addr[1] + threadIdx.x;
	const vec *weight = (const vec *)ops.addr[2] + threadIdx.x;
	vec *to = (vec *)ops.addr[0] + threadIdx.x;
	vec x[J], w[J];
	float squares = 0.0f;

#pragma unroll
	for (int j = 0; j < J; j++)
		x[j] = from[j * AIR_RES_WORKERS];
#pragma unroll
	for (int j = 0; j < J; j++)
		w[j] = weight[j * AIR_RES_WORKERS];
#pragma unroll
	for (int j = 0; j < J; j++) {
		float v[V];

		air_numbers(x[j], v);
#pragma unroll
		for (int i = 0; i < V; i++)
			squares = fmaf(v[i], v[i], squares);
	}
	squares = air_reduce_block(part, squares, air_sum(), 0.0f);

	const typename air_rms_norm<T>::stats s = {
		1.0f / sqrtf(squares * part_of_length + epsilon)
	};

#pragma unroll
	for (int j = 0; j < J; j++) {
		float v[V], g[V];

		air_numbers(x[j], v);
		air_numbers(w[j], g);
#pragma unroll
		for (int i = 0; i < V; i++)
			v[i] = air_rms_norm<T>::finish(v[i], s, g[i], 0.0f);
		to[j * AIR_RES_WORKERS] = air_vec_from<T, V>(v);
	}
}

template <class T>
__device__ __forceinline__ void
air_small_norm_of(float epsilon, const air_operands &ops, uint32_t vectors,
		  void *shared)
{
	if (vectors == 1)
		air_small_norm<T, 1>(epsilon, ops, shared);
	else
		air_small_norm<T, 2>(epsilon, ops, shared);
}

__device__ __forceinline__ bool air_small(const air_body<AIR_OP_rms_norm> *,
					  const void *params,
					  const air_operands *ops,
					  uint32_t vectors, uint32_t variant,
					  void *shared)
{
	const air_row_params &p = *(const air_row_params *)params;
	uint32_t dtype = variant / 16;
	float epsilon = p.epsilon;

	if (dtype == AIRUNNER_BF16)
		air_small_norm_of<__nv_bfloat16>(epsilon, *ops, vectors,
						 shared);
	else if (dtype == AIRUNNER_F16)
		air_small_norm_of<__half>(epsilon, *ops, vectors, shared);
	else
		air_small_norm_of<float>(epsilon, *ops, vectors, shared);
	return true;
}

#endif /* AIR_RES_NORM_CUH */
