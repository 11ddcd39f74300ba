/* SPDX-License-Identifier: MIT */
#ifndef AIR_SCALE_H
#define AIR_SCALE_H

#include "ops/check.h"

/* Attributes */
enum { AIR_SCALE_ALPHA = 0, AIR_SCALE_ATTRS = 1 };

extern const struct air_op air_op_scale;

air_status air_scale_cpu_plan(const struct airunner_desc *d,
			      struct air_cpu_plan **out, struct air_error *e);

#endif /* AIR_SCALE_H */
