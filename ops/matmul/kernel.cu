/* SPDX-License-Identifier: MIT */
#include "ops/matmul/kernel.cuh"

using f32 = float;
using f16 = __half;
using bf16 = __nv_bfloat16;
using i32 = int32_t;
using i8 = int8_t;

#define KERNEL(name, how, Y, T, bytes)                                        \
	extern "C" __global__ void __launch_bounds__(AIR_TILE_THREADS)        \
		air_matmul_##Y##_##T##_##name(                                \
			const __grid_constant__ air_matmul_params p,          \
			const __grid_constant__ air_operands ops)             \
	{                                                                     \
		__shared__ __align__(16) unsigned char shared[bytes];         \
		air_matmul_body<Y, T>(how, p, ops,                            \
				      air_part_launched(shared));             \
	}

#define ANY(Y, T) KERNEL(FMA, AIR_MATMUL_FMA, Y, T, AIR_FMA_SHARED)

#define FLOAT(Y, T)                                                  \
	ANY(Y, T)                                                    \
	KERNEL(DOT, AIR_MATMUL_DOT, Y, T, AIR_FMA_SHARED)            \
	KERNEL(SWEEP, AIR_MATMUL_SWEEP, Y, T, AIR_FMA_SHARED)

#define HALF(Y, T)                                                            \
	FLOAT(Y, T)                                                           \
	KERNEL(MMA_64, AIR_MATMUL_MMA_64, Y, T, AIR_MMA_SHARED(64, 64))       \
	KERNEL(MMA_128, AIR_MATMUL_MMA_128, Y, T, AIR_MMA_SHARED(128, 128))

#define ACTIVATE(Y)                                                      \
	extern "C" __global__ void __launch_bounds__(256)                \
		air_matmul_##Y##_activate(                               \
			const __grid_constant__ air_matmul_params p,     \
			const __grid_constant__ air_operands ops)        \
	{                                                                \
		air_matmul_activate<Y>(p, ops,                           \
				       air_part_launched(nullptr));      \
	}

#define FINISH(Y)                                                        \
	extern "C" __global__ void __launch_bounds__(256, 4)             \
		air_matmul_##Y##_finish(                                 \
			const __grid_constant__ air_matmul_params p,     \
			const __grid_constant__ air_operands ops)        \
	{                                                                \
		air_matmul_finish<Y>(p, ops, air_part_launched(nullptr)); \
	}

FINISH(f16)
FINISH(bf16)

ACTIVATE(f32)
ACTIVATE(f16)
ACTIVATE(bf16)

FLOAT(f32, f32)
HALF(f16, f16)
HALF(f32, f16)
HALF(bf16, bf16)
HALF(f32, bf16)
ANY(i32, i8)
