/* SPDX-License-Identifier: MIT */
/*
 * The body of one operator for the resident kernel. Compiled once for each:
 * AIR_NAME is its name, AIR_HEADER its ops/<op>/kernel.cuh.
 */
#include AIR_HEADER
#include "ops/worker/resident/body.cuh"
#include "ops/worker/resident/small.cuh"
#ifdef AIR_RMS_NORM_CUH
#include "ops/worker/resident/norm.cuh"
#endif
#ifdef AIR_ROPE_CUH
#include "ops/worker/resident/rope.cuh"
#endif
#ifdef AIR_SOFTMAX_CUH
#include "ops/worker/resident/softmax.cuh"
#endif

#define DEFINE(name)                                                           \
	AIR_RES_BODY(name)                                                     \
	{                                                                      \
		/* copies: read at once, not one after the other */            \
		const air_operands mine = *ops;                                \
		const air_part part = { block, blocks, threadIdx.x,            \
					AIR_RES_WORKERS, shared };             \
\
		air_body<AIR_OP_##name>::run(plan->variant, plan->params,      \
					     mine, part);                      \
	}                                                                      \
	AIR_RES_SMALL(name)                                                    \
	{                                                                      \
		if (!air_small((const air_body<AIR_OP_##name> *)nullptr,       \
			       plan->params, ops, vectors, variant, shared))   \
			air_run_##name(plan, ops, 0, 1, shared);               \
	}
#define EXPAND(name) DEFINE(name)

EXPAND(AIR_NAME)
