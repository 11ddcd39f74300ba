/* SPDX-License-Identifier: MIT */
/*
 * What operators have of their own for the resident kernel, besides the bodies
 * that launched kernels have, too.
 */
#ifndef AIR_RES_SPECIAL_CUH
#define AIR_RES_SPECIAL_CUH

#include "ops/worker/resident/small.cuh"

/* Nothing, unless a more special function says otherwise. */
__device__ __forceinline__ bool air_special(const void *, uint32_t,
					    const void *, const air_operands &,
					    const air_part &)
{
	return false;
}

#ifdef AIR_MATMUL_CUH
#include "ops/worker/resident/gemv.cuh"
#endif
#ifdef AIR_RMS_NORM_CUH
#include "ops/worker/resident/norm.cuh"
#endif

#endif /* AIR_RES_SPECIAL_CUH */
