/* SPDX-License-Identifier: MIT */
/*
 * Own kernels of matmul. cuBLASLt does what it does well; these do few rows
 * (which is reading a matrix as fast as memory goes), small products, and
 * layouts, types and epilogues it has not.
 */
#ifndef AIR_MATMUL_CUH
#define AIR_MATMUL_CUH

#include "ops/cuda/tile.cuh"
#include "ops/matmul/params.h"

template <class ACC> struct air_matmul_epilogue;

template <> struct air_matmul_epilogue<float> {
	template <class Y>
	static __device__ __forceinline__ Y apply(const air_matmul_params &p,
						  float x, const Y *c,
						  const Y *bias)
	{
		x *= p.alpha;
		if (p.beta != 0.0f)
			x += p.beta * air_float(*c);
		if (bias)
			x += air_float(*bias);
		return air_from_float<Y>(air_activate(p.activation, x));
	}
};

template <> struct air_matmul_epilogue<int32_t> {
	template <class Y>
	static __device__ __forceinline__ Y apply(const air_matmul_params &p,
						  int32_t v, const Y *c,
						  const Y *bias)
	{
		uint32_t x = (uint32_t)v;

		if (p.beta != 0.0f)
			x += (uint32_t)*c;
		if (bias)
			x += (uint32_t)*bias;
		if (p.activation == AIR_ACT_RELU && (int32_t)x < 0)
			x = 0;
		return (Y)x;
	}
};

template <class Y, class T> struct air_matmul_problem {
	using elem = T;
	using acc = typename air_acc_of<T>::type;
	const air_matmul_params &p;
	const air_operands &ops;
	uint64_t m, n, k, batch;
	bool a_rows, b_columns;
	Y *y;
	const T *pa, *pb;
	const Y *pc, *bias;

	__device__ __forceinline__ air_matmul_problem(
		const air_matmul_params &p_, const air_operands &ops_)
		: p(p_), ops(ops_), m(p_.m), n(p_.n), k(p_.k), batch(p_.batch)
	{
		a_rows = p.a_k != 1;
		b_columns = p.b_k != 1;
		bias = (const Y *)ops.addr[4];
	}

	__device__ __forceinline__ void select(uint64_t i)
	{
		int64_t oy = 0, oa = 0, ob = 0, oc = 0;

		for (uint32_t d = 0; d < p.n_batch; d++) {
			uint64_t q = d + 1 == p.n_batch ? 0 : i / p.size[d];
			int64_t at = (int64_t)(i - q * p.size[d]);

			oy += at * p.y[d];
			oa += at * p.a[d];
			ob += at * p.b[d];
			oc += at * p.c[d];
			i = q;
		}
		y = (Y *)ops.addr[0] + oy;
		pa = (const T *)ops.addr[p.swapped ? 2 : 1] + oa;
		pb = (const T *)ops.addr[p.swapped ? 1 : 2] + ob;
		pc = (const Y *)ops.addr[3] + oc;
	}

	__device__ __forceinline__ const T *a_at(uint64_t r, uint64_t i)
	{
		return pa + (int64_t)r * p.a_m + (int64_t)i * p.a_k;
	}
	__device__ __forceinline__ const T *b_at(uint64_t c, uint64_t i)
	{
		return pb + (int64_t)c * p.b_n + (int64_t)i * p.b_k;
	}
	__device__ __forceinline__ T a(uint64_t r, uint64_t i)
	{
		return *a_at(r, i);
	}
	__device__ __forceinline__ T b(uint64_t c, uint64_t i)
	{
		return *b_at(c, i);
	}
	__device__ __forceinline__ bool a_dense(uint64_t r, uint64_t i)
	{
		return p.a_k == 1 && (uint64_t)a_at(r, i) % 16 == 0;
	}
	__device__ __forceinline__ bool b_dense(uint64_t c, uint64_t i)
	{
		return p.b_k == 1 && (uint64_t)b_at(c, i) % 16 == 0;
	}

	__device__ __forceinline__ void store(uint64_t r, uint64_t c, acc x)
	{
		int64_t row = (int64_t)r, col = (int64_t)c;

		y[row * p.y_m + col * p.y_n] = air_matmul_epilogue<acc>::apply(
			p, x, pc + row * p.c_m + col * p.c_n,
			bias ? bias + row * p.bias_m + col * p.bias_n :
			       nullptr);
	}
};

