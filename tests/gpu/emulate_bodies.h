/* SPDX-License-Identifier: MIT */
/*
 * Operators for the emulated kernel. AIR_OP_add: y = a + b, numbers of 64
 * bits; the parameters are how many. AIR_OP_reduce_sum: y[0] is the sum of x.
 */
#ifndef AIR_TEST_EMULATE_BODIES_H
#define AIR_TEST_EMULATE_BODIES_H

#include "ops/worker/resident/body.cuh"

template <int OP> struct air_body {
	static void run(uint32_t, const void *, const air_operands &,
			const air_part &)
	{
		puts("an operator that the test does not have");
		abort();
	}
};

template <> struct air_body<AIR_OP_add> {
	static void run(uint32_t, const void *params, const air_operands &ops,
			const air_part &part)
	{
		uint64_t n = *(const uint64_t *)params;

		for (uint64_t i = part.block * part.threads + part.thread;
		     i < n; i += part.blocks * part.threads)
			((uint64_t *)ops.addr[0])[i] =
				((const uint64_t *)ops.addr[1])[i] +
				((const uint64_t *)ops.addr[2])[i];
	}
};

template <> struct air_body<AIR_OP_reduce_sum> {
	static void run(uint32_t, const void *params, const air_operands &ops,
			const air_part &part)
	{
		uint64_t n = *(const uint64_t *)params, sum = 0;

		if (part.thread)
			return;
		for (uint64_t i = 0; i < n; i++)
			sum += ((const uint64_t *)ops.addr[1])[i];
		*(uint64_t *)ops.addr[0] = sum;
	}
};

#define DEFINE(name)                                                           \
	AIR_RES_BODY(name)                                                     \
	{                                                                      \
		const air_part part = { block, blocks, threadIdx.x,            \
					AIR_RES_WORKERS, shared };             \
\
		air_body<AIR_OP_##name>::run(plan->variant, plan->params,      \
					     *ops, part);                      \
	}                                                                      \
	AIR_RES_SMALL(name)                                                    \
	{                                                                      \
		air_run_##name(plan, ops, 0, 1, shared);                       \
	}
AIR_OPS(DEFINE)
#undef DEFINE

#endif /* AIR_TEST_EMULATE_BODIES_H */
