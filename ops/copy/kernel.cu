/* SPDX-License-Identifier: MIT */
#include "ops/copy/kernel.cuh"
#include "ops/copy/transpose.cuh"

AIR_EW_KERNEL(air_copy_1, air_copy_bits<uint8_t>)
AIR_EW_KERNEL(air_copy_2, air_copy_bits<uint16_t>)
AIR_EW_KERNEL(air_copy_4, air_copy_bits<uint32_t>)
AIR_EW_KERNEL(air_copy_8, air_copy_bits<uint64_t>)

AIR_TRANSPOSE_KERNEL(air_transpose_1, uint8_t)
AIR_TRANSPOSE_KERNEL(air_transpose_2, uint16_t)
AIR_TRANSPOSE_KERNEL(air_transpose_4, uint32_t)
AIR_TRANSPOSE_KERNEL(air_transpose_8, uint64_t)

using f32 = float;
using f16 = __half;
using bf16 = __nv_bfloat16;
using i32 = int32_t;
using i8 = int8_t;
using i64 = int64_t;

/* A macro's argument must not hold the comma of air_copy_cast<to, from>. */
#define CAST(to, from)                                  \
	using cast_##to##_##from = air_copy_cast<to, from>; \
	AIR_EW_KERNEL(air_cast_##to##_##from, cast_##to##_##from)

CAST(f32, f16)
CAST(f32, bf16)
CAST(f32, i32)
CAST(f32, i8)
CAST(f32, i64)
CAST(f16, f32)
CAST(f16, bf16)
CAST(f16, i32)
CAST(f16, i8)
CAST(f16, i64)
CAST(bf16, f32)
CAST(bf16, f16)
CAST(bf16, i32)
CAST(bf16, i8)
CAST(bf16, i64)
CAST(i32, f32)
CAST(i32, f16)
CAST(i32, bf16)
CAST(i32, i8)
CAST(i32, i64)
CAST(i8, f32)
CAST(i8, f16)
CAST(i8, bf16)
CAST(i8, i32)
CAST(i8, i64)
CAST(i64, f32)
CAST(i64, f16)
CAST(i64, bf16)
CAST(i64, i32)
CAST(i64, i8)
