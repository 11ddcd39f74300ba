/* SPDX-License-Identifier: MIT */
/*
 * Bodies of row operators. A row is read once and kept in registers while its
 * statistics are taken, the end of a long one in shared memory; only rows too
 * long for that are read again. Launched teams do one row and end: memory is
 * busy because other teams are at another stage. Where a row takes so many
 * threads that there are few others, they stay and ask for the next row first.
 *
 * An operator is a struct with
 *
 *	struct stats { ... };			what it knows of a row
 *	static stats measure(ROW &row);		from row.sum(f), row.max() and
 *						the like, which are of a warp,
 *						and row.team.join() of all
 *	static float finish(float x, const stats &s, float w, float b);
 *	static constexpr bool weighted, biased;	has weight, has bias
 */
#ifndef AIR_CUDA_ROWWISE_CUH
#define AIR_CUDA_ROWWISE_CUH

#include "ops/cuda/device.cuh"
#include "ops/cuda/rowwise.h"

/* ---------------------------------------------------- threads of one row */

__device__ __forceinline__ void air_cluster_sync(void)
{
#if __CUDA_ARCH__ >= 900
	asm volatile("barrier.cluster.arrive.aligned;\n\t"
		     "barrier.cluster.wait.aligned;" ::: "memory");
#endif
}

__device__ __forceinline__ float2 air_cluster_read(const float2 *mine,
						   uint32_t rank)
{
	float2 x = *mine;
#if __CUDA_ARCH__ >= 900
	uint32_t at = (uint32_t)__cvta_generic_to_shared(mine);

	asm volatile("{\n\t.reg .u32 peer;\n\t"
		     "mapa.shared::cluster.u32 peer, %2, %3;\n\t"
		     "ld.shared::cluster.v2.f32 {%0, %1}, [peer];\n\t}"
		     : "=f"(x.x), "=f"(x.y)
		     : "r"(at), "r"(rank)
		     : "memory");
#endif
	return x;
}

/* The threads that share a row. */
struct air_row_team {
	const air_part &part;
	uint32_t lanes, cluster;
	uint32_t lane;		/* of this thread, in the block */
	uint32_t rank;		/* of this block, in the cluster */
	uint32_t turn;
	bool spare;		/* takes part in shuffles, has no row */

	__device__ __forceinline__ air_row_team(const air_row_params &p,
						const air_part &part_)
		: part(part_), lanes(p.lanes), cluster(p.cluster), turn(0),
		  spare(false)
	{
		/* a block's threads need be no power of two */
		lane = lanes > 32 ? part.thread : part.thread & (lanes - 1);
		rank = part.block & (cluster - 1);
	}

	/* This thread among all of the team, and how many those are. */
	__device__ __forceinline__ uint32_t first(void) const
	{
		return rank * lanes + lane;
	}

	__device__ __forceinline__ uint32_t width(void) const
	{
		return lanes * cluster;
	}

	/* Of @accesses, where this thread's end. */
	__device__ __forceinline__ uint32_t end(uint32_t accesses) const
	{
		return accesses;
	}

	/* How many are in a warp; over those of this one. */
	__device__ __forceinline__ uint32_t in_warp(void) const
	{
		return lanes < 32 ? lanes : 32;
	}

	template <class OP>
	__device__ __forceinline__ float in_warp(float x, OP op) const
	{
		return air_reduce_lanes(x, op, in_warp());
	}

	/*
	 * Over all of them, from what each warp has. Slots in turns: a warp is
	 * past the barrier of the next call before any writes the slots of this
	 * one again.
	 */
	template <class OP>
	__device__ __forceinline__ float2 join(float2 z, OP op)
	{
		uint32_t at = part.thread % 32;
		float2 *slot;

		if (lanes <= 32)
			return z;
		slot = (float2 *)part.shared + (turn++ & 1) * 64;
		if (at == 0)
			slot[part.thread / 32] = z;
		air_sync(part);
		z = op.over(at < lanes / 32 ? slot[at] : op.nothing());
		if (cluster == 1)
			return z;
		if (part.thread == 0)
			slot[32] = z;
		air_cluster_sync();
		return op.over(at < cluster ? air_cluster_read(slot + 32, at) :
					      op.nothing());
	}
};

/* Element offset of row @r in an operand with these strides. */
__device__ __forceinline__ int64_t
air_row_offset_any(const air_row_params &p, uint64_t r, const int64_t *stride)
{
	int64_t off = 0;

	for (uint32_t d = 0; d < p.ndim; d++) {
		uint64_t q;
		int64_t at;

		if (d + 1 == p.ndim)
			q = 0;
		else if (p.wide)
			q = r / p.size[d];
		else
			q = air_divide((uint32_t)r, p.div[d]);
		at = (int64_t)(r - q * p.size[d]);
		off += at * stride[d];
		r = q;
	}
	return off;
}

