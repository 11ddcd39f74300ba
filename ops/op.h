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

/* How an output may share memory with an input. */
enum air_alias {
	/* Any overlap is refused. */
	AIR_ALIAS_NONE,
	/*
	 * Exactly the same elements (address, shape, strides, dtype) is
	 * in-place and allowed; any other overlap is refused.
	 */
	AIR_ALIAS_IN_PLACE,
};

struct air_cpu_plan;

/**
 * struct air_op - one operator
 * @name: as in air_op_<name>
 * @id: AIR_OP_<name>
 * @n_tensors: operands, the output first
 * @n_required: how many of them must be given; the rest may have dtype 0
 * @operand: their names, for error sentences
 * @alias: how the output (operand 0) may share memory with the others
 * @check: everything that can be wrong with a descriptor beyond what
 *	air_plan_init() checks for all (sizes, dtype numbers, dimensions,
 *	overflow). Names operator, operand, value and expectation in @e.
 *	Must be safe on arbitrary bytes: a worker calls it on what a client of
 *	another process wrote.
 * @cpu_workspace: bytes the CPU executor needs; NULL for none
 * @cpu_plan: make the CPU executor's plan for a checked descriptor
 */
struct air_op {
	const char *name;
	enum air_op_id id;
	uint32_t n_tensors;
	uint32_t n_required;
	const char *operand[AIRUNNER_MAX_TENSORS];
	enum air_alias alias;
	air_status (*check)(const struct airunner_desc *d,
			    struct air_error *e);
	uint64_t (*cpu_workspace)(const struct airunner_desc *d);
	air_status (*cpu_plan)(const struct airunner_desc *d,
			       struct air_cpu_plan **out, struct air_error *e);
};

/* The operator with that id, or NULL. */
const struct air_op *air_op_find(uint32_t id);

#endif /* AIR_OP_H */
