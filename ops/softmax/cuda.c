// SPDX-License-Identifier: MIT
#include "ops/cuda/rowwise_plan.h"
#include "ops/softmax/softmax.h"

AIR_CUDA_FATBIN_DECLARE(softmax);

static air_status plan(const struct airunner_desc *d,
		       const struct air_cuda_device *dev,
		       struct air_cuda_plan *p, struct air_error *e)
{
	return air_row_plan(d, dev, "softmax",
			    (uint32_t)d->attr[AIR_SOFTMAX_AXIS], 0.0, p);
}

const struct air_cuda_op air_cuda_softmax = {
	.name = "softmax",
	.fatbin = AIR_CUDA_FATBIN(softmax),
	.plan = plan,
};
