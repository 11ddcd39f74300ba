/* SPDX-License-Identifier: MIT */
#ifndef AIR_SCALE_CUH
#define AIR_SCALE_CUH

#include "ops/cuda/elementwise.cuh"

template <class T> struct air_scale : air_ew_unary<T> {
	static __device__ __forceinline__ float number(
		const air_ew_params &p, float a, float)
	{
		return p.scalar[0] * a;
	}
};

template <>
struct air_body<AIR_OP_scale> : air_ew_float_body<air_scale> {};

#endif /* AIR_SCALE_CUH */
