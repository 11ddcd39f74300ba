// SPDX-License-Identifier: MIT
#include "ops/matmul/matmul.h"

static air_status check_integers(const struct airunner_desc *d,
				 struct air_error *e)
{
	double alpha = air_attr_f64(d, AIR_MATMUL_ALPHA);
	double beta = air_attr_f64(d, AIR_MATMUL_BETA);
	uint64_t act = d->attr[AIR_MATMUL_ACTIVATION];

	if (alpha != 1)
		return air_fail(e, AIR_BAD_ATTRIBUTE,
				"matmul: alpha is %g; it must be 1 for i8",
				alpha);
	if (beta != 0 && beta != 1)
		return air_fail(e, AIR_BAD_ATTRIBUTE,
				"matmul: beta is %g; it must be 0 or 1 for i8",
				beta);
	if (act != AIR_ACT_NONE && act != AIR_ACT_RELU)
		return air_fail(e, AIR_BAD_ATTRIBUTE,
			"matmul: activation is %llu; it must be none or relu for i8",
			(unsigned long long)act);
	return AIR_OK;
}

static air_status check_dtypes(const struct airunner_desc *d,
			       struct air_error *e)
{
	const struct air_op *op = &air_op_matmul;
	uint32_t a = d->tensor[AIR_MATMUL_A].dtype;
	uint32_t allowed = AIR_DTYPE_BIT(a) | AIR_DTYPE_BIT(AIRUNNER_F32);
	air_status st =
		air_check_dtype(op, d, AIR_MATMUL_A,
				AIR_DTYPES_FLOAT | AIR_DTYPE_BIT(AIRUNNER_I8),
				e);

	if (!st)
		st = air_check_dtype_as(op, d, AIR_MATMUL_B, AIR_MATMUL_A, e);
	if (a == AIRUNNER_I8) {
		allowed = AIR_DTYPE_BIT(AIRUNNER_I32);
		if (!st)
			st = check_integers(d, e);
	}
	if (!st)
		st = air_check_dtype(op, d, AIR_MATMUL_Y, allowed, e);
	for (uint32_t i = AIR_MATMUL_C; !st && i <= AIR_MATMUL_BIAS; i++)
		if (air_has_operand(d, i))
			st = air_check_dtype_as(op, d, i, AIR_MATMUL_Y, e);
	return st;
}

static air_status check_shapes(const struct airunner_desc *d,
			       struct air_error *e)
{
	const struct air_op *op = &air_op_matmul;
	const struct airunner_tensor *t = d->tensor;
	uint32_t n = t[AIR_MATMUL_Y].ndim;
	bool ta = d->attr[AIR_MATMUL_TRANS_A];
	bool tb = d->attr[AIR_MATMUL_TRANS_B];
	air_status st =
		air_check_ndim(op, d, AIR_MATMUL_Y, 2, AIRUNNER_MAX_DIMS, e);

	for (uint32_t i = AIR_MATMUL_A; i <= AIR_MATMUL_B; i++) {
		if (!st)
			st = air_check_ndim(op, d, i, n, n, e);
		for (uint32_t k = 0; !st && k < n - 2; k++)
			st = air_check_dim(op, d, i, k,
					   t[AIR_MATMUL_Y].shape[k], "y's", e);
	}
	if (!st)
		st = air_check_dim(op, d, AIR_MATMUL_A, n - 2 + ta,
				   t[AIR_MATMUL_Y].shape[n - 2], "rows of y",
				   e);
	if (!st)
		st = air_check_dim(op, d, AIR_MATMUL_B, n - 1 - tb,
				   t[AIR_MATMUL_Y].shape[n - 1], "columns of y",
				   e);
	if (!st)
		st = air_check_dim(op, d, AIR_MATMUL_B, n - 2 + tb,
				   t[AIR_MATMUL_A].shape[n - 1 - ta],
				   "what a is summed over", e);
	if (!st && air_has_operand(d, AIR_MATMUL_C))
		st = air_check_shape_as(op, d, AIR_MATMUL_C, AIR_MATMUL_Y, e);
	if (!st && air_has_operand(d, AIR_MATMUL_BIAS)) {
		st = air_check_ndim(op, d, AIR_MATMUL_BIAS, 1, 1, e);
		if (!st)
			st = air_check_dim(op, d, AIR_MATMUL_BIAS, 0,
					   t[AIR_MATMUL_Y].shape[n - 1],
					   "columns of y", e);
	}
	return st;
}

static air_status check(const struct airunner_desc *d, struct air_error *e)
{
	const struct air_op *op = &air_op_matmul;
	air_status st = check_dtypes(d, e);

	if (!st)
		st = air_check_int(op, d, AIR_MATMUL_TRANS_A, "trans_a", 0, 1,
				   e);
	if (!st)
		st = air_check_int(op, d, AIR_MATMUL_TRANS_B, "trans_b", 0, 1,
				   e);
	if (!st)
		st = air_check_int(op, d, AIR_MATMUL_ACTIVATION, "activation",
				   AIR_ACT_NONE, AIR_ACT_GELU_TANH, e);
	if (!st)
		st = check_shapes(d, e);
	if (!st && !air_has_operand(d, AIR_MATMUL_C) &&
	    air_attr_f64(d, AIR_MATMUL_BETA) != 0)
		return air_fail(e, AIR_BAD_ARGUMENT,
			"matmul: operand c is missing; it may be only when beta is 0 (it is %g)",
			air_attr_f64(d, AIR_MATMUL_BETA));
	return st;
}

const struct air_op air_op_matmul = {
	.name = "matmul",
	.id = AIR_OP_matmul,
	.n_tensors = 5,
	.n_required = 3,
	.n_attrs = AIR_MATMUL_ATTRS,
	.in_place = 1U << 3,
	.operand = { "y", "a", "b", "c", "bias" },
	.check = check,
	.cpu_workspace = air_matmul_cpu_workspace,
	.cpu_plan = air_matmul_cpu_plan,
};
