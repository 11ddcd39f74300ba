// SPDX-License-Identifier: MIT
#include "ops/mul/mul.h"

static air_status check(const struct airunner_desc *d, struct air_error *e)
{
	return air_check_elementwise(&air_op_mul, d, AIR_DTYPES_FLOAT, e);
}

const struct air_op air_op_mul = {
	.name = "mul",
	.id = AIR_OP_mul,
	.n_tensors = 3,
	.n_required = 3,
	.in_place = 1U << 1 | 1U << 2,
	.operand = { "y", "a", "b" },
	.check = check,
	.cpu_plan = air_mul_cpu_plan,
};
