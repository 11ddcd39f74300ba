/* SPDX-License-Identifier: MIT */
#include "ops/conv2d/kernel.cuh"

#define KERNEL(name, T)                                                    \
	extern "C" __global__ void __launch_bounds__(AIR_TILE_THREADS)     \
		name(const __grid_constant__ air_conv2d_params p,          \
		     const __grid_constant__ air_operands ops)             \
	{                                                                  \
		__shared__ __align__(16) unsigned char                     \
			shared[AIR_CONV2D_SHARED];                         \
		air_conv2d_body<T>(p, ops, air_part_launched(shared));     \
	}

KERNEL(air_conv2d_f32, float)
KERNEL(air_conv2d_f16, __half)
KERNEL(air_conv2d_bf16, __nv_bfloat16)
