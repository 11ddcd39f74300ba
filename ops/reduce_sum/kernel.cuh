/* SPDX-License-Identifier: MIT */
#ifndef AIR_REDUCE_SUM_CUH
#define AIR_REDUCE_SUM_CUH

#include "ops/cuda/reduce.cuh"

/* Variants: (dtype of y * 8 + dtype of x) * 2 + enum air_reduce_variant. */
template <> struct air_body<AIR_OP_reduce_sum> {
	template <int Y, int X>
	static __device__ __forceinline__ void go(uint32_t variant,
						  const void *params,
						  const air_operands &ops,
						  const air_part &part)
	{
		using out = typename air_type_of<Y>::type;
		using in = typename air_type_of<X>::type;

		air_reduce_body<air_reduce_sum_of<out, in>>(
			variant % 2, *(const air_reduce_params *)params, ops,
			part);
	}

	static __device__ __forceinline__ void run(uint32_t variant,
						   const void *params,
						   const air_operands &ops,
						   const air_part &part)
	{
		switch (variant / 2) {
		case AIRUNNER_F32 * 8 + AIRUNNER_F32:
			go<AIRUNNER_F32, AIRUNNER_F32>(variant, params, ops,
						       part);
			break;
		case AIRUNNER_F16 * 8 + AIRUNNER_F16:
			go<AIRUNNER_F16, AIRUNNER_F16>(variant, params, ops,
						       part);
			break;
		case AIRUNNER_BF16 * 8 + AIRUNNER_BF16:
			go<AIRUNNER_BF16, AIRUNNER_BF16>(variant, params, ops,
							 part);
			break;
		}
	}
};

#endif /* AIR_REDUCE_SUM_CUH */
