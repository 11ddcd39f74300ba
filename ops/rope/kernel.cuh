/* SPDX-License-Identifier: MIT */
#ifndef AIR_ROPE_CUH
#define AIR_ROPE_CUH

#include "ops/cuda/device.cuh"
#include "ops/rope/params.h"

template <class T>
__device__ __forceinline__ float air_rope_table(const air_rope_params &p,
						uint64_t table, int64_t at)
{
	return p.table_f32 ? ((const float *)table)[at] :
			     air_float(((const T *)table)[at]);
}

/* Each thread a pair, or an element beyond the pairs. */
template <class T>
__device__ __forceinline__ void air_rope_body(const air_rope_params &p,
					      const air_operands &ops,
					      const air_part &part)
{
	uint64_t total = p.heads * p.units;

	for (uint64_t i = (uint64_t)part.block * part.threads + part.thread;
	     i < total; i += (uint64_t)part.blocks * part.threads) {
		uint64_t row = p.wide ? i / p.units :
					air_divide((uint32_t)i, p.by_units);
		int64_t k = (int64_t)(i - row * p.units);
		int64_t half = (int64_t)p.half, position = 0;
		const T *x = (const T *)ops.addr[1];
		T *y = (T *)ops.addr[0];

		for (uint32_t d = 0; d < p.ndim; d++) {
			uint64_t q = d + 1 == p.ndim ? 0 :
				     p.wide ? row / p.size[d] :
					      air_divide((uint32_t)row,
							 p.div[d]);
			int64_t at = (int64_t)(row - q * p.size[d]);

			y += at * p.y_stride[d];
			x += at * p.x_stride[d];
			position += at * p.p_stride[d];
			row = q;
		}
		if (k >= half) {
			k += half;
			y[k * p.y_step] = x[k * p.x_step];
			continue;
		}
		if (p.positions == 8)
			position = ((const int64_t *)ops.addr[4])[position];
		else if (p.positions)
			position = ((const int32_t *)ops.addr[4])[position];

		int64_t a = p.pairs ? 2 * k : k;
		int64_t b = p.pairs ? 2 * k + 1 : k + half;
		float c = NAN, s = NAN;

		if (position >= 0 && (uint64_t)position < p.limit) {
			c = air_rope_table<T>(p, ops.addr[2],
					      position * p.cos_p +
						      k * p.cos_k);
			s = air_rope_table<T>(p, ops.addr[3],
					      position * p.sin_p +
						      k * p.sin_k);
		}
		float u = air_float(x[a * p.x_step]);
		float v = air_float(x[b * p.x_step]);

		y[a * p.y_step] = air_from_float<T>(u * c - v * s);
		y[b * p.y_step] = air_from_float<T>(v * c + u * s);
	}
}

template <> struct air_body<AIR_OP_rope> {
	static __device__ __forceinline__ void run(uint32_t variant,
						   const void *params,
						   const air_operands &ops,
						   const air_part &part)
	{
		const air_rope_params &p = *(const air_rope_params *)params;

		if (variant == AIRUNNER_F32)
			air_rope_body<float>(p, ops, part);
		else if (variant == AIRUNNER_F16)
			air_rope_body<__half>(p, ops, part);
		else
			air_rope_body<__nv_bfloat16>(p, ops, part);
	}
};

#endif /* AIR_ROPE_CUH */
