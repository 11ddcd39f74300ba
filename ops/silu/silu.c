// SPDX-License-Identifier: MIT
#include "ops/silu/silu.h"

static air_status check(const struct airunner_desc *d, struct air_error *e)
{
	return air_check_elementwise(&air_op_silu, d, AIR_DTYPES_FLOAT, e);
}

const struct air_op air_op_silu = {
	.name = "silu",
	.id = AIR_OP_silu,
	.n_tensors = 2,
	.n_required = 2,
	.in_place = 1U << 1,
	.operand = { "y", "x" },
	.check = check,
	.cpu_plan = air_silu_cpu_plan,
};
