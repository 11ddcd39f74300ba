/* SPDX-License-Identifier: MIT */
/*
 * What the reductions have in common: their attributes, their check, and the
 * CPU's loop over what is kept and what is reduced.
 */
#ifndef AIR_REDUCE_H
#define AIR_REDUCE_H

#include "ops/check.h"

/* Attributes of a reduction. */
enum {
	AIR_REDUCE_AXES = 0, /* bit i: dimension i of x is reduced */
	AIR_REDUCE_KEEPDIM = 1,
	AIR_REDUCE_ATTRS = 2,
};

/* Operands */
enum { AIR_REDUCE_Y, AIR_REDUCE_X };

/*
 * Client side: the axes attribute for a list of axes. A list that is not one
 * becomes AIR_REDUCE_BAD_AXIS with the axis in the low 32 bits, which the
 * check refuses by name.
 */
#define AIR_REDUCE_BAD_AXIS (1ULL << 63)
uint64_t air_reduce_axes(const int32_t *axes, uint32_t n_axes,
			 const air_tensor_desc *x);

/* Everything but dtypes. */
air_status air_reduce_check(const struct air_op *op,
			    const struct airunner_desc *d, struct air_error *e);

/* Elements of x that go into one of y. */
int64_t air_reduce_count(const struct airunner_desc *d);

#endif /* AIR_REDUCE_H */
