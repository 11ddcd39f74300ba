/* SPDX-License-Identifier: MIT */
#ifndef AIR_GELU_H
#define AIR_GELU_H

#include "ops/check.h"

/* Attributes */
enum { AIR_GELU_APPROXIMATE = 0, AIR_GELU_ATTRS = 1 };

extern const struct air_op air_op_gelu;

air_status air_gelu_cpu_plan(const struct airunner_desc *d,
			     struct air_cpu_plan **out, struct air_error *e);

#endif /* AIR_GELU_H */
