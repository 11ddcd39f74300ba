// SPDX-License-Identifier: MIT
/*
 * Numbers of each dtype, by definition and not by the tricks that the library
 * uses: a floating point number is an integer of so many bits times a power of
 * two that is not too small. f32 is what C calls float.
 */
#include <math.h>
#include <string.h>

#include "tests/unit/conformance.h"

struct format {
	int digits;  /* of the significand, the hidden one included */
	int min_exp; /* of the last digit of subnormal numbers */
	int max_exp; /* numbers are below 2^max_exp */
};

static const struct format formats[] = {
	[AIRUNNER_F16] = { 11, -24, 16 },
	[AIRUNNER_BF16] = { 8, -133, 128 },
};

static conf_real saturate(conf_real v, conf_real low, conf_real high)
{
	return v < low ? low : v > high ? high : v;
}

/* The exponent of the last digit of the numbers around @v. */
static int last_digit(const struct format *f, conf_real v)
{
	int e;

	frexpl(v, &e);
	e -= f->digits;
	return e < f->min_exp ? f->min_exp : e;
}

conf_real conf_round(uint32_t dtype, conf_real v)
{
	const struct format *f;
	int e;

	switch (dtype) {
	case AIRUNNER_I8:
		return saturate(v, INT8_MIN, INT8_MAX);
	case AIRUNNER_I32:
		return saturate(v, INT32_MIN, INT32_MAX);
	case AIRUNNER_I64:
		return saturate(v, INT64_MIN, INT64_MAX);
	case AIRUNNER_F32:
		return (float)v;
	default:
		break;
	}
	if (isnan(v) || isinf(v) || v == 0)
		return v;
	f = &formats[dtype];
	e = last_digit(f, v);
	/* The default rounding mode is to nearest even. */
	v = ldexpl(nearbyintl(ldexpl(v, -e)), e);
	return fabsl(v) >= ldexpl(1, f->max_exp) ? copysignl(INFINITY, v) : v;
}

static conf_real load_half(const struct format *f, uint32_t u)
{
	int fraction_bits = f->digits - 1;
	uint32_t sign = u >> 15;
	uint32_t fraction = u & ((1U << fraction_bits) - 1);
	uint32_t exponent = (u & 0x7fff) >> fraction_bits;
	uint32_t top = (1U << (15 - fraction_bits)) - 1;
	conf_real v;

	if (exponent == top)
		v = fraction ? NAN : INFINITY;
	else if (exponent)
		v = ldexpl(fraction + (1U << fraction_bits),
			   f->min_exp + (int)exponent - 1);
	else
		v = ldexpl(fraction, f->min_exp);
	return sign ? -v : v;
}

static uint16_t store_half(const struct format *f, conf_real v)
{
	int fraction_bits = f->digits - 1;
	uint32_t sign = signbit(v) ? 0x8000 : 0;
	uint32_t top = (1U << (15 - fraction_bits)) - 1;
	uint32_t digits;
	int e;

	if (isnan(v))
		return top << fraction_bits | 1U << (fraction_bits - 1);
	if (isinf(v))
		return sign | top << fraction_bits;
	if (v == 0)
		return sign;
	e = last_digit(f, v);
	digits = (uint32_t)ldexpl(fabsl(v), -e);
	/* Normal numbers' hidden digit adds the one to the exponent. */
	return sign | (((uint32_t)(e - f->min_exp) << fraction_bits) + digits);
}

conf_real conf_load(uint32_t dtype, const void *p)
{
	union {
		float f32;
		uint16_t u16;
		int32_t i32;
		int8_t i8;
		int64_t i64;
	} v;

	memcpy(&v, p, air_elem_size(dtype));
	switch (dtype) {
	case AIRUNNER_F32:
		return v.f32;
	case AIRUNNER_I8:
		return v.i8;
	case AIRUNNER_I32:
		return v.i32;
	case AIRUNNER_I64:
		return v.i64;
	default:
		return load_half(&formats[dtype], v.u16);
	}
}

void conf_store(uint32_t dtype, void *p, conf_real v)
{
	union {
		float f32;
		uint16_t u16;
		int64_t i64;
	} u;

	if (dtype == AIRUNNER_F32)
		u.f32 = (float)v;
	else if (dtype == AIRUNNER_F16 || dtype == AIRUNNER_BF16)
		u.u16 = store_half(&formats[dtype], v);
	else
		u.i64 = (int64_t)v;
	/* Little-endian, as the ABI is: low bytes are the narrower integers. */
	memcpy(p, &u, air_elem_size(dtype));
}
