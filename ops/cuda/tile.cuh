/* SPDX-License-Identifier: MIT */
/*
 * Products of matrices by tiles, for operands that are anywhere: matmul with
 * strides that no library takes, convolution as an implicit product.
 *
 * A problem is a struct with
 *
 *	using elem, acc;			of the operands; of the sums
 *	uint64_t m, n, k, batch;
 *	void select(uint64_t batch);		the one that is asked for next
 *	elem a(uint64_t row, uint64_t k);	both inside the matrix
 *	elem b(uint64_t column, uint64_t k);
 *	bool a_rows, b_columns;		which way neighbouring threads
 *					should go: true along rows (columns)
 *	bool a_dense(row, k), b_dense(...);	whether 8 elements along k from
 *					there are one aligned vector
 *	const elem *a_at(row, k), *b_at(...);	and where
 *	void store(uint64_t row, uint64_t column, acc);
 */
#ifndef AIR_CUDA_TILE_CUH
#define AIR_CUDA_TILE_CUH

#include <mma.h>
#include <type_traits>

#include "ops/cuda/activation.cuh"

#define AIR_TILE_THREADS 256

/* What products are summed up in. */
template <class T> struct air_acc_of { using type = float; };
template <> struct air_acc_of<int8_t> { using type = int32_t; };

/* --------------------------------------------- multiply and add, any type */

#define AIR_FMA_TILE 64
#define AIR_FMA_DEPTH 16
/* Shared memory: elements are at most 4 bytes. */
#define AIR_FMA_SHARED (2 * AIR_FMA_DEPTH * (AIR_FMA_TILE + 4) * 4)

__device__ __forceinline__ float air_mul_add(float a, float b, float c)
{
	return fmaf(a, b, c);
}
__device__ __forceinline__ int32_t air_mul_add(int32_t a, int32_t b, int32_t c)
{
	return (int32_t)((uint32_t)c + (uint32_t)(a * b));
}

template <class ACC, class T> __device__ __forceinline__ ACC air_widen(T x)
{
	return (ACC)air_float(x);
}
template <>
__device__ __forceinline__ int32_t air_widen<int32_t, int8_t>(int8_t x)
{
	return x;
}

/* Fill one operand's tile: [depth][tile], k outermost. */
template <class P, bool IS_A>
__device__ __forceinline__ void
air_fma_load(P &p, typename P::acc (*tile)[AIR_FMA_TILE + 4], uint64_t from,
	     uint64_t limit, uint64_t k0, uint32_t thread)
{
	using acc = typename P::acc;
	bool along = IS_A ? p.a_rows : p.b_columns;

#pragma unroll
	for (uint32_t i = thread; i < AIR_FMA_TILE * AIR_FMA_DEPTH;
	     i += AIR_TILE_THREADS) {
		uint32_t r = along ? i % AIR_FMA_TILE : i / AIR_FMA_DEPTH;
		uint32_t k = along ? i / AIR_FMA_TILE : i % AIR_FMA_DEPTH;
		acc v = 0;

		if (from + r < limit && k0 + k < p.k)
			v = air_widen<acc>(IS_A ? p.a(from + r, k0 + k) :
						  p.b(from + r, k0 + k));
		tile[k][r] = v;
	}
}

/* A long sum is one of short ones, each of so many tiles along k. */
#define AIR_FMA_SHORT 8

__device__ __forceinline__ void air_fma_flush(float (*s)[4],
					      air_long_sum (*sum)[4])
{
#pragma unroll
	for (int i = 0; i < 16; i++) {
		sum[i / 4][i % 4].add(s[i / 4][i % 4]);
		s[i / 4][i % 4] = 0.0f;
	}
}

