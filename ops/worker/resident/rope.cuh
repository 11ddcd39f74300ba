/* SPDX-License-Identifier: MIT */
/*
 * rope by vectors of pairs, both halves of a row, tokens of one position each:
 * one access each where the body that is ready for any shape has one an
 * element.
 */
#ifndef AIR_RES_ROPE_CUH
#define AIR_RES_ROPE_CUH

#include "ops/rope/kernel.cuh"
#include "ops/worker/resident/small.cuh"

/* @units: vectors of half a row; a power of two. */
template <class T>
__device__ __forceinline__ void air_small_rope(const air_rope_params &p,
					       const air_operands &ops,
					       uint32_t units)
{
	constexpr uint32_t V = 16 / sizeof(T);
	using vec = air_vec<T, V>;
	uint32_t total = (uint32_t)p.heads * units;
	uint32_t step = (uint32_t)p.p_stride[0], limit = (uint32_t)p.limit;
	uint32_t x_step = (uint32_t)p.x_stride[0] / V;
	uint32_t y_step = (uint32_t)p.y_stride[0] / V;
	uint32_t cos_p = (uint32_t)p.cos_p / V, sin_p = (uint32_t)p.sin_p / V;

#pragma unroll 1
	for (uint32_t i = threadIdx.x; i < total; i += AIR_RES_WORKERS) {
		uint32_t k = i & (units - 1), row = i >> (__ffs(units) - 1);
		uint32_t position = row * step;
		bool known = position < limit;
		const vec *x = (const vec *)ops.addr[1] + row * x_step + k;
		vec *y = (vec *)ops.addr[0] + row * y_step + k;
		const vec *cos = (const vec *)ops.addr[2] + k;
		const vec *sin = (const vec *)ops.addr[3] + k;
		const vec first = x[0], second = x[units];
		const vec cosines = known ? cos[position * cos_p] : first;
		const vec sines = known ? sin[position * sin_p] : first;
		float u[V], v[V], c[V], s[V];

		air_numbers(first, u);
		air_numbers(second, v);
		air_numbers(cosines, c);
		air_numbers(sines, s);
#pragma unroll
		for (uint32_t n = 0; n < V; n++) {
			float a = u[n], b = v[n];

			u[n] = known ? a * c[n] - b * s[n] : NAN;
			v[n] = known ? b * c[n] + a * s[n] : NAN;
		}
		y[0] = air_vec_from<T, V>(u);
		y[units] = air_vec_from<T, V>(v);
	}
}

__device__ __forceinline__ bool
air_small(const air_body<AIR_OP_rope> *, const void *params,
	  const air_operands *ops, uint32_t units, uint32_t variant, void *)
{
	const air_rope_params &p = *(const air_rope_params *)params;

	if (variant == AIRUNNER_BF16)
		air_small_rope<__nv_bfloat16>(p, *ops, units);
	else if (variant == AIRUNNER_F16)
		air_small_rope<__half>(p, *ops, units);
	else
		air_small_rope<float>(p, *ops, units);
	return true;
}

#endif /* AIR_RES_ROPE_CUH */
