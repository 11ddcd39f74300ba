/* SPDX-License-Identifier: MIT */
/*
 * A plan: a descriptor that has been checked, with what every executor needs
 * to check an execution's operands in a few comparisons. Client and worker
 * run the same checks: the client to give the user a sentence at once, the
 * worker because it trusts no client.
 */
#ifndef AIR_PLAN_H
#define AIR_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "ops/op.h"

/**
 * struct air_extent - where an operand's elements lie around its first one
 * @below: bytes before the first element (negative strides)
 * @above: bytes from the first element on; 0 with @below 0 for no elements
 * @align: required alignment in bytes (the dtype's size)
 */
struct air_extent {
	uint64_t below;
	uint64_t above;
	uint32_t align;
	uint32_t present;
};

struct air_plan {
	const struct air_op *op;
	struct airunner_desc desc;
	struct air_extent extent[AIRUNNER_MAX_TENSORS];
	uint64_t workspace; /* bytes; the executor may raise it */
	/* bit i: operand 0 and i have the same dtype, shape and strides */
	uint32_t same_layout;
};

/*
 * Check @desc as untrusted bytes and fill in @plan. @desc is copied first and
 * may be changing meanwhile. What op->check() sees has passed
 * air_tensor_check(), and the elements of its output are distinct.
 */
air_status air_plan_init(struct air_plan *plan,
			 const struct airunner_desc *desc, struct air_error *e);

/* Workspaces begin at a multiple of this. */
#define AIR_WORKSPACE_ALIGN 64

/* A buffer as binding sees it: address in the executor's space, and size. */
struct air_span {
	uint64_t addr;
	uint64_t size;
};

/**
 * air_plan_bind() - turn a submission's references into addresses
 * @find: the span of a handle for this executor; false: no such buffer (or
 *	the executor cannot address it)
 * @addr: out: first elements of the operands, then the workspace; 0 for
 *	operands left out
 * @operand: out, on failure: number of the refused operand, 1 is the first
 *	(AIRUNNER_WORD_WORKSPACE for the workspace)
 *
 * Checks handle, range, alignment, aliasing and workspace. AIR_BAD_HANDLE,
 * AIR_BAD_RANGE, AIR_BAD_ALIGN, AIR_ALIASING, AIR_WORKSPACE,
 * AIR_BAD_RESERVED (a reference where the plan has no operand, or a non-zero
 * argument word). Operands without elements may be AIRUNNER_REF_NONE; where
 * the plan has no operand, 0 will do as well. A workspace that the plan does
 * not need is not looked at. Addresses of spans must not wrap.
 */
air_status air_plan_bind(
	const struct air_plan *plan, const uint64_t word[AIRUNNER_SQE_WORDS],
	bool (*find)(void *arg, uint32_t handle, struct air_span *span),
	void *arg, uint64_t addr[AIRUNNER_MAX_TENSORS + 1], uint32_t *operand);

#endif /* AIR_PLAN_H */
