// SPDX-License-Identifier: MIT
#include "ops/elementwise.h"
#include "ops/vector_add/vector_add.h"

AIR_INLINE void vector_add AIR_EW_PARAMS
{
	AIR_IVDEP
	for (uint64_t i = 0; i < n; i++)
		y[i] = a[i] + b[i];
}
AIR_VERSIONS(vector_add, AIR_EW_PARAMS, AIR_EW_ARGS)

air_status air_vector_add_cpu_plan(const struct airunner_desc *d,
				   struct air_cpu_plan **out,
				   struct air_error *e)
{
	return air_ew_plan(d, AIR_BEST(vector_add), 0, AIR_EW_CHEAP, out, e);
}
