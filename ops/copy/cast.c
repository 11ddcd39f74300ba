// SPDX-License-Identifier: MIT
#include "ops/copy/cast.h"

#include "include/uapi/airunner.h"
#include "ops/math.h"

#define CAST_PARAMS \
	(void *dst, int64_t to, const void *src, int64_t from, uint64_t n)
#define CAST_ARGS (dst, to, src, from, n)

/* Contiguous on both sides is worth a loop that vectorises. */
#define CAST_BODY(dtype, stype, convert)                                  \
	{                                                                 \
		char *y = dst;                                            \
		const char *x = src;                                      \
\
		if (to == (int64_t)sizeof(dtype) &&                       \
		    from == (int64_t)sizeof(stype)) {                     \
			AIR_IVDEP                                         \
			for (uint64_t i = 0; i < n; i++)                  \
				((dtype *)dst)[i] =                       \
					convert(((const stype *)src)[i]); \
			return;                                           \
		}                                                         \
		AIR_IVDEP                                                 \
		for (uint64_t i = 0; i < n; i++)                          \
			*(dtype *)(y + (int64_t)i * to) = convert(        \
				*(const stype *)(x + (int64_t)i * from)); \
	}

#define DEFINE_CAST(name, dtype, stype, convert)                          \
	AIR_INLINE void name CAST_PARAMS CAST_BODY(dtype, stype, convert) \
		AIR_VERSIONS(name, CAST_PARAMS, CAST_ARGS)

/*
 * The smallest and largest float that convert to an integer type, and what the
 * rest becomes. The upper limits are 2^31 and 2^63, as INT32_MAX and INT64_MAX
 * are not floats. The conversion of an out-of-range value is undefined in C,
 * so what is converted is in range always.
 */
AIR_INLINE int8_t f32_to_i8(float v)
{
	float c = v >= -128.0f ? v : -128.0f;

	c = c <= 127.0f ? c : 127.0f;
	return v != v ? 0 : (int8_t)c;
}

AIR_INLINE int32_t f32_to_i32(float v)
{
	float c = v >= -0x1p31f ? v : -0x1p31f;

	c = c < 0x1p31f ? c : 0;
	return v != v ? 0 : v >= 0x1p31f ? INT32_MAX : (int32_t)c;
}

AIR_INLINE int64_t f32_to_i64(float v)
{
	float c = v >= -0x1p63f ? v : -0x1p63f;

	c = c < 0x1p63f ? c : 0;
	return v != v ? 0 : v >= 0x1p63f ? INT64_MAX : (int64_t)c;
}

AIR_INLINE int8_t i64_to_i8(int64_t v)
{
	return (int8_t)(v < INT8_MIN ? INT8_MIN : v > INT8_MAX ? INT8_MAX : v);
}

AIR_INLINE int32_t i64_to_i32(int64_t v)
{
	return (int32_t)(v < INT32_MIN	 ? INT32_MIN
			 : v > INT32_MAX ? INT32_MAX
					 : v);
}

#define SAME(v)	       (v)
#define F16_TO_BF16(v) air_f32_to_bf16(air_f16_to_f32(v))
#define BF16_TO_F16(v) air_f32_to_f16(air_bf16_to_f32(v))
#define F16_TO_I8(v)   f32_to_i8(air_f16_to_f32(v))
#define F16_TO_I32(v)  f32_to_i32(air_f16_to_f32(v))
#define F16_TO_I64(v)  f32_to_i64(air_f16_to_f32(v))
#define BF16_TO_I8(v)  f32_to_i8(air_bf16_to_f32(v))
#define BF16_TO_I32(v) f32_to_i32(air_bf16_to_f32(v))
#define BF16_TO_I64(v) f32_to_i64(air_bf16_to_f32(v))
#define INT_TO_F32(v)  ((float)(v))
#define INT_TO_F16(v)  air_f32_to_f16((float)(v))
#define INT_TO_BF16(v) air_f32_to_bf16((float)(v))

