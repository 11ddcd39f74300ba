/* SPDX-License-Identifier: MIT */
/* The plug-in and the driver that runs nothing: host tests */
#ifndef AIR_TEST_HOST_OPEN_H
#define AIR_TEST_HOST_OPEN_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "ops/worker/executor.h"
#include "tests/gpu/fake_cuda.h"

/*
 * The executors of @plugin, up to NULL, and in *@fake what the driver is told
 * by. NULL, and said why, when one of them cannot be loaded.
 */
static inline const struct air_executor_ops *const *
host_open(const char *plugin, const struct air_worker_services *services,
	  struct fake_cuda **fake)
{
	void *so = dlopen(plugin, RTLD_NOW);
	void *driver = dlopen(getenv("AIRUNNER_LIBCUDA"), RTLD_NOW);
	struct fake_cuda *(*control)(void);
	air_executors_fn executors;

	if (!so || !driver) {
		printf("%s\n", dlerror());
		return NULL;
	}
	*(void **)&executors = dlsym(so, "air_executors");
	*(void **)&control = dlsym(driver, "fake_cuda_control");
	*fake = control();
	return executors(services);
}

#endif /* AIR_TEST_HOST_OPEN_H */