template <class P>
__device__ __forceinline__ void air_tile_fma(P &p, const air_part &part)
{
	using acc = typename P::acc;
	acc(*a)[AIR_FMA_TILE + 4] = (acc(*)[AIR_FMA_TILE + 4])part.shared;
	acc(*b)[AIR_FMA_TILE + 4] = a + AIR_FMA_DEPTH;
	uint64_t tm = (p.m + AIR_FMA_TILE - 1) / AIR_FMA_TILE;
	uint64_t tn = (p.n + AIR_FMA_TILE - 1) / AIR_FMA_TILE;
	uint32_t x = part.thread % 16, y = part.thread / 16;

	for (uint64_t t = part.block; t < tm * tn * p.batch; t += part.blocks) {
		uint64_t rest = t / tn;
		uint64_t n0 = (t - rest * tn) * AIR_FMA_TILE;
		uint64_t q = rest / tm;
		uint64_t m0 = (rest - q * tm) * AIR_FMA_TILE;
		air_long_sum sum[4][4] = {};
		acc s[4][4] = {};
		uint32_t tiles = 0;

		p.select(q);
		for (uint64_t k0 = 0; k0 < p.k; k0 += AIR_FMA_DEPTH) {
			air_fma_load<P, true>(p, a, m0, p.m, k0, part.thread);
			air_fma_load<P, false>(p, b, n0, p.n, k0, part.thread);
			air_sync(part);
#pragma unroll
			for (int k = 0; k < AIR_FMA_DEPTH; k++) {
				acc u[4], v[4];

#pragma unroll
				for (int i = 0; i < 4; i++) {
					u[i] = a[k][y * 4 + i];
					v[i] = b[k][x * 4 + i];
				}
#pragma unroll
				for (int i = 0; i < 4; i++)
#pragma unroll
					for (int j = 0; j < 4; j++)
						s[i][j] = air_mul_add(
							u[i], v[j], s[i][j]);
			}
			air_sync(part);
			if constexpr (!std::is_same<acc, int32_t>::value) {
				if (++tiles % AIR_FMA_SHORT == 0)
					air_fma_flush(s, sum);
			}
		}
		if constexpr (!std::is_same<acc, int32_t>::value) {
			air_fma_flush(s, sum);
#pragma unroll
			for (int i = 0; i < 16; i++)
				s[i / 4][i % 4] = sum[i / 4][i % 4].total();
		}
#pragma unroll
		for (int i = 0; i < 4; i++)
#pragma unroll
			for (int j = 0; j < 4; j++)
				if (m0 + y * 4 + i < p.m &&
				    n0 + x * 4 + j < p.n)
					p.store(m0 + y * 4 + i, n0 + x * 4 + j,
						s[i][j]);
	}
}

/* --------------------------------------------- tensor cores, f16 and bf16 */

#define AIR_MMA_DEPTH 32
/* A row of a tile in shared memory; the pad spreads rows over the banks. */
#define AIR_MMA_PITCH (AIR_MMA_DEPTH + 8)
#define AIR_MMA_SHARED(bm, bn) (2 * ((bm) + (bn)) * AIR_MMA_PITCH * 2)

/* Eight elements along k of a row, zeros beyond the matrix. */
template <class P, bool IS_A>
__device__ __forceinline__ air_vec<typename P::elem, 8>
air_mma_fetch(P &p, uint64_t row, uint64_t limit, uint64_t k)
{
	using T = typename P::elem;
	air_vec<T, 8> v;

	if (row < limit && k + 8 <= p.k &&
	    (IS_A ? p.a_dense(row, k) : p.b_dense(row, k)))
		return air_load_vec<T, 8>(IS_A ? p.a_at(row, k) :
						 p.b_at(row, k));
#pragma unroll
	for (int i = 0; i < 8; i++)
		v.v[i] = row < limit && k + i < p.k ?
				 (IS_A ? p.a(row, k + i) : p.b(row, k + i)) :
				 air_from_float<T>(0.0f);
	return v;
}

template <class T>
__device__ __forceinline__ void air_mma_put(T *shared, const air_vec<T, 8> &v)
{
	*(air_vec<T, 8> *)shared = v;
}

/* Which vector of a tile of @rows thread number @i carries. */
__device__ __forceinline__ void air_mma_place(bool along, uint32_t i,
					      uint32_t rows, uint32_t *r,
					      uint32_t *k)
{
	*r = along ? i % rows : i / (AIR_MMA_DEPTH / 8);
	*k = (along ? i / rows : i % (AIR_MMA_DEPTH / 8)) * 8;
}