/*
 * Few rows, b dense along k: a warp a column, each row of a at once. a is
 * small and stays in the first-level cache.
 */
template <class Y, class T>
__device__ __forceinline__ void air_matmul_dot(const air_matmul_params &p,
					       const air_operands &ops,
					       const air_part &part)
{
	constexpr int V = 16 / sizeof(T), U = 4;
	air_matmul_problem<Y, T> q(p, ops);
	uint32_t lane = part.thread % 32, warps = part.threads / 32;
	uint64_t vectors = p.k / V;

	for (uint64_t job = (uint64_t)part.block * warps + part.thread / 32;
	     job < p.n * p.batch; job += (uint64_t)part.blocks * warps) {
		uint64_t which = job / p.n, c = job - which * p.n;
		float s[AIR_MATMUL_FEW] = {};

		q.select(which);
		auto add = [&](const air_vec<T, V> &v, uint64_t at) {
#pragma unroll
			for (int r = 0; r < AIR_MATMUL_FEW; r++) {
				if (r >= p.m)
					break;
				air_vec<T, V> x = *(const air_vec<T, V> *)
							   q.a_at(r, at * V);
#pragma unroll
				for (int i = 0; i < V; i++)
					s[r] = fmaf(air_float(x.v[i]),
						    air_float(v.v[i]), s[r]);
			}
		};
		uint64_t i = lane;

		for (; i + (U - 1) * 32 < vectors; i += U * 32) {
			air_vec<T, V> v[U];

#pragma unroll
			for (int u = 0; u < U; u++)
				v[u] = air_load_vec<T, V>(
					q.b_at(c, (i + u * 32) * V));
#pragma unroll
			for (int u = 0; u < U; u++)
				add(v[u], i + u * 32);
		}
		for (; i < vectors; i += 32)
			add(air_load_vec<T, V>(q.b_at(c, i * V)), i);
#pragma unroll
		for (int r = 0; r < AIR_MATMUL_FEW; r++) {
			if (r >= p.m)
				break;
			s[r] = air_reduce_lanes(s[r], air_sum());
			if (lane == 0)
				q.store(r, c, s[r]);
		}
	}
}

/*
 * Few rows, b dense along n: each thread has 16 bytes of columns and sweeps
 * down some of the rows of b; the block adds up.
 */
template <class Y, class T>
__device__ __forceinline__ void air_matmul_sweep(const air_matmul_params &p,
						 const air_operands &ops,
						 const air_part &part)
{
	constexpr int V = 16 / sizeof(T), U = 8, A = AIR_MATMUL_SWEEP_ACROSS;
	air_matmul_problem<Y, T> q(p, ops);
	float *shared = (float *)part.shared;
	uint32_t across = part.thread % A, down = part.thread / A;
	uint32_t deep = part.threads / A;
	uint64_t tiles = (p.n / V + A - 1) / A;

	for (uint64_t job = part.block; job < tiles * p.batch;
	     job += part.blocks) {
		uint64_t which = job / tiles;
		uint64_t c = ((job - which * tiles) * A + across) * V;
		float s[AIR_MATMUL_FEW][V] = {};

		q.select(which);
		auto add = [&](const air_vec<T, V> &v, uint64_t i) {
#pragma unroll
			for (int r = 0; r < AIR_MATMUL_FEW; r++) {
				if (r >= p.m)
					break;
				float x = air_float(q.a(r, i));

#pragma unroll
				for (int k = 0; k < V; k++)
					s[r][k] = fmaf(x, air_float(v.v[k]),
						       s[r][k]);
			}
		};
		if (c < p.n) {
			uint64_t i = down;

			for (; i + (U - 1) * deep < p.k; i += U * deep) {
				air_vec<T, V> v[U];

#pragma unroll
				for (int u = 0; u < U; u++)
					v[u] = air_load_vec<T, V>(
						q.b_at(c, i + u * deep));
#pragma unroll
				for (int u = 0; u < U; u++)
					add(v[u], i + u * deep);
			}
			for (; i < p.k; i += deep)
				add(air_load_vec<T, V>(q.b_at(c, i)), i);
		}
		/*
		 * Lanes of a warp that share columns are A apart; what they
		 * have together goes to shared memory, one line a warp.
		 */
#pragma unroll
		for (int r = 0; r < AIR_MATMUL_FEW; r++) {
			if (r >= p.m)
				break;
#pragma unroll
			for (int k = 0; k < V; k++) {
				float x = s[r][k];

				for (uint32_t o = A; o < 32; o *= 2)
					x += __shfl_xor_sync(~0u, x, o);
				s[r][k] = x;
			}
			if (part.thread % 32 < A)
#pragma unroll
				for (int k = 0; k < V; k++)
					shared[(part.thread / 32 * A + across) *
						       V + k] = s[r][k];
			air_sync(part);
			if (part.thread < A * V) {
				uint64_t col = (job - which * tiles) * A * V +
					       part.thread;
				float x = 0.0f;

				for (uint32_t w = 0; w < part.threads / 32; w++)
					x += shared[w * A * V + part.thread];
				if (col < p.n)
					q.store(r, col, x);
			}
			air_sync(part);
		}
	}
}

