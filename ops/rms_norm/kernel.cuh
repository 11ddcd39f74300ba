/* SPDX-License-Identifier: MIT */
#ifndef AIR_RMS_NORM_CUH
#define AIR_RMS_NORM_CUH

#include "ops/cuda/rowwise.cuh"

template <class T> struct air_rms_norm {
	static constexpr bool weighted = true;
	static constexpr bool biased = false;
	struct stats {
		float scale;
	};

	template <class ROW>
	static __device__ __forceinline__ stats measure(ROW &row,
							const air_row_params &p)
	{
		float2 all = row.team.join(
			{ row.sum([](float v) { return v * v; }), 0.0f },
			air_sum2());

		return { rsqrtf(all.x * (1.0f / (float)p.length) + p.epsilon) };
	}

	static __device__ __forceinline__ float finish(float x, const stats &s,
						       float w, float)
	{
		return x * s.scale * w;
	}
};

template <>
struct air_body<AIR_OP_rms_norm> : air_row_float_body<air_rms_norm> {};

#endif /* AIR_RMS_NORM_CUH */