__device__ __forceinline__ int64_t air_row_offset(const air_row_params &p,
						  uint64_t r,
						  const int64_t *stride)
{
	return p.ndim == 1 ? (int64_t)r * stride[0] :
			     air_row_offset_any(p, r, stride);
}

/* ----------------------------------------------------------------- a row */

/*
 * The policy of accesses that pass by the first-level cache, for the second:
 * treat their lines as any others. Kernels that write as much as they read need
 * it. Unasked, their lines are given up before all others. Those that earlier
 * kernels have left then stay, and the kernel has the rest of the cache only.
 * It takes up to 6 % longer.
 */
__device__ __forceinline__ uint64_t air_row_policy(void)
{
	uint64_t policy;

	asm("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;"
	    : "=l"(policy));
	return policy;
}

/*
 * What travels as one access. 16-bit numbers stay in pairs in their registers
 * until they are wanted: taken one by one, the compiler gives each a register
 * of its own as soon as it is loaded.
 */
template <class T, int V> struct air_row_vec {
	uint4 q;

	__device__ __forceinline__ void load(const T *p)
	{
		asm volatile("ld.global.L1::no_allocate.L2::cache_hint.v4.u32 {%0,%1,%2,%3}, [%4], %5;"
			     : "=r"(q.x), "=r"(q.y), "=r"(q.z), "=r"(q.w)
			     : "l"(p), "l"(air_row_policy()));
	}

	__device__ __forceinline__ void store(T *p) const { *(uint4 *)p = q; }

	/* And the first-level cache keeps what it has: the weights. */
	__device__ __forceinline__ void store_beside(T *p) const
	{
		asm volatile("st.global.L1::no_allocate.L2::cache_hint.v4.u32 [%0], {%1,%2,%3,%4}, %5;"
			     ::"l"(p), "r"(q.x), "r"(q.y), "r"(q.z), "r"(q.w),
			     "l"(air_row_policy())
			     : "memory");
	}

	/*
	 * Make the compiler forget what it knows of the value: it would like to
	 * convert 16-bit elements once and keep the results, which takes twice
	 * the registers and half the occupancy.
	 */
	__device__ __forceinline__ void opaque(void)
	{
		asm volatile("" : "+r"(q.x), "+r"(q.y), "+r"(q.z), "+r"(q.w));
	}

	__device__ __forceinline__ void numbers(float x[V]) const
	{
		air_vec<T, V> v;

		memcpy(&v, &q, 16);
		air_numbers(v, x);
	}

	__device__ __forceinline__ float max(void) const
	{
		air_vec<T, V> v;

		memcpy(&v, &q, 16);
		return air_vec_max(v);
	}

	__device__ __forceinline__ void set(const float x[V])
	{
		air_vec<T, V> v = air_vec_from<T, V>(x);

		memcpy(&q, &v, 16);
	}
};

template <class T> struct air_row_vec<T, 1> {
	T v;

	__device__ __forceinline__ void load(const T *p) { v = *p; }
	__device__ __forceinline__ void store(T *p) const { *p = v; }
	__device__ __forceinline__ void opaque(void) {}
	__device__ __forceinline__ void numbers(float x[1]) const
	{
		x[0] = air_float(v);
	}
	__device__ __forceinline__ float max(void) const
	{
		return air_float(v);
	}
	__device__ __forceinline__ void set(const float x[1])
	{
		v = air_from_float<T>(x[0]);
	}
};

/* V weights of type W, in accesses of 16 bytes. */
template <class W, int V> struct air_row_weights {
	static constexpr int E = 16 / sizeof(W);
	air_row_vec<W, E> v[V / E];

	/* Those that go with access @at of a row. */
	__device__ __forceinline__ void load(const W *p, uint32_t at)
	{
#pragma unroll
		for (int i = 0; i < V / E; i++)
			v[i].q = *(const uint4 *)(p + (uint64_t)at * V + i * E);
	}

	/* No @p: all are @otherwise. */
	__device__ __forceinline__ void load(const W *p, uint32_t at,
					     float otherwise)
	{
		float x[E];

#pragma unroll
		for (int i = 0; i < E; i++)
			x[i] = otherwise;
#pragma unroll
		for (int i = 0; i < V / E; i++)
			v[i].set(x);
		if (p)
			load(p, at);
	}

	__device__ __forceinline__ void numbers(float x[V])
	{
#pragma unroll
		for (int i = 0; i < V / E; i++) {
			v[i].opaque();
			v[i].numbers(x + i * E);
		}
	}
};

/*
 * In registers: N accesses of V elements, the k-th at (first + k * width) V.
 * MORE: what a thread has beyond those is in dynamic shared memory. No thread
 * reads another's there, so that nobody synchronises for it.
 */
