/* SPDX-License-Identifier: MIT */
#ifndef AIR_SILU_CUH
#define AIR_SILU_CUH

#include "ops/cuda/activation.cuh"
#include "ops/cuda/elementwise.cuh"

template <class T> struct air_silu : air_ew_unary<T> {
	static __device__ __forceinline__ float number(const air_ew_params &,
						       float x, float)
	{
		return air_silu_as<T>(x);
	}
};

template <>
struct air_body<AIR_OP_silu> : air_ew_float_body<air_silu> {};

#endif /* AIR_SILU_CUH */
