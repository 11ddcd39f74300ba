/* SPDX-License-Identifier: MIT */
/*
 * Copies between equal dtypes move bits, so they are done by size; the others
 * are casts. Variants: AIR_COPY_BITS(size), AIR_COPY_CAST(to, from).
 */
#ifndef AIR_COPY_CUH
#define AIR_COPY_CUH

#include "ops/copy/variant.h"
#include "ops/cuda/elementwise.cuh"

template <class T> struct air_copy_bits : air_ew_unary<T> {
	static constexpr bool numbers = false;
	static __device__ __forceinline__ T apply(const air_ew_params &p, T a,
						  T)
	{
		return a;
	}
};

template <class T> struct air_limits;
template <> struct air_limits<int32_t> {
	static constexpr int64_t min = INT32_MIN, max = INT32_MAX;
};
template <> struct air_limits<int8_t> {
	static constexpr int64_t min = INT8_MIN, max = INT8_MAX;
};
template <> struct air_limits<int64_t> {
	static constexpr int64_t min = INT64_MIN, max = INT64_MAX;
};

/* The conversions saturate; only NaN needs a word. */
__device__ __forceinline__ void air_cast_to(float x, int64_t *y)
{
	*y = x == x ? __float2ll_rz(x) : 0;
}

__device__ __forceinline__ void air_cast_to(float x, int32_t *y)
{
	*y = x == x ? __float2int_rz(x) : 0;
}

__device__ __forceinline__ void air_cast_to(float x, int8_t *y)
{
	*y = (int8_t)(x == x ? fminf(fmaxf(x, -128.0f), 127.0f) : 0.0f);
}

template <class T> __device__ __forceinline__ void air_cast_to(float x, T *y)
{
	*y = air_from_float<T>(x);
}

template <class T>
__device__ __forceinline__ void air_cast_to(int64_t x, T *y)
{
	if constexpr (sizeof(T) == sizeof(int64_t))
		*y = x;
	else
		*y = (T)(x < air_limits<T>::min ? air_limits<T>::min :
			 x > air_limits<T>::max ? air_limits<T>::max : x);
}

template <class T> struct air_is_integer {
	static constexpr bool value = false;
};
template <> struct air_is_integer<int32_t> {
	static constexpr bool value = true;
};
template <> struct air_is_integer<int8_t> {
	static constexpr bool value = true;
};
template <> struct air_is_integer<int64_t> {
	static constexpr bool value = true;
};

template <class TO, class FROM> struct air_copy_cast {
	using out = TO;
	using in0 = FROM;
	static constexpr bool numbers = false;
	static constexpr int inputs = 1;
	static __device__ __forceinline__ TO apply(const air_ew_params &p,
						   FROM a, FROM)
	{
		TO y;

		if constexpr (air_is_integer<TO>::value &&
			      air_is_integer<FROM>::value)
			air_cast_to((int64_t)a, &y);
		else
			air_cast_to(air_float(a), &y);
		return y;
	}
};

/* Integers stay out: they are rare, and the resident kernel large. */
template <> struct air_body<AIR_OP_copy> {
	template <class F>
	static __device__ __forceinline__ void go(const void *params,
						  const air_operands &ops,
						  const air_part &part)
	{
		air_ew_body<F>(*(const air_ew_params *)params, ops, part);
	}

	static __device__ __forceinline__ void run(uint32_t variant,
						   const void *params,
						   const air_operands &ops,
						   const air_part &part)
	{
		using bf16 = __nv_bfloat16;

		switch (variant) {
		case AIR_COPY_BITS(1):
			go<air_copy_bits<uint8_t>>(params, ops, part);
			break;
		case AIR_COPY_BITS(2):
			go<air_copy_bits<uint16_t>>(params, ops, part);
			break;
		case AIR_COPY_BITS(4):
			go<air_copy_bits<uint32_t>>(params, ops, part);
			break;
		case AIR_COPY_BITS(8):
			go<air_copy_bits<uint64_t>>(params, ops, part);
			break;
		case AIR_COPY_CAST(AIRUNNER_F32, AIRUNNER_F16):
			go<air_copy_cast<float, __half>>(params, ops, part);
			break;
		case AIR_COPY_CAST(AIRUNNER_F32, AIRUNNER_BF16):
			go<air_copy_cast<float, bf16>>(params, ops, part);
			break;
		case AIR_COPY_CAST(AIRUNNER_F16, AIRUNNER_F32):
			go<air_copy_cast<__half, float>>(params, ops, part);
			break;
		case AIR_COPY_CAST(AIRUNNER_BF16, AIRUNNER_F32):
			go<air_copy_cast<bf16, float>>(params, ops, part);
			break;
		}
	}
};

#endif /* AIR_COPY_CUH */
