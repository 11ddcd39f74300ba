/* SPDX-License-Identifier: MIT */
#include "ops/softmax/kernel.cuh"

AIR_ROW_KERNELS(softmax, air_softmax)

using bf16 = __nv_bfloat16;

AIR_ROW_AHEAD_KERNEL(air_softmax_f32_ahead, air_softmax<float>, float)
AIR_ROW_AHEAD_KERNEL(air_softmax_f16_ahead, air_softmax<__half>, __half)
AIR_ROW_AHEAD_KERNEL(air_softmax_bf16_ahead, air_softmax<bf16>, bf16)
