/* SPDX-License-Identifier: MIT */
#ifndef AIR_LAYER_NORM_CUH
#define AIR_LAYER_NORM_CUH

#include "ops/cuda/rowwise.cuh"

template <class T> struct air_layer_norm {
	static constexpr bool weighted = true;
	struct stats {
		float mean;
		float scale;
	};

	template <class ROW>
	static __device__ __forceinline__ stats measure(ROW &row,
							const air_row_params &p)
	{
		float n = (float)p.length, pivot = row.pivot(), squares;
		float mean = row.moments(pivot, &squares) / n;
		float variance = squares / n - mean * mean;

		mean += pivot;
		/*
		 * A pivot far from the mean, or NaN: digits are lost. From the
		 * differences then, which a large mean does not spoil. Whole
		 * warps: rows of a warp shuffle together.
		 */
		if (__any_sync(~0u, !(variance * n * 64.0f > squares)))
			variance = row.sum([=](float v) {
				return (v - mean) * (v - mean);
			}) / n;

		return { mean, 1.0f / sqrtf(variance + p.epsilon) };
	}

	static __device__ __forceinline__ float finish(float x, const stats &s,
						       float w, float b)
	{
		return (x - s.mean) * s.scale * w + b;
	}
};

template <>
struct air_body<AIR_OP_layer_norm> : air_row_float_body<air_layer_norm> {};

#endif /* AIR_LAYER_NORM_CUH */
