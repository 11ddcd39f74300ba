// SPDX-License-Identifier: MIT
#include "ops/rms_norm/rms_norm.h"

/* Operand @i is a vector as long as a row; in x's dtype or f32. */
static air_status check_vector(const struct airunner_desc *d, uint32_t i,
			       struct air_error *e)
{
	const struct air_op *op = &air_op_rms_norm;
	const struct airunner_tensor *y = &d->tensor[0];
	air_status st;

	if (!air_has_operand(d, i))
		return AIR_OK;
	st = air_check_dtype(
		op, d, i, AIR_DTYPE_BIT(y->dtype) | AIR_DTYPE_BIT(AIRUNNER_F32),
		e);
	if (!st)
		st = air_check_ndim(op, d, i, 1, 1, e);
	if (!st)
		st = air_check_dim(op, d, i, 0, y->shape[y->ndim - 1],
				   "y's last dimension", e);
	return st;
}

static air_status check(const struct airunner_desc *d, struct air_error *e)
{
	const struct air_op *op = &air_op_rms_norm;
	air_status st = air_check_dtype(op, d, 0, AIR_DTYPES_FLOAT, e);

	if (!st)
		st = air_check_dtype_as(op, d, 1, 0, e);
	if (!st)
		st = air_check_shape_as(op, d, 1, 0, e);
	if (!st)
		st = air_check_ndim(op, d, 0, 1, AIRUNNER_MAX_DIMS, e);
	if (!st)
		st = check_vector(d, 2, e);
	if (!st)
		st = air_check_epsilon(op, d, AIR_RMS_NORM_EPSILON, "epsilon",
				       e);
	return st;
}

const struct air_op air_op_rms_norm = {
	.name = "rms_norm",
	.id = AIR_OP_rms_norm,
	.n_tensors = 3,
	.n_required = 2,
	.n_attrs = AIR_RMS_NORM_ATTRS,
	.in_place = 1U << 1,
	.operand = { "y", "x", "weight" },
	.check = check,
	.cpu_plan = air_rms_norm_cpu_plan,
};
