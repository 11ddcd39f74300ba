/* SPDX-License-Identifier: MIT */
#ifndef AIR_ROPE_H
#define AIR_ROPE_H

#include "ops/check.h"

/* Operands */
enum { AIR_ROPE_Y, AIR_ROPE_X, AIR_ROPE_COS, AIR_ROPE_SIN, AIR_ROPE_POSITIONS };

/* Attributes */
enum { AIR_ROPE_STYLE = 0, AIR_ROPE_ATTRS = 1 };

extern const struct air_op air_op_rope;

air_status air_rope_cpu_plan(const struct airunner_desc *d,
			     struct air_cpu_plan **out, struct air_error *e);

#endif /* AIR_ROPE_H */