template <class T, int V, int N, bool MORE = false, class TEAM = air_row_team>
struct air_row_held {
	using vec = air_row_vec<T, V>;
	static constexpr bool stays = true;
	static constexpr int held = N;
	TEAM &team;
	uint32_t first;		/* this thread's first access */
	uint32_t width;		/* from one of its accesses to the next */
	uint32_t end;		/* where they end */
	vec v[N];
	vec *more;

	__device__ __forceinline__ air_row_held(const air_row_params &p,
						TEAM &t, const T *row)
		: team(t)
	{
		first = t.first();
		width = t.width();
		end = t.end((uint32_t)(p.length / V));
		load(row);
		if constexpr (MORE) {
			extern __shared__ __align__(16) unsigned char rest[];

			more = (vec *)rest + t.lane;
			beyond([&](uint32_t at, vec *slot) {
				air_copy_ahead(slot,
					       row + (uint64_t)at * V);
			});
		}
	}

	__device__ __forceinline__ void load(const T *row)
	{
#pragma unroll
		for (int k = 0; k < N; k++)
			load(row, k);
	}

	__device__ __forceinline__ void load(const T *row, int k)
	{
		if (first + k * width < end)
			v[k].load(row + (uint64_t)(first + k * width) * V);
	}

	/*
	 * What @ahead holds. Each access is waited for by itself, and that of
	 * the row at @then, if there is one, goes out in its place: the memory
	 * is asked as evenly as it answers.
	 */
	__device__ __forceinline__ void take(air_row_held &ahead,
					     const T *then)
	{
#pragma unroll
		for (int k = 0; k < N; k++) {
			v[k] = ahead.v[k];
			v[k].opaque();
			if (then)
				ahead.load(then, k);
		}
	}

	/* f(access, place) for those in shared memory */
	template <class F> __device__ __forceinline__ void beyond(F f)
	{
		vec *slot = more;

		for (uint32_t at = first + N * width; at < end; at += width) {
			f(at, slot);
			slot += team.lanes;
		}
	}

	/* f(vector) for each of this thread's, which f may change. */
	template <class F> __device__ __forceinline__ void each(F f)
	{
#pragma unroll
		for (int k = 0; k < N; k++) {
			v[k].opaque();
			if (first + k * width < end)
				f(v[k]);
		}
		if constexpr (MORE) {
			air_copy_ahead_wait();
			beyond([&](uint32_t, vec *slot) { f(*slot); });
		}
	}

	template <class F> __device__ __forceinline__ float sum(F f)
	{
		float s = 0.0f;

		each([&](const vec &v) {
			float x[V];

			v.numbers(x);
#pragma unroll
			for (int i = 0; i < V; i++)
				s += f(x[i]);
		});
		return team.in_warp(s, air_sum());
	}

	/* Sums of the elements and of their squares. */
	__device__ __forceinline__ float2 moments(void)
	{
		float2 z = { 0.0f, 0.0f };

		each([&](const vec &v) {
			float x[V];

			v.numbers(x);
#pragma unroll
			for (int i = 0; i < V; i++) {
				z.x += x[i];
				z.y = fmaf(x[i], x[i], z.y);
			}
		});
		return air_sum2().over(z, team.in_warp());
	}

	/* The same as sum(), and f's results take the elements' places. */
	template <class F> __device__ __forceinline__ float replace(F f)
	{
		float s = 0.0f;

		each([&](vec &v) {
			float x[V];

			v.numbers(x);
#pragma unroll
			for (int i = 0; i < V; i++) {
				x[i] = f(x[i]);
				s += x[i];
			}
			v.set(x);
		});
		return team.in_warp(s, air_sum());
	}

	__device__ __forceinline__ float max(void)
	{
		float m = -INFINITY;

		each([&](const vec &v) { m = air_max()(m, v.max()); });
		return team.in_warp(m, air_max());
	}

	/*
	 * The place of access @k. Addresses are calculated when they are
	 * wanted: all at once, they take the registers of the row.
	 */
	__device__ __forceinline__ uint32_t place(int k) const
	{
		uint32_t at = first + k * width;

		asm volatile("" : "+r"(at));
		return at;
	}

	/* f(index, vector in, vector out) */
	template <class F> __device__ __forceinline__ void write(T *y, F f)
	{
		vec r;

		if (team.spare)
			return;
#pragma unroll
		for (int k = 0; k < N; k++) {
			uint32_t at = place(k);

			v[k].opaque();
			if (at < end) {
				f((uint64_t)at * V, v[k], r);
				r.store(y + (uint64_t)at * V);
			}
		}
		if constexpr (MORE)
			beyond([&](uint32_t at, vec *slot) {
				f((uint64_t)at * V, *slot, r);
				r.store(y + (uint64_t)at * V);
			});
	}

