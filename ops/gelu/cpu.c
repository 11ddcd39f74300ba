// SPDX-License-Identifier: MIT
#include <airunner/ops/gelu.h>

#include "ops/elementwise.h"
#include "ops/gelu/gelu.h"

AIR_INLINE void by_erf AIR_EW_PARAMS
{
	AIR_IVDEP
	for (uint64_t i = 0; i < n; i++)
		y[i] = air_geluf(a[i]);
}
AIR_VERSIONS(by_erf, AIR_EW_PARAMS, AIR_EW_ARGS)

AIR_INLINE void by_tanh AIR_EW_PARAMS
{
	AIR_IVDEP
	for (uint64_t i = 0; i < n; i++)
		y[i] = air_gelu_tanhf(a[i]);
}
AIR_VERSIONS(by_tanh, AIR_EW_PARAMS, AIR_EW_ARGS)

air_status air_gelu_cpu_plan(const struct airunner_desc *d,
			     struct air_cpu_plan **out, struct air_error *e)
{
	air_ew_fn kernel = d->attr[AIR_GELU_APPROXIMATE] == AIR_GELU_TANH
				   ? AIR_BEST(by_tanh)
				   : AIR_BEST(by_erf);

	return air_ew_plan(d, kernel, 0, AIR_EW_DEAR, out, e);
}
