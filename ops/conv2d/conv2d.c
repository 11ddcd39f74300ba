// SPDX-License-Identifier: MIT
#include "ops/conv2d/conv2d.h"

/* Large enough for anything, small enough that sizes cannot overflow. */
#define MAX_STEP  INT32_MAX
#define MAX_IMAGE (INT64_C(1) << 56)

static air_status check_attributes(const struct airunner_desc *d,
				   struct air_error *e)
{
	const struct air_op *op = &air_op_conv2d;
	air_status st = AIR_OK;

	for (uint32_t i = 0; !st && i < 2; i++)
		st = air_check_int(op, d, AIR_CONV2D_STRIDE + i, "stride", 1,
				   MAX_STEP, e);
	for (uint32_t i = 0; !st && i < 2; i++)
		st = air_check_int(op, d, AIR_CONV2D_PADDING + i, "padding", 0,
				   MAX_STEP, e);
	for (uint32_t i = 0; !st && i < 2; i++)
		st = air_check_int(op, d, AIR_CONV2D_DILATION + i, "dilation",
				   1, MAX_STEP, e);
	if (!st)
		st = air_check_int(op, d, AIR_CONV2D_GROUPS, "groups", 1,
				   MAX_STEP, e);
	if (!st)
		st = air_check_int(op, d, AIR_CONV2D_ACTIVATION, "activation",
				   AIR_ACT_NONE, AIR_ACT_GELU_TANH, e);
	return st;
}

static air_status check_channels(const struct airunner_desc *d,
				 struct air_error *e)
{
	const struct air_op *op = &air_op_conv2d;
	const struct airunner_tensor *t = d->tensor;
	int64_t groups = (int64_t)d->attr[AIR_CONV2D_GROUPS];
	int64_t in = t[AIR_CONV2D_X].shape[1];
	int64_t out = t[AIR_CONV2D_Y].shape[1];
	air_status st;

	if (in % groups || out % groups)
		return air_fail(e, AIR_BAD_SHAPE,
			"conv2d: groups is %lld; channels of x (%lld) and of y (%lld) must be multiples of it",
			(long long)groups, (long long)in, (long long)out);
	st = air_check_dim(op, d, AIR_CONV2D_X, 0, t[AIR_CONV2D_Y].shape[0],
			   "images of y", e);
	if (!st)
		st = air_check_dim(op, d, AIR_CONV2D_WEIGHT, 0, out,
				   "channels of y", e);
	if (!st)
		st = air_check_dim(op, d, AIR_CONV2D_WEIGHT, 1, in / groups,
				   "channels of x in a group", e);
	return st;
}

/* Height (@i 0) or width (@i 1) of the output. */
static air_status check_window(const struct airunner_desc *d, uint32_t i,
			       struct air_error *e)
{
	int64_t in = d->tensor[AIR_CONV2D_X].shape[2 + i];
	int64_t kernel = d->tensor[AIR_CONV2D_WEIGHT].shape[2 + i];
	int64_t stride = (int64_t)d->attr[AIR_CONV2D_STRIDE + i];
	int64_t padding = (int64_t)d->attr[AIR_CONV2D_PADDING + i];
	int64_t dilation = (int64_t)d->attr[AIR_CONV2D_DILATION + i];
	int64_t reach, room;

	if (in > MAX_IMAGE)
		return air_fail(e, AIR_BAD_SHAPE,
			"conv2d: operand x: dimension %u is %lld; at most 2^56",
			2 + i, (long long)in);
	if (kernel < 1 ||
	    __builtin_mul_overflow(kernel - 1, dilation, &reach) ||
	    reach > MAX_IMAGE)
		return air_fail(e, AIR_BAD_SHAPE,
			"conv2d: operand weight: dimension %u is %lld; it must be at least 1, and with dilation %lld reach no further than 2^56",
			2 + i, (long long)kernel, (long long)dilation);
	room = in + 2 * padding - reach - 1;
	if (room < 0)
		return air_fail(e, AIR_BAD_SHAPE,
			"conv2d: operand weight: dimension %u reaches %lld elements; the padded input has %lld",
			2 + i, (long long)(reach + 1),
			(long long)(in + 2 * padding));
	return air_check_dim(
		&air_op_conv2d, d, AIR_CONV2D_Y, 2 + i, room / stride + 1,
		"what input, kernel, stride, padding and dilation give", e);
}

static air_status check(const struct airunner_desc *d, struct air_error *e)
{
	const struct air_op *op = &air_op_conv2d;
	const struct airunner_tensor *t = d->tensor;
	air_status st =
		air_check_dtype(op, d, AIR_CONV2D_Y, AIR_DTYPES_FLOAT, e);

	for (uint32_t i = 1; !st && i < d->n_tensors; i++)
		if (air_has_operand(d, i))
			st = air_check_dtype_as(op, d, i, AIR_CONV2D_Y, e);
	for (uint32_t i = 0; !st && i <= AIR_CONV2D_WEIGHT; i++)
		st = air_check_ndim(op, d, i, 4, 4, e);
	if (!st)
		st = check_attributes(d, e);
	if (!st)
		st = check_channels(d, e);
	for (uint32_t i = 0; !st && i < 2; i++)
		st = check_window(d, i, e);
	if (!st && air_has_operand(d, AIR_CONV2D_BIAS)) {
		st = air_check_ndim(op, d, AIR_CONV2D_BIAS, 1, 1, e);
		if (!st)
			st = air_check_dim(op, d, AIR_CONV2D_BIAS, 0,
					   t[AIR_CONV2D_Y].shape[1],
					   "channels of y", e);
	}
	return st;
}

const struct air_op air_op_conv2d = {
	.name = "conv2d",
	.id = AIR_OP_conv2d,
	.n_tensors = 4,
	.n_required = 3,
	.n_attrs = AIR_CONV2D_ATTRS,
	.operand = { "y", "x", "weight", "bias" },
	.check = check,
	.cpu_workspace = air_conv2d_cpu_workspace,
	.cpu_plan = air_conv2d_cpu_plan,
};