	/*
	 * f(vector in, weight, bias, vector out), with V numbers of each, which
	 * w(weight, access) and b(bias, access) fetch, of M vectors at once.
	 * Short rows need their weights often.
	 */
	template <class W, int M, class LOADW, class LOADB, class F>
	__device__ __forceinline__ void write(T *y, LOADW w, LOADB b, F f)
	{
		air_row_weights<W, V> wv[M], bv[M];
		vec r;

		if (team.spare)
			return;
#pragma unroll
		for (int j = 0; j < N; j += M) {
#pragma unroll
			for (int k = 0; k < M; k++) {
				uint32_t at = place(j + k);

				if (at >= end)
					continue;
				w(wv[k], at);
				b(bv[k], at);
			}
#pragma unroll
			for (int k = 0; k < M; k++) {
				uint32_t at = place(j + k);

				v[j + k].opaque();
				if (at >= end)
					continue;
				f(v[j + k], wv[k], bv[k], r);
				if constexpr (N > 4)
					r.store(y + (uint64_t)at * V);
				else
					r.store_beside(y + (uint64_t)at * V);
			}
		}
		if constexpr (MORE)
			beyond([&](uint32_t at, vec *slot) {
				w(wv[0], at);
				b(bv[0], at);
				f(*slot, wv[0], bv[0], r);
				r.store(y + (uint64_t)at * V);
			});
	}
};

/* Read again for each use, any strides. */
template <class T> struct air_row_loop {
	static constexpr bool stays = false;
	air_row_team &team;
	const T *x;
	int64_t step, y_step;
	uint64_t length;

	__device__ __forceinline__ air_row_loop(const air_row_params &p,
						air_row_team &t, const T *row)
		: team(t), x(row), step(p.x_step), y_step(p.y_step),
		  length(p.length)
	{
	}

	template <class F> __device__ __forceinline__ void each(F f)
	{
#pragma unroll 4
		for (uint64_t i = team.first(); i < length; i += team.width())
			f(air_float(x[(int64_t)i * step]));
	}

	template <class F> __device__ __forceinline__ float sum(F f)
	{
		float s = 0.0f;

		each([&](float v) { s += f(v); });
		return team.in_warp(s, air_sum());
	}

	__device__ __forceinline__ float2 moments(void)
	{
		float2 z = { 0.0f, 0.0f };

		each([&](float v) {
			z.x += v;
			z.y = fmaf(v, v, z.y);
		});
		return air_sum2().over(z, team.in_warp());
	}

	__device__ __forceinline__ float max(void)
	{
		float m = -INFINITY;

		each([&](float v) { m = air_max()(m, v); });
		return team.in_warp(m, air_max());
	}

	template <class F> __device__ __forceinline__ void write(T *y, F f)
	{
		if (team.spare)
			return;
		for (uint64_t i = team.first(); i < length; i += team.width()) {
			air_row_vec<T, 1> v = { x[(int64_t)i * step] }, r;

			f(i, v, r);
			y[(int64_t)i * y_step] = r.v;
		}
	}
};

/* --------------------------------------------------------- weight and bias */

/* One of them, of any type, anyhow. */
template <class T>
__device__ __forceinline__ float air_row_weight(uint64_t base, bool f32,
						int64_t step, uint64_t at,
						float otherwise)
{
	if (!base)
		return otherwise;
	if (f32)
		return ((const float *)base)[(int64_t)at * step];
	return air_float(((const T *)base)[(int64_t)at * step]);
}

/* Whether all there are of them are vectors: f32, or of the rows' own type. */
template <class T>
__device__ __forceinline__ bool air_row_has_weights(const air_row_params &p,
						    const air_operands &ops,
						    bool f32)
{
	uint64_t w = ops.addr[2], b = ops.addr[3];

	return (w | b) % 16 == 0 &&
	       (!w || (p.w_step == 1 && (p.w_f32 || sizeof(T) == 4) == f32)) &&
	       (!b || (p.b_step == 1 && (p.b_f32 || sizeof(T) == 4) == f32));
}

/* ----------------------------------------------------------------- bodies */

/* The results of @row to @y, with vectors of weights of type W by @w and @b. */
template <class OP, class T, class ROW, int V, class W, class LOADW,
	  class LOADB>
