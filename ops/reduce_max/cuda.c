// SPDX-License-Identifier: MIT
#include <stdio.h>

#include "ops/cuda/reduce_plan.h"
#include "ops/reduce.h"

AIR_CUDA_FATBIN_DECLARE(reduce_max);

static air_status plan(const struct airunner_desc *d,
		       const struct air_cuda_device *dev,
		       struct air_cuda_plan *p, struct air_error *e)
{
	uint32_t dtype = d->tensor[AIR_REDUCE_X].dtype;
	char kernel[40];

	snprintf(kernel, sizeof(kernel), "air_reduce_max_%s",
		 air_elem_name(dtype));
	return air_reduce_plan(d, dev, kernel,
			       dtype <= AIRUNNER_BF16 ? dtype * 2 : 0, p);
}

const struct air_cuda_op air_cuda_reduce_max = {
	.name = "reduce_max",
	.fatbin = AIR_CUDA_FATBIN(reduce_max),
	.plan = plan,
};
