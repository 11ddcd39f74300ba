/* SPDX-License-Identifier: MIT */
/*
 * What all device code shares: element types, vectors, reductions over warps
 * and blocks.
 *
 * Kernel bodies are functions of (parameters, operands, struct air_part): part
 * says which share of the work this block does and who its threads are. A
 * __global__ function makes the part from blockIdx and threadIdx; the resident
 * kernel makes it from its own scheduling, with some of its warps busy
 * elsewhere. So a body must synchronise with air_sync(part), never with
 * __syncthreads(), and take its thread index from the part.
 */
#ifndef AIR_DEVICE_CUH
#define AIR_DEVICE_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <airunner/ops.h>

#include "ops/cuda/abi.h"

/**
 * struct air_part - a block's share of an operator
 * @block: which share
 * @blocks: of how many
 * @thread: this thread, 0 .. @threads - 1
 * @threads: a multiple of 32
 * @shared: scratch memory of the block, 16-byte aligned
 */
struct air_part {
	uint32_t block;
	uint32_t blocks;
	uint32_t thread;
	uint32_t threads;
	void *shared;
};

/* Bytes of part.shared every body may count on: reductions need them. */
#define AIR_SHARED_MIN 4096

/*
 * Barrier 1 rather than 0: in the resident kernel the fetching warp does not
 * take part, and barrier 0 is for all warps of a block.
 */
__device__ __forceinline__ void air_sync(const air_part &part)
{
	asm volatile("bar.sync 1, %0;" ::"r"(part.threads) : "memory");
}

/* The part of a kernel that was launched on its own. */
__device__ __forceinline__ air_part air_part_launched(void *shared)
{
	return { blockIdx.x, gridDim.x, threadIdx.x, blockDim.x, shared };
}

/*
 * An operator's body for the resident kernel: ops/<op>/kernel.cuh specialises
 * this for its AIR_OP_<op>, with
 *
 *	static __device__ void run(uint32_t variant, const void *params,
 *				   const air_operands &ops,
 *				   const air_part &part);
 *
 * @variant is what the plan said (struct air_cuda_plan), @params the plan's,
 * in global memory.
 */
template <int OP> struct air_body;

/* ---------------------------------------------------------------- dtypes */

template <int DTYPE> struct air_type_of;
template <> struct air_type_of<AIRUNNER_F32> { using type = float; };
template <> struct air_type_of<AIRUNNER_F16> { using type = __half; };
template <> struct air_type_of<AIRUNNER_BF16> { using type = __nv_bfloat16; };
template <> struct air_type_of<AIRUNNER_I32> { using type = int32_t; };
template <> struct air_type_of<AIRUNNER_I8> { using type = int8_t; };
template <> struct air_type_of<AIRUNNER_I64> { using type = int64_t; };

__device__ __forceinline__ float air_float(float x) { return x; }
__device__ __forceinline__ float air_float(__half x) { return __half2float(x); }
__device__ __forceinline__ float air_float(__nv_bfloat16 x)
{
	return __bfloat162float(x);
}
__device__ __forceinline__ float air_float(int32_t x) { return (float)x; }
__device__ __forceinline__ float air_float(int8_t x) { return (float)x; }
__device__ __forceinline__ float air_float(int64_t x) { return (float)x; }

template <class T> __device__ __forceinline__ T air_from_float(float x);
template <> __device__ __forceinline__ float air_from_float<float>(float x)
{
	return x;
}
template <> __device__ __forceinline__ __half air_from_float<__half>(float x)
{
	return __float2half_rn(x);
}
template <>
__device__ __forceinline__ __nv_bfloat16
air_from_float<__nv_bfloat16>(float x)
{
	return __float2bfloat16_rn(x);
}

__device__ __forceinline__ void air_pack(__half *to, float a, float b)
{
	__half2 v = __floats2half2_rn(a, b);

	memcpy(to, &v, 4);
}
__device__ __forceinline__ void air_pack(__nv_bfloat16 *to, float a, float b)
{
	__nv_bfloat162 v = __floats2bfloat162_rn(a, b);

	memcpy(to, &v, 4);
}

