/* SPDX-License-Identifier: MIT */
#ifndef AIR_MATMUL_H
#define AIR_MATMUL_H

#include "ops/check.h"

/* Operands */
enum {
	AIR_MATMUL_Y,
	AIR_MATMUL_A,
	AIR_MATMUL_B,
	AIR_MATMUL_C,
	AIR_MATMUL_BIAS
};

/* Attributes */
enum {
	AIR_MATMUL_TRANS_A = 0,
	AIR_MATMUL_TRANS_B = 1,
	AIR_MATMUL_ALPHA = 2,
	AIR_MATMUL_BETA = 3,
	AIR_MATMUL_ACTIVATION = 4,
	AIR_MATMUL_ATTRS = 5,
};

extern const struct air_op air_op_matmul;

uint64_t air_matmul_cpu_workspace(const struct airunner_desc *d);
air_status air_matmul_cpu_plan(const struct airunner_desc *d,
			       struct air_cpu_plan **out, struct air_error *e);

#endif /* AIR_MATMUL_H */
