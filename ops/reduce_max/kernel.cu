/* SPDX-License-Identifier: MIT */
#include "ops/reduce_max/kernel.cuh"

AIR_REDUCE_KERNELS(air_reduce_max_f32, air_reduce_max_of<float>)
AIR_REDUCE_KERNELS(air_reduce_max_f16, air_reduce_max_of<__half>)
AIR_REDUCE_KERNELS(air_reduce_max_bf16, air_reduce_max_of<__nv_bfloat16>)
AIR_REDUCE_KERNELS(air_reduce_max_i32, air_reduce_max_of<int32_t>)
AIR_REDUCE_KERNELS(air_reduce_max_i8, air_reduce_max_of<int8_t>)
AIR_REDUCE_KERNELS(air_reduce_max_i64, air_reduce_max_of<int64_t>)
