// SPDX-License-Identifier: MIT
#include "ops/elementwise.h"
#include "ops/scale/scale.h"

AIR_INLINE void scale AIR_EW_PARAMS
{
	AIR_IVDEP
	for (uint64_t i = 0; i < n; i++)
		y[i] = param * a[i];
}
AIR_VERSIONS(scale, AIR_EW_PARAMS, AIR_EW_ARGS)

air_status air_scale_cpu_plan(const struct airunner_desc *d,
			      struct air_cpu_plan **out, struct air_error *e)
{
	return air_ew_plan(d, AIR_BEST(scale),
			   (float)air_attr_f64(d, AIR_SCALE_ALPHA),
			   AIR_EW_CHEAP, out, e);
}
