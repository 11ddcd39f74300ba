/* SPDX-License-Identifier: MIT */
#ifndef AIR_SOFTMAX_CUH
#define AIR_SOFTMAX_CUH

#include "ops/cuda/rowwise.cuh"

/* The short exponential is wrong by more than f32 rounds, not f16 or bf16. */
template <class T> __device__ __forceinline__ float air_softmax_exp(float x)
{
	return air_exp_short(x);
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
		bool taken;	/* the row is exponentials already */
	};

	template <class ROW>
	static __device__ __forceinline__ stats measure(ROW &row,
							const air_row_params &)
	{
		/* the results of 16 bits would not be good enough to keep */
		constexpr bool take = ROW::stays && sizeof(T) == 4;
		float max = row.max(), sum;
		auto f = [=](float v) { return air_softmax_exp<T>(v - max); };

		if constexpr (take)
			sum = row.replace(f);
		else
			sum = row.sum(f);
		return { max, 1.0f / sum, take };
	}

	static __device__ __forceinline__ float finish(float x, const stats &s,
						       float, float)
	{
		return (s.taken ? x : air_softmax_exp<T>(x - s.max)) * s.scale;
	}
};

template <>
struct air_body<AIR_OP_softmax> : air_row_float_body<air_softmax> {};

#endif /* AIR_SOFTMAX_CUH */
