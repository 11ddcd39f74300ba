/* SPDX-License-Identifier: MIT */
/*
 * One row times a matrix that is dense along k, 16-bit floats: what most of a
 * token's time is. It is part of the kernel itself: functions save and restore
 * most of the registers that this one needs, which takes half a microsecond.
 *
 * All threads of a block have a piece of k each, the same for all of the
 * block's columns, so that a row's elements are read once.
 */
#ifndef AIR_RES_GEMV_CUH
#define AIR_RES_GEMV_CUH

#include "ops/matmul/params.h"
#include "ops/worker/resident/body.cuh"
#include "ops/worker/resident/memory.cuh"

/* Columns whose sums are taken together; a power of two. */
#define AIR_GEMV_COLUMNS 8
/* ... and that are read together: the others are on their way meanwhile. */
#define AIR_GEMV_HALF  (AIR_GEMV_COLUMNS / 2)
#define AIR_GEMV_WARPS (AIR_RES_WORKERS / 32)
/* Bytes a cycle that a block reads ahead: the memory is not for it alone. */
#define AIR_GEMV_PACE 24

/* Columns that go to the second-level cache after those read ahead. */
#define AIR_GEMV_AHEAD 8

/* What is multiplied is there: what is read ahead need not be held back. */
static __shared__ volatile uint32_t air_gemv_going;

/* Columns of a block. */
struct air_gemv_share {
	uint32_t first, end;
};

/*
 * Blocks differ by one column at most, but for the first: that one has @less
 * columns less, or none.
 */
__device__ __forceinline__ air_gemv_share
air_gemv_share_of(const air_matmul_params &p, uint32_t block, uint32_t blocks,
		  uint32_t less)
{
	uint32_t n = (uint32_t)p.n + less, each = n / blocks;
	uint32_t more = n - each * blocks;
	uint32_t first = each * block + (block < more ? block : more);
	uint32_t end = first + each + (block < more);

	return { first > less ? first - less : 0, end > less ? end - less : 0 };
}

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

