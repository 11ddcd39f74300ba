/* SPDX-License-Identifier: MIT */
/*
 * Bodies of reductions. A reduction is a struct with
 *
 *	using in, out, acc;
 *	static acc identity();
 *	static acc load(in);
 *	static acc combine(acc, acc);
 *	static out store(acc);
 *	using many;		of any number of elements
 *	static many none();
 *	static void add(many &, acc);
 *	static acc total(const many &);
 *
 * Rows: the elements of a result lie together, or anyhow; some threads share
 * a result. Columns: results lie side by side; a thread has some of its own.
 */
#ifndef AIR_CUDA_REDUCE_CUH
#define AIR_CUDA_REDUCE_CUH

#include "ops/cuda/device.cuh"
#include "ops/cuda/reduce.h"

#define AIR_REDUCE_UNROLL 4

/* ------------------------------------------------------------ reductions */

/* What elements are summed up in. */
template <class T> struct air_acc { using type = int64_t; };
template <> struct air_acc<float> { using type = float; };
template <> struct air_acc<__half> { using type = float; };
template <> struct air_acc<__nv_bfloat16> { using type = float; };

__device__ __forceinline__ float air_acc_load(float x) { return x; }
__device__ __forceinline__ float air_acc_load(__half x) { return air_float(x); }
__device__ __forceinline__ float air_acc_load(__nv_bfloat16 x)
{
	return air_float(x);
}
template <class T> __device__ __forceinline__ int64_t air_acc_load(T x)
{
	return (int64_t)x;
}

template <class OUT> __device__ __forceinline__ OUT air_acc_store(float x)
{
	return air_from_float<OUT>(x);
}
template <class OUT> __device__ __forceinline__ OUT air_acc_store(int64_t x)
{
	return (OUT)x;
}

template <class ACC> struct air_sum_many {
	using many = ACC;
	static __device__ __forceinline__ many none(void) { return 0; }
	static __device__ __forceinline__ void add(many &m, ACC x) { m += x; }
	static __device__ __forceinline__ ACC total(many m) { return m; }
};

template <> struct air_sum_many<float> {
	using many = air_long_sum;
	static __device__ __forceinline__ many none(void)
	{
		return { 0.0f, 0.0f };
	}
	static __device__ __forceinline__ void add(many &m, float x)
	{
		m.add(x);
	}
	static __device__ __forceinline__ float total(const many &m)
	{
		return m.total();
	}
};

template <class OUT, class IN>
struct air_reduce_sum_of : air_sum_many<typename air_acc<IN>::type> {
	using in = IN;
	using out = OUT;
	using acc = typename air_acc<IN>::type;
	static __device__ __forceinline__ acc identity(void) { return 0; }
	static __device__ __forceinline__ acc load(IN x)
	{
		return air_acc_load(x);
	}
	static __device__ __forceinline__ acc combine(acc a, acc b)
	{
		return a + b;
	}
	static __device__ __forceinline__ out store(acc x)
	{
		return air_acc_store<OUT>(x);
	}
};

__device__ __forceinline__ float air_larger(float a, float b)
{
	return air_max()(a, b);
}
__device__ __forceinline__ int64_t air_larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

template <class T> struct air_reduce_max_of {
	using in = T;
	using out = T;
	using acc = typename air_acc<T>::type;
	using many = acc;
	static __device__ __forceinline__ acc identity(void)
	{
		if constexpr (sizeof(acc) == sizeof(float))
			return -INFINITY;
		else
			return INT64_MIN;
	}
	static __device__ __forceinline__ acc load(T x)
	{
		return air_acc_load(x);
	}
	static __device__ __forceinline__ acc combine(acc a, acc b)
	{
		return air_larger(a, b);
	}
	static __device__ __forceinline__ many none(void) { return identity(); }
	static __device__ __forceinline__ void add(many &m, acc x)
	{
		m = air_larger(m, x);
	}
	static __device__ __forceinline__ acc total(many m) { return m; }
	static __device__ __forceinline__ out store(acc x)
	{
		return air_acc_store<T>(x);
	}
};

/* ----------------------------------------------------------------- bodies */

