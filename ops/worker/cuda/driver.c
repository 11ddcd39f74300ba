// SPDX-License-Identifier: MIT
#include "ops/worker/cuda/driver.h"

#include <dlfcn.h>
#include <stdlib.h>

struct air_cuda_driver cu;

/* The oldest driver whose calls suffice: 12.0. */
#define MIN_DRIVER 12000

/*
 * cuda.h renames calls to their current versions by macros, so the name is
 * made into a string only after the macro has been expanded.
 */
#define STRING(x) #x
#define SYMBOL(x) STRING(x)

static const struct {
	const char *name;
	size_t offset;
	int optional;
} calls[] = {
#define CALL(n) { SYMBOL(cu##n), offsetof(struct air_cuda_driver, n), 0 },
#define OPTIONAL(n) { SYMBOL(cu##n), offsetof(struct air_cuda_driver, n), 1 },
	AIR_CUDA_CALLS(CALL)
	AIR_CUDA_OPTIONAL_CALLS(OPTIONAL)
};

const char *air_cuda_error_name(CUresult r)
{
	const char *name = NULL;

	if (!cu.GetErrorName || cu.GetErrorName(r, &name) != CUDA_SUCCESS ||
	    !name)
		return "unknown CUDA error";
	return name;
}

air_status air_cuda_driver_load(struct air_error *e)
{
	/* AIRUNNER_LIBCUDA: a driver elsewhere, or none, for tests. */
	const char *path = getenv("AIRUNNER_LIBCUDA");
	int version = 0, devices = 0;
	CUresult r;
	void *lib;

	if (!path)
		path = "libcuda.so.1";
	lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!lib)
		return air_fail(e, AIR_NO_DEVICE,
				"cuda: no NVIDIA driver on this machine (%s)",
				dlerror());
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		void *fn = dlsym(lib, calls[i].name);

		if (!fn && !calls[i].optional)
			return air_fail(e, AIR_NO_DEVICE,
					"cuda: the driver has no %s; a driver for CUDA 12.0 or later is needed",
					calls[i].name);
		*(void **)((char *)&cu + calls[i].offset) = fn;
	}
	r = cu.Init(0);
	if (r != CUDA_SUCCESS)
		return air_fail(e, AIR_NO_DEVICE, "cuda: cuInit says %s",
				air_cuda_error_name(r));
	r = cu.DriverGetVersion(&version);
	if (r != CUDA_SUCCESS || version < MIN_DRIVER)
		return air_fail(e, AIR_NO_DEVICE,
				"cuda: the driver is for CUDA %d.%d, 12.0 or later is needed",
				version / 1000, version % 1000 / 10);
	r = cu.DeviceGetCount(&devices);
	if (r != CUDA_SUCCESS || devices == 0)
		return air_fail(e, AIR_NO_DEVICE,
				"cuda: there is a driver but no GPU");
	return AIR_OK;
}
