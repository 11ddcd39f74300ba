// SPDX-License-Identifier: MIT
#include "ops/reduce_sum/reduce_sum.h"
#include "ops/reduce.h"

static air_status check(const struct airunner_desc *d, struct air_error *e)
{
	const struct air_op *op = &air_op_reduce_sum;
	uint32_t x = d->tensor[AIR_REDUCE_X].dtype;
	uint32_t allowed = AIR_DTYPE_BIT(x);
	air_status st;

	if (x == AIRUNNER_F16 || x == AIRUNNER_BF16)
		allowed |= AIR_DTYPE_BIT(AIRUNNER_F32);
	if (x == AIRUNNER_I8)
		allowed |= AIR_DTYPE_BIT(AIRUNNER_I32) |
			   AIR_DTYPE_BIT(AIRUNNER_I64);
	if (x == AIRUNNER_I32)
		allowed |= AIR_DTYPE_BIT(AIRUNNER_I64);
	st = air_check_dtype(op, d, AIR_REDUCE_Y, allowed, e);
	if (st)
		return st;
	return air_reduce_check(op, d, e);
}

const struct air_op air_op_reduce_sum = {
	.name = "reduce_sum",
	.id = AIR_OP_reduce_sum,
	.n_tensors = 2,
	.n_required = 2,
	.n_attrs = AIR_REDUCE_ATTRS,
	.operand = { "y", "x" },
	.check = check,
	.cpu_plan = air_reduce_sum_cpu_plan,
};