/* Element offset of @i in x. */
__device__ __forceinline__ int64_t air_walk(const air_reduce_walk &w,
					    uint64_t i)
{
	int64_t off = 0;

	if (w.n == 1)
		return (int64_t)i * w.x[0];
	for (uint32_t d = 0; d < w.n; d++) {
		uint64_t q = d + 1 == w.n ? 0 :
			     w.wide ? i / w.size[d] :
				      air_divide((uint32_t)i, w.div[d]);

		off += (int64_t)(i - q * w.size[d]) * w.x[d];
		i = q;
	}
	return off;
}

__device__ __forceinline__ int64_t air_walk_y(const air_reduce_params &p,
					      uint64_t i)
{
	int64_t off = 0;

	if (p.kept.n == 1)
		return (int64_t)i * p.y[0];
	for (uint32_t d = 0; d < p.kept.n; d++) {
		uint64_t q = d + 1 == p.kept.n ? 0 :
			     p.kept.wide ? i / p.kept.size[d] :
					   air_divide((uint32_t)i,
						      p.kept.div[d]);

		off += (int64_t)(i - q * p.kept.size[d]) * p.y[d];
		i = q;
	}
	return off;
}

template <class R>
__device__ __forceinline__ void
air_reduce_emit(const air_reduce_params &p, const air_operands &ops,
		uint64_t job, typename R::acc x)
{
	if (p.split > 1)
		((typename R::acc *)ops.addr[AIR_WORKSPACE_ADDR])[job] = x;
	else
		((typename R::out *)ops.addr[0])[air_walk_y(p, job)] =
			R::store(x);
}

/* A job: @n elements from @x on, of one result or a part of one. */
template <class R> struct air_reduce_job {
	const typename R::in *x;
	uint64_t n;
};

/* @job beyond the last: of no elements, takes part in shuffles. */
template <class R>
__device__ __forceinline__ void
air_reduce_job_init(air_reduce_job<R> &j, const air_reduce_params &p,
		    const air_operands &ops, uint64_t job, uint64_t *begin)
{
	uint64_t chunk = 0;

	j.x = (const typename R::in *)ops.addr[1];
	if (job >= p.outer * p.split) {
		j.n = *begin = 0;
		return;
	}
	if (p.split > 1) {
		chunk = job / p.outer;
		job -= chunk * p.outer;
	}
	*begin = chunk * p.chunk;
	j.x += air_walk(p.kept, job);
	j.n = p.inner - *begin < p.chunk ? p.inner - *begin : p.chunk;
}

template <class R> struct air_combine {
	__device__ __forceinline__ typename R::acc
	operator()(typename R::acc a, typename R::acc b) const
	{
		return R::combine(a, b);
	}
};

template <class R>
__device__ __forceinline__ typename R::acc
air_reduce_team(const air_reduce_params &p, const air_part &part,
		typename R::acc s)
{
	if (p.lanes <= 32)
		return air_reduce_lanes(s, air_combine<R>(), p.lanes);
	return air_reduce_block(part, s, air_combine<R>(), R::identity());
}

template <class R, int V>
__device__ __forceinline__ typename R::acc
air_reduce_vector(const air_vec<typename R::in, V> &v)
{
	typename R::acc t[V];

	if constexpr (sizeof(typename R::in) == 2) {
		air_numbers(v, t);
	} else {
#pragma unroll
		for (int k = 0; k < V; k++)
			t[k] = R::load(v.v[k]);
	}
	/* a tree: one after the other they would wait for each other */
#pragma unroll
	for (int n = V / 2; n > 0; n /= 2)
#pragma unroll
		for (int k = 0; k < n; k++)
			t[k] = R::combine(t[k], t[k + n]);
	return t[0];
}

template <class R, int V, int N>
__device__ __forceinline__ typename R::acc
air_reduce_vectors(const air_vec<typename R::in, V> v[N])
{
	typename R::acc t[N];

#pragma unroll
	for (int k = 0; k < N; k++)
		t[k] = air_reduce_vector<R, V>(v[k]);
#pragma unroll
	for (int n = N / 2; n > 0; n /= 2)
#pragma unroll
		for (int k = 0; k < n; k++)
			t[k] = R::combine(t[k], t[k + n]);
	return t[0];
}

/*
 * Short rows, HOLD vectors a thread and up to a warp each: a thread has its
 * share of several rows, so that enough of memory is in flight, and teams side
 * by side have rows side by side.
 */
