/* SPDX-License-Identifier: MIT */
#ifndef AIR_CUDA_LAUNCH_H
#define AIR_CUDA_LAUNCH_H

#include "ops/worker/executor.h"

extern const struct air_executor_ops air_cuda_launch_ops;

/* Before open(): where the executor's answers go. */
void air_launch_set_services(const struct air_worker_services *s);

#endif /* AIR_CUDA_LAUNCH_H */