template <class P, int BM, int BN>
__device__ __forceinline__ void air_tile_mma(P &p, const air_part &part)
{
	namespace w = nvcuda::wmma;
	using T = typename P::elem;
	using vec = air_vec<T, 8>;
	constexpr int WM = BM / 2, WN = BN / 4; /* of one of the 8 warps */
	constexpr int FM = WM / 16, FN = WN / 16;
	constexpr int VA = BM * AIR_MMA_DEPTH / 8 / AIR_TILE_THREADS;
	constexpr int VB = BN * AIR_MMA_DEPTH / 8 / AIR_TILE_THREADS;
	T *shared = (T *)part.shared;
	uint32_t warp = part.thread / 32, lane = part.thread % 32;
	uint32_t wm = warp / 4 * WM, wn = warp % 4 * WN;
	uint64_t tm = (p.m + BM - 1) / BM, tn = (p.n + BN - 1) / BN;

	for (uint64_t t = part.block; t < tm * tn * p.batch; t += part.blocks) {
		w::fragment<w::accumulator, 16, 16, 16, float> s[FM][FN];
		uint64_t rest = t / tn, n0 = (t - rest * tn) * BN;
		uint64_t q = rest / tm, m0 = (rest - q * tm) * BM;
		vec va[VA], vb[VB];
		uint32_t turn = 0;

		auto fetch = [&](uint64_t k0) {
#pragma unroll
			for (int i = 0; i < VA; i++) {
				uint32_t r, k;

				air_mma_place(p.a_rows, part.thread +
						      i * AIR_TILE_THREADS,
					      BM, &r, &k);
				va[i] = air_mma_fetch<P, true>(p, m0 + r, p.m,
							       k0 + k);
			}
#pragma unroll
			for (int i = 0; i < VB; i++) {
				uint32_t r, k;

				air_mma_place(p.b_columns, part.thread +
						      i * AIR_TILE_THREADS,
					      BN, &r, &k);
				vb[i] = air_mma_fetch<P, false>(p, n0 + r, p.n,
								k0 + k);
			}
		};
		auto put = [&](T *a, T *b) {
#pragma unroll
			for (int i = 0; i < VA; i++) {
				uint32_t r, k;

				air_mma_place(p.a_rows, part.thread +
						      i * AIR_TILE_THREADS,
					      BM, &r, &k);
				air_mma_put(a + r * AIR_MMA_PITCH + k, va[i]);
			}
#pragma unroll
			for (int i = 0; i < VB; i++) {
				uint32_t r, k;

				air_mma_place(p.b_columns, part.thread +
						      i * AIR_TILE_THREADS,
					      BN, &r, &k);
				air_mma_put(b + r * AIR_MMA_PITCH + k, vb[i]);
			}
		};

		p.select(q);
#pragma unroll
		for (int i = 0; i < FM; i++)
#pragma unroll
			for (int j = 0; j < FN; j++)
				w::fill_fragment(s[i][j], 0.0f);
		if (p.k)
			fetch(0);
		for (uint64_t k0 = 0; k0 < p.k;
		     k0 += AIR_MMA_DEPTH, turn ^= 1) {
			T *a = shared + turn * (BM + BN) * AIR_MMA_PITCH;
			T *b = a + BM * AIR_MMA_PITCH;

			put(a, b);
			air_sync(part);
			if (k0 + AIR_MMA_DEPTH < p.k)
				fetch(k0 + AIR_MMA_DEPTH);
#pragma unroll
			for (int k = 0; k < AIR_MMA_DEPTH; k += 16) {
				w::fragment<w::matrix_a, 16, 16, 16, T,
					    w::row_major> fa[FM];
				w::fragment<w::matrix_b, 16, 16, 16, T,
					    w::col_major> fb[FN];

#pragma unroll
				for (int i = 0; i < FM; i++)
					w::load_matrix_sync(
						fa[i],
						a + (wm + i * 16) *
							    AIR_MMA_PITCH + k,
						AIR_MMA_PITCH);
#pragma unroll
				for (int j = 0; j < FN; j++)
					w::load_matrix_sync(
						fb[j],
						b + (wn + j * 16) *
							    AIR_MMA_PITCH + k,
						AIR_MMA_PITCH);
#pragma unroll
				for (int i = 0; i < FM; i++)
#pragma unroll
					for (int j = 0; j < FN; j++)
						w::mma_sync(s[i][j], fa[i],
							    fb[j], s[i][j]);
			}
		}
		/* the sums go out by way of shared memory, 16x16 a warp */
		air_sync(part);
		float *stage = (float *)part.shared + warp * 256;

#pragma unroll
		for (int i = 0; i < FM; i++)
#pragma unroll
			for (int j = 0; j < FN; j++) {
				w::store_matrix_sync(stage, s[i][j], 16,
						     w::mem_row_major);
				__syncwarp();
				for (uint32_t e = lane; e < 256; e += 32) {
					uint64_t r = m0 + wm + i * 16 + e / 16;
					uint64_t c = n0 + wn + j * 16 + e % 16;

					if (r < p.m && c < p.n)
						p.store(r, c, stage[e]);
				}
				__syncwarp();
			}
		air_sync(part);
	}
}

#endif /* AIR_CUDA_TILE_CUH */
