/* SPDX-License-Identifier: MIT */
/*
 * Convolution as a product: rows are pixels of an image, columns output
 * channels, and what is summed over runs through channels and kernel. The
 * matrix of input values is never made: a() works out where its element is.
 */
#ifndef AIR_CONV2D_CUH
#define AIR_CONV2D_CUH

#include "ops/conv2d/params.h"
#include "ops/cuda/tile.cuh"

template <class T> struct air_conv2d_problem {
	using elem = T;
	using acc = float;
	const air_conv2d_params &p;
	const air_operands &ops;
	uint64_t m, n, k, batch;
	static constexpr bool a_rows = true;
	bool b_columns;
	const T *x, *w, *bias;
	T *y;

	__device__ __forceinline__ air_conv2d_problem(
		const air_conv2d_params &p_, const air_operands &ops_)
		: p(p_), ops(ops_), m(p_.pixels), n(p_.outputs), k(p_.depth),
		  batch(p_.images * p_.groups)
	{
		b_columns = p.w_w != 1;
	}

	__device__ __forceinline__ void select(uint64_t i)
	{
		uint64_t image = i / p.groups;
		int64_t g = (int64_t)(i - image * p.groups);
		int64_t o = g * (int64_t)p.outputs;

		x = (const T *)ops.addr[1] + (int64_t)image * p.x_n +
		    g * p.channels * p.x_c;
		w = (const T *)ops.addr[2] + o * p.w_o;
		y = (T *)ops.addr[0] + (int64_t)image * p.y_n + o * p.y_o;
		bias = ops.addr[3] ? (const T *)ops.addr[3] + o * p.bias_o :
				     nullptr;
	}

	__device__ __forceinline__ void place(uint64_t i, int64_t *c,
					      int64_t *h, int64_t *v)
	{
		uint32_t q = air_divide((uint32_t)i, p.by_kernel);
		uint32_t rest = (uint32_t)i - q * p.by_kernel.d;
		uint32_t r = air_divide(rest, p.by_kw);

		*c = q;
		*h = r;
		*v = rest - r * p.by_kw.d;
	}

	__device__ __forceinline__ T a(uint64_t pixel, uint64_t i)
	{
		uint32_t oh = air_divide((uint32_t)pixel, p.by_ow);
		uint32_t ow = (uint32_t)pixel - oh * p.by_ow.d;
		int64_t c, kh, kw, h, v;

		place(i, &c, &kh, &kw);
		h = (int64_t)oh * p.stride_h + kh * p.dilation_h - p.pad_h;
		v = (int64_t)ow * p.stride_w + kw * p.dilation_w - p.pad_w;
		if (h < 0 || h >= p.height || v < 0 || v >= p.width)
			return air_from_float<T>(0.0f);
		return x[c * p.x_c + h * p.x_h + v * p.x_w];
	}

	__device__ __forceinline__ T b(uint64_t o, uint64_t i)
	{
		int64_t c, kh, kw;

		place(i, &c, &kh, &kw);
		return w[(int64_t)o * p.w_o + c * p.w_c + kh * p.w_h +
			 kw * p.w_w];
	}

	/* Elements along the sum are neighbours nowhere that could be known. */
	__device__ __forceinline__ bool a_dense(uint64_t, uint64_t)
	{
		return false;
	}
	__device__ __forceinline__ bool b_dense(uint64_t, uint64_t)
	{
		return false;
	}
	__device__ __forceinline__ const T *a_at(uint64_t, uint64_t)
	{
		return x;
	}
	__device__ __forceinline__ const T *b_at(uint64_t, uint64_t)
	{
		return w;
	}

	__device__ __forceinline__ void store(uint64_t pixel, uint64_t o,
					      float s)
	{
		uint32_t oh = air_divide((uint32_t)pixel, p.by_ow);
		uint32_t ow = (uint32_t)pixel - oh * p.by_ow.d;

		if (bias)
			s += air_float(bias[(int64_t)o * p.bias_o]);
		y[(int64_t)o * p.y_o + (int64_t)oh * p.y_h +
		  (int64_t)ow * p.y_w] =
			air_from_float<T>(air_activate(p.activation, s));
	}
};

template <class T>
__device__ __forceinline__ void air_conv2d_body(const air_conv2d_params &p,
						const air_operands &ops,
						const air_part &part)
{
	air_conv2d_problem<T> q(p, ops);

	if constexpr (sizeof(T) == 2)
		air_tile_mma<air_conv2d_problem<T>, 64, 64>(q, part);
	else
		air_tile_fma(q, part);
}

#define AIR_CONV2D_SHARED AIR_MMA_SHARED(64, 64)

template <> struct air_body<AIR_OP_conv2d> {
	static __device__ __forceinline__ void run(uint32_t variant,
						   const void *params,
						   const air_operands &ops,
						   const air_part &part)
	{
		const air_conv2d_params &p = *(const air_conv2d_params *)params;

		if (variant == AIRUNNER_F32)
			air_conv2d_body<float>(p, ops, part);
		else if (variant == AIRUNNER_F16)
			air_conv2d_body<__half>(p, ops, part);
		else
			air_conv2d_body<__nv_bfloat16>(p, ops, part);
	}
};

#endif /* AIR_CONV2D_CUH */
