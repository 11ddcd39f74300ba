/* SPDX-License-Identifier: MIT */
#ifndef AIR_SOFTMAX_H
#define AIR_SOFTMAX_H

#include "ops/check.h"

/* Attributes */
enum { AIR_SOFTMAX_AXIS = 0, AIR_SOFTMAX_ATTRS = 1 };

extern const struct air_op air_op_softmax;

air_status air_softmax_cpu_plan(const struct airunner_desc *d,
				struct air_cpu_plan **out, struct air_error *e);

#endif /* AIR_SOFTMAX_H */
