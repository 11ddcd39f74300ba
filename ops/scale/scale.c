// SPDX-License-Identifier: MIT
#include "ops/scale/scale.h"

static air_status check(const struct airunner_desc *d, struct air_error *e)
{
	return air_check_elementwise(&air_op_scale, d, AIR_DTYPES_FLOAT, e);
}

const struct air_op air_op_scale = {
	.name = "scale",
	.id = AIR_OP_scale,
	.n_tensors = 2,
	.n_required = 2,
	.n_attrs = AIR_SCALE_ATTRS,
	.in_place = 1U << 1,
	.operand = { "y", "x" },
	.check = check,
	.cpu_plan = air_scale_cpu_plan,
};
