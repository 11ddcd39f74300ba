/* SPDX-License-Identifier: MIT */
/*
 * One body for all elementwise operators. An operator is a functor:
 *
 *	struct relu_f32 {
 *		using out = float;
 *		using in0 = float;
 *		static constexpr int inputs = 1;
 *		static constexpr bool numbers = true;
 *		static float number(const air_ew_params &p, float a, float b);
 *	};
 *
 * or, with numbers = false, what is no function of floating point numbers:
 *
 *		static out apply(const air_ew_params &p, in0 a, in0 b);
 *
 * An operator with one input ignores b.
 */
#ifndef AIR_CUDA_ELEMENTWISE_CUH
#define AIR_CUDA_ELEMENTWISE_CUH

#include "ops/cuda/device.cuh"
#include "ops/cuda/elementwise.h"

/*
 * Vectors a thread has in flight in the resident kernel, whose blocks go round.
 * Launched blocks do one tile and end, and there the fewer the better: one of
 * each input, while memory is what takes the time. Where the cache has all, it
 * takes longer to start the blocks, and each thread does two.
 */
#define AIR_EW_UNROLL 4

/* Elements of a vector: 16 bytes of the widest type. */
template <class F> __device__ constexpr int air_ew_width()
{
	int widest = sizeof(typename F::out);

	if (sizeof(typename F::in0) > widest)
		widest = sizeof(typename F::in0);
	return 16 / widest;
}

template <class T, int V>
__device__ __forceinline__ bool air_aligned(uint64_t a)
{
	return a % (sizeof(T) * V) == 0;
}

template <class F>
__device__ __forceinline__ typename F::out
air_ew_apply(const air_ew_params &p, typename F::in0 a, typename F::in0 b)
{
	if constexpr (F::numbers)
		return air_from_float<typename F::out>(
			F::number(p, air_float(a), air_float(b)));
	else
		return F::apply(p, a, b);
}

template <air_ew_fit FIT, class T, int V>
__device__ __forceinline__ air_vec<T, V> air_ew_load(const T *p)
{
	if constexpr (FIT == AIR_EW_FITS)
		return air_load_vec<T, V>(p);
	else
		return *(const air_vec<T, V> *)p;
}

template <air_ew_fit FIT, class T, int V>
__device__ __forceinline__ void air_ew_store(T *y, const air_vec<T, V> &v)
{
	if constexpr (FIT == AIR_EW_NEARLY && sizeof(T) * V == 16) {
		uint4 x;

		memcpy(&x, &v, 16);
		__stcs((uint4 *)y, x);
	} else {
		*(air_vec<T, V> *)y = v;
	}
}

template <class F, int V, air_ew_fit FIT = AIR_EW_PASSES>
__device__ __forceinline__ void
air_ew_vector(const air_ew_params &p, const air_vec<typename F::in0, V> &a,
	      const air_vec<typename F::in0, V> &b, typename F::out *y)
{
	if constexpr (F::numbers) {
		float r[V], z[V];

		air_numbers(a, r);
		air_numbers(b, z);
#pragma unroll
		for (int k = 0; k < V; k++)
			r[k] = F::number(p, r[k], z[k]);
		air_ew_store<FIT>(y, air_vec_from<typename F::out, V>(r));
	} else {
		air_vec<typename F::out, V> r;

#pragma unroll
		for (int k = 0; k < V; k++)
			r.v[k] = F::apply(p, a.v[k], b.v[k]);
		air_ew_store<FIT>(y, r);
	}
}

/* Vectors of V elements; @n counts them. */
template <class F, int V, int U, air_ew_fit FIT>
__device__ __forceinline__ void
air_ew_flat(const air_ew_params &p, const air_part &part, uint64_t n,
	    typename F::out *y, const typename F::in0 *a,
	    const typename F::in0 *b)
{
	using in = typename F::in0;
	uint64_t tile = (uint64_t)part.threads * U;

	for (uint64_t base = part.block * tile; base < n;
	     base += part.blocks * tile) {
		uint64_t i = base + part.thread;
		air_vec<in, V> x[U], z[U];

		if (base + tile <= n) {
#pragma unroll
			for (int u = 0; u < U; u++) {
				uint64_t at = (i + u * part.threads) * V;

				x[u] = air_ew_load<FIT, in, V>(a + at);
				if constexpr (F::inputs > 1)
					z[u] = air_ew_load<FIT, in, V>(b + at);
			}
#pragma unroll
			for (int u = 0; u < U; u++)
				air_ew_vector<F, V, FIT>(
					p, x[u], F::inputs > 1 ? z[u] : x[u],
					y + (i + u * part.threads) * V);
			continue;
		}
		for (; i < n; i += part.threads) {
			x[0] = air_load_vec<in, V>(a + i * V);
			z[0] = F::inputs > 1 ? air_load_vec<in, V>(b + i * V) :
					       x[0];
			air_ew_vector<F, V>(p, x[0], z[0], y + i * V);
		}
	}
}

