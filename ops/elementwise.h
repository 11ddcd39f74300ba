/* SPDX-License-Identifier: MIT */
/*
 * Operators that compute each element of the output from the elements of one
 * or two inputs at the same place. Such an operator is a kernel on blocks of
 * f32, and one line:
 *
 *	AIR_INLINE void relu AIR_EW_PARAMS
 *	{
 *		AIR_IVDEP
 *		for (uint64_t i = 0; i < n; i++)
 *			y[i] = air_reluf(a[i]);
 *	}
 *	AIR_VERSIONS(relu, AIR_EW_PARAMS, AIR_EW_ARGS)
 *
 *	return air_ew_plan(d, AIR_BEST(relu), 0, AIR_EW_CHEAP, out, e);
 */
#ifndef AIR_ELEMENTWISE_H
#define AIR_ELEMENTWISE_H

#include "ops/cpu.h"
#include "ops/math.h"

/* @b is NULL for operators of one input; @y may be @a or @b. */
#define AIR_EW_PARAMS \
	(float *y, const float *a, const float *b, uint64_t n, float param)
#define AIR_EW_ARGS (y, a, b, n, param)

typedef void(*air_ew_fn) AIR_EW_PARAMS;

/* How many elements are worth waking another thread. */
#define AIR_EW_CHEAP 131072
#define AIR_EW_DEAR  16384

air_status air_ew_plan(const struct airunner_desc *d, air_ew_fn kernel,
		       float param, uint64_t grain, struct air_cpu_plan **out,
		       struct air_error *e);

#endif /* AIR_ELEMENTWISE_H */
