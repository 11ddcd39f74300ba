/* SPDX-License-Identifier: MIT */
#ifndef AIR_REDUCE_MAX_H
#define AIR_REDUCE_MAX_H

#include "ops/check.h"

extern const struct air_op air_op_reduce_max;

air_status air_reduce_max_cpu_plan(const struct airunner_desc *d,
				   struct air_cpu_plan **out,
				   struct air_error *e);

#endif /* AIR_REDUCE_MAX_H */
