/* SPDX-License-Identifier: MIT */
/*
 * Copies whose operands are dense along different dimensions: tiles go through
 * shared memory, so that both sides are accessed in runs.
 */
#ifndef AIR_COPY_TRANSPOSE_CUH
#define AIR_COPY_TRANSPOSE_CUH

#include "ops/copy/transpose.h"
#include "ops/cuda/device.cuh"

template <class T>
__device__ __forceinline__ void
air_transpose_body(const air_transpose_params &p, const air_operands &ops,
		   const air_part &part)
{
	constexpr int N = AIR_TRANSPOSE_TILE;
	/* one more column: a column's elements are then in different banks */
	T(*tile)[N + 1] = (T(*)[N + 1])part.shared;
	uint32_t x = part.thread % N, y0 = part.thread / N;
	uint32_t rows = part.threads / N;

	for (uint64_t t = part.block; t < p.tiles; t += part.blocks) {
		uint64_t rest = t / p.tiles_w;
		uint64_t w0 = (t - rest * p.tiles_w) * N;
		uint64_t q = rest / p.tiles_h;
		uint64_t h0 = (rest - q * p.tiles_h) * N;
		const T *src = (const T *)ops.addr[1];
		T *dst = (T *)ops.addr[0];

		for (uint32_t d = 0; d < p.ndim; d++) {
			uint64_t next = q / p.size[d];
			int64_t at = (int64_t)(q - next * p.size[d]);

			src += at * p.x_stride[d];
			dst += at * p.y_stride[d];
			q = next;
		}
		/* x is dense along height: neighbouring threads go along it */
		for (uint32_t r = y0; r < N; r += rows)
			if (w0 + r < p.width && h0 + x < p.height)
				tile[r][x] = src[(int64_t)(w0 + r) *
							 p.x_width +
						 (int64_t)(h0 + x)];
		air_sync(part);
		for (uint32_t r = y0; r < N; r += rows)
			if (h0 + r < p.height && w0 + x < p.width)
				dst[(int64_t)(h0 + r) * p.y_height +
				    (int64_t)(w0 + x)] = tile[x][r];
		air_sync(part);
	}
}

#define AIR_TRANSPOSE_KERNEL(name, T)                                         \
	extern "C" __global__ void __launch_bounds__(256)                     \
		name(const __grid_constant__ air_transpose_params p,          \
		     const __grid_constant__ air_operands ops)                \
	{                                                                     \
		__shared__ T tile[AIR_TRANSPOSE_TILE *                        \
				  (AIR_TRANSPOSE_TILE + 1)];                  \
		air_transpose_body<T>(p, ops, air_part_launched(tile));       \
	}

#endif /* AIR_COPY_TRANSPOSE_CUH */
