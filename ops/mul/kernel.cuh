/* SPDX-License-Identifier: MIT */
#ifndef AIR_MUL_CUH
#define AIR_MUL_CUH

#include "ops/cuda/elementwise.cuh"

template <class T> struct air_mul : air_ew_binary<T> {
	static __device__ __forceinline__ float number(
		const air_ew_params &p, float a, float b)
	{
		return a * b;
	}
};

template <>
struct air_body<AIR_OP_mul> : air_ew_float_body<air_mul> {};

#endif /* AIR_MUL_CUH */
