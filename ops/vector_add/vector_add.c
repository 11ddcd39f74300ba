// SPDX-License-Identifier: MIT
#include "ops/vector_add/vector_add.h"

static air_status check(const struct airunner_desc *d, struct air_error *e)
{
	return air_check_elementwise(&air_op_vector_add, d, AIR_DTYPES_FLOAT,
				     e);
}

const struct air_op air_op_vector_add = {
	.name = "vector_add",
	.id = AIR_OP_vector_add,
	.n_tensors = 3,
	.n_required = 3,
	.in_place = 1U << 1 | 1U << 2,
	.operand = { "c", "a", "b" },
	.check = check,
	.cpu_plan = air_vector_add_cpu_plan,
};
