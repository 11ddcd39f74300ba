/* SPDX-License-Identifier: MIT */
#ifndef AIR_GELU_CUH
#define AIR_GELU_CUH

#include "ops/cuda/activation.cuh"
#include "ops/cuda/elementwise.cuh"

template <class T> struct air_gelu_any : air_ew_unary<T> {
	static __device__ __forceinline__ float number(
		const air_ew_params &p, float x, float)
	{
		return p.scalar[0] != 0.0f ? air_gelu_tanh_as<T>(x) :
					     air_gelu_as<T>(x);
	}
};

template <>
struct air_body<AIR_OP_gelu> : air_ew_float_body<air_gelu_any> {};

#endif /* AIR_GELU_CUH */
