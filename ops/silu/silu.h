/* SPDX-License-Identifier: MIT */
#ifndef AIR_SILU_H
#define AIR_SILU_H

#include "ops/check.h"

extern const struct air_op air_op_silu;

air_status air_silu_cpu_plan(const struct airunner_desc *d,
			     struct air_cpu_plan **out, struct air_error *e);

#endif /* AIR_SILU_H */
