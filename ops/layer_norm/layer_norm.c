// SPDX-License-Identifier: MIT
#include "ops/layer_norm/layer_norm.h"
#include "ops/norm.h"

static air_status check(const struct airunner_desc *d, struct air_error *e)
{
	return air_norm_check(&air_op_layer_norm, d, AIR_LAYER_NORM_EPSILON, e);
}

const struct air_op air_op_layer_norm = {
	.name = "layer_norm",
	.id = AIR_OP_layer_norm,
	.n_tensors = 4,
	.n_required = 2,
	.n_attrs = AIR_LAYER_NORM_ATTRS,
	.in_place = 1U << 1,
	.operand = { "y", "x", "weight", "bias" },
	.check = check,
	.cpu_plan = air_layer_norm_cpu_plan,
};
