/* SPDX-License-Identifier: MIT */
/*
 * What operators' checks are made of. Each returns AIR_OK, or a status and a
 * sentence that names operator, operand, value and expectation.
 */
#ifndef AIR_CHECK_H
#define AIR_CHECK_H

#include <string.h>

#include "ops/tensor.h"

/* Operand @i's dtype is in @mask (AIR_DTYPE_BIT()). */
air_status air_check_dtype(const struct air_op *op,
			   const struct airunner_desc *d, uint32_t i,
			   uint32_t mask, struct air_error *e);
/* Operand @i's dtype is operand @j's. */
air_status air_check_dtype_as(const struct air_op *op,
			      const struct airunner_desc *d, uint32_t i,
			      uint32_t j, struct air_error *e);
air_status air_check_shape_as(const struct air_op *op,
			      const struct airunner_desc *d, uint32_t i,
			      uint32_t j, struct air_error *e);
air_status air_check_ndim(const struct air_op *op,
			  const struct airunner_desc *d, uint32_t i,
			  uint32_t min, uint32_t max, struct air_error *e);
/* Dimension @dim of operand @i is @want, which is @what. */
air_status air_check_dim(const struct air_op *op, const struct airunner_desc *d,
			 uint32_t i, uint32_t dim, int64_t want,
			 const char *what, struct air_error *e);
/* Attribute @i, called @what, is an integer from @min to @max. */
air_status air_check_int(const struct air_op *op, const struct airunner_desc *d,
			 uint32_t i, const char *what, int64_t min, int64_t max,
			 struct air_error *e);
/* Attribute @i, called @what, is a finite number and not negative. */
air_status air_check_epsilon(const struct air_op *op,
			     const struct airunner_desc *d, uint32_t i,
			     const char *what, struct air_error *e);

/*
 * For operators that work element by element: all operands have the output's
 * shape and dtype, which is in @mask.
 */
air_status air_check_elementwise(const struct air_op *op,
				 const struct airunner_desc *d, uint32_t mask,
				 struct air_error *e);

/* Attributes that are floating point are stored as the bits of a double. */
static inline double air_attr_f64(const struct airunner_desc *d, uint32_t i)
{
	double v;

	memcpy(&v, &d->attr[i], sizeof(v));
	return v;
}

static inline uint64_t air_attr_bits(double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	return bits;
}

/* Whether operand @i was given. */
static inline bool air_has_operand(const struct airunner_desc *d, uint32_t i)
{
	return d->tensor[i].dtype != 0;
}

#endif /* AIR_CHECK_H */