template <class R, int HOLD>
__device__ __forceinline__ void
air_reduce_rows_short(const air_reduce_params &p, const air_operands &ops,
		      const air_part &part)
{
	using in = typename R::in;
	constexpr int V = 16 / sizeof(in);
	constexpr int ROWS = AIR_REDUCE_UNROLL / HOLD;
	uint32_t teams = part.threads / p.lanes;
	uint32_t lane = part.thread & (p.lanes - 1);
	uint32_t mine = part.thread / p.lanes, vectors = p.inner / V;
	uint64_t step = (uint64_t)teams * ROWS;

	for (uint64_t base = part.block * step; base < p.outer;
	     base += part.blocks * step) {
		air_vec<in, V> v[ROWS][HOLD];
		typename R::acc s[ROWS];

#pragma unroll
		for (int r = 0; r < ROWS; r++) {
			uint64_t row = base + r * teams + mine;
			const in *x = (const in *)ops.addr[1];

			s[r] = R::identity();
			if (row >= p.outer)
				continue;
			x += (int64_t)row * p.kept.x[0];
#pragma unroll
			for (int h = 0; h < HOLD; h++)
				if (lane + h * p.lanes < vectors)
					v[r][h] = air_load_vec<in, V>(
						x + (lane + h * p.lanes) * V);
			/* what is less than a vector: there may be one lane */
			for (uint32_t i = vectors * V + lane; i < p.inner;
			     i += p.lanes)
				s[r] = R::combine(s[r], R::load(x[i]));
		}
#pragma unroll
		for (int r = 0; r < ROWS; r++) {
			if (base + r * teams + mine < p.outer)
#pragma unroll
				for (int h = 0; h < HOLD; h++)
					if (lane + h * p.lanes < vectors)
						s[r] = R::combine(
							s[r],
							air_reduce_vector<R, V>(
								v[r][h]));
			s[r] = air_reduce_lanes(s[r], air_combine<R>(),
						p.lanes);
		}
		if (lane)
			continue;
#pragma unroll
		for (int r = 0; r < ROWS; r++) {
			uint64_t row = base + r * teams + mine;

			if (row < p.outer)
				((typename R::out *)ops.addr[0])
					[(int64_t)row * p.y[0]] =
						R::store(s[r]);
		}
	}
}

/* Rows of vectors: all of a thread's in flight, or as many as it may have. */
template <class R>
__device__ __forceinline__ void
air_reduce_rows_long(const air_reduce_params &p, const air_operands &ops,
		     const air_part &part)
{
	using in = typename R::in;
	/* small elements are summed in a multiple of the room */
	constexpr int V = 16 / sizeof(in), U = sizeof(in) <= 2 ? 4 : 8;
	uint32_t teams = part.threads / p.lanes;
	uint32_t lane = p.lanes > 32 ? part.thread :
				       part.thread & (p.lanes - 1);
	uint64_t mine = p.lanes > 32 ? 0 : part.thread / p.lanes;
	uint64_t jobs = p.outer * p.split;

	/* all of a block go round together: lanes shuffle, blocks sync */
	for (uint64_t base = (uint64_t)part.block * teams; base < jobs;
	     base += (uint64_t)part.blocks * teams) {
		typename R::many m = R::none();
		typename R::acc s;
		air_reduce_job<R> job;
		uint64_t begin, n;

		air_reduce_job_init(job, p, ops, base + mine, &begin);
		job.x += begin;
		n = job.n / V;
		uint64_t i = lane;

		for (; i + (U - 1) * p.lanes < n; i += (uint64_t)p.lanes * U) {
			air_vec<in, V> v[U];

#pragma unroll
			for (int u = 0; u < U; u++)
				v[u] = air_load_vec<in, V>(
					job.x + (i + u * p.lanes) * V);
			R::add(m, air_reduce_vectors<R, V, U>(v));
		}
		if (i < n) {
			air_vec<in, V> v[U];

#pragma unroll
			for (int u = 0; u < U; u++)
				if (i + u * p.lanes < n)
					v[u] = air_load_vec<in, V>(
						job.x + (i + u * p.lanes) * V);
#pragma unroll
			for (int u = 0; u < U; u++)
				if (i + u * p.lanes < n)
					R::add(m,
					       air_reduce_vector<R, V>(v[u]));
		}
		/* what is less than a vector: there may be one lane */
		for (uint64_t i = n * V + lane; i < job.n; i += p.lanes)
			R::add(m, R::load(job.x[i]));
		s = air_reduce_team<R>(p, part, R::total(m));
		if (lane == 0 && base + mine < jobs)
			air_reduce_emit<R>(p, ops, base + mine, s);
	}
}

