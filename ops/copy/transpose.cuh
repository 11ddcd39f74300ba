/* SPDX-License-Identifier: MIT */
/*
 * Copies whose operands are dense along different dimensions: tiles go through
 * shared memory, so that both sides are accessed in runs of 128 or 256 bytes,
 * by 16-byte vectors.
 *
 * A tile keeps x's vectors as they come. A thread gathers the elements of a
 * vector of y from as many lines. To keep those in different banks, vector c of
 * line w is at place c ^ (w / elements of a vector) of its line.
 */
#ifndef AIR_COPY_TRANSPOSE_CUH
#define AIR_COPY_TRANSPOSE_CUH

#include "ops/copy/transpose.h"
#include "ops/cuda/device.cuh"

template <class T> struct air_transpose_tile {
	static constexpr int side = AIR_TRANSPOSE_TILE(sizeof(T));
	static constexpr int width = 16 / sizeof(T);	/* of a vector */
	static constexpr int vectors = side / width;	/* of a line */
	using vec = air_vec<T, width>;
	vec at[side * vectors];

	__device__ __forceinline__ vec &place(uint32_t line, uint32_t c)
	{
		return at[line * vectors + (c ^ (line / width % vectors))];
	}
};

/* Elements @p[0 .. n-1] of a vector, 0 beyond. */
template <class T, int V>
__device__ __forceinline__ air_vec<T, V> air_transpose_some(const T *p,
							    uint64_t n)
{
	air_vec<T, V> v;

#pragma unroll
	for (int i = 0; i < V; i++)
		v.v[i] = i < n ? p[i] : T(0);
	return v;
}

template <class T>
__device__ __forceinline__ void
air_transpose_body(const air_transpose_params &p, const air_operands &ops,
		   const air_part &part)
{
	using tile_t = air_transpose_tile<T>;
	constexpr uint32_t N = tile_t::side, V = tile_t::width;
	constexpr uint32_t C = tile_t::vectors;
	constexpr uint32_t K = N * C / AIR_TRANSPOSE_THREADS;
	using vec = typename tile_t::vec;
	tile_t &tile = *(tile_t *)part.shared;
	bool whole = p.vector && (ops.addr[0] | ops.addr[1]) % 16 == 0;
	uint32_t warp = part.thread / 32, lane = part.thread % 32;

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
#pragma unroll
		for (uint32_t k = 0; k < K; k++) {
			uint32_t i = part.thread + k * AIR_TRANSPOSE_THREADS;
			uint64_t w = w0 + i / C, h = h0 + i % C * V;
			const T *from = src + (int64_t)w * p.x_width +
					(int64_t)h;
			vec &to = tile.place(i / C, i % C);

			if (w >= p.width || h >= p.height)
				continue;
			if (whole)
				air_copy_ahead(&to, from);
			else
				to = air_transpose_some<T, V>(from,
							      p.height - h);
		}
		air_copy_ahead_wait();
		air_sync(part);
		/* a warp has 8 vectors side by side, of 4 lines of y */
#pragma unroll
		for (uint32_t k = 0; k < K; k++) {
			uint32_t i = warp + k * (AIR_TRANSPOSE_THREADS / 32);
			uint32_t c = i % (C / 8) * 8 + lane % 8;
			uint32_t r = i / (C / 8) * 4 + lane / 8;
			uint64_t w = w0 + c * V, h = h0 + r;
			vec o;

#pragma unroll
			for (uint32_t j = 0; j < V; j++)
				o.v[j] = tile.place(c * V + j, r / V).v[r % V];
			if (h >= p.height || w >= p.width)
				continue;
			T *y = dst + (int64_t)h * p.y_height + (int64_t)w;

			/* lines of y are written in parts: not left to wait */
			if (whole)
				__stcs((uint4 *)y, *(const uint4 *)&o);
			else
#pragma unroll
				for (uint32_t j = 0; j < V; j++)
					if (w + j < p.width)
						y[j] = o.v[j];
		}
		air_sync(part);
	}
}

/* Five blocks: their tiles fill what shared memory there is. */
#define AIR_TRANSPOSE_KERNEL(name, T)                                        \
	extern "C" __global__ void                                           \
	__launch_bounds__(AIR_TRANSPOSE_THREADS, 5)                          \
		name(const __grid_constant__ air_transpose_params p,         \
		     const __grid_constant__ air_operands ops)               \
	{                                                                    \
		__shared__ air_transpose_tile<T> tile;                       \
		air_transpose_body<T>(p, ops, air_part_launched(&tile));     \
	}

#endif /* AIR_COPY_TRANSPOSE_CUH */