template <class Y, class T>
__device__ __forceinline__ void
air_matmul_body(uint32_t how, const air_matmul_params &p,
		const air_operands &ops, const air_part &part)
{
	air_matmul_problem<Y, T> q(p, ops);

	if constexpr (sizeof(T) == 2) {
		if (how == AIR_MATMUL_MMA_64) {
			air_tile_mma<air_matmul_problem<Y, T>, 64, 64>(q, part);
			return;
		}
		if (how == AIR_MATMUL_MMA_128) {
			air_tile_mma<air_matmul_problem<Y, T>, 128, 128>(q,
									 part);
			return;
		}
	}
	if constexpr (sizeof(T) > 1) {
		/* vectors need what only the addresses tell */
		bool aligned = (ops.addr[1] | ops.addr[2]) % 16 == 0;

		if (how == AIR_MATMUL_DOT && aligned) {
			air_matmul_dot<Y, T>(p, ops, part);
			return;
		}
		if (how == AIR_MATMUL_SWEEP && aligned) {
			air_matmul_sweep<Y, T>(p, ops, part);
			return;
		}
	}
	air_tile_fma(q, part);
}

/*
 * A thread's elements of a matrix of @n columns, @step apart, as row and
 * column: divisions of 64 bits take longer than what is done with an element.
 */
struct air_matmul_walk {
	uint64_t r, c, n, rows, columns;

	__device__ __forceinline__ air_matmul_walk(uint64_t first,
						   uint64_t step, uint64_t n_)
		: n(n_)
	{
		r = first / n;
		c = first - r * n;
		rows = step / n;
		columns = step - rows * n;
	}

	__device__ __forceinline__ void next(void)
	{
		r += rows;
		c += columns;
		if (c >= n) {
			c -= n;
			r++;
		}
	}
};

/* y = activation(y), after the library. */
template <class Y>
__device__ __forceinline__ void air_matmul_activate(const air_matmul_params &p,
						    const air_operands &ops,
						    const air_part &part)
{
	uint64_t step = (uint64_t)part.blocks * part.threads;
	uint64_t first = (uint64_t)part.block * part.threads + part.thread;
	uint64_t which = 0;

	for (air_matmul_walk at(first, step, p.n);; at.next()) {
		while (at.r >= p.m && which < p.batch) {
			at.r -= p.m;
			which++;
		}
		if (which >= p.batch)
			return;
		Y *y = (Y *)ops.addr[0] + (int64_t)which * p.y[0] +
		       (int64_t)at.r * p.y_m + (int64_t)at.c * p.y_n;

		*y = air_from_float<Y>(air_activate(p.activation,
						    air_float(*y)));
	}
}

/*
 * Numbers of a row of y that are one access of 16 bytes, or one of them: what
 * comes of the product in f32.
 */
template <class Y, int N>
__device__ __forceinline__ void
air_matmul_finish_some(const air_matmul_params &p, const air_operands &ops,
		       uint32_t activation, const float x[N], uint64_t r,
		       uint64_t c)
{
	const Y *pc = (const Y *)ops.addr[3] + (int64_t)r * p.c_m;
	const Y *bias = (const Y *)ops.addr[4];
	Y *y = (Y *)ops.addr[0] + (int64_t)r * p.y_m + (int64_t)c * p.y_n;
	float v[N];

#pragma unroll
	for (int k = 0; k < N; k++) {
		int64_t at = (int64_t)c + k;

		v[k] = x[k] * p.alpha;
		if (p.beta != 0.0f)
			v[k] += p.beta * air_float(pc[at * p.c_n]);
		if (bias)
			v[k] += air_float(bias[at * p.bias_n]);
		v[k] = air_activate_as<Y>(activation, v[k]);
	}
	*(air_vec<Y, N> *)y = air_vec_from<Y, N>(v);
}

