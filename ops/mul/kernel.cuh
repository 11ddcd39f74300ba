/* SPDX-License-Identifier: MIT */
#ifndef AIR_MUL_CUH
#define AIR_MUL_CUH

#include "ops/cuda/elementwise.cuh"

template <class T> struct air_mul : air_ew_binary<T> {
	static __device__ __forceinline__ T apply(const air_ew_params &p,
						  T a, T b)
	{
		return air_from_float<T>(air_float(a) * air_float(b));
	}
};

template <>
struct air_body<AIR_OP_mul> : air_ew_float_body<air_mul> {};

#endif /* AIR_MUL_CUH */