/* Bits as they are; contiguous ones as fast as the C library can. */
#define DEFINE_MOVE(name, type)                                          \
	DEFINE_CAST(name##_strided, type, type, SAME)                    \
	AIR_INLINE void name CAST_PARAMS                                 \
	{                                                                \
		if (to == (int64_t)sizeof(type) && from == to)           \
			memcpy(dst, src, n * sizeof(type));              \
		else                                                     \
			AIR_BEST(name##_strided)(dst, to, src, from, n); \
	}                                                                \
	AIR_VERSIONS(name, CAST_PARAMS, CAST_ARGS)

DEFINE_MOVE(move_1, uint8_t)
DEFINE_MOVE(move_2, uint16_t)
DEFINE_MOVE(move_4, uint32_t)
DEFINE_MOVE(move_8, uint64_t)

DEFINE_CAST(f32_f16, float, uint16_t, air_f16_to_f32)
DEFINE_CAST(f32_bf16, float, uint16_t, air_bf16_to_f32)
DEFINE_CAST(f32_i32, float, int32_t, INT_TO_F32)
DEFINE_CAST(f32_i8, float, int8_t, INT_TO_F32)
DEFINE_CAST(f32_i64, float, int64_t, INT_TO_F32)

DEFINE_CAST(f16_f32, uint16_t, float, air_f32_to_f16)
DEFINE_CAST(f16_bf16, uint16_t, uint16_t, BF16_TO_F16)
DEFINE_CAST(f16_i32, uint16_t, int32_t, INT_TO_F16)
DEFINE_CAST(f16_i8, uint16_t, int8_t, INT_TO_F16)
DEFINE_CAST(f16_i64, uint16_t, int64_t, INT_TO_F16)

DEFINE_CAST(bf16_f32, uint16_t, float, air_f32_to_bf16)
DEFINE_CAST(bf16_f16, uint16_t, uint16_t, F16_TO_BF16)
DEFINE_CAST(bf16_i32, uint16_t, int32_t, INT_TO_BF16)
DEFINE_CAST(bf16_i8, uint16_t, int8_t, INT_TO_BF16)
DEFINE_CAST(bf16_i64, uint16_t, int64_t, INT_TO_BF16)

DEFINE_CAST(i32_f32, int32_t, float, f32_to_i32)
DEFINE_CAST(i32_f16, int32_t, uint16_t, F16_TO_I32)
DEFINE_CAST(i32_bf16, int32_t, uint16_t, BF16_TO_I32)
DEFINE_CAST(i32_i8, int32_t, int8_t, SAME)
DEFINE_CAST(i32_i64, int32_t, int64_t, i64_to_i32)

DEFINE_CAST(i8_f32, int8_t, float, f32_to_i8)
DEFINE_CAST(i8_f16, int8_t, uint16_t, F16_TO_I8)
DEFINE_CAST(i8_bf16, int8_t, uint16_t, BF16_TO_I8)
DEFINE_CAST(i8_i32, int8_t, int32_t, i64_to_i8)
DEFINE_CAST(i8_i64, int8_t, int64_t, i64_to_i8)

DEFINE_CAST(i64_f32, int64_t, float, f32_to_i64)
DEFINE_CAST(i64_f16, int64_t, uint16_t, F16_TO_I64)
DEFINE_CAST(i64_bf16, int64_t, uint16_t, BF16_TO_I64)
DEFINE_CAST(i64_i32, int64_t, int32_t, SAME)
DEFINE_CAST(i64_i8, int64_t, int8_t, SAME)

#define DTYPES (AIRUNNER_I64 + 1)
#define ROW(to, a, b, c, d, e, f)                                              \
	[to] = {                                                               \
		[AIRUNNER_F32] = a##_versions,	[AIRUNNER_F16] = b##_versions, \
		[AIRUNNER_BF16] = c##_versions, [AIRUNNER_I32] = d##_versions, \
		[AIRUNNER_I8] = e##_versions,	[AIRUNNER_I64] = f##_versions  \
	}

static const air_cast_fn *const casts[DTYPES][DTYPES] = {
	ROW(AIRUNNER_F32, move_4, f32_f16, f32_bf16, f32_i32, f32_i8, f32_i64),
	ROW(AIRUNNER_F16, f16_f32, move_2, f16_bf16, f16_i32, f16_i8, f16_i64),
	ROW(AIRUNNER_BF16, bf16_f32, bf16_f16, move_2, bf16_i32, bf16_i8,
	    bf16_i64),
	ROW(AIRUNNER_I32, i32_f32, i32_f16, i32_bf16, move_4, i32_i8, i32_i64),
	ROW(AIRUNNER_I8, i8_f32, i8_f16, i8_bf16, i8_i32, move_1, i8_i64),
	ROW(AIRUNNER_I64, i64_f32, i64_f16, i64_bf16, i64_i32, i64_i8, move_8),
};

air_cast_fn air_cast(uint32_t dst_dtype, uint32_t src_dtype)
{
	return casts[dst_dtype][src_dtype][air_isa()];
}
