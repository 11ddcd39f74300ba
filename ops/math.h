/* SPDX-License-Identifier: MIT */
/*
 * Scalar functions that kernels are made of. All are free of branches and
 * library calls, so that loops over them vectorise.
 */
#ifndef AIR_MATH_H
#define AIR_MATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "ops/simd.h"

AIR_INLINE uint32_t air_f32_bits(float v)
{
	uint32_t u;

	memcpy(&u, &v, sizeof(u));
	return u;
}

AIR_INLINE float air_bits_f32(uint32_t u)
{
	float v;

	memcpy(&v, &u, sizeof(v));
	return v;
}

AIR_INLINE float air_bf16_to_f32(uint16_t h)
{
	return air_bits_f32((uint32_t)h << 16);
}

/* To nearest even; a NaN stays one (quiet, its sign and top bits kept). */
AIR_INLINE uint16_t air_f32_to_bf16(float v)
{
	uint32_t u = air_f32_bits(v);
	uint32_t rounded = (u + 0x7fff + (u >> 16 & 1)) >> 16;
	uint32_t nan = u >> 16 | 0x40;

	return (uint16_t)((u & 0x7fffffff) > 0x7f800000 ? nan : rounded);
}

/*
 * Shifted into place, a half's exponent is too small by 112. Multiplying puts
 * that right for normal and subnormal numbers alike; Inf and NaN come out as
 * numbers from 2^16 on and get their exponent back.
 */
AIR_INLINE float air_f16_to_f32(uint16_t h)
{
	uint32_t sign = (uint32_t)(h & 0x8000) << 16;
	float v = air_bits_f32((uint32_t)(h & 0x7fff) << 13) * 0x1p112f;
	uint32_t u = air_f32_bits(v);

	u = (h & 0x7c00) == 0x7c00 ? u | 0x7f800000 : u;
	return air_bits_f32(u | sign);
}

/*
 * To nearest even, rounded by the adder: a number is added whose last place is
 * that of the half to be. Scaling up and down first turns what is too large
 * into Inf.
 */
AIR_INLINE uint16_t air_f32_to_f16(float v)
{
	uint32_t u = air_f32_bits(v);
	uint32_t sign = u >> 16 & 0x8000;
	uint32_t mag = u & 0x7fffffff;
	uint32_t bias = (mag + mag) & 0xff000000;
	float base = (air_bits_f32(mag) * 0x1p112f) * 0x1p-110f;
	uint32_t r, half, nan;

	bias = bias < 0x71000000 ? 0x71000000 : bias;
	base = air_bits_f32((bias >> 1) + 0x07800000) + base;
	r = air_f32_bits(base);
	half = (r >> 13 & 0x7c00) + (r & 0x0fff);
	nan = 0x7e00 | (mag >> 13 & 0x3ff);
	return (uint16_t)(sign | (mag > 0x7f800000 ? nan : half));
}

/*
 * e^x to about one unit in the last place, over- and underflow included:
 * x = n ln 2 + r, a polynomial for e^r (Cephes), and 2^n in two steps as it may
 * itself be out of range. Adding 1.5 * 2^23 rounds to an integer, which then
 * stands in the low bits.
 */
AIR_INLINE float air_expf(float x)
{
	const float magic = 0x1.8p23f;
	float c = x < -104.0f ? -104.0f : x;
	float z, n, r, p;
	int32_t k, half;

	c = c > 89.0f ? 89.0f : c;
	z = c * 1.44269504088896341f + magic;
	n = z - magic;
	r = c - n * 0.693359375f;
	r = r - n * -2.12194440e-4f;
	p = 1.9875691500e-4f;
	p = p * r + 1.3981999507e-3f;
	p = p * r + 8.3334519073e-3f;
	p = p * r + 4.1665795894e-2f;
	p = p * r + 1.6666665459e-1f;
	p = p * r + 5.0000001201e-1f;
	p = p * (r * r) + r + 1.0f;
	k = (int32_t)(air_f32_bits(z) - 0x4b400000U);
	half = k >> 1;
	p *= air_bits_f32((uint32_t)(half + 127) << 23);
	p *= air_bits_f32((uint32_t)(k - half + 127) << 23);
	return p;
}

AIR_INLINE float air_reluf(float x)
{
	return x <= 0 ? 0 : x;
}

AIR_INLINE float air_siluf(float x)
{
	return x / (1.0f + air_expf(-x));
}

/*
 * The normal distribution function. erfc by the Chebyshev fit of Numerical
 * Recipes (1.2e-7 of the value, everywhere): tails keep their digits.
 */
AIR_INLINE float air_normal_cdf(float x)
{
	float z = fabsf(x) * 0.707106781186547524f;
	float t = 1.0f / (1.0f + 0.5f * z);
	float p = 0.17087277f;
	float q;

	p = p * t - 0.82215223f;
	p = p * t + 1.48851587f;
	p = p * t - 1.13520398f;
	p = p * t + 0.27886807f;
	p = p * t - 0.18628806f;
	p = p * t + 0.09678418f;
	p = p * t + 0.37409196f;
	p = p * t + 1.00002368f;
	p = p * t - 1.26551223f;
	q = 0.5f * t * air_expf(p - z * z);
	return x >= 0 ? 1.0f - q : q;
}

AIR_INLINE float air_geluf(float x)
{
	return x * air_normal_cdf(x);
}

/* x/2 (1 + tanh u) = x / (1 + exp(-2u)), without the cancellation. */
AIR_INLINE float air_gelu_tanhf(float x)
{
	float u = 0.797884560802865356f * (x + 0.044715f * x * x * x);

	return x / (1.0f + air_expf(-2.0f * u));
}

#endif /* AIR_MATH_H */
