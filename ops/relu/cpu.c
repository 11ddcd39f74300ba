// SPDX-License-Identifier: MIT
#include "ops/elementwise.h"
#include "ops/relu/relu.h"

AIR_INLINE void relu AIR_EW_PARAMS
{
	AIR_IVDEP
	for (uint64_t i = 0; i < n; i++)
		y[i] = air_reluf(a[i]);
}
AIR_VERSIONS(relu, AIR_EW_PARAMS, AIR_EW_ARGS)

air_status air_relu_cpu_plan(const struct airunner_desc *d,
			     struct air_cpu_plan **out, struct air_error *e)
{
	return air_ew_plan(d, AIR_BEST(relu), 0, AIR_EW_CHEAP, out, e);
}
