// SPDX-License-Identifier: MIT
#include <stdio.h>

#include "ops/cuda/reduce_plan.h"
#include "ops/reduce.h"

AIR_CUDA_FATBIN_DECLARE(reduce_sum);

static air_status plan(const struct airunner_desc *d,
		       const struct air_cuda_device *dev,
		       struct air_cuda_plan *p, struct air_error *e)
{
	uint32_t y = d->tensor[AIR_REDUCE_Y].dtype;
	uint32_t x = d->tensor[AIR_REDUCE_X].dtype;
	char kernel[40];

	snprintf(kernel, sizeof(kernel), "air_reduce_sum_%s_%s",
		 air_elem_name(y), air_elem_name(x));
	return air_reduce_plan(d, dev, kernel,
			       y == x && x <= AIRUNNER_BF16 ?
				       (y * 8 + x) * 2 : 0, p);
}

const struct air_cuda_op air_cuda_reduce_sum = {
	.name = "reduce_sum",
	.fatbin = AIR_CUDA_FATBIN(reduce_sum),
	.plan = plan,
};
