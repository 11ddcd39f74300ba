/* SPDX-License-Identifier: MIT */
/*
 * silu and gelu, for operators and for epilogues. Their results go down to
 * nothing as x goes to -Inf, and are right there, too: no 1 + erf(x) or
 * 1 + tanh(x), which end in cancellation at 1e-7 of x, and no 1 / (1 + exp(x))
 * whose denominator ends at 2^128.
 */
#ifndef AIR_CUDA_ACTIVATION_CUH
#define AIR_CUDA_ACTIVATION_CUH

#include "ops/cuda/device.cuh"

/*
 * x / (1 + exp(-u)), both a quarter: then all denominators that are numbers
 * have a reciprocal that is not subnormal. @u is @x or has its sign. To 2^-22;
 * results below 3e-37 are 0.
 */
__device__ __forceinline__ float air_times_sigmoid(float x, float u)
{
	/* n lands in the low bits, where it is an exponent less 2 */
	const float magic = 0x1.8p23f + (127 - 2);
	float c = fminf(fmaxf(u, -89.5f), 80.0f);
	float z = fmaf(c, -1.4426950409f, magic);
	float n = z - magic;
	float f = fmaf(c, -1.44269502f, -n);
	float e = air_exp2_short(fmaf(c, -1.92596299e-8f, f)) *
		  __uint_as_float(__float_as_uint(z) << 23);

	float d = e + 0.25f, r = air_reciprocal_short(d);

	/* at u = -89.5 it is 0: -Inf gives NaN, what is finite -0 */
	return x * 0.25f * fmaf(r, fmaf(-d, r, 1.0f), r);
}

/* The same for results of 16 bits. */
__device__ __forceinline__ float air_times_sigmoid_short(float x, float u)
{
	float e = air_exp2_short(fmaf(u, -1.4426950409f, -2.0f));

	return x * 0.25f * air_reciprocal_short(e + 0.25f);
}

template <class T> __device__ __forceinline__ float air_silu_as(float x)
{
	if constexpr (sizeof(T) == 2)
		return air_times_sigmoid_short(x, x);
	return air_times_sigmoid(x, x);
}

/*
 * Phi(-v), v >= 0, as exp(-v^2 / 2) times a polynomial in t = 1 / (1 + cv)
 * without constant term: the fit of the least relative error for v up to 14.5,
 * which is 4.4e-6. Tails keep their digits.
 */
__device__ __forceinline__ float air_normal_tail_bf16(float v)
{
	float t = air_reciprocal_short(fmaf(0.308f, v, 1.0f));
	float q = -0.0751346829f;

	q = fmaf(q, t, 0.188776713f);
	q = fmaf(q, t, 0.00818305488f);
	q = fmaf(q, t, 0.136069428f);
	q = fmaf(q, t, 0.118992060f);
	q = fmaf(q, t, 0.123112842f);
	return q * (t * air_exp2_short(-0.7213475204f * v * v));
}

/*
 * The same for f32 and f16: the fit is to 5.5e-8, in cv / (1 + cv), whose
 * errors vanish with v.
 */
__device__ __forceinline__ float air_normal_tail(float v)
{
	float cv = 0.23f * fminf(v, 14.5f), e;
	float s = cv * air_reciprocal_short(1.0f + cv);
	float q = -0.0781017657f;

	q = fmaf(q, s, 0.336064491f);
	q = fmaf(q, s, -0.440515049f);
	q = fmaf(q, s, -0.338607008f);
	q = fmaf(q, s, 1.97491714f);
	q = fmaf(q, s, -3.21049178f);
	q = fmaf(q, s, 2.99123615f);
	q = fmaf(q, s, -1.73452842f);
	q = fmaf(q, s, 0.5f);
	/* down to the smallest of f32 */
	asm("ex2.approx.f32 %0, %1;" : "=f"(e) : "f"(-0.7213475204f * v * v));
	return q * e;
}

template <class T> __device__ __forceinline__ float air_gelu_as(float x)
{
	float v = fabsf(x), q;

	if constexpr (__is_same(T, __nv_bfloat16))
		q = air_normal_tail_bf16(v);
	else
		q = air_normal_tail(v);
	return x * (x < 0.0f ? q : 1.0f - q);
}

/* x/2 (1 + tanh u) = x / (1 + exp(-2u)) */
template <class T> __device__ __forceinline__ float air_gelu_tanh_as(float x)
{
	float u = 1.5957691216f * x * fmaf(0.044715f * x, x, 1.0f);

	if constexpr (sizeof(T) == 2)
		return air_times_sigmoid_short(x, u);
	return air_times_sigmoid(x, u);
}

/* Of a product's epilogue, for results of type T. */
template <class T>
__device__ __forceinline__ float air_activate_as(uint32_t activation, float x)
{
	switch (activation) {
	case AIR_ACT_RELU:
		return air_max()(x, 0.0f);
	case AIR_ACT_SILU:
		return air_silu_as<T>(x);
	case AIR_ACT_GELU:
		return air_gelu_as<T>(x);
	case AIR_ACT_GELU_TANH:
		return air_gelu_tanh_as<T>(x);
	default:
		return x;
	}
}

__device__ __forceinline__ float air_activate(uint32_t activation, float x)
{
	return air_activate_as<float>(activation, x);
}

#endif /* AIR_CUDA_ACTIVATION_CUH */