__device__ __forceinline__ void
air_row_write(const air_row_params &p, const air_operands &ops, ROW &row,
	      T *y, const typename OP::stats &s, LOADW w, LOADB b)
{
	using vec = air_row_vec<T, V>;

	if constexpr (V == 1) {
		row.write(y, [&](uint64_t at, const vec &v, vec &out) {
			float x, wx = 1.0f, bx = 0.0f;

			v.numbers(&x);
			if constexpr (OP::weighted)
				wx = air_row_weight<T>(ops.addr[2], p.w_f32,
						       p.w_step, at, 1.0f);
			if constexpr (OP::biased)
				bx = air_row_weight<T>(ops.addr[3], p.b_f32,
						       p.b_step, at, 0.0f);
			x = OP::finish(x, s, wx, bx);
			out.set(&x);
		});
	} else if constexpr (OP::weighted) {
		/* as many as there are registers for */
		constexpr int M = sizeof(W) > sizeof(T) || ROW::held > 4 ? 1 :
				  ROW::held > 2 && OP::biased		 ? 2 :
								   ROW::held;

		row.template write<W, M>(
			y, w, b,
			[&](const vec &v, air_row_weights<W, V> &wv,
			    air_row_weights<W, V> &bv, vec &out) {
				float x[V], wx[V], bx[V];

				v.numbers(x);
				wv.numbers(wx);
				if constexpr (OP::biased)
					bv.numbers(bx);
#pragma unroll
				for (int i = 0; i < V; i++)
					x[i] = OP::finish(
						x[i], s, wx[i],
						OP::biased ? bx[i] : 0.0f);
				out.set(x);
			});
	} else {
		row.write(y, [&](uint64_t, const vec &v, vec &out) {
			float x[V];

			v.numbers(x);
#pragma unroll
			for (int i = 0; i < V; i++)
				x[i] = OP::finish(x[i], s, 1.0f, 0.0f);
			out.set(x);
		});
	}
}

template <class T>
__device__ __forceinline__ const T *air_row_at(const air_row_params &p,
					       const air_operands &ops,
					       uint64_t number)
{
	return (const T *)ops.addr[1] + air_row_offset(p, number, p.x_stride);
}

template <class OP, class T, class ROW, int V, class W>
__device__ __forceinline__ void air_row_do(const air_row_params &p,
					   const air_operands &ops,
					   air_row_team &team, uint64_t r)
{
	/* before the row takes the registers that this may need */
	T *y = (T *)ops.addr[0] + air_row_offset(p, r, p.y_stride);
	ROW row(p, team, air_row_at<T>(p, ops, r));
	typename OP::stats s = OP::measure(row, p);

	air_row_write<OP, T, ROW, V, W>(
		p, ops, row, y, s,
		[&](auto &w, uint32_t at) {
			w.load((const W *)ops.addr[2], at, 1.0f);
		},
		[&](auto &b, uint32_t at) {
			b.load((const W *)ops.addr[3], at, 0.0f);
		});
}

template <class OP, class T, class ROW, int V, class W = T>
__device__ __forceinline__ void air_row_body(const air_row_params &p,
					     const air_operands &ops,
					     const air_part &part)
{
	air_row_team team(p, part);

	if (p.lanes <= 32) {
		uint32_t teams = part.threads / p.lanes;
		uint64_t step = (uint64_t)part.blocks * teams;

		/* whole warps go round together: their shuffles need all */
		for (uint64_t base = (uint64_t)part.block * teams;
		     base < p.rows; base += step) {
			uint64_t r = base + part.thread / p.lanes;

			team.spare = r >= p.rows;
			air_row_do<OP, T, ROW, V, W>(
				p, ops, team, team.spare ? p.rows - 1 : r);
		}
		return;
	}
	for (uint64_t r = part.block / p.cluster; r < p.rows;
	     r += part.blocks / p.cluster)
		air_row_do<OP, T, ROW, V, W>(p, ops, team, r);
	/* nobody leaves while others read its shared memory */
	if (p.cluster > 1)
		air_cluster_sync();
}

/* ------------------------------------------------------------- rows ahead */
#if __CUDA_ARCH__ >= 900

/*
 * What the warps of a cluster tell each other of a row, and the first of them
 * the others of the rows to come; in each block.
 */
struct air_row_met {
	float2 pair[2][AIR_ROW_AHEAD_WARPS];
	uint64_t barrier[3];
	uint32_t ticket;
};

/*
 * Threads that each have a piece of a row of their block's. Who has come to a
 * result tells all blocks and goes on: nobody waits for a block to be complete.
 */
struct air_row_far_team : air_row_team {
	air_row_met *met;
	uint32_t share;		/* accesses of a block */

