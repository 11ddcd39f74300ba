// SPDX-License-Identifier: MIT
#include "ops/reduce_max/reduce_max.h"
#include "ops/reduce.h"

static air_status check(const struct airunner_desc *d, struct air_error *e)
{
	const struct air_op *op = &air_op_reduce_max;
	air_status st =
		air_check_dtype_as(op, d, AIR_REDUCE_Y, AIR_REDUCE_X, e);

	if (!st)
		st = air_reduce_check(op, d, e);
	if (st)
		return st;
	if (!air_reduce_count(d) && air_tensor_count(&d->tensor[AIR_REDUCE_Y]))
		return air_fail(e, AIR_BAD_SHAPE,
			"reduce_max: operand x: a reduced dimension is 0; the largest of nothing does not exist");
	return AIR_OK;
}

const struct air_op air_op_reduce_max = {
	.name = "reduce_max",
	.id = AIR_OP_reduce_max,
	.n_tensors = 2,
	.n_required = 2,
	.n_attrs = AIR_REDUCE_ATTRS,
	.operand = { "y", "x" },
	.check = check,
	.cpu_plan = air_reduce_max_cpu_plan,
};