/* --------------------------------------------------------------- vectors */

/* N elements that travel as one access of N * sizeof(T) bytes. */
template <class T, int N> struct alignas(sizeof(T) * N) air_vec {
	T v[N];
};

/*
 * Loads that do not stay in the first-level cache: data of operators is read
 * once. The second gives their lines up before all others: good where little is
 * written, or what is written is to be found there later. Kept apart from
 * ld.global.nc, which must not be used on memory that the same kernel writes
 * (in-place operators).
 */
template <class T, int N>
__device__ __forceinline__ air_vec<T, N> air_load_vec(const T *p)
{
	air_vec<T, N> r;

	if constexpr (sizeof(T) * N == 16) {
		uint4 x;

		asm volatile("ld.global.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
			     : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
			     : "l"(p));
		memcpy(&r, &x, 16);
	} else {
		r = *(const air_vec<T, N> *)p;
	}
	return r;
}

/* One access of 16 bytes from global to shared memory, not waited for. */
__device__ __forceinline__ void air_copy_ahead(void *to, const void *from)
{
	asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
			     (uint32_t)__cvta_generic_to_shared(to)),
		     "l"(from)
		     : "memory");
}

__device__ __forceinline__ void air_copy_ahead_wait(void)
{
	asm volatile("cp.async.wait_all;" ::: "memory");
}

/*
 * The numbers of a vector. 16-bit ones are halves of 32-bit registers and must
 * stay there until they are wanted: taken one by one, the compiler gives each a
 * register of its own as soon as it is loaded.
 */
template <class T, int V>
__device__ __forceinline__ void air_numbers(const air_vec<T, V> &v, float x[V])
{
#pragma unroll
	for (int i = 0; i < V; i++)
		x[i] = air_float(v.v[i]);
}

template <>
__device__ __forceinline__ void air_numbers(const air_vec<__nv_bfloat16, 8> &v,
					    float x[8])
{
	uint32_t w[4];

	memcpy(w, &v, sizeof(w));
#pragma unroll
	for (int i = 0; i < 4; i++) {
		x[2 * i] = __uint_as_float(w[i] << 16);
		x[2 * i + 1] = __uint_as_float(w[i] & 0xffff0000u);
	}
}

template <>
__device__ __forceinline__ void air_numbers(const air_vec<__half, 8> &v,
					    float x[8])
{
	__half2 w[4];

	memcpy(w, &v, sizeof(w));
#pragma unroll
	for (int i = 0; i < 4; i++) {
		float2 pair = __half22float2(w[i]);

		x[2 * i] = pair.x;
		x[2 * i + 1] = pair.y;
	}
}

/* Of numbers: 16-bit ones are rounded in pairs, by one instruction. */
template <class T, int V>
__device__ __forceinline__ air_vec<T, V> air_vec_from(const float x[V])
{
	air_vec<T, V> r;

	if constexpr (sizeof(T) == 2 && V % 2 == 0) {
#pragma unroll
		for (int i = 0; i < V; i += 2)
			air_pack(&r.v[i], x[i], x[i + 1]);
	} else {
#pragma unroll
		for (int i = 0; i < V; i++)
			r.v[i] = air_from_float<T>(x[i]);
	}
	return r;
}

__device__ __forceinline__ uint32_t air_divide(uint32_t n, const air_div &d)
{
	return (__umulhi(n, d.mul) + n) >> d.shift;
}

/*
 * Functions good enough for results of 16 bits, in a few instructions: to
 * 2^-20 or so, and what would be subnormal on the way is 0.
 */
__device__ __forceinline__ float air_exp2_short(float x)
{
	float y;

	asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
	return y;
}

__device__ __forceinline__ float air_exp_short(float x)
{
	return air_exp2_short(1.4426950409f * x);
}

__device__ __forceinline__ float air_reciprocal_short(float x)
{
	float y;

	asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
	return y;
}

/* ------------------------------------------------------------ reductions */

struct air_sum {
	static constexpr float identity = 0.0f;
	__device__ __forceinline__ float operator()(float a, float b) const
	{
		return a + b;
	}
};

