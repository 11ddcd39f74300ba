// SPDX-License-Identifier: MIT
/* What libairunner-cuda.so shows: its executors. */
#include "ops/worker/cuda/launch.h"
#include "ops/worker/executor.h"
#include "ops/worker/resident/resident_exec.h"

static const struct air_executor_ops *const executors[] = {
	&air_cuda_resident_ops,
	&air_cuda_launch_ops,
	NULL,
};

__attribute__((visibility("default")))
const struct air_executor_ops *const *
air_executors(const struct air_worker_services *services);

const struct air_executor_ops *const *
air_executors(const struct air_worker_services *services)
{
	air_launch_set_services(services);
	air_resident_set_services(services);
	return executors;
}
