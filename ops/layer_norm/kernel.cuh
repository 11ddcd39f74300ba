/* SPDX-License-Identifier: MIT */
#ifndef AIR_LAYER_NORM_CUH
#define AIR_LAYER_NORM_CUH

#include "ops/cuda/rowwise.cuh"

template <class T> struct air_layer_norm {
	static constexpr bool weighted = true;
	static constexpr bool biased = true;
	/* 16 bits cannot tell whether the product was rounded before the sum */
	static constexpr bool exact = sizeof(T) == 4;
	struct stats {
		float scale;
		float shift;	/* exact: to be added before */
	};

	template <class ROW>
	static __device__ __forceinline__ stats measure(ROW &row,
							const air_row_params &p)
	{
		float2 all = row.team.join(row.moments(), air_sum2());
		float n = (float)p.length, part = 1.0f / n;
		/* divided: the mean of equal elements is to be that element */
		float mean = all.x / n, scale;
		float variance = all.y * part - mean * mean;

		/*
		 * A mean of many times the deviation, or NaN: digits are lost.
		 * From the differences then. Whole warps: rows of a warp
		 * shuffle together.
		 */
		if (__any_sync(~0u, !(variance * n * 64.0f > all.y))) {
			float rest = row.sum([=](float v) {
				return (v - mean) * (v - mean);
			});

			variance = row.team.join({ rest, 0.0f },
						 air_sum2()).x * part;
		}
		scale = rsqrtf(variance + p.epsilon);
		return { scale, exact ? -mean : -mean * scale };
	}

	static __device__ __forceinline__ float finish(float x, const stats &s,
						       float w, float b)
	{
		x = exact ? (x + s.shift) * s.scale :
			    fmaf(x, s.scale, s.shift);
		return fmaf(x, w, b);
	}
};

/* Without a bias. */
template <class T> struct air_layer_norm_plain : air_layer_norm<T> {
	static constexpr bool biased = false;
};

template <>
struct air_body<AIR_OP_layer_norm> : air_row_float_body<air_layer_norm> {};

#endif /* AIR_LAYER_NORM_CUH */
