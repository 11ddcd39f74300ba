// SPDX-License-Identifier: MIT
#include "ops/norm.h"
#include "ops/rms_norm/rms_norm.h"

static air_status check(const struct airunner_desc *d, struct air_error *e)
{
	return air_norm_check(&air_op_rms_norm, d, AIR_RMS_NORM_EPSILON, e);
}

const struct air_op air_op_rms_norm = {
	.name = "rms_norm",
	.id = AIR_OP_rms_norm,
	.n_tensors = 3,
	.n_required = 2,
	.n_attrs = AIR_RMS_NORM_ATTRS,
	.in_place = 1U << 1,
	.operand = { "y", "x", "weight" },
	.check = check,
	.cpu_plan = air_rms_norm_cpu_plan,
};
