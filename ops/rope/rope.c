// SPDX-License-Identifier: MIT
#include "ops/rope/rope.h"

#include <airunner/ops/rope.h>

static air_status check_table(const struct airunner_desc *d,
			      struct air_error *e)
{
	const struct airunner_tensor *y = &d->tensor[AIR_ROPE_Y];
	const struct airunner_tensor *cos = &d->tensor[AIR_ROPE_COS];
	int64_t tokens = y->shape[y->ndim - 3];
	int64_t head = y->shape[y->ndim - 1];

	if (cos->shape[1] > head / 2)
		return air_fail(e, AIR_BAD_SHAPE,
			"rope: operand cos: %lld columns rotate twice as many elements; heads have %lld",
			(long long)cos->shape[1], (long long)head);
	if (!air_has_operand(d, AIR_ROPE_POSITIONS) && tokens > cos->shape[0])
		return air_fail(e, AIR_BAD_SHAPE,
			"rope: operand cos: %lld rows; without positions it needs one for each of the %lld tokens",
			(long long)cos->shape[0], (long long)tokens);
	return AIR_OK;
}

static air_status check_positions(const struct airunner_desc *d,
				  struct air_error *e)
{
	const struct airunner_tensor *y = &d->tensor[AIR_ROPE_Y];
	const struct airunner_tensor *p = &d->tensor[AIR_ROPE_POSITIONS];
	char sp[AIR_SHAPE_STRING], sy[AIR_SHAPE_STRING];
	air_status st = air_check_dtype(
		&air_op_rope, d, AIR_ROPE_POSITIONS,
		AIR_DTYPE_BIT(AIRUNNER_I32) | AIR_DTYPE_BIT(AIRUNNER_I64), e);

	if (st)
		return st;
	if (p->ndim == y->ndim - 2 &&
	    !memcmp(p->shape, y->shape, p->ndim * sizeof(p->shape[0])))
		return AIR_OK;
	return air_fail(e, AIR_BAD_SHAPE,
		"rope: operand positions: shape %s; it must be %s, y's without the last two",
		air_shape_string(sp, p->shape, p->ndim),
		air_shape_string(sy, y->shape, y->ndim - 2));
}

static air_status check(const struct airunner_desc *d, struct air_error *e)
{
	const struct air_op *op = &air_op_rope;
	const struct airunner_tensor *y = &d->tensor[AIR_ROPE_Y];
	air_status st = air_check_dtype(op, d, AIR_ROPE_Y, AIR_DTYPES_FLOAT, e);

	if (!st)
		st = air_check_dtype_as(op, d, AIR_ROPE_X, AIR_ROPE_Y, e);
	if (!st)
		st = air_check_shape_as(op, d, AIR_ROPE_X, AIR_ROPE_Y, e);
	if (!st)
		st = air_check_ndim(op, d, AIR_ROPE_Y, 3, AIRUNNER_MAX_DIMS, e);
	if (!st)
		st = air_check_dtype(op, d, AIR_ROPE_COS,
				     AIR_DTYPE_BIT(y->dtype) |
					     AIR_DTYPE_BIT(AIRUNNER_F32),
				     e);
	if (!st)
		st = air_check_dtype_as(op, d, AIR_ROPE_SIN, AIR_ROPE_COS, e);
	if (!st)
		st = air_check_ndim(op, d, AIR_ROPE_COS, 2, 2, e);
	if (!st)
		st = air_check_shape_as(op, d, AIR_ROPE_SIN, AIR_ROPE_COS, e);
	if (!st)
		st = air_check_int(op, d, AIR_ROPE_STYLE, "style",
				   AIR_ROPE_HALVES, AIR_ROPE_PAIRS, e);
	if (!st)
		st = check_table(d, e);
	if (!st && air_has_operand(d, AIR_ROPE_POSITIONS))
		st = check_positions(d, e);
	return st;
}

const struct air_op air_op_rope = {
	.name = "rope",
	.id = AIR_OP_rope,
	.n_tensors = 5,
	.n_required = 4,
	.n_attrs = AIR_ROPE_ATTRS,
	.in_place = 1U << 1,
	.operand = { "y", "x", "cos", "sin", "positions" },
	.check = check,
	.cpu_plan = air_rope_cpu_plan,
};
