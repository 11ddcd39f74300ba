/* SPDX-License-Identifier: MIT */
#ifndef AIR_GELU_CUH
#define AIR_GELU_CUH

#include "ops/cuda/elementwise.cuh"

__device__ __forceinline__ float air_gelu_f32(float x, bool approximate)
{
	if (approximate)
		return 0.5f * x *
		       (1.0f + tanhf(0.7978845608f *
				     (x + 0.044715f * x * x * x)));
	return 0.5f * x * (1.0f + erff(x * 0.7071067812f));
}

template <class T> struct air_gelu_any : air_ew_unary<T> {
	static __device__ __forceinline__ T apply(const air_ew_params &p,
						  T a, T)
	{
		return air_from_float<T>(air_gelu_f32(air_float(a),
						      p.scalar[0] != 0.0f));
	}
};

template <>
struct air_body<AIR_OP_gelu> : air_ew_float_body<air_gelu_any> {};

#endif /* AIR_GELU_CUH */
