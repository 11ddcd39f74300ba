/* SPDX-License-Identifier: MIT */
#ifndef AIR_REDUCE_MAX_CUH
#define AIR_REDUCE_MAX_CUH

#include "ops/cuda/reduce.cuh"

/* Variants: dtype * 2 + enum air_reduce_variant. */
template <> struct air_body<AIR_OP_reduce_max> {
	template <class T>
	static __device__ __forceinline__ void go(uint32_t variant,
						  const void *params,
						  const air_operands &ops,
						  const air_part &part)
	{
		air_reduce_body<air_reduce_max_of<T>>(
			variant % 2, *(const air_reduce_params *)params, ops,
			part);
	}

	static __device__ __forceinline__ void run(uint32_t variant,
						   const void *params,
						   const air_operands &ops,
						   const air_part &part)
	{
		if (variant / 2 == AIRUNNER_F32)
			go<float>(variant, params, ops, part);
		else if (variant / 2 == AIRUNNER_F16)
			go<__half>(variant, params, ops, part);
		else
			go<__nv_bfloat16>(variant, params, ops, part);
	}
};

#endif /* AIR_REDUCE_MAX_CUH */
