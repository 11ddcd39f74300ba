/* SPDX-License-Identifier: MIT */
/*
 * An operator as the resident kernel calls it: a function of its own, compiled
 * by itself (body.cu) and linked. All in one, they would keep the compiler busy
 * for very long and share the registers of the worst.
 */
#ifndef AIR_RES_BODY_CUH
#define AIR_RES_BODY_CUH

#include "ops/cuda/device.cuh"
#include "ops/worker/resident/resident.h"

/* By the first AIR_RES_WORKERS threads: share @block of @blocks. */
#define AIR_RES_BODY(name)                                                     \
	__device__ void air_run_##name(const air_res_plan *plan,               \
				       const air_operands *ops,                \
				       uint32_t block, uint32_t blocks,        \
				       void *shared)

/*
 * The same for what is small, all by this block: see struct
 * air_res_plan.vectors. A function of its own, as one saves and restores the
 * registers that it needs anywhere. @plan and @ops are in shared memory.
 */
#define AIR_RES_SMALL(name)                                                    \
	__device__ void air_small_##name(const air_res_plan *plan,             \
					 const air_operands *ops,              \
					 uint32_t vectors, uint32_t variant,   \
					 void *shared)

#define AIR_RES_DECLARE(name)                                                  \
	AIR_RES_BODY(name);                                                    \
	AIR_RES_SMALL(name);
AIR_OPS(AIR_RES_DECLARE)
#undef AIR_RES_DECLARE

#endif /* AIR_RES_BODY_CUH */
