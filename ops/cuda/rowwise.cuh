/* SPDX-License-Identifier: MIT */
/*
 * Bodies of row operators. A row is read once and kept in registers while its
 * statistics are taken, the end of a long one in shared memory; only rows too
 * long for that are read again. Launched teams do one row and end: memory is
 * busy because other teams are at another stage.
 *
 * An operator is a struct with
 *
 *	struct stats { ... };			what it knows of a row
 *	static stats measure(ROW &row);		from row.sum(f), row.max()
 *	static float finish(float x, const stats &s, float w, float b);
 *	static constexpr bool weighted;		has weight and bias
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

__device__ __forceinline__ float air_cluster_read(const float *mine,
						  uint32_t rank)
{
	float x = *mine;
#if __CUDA_ARCH__ >= 900
	uint32_t at = (uint32_t)__cvta_generic_to_shared(mine);

	asm volatile("{\n\t.reg .u32 peer;\n\t"
		     "mapa.shared::cluster.u32 peer, %1, %2;\n\t"
		     "ld.shared::cluster.f32 %0, [peer];\n\t}"
		     : "=f"(x) : "r"(at), "r"(rank) : "memory");
#endif
	return x;
}

/*
 * The threads that share a row. Reductions give every one of them the result.
 */
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

	template <class OP> __device__ __forceinline__ float reduce(float x,
								    OP op)
	{
		if (lanes <= 32)
			return air_reduce_lanes(x, op, lanes);
		x = air_reduce_block(part, x, op, OP::identity);
		if (cluster == 1)
			return x;
		/*
		 * Two slots in turns: a block is past the barrier of the next
		 * reduction before anybody writes the slot of this one again.
		 */
		float *slot = (float *)part.shared + 64 + 2 * (turn++ & 1);

		if (part.thread == 0)
			*slot = x;
		air_cluster_sync();
		x = OP::identity;
		for (uint32_t r = 0; r < cluster; r++)
			x = op(x, air_cluster_read(slot, r));
		return x;
	}

	__device__ __forceinline__ float2 sums_of_cluster(float2 z)
	{
		float *slot = (float *)part.shared + 64 + 2 * (turn++ & 1);

		if (part.thread == 0) {
			slot[0] = z.x;
			slot[1] = z.y;
		}
		air_cluster_sync();
		z = float2();
		for (uint32_t r = 0; r < cluster; r++) {
			z.x += air_cluster_read(slot, r);
			z.y += air_cluster_read(slot + 1, r);
		}
		return z;
	}

	/* Sums of two numbers, for the time of one. */
	__device__ __forceinline__ float sums(float x, float y, float *other)
	{
		float2 z = { x, y };

		if (lanes <= 32) {
			z = air_reduce_lanes(z, air_sum2(), lanes);
		} else {
			z = air_reduce_block(part, z, air_sum2(), float2());
			if (cluster > 1)
				z = sums_of_cluster(z);
		}
		*other = z.y;
		return z.x;
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

/* Make the compiler forget what it knows of @v's value. */
template <class T, int V>
__device__ __forceinline__ void air_opaque(air_vec<T, V> &v)
{
	if constexpr (sizeof(T) * V == 16) {
		uint4 x;

		memcpy(&x, &v, 16);
		asm volatile("" : "+r"(x.x), "+r"(x.y), "+r"(x.z), "+r"(x.w));
		memcpy(&v, &x, 16);
	}
}

/*
 * In registers: N accesses of V elements, the k-th at (first + k * width) V.
 * MORE: what a thread has beyond those is in dynamic shared memory. No thread
 * reads another's there, so that nobody synchronises for it.
 */
template <class T, int V, int N, bool MORE = false> struct air_row_held {
	using vec = air_vec<T, V>;
	static constexpr bool stays = true;
	air_row_team &team;
	uint32_t first;		/* this thread's first access */
	uint32_t width;		/* from one of its accesses to the next */
	uint32_t end;		/* where they end */
	const T *x;
	vec v[N];
	vec *more;

	__device__ __forceinline__ air_row_held(const air_row_params &p,
						air_row_team &t, const T *row)
		: team(t), x(row)
	{
		first = t.first();
		width = t.width();
		end = (uint32_t)(p.length / V);
#pragma unroll
		for (int k = 0; k < N; k++)
			if (first + k * width < end)
				v[k] = air_load_vec<T, V>(
					x + (uint64_t)(first + k * width) * V);
		if constexpr (MORE) {
			extern __shared__ __align__(16) unsigned char rest[];

			more = (vec *)rest + t.lane;
			beyond([&](uint32_t at, vec *slot) {
				air_copy_ahead(slot, x + (uint64_t)at * V);
			});
		}
	}

	/*
	 * A row that was sent for by ahead(), whose places in @slots then are
	 * those of @next, if there is one.
	 */
	__device__ __forceinline__ air_row_held(const air_row_params &p,
						air_row_team &t, const T *row,
						vec *slots, const T *next)
		: team(t), x(row)
	{
		first = t.first();
		width = t.width();
		end = (uint32_t)(p.length / V);
		air_copy_ahead_wait();
#pragma unroll
		for (int k = 0; k < N; k++) {
			if (first + k * width >= end)
				continue;
			v[k] = slots[k * t.lanes];
			/* read before it is written over */
			air_opaque(v[k]);
		}
		if (next)
			ahead(p, t, next, slots);
	}

	/* Send for a row: no thread reads another's places. */
	static __device__ __forceinline__ void ahead(const air_row_params &p,
						     const air_row_team &t,
						     const T *row, vec *slots)
	{
		uint32_t at = t.first(), last = (uint32_t)(p.length / V);

#pragma unroll
		for (int k = 0; k < N; k++)
			if (at + k * t.width() < last)
				air_copy_ahead(
					&slots[k * t.lanes],
					row + (uint64_t)(at + k * t.width()) *
						      V);
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

	/*
	 * f(vector) for each of this thread's, which f may change. The compiler
	 * would like to convert 16-bit elements once and keep the results; that
	 * takes twice the registers and half the occupancy.
	 */
	template <class F> __device__ __forceinline__ void each(F f)
	{
#pragma unroll
		for (int k = 0; k < N; k++) {
			air_opaque(v[k]);
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

		each([&](const vec &x) {
#pragma unroll
			for (int i = 0; i < V; i++)
				s += f(air_float(x.v[i]));
		});
		return team.reduce(s, air_sum());
	}

	/* Some element of the row, the same one for all of the team. */
	__device__ __forceinline__ float pivot(void)
	{
		return air_float(*x);
	}

	/* Sums of the differences to @pivot, and of their squares. */
	__device__ __forceinline__ float moments(float pivot, float *squares)
	{
		float s = 0.0f, q = 0.0f;

		each([&](const vec &x) {
#pragma unroll
			for (int i = 0; i < V; i++) {
				float d = air_float(x.v[i]) - pivot;

				s += d;
				q = fmaf(d, d, q);
			}
		});
		return team.sums(s, q, squares);
	}

	/* The same as sum(), and f's results take the elements' places. */
	template <class F> __device__ __forceinline__ float replace(F f)
	{
		float s = 0.0f;

		each([&](vec &x) {
			vec r;

#pragma unroll
			for (int i = 0; i < V; i++) {
				r.v[i] = f(x.v[i]);
				s += r.v[i];
			}
			x = r;
		});
		return team.reduce(s, air_sum());
	}

	__device__ __forceinline__ float max(void)
	{
		float m = -INFINITY;

		each([&](const vec &x) {
			m = air_max()(m, air_vec_max(x));
		});
		return team.reduce(m, air_max());
	}

	/* f(index, vector in, vector out) */
	template <class F> __device__ __forceinline__ void write(T *y, F f)
	{
		vec r;

		if (team.spare)
			return;
#pragma unroll
		for (int k = 0; k < N; k++) {
			uint32_t at = first + k * width;

			air_opaque(v[k]);
			if (at < end) {
				f((uint64_t)at * V, v[k], r);
				air_store_vec(y + (uint64_t)at * V, r);
			}
		}
		if constexpr (MORE)
			beyond([&](uint32_t at, vec *slot) {
				f((uint64_t)at * V, *slot, r);
				air_store_vec(y + (uint64_t)at * V, r);
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
		return team.reduce(s, air_sum());
	}

	__device__ __forceinline__ float pivot(void)
	{
		return air_float(*x);
	}

	__device__ __forceinline__ float moments(float pivot, float *squares)
	{
		float s = 0.0f, q = 0.0f;

		each([&](float v) {
			s += v - pivot;
			q = fmaf(v - pivot, v - pivot, q);
		});
		return team.sums(s, q, squares);
	}

	__device__ __forceinline__ float max(void)
	{
		float m = -INFINITY;

		each([&](float v) { m = air_max()(m, v); });
		return team.reduce(m, air_max());
	}

	template <class F> __device__ __forceinline__ void write(T *y, F f)
	{
		if (team.spare)
			return;
		for (uint64_t i = team.first(); i < length; i += team.width()) {
			air_vec<T, 1> v = { { x[(int64_t)i * step] } }, r;

			f(i, v, r);
			y[(int64_t)i * y_step] = r.v[0];
		}
	}
};

/* --------------------------------------------------------- weight and bias */

/* V numbers from p on, in accesses of up to 16 bytes. */
template <class W, int V>
__device__ __forceinline__ void air_row_numbers(const W *p, float w[V])
{
	constexpr int A = 16 / sizeof(W) < V ? 16 / sizeof(W) : V;

#pragma unroll
	for (int i = 0; i < V; i += A) {
		air_vec<W, A> v = *(const air_vec<W, A> *)(p + i);

#pragma unroll
		for (int k = 0; k < A; k++)
			w[i + k] = air_float(v.v[k]);
	}
}

template <class W, int V>
__device__ __forceinline__ void air_row_numbers_any(const W *p, int64_t step,
						    float w[V])
{
#pragma unroll
	for (int i = 0; i < V; i++)
		w[i] = air_float(p[i * step]);
}

template <class T, int V>
__device__ __forceinline__ void air_row_weights(uint64_t base, bool f32,
						int64_t step, uint64_t at,
						float otherwise, float w[V])
{
	bool dense = step == 1 && base % 16 == 0;
	const float *wide = (const float *)base + (int64_t)at * step;
	const T *same = (const T *)base + (int64_t)at * step;

	if (!base) {
#pragma unroll
		for (int i = 0; i < V; i++)
			w[i] = otherwise;
	} else if (f32) {
		if (dense)
			air_row_numbers<float, V>(wide, w);
		else
			air_row_numbers_any<float, V>(wide, step, w);
	} else if (dense) {
		air_row_numbers<T, V>(same, w);
	} else {
		air_row_numbers_any<T, V>(same, step, w);
	}
}

template <class OP, class T, int V>
__device__ __forceinline__ void
air_row_finish(const air_row_params &p, const air_operands &ops,
	       const typename OP::stats &s, uint64_t at, const air_vec<T, V> &v,
	       air_vec<T, V> &out)
{
	float w[V], b[V], r[V];

	if constexpr (OP::weighted) {
		air_row_weights<T, V>(ops.addr[2], p.w_f32, p.w_step, at, 1.0f,
				      w);
		air_row_weights<T, V>(ops.addr[3], p.b_f32, p.b_step, at, 0.0f,
				      b);
	}
#pragma unroll
	for (int i = 0; i < V; i++)
		r[i] = OP::finish(air_float(v.v[i]), s,
				  OP::weighted ? w[i] : 1.0f,
				  OP::weighted ? b[i] : 0.0f);
	out = air_vec_from<T, V>(r);
}

/* ----------------------------------------------------------------- bodies */

template <class OP, class T, class ROW, int V>
__device__ __forceinline__ void air_row_do(const air_row_params &p,
					   const air_operands &ops,
					   air_row_team &team, uint64_t r)
{
	T *y = (T *)ops.addr[0] + air_row_offset(p, r, p.y_stride);
	ROW row(p, team, (const T *)ops.addr[1] +
				 air_row_offset(p, r, p.x_stride));
	typename OP::stats s = OP::measure(row, p);

	row.write(y, [&](uint64_t at, const air_vec<T, V> &v,
			 air_vec<T, V> &out) {
		air_row_finish<OP, T, V>(p, ops, s, at, v, out);
	});
}

template <class OP, class T, class ROW, int V>
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
			air_row_do<OP, T, ROW, V>(p, ops, team,
						  team.spare ? p.rows - 1 : r);
		}
		return;
	}
	for (uint64_t r = part.block / p.cluster; r < p.rows;
	     r += part.blocks / p.cluster)
		air_row_do<OP, T, ROW, V>(p, ops, team, r);
	/* nobody leaves while others read its shared memory */
	if (p.cluster > 1)
		air_cluster_sync();
}

/*
 * Long rows, one after the other, by a block or cluster that has a
 * multiprocessor for itself: while one is worked on in registers, the next
 * comes to shared memory.
 */
template <class T>
__device__ __forceinline__ const T *air_row_at(const air_row_params &p,
					       const air_operands &ops,
					       uint64_t number)
{
	return (const T *)ops.addr[1] + air_row_offset(p, number, p.x_stride);
}

template <class OP, class T, int V, int N>
__device__ __forceinline__ void air_row_ahead_body(const air_row_params &p,
						   const air_operands &ops,
						   const air_part &part)
{
	using held = air_row_held<T, V, N>;
	extern __shared__ __align__(16) unsigned char rest[];
	air_row_team team(p, part);
	typename held::vec *slots = (typename held::vec *)rest + team.lane;
	uint64_t r = part.block / p.cluster, step = part.blocks / p.cluster;

	if (r < p.rows)
		held::ahead(p, team, air_row_at<T>(p, ops, r), slots);
	for (; r < p.rows; r += step) {
		held row(p, team, air_row_at<T>(p, ops, r), slots,
			 r + step < p.rows ? air_row_at<T>(p, ops, r + step) :
					     nullptr);

		typename OP::stats s = OP::measure(row, p);

		row.write((T *)ops.addr[0] + air_row_offset(p, r, p.y_stride),
			  [&](uint64_t at, const air_vec<T, V> &v,
			      air_vec<T, V> &out) {
			air_row_finish<OP, T, V>(p, ops, s, at, v, out);
		});
	}
	/* nobody leaves while others read its shared memory */
	if (p.cluster > 1)
		air_cluster_sync();
}

template <class OP, class T>
__device__ __forceinline__ void
air_row_variant_body(uint32_t variant, const air_row_params &p,
		     const air_operands &ops, const air_part &part)
{
	constexpr int V = 16 / sizeof(T);

	switch (variant) {
	case AIR_ROW_1:
		air_row_body<OP, T, air_row_held<T, V, 1>, V>(p, ops, part);
		break;
	case AIR_ROW_2:
		air_row_body<OP, T, air_row_held<T, V, 2>, V>(p, ops, part);
		break;
	case AIR_ROW_4:
		air_row_body<OP, T, air_row_held<T, V, 4>, V>(p, ops, part);
		break;
	case AIR_ROW_8:
		air_row_body<OP, T, air_row_held<T, V, 8>, V>(p, ops, part);
		break;
	case AIR_ROW_ELEMENTS:
		air_row_body<OP, T, air_row_held<T, 1, 8>, 1>(p, ops, part);
		break;
	default:
		air_row_body<OP, T, air_row_loop<T>, 1>(p, ops, part);
	}
}

/*
 * Vectors need aligned rows, which only the addresses tell: the host planned
 * for them, this is the way out.
 */
__device__ __forceinline__ bool air_row_aligned(const air_operands &ops)
{
	return (ops.addr[0] | ops.addr[1]) % 16 == 0;
}

#define AIR_ROW_KERNEL(name, OP, T, variant, threads, blocks)                \
	extern "C" __global__ void __launch_bounds__(threads, blocks)        \
		name(const __grid_constant__ air_row_params p,               \
		     const __grid_constant__ air_operands ops)               \
	{                                                                    \
		__shared__ float shared[AIR_SHARED_MIN / 4];                 \
		air_part part = air_part_launched(shared);                   \
\
		if (variant < AIR_ROW_ELEMENTS && !air_row_aligned(ops))     \
			air_row_variant_body<OP, T>(AIR_ROW_LOOP, p, ops,    \
						    part);                   \
		else                                                         \
			air_row_variant_body<OP, T>(variant, p, ops, part);  \
	}

/* Rows of more than 8 accesses a thread: dynamic shared memory has the rest. */
#define AIR_ROW_SHARED_KERNEL(name, OP, T)                                   \
	extern "C" __global__ void __launch_bounds__(1024, 1)                \
		name(const __grid_constant__ air_row_params p,               \
		     const __grid_constant__ air_operands ops)               \
	{                                                                    \
		constexpr int V = 16 / sizeof(T);                            \
		using held = air_row_held<T, V, 8, true>;                    \
		__shared__ float shared[AIR_SHARED_MIN / 4];                 \
		air_part part = air_part_launched(shared);                   \
\
		if (air_row_aligned(ops))                                    \
			air_row_body<OP, T, held, V>(p, ops, part);          \
		else                                                         \
			air_row_variant_body<OP, T>(AIR_ROW_LOOP, p, ops,    \
						    part);                   \
	}

/* For operators without weights: see share_ahead() in rowwise_plan.c. */
#define AIR_ROW_AHEAD_KERNEL(name, OP, T)                                    \
	extern "C" __global__ void __launch_bounds__(512, 1)                 \
		name(const __grid_constant__ air_row_params p,               \
		     const __grid_constant__ air_operands ops)               \
	{                                                                    \
		__shared__ float shared[AIR_SHARED_MIN / 4];                 \
		air_part part = air_part_launched(shared);                   \
\
		if (air_row_aligned(ops))                                    \
			air_row_ahead_body<OP, T, 16 / sizeof(T),            \
					   AIR_ROW_AHEAD_HELD>(p, ops,       \
							       part);        \
		else                                                         \
			air_row_variant_body<OP, T>(AIR_ROW_LOOP, p, ops,    \
						    part);                   \
	}

#define AIR_ROW_KERNELS_OF(op, OP, T, t)                                     \
	AIR_ROW_KERNEL(air_##op##_##t##_1, OP, T, AIR_ROW_1, 512, 2)         \
	AIR_ROW_KERNEL(air_##op##_##t##_2, OP, T, AIR_ROW_2, 512, 2)         \
	AIR_ROW_KERNEL(air_##op##_##t##_4, OP, T, AIR_ROW_4, 512, 2)         \
	AIR_ROW_KERNEL(air_##op##_##t##_8, OP, T, AIR_ROW_8, 512, 2)         \
	AIR_ROW_KERNEL(air_##op##_##t##_elements, OP, T, AIR_ROW_ELEMENTS,   \
		       512, 2)                                               \
	AIR_ROW_KERNEL(air_##op##_##t##_loop, OP, T, AIR_ROW_LOOP, 512, 2)   \
	AIR_ROW_SHARED_KERNEL(air_##op##_##t##_shared, OP, T)

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
		if (variant < AIR_ROW_ELEMENTS && !air_row_aligned(ops))
			variant = AIR_ROW_LOOP;
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
