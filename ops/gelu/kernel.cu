/* SPDX-License-Identifier: MIT */
#include "ops/gelu/kernel.cuh"

AIR_EW_DEAR_KERNEL(air_gelu_f32, air_gelu_any<float>)
AIR_EW_DEAR_KERNEL(air_gelu_f16, air_gelu_any<__half>)
AIR_EW_DEAR_KERNEL(air_gelu_bf16, air_gelu_any<__nv_bfloat16>)
