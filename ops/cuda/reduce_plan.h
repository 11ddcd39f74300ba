/* SPDX-License-Identifier: MIT */
/* The plan of a reduction: by rows or columns, and how many share a result. */
#ifndef AIR_CUDA_REDUCE_PLAN_H
#define AIR_CUDA_REDUCE_PLAN_H

#include "ops/cuda/cuda_op.h"

/*
 * y is operand 0, x operand 1, attributes as in ops/reduce.h. Kernels are
 * @kernel_ROWS, _COLUMNS and _FINISH. @variant: of the types, a multiple of 2
 * to which enum air_reduce_variant is added; 0 for none.
 */
air_status air_reduce_plan(const struct airunner_desc *d,
			   const struct air_cuda_device *dev,
			   const char *kernel, uint32_t variant,
			   struct air_cuda_plan *plan);

#endif /* AIR_CUDA_REDUCE_PLAN_H */
