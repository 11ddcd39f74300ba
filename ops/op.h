/* SPDX-License-Identifier: MIT */
/*
 * An operator, as the rest of the program sees it. ops/<op>/ defines one
 * `const struct air_op air_op_<op>`; ops/op.c makes the table of them from
 * the list in include/airunner/ops.h.
 */
#ifndef AIR_OP_H
#define AIR_OP_H

#include <stdint.h>

#include <airunner.h>
#include <airunner/ops.h>

#include "include/uapi/airunner.h"

/* A sentence on its way to the user. */
struct air_error {
	char text[176];
};

/* Write the sentence, return the status. @e may be NULL. */
air_status air_fail(struct air_error *e, air_status status, const char *fmt,
		    ...) __attribute__((format(printf, 3, 4)));

struct air_cpu_plan;

/**
 * struct air_op - one operator
 * @name: as in air_op_<name>
 * @id: AIR_OP_<name>
 * @n_tensors: operands, the output first
 * @n_required: how many of them, the first ones, must be given; the rest may
 *	have dtype 0
 * @n_attrs: attributes it has; those beyond must be zero
 * @in_place: bit i: operand i may be exactly the output's elements (address,
 *	shape, strides, dtype). Any other overlap of the output with an
 *	operand is refused
 * @operand: their names, for error sentences
 * @check: everything that can be wrong with a descriptor beyond what
 *	air_plan_init() checks for all (sizes, dtype numbers, dimensions,
 *	output strides, overflow, unknown attributes). Names operator,
 *	operand, value and expectation in @e. The rest is still what a client
 *	of another process wrote: attributes can hold anything
 * @cpu_workspace: bytes the CPU executor needs; NULL for none
 * @cpu_plan: make the CPU executor's plan for a checked descriptor
 */
struct air_op {
	const char *name;
	enum air_op_id id;
	uint32_t n_tensors;
	uint32_t n_required;
	uint32_t n_attrs;
	uint32_t in_place;
	const char *operand[AIRUNNER_MAX_TENSORS];
	air_status (*check)(const struct airunner_desc *d, struct air_error *e);
	uint64_t (*cpu_workspace)(const struct airunner_desc *d);
	air_status (*cpu_plan)(const struct airunner_desc *d,
			       struct air_cpu_plan **out, struct air_error *e);
};

/* The operator with that id, or NULL. */
const struct air_op *air_op_find(uint32_t id);

#endif /* AIR_OP_H */
