/* SPDX-License-Identifier: MIT */
/* The plan of an elementwise operator: launch geometry and parameters. */
#ifndef AIR_CUDA_ELEMENTWISE_PLAN_H
#define AIR_CUDA_ELEMENTWISE_PLAN_H

#include "ops/cuda/cuda_op.h"

/*
 * @kernel: the kernel's name without "air_" (a static string, or one in
 *	plan->name); @inputs: 1 or 2; @variant: as in struct air_cuda_plan;
 *	@scalar: two numbers for the functor, or NULL.
 */
air_status air_ew_plan(const struct airunner_desc *d,
		       const struct air_cuda_device *dev, const char *kernel,
		       uint32_t inputs, uint32_t variant, const float *scalar,
		       struct air_cuda_plan *plan);

/*
 * The usual case: all operands of one dtype, kernels named
 * air_<name>_<dtype>, variants numbered by dtype.
 */
air_status air_ew_plan_same(const struct airunner_desc *d,
			    const struct air_cuda_device *dev,
			    const char *name, uint32_t inputs,
			    const float *scalar, struct air_cuda_plan *plan);

#endif /* AIR_CUDA_ELEMENTWISE_PLAN_H */
