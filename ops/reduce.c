// SPDX-License-Identifier: MIT
#include "ops/reduce.h"

uint64_t air_reduce_axes(const int32_t *axes, uint32_t n_axes,
			 const air_tensor_desc *x)
{
	uint64_t mask = 0;

	if (!x || x->ndim > AIR_MAX_DIMS)
		return 0;
	if (!n_axes)
		return (1ULL << x->ndim) - 1;
	for (uint32_t i = 0; i < n_axes; i++) {
		int32_t n = (int32_t)x->ndim;
		int32_t axis = axes[i];

		if (axis < -n || axis >= n)
			return AIR_REDUCE_BAD_AXIS | (uint32_t)axis;
		if (axis < 0)
			axis += n;
		if (mask & (1ULL << axis))
			return AIR_REDUCE_BAD_AXIS | (uint32_t)axes[i];
		mask |= 1ULL << axis;
	}
	return mask;
}

air_status air_reduce_check(const struct air_op *op,
			    const struct airunner_desc *d, struct air_error *e)
{
	const struct airunner_tensor *y = &d->tensor[AIR_REDUCE_Y];
	const struct airunner_tensor *x = &d->tensor[AIR_REDUCE_X];
	uint64_t mask = d->attr[AIR_REDUCE_AXES];
	char sy[AIR_SHAPE_STRING], sx[AIR_SHAPE_STRING];
	__s64 shape[AIRUNNER_MAX_DIMS];
	uint32_t ndim = 0;
	air_status st;

	if (mask & AIR_REDUCE_BAD_AXIS)
		return air_fail(e, AIR_BAD_ATTRIBUTE,
			"%s: axis %d is not one of x's %u dimensions (%d to %d), or is named twice",
			op->name, (int32_t)(uint32_t)mask, x->ndim,
			-(int)x->ndim, (int)x->ndim - 1);
	if (mask >> x->ndim)
		return air_fail(e, AIR_BAD_ATTRIBUTE,
				"%s: axes are 0x%llx; x has %u dimensions",
				op->name, (unsigned long long)mask, x->ndim);
	st = air_check_int(op, d, AIR_REDUCE_KEEPDIM, "keepdim", 0, 1, e);
	if (st)
		return st;

	for (uint32_t i = 0; i < x->ndim; i++) {
		if (!(mask >> i & 1))
			shape[ndim++] = x->shape[i];
		else if (d->attr[AIR_REDUCE_KEEPDIM])
			shape[ndim++] = 1;
	}
	if (y->ndim == ndim &&
	    !memcmp(y->shape, shape, ndim * sizeof(shape[0])))
		return AIR_OK;
	return air_fail(e, AIR_BAD_SHAPE,
			"%s: operand y: shape is %s; reducing x leaves %s",
			op->name, air_shape_string(sy, y->shape, y->ndim),
			air_shape_string(sx, shape, ndim));
}

int64_t air_reduce_count(const struct airunner_desc *d)
{
	const struct airunner_tensor *x = &d->tensor[AIR_REDUCE_X];
	int64_t n = 1;

	for (uint32_t i = 0; i < x->ndim; i++)
		if (d->attr[AIR_REDUCE_AXES] >> i & 1)
			n *= x->shape[i];
	return n;
}
