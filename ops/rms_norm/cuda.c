// SPDX-License-Identifier: MIT
#include "ops/cuda/rowwise_plan.h"
#include "ops/rms_norm/rms_norm.h"

AIR_CUDA_FATBIN_DECLARE(rms_norm);

static air_status plan(const struct airunner_desc *d,
		       const struct air_cuda_device *dev,
		       struct air_cuda_plan *p, struct air_error *e)
{
	return air_row_plan(d, dev, "rms_norm", d->tensor[0].ndim - 1,
			    air_attr_f64(d, AIR_RMS_NORM_EPSILON), p);
}

const struct air_cuda_op air_cuda_rms_norm = {
	.name = "rms_norm",
	.fatbin = AIR_CUDA_FATBIN(rms_norm),
	.plan = plan,
};
