/* SPDX-License-Identifier: MIT */
#ifndef AIR_RESIDENT_EXEC_H
#define AIR_RESIDENT_EXEC_H

#include "ops/worker/executor.h"

extern const struct air_executor_ops air_cuda_resident_ops;

/* Before open(): where the executor's answers go. */
void air_resident_set_services(const struct air_worker_services *s);

#endif /* AIR_RESIDENT_EXEC_H */
