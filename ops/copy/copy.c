// SPDX-License-Identifier: MIT
#include "ops/copy/copy.h"

static air_status check(const struct airunner_desc *d, struct air_error *e)
{
	/* Any dtype to any other; the plan has seen that they are known. */
	return air_check_shape_as(&air_op_copy, d, 1, 0, e);
}

const struct air_op air_op_copy = {
	.name = "copy",
	.id = AIR_OP_copy,
	.n_tensors = 2,
	.n_required = 2,
	.in_place = 1U << 1,
	.operand = { "y", "x" },
	.check = check,
	.cpu_plan = air_copy_cpu_plan,
};