	__device__ __forceinline__ air_row_far_team(const air_row_params &p,
						    const air_part &part_,
						    air_row_met *met_,
						    uint32_t accesses)
		: air_row_team(p, part_), met(met_)
	{
		share = (accesses + cluster - 1) / cluster;
		if (part.thread == 0)
			for (uint32_t i = 0; i < 3; i++)
				asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;"
					     ::"r"(bar(i)) : "memory");
		asm volatile("fence.mbarrier_init.release.cluster;" :::
			     "memory");
	}

	__device__ __forceinline__ uint32_t bar(uint32_t i) const
	{
		return (uint32_t)__cvta_generic_to_shared(&met->barrier[i]);
	}

	/* One thread of a block: barrier @i is complete with so many bytes. */
	__device__ __forceinline__ void expect(uint32_t i, uint32_t bytes) const
	{
		asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
			     ::"r"(bar(i)), "r"(bytes) : "memory");
	}

	__device__ __forceinline__ void wait(uint32_t i, uint32_t phase) const
	{
		asm volatile("{\n\t.reg .pred done;\n"
			     "again:\n\t"
			     "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;\n\t"
			     "@!done bra again;\n\t}"
			     ::"r"(bar(i)), "r"(phase) : "memory");
	}

	__device__ __forceinline__ uint32_t start(void) const
	{
		return rank * share;
	}

	__device__ __forceinline__ uint32_t first(void) const
	{
		return start() + lane;
	}

	__device__ __forceinline__ uint32_t width(void) const { return lanes; }

	__device__ __forceinline__ uint32_t end(uint32_t accesses) const
	{
		return min(start() + share, accesses);
	}

	/*
	 * Pairs in turns: nobody tells of the next row but one before all have
	 * told of the next, having read this one's.
	 */
	template <class OP>
	__device__ __forceinline__ float2 join(float2 z, OP op)
	{
		uint32_t at = part.thread % 32, warp = part.thread / 32;
		uint32_t warps = lanes / 32, all = warps * cluster;
		uint32_t i = turn & 1, phase = turn >> 1 & 1;
		const float2 *pair = met->pair[i];

		turn++;
		if (at < cluster) {
			uint32_t to = (uint32_t)__cvta_generic_to_shared(
				&pair[rank * warps + warp]);

			asm volatile("{\n\t.reg .u32 to, bar;\n\t"
				     "mapa.shared::cluster.u32 to, %0, %4;\n\t"
				     "mapa.shared::cluster.u32 bar, %1, %4;\n\t"
				     "st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [to], {%2, %3}, [bar];\n\t}"
				     ::"r"(to), "r"(bar(i)), "f"(z.x), "f"(z.y),
				     "r"(at) : "memory");
		}
		if (part.thread == 0)
			expect(i, all * 8);
		wait(i, phase);
		return op.all(pair, all);
	}

	/*
	 * Tickets of a counter that all clusters draw from. The word of a block
	 * is written again only when all warps have told of the next row: they
	 * have read it by then.
	 */
	__device__ __forceinline__ uint32_t draw(uint32_t *counter) const
	{
		if (part.thread == 0)
			expect(2, 4);
		return rank == 0 && part.thread == 0 ? atomicAdd(counter, 1) :
						       0;
	}

	/* What draw() returned, to all blocks; for announced(). */
	__device__ __forceinline__ void announce(uint32_t ticket) const
	{
		if (rank != 0 || part.thread >= 32)
			return;
		ticket = __shfl_sync(~0u, ticket, 0);
		if (part.thread < cluster)
			asm volatile("{\n\t.reg .u32 to, bar;\n\t"
				     "mapa.shared::cluster.u32 to, %0, %3;\n\t"
				     "mapa.shared::cluster.u32 bar, %1, %3;\n\t"
				     "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [to], %2, [bar];\n\t}"
				     ::"r"((uint32_t)__cvta_generic_to_shared(
					     &met->ticket)),
				     "r"(bar(2)), "r"(ticket),
				     "r"(part.thread) : "memory");
	}

	__device__ __forceinline__ uint32_t announced(uint32_t phase) const
	{
		wait(2, phase);
		return *(volatile uint32_t *)&met->ticket;
	}
};

#endif

/*
 * Out of line: side by side in one function, the bodies share what they
 * calculate, and keep it in registers that the row needs.
 */
template <class BODY>
__device__ __noinline__ void air_row_apart(const air_row_params &p,
					   const air_operands &ops,
					   air_part part)
{
	BODY::run(p, ops, part);
}

template <class OP, class T> struct air_row_loops {
	static __device__ __forceinline__ void run(const air_row_params &p,
						   const air_operands &ops,
						   const air_part &part)
	{
		air_row_body<OP, T, air_row_loop<T>, 1>(p, ops, part);
	}
};

/*
 * Vectors need aligned rows, which only the addresses tell, and weights that
 * are vectors as well: the host planned for them, LOOP is the way out.
 */
