// SPDX-License-Identifier: MIT
#include "ops/cuda/rowwise_plan.h"
#include "ops/layer_norm/layer_norm.h"

AIR_CUDA_FATBIN_DECLARE(layer_norm);

static air_status plan(const struct airunner_desc *d,
		       const struct air_cuda_device *dev,
		       struct air_cuda_plan *p, struct air_error *e)
{
	return air_row_plan(
		d, dev, d->tensor[3].dtype ? "layer_norm_bias" : "layer_norm",
		d->tensor[0].ndim - 1, air_attr_f64(d, AIR_LAYER_NORM_EPSILON),
		p);
}

const struct air_cuda_op air_cuda_layer_norm = {
	.name = "layer_norm",
	.fatbin = AIR_CUDA_FATBIN(layer_norm),
	.plan = plan,
};
