/* SPDX-License-Identifier: MIT */
#ifndef AIR_SILU_CUH
#define AIR_SILU_CUH

#include "ops/cuda/elementwise.cuh"

template <class T> struct air_silu : air_ew_unary<T> {
	static __device__ __forceinline__ T apply(const air_ew_params &p,
						  T a, T)
	{
		float x = air_float(a);

		return air_from_float<T>(x / (1.0f + expf(-x)));
	}
};

template <>
struct air_body<AIR_OP_silu> : air_ew_float_body<air_silu> {};

#endif /* AIR_SILU_CUH */