/* Element offsets of unit @i, by operand. */
template <class F>
__device__ __forceinline__ void air_ew_offsets(const air_ew_params &p,
					       uint64_t i, int64_t off[3])
{
	int64_t o0 = 0, o1 = 0, o2 = 0;

	if (p.mode == AIR_EW_STRIDED) {
		uint32_t rest = (uint32_t)i;

		for (uint32_t d = 0; d < p.ndim; d++) {
			uint32_t q = d + 1 < p.ndim ?
					     air_divide(rest, p.div[d]) : 0;
			uint32_t at = rest - q * p.div[d].d;

			o0 += at * p.stride[0][d];
			o1 += at * p.stride[1][d];
			if (F::inputs > 1)
				o2 += at * p.stride[2][d];
			rest = q;
		}
	} else {
		uint64_t rest = i;

		for (uint32_t d = 0; d < p.ndim; d++) {
			uint64_t q = d + 1 < p.ndim ? rest / p.size[d] : 0;
			int64_t at = (int64_t)(rest - q * p.size[d]);

			o0 += at * p.stride[0][d];
			o1 += at * p.stride[1][d];
			if (F::inputs > 1)
				o2 += at * p.stride[2][d];
			rest = q;
		}
	}
	off[0] = o0;
	off[1] = o1;
	off[2] = o2;
}

template <class T, int V>
__device__ __forceinline__ air_vec<T, V> air_ew_fetch(const T *p, bool repeat)
{
	air_vec<T, V> r;

	if (!repeat)
		return *(const air_vec<T, V> *)p;
#pragma unroll
	for (int k = 0; k < V; k++)
		r.v[k] = *p;
	return r;
}

template <class F, int V>
__device__ __forceinline__ void
air_ew_units(const air_ew_params &p, const air_part &part,
	     typename F::out *y, const typename F::in0 *a,
	     const typename F::in0 *b)
{
	using in = typename F::in0;
	constexpr int U = 2;
	uint64_t step = (uint64_t)part.blocks * part.threads;

	for (uint64_t i = (uint64_t)part.block * part.threads + part.thread;
	     i < p.n; i += step * U) {
		int64_t off[U][3];
		air_vec<in, V> x[U], z[U];

#pragma unroll
		for (int u = 0; u < U; u++) {
			if (u && i + step >= p.n)
				break;
			air_ew_offsets<F>(p, i + u * step, off[u]);
			x[u] = air_ew_fetch<in, V>(a + off[u][1],
						   p.repeat & 2);
			z[u] = F::inputs > 1 ?
				       air_ew_fetch<in, V>(b + off[u][2],
							   p.repeat & 4) :
				       x[u];
		}
#pragma unroll
		for (int u = 0; u < U; u++) {
			if (u && i + step >= p.n)
				break;
			air_ew_vector<F, V>(p, x[u], z[u], y + off[u][0]);
		}
	}
}

/*
 * Units of V elements at addresses that do not allow vectors: the same walk,
 * element by element.
 */
template <class F>
__device__ __forceinline__ void
air_ew_unaligned(const air_ew_params &p, const air_part &part,
		 typename F::out *y, const typename F::in0 *a,
		 const typename F::in0 *b)
{
	uint64_t step = (uint64_t)part.blocks * part.threads;

	for (uint64_t i = (uint64_t)part.block * part.threads + part.thread;
	     i < p.n; i += step) {
		int64_t off[3];

		air_ew_offsets<F>(p, i, off);
		for (uint32_t k = 0; k < p.unit; k++) {
			auto x = a[off[1] + (p.repeat & 2 ? 0 : k)];
			auto z = F::inputs > 1 ?
					 b[off[2] + (p.repeat & 4 ? 0 : k)] : x;

			y[off[0] + k] = air_ew_apply<F>(p, x, z);
		}
	}
}

/*
 * What is not flat. Out of line: it needs many registers, and a kernel that has
 * more than 32 cannot fill a multiprocessor with threads.
 */
template <class F>
__device__ __noinline__ void air_ew_other(const air_ew_params &p,
					  const air_operands &ops,
					  air_part part, bool aligned)
{
	using in = typename F::in0;
	constexpr int V = air_ew_width<F>();
	auto *y = (typename F::out *)ops.addr[0];
	const in *a = (const in *)ops.addr[1];
	const in *b = F::inputs > 1 ? (const in *)ops.addr[2] : a;

	if (p.unit == 1)
		air_ew_units<F, 1>(p, part, y, a, b);
	else if (aligned)
		air_ew_units<F, V>(p, part, y, a, b);
	else
		air_ew_unaligned<F>(p, part, y, a, b);
}

