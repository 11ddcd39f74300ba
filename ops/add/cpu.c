// SPDX-License-Identifier: MIT
#include "ops/elementwise.h"
#include "ops/add/add.h"

AIR_INLINE void add AIR_EW_PARAMS
{
	AIR_IVDEP
	for (uint64_t i = 0; i < n; i++)
		y[i] = a[i] + b[i];
}
AIR_VERSIONS(add, AIR_EW_PARAMS, AIR_EW_ARGS)

air_status air_add_cpu_plan(const struct airunner_desc *d,
			    struct air_cpu_plan **out, struct air_error *e)
{
	return air_ew_plan(d, AIR_BEST(add), 0, AIR_EW_CHEAP, out, e);
}
