// SPDX-License-Identifier: MIT
#include "ops/cuda/elementwise_plan.h"

AIR_CUDA_FATBIN_DECLARE(relu);

static air_status plan(const struct airunner_desc *d,
		       const struct air_cuda_device *dev,
		       struct air_cuda_plan *p, struct air_error *e)
{
	return air_ew_plan_same(d, dev, "relu", 1, NULL, p);
}

const struct air_cuda_op air_cuda_relu = {
	.name = "relu",
	.fatbin = AIR_CUDA_FATBIN(relu),
	.plan = plan,
};
