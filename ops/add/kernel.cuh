/* SPDX-License-Identifier: MIT */
#ifndef AIR_ADD_CUH
#define AIR_ADD_CUH

#include "ops/cuda/elementwise.cuh"

template <class T> struct air_add : air_ew_binary<T> {
	static __device__ __forceinline__ float number(
		const air_ew_params &p, float a, float b)
	{
		return a + b;
	}
};

template <>
struct air_body<AIR_OP_add> : air_ew_float_body<air_add> {};

#endif /* AIR_ADD_CUH */
