/* SPDX-License-Identifier: MIT */
#ifndef AIR_SOFTMAX_CUH
#define AIR_SOFTMAX_CUH

#include "ops/cuda/rowwise.cuh"

/* The short exponential is wrong by more than f32 rounds, not f16 or bf16. */
template <class T> __device__ __forceinline__ float air_softmax_exp(float x)
{
	return __expf(x);
}

template <> __device__ __forceinline__ float air_softmax_exp<float>(float x)
{
	return expf(x);
}

template <class T> struct air_softmax {
	static constexpr bool weighted = false;
	struct stats {
		float max;
		float scale;
	};

	template <class ROW>
	static __device__ __forceinline__ stats measure(ROW &row,
							const air_row_params &)
	{
		float max = row.max();
		float sum = row.sum([=](float v) {
			return air_softmax_exp<T>(v - max);
		});

		return { max, 1.0f / sum };
	}

	static __device__ __forceinline__ float finish(float x, const stats &s,
						       float, float)
	{
		return air_softmax_exp<T>(x - s.max) * s.scale;
	}
};

template <>
struct air_body<AIR_OP_softmax> : air_row_float_body<air_softmax> {};

#endif /* AIR_SOFTMAX_CUH */
