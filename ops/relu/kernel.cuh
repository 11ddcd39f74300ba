/* SPDX-License-Identifier: MIT */
#ifndef AIR_RELU_CUH
#define AIR_RELU_CUH

#include "ops/cuda/elementwise.cuh"

template <class T> struct air_relu : air_ew_unary<T> {
	static __device__ __forceinline__ float number(
		const air_ew_params &p, float a, float)
	{
		return air_max()(a, 0.0f);
	}
};

template <>
struct air_body<AIR_OP_relu> : air_ew_float_body<air_relu> {};

#endif /* AIR_RELU_CUH */