/* A thread's part of some columns: J vectors of each. */
template <class T, int J> struct air_gemv_columns {
	static constexpr int V = 16 / sizeof(T);
	air_vec<T, V> v[AIR_GEMV_HALF][J];

	/* The @i-th of them, which is column @c, if that is below @end. */
	__device__ __forceinline__ void load_one(int i, const T *b,
						 int64_t step, uint32_t c,
						 uint32_t end)
	{
#pragma unroll
		for (int j = 0; j < J; j++)
			if (c < end)
				v[i][j] = air_load_vec<T, V>(
					b + (int64_t)c * step +
					j * AIR_RES_WORKERS * V);
	}

	/* from column @c on, those below @end */
	__device__ __forceinline__ void load(const T *b, int64_t step,
					     uint32_t c, uint32_t end)
	{
#pragma unroll
		for (int i = 0; i < AIR_GEMV_HALF; i++)
			load_one(i, b, step, c + i, end);
	}

	/* The same, a column each @pace cycles, the first after @k of them. */
	__device__ __forceinline__ void load_paced(const T *b, int64_t step,
						   uint32_t c, uint32_t end,
						   uint64_t since,
						   uint32_t pace, uint32_t k)
	{
#pragma unroll
		for (int i = 0; i < AIR_GEMV_HALF; i++) {
			while (gpu_ticks() - since < (k + i) * pace &&
			       !air_gemv_going)
				;
			load_one(i, b, step, c + i, end);
		}
	}

	__device__ __forceinline__ void dot(const float (&x)[J][V], float *s)
	{
#pragma unroll
		for (int i = 0; i < AIR_GEMV_HALF; i++) {
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
	}
};

template <class T, int J>
__device__ __forceinline__ void
air_gemv_sums(const T *x_at, const T *b, int64_t step, const air_gemv_share &s,
	      float (*partial)[AIR_GEMV_WARPS], bool wait)
{
	constexpr int V = 16 / sizeof(T), C = AIR_GEMV_COLUMNS;
	uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
	air_gemv_columns<T, J> now = {}, then = {};
	air_vec<T, V> row[J];
	float x[J][V];

	x_at += threadIdx.x * V;
	b += threadIdx.x * V;
	if (wait) {
		const uint64_t since = gpu_ticks();
		const uint32_t pace = J * AIR_RES_WORKERS * 16 / AIR_GEMV_PACE;

		now.load_paced(b, step, s.first, s.end, since, pace, 0);
		then.load_paced(b, step, s.first + AIR_GEMV_HALF, s.end, since,
				pace, AIR_GEMV_HALF);
		air_go();
	} else {
		now.load(b, step, s.first, s.end);
		then.load(b, step, s.first + AIR_GEMV_HALF, s.end);
	}
#pragma unroll
	for (int j = 0; j < J; j++)
		row[j] = *(const air_vec<T, V> *)(x_at +
						  j * AIR_RES_WORKERS * V);
#pragma unroll
	for (int j = 0; j < J; j++)
		air_numbers(row[j], x[j]);
#pragma unroll 1
	for (uint32_t c = s.first; c < s.end; c += C) {
		float sums[C];

		now.dot(x, sums);
		now.load(b, step, c + C, s.end);
		then.dot(x, sums + AIR_GEMV_HALF);
		then.load(b, step, c + C + AIR_GEMV_HALF, s.end);

		float sum = air_gemv_sum(sums, lane);
		uint32_t mine = c + air_gemv_column(lane);

		if (lane % (32 / C) == 0 && mine < s.end)
			partial[mine - s.first][warp] = sum;
	}
}

template <class T>
__device__ __forceinline__ void
air_gemv_of(const air_res_plan *plan, const air_operands *ops, uint32_t block,
	    uint32_t blocks, void *shared, bool ahead)
{
	const air_matmul_params &p = *(const air_matmul_params *)plan->params;
	const air_part part = { block, blocks, threadIdx.x, AIR_RES_WORKERS,
				shared };
	float(*partial)[AIR_GEMV_WARPS] = (float(*)[AIR_GEMV_WARPS])shared;
	const T *x = (const T *)ops->addr[p.swapped ? 2 : 1];
	const T *b = (const T *)ops->addr[p.swapped ? 1 : 2];
	T *y = (T *)ops->addr[0];
	const int64_t step = p.b_n, y_step = p.y_n;
	/* the first block reads nothing ahead: it has other operators to do */
	const air_gemv_share all = air_gemv_share_of(
		p, block, blocks, ahead ? AIR_GEMV_COLUMNS : 0);
	air_gemv_share s = all;
	bool wait = ahead && block;

	/* more than once only where few blocks found room on the GPU */
#pragma unroll 1
	for (; s.first < all.end; s.first = s.end, wait = false) {
		s.end = all.end - s.first > AIR_RES_GEMV_COLUMNS
				? s.first + AIR_RES_GEMV_COLUMNS
				: all.end;
		if (s.first != all.first)
			air_sync(part);
		if (plan->gemv == 1)
			air_gemv_sums<T, 1>(x, b, step, s, partial, wait);
		else
			air_gemv_sums<T, 2>(x, b, step, s, partial, wait);
		air_sync(part);
		for (uint32_t c = s.first + threadIdx.x; c < s.end;
		     c += AIR_RES_WORKERS) {
			float sum = 0.0f;

#pragma unroll
			for (int w = 0; w < AIR_GEMV_WARPS; w++)
				sum += partial[c - s.first][w];
			y[c * y_step] = air_from_float<T>(sum);
		}
	}
	/* a block without a column is waited for as well */
	if (wait)
		air_go();
}

/*
 * By one thread, over and over until what is multiplied is there: in time, have
 * the memory bring what comes after the columns that are read ahead. @n: calls
 * that have done something.
 */
__device__ __forceinline__ void air_gemv_bring(const air_res_plan *plan,
					       const air_operands *ops,
					       uint32_t block, uint32_t blocks,
					       uint64_t since, uint32_t *n)
{
	const air_matmul_params &p = *(const air_matmul_params *)plan->params;
	const uint32_t bytes = (uint32_t)p.k * 2, at = AIR_GEMV_COLUMNS + *n;

	if (*n == AIR_GEMV_AHEAD ||
	    gpu_ticks() - since < at * (bytes / AIR_GEMV_PACE))
		return;

	const air_gemv_share s =
		air_gemv_share_of(p, block, blocks, AIR_GEMV_COLUMNS);

	if (s.first + at < s.end)
		fetch_ahead(ops->addr[p.swapped ? 1 : 2] +
				    (int64_t)(s.first + at) * p.b_n * 2,
			    bytes);
	++*n;
}

/*
 * By all working threads: share @block of @blocks of a plan with @gemv. @ahead:
 * what it multiplies may not be there yet; the matrix is.
 */
__device__ __forceinline__ void air_gemv(const air_res_plan *plan,
					 const air_operands *ops,
					 uint32_t block, uint32_t blocks,
					 void *shared, bool ahead)
{
	if (plan->variant ==
	    AIR_MATMUL_VARIANT(AIRUNNER_BF16, AIRUNNER_BF16, AIR_MATMUL_DOT))
		air_gemv_of<__nv_bfloat16>(plan, ops, block, blocks, shared,
					   ahead);
	else
		air_gemv_of<__half>(plan, ops, block, blocks, shared, ahead);
}

#endif /* AIR_RES_GEMV_CUH */
