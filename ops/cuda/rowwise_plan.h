/* SPDX-License-Identifier: MIT */
/* The plan of a row operator: who holds how much of a row. */
#ifndef AIR_CUDA_ROWWISE_PLAN_H
#define AIR_CUDA_ROWWISE_PLAN_H

#include "ops/cuda/cuda_op.h"

/*
 * Rows run along dimension @axis of y (operand 0) and x (operand 1). Operands
 * 2 and 3, if given, are weight and bias. Kernels are air_<name>_<dtype>_<how>.
 */
air_status air_row_plan(const struct airunner_desc *d,
			const struct air_cuda_device *dev, const char *name,
			uint32_t axis, double epsilon,
			struct air_cuda_plan *plan);

#endif /* AIR_CUDA_ROWWISE_PLAN_H */
