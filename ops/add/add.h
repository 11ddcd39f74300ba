/* SPDX-License-Identifier: MIT */
#ifndef AIR_ADD_H
#define AIR_ADD_H

#include "ops/check.h"

extern const struct air_op air_op_add;

air_status air_add_cpu_plan(const struct airunner_desc *d,
			    struct air_cpu_plan **out, struct air_error *e);

#endif /* AIR_ADD_H */
