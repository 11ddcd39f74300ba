// SPDX-License-Identifier: MIT
#include "ops/cuda/elementwise_plan.h"
#include "ops/check.h"
#include "ops/scale/scale.h"

AIR_CUDA_FATBIN_DECLARE(scale);

static air_status plan(const struct airunner_desc *d,
		       const struct air_cuda_device *dev,
		       struct air_cuda_plan *p, struct air_error *e)
{
	float alpha[2] = { (float)air_attr_f64(d, AIR_SCALE_ALPHA), 0 };

	return air_ew_plan_same(d, dev, "scale", 1, alpha, p);
}

const struct air_cuda_op air_cuda_scale = {
	.name = "scale",
	.fatbin = AIR_CUDA_FATBIN(scale),
	.plan = plan,
};
