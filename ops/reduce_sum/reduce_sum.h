/* SPDX-License-Identifier: MIT */
#ifndef AIR_REDUCE_SUM_H
#define AIR_REDUCE_SUM_H

#include "ops/check.h"

extern const struct air_op air_op_reduce_sum;

air_status air_reduce_sum_cpu_plan(const struct airunner_desc *d,
				   struct air_cpu_plan **out,
				   struct air_error *e);

#endif /* AIR_REDUCE_SUM_H */
