/* SPDX-License-Identifier: MIT */
#ifndef AIR_SILU_CUH
#define AIR_SILU_CUH

#include "ops/cuda/elementwise.cuh"

template <class T> struct air_silu : air_ew_unary<T> {
	static __device__ __forceinline__ float number(
		const air_ew_params &p, float x, float)
	{
		/* 16-bit types reach memory speed only without division */
		if constexpr (sizeof(T) == 2)
			return x * air_sigmoid_short(x);
		return x / (1.0f + expf(-x));
	}
};

template <>
struct air_body<AIR_OP_silu> : air_ew_float_body<air_silu> {};

#endif /* AIR_SILU_CUH */
