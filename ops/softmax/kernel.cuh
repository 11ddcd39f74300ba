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

/* By what exponentials of differences to @max are too large beside @all. */
template <class T>
__device__ __forceinline__ float air_softmax_part(float max, float all)
{
	return max == all ? 1.0f : air_softmax_exp<T>(max - all);
}

/* Two largest elements, with sums of exponentials of differences to them. */
template <class T> struct air_softmax_join {
	__device__ __forceinline__ float2 nothing(void) const
	{
		return { -INFINITY, 0.0f };
	}
	__device__ __forceinline__ float2 operator()(float2 a, float2 b) const
	{
		float max = air_max()(a.x, b.x);

		return { max, a.y * air_softmax_part<T>(a.x, max) +
				      b.y * air_softmax_part<T>(b.x, max) };
	}
	/* of a warp */
	__device__ __forceinline__ float2 over(float2 x) const
	{
		float max = air_reduce_lanes(x.x, air_max());

		return { max, air_reduce_lanes(
				      x.y * air_softmax_part<T>(x.x, max),
				      air_sum()) };
	}
};

template <class T> struct air_softmax {
	static constexpr bool weighted = false;
	static constexpr bool biased = false;
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
		/* nothing but -Inf in this warp may have others beside it */
		float from = max == -INFINITY ? 0.0f : max;
		auto f = [=](float v) { return air_softmax_exp<T>(v - from); };
		float2 all;

		if constexpr (take)
			sum = row.replace(f);
		else
			sum = row.sum(f);
		all = row.team.join({ max, sum }, air_softmax_join<T>());
		return { all.x,
			 (take ? air_softmax_part<T>(max, all.x) : 1.0f) /
				 all.y,
			 take };
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
