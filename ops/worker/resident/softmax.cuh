/* SPDX-License-Identifier: MIT */
/*
 * softmax of short rows by one block, a vector a thread: those of two rows are
 * on their way at once.
 */
#ifndef AIR_RES_SOFTMAX_CUH
#define AIR_RES_SOFTMAX_CUH

#include "ops/softmax/kernel.cuh"
#include "ops/worker/resident/small.cuh"

/* Exponentials of a row's numbers, divided by their sum. */
template <class T>
__device__ __forceinline__ air_vec<T, 16 / sizeof(T)>
air_small_softmax_row(const air_vec<T, 16 / sizeof(T)> &x, uint32_t lanes)
{
	constexpr int V = 16 / sizeof(T);
	float max = air_reduce_lanes(air_vec_max(x), air_max(), lanes);
	float v[V], sum = 0.0f;

	air_numbers(x, v);
#pragma unroll
	for (int i = 0; i < V; i++) {
		v[i] = air_softmax_exp<T>(v[i] - max);
		sum += v[i];
	}
	sum = 1.0f / air_reduce_lanes(sum, air_sum(), lanes);
#pragma unroll
	for (int i = 0; i < V; i++)
		v[i] *= sum;
	return air_vec_from<T, V>(v);
}

/* @lanes threads a row, a power of two up to 32. */
template <class T>
__device__ __forceinline__ void air_small_softmax(const air_row_params &p,
						  const air_operands &ops,
						  uint32_t lanes)
{
	constexpr uint32_t V = 16 / sizeof(T);
	using vec = air_vec<T, V>;
	uint32_t rows = (uint32_t)p.rows, teams = AIR_RES_WORKERS / lanes;
	uint32_t x_step = (uint32_t)p.x_stride[0] / V;
	uint32_t y_step = (uint32_t)p.y_stride[0] / V;
	const vec *x = (const vec *)ops.addr[1] + threadIdx.x % lanes;
	vec *y = (vec *)ops.addr[0] + threadIdx.x % lanes;

	/* as often by all threads of a warp: they shuffle together */
#pragma unroll 1
	for (uint32_t base = 0; base < rows; base += 2 * teams) {
		uint32_t r0 = base + threadIdx.x / lanes, r1 = r0 + teams;
		vec x0 = {}, x1 = {};

		if (r0 < rows)
			x0 = x[r0 * x_step];
		if (r1 < rows)
			x1 = x[r1 * x_step];

		vec y0 = air_small_softmax_row<T>(x0, lanes);
		vec y1 = air_small_softmax_row<T>(x1, lanes);

		if (r0 < rows)
			y[r0 * y_step] = y0;
		if (r1 < rows)
			y[r1 * y_step] = y1;
	}
}

__device__ __forceinline__ bool
air_small(const air_body<AIR_OP_softmax> *, const void *params,
	  const air_operands *ops, uint32_t lanes, uint32_t variant, void *)
{
	const air_row_params &p = *(const air_row_params *)params;
	uint32_t dtype = variant / 16;

	if (dtype == AIRUNNER_BF16)
		air_small_softmax<__nv_bfloat16>(p, *ops, lanes);
	else if (dtype == AIRUNNER_F16)
		air_small_softmax<__half>(p, *ops, lanes);
	else
		air_small_softmax<float>(p, *ops, lanes);
	return true;
}

#endif /* AIR_RES_SOFTMAX_CUH */
