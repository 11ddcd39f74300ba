/* SPDX-License-Identifier: MIT */
#ifndef AIR_RELU_H
#define AIR_RELU_H

#include "ops/check.h"

extern const struct air_op air_op_relu;

air_status air_relu_cpu_plan(const struct airunner_desc *d,
			     struct air_cpu_plan **out, struct air_error *e);

#endif /* AIR_RELU_H */