template <class F, int U = AIR_EW_UNROLL, air_ew_fit FIT = AIR_EW_FITS>
__device__ __forceinline__ void air_ew_body(const air_ew_params &p,
					    const air_operands &ops,
					    const air_part &part)
{
	using in = typename F::in0;
	using out = typename F::out;
	constexpr int V = air_ew_width<F>();
	out *y = (out *)ops.addr[0];
	const in *a = (const in *)ops.addr[1];
	const in *b = F::inputs > 1 ? (const in *)ops.addr[2] : a;
	bool aligned = air_aligned<out, V>((uint64_t)y) &&
		       (p.repeat & 2 || air_aligned<in, V>((uint64_t)a)) &&
		       (p.repeat & 4 || air_aligned<in, V>((uint64_t)b));

	if (p.mode == AIR_EW_FLAT) {
		uint64_t n = p.n / V;

		if (!aligned) {
			air_ew_flat<F, 1, U, FIT>(p, part, p.n, y, a, b);
			return;
		}
		air_ew_flat<F, V, U, FIT>(p, part, n, y, a, b);
		/* what is left over, by the last block: it has the least */
		uint64_t i = n * V + part.thread;

		if (part.block == part.blocks - 1 && i < p.n)
			y[i] = air_ew_apply<F>(p, a[i], b[i]);
	} else {
		air_ew_other<F>(p, ops, part, aligned);
	}
}

/* Blocks of 256 threads that fill a multiprocessor. */
#if (__CUDA_ARCH__ > 800 && __CUDA_ARCH__ < 900) || __CUDA_ARCH__ >= 1100
#define AIR_EW_BLOCKS 6
#else
#define AIR_EW_BLOCKS 8
#endif

/* The kernel of functor F. */
#define AIR_EW_KERNEL(name, F)                                               \
	extern "C" __global__ void __launch_bounds__(256, AIR_EW_BLOCKS)     \
		name(const __grid_constant__ air_ew_params p,                \
		     const __grid_constant__ air_operands ops)               \
	{                                                                    \
		air_part part = air_part_launched(nullptr);                  \
\
		if (p.fit == AIR_EW_PASSES)                                  \
			air_ew_body<F, 1, AIR_EW_PASSES>(p, ops, part);      \
		else if (p.fit == AIR_EW_NEARLY)                             \
			air_ew_body<F, 1, AIR_EW_NEARLY>(p, ops, part);      \
		else if (p.pairs)                                            \
			air_ew_body<F, 2>(p, ops, part);                     \
		else                                                         \
			air_ew_body<F, 1>(p, ops, part);                     \
	}

/*
 * One that computes so much that memory would have nothing to do meanwhile:
 * smaller blocks, twice as much in flight.
 */
#define AIR_EW_DEAR_KERNEL(name, F)                                          \
	extern "C" __global__ void                                           \
	__launch_bounds__(AIR_EW_DEAR_THREADS, 2 * AIR_EW_BLOCKS - 2)        \
		name(const __grid_constant__ air_ew_params p,                \
		     const __grid_constant__ air_operands ops)               \
	{                                                                    \
		air_part part = air_part_launched(nullptr);                  \
\
		if (p.fit == AIR_EW_PASSES)                                  \
			air_ew_body<F, 2, AIR_EW_PASSES>(p, ops, part);      \
		else if (p.fit == AIR_EW_NEARLY)                             \
			air_ew_body<F, 2, AIR_EW_NEARLY>(p, ops, part);      \
		else                                                         \
			air_ew_body<F, 2>(p, ops, part);                     \
	}

/* Operators whose operands are all of one floating point type. */
template <class T> struct air_ew_unary {
	using out = T;
	using in0 = T;
	static constexpr bool numbers = true;
	static constexpr int inputs = 1;
};

template <class T> struct air_ew_binary {
	using out = T;
	using in0 = T;
	static constexpr bool numbers = true;
	static constexpr int inputs = 2;
};

/* Their kernels: air_<op>_f32, _f16 and _bf16. F is a template of the type. */
#define AIR_EW_FLOAT_KERNELS(op, F)              \
	AIR_EW_KERNEL(air_##op##_f32, F<float>)  \
	AIR_EW_KERNEL(air_##op##_f16, F<__half>) \
	AIR_EW_KERNEL(air_##op##_bf16, F<__nv_bfloat16>)

/* Their bodies in the resident kernel, a variant a dtype. */
template <template <class> class F> struct air_ew_float_body {
	static __device__ __forceinline__ void run(uint32_t variant,
						   const void *params,
						   const air_operands &ops,
						   const air_part &part)
	{
		const air_ew_params &p = *(const air_ew_params *)params;

		if (variant == AIRUNNER_F32)
			air_ew_body<F<float>>(p, ops, part);
		else if (variant == AIRUNNER_F16)
			air_ew_body<F<__half>>(p, ops, part);
		else
			air_ew_body<F<__nv_bfloat16>>(p, ops, part);
	}
};

#endif /* AIR_CUDA_ELEMENTWISE_CUH */
