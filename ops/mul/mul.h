/* SPDX-License-Identifier: MIT */
#ifndef AIR_MUL_H
#define AIR_MUL_H

#include "ops/check.h"

extern const struct air_op air_op_mul;

air_status air_mul_cpu_plan(const struct airunner_desc *d,
			    struct air_cpu_plan **out, struct air_error *e);

#endif /* AIR_MUL_H */
