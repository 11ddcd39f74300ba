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

/* What exponentials are of differences to: no Inf - Inf of -Inf alone. */
__device__ __forceinline__ float air_softmax_from(float max)
{
	return max == -INFINITY ? 0.0f : max;
}

/* Largest elements, with sums of exponentials of differences to them. */
template <class T> struct air_softmax_join {
	__device__ __forceinline__ float2 nothing(void) const
	{
		return { -INFINITY, 0.0f };
	}

	/* of a warp */
	__device__ __forceinline__ float2 over(float2 x) const
	{
		return all(&x, 1, 0);
	}

	/* of @n, which each thread of a warp sees */
	__device__ __forceinline__ float2 all(const float2 *x, uint32_t n) const
	{
		return all(x, n, threadIdx.x % 32);
	}

	__device__ __forceinline__ float2 all(const float2 *x, uint32_t n,
					      uint32_t first) const
	{
		float max = -INFINITY, sum = 0.0f, from;

		for (uint32_t i = first; i < n; i += 32)
			max = air_max()(max, x[i].x);
		max = air_reduce_lanes(max, air_max());
		from = air_softmax_from(max);
		for (uint32_t i = first; i < n; i += 32)
			sum += x[i].y * air_softmax_exp<T>(x[i].x - from);
		return { max, air_reduce_lanes(sum, air_sum()) };
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
		float from = air_softmax_from(max);
		auto f = [=](float v) { return air_softmax_exp<T>(v - from); };
		float2 all;

		if constexpr (take)
			sum = row.replace(f);
		else
			sum = row.sum(f);
		all = row.team.join({ max, sum }, air_softmax_join<T>());
		if constexpr (take)
			return { all.x,
				 air_softmax_exp<T>(max -
						    air_softmax_from(all.x)) /
					 all.y,
				 true };
		return { all.x, 1.0f / all.y, false };
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
