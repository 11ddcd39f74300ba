/* SPDX-License-Identifier: MIT */
#ifndef AIR_COPY_H
#define AIR_COPY_H

#include "ops/check.h"

extern const struct air_op air_op_copy;

air_status air_copy_cpu_plan(const struct airunner_desc *d,
			     struct air_cpu_plan **out, struct air_error *e);

#endif /* AIR_COPY_H */
