// SPDX-License-Identifier: MIT
#include "ops/check.h"

#include <math.h>
#include <stdio.h>

static void dtype_list(char *buf, size_t size, uint32_t mask)
{
	size_t n = 0;

	buf[0] = 0;
	for (uint32_t t = 1; t < 32 && n < size; t++)
		if (mask & AIR_DTYPE_BIT(t))
			n += snprintf(buf + n, size - n, "%s%s", n ? ", " : "",
				      air_elem_name(t));
}

air_status air_check_dtype(const struct air_op *op,
			   const struct airunner_desc *d, uint32_t i,
			   uint32_t mask, struct air_error *e)
{
	char list[48];

	if (mask & AIR_DTYPE_BIT(d->tensor[i].dtype))
		return AIR_OK;
	dtype_list(list, sizeof(list), mask);
	return air_fail(e, AIR_BAD_DTYPE,
			"%s: operand %s: dtype is %s; it must be one of %s",
			op->name, op->operand[i],
			air_elem_name(d->tensor[i].dtype), list);
}

air_status air_check_dtype_as(const struct air_op *op,
			      const struct airunner_desc *d, uint32_t i,
			      uint32_t j, struct air_error *e)
{
	if (d->tensor[i].dtype == d->tensor[j].dtype)
		return AIR_OK;
	return air_fail(e, AIR_BAD_DTYPE,
		"%s: operand %s: dtype %s differs from %s's %s; they must be equal",
		op->name, op->operand[i], air_elem_name(d->tensor[i].dtype),
		op->operand[j], air_elem_name(d->tensor[j].dtype));
}

air_status air_check_shape_as(const struct air_op *op,
			      const struct airunner_desc *d, uint32_t i,
			      uint32_t j, struct air_error *e)
{
	const struct airunner_tensor *a = &d->tensor[i], *b = &d->tensor[j];
	char sa[AIR_SHAPE_STRING], sb[AIR_SHAPE_STRING];

	if (air_tensor_same_shape(a, b))
		return AIR_OK;
	return air_fail(e, AIR_BAD_SHAPE,
		"%s: operand %s: shape %s differs from %s's %s; they must be equal",
		op->name, op->operand[i],
		air_shape_string(sa, a->shape, a->ndim), op->operand[j],
		air_shape_string(sb, b->shape, b->ndim));
}

air_status air_check_ndim(const struct air_op *op,
			  const struct airunner_desc *d, uint32_t i,
			  uint32_t min, uint32_t max, struct air_error *e)
{
	uint32_t n = d->tensor[i].ndim;

	if (n >= min && n <= max)
		return AIR_OK;
	if (min == max)
		return air_fail(e, AIR_BAD_SHAPE,
			"%s: operand %s: %u dimensions; it must have %u",
			op->name, op->operand[i], n, min);
	return air_fail(e, AIR_BAD_SHAPE,
			"%s: operand %s: %u dimensions; it must have %u to %u",
			op->name, op->operand[i], n, min, max);
}

air_status air_check_dim(const struct air_op *op, const struct airunner_desc *d,
			 uint32_t i, uint32_t dim, int64_t want,
			 const char *what, struct air_error *e)
{
	const struct airunner_tensor *t = &d->tensor[i];
	char shape[AIR_SHAPE_STRING];

	if (t->shape[dim] == want)
		return AIR_OK;
	return air_fail(e, AIR_BAD_SHAPE,
		"%s: operand %s: dimension %u of shape %s must be %lld (%s)",
		op->name, op->operand[i], dim,
		air_shape_string(shape, t->shape, t->ndim), (long long)want,
		what);
}

air_status air_check_int(const struct air_op *op, const struct airunner_desc *d,
			 uint32_t i, const char *what, int64_t min, int64_t max,
			 struct air_error *e)
{
	int64_t v = (int64_t)d->attr[i];

	if (v >= min && v <= max)
		return AIR_OK;
	return air_fail(e, AIR_BAD_ATTRIBUTE,
			"%s: %s is %lld; it must be %lld to %lld", op->name,
			what, (long long)v, (long long)min, (long long)max);
}

air_status air_check_epsilon(const struct air_op *op,
			     const struct airunner_desc *d, uint32_t i,
			     const char *what, struct air_error *e)
{
	double v = air_attr_f64(d, i);

	if (isfinite(v) && v >= 0)
		return AIR_OK;
	return air_fail(e, AIR_BAD_ATTRIBUTE,
			"%s: %s is %g; it must be finite and not negative",
			op->name, what, v);
}

air_status air_check_elementwise(const struct air_op *op,
				 const struct airunner_desc *d, uint32_t mask,
				 struct air_error *e)
{
	air_status st = air_check_dtype(op, d, 0, mask, e);

	for (uint32_t i = 1; !st && i < op->n_tensors; i++) {
		st = air_check_dtype_as(op, d, i, 0, e);
		if (!st)
			st = air_check_shape_as(op, d, i, 0, e);
	}
	return st;
}