template <class OP, class T, template <class> class BODY>
__device__ __forceinline__ void air_row_with_weights(const air_row_params &p,
						     const air_operands &ops,
						     const air_part &part)
{
	constexpr bool f32 = sizeof(T) == 4;

	if ((ops.addr[0] | ops.addr[1]) % 16 == 0) {
		if (!OP::weighted || air_row_has_weights<T>(p, ops, f32)) {
			BODY<T>::run(p, ops, part);
			return;
		}
		if (!f32 && air_row_has_weights<T>(p, ops, true)) {
			air_row_apart<BODY<float>>(p, ops, part);
			return;
		}
	}
	air_row_apart<air_row_loops<OP, T>>(p, ops, part);
}

template <class OP, class T, int N, bool MORE = false> struct air_row_vectors {
	static constexpr int V = 16 / sizeof(T);

	template <class W> struct body {
		static __device__ __forceinline__ void
		run(const air_row_params &p, const air_operands &ops,
		    const air_part &part)
		{
			air_row_body<OP, T, air_row_held<T, V, N, MORE>, V, W>(
				p, ops, part);
		}
	};

	static __device__ __forceinline__ void run(const air_row_params &p,
						   const air_operands &ops,
						   const air_part &part)
	{
		air_row_with_weights<OP, T, body>(p, ops, part);
	}
};

template <class OP, class T>
__device__ __forceinline__ void
air_row_variant_body(uint32_t variant, const air_row_params &p,
		     const air_operands &ops, const air_part &part)
{
	switch (variant) {
	case AIR_ROW_1:
		air_row_vectors<OP, T, 1>::run(p, ops, part);
		break;
	case AIR_ROW_2:
		air_row_vectors<OP, T, 2>::run(p, ops, part);
		break;
	case AIR_ROW_4:
		air_row_vectors<OP, T, 4>::run(p, ops, part);
		break;
	case AIR_ROW_8:
		air_row_vectors<OP, T, 8>::run(p, ops, part);
		break;
	case AIR_ROW_ELEMENTS:
		air_row_body<OP, T, air_row_held<T, 1, 8>, 1>(p, ops, part);
		break;
	default:
		air_row_body<OP, T, air_row_loop<T>, 1>(p, ops, part);
	}
}

/*
 * Long rows, one after the other, by a cluster that stays: while one is worked
 * on, the next comes into registers. Who is done draws the number of another:
 * memory is not equally near to all multiprocessors, and equal shares of the
 * rows end a tenth of the time apart. Weights of the rows' type stay in shared
 * memory: from the second-level cache for each row, they would take as long as
 * the row.
 */
template <class OP, class T> struct air_row_ahead {
	static constexpr int V = 16 / sizeof(T), N = 8;

	template <class W> struct body {
		static __device__ __forceinline__ void
		run(const air_row_params &p, const air_operands &ops,
		    const air_part &part);
	};
};

template <class OP, class T>
template <class W>
__device__ __forceinline__ void
air_row_ahead<OP, T>::body<W>::run(const air_row_params &p,
				   const air_operands &ops,
				   const air_part &part)
{
#if __CUDA_ARCH__ >= 900
	using row_of = air_row_held<T, V, N, false, air_row_far_team>;
	using weights = air_row_weights<W, V>;
	constexpr bool keep = OP::weighted && sizeof(W) == sizeof(T);
	extern __shared__ __align__(16) unsigned char rest[];
	__shared__ air_row_met met;
	air_row_far_team team(p, part, &met, (uint32_t)(p.length / V));
	const uint32_t rows = (uint32_t)p.rows;
	const uint32_t clusters = part.blocks / p.cluster;
	uint32_t *counter = (uint32_t *)ops.addr[AIR_WORKSPACE_ADDR];
	uint32_t r = part.block / p.cluster, then = r + clusters, phase = 0;
	const W *w = (const W *)ops.addr[2], *b = (const W *)ops.addr[3];
	/* of all the row's, this block's */
	weights *kept_w = (weights *)rest - team.start();
	weights *kept_b = kept_w + N * team.lanes;
	auto load_w = [&](weights &x, uint32_t at) {
		if constexpr (keep)
			x = kept_w[at];
		else
			x.load(w, at, 1.0f);
	};
	auto load_b = [&](weights &x, uint32_t at) {
		if constexpr (keep)
			x = kept_b[at];
		else
			x.load(b, at, 0.0f);
	};
	row_of next(p, team, air_row_at<T>(p, ops, r < p.rows ? r : 0));

	if constexpr (keep)
		for (uint32_t at = next.first; at < next.end;
		     at += next.width) {
			kept_w[at].load(w, at, 1.0f);
			if constexpr (OP::biased)
				kept_b[at].load(b, at, 0.0f);
		}
	/* nobody tells others before their barriers are made */
	air_cluster_sync();
	while (r < rows) {
		T *y = (T *)ops.addr[0] + air_row_offset(p, r, p.y_stride);
		bool more = then < rows;
		uint32_t ticket = more ? team.draw(counter) : 0;
		row_of row = next;

		row.take(next, more ? air_row_at<T>(p, ops, then) : NULL);

		typename OP::stats s = OP::measure(row, p);

		if (more)
			team.announce(ticket);
		air_row_write<OP, T, row_of, V, W>(p, ops, row, y, s, load_w,
						   load_b);
		if (!more)
			break;
		r = then;
		then = team.announced(phase) + 2 * clusters;
		phase ^= 1;
		/* the last ticket of all: the next kernel begins with none */
		if (then == rows + clusters - 1 && team.first() == 0)
			*counter = 0;
	}
	/* nobody leaves while others tell it of a row */
	air_cluster_sync();
#else
	air_row_body<OP, T, air_row_loop<T>, 1>(p, ops, part);
#endif
}