/*
 * A sum of however many: what each addition rounds off is kept apart, exactly
 * (Knuth's two-sum), so that the error does not grow with the number. Inf and
 * NaN spoil what is kept, not the sum.
 */
struct air_long_sum {
	float s, rest;

	__device__ __forceinline__ void add(float x)
	{
		float t = s + x, z = t - s;

		rest += (s - (t - z)) + (x - z);
		s = t;
	}

	__device__ __forceinline__ float total(void) const
	{
		return fabsf(rest) < INFINITY ? s + rest : s;
	}
};

/* NaN wins, as in NumPy: fmaxf() would drop it. */
struct air_max {
	static constexpr float identity = -INFINITY;
	__device__ __forceinline__ float operator()(float a, float b) const
	{
		float m;

		asm("max.NaN.f32 %0, %1, %2;" : "=f"(m) : "f"(a), "f"(b));
		return m;
	}
};

/* The largest of a vector; 16-bit ones are compared in pairs. NaN wins. */
template <class T, int V>
__device__ __forceinline__ float air_vec_max(const air_vec<T, V> &v)
{
	float m = air_float(v.v[0]);

#pragma unroll
	for (int i = 1; i < V; i++)
		m = air_max()(m, air_float(v.v[i]));
	return m;
}

#define AIR_VEC_MAX_PAIRS(T, T2)                                            \
	template <>                                                         \
	__device__ __forceinline__ float air_vec_max(                       \
		const air_vec<T, 8> &v)                                     \
	{                                                                   \
		T2 p[4];                                                    \
\
		memcpy(p, &v, 16);                                          \
		p[0] = __hmax2_nan(__hmax2_nan(p[0], p[1]),                 \
				   __hmax2_nan(p[2], p[3]));                \
		return air_max()(air_float(p[0].x), air_float(p[0].y));     \
	}

AIR_VEC_MAX_PAIRS(__half, __half2)
AIR_VEC_MAX_PAIRS(__nv_bfloat16, __nv_bfloat162)

template <class T> __device__ __forceinline__ T air_shuffle(T x, uint32_t o)
{
	return __shfl_xor_sync(0xffffffffu, x, o);
}

__device__ __forceinline__ float2 air_shuffle(float2 x, uint32_t o)
{
	return { air_shuffle(x.x, o), air_shuffle(x.y, o) };
}

/* Over groups of @width neighbouring lanes (a power of two, at most 32). */
template <class OP, class T>
__device__ __forceinline__ T air_reduce_lanes(T x, OP op, uint32_t width = 32)
{
	for (uint32_t o = width / 2; o > 0; o /= 2)
		x = op(x, air_shuffle(x, o));
	return x;
}

/* Two sums at once, for the time of one. */
struct air_sum2 {
	__device__ __forceinline__ float2 nothing(void) const
	{
		return { 0.0f, 0.0f };
	}
	__device__ __forceinline__ float2 operator()(float2 a, float2 b) const
	{
		return { a.x + b.x, a.y + b.y };
	}
	__device__ __forceinline__ float2 over(float2 x,
					       uint32_t width = 32) const
	{
		return air_reduce_lanes(x, *this, width);
	}

	/* of @n, which each thread of a warp sees */
	__device__ __forceinline__ float2 all(const float2 *x, uint32_t n) const
	{
		float2 z = nothing();

		for (uint32_t i = threadIdx.x % 32; i < n; i += 32)
			z = (*this)(z, x[i]);
		return over(z);
	}
};

/* Over all threads of the part, result in all. Uses part.shared. */
template <class OP, class T>
__device__ __forceinline__ T air_reduce_block(const air_part &part, T x, OP op,
					      T identity)
{
	T *shared = (T *)part.shared;
	uint32_t lane = part.thread & 31, warp = part.thread >> 5;

	x = air_reduce_lanes(x, op);
	if (part.threads == 32)
		return x;
	/* whoever still reads the last result must be through */
	air_sync(part);
	if (lane == 0)
		shared[warp] = x;
	air_sync(part);
	x = lane < part.threads / 32 ? shared[lane] : identity;
	return air_reduce_lanes(x, op);
}

#endif /* AIR_DEVICE_CUH */
