/* SPDX-License-Identifier: MIT */
/*
 * One row times a matrix that is dense along k, 16-bit floats: what most of a
 * token's time is. All threads of a block have a piece of k each, the same for
 * all of the block's columns, so that a row's elements are read once and blocks
 * differ by one column at most.
 */
#ifndef AIR_RES_GEMV_CUH
#define AIR_RES_GEMV_CUH

#include "ops/matmul/kernel.cuh"
#include "ops/worker/resident/resident.h"

/* Columns at a time; a power of two. */
#define AIR_GEMV_COLUMNS 8
#define AIR_GEMV_WARPS	 (AIR_RES_WORKERS / 32)

/*
 * Sums over the lanes of a warp, of AIR_GEMV_COLUMNS numbers at once: each
 * exchange halves the numbers a lane has. Returns that of column
 * air_gemv_column(lane), in all of its four lanes.
 */
__device__ __forceinline__ float air_gemv_sum(float s[AIR_GEMV_COLUMNS],
					      uint32_t lane)
{
	int o = 16;

#pragma unroll
	for (int n = AIR_GEMV_COLUMNS / 2; n; n /= 2, o /= 2) {
		bool upper = lane & o;

#pragma unroll
		for (int i = 0; i < n; i++) {
			float give = upper ? s[i] : s[i + n];
			float keep = upper ? s[i + n] : s[i];

			s[i] = keep + __shfl_xor_sync(~0u, give, o);
		}
	}
	for (; o; o /= 2)
		s[0] += __shfl_xor_sync(~0u, s[0], o);
	return s[0];
}

__device__ __forceinline__ uint32_t air_gemv_column(uint32_t lane)
{
	return lane / (32 / AIR_GEMV_COLUMNS);
}

/* J: vectors of a column a thread has. */
template <class T, int J>
__device__ __forceinline__ void air_gemv(const air_matmul_params &p,
					 const air_operands &ops,
					 const air_part &part)
{
	constexpr int V = 16 / sizeof(T), C = AIR_GEMV_COLUMNS;
	air_matmul_problem<T, T> q(p, ops);
	float(*partial)[AIR_GEMV_WARPS] = (float(*)[AIR_GEMV_WARPS])part.shared;
	uint32_t lane = part.thread % 32, warp = part.thread / 32;
	uint32_t n = (uint32_t)p.n;
	uint32_t first = (uint32_t)((uint64_t)n * part.block / part.blocks);
	uint32_t end = (uint32_t)((uint64_t)n * (part.block + 1) / part.blocks);
	float x[J][V];

	q.select(0);
	const T *b = q.b_at(0, part.thread * V);
	const int64_t step = p.b_n;

#pragma unroll
	for (int j = 0; j < J; j++)
		air_numbers(*(const air_vec<T, V> *)q.a_at(
				    0, (part.thread + j * AIR_RES_WORKERS) * V),
			    x[j]);
	for (uint32_t c = first; c < end; c += C) {
		air_vec<T, V> v[C][J];
		float s[C];

#pragma unroll
		for (int i = 0; i < C; i++) {
			/* beyond the last one: that one again, in vain */
			int64_t at = (int64_t)min(c + i, end - 1) * step;

#pragma unroll
			for (int j = 0; j < J; j++)
				v[i][j] = air_load_vec<T, V>(
					b + at + j * AIR_RES_WORKERS * V);
		}
#pragma unroll
		for (int i = 0; i < C; i++) {
			s[i] = 0.0f;
#pragma unroll
			for (int j = 0; j < J; j++) {
				float w[V];

				air_numbers(v[i][j], w);
#pragma unroll
				for (int k = 0; k < V; k++)
					s[i] = fmaf(x[j][k], w[k], s[i]);
			}
		}

		float sum = air_gemv_sum(s, lane);
		uint32_t mine = c + air_gemv_column(lane);

		if (lane % (32 / C) == 0 && mine < end)
			partial[mine - first][warp] = sum;
	}
	air_sync(part);
	for (uint32_t c = first + part.thread; c < end; c += part.threads) {
		float sum = 0.0f;

#pragma unroll
		for (int w = 0; w < AIR_GEMV_WARPS; w++)
			sum += partial[c - first][w];
		q.store(0, c, sum);
	}
}

template <class T>
__device__ __forceinline__ bool air_gemv_of(const air_matmul_params &p,
					    const air_operands &ops,
					    const air_part &part)
{
	constexpr uint32_t piece = AIR_RES_WORKERS * 16 / sizeof(T);
	uint64_t most = AIR_RES_SHARED / sizeof(float) / AIR_GEMV_WARPS;

	if (p.m != 1 || p.batch != 1 || p.k % piece ||
	    (p.n + part.blocks - 1) / part.blocks > most || p.n < part.blocks)
		return false;
	switch (p.k / piece) {
	case 1:
		air_gemv<T, 1>(p, ops, part);
		return true;
	case 2:
		air_gemv<T, 2>(p, ops, part);
		return true;
	}
	return false;
}

/* False: it is something else. */
__device__ __forceinline__ bool
air_special(const air_body<AIR_OP_matmul> *, uint32_t variant,
	    const void *params, const air_operands &ops, const air_part &part)
{
	const air_matmul_params &p = *(const air_matmul_params *)params;

	if ((ops.addr[1] | ops.addr[2]) % 16)
		return false;
	if (variant ==
	    AIR_MATMUL_VARIANT(AIRUNNER_BF16, AIRUNNER_BF16, AIR_MATMUL_DOT))
		return air_gemv_of<__nv_bfloat16>(p, ops, part);
	if (variant ==
	    AIR_MATMUL_VARIANT(AIRUNNER_F16, AIRUNNER_F16, AIR_MATMUL_DOT))
		return air_gemv_of<__half>(p, ops, part);
	return false;
}

#endif /* AIR_RES_GEMV_CUH */