/*
 * Longer rows side by side, some teams a block: N vectors of a thread in
 * flight, and little else to do than to add.
 */
template <class R, int V, int N>
__device__ __forceinline__ void
air_reduce_rows_line(const air_reduce_params &p, const air_operands &ops,
		     const air_part &part)
{
	using in = typename R::in;
	using acc = typename R::acc;
	acc *shared = (acc *)part.shared;
	uint32_t lanes = p.lanes, lane = part.thread & (lanes - 1);
	uint32_t teams = part.threads / lanes, warp = part.thread / 32;
	uint32_t warps = lanes / 32, vectors = (uint32_t)p.inner / V;

	for (uint64_t base = (uint64_t)part.block * teams; base < p.outer;
	     base += (uint64_t)part.blocks * teams) {
		uint64_t row = base + part.thread / lanes;
		const in *x = (const in *)ops.addr[1] +
			      (int64_t)row * p.kept.x[0];
		uint32_t n = row < p.outer ? vectors : 0, i = lane;
		typename R::many m = R::none();
		acc s;

		for (; i + (N - 1) * lanes < n; i += lanes * N) {
			air_vec<in, V> v[N];

#pragma unroll
			for (int k = 0; k < N; k++)
				v[k] = air_load_vec<in, V>(
					x + (uint64_t)(i + k * lanes) * V);
			R::add(m, air_reduce_vectors<R, V, N>(v));
		}
		for (; i < n; i += lanes)
			R::add(m, air_reduce_vector<R, V>(
					  air_load_vec<in, V>(
						  x + (uint64_t)i * V)));
		/* what is less than a vector */
		if (n && vectors * V + lane < p.inner)
			R::add(m, R::load(x[vectors * V + lane]));
		s = air_reduce_lanes(R::total(m), air_combine<R>());
		if (warps > 1) {
			uint32_t at = part.thread & 31;

			air_sync(part);
			if (at == 0)
				shared[warp] = s;
			air_sync(part);
			s = at < warps ? shared[warp / warps * warps + at] :
					 R::identity();
			s = air_reduce_lanes(s, air_combine<R>());
		}
		if (lane == 0 && row < p.outer)
			((typename R::out *)ops.addr[0])
				[(int64_t)row * p.y[0]] = R::store(s);
	}
}

/* Rows of elements that lie anyhow. */
template <class R>
__device__ __forceinline__ void
air_reduce_rows_any(const air_reduce_params &p, const air_operands &ops,
		    const air_part &part)
{
	using acc = typename R::acc;
	constexpr int U = AIR_REDUCE_UNROLL;
	uint32_t teams = part.threads / p.lanes;
	uint32_t lane = p.lanes > 32 ? part.thread :
				       part.thread & (p.lanes - 1);
	uint64_t mine = p.lanes > 32 ? 0 : part.thread / p.lanes;
	uint64_t jobs = p.outer * p.split;

	/* all of a block go round together: lanes shuffle, blocks sync */
	for (uint64_t base = (uint64_t)part.block * teams; base < jobs;
	     base += (uint64_t)part.blocks * teams) {
		typename R::many m = R::none();
		air_reduce_job<R> job;
		uint64_t begin;
		acc x;

		air_reduce_job_init(job, p, ops, base + mine, &begin);
		for (uint64_t i = lane; i < job.n;
		     i += (uint64_t)p.lanes * U) {
			acc t[U];

#pragma unroll
			for (int u = 0; u < U; u++) {
				uint64_t k = i + (uint64_t)u * p.lanes;

				t[u] = k < job.n ?
					       R::load(job.x[air_walk(
						       p.reduced, begin + k)]) :
					       R::identity();
			}
			R::add(m, R::combine(R::combine(t[0], t[1]),
					     R::combine(t[2], t[3])));
		}
		x = air_reduce_team<R>(p, part, R::total(m));
		if (lane == 0 && base + mine < jobs)
			air_reduce_emit<R>(p, ops, base + mine, x);
	}
}