/* By vectors; two of a thread are in flight. */
template <class Y>
__device__ __forceinline__ void
air_matmul_finish_vectors(const air_matmul_params &p, const air_operands &ops,
			  const air_part &part, uint32_t activation)
{
	constexpr int N = 16 / sizeof(Y), U = 2;
	const float *x = (const float *)ops.addr[AIR_WORKSPACE_ADDR];
	uint64_t step = (uint64_t)part.blocks * part.threads;
	uint64_t first = (uint64_t)part.block * part.threads + part.thread;
	air_matmul_walk at(first, step, p.n / N);

	while (at.r < p.m) {
		float v[U][N];
		uint64_t r[U], c[U];

#pragma unroll
		for (int u = 0; u < U; u++) {
			r[u] = at.r;
			c[u] = at.c * N;
			at.next();
#pragma unroll
			for (int k = 0; k < N && r[u] < p.m; k += 4) {
				air_vec<float, 4> part_of =
					air_load_vec<float, 4>(
						x + r[u] * p.n + c[u] + k);

				memcpy(&v[u][k], &part_of, 16);
			}
		}
#pragma unroll
		for (int u = 0; u < U; u++)
			if (r[u] < p.m)
				air_matmul_finish_some<Y, N>(
					p, ops, activation, v[u], r[u], c[u]);
	}
}

/*
 * y = the epilogue of a product that is in scratch memory in f32, row after
 * row: of p.m rows, of the first of the batch. The usual activation is a
 * constant, or it would be asked for with every number.
 */
template <class Y>
__device__ __forceinline__ void air_matmul_finish(const air_matmul_params &p,
						  const air_operands &ops,
						  const air_part &part)
{
	constexpr int N = 16 / sizeof(Y);
	const float *x = (const float *)ops.addr[AIR_WORKSPACE_ADDR];
	bool vectors = p.n % N == 0 && p.y_n == 1 && p.y_m % N == 0 &&
		       ops.addr[0] % 16 == 0;
	uint64_t step = (uint64_t)part.blocks * part.threads;
	uint64_t first = (uint64_t)part.block * part.threads + part.thread;

	if (vectors && p.activation == AIR_ACT_SILU)
		air_matmul_finish_vectors<Y>(p, ops, part, AIR_ACT_SILU);
	else if (vectors)
		air_matmul_finish_vectors<Y>(p, ops, part, p.activation);
	else
		for (air_matmul_walk at(first, step, p.n); at.r < p.m;
		     at.next())
			air_matmul_finish_some<Y, 1>(p, ops, p.activation,
						     x + at.r * p.n + at.c,
						     at.r, at.c);
}

/* Of the resident kernel: what fits into its shared memory. */
template <> struct air_body<AIR_OP_matmul> {
	template <class Y, class T>
	static __device__ __forceinline__ void go(uint32_t how,
						  const void *params,
						  const air_operands &ops,
						  const air_part &part)
	{
		const air_matmul_params &p = *(const air_matmul_params *)params;

		if (how == AIR_MATMUL_MMA_128)
			how = AIR_MATMUL_MMA_64;
		air_matmul_body<Y, T>(how, p, ops, part);
	}

	static __device__ __forceinline__ void run(uint32_t variant,
						   const void *params,
						   const air_operands &ops,
						   const air_part &part)
	{
		uint32_t types = variant / 8, how = variant % 8;

		if (types == AIRUNNER_F32 * 8 + AIRUNNER_F32)
			go<float, float>(how, params, ops, part);
		else if (types == AIRUNNER_F16 * 8 + AIRUNNER_F16)
			go<__half, __half>(how, params, ops, part);
		else if (types == AIRUNNER_BF16 * 8 + AIRUNNER_BF16)
			go<__nv_bfloat16, __nv_bfloat16>(how, params, ops,
							 part);
	}
};

#endif /* AIR_MATMUL_CUH */
