// SPDX-License-Identifier: MIT
#include "ops/elementwise.h"
#include "ops/mul/mul.h"

AIR_INLINE void mul AIR_EW_PARAMS
{
	AIR_IVDEP
	for (uint64_t i = 0; i < n; i++)
		y[i] = a[i] * b[i];
}
AIR_VERSIONS(mul, AIR_EW_PARAMS, AIR_EW_ARGS)

air_status air_mul_cpu_plan(const struct airunner_desc *d,
			    struct air_cpu_plan **out, struct air_error *e)
{
	return air_ew_plan(d, AIR_BEST(mul), 0, AIR_EW_CHEAP, out, e);
}
