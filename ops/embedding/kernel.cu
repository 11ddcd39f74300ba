/* SPDX-License-Identifier: MIT */
#include "ops/embedding/kernel.cuh"

#define KERNEL(name, T)                                                     \
	extern "C" __global__ void __launch_bounds__(256)                   \
		name(const __grid_constant__ air_embedding_params p,        \
		     const __grid_constant__ air_operands ops)              \
	{                                                                   \
		air_embedding_body<T>(p, ops, air_part_launched(nullptr));  \
	}

KERNEL(air_embedding_1, uint8_t)
KERNEL(air_embedding_2, uint16_t)
KERNEL(air_embedding_4, uint32_t)
KERNEL(air_embedding_8, uint64_t)