template <class R>
__device__ __forceinline__ void air_reduce_rows(const air_reduce_params &p,
						const air_operands &ops,
						const air_part &part)
{
	if (!p.vector || ops.addr[1] % 16)
		air_reduce_rows_any<R>(p, ops, part);
	else if (p.hold == 1)
		air_reduce_rows_short<R, 1>(p, ops, part);
	else if (p.hold == 2)
		air_reduce_rows_short<R, 2>(p, ops, part);
	else if (p.hold == 4)
		air_reduce_rows_short<R, 4>(p, ops, part);
	else
		air_reduce_rows_long<R>(p, ops, part);
}

/*
 * Columns: AIR_REDUCE_ACROSS threads side by side, each with V neighbouring
 * results; the rows of threads below share the elements of those.
 */
template <class R, int V>
__device__ __forceinline__ void air_reduce_columns(const air_reduce_params &p,
						   const air_operands &ops,
						   const air_part &part)
{
	using in = typename R::in;
	using acc = typename R::acc;
	constexpr int U = AIR_REDUCE_UNROLL;
	const in *x = (const in *)ops.addr[1];
	acc(*shared)[V] = (acc(*)[V])part.shared;
	uint32_t across = part.thread % AIR_REDUCE_ACROSS;
	uint32_t down = part.thread / AIR_REDUCE_ACROSS;
	uint32_t deep = part.threads / AIR_REDUCE_ACROSS;
	uint64_t groups = p.outer / V;
	uint64_t tiles = (groups + AIR_REDUCE_ACROSS - 1) / AIR_REDUCE_ACROSS;

	for (uint64_t job = part.block; job < tiles * p.split;
	     job += part.blocks) {
		uint64_t chunk = job / tiles;
		uint64_t group = (job - chunk * tiles) * AIR_REDUCE_ACROSS +
				 across;
		uint64_t begin = chunk * p.chunk, end = begin + p.chunk;
		typename R::many m[V];
		acc s[V];

#pragma unroll
		for (int k = 0; k < V; k++)
			m[k] = R::none();
		if (end > p.inner)
			end = p.inner;
		if (group < groups) {
			const in *column = x + air_walk(p.kept, group * V);

			for (uint64_t i = begin + down; i < end;
			     i += (uint64_t)deep * U) {
				air_vec<in, V> v[U];

#pragma unroll
				for (int u = 0; u < U; u++)
					if (i + u * deep < end)
						v[u] = air_load_vec<in, V>(
							column +
							air_walk(p.reduced,
								 i + u * deep));
#pragma unroll
				for (int k = 0; k < V; k++) {
					acc t[U];

#pragma unroll
					for (int u = 0; u < U; u++)
						t[u] = i + u * deep < end ?
							R::load(v[u].v[k]) :
							R::identity();
					R::add(m[k], R::combine(
						R::combine(t[0], t[1]),
						R::combine(t[2], t[3])));
				}
			}
		}
#pragma unroll
		for (int k = 0; k < V; k++)
			s[k] = R::total(m[k]);
		/* the rows of threads, one after the other, into the first */
		for (uint32_t d = 1; d < deep; d++) {
			if (down == d)
#pragma unroll
				for (int k = 0; k < V; k++)
					shared[across][k] = s[k];
			air_sync(part);
			if (down == 0)
#pragma unroll
				for (int k = 0; k < V; k++)
					s[k] = R::combine(s[k],
							  shared[across][k]);
			air_sync(part);
		}
		if (down == 0 && group < groups)
#pragma unroll
			for (int k = 0; k < V; k++)
				air_reduce_emit<R>(p, ops,
						   chunk * p.outer +
							   group * V + k,
						   s[k]);
	}
}

template <class R>
__device__ __forceinline__ void
air_reduce_body(uint32_t how, const air_reduce_params &p,
		const air_operands &ops, const air_part &part)
{
	constexpr int V = 16 / sizeof(typename R::in);

	if (how == AIR_REDUCE_ROWS)
		air_reduce_rows<R>(p, ops, part);
	else if (V <= 8 && p.vector && ops.addr[1] % 16 == 0)
		air_reduce_columns<R, V <= 8 ? V : 1>(p, ops, part);
	else
		air_reduce_columns<R, 1>(p, ops, part);
}

