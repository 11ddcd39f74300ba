// SPDX-License-Identifier: MIT
#include "ops/softmax/softmax.h"

static air_status check(const struct airunner_desc *d, struct air_error *e)
{
	const struct air_op *op = &air_op_softmax;
	air_status st = air_check_elementwise(op, d, AIR_DTYPES_FLOAT, e);

	if (!st)
		st = air_check_ndim(op, d, 0, 1, AIRUNNER_MAX_DIMS, e);
	if (!st)
		st = air_check_int(op, d, AIR_SOFTMAX_AXIS, "axis", 0,
				   (int64_t)d->tensor[0].ndim - 1, e);
	return st;
}

const struct air_op air_op_softmax = {
	.name = "softmax",
	.id = AIR_OP_softmax,
	.n_tensors = 2,
	.n_required = 2,
	.n_attrs = AIR_SOFTMAX_ATTRS,
	.in_place = 1U << 1,
	.operand = { "y", "x" },
	.check = check,
	.cpu_plan = air_softmax_cpu_plan,
};
