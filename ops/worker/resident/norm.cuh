/* SPDX-License-Identifier: MIT */
/*
 * rms_norm of one row by one block: the row and its weight are read at once,
 * as it is the memory's latency that such a small operator takes.
 */
#ifndef AIR_RES_NORM_CUH
#define AIR_RES_NORM_CUH

#include "ops/rms_norm/kernel.cuh"
#include "ops/worker/resident/resident.h"

/* J: vectors a thread. */
template <class T, int J>
__device__ __forceinline__ void air_norm_row(const air_row_params &p,
					     const air_operands &ops,
					     const air_part &part)
{
	constexpr int V = 16 / sizeof(T);
	using vec = air_vec<T, V>;
	const vec *from = (const vec *)ops.addr[1] + part.thread;
	const vec *weight = (const vec *)ops.addr[2] + part.thread;
	vec *to = (vec *)ops.addr[0] + part.thread;
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
		1.0f / sqrtf(squares / (float)p.length + p.epsilon)
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
__device__ __forceinline__ bool air_norm_of(const air_row_params &p,
					    const air_operands &ops,
					    const air_part &part)
{
	constexpr uint32_t piece = AIR_RES_WORKERS * 16 / sizeof(T);

	if (p.length == piece) {
		air_norm_row<T, 1>(p, ops, part);
		return true;
	}
	if (p.length == 2 * piece) {
		air_norm_row<T, 2>(p, ops, part);
		return true;
	}
	return false;
}

__device__ __forceinline__ bool
air_special(const air_body<AIR_OP_rms_norm> *, uint32_t variant,
	    const void *params, const air_operands &ops, const air_part &part)
{
	const air_row_params &p = *(const air_row_params *)params;
	uint32_t dtype = variant / 16;

	if (p.rows != 1 || p.x_step != 1 || p.y_step != 1 || !ops.addr[2] ||
	    p.w_step != 1 || p.w_f32 != (dtype == AIRUNNER_F32) ||
	    (ops.addr[0] | ops.addr[1] | ops.addr[2]) % 16)
		return false;
	if (dtype == AIRUNNER_BF16)
		return air_norm_of<__nv_bfloat16>(p, ops, part);
	if (dtype == AIRUNNER_F16)
		return air_norm_of<__half>(p, ops, part);
	return air_norm_of<float>(p, ops, part);
}

#endif /* AIR_RES_NORM_CUH */