/* What the parts of split results add up to. */
template <class R>
__device__ __forceinline__ void air_reduce_finish(const air_reduce_params &p,
						  const air_operands &ops,
						  const air_part &part)
{
	using acc = typename R::acc;
	const acc *parts = (const acc *)ops.addr[AIR_WORKSPACE_ADDR];
	uint32_t warp = part.thread / 32, lane = part.thread % 32;
	uint32_t warps = part.threads / 32;

	for (uint64_t r = (uint64_t)part.block * warps + warp; r < p.outer;
	     r += (uint64_t)part.blocks * warps) {
		typename R::many m = R::none();
		acc s;

		for (uint64_t k = lane; k < p.split; k += 32)
			R::add(m, parts[k * p.outer + r]);
		s = air_reduce_lanes(R::total(m), air_combine<R>());
		if (lane == 0)
			((typename R::out *)ops.addr[0])[air_walk_y(p, r)] =
				R::store(s);
	}
}

#define AIR_REDUCE_KERNEL(name, suffix, how, R, blocks)                      \
	extern "C" __global__ void __launch_bounds__(256, blocks)            \
		name##_##suffix(const __grid_constant__ air_reduce_params p, \
				const __grid_constant__ air_operands ops)    \
	{                                                                    \
		__shared__ uint64_t shared[AIR_SHARED_MIN / 8];              \
		air_reduce_body<R>(how, p, ops, air_part_launched(shared));  \
	}

/* Rows that a thread has a few vectors of: many threads hide the latency. */
#define AIR_REDUCE_SHORT_KERNEL(name, R)                                     \
	extern "C" __global__ void __launch_bounds__(256, 5)                 \
		name##_SHORT(const __grid_constant__ air_reduce_params p,    \
			     const __grid_constant__ air_operands ops)       \
	{                                                                    \
		__shared__ uint64_t shared[AIR_SHARED_MIN / 8];              \
		air_part part = air_part_launched(shared);                   \
\
		if (ops.addr[1] % 16)                                        \
			air_reduce_rows_any<R>(p, ops, part);                \
		else if (p.hold == 1)                                        \
			air_reduce_rows_short<R, 1>(p, ops, part);           \
		else if (p.hold == 2)                                        \
			air_reduce_rows_short<R, 2>(p, ops, part);           \
		else                                                         \
			air_reduce_rows_short<R, 4>(p, ops, part);           \
	}

/* Vectors in flight: what a block more a multiprocessor is worth differs. */
#define AIR_REDUCE_LINE_KERNEL(name, R)                                      \
	extern "C" __global__ void __launch_bounds__(256, 4)                 \
		name##_LINE(const __grid_constant__ air_reduce_params p,     \
			    const __grid_constant__ air_operands ops)        \
	{                                                                    \
		constexpr int size = sizeof(R::in), N = size == 2 ? 8 : 4;   \
		__shared__ uint64_t shared[AIR_SHARED_MIN / 8];              \
		air_part part = air_part_launched(shared);                   \
\
		if (ops.addr[1] % 16)                                        \
			air_reduce_rows_line<R, 1, N>(p, ops, part);         \
		else                                                         \
			air_reduce_rows_line<R, 16 / size, N>(p, ops, part); \
	}

/* R must be a name without commas. */
#define AIR_REDUCE_KERNELS(name, R)                                          \
	AIR_REDUCE_SHORT_KERNEL(name, R)                                     \
	AIR_REDUCE_LINE_KERNEL(name, R)                                      \
	AIR_REDUCE_KERNEL(name, ROWS, AIR_REDUCE_ROWS, R, 3)                 \
	AIR_REDUCE_KERNEL(name, COLUMNS, AIR_REDUCE_COLUMNS, R, 3)           \
	extern "C" __global__ void __launch_bounds__(256)                    \
		name##_FINISH(const __grid_constant__ air_reduce_params p,   \
			      const __grid_constant__ air_operands ops)      \
	{                                                                    \
		air_reduce_finish<R>(p, ops, air_part_launched(nullptr));    \
	}

#endif /* AIR_CUDA_REDUCE_CUH */
