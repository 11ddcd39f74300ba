// SPDX-License-Identifier: MIT
#include "ops/relu/relu.h"

static air_status check(const struct airunner_desc *d, struct air_error *e)
{
	return air_check_elementwise(&air_op_relu, d, AIR_DTYPES_FLOAT, e);
}

const struct air_op air_op_relu = {
	.name = "relu",
	.id = AIR_OP_relu,
	.n_tensors = 2,
	.n_required = 2,
	.in_place = 1U << 1,
	.operand = { "y", "x" },
	.check = check,
	.cpu_plan = air_relu_cpu_plan,
};
