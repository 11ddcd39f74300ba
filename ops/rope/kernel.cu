/* SPDX-License-Identifier: MIT */
#include "ops/rope/kernel.cuh"

#define KERNEL(name, T)                                                \
	extern "C" __global__ void __launch_bounds__(256)              \
		name(const __grid_constant__ air_rope_params p,        \
		     const __grid_constant__ air_operands ops)         \
	{                                                              \
		air_rope_body<T>(p, ops, air_part_launched(nullptr));  \
	}

KERNEL(air_rope_f32, float)
KERNEL(air_rope_f16, __half)
KERNEL(air_rope_bf16, __nv_bfloat16)
