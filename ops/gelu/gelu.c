// SPDX-License-Identifier: MIT
#include "ops/gelu/gelu.h"

#include <airunner/ops/gelu.h>

static air_status check(const struct airunner_desc *d, struct air_error *e)
{
	air_status st =
		air_check_int(&air_op_gelu, d, AIR_GELU_APPROXIMATE,
			      "approximate", AIR_GELU_ERF, AIR_GELU_TANH, e);

	if (st)
		return st;
	return air_check_elementwise(&air_op_gelu, d, AIR_DTYPES_FLOAT, e);
}

const struct air_op air_op_gelu = {
	.name = "gelu",
	.id = AIR_OP_gelu,
	.n_tensors = 2,
	.n_required = 2,
	.n_attrs = AIR_GELU_ATTRS,
	.in_place = 1U << 1,
	.operand = { "y", "x" },
	.check = check,
	.cpu_plan = air_gelu_cpu_plan,
};
