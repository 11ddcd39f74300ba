// SPDX-License-Identifier: MIT
#include "ops/cuda/elementwise_plan.h"
#include "ops/gelu/gelu.h"

AIR_CUDA_FATBIN_DECLARE(gelu);

static air_status plan(const struct airunner_desc *d,
		       const struct air_cuda_device *dev,
		       struct air_cuda_plan *p, struct air_error *e)
{
	float approximate[2] = { (float)d->attr[AIR_GELU_APPROXIMATE], 0 };

	return air_ew_plan_same(d, dev, "gelu", 1, approximate, p);
}

const struct air_cuda_op air_cuda_gelu = {
	.name = "gelu",
	.fatbin = AIR_CUDA_FATBIN(gelu),
	.plan = plan,
};
