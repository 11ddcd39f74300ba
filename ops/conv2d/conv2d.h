/* SPDX-License-Identifier: MIT */
#ifndef AIR_CONV2D_H
#define AIR_CONV2D_H

#include "ops/check.h"

/* Operands */
enum { AIR_CONV2D_Y, AIR_CONV2D_X, AIR_CONV2D_WEIGHT, AIR_CONV2D_BIAS };

/* Attributes; where there are two, for height and width. */
enum {
	AIR_CONV2D_STRIDE = 0,
	AIR_CONV2D_PADDING = 2,
	AIR_CONV2D_DILATION = 4,
	AIR_CONV2D_GROUPS = 6,
	AIR_CONV2D_ACTIVATION = 7,
	AIR_CONV2D_ATTRS = 8,
};

extern const struct air_op air_op_conv2d;

uint64_t air_conv2d_cpu_workspace(const struct airunner_desc *d);
air_status air_conv2d_cpu_plan(const struct airunner_desc *d,
			       struct air_cpu_plan **out, struct air_error *e);

#endif /* AIR_CONV2D_H */
