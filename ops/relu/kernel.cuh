/* SPDX-License-Identifier: MIT */
#ifndef AIR_RELU_CUH
#define AIR_RELU_CUH

#include "ops/cuda/elementwise.cuh"

template <class T> struct air_relu : air_ew_unary<T> {
	static __device__ __forceinline__ T apply(const air_ew_params &p,
						  T a, T)
	{
		return air_from_float<T>(air_max()(air_float(a), 0.0f));
	}
};

template <>
struct air_body<AIR_OP_relu> : air_ew_float_body<air_relu> {};

#endif /* AIR_RELU_CUH */