#define AIR_ROW_KERNEL(name, OP, T, variant, threads, blocks)                \
	extern "C" __global__ void __launch_bounds__(threads, blocks)        \
		name(const __grid_constant__ air_row_params p,               \
		     const __grid_constant__ air_operands ops)               \
	{                                                                    \
		__shared__ float shared[AIR_SHARED_MIN / 4];                 \
\
		air_row_variant_body<OP, T>(variant, p, ops,                 \
					    air_part_launched(shared));      \
	}

/* Rows of more than 8 accesses a thread: dynamic shared memory has the rest. */
#define AIR_ROW_SHARED_KERNEL(name, OP, T)                                   \
	extern "C" __global__ void __launch_bounds__(1024, 1)                \
		name(const __grid_constant__ air_row_params p,               \
		     const __grid_constant__ air_operands ops)               \
	{                                                                    \
		__shared__ float shared[AIR_SHARED_MIN / 4];                 \
		using rows = air_row_vectors<OP, T, 8, true>;                \
\
		rows::run(p, ops, air_part_launched(shared));                \
	}

#define AIR_ROW_AHEAD_KERNEL(name, OP, T)                                    \
	extern "C" __global__ void __launch_bounds__(512, 1)                 \
		name(const __grid_constant__ air_row_params p,               \
		     const __grid_constant__ air_operands ops)               \
	{                                                                    \
		__shared__ float shared[AIR_SHARED_MIN / 4];                 \
		using rows = air_row_ahead<OP, T>;                           \
\
		air_row_with_weights<OP, T, rows::template body>(            \
			p, ops, air_part_launched(shared));                  \
	}

#define AIR_ROW_KERNELS_OF(op, OP, T, t)                                     \
	AIR_ROW_KERNEL(air_##op##_##t##_1, OP, T, AIR_ROW_1, 512, 2)         \
	AIR_ROW_KERNEL(air_##op##_##t##_2, OP, T, AIR_ROW_2, 512, 2)         \
	AIR_ROW_KERNEL(air_##op##_##t##_4, OP, T, AIR_ROW_4, 512, 2)         \
	AIR_ROW_KERNEL(air_##op##_##t##_8, OP, T, AIR_ROW_8, 512, 2)         \
	AIR_ROW_KERNEL(air_##op##_##t##_elements, OP, T, AIR_ROW_ELEMENTS,   \
		       512, 2)                                               \
	AIR_ROW_KERNEL(air_##op##_##t##_loop, OP, T, AIR_ROW_LOOP, 512, 2)   \
	AIR_ROW_SHARED_KERNEL(air_##op##_##t##_shared, OP, T)                \
	AIR_ROW_AHEAD_KERNEL(air_##op##_##t##_ahead, OP, T)

#define AIR_ROW_KERNELS(op, OP)                                     \
	AIR_ROW_KERNELS_OF(op, OP<float>, float, f32)               \
	AIR_ROW_KERNELS_OF(op, OP<__half>, __half, f16)             \
	AIR_ROW_KERNELS_OF(op, OP<__nv_bfloat16>, __nv_bfloat16, bf16)

/*
 * In the resident kernel: variants numbered dtype * 16 + enum air_row_variant.
 */
template <template <class> class OP> struct air_row_float_body {
	template <class T>
	static __device__ __forceinline__ void go(uint32_t variant,
						  const air_row_params &p,
						  const air_operands &ops,
						  const air_part &part)
	{
		air_row_variant_body<OP<T>, T>(variant, p, ops, part);
	}

	static __device__ __forceinline__ void run(uint32_t variant,
						   const void *params,
						   const air_operands &ops,
						   const air_part &part)
	{
		const air_row_params &p = *(const air_row_params *)params;

		if (variant / 16 == AIRUNNER_F32)
			go<float>(variant % 16, p, ops, part);
		else if (variant / 16 == AIRUNNER_F16)
			go<__half>(variant % 16, p, ops, part);
		else
			go<__nv_bfloat16>(variant % 16, p, ops, part);
	}
};

#endif /* AIR_CUDA_ROWWISE_CUH */
