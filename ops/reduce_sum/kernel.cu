/* SPDX-License-Identifier: MIT */
#include "ops/reduce_sum/kernel.cuh"

using f32 = float;
using f16 = __half;
using bf16 = __nv_bfloat16;
using i32 = int32_t;
using i8 = int8_t;
using i64 = int64_t;

#define SUM(y, x)                                         \
	using sum_##y##_##x = air_reduce_sum_of<y, x>;    \
	AIR_REDUCE_KERNELS(air_reduce_sum_##y##_##x, sum_##y##_##x)

SUM(f32, f32)
SUM(f16, f16)
SUM(bf16, bf16)
SUM(f32, f16)
SUM(f32, bf16)
SUM(i32, i32)
SUM(i64, i32)
SUM(i8, i8)
SUM(i32, i8)
SUM(i64, i8)
SUM(i64, i64)
