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
		float n = (float)p.length;
		float mean = row.sum([](float v) { return v; }) / n;
		/* from the differences: a large mean does not spoil it */
		float variance = row.sum([=](float v) {
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
