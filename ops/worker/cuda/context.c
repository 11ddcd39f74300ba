// SPDX-License-Identifier: MIT
#include "ops/worker/cuda/cuda.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Each worker's thread has its own; executors of one worker share it. */
static __thread struct air_cuda *mine;

/*
 * A reset of the primary context hits every worker of the process. The one
 * that resets first counts the epoch up; the others see that it was done.
 */
static pthread_mutex_t reset_lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t reset_epoch;

static int attribute(CUdevice dev, CUdevice_attribute a)
{
	int v = 0;

	if (cu.DeviceGetAttribute(&v, a, dev) != CUDA_SUCCESS)
		return 0;
	return v;
}

static air_status pick_device(struct air_cuda *c, struct air_error *e)
{
	const char *want = getenv("AIRUNNER_CUDA_DEVICE");
	int count = 0, n = want ? atoi(want) : 0;
	size_t bytes = 0;

	cu.DeviceGetCount(&count);
	if (n < 0 || n >= count)
		return air_fail(e, AIR_NO_DEVICE,
				"cuda: AIRUNNER_CUDA_DEVICE is %s, there are devices 0 to %d",
				want, count - 1);
	if (cu.DeviceGet(&c->dev, n) != CUDA_SUCCESS)
		return air_fail(e, AIR_NO_DEVICE, "cuda: no device %d", n);
	cu.DeviceGetName(c->device_name, sizeof(c->device_name), c->dev);
	cu.DeviceTotalMem(&bytes, c->dev);
	c->total_memory = bytes;
	c->info.sms = (uint32_t)attribute(
		c->dev, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
	c->info.cc = (uint32_t)(
		attribute(c->dev,
			  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) * 10 +
		attribute(c->dev,
			  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
	/* a newer GPU's code is compiled from PTX of that, and is like it */
	if (c->info.cc > AIR_CUDA_NEWEST)
		c->info.cc = AIR_CUDA_NEWEST;
	c->info.l2_bytes = (uint64_t)attribute(
		c->dev, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
	c->info.shared_optin = (uint32_t)attribute(
		c->dev,
		CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
	c->write_value = attribute(
		c->dev, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS);
	if (c->info.cc < 80)
		return air_fail(e, AIR_NO_DEVICE,
				"cuda: %s has compute capability %u.%u, 8.0 or later is needed",
				c->device_name, c->info.cc / 10,
				c->info.cc % 10);
	if (!c->write_value)
		return air_fail(e, AIR_NO_DEVICE,
				"cuda: %s cannot write host memory in stream order",
				c->device_name);
	return AIR_OK;
}

static air_status enter(struct air_cuda *c, struct air_error *e)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	CUresult r = cu.DevicePrimaryCtxRetain(&c->ctx, c->dev);

	if (r != CUDA_SUCCESS)
		return air_fail(e, AIR_NO_DEVICE,
				"cuda: no context on %s: %s", c->device_name,
				air_cuda_error_name(r));
	r = cu.CtxSetCurrent(c->ctx);
	if (r == CUDA_SUCCESS) {
		/*
		 * Somebody else's capture of a graph must not make this
		 * thread's calls fail.
		 */
		cu.ThreadExchangeStreamCaptureMode(&mode);
		r = cu.StreamCreateWithPriority(&c->service,
						CU_STREAM_NON_BLOCKING, 0);
	}
	if (r != CUDA_SUCCESS) {
		cu.DevicePrimaryCtxRelease(c->dev);
		return air_fail(e, AIR_NO_DEVICE,
				"cuda: context on %s cannot be used: %s",
				c->device_name, air_cuda_error_name(r));
	}
	c->generation++;
	return AIR_OK;
}

air_status air_cuda_get(const struct air_worker_services *services,
			struct air_cuda **out, struct air_error *e)
{
	struct air_cuda *c = mine;
	air_status st;

	if (c) {
		c->users++;
		*out = c;
		return AIR_OK;
	}
	st = air_cuda_driver_load(e);
	if (st)
		return st;
	c = calloc(1, sizeof(*c));
	if (!c)
		return air_fail(e, AIR_NO_MEMORY, "cuda: out of memory");
	c->services = services;
	c->users = 1;
	c->max_waiting = air_waiting_limit();
	st = pick_device(c, e);
	if (!st) {
		pthread_mutex_lock(&reset_lock);
		c->epoch = reset_epoch;
		pthread_mutex_unlock(&reset_lock);
		st = enter(c, e);
	}
	if (st) {
		free(c);
		return st;
	}
	mine = c;
	*out = c;
	return AIR_OK;
}

static void leave(struct air_cuda *c)
{
	air_lt_close(c);
	air_hostmem_trim(c);
	air_devmem_trim(c);
	cu.StreamDestroy(c->service);
	for (uint32_t i = 0; i < AIR_OP_COUNT; i++)
		if (c->module[i])
			cu.ModuleUnload(c->module[i]);
	cu.CtxSetCurrent(NULL);
	cu.DevicePrimaryCtxRelease(c->dev);
}

void air_cuda_put(struct air_cuda *c)
{
	if (--c->users)
		return;
	air_cuda_handovers_free(c);
	if (c->dead)
		air_hostmem_lost(c);
	else
		leave(c);
	while (c->functions) {
		struct air_cuda_function *f = c->functions;

		c->functions = f->next;
		free(f);
	}
	free(c);
	mine = NULL;
}

void air_cuda_add_client(struct air_cuda *c,
			 const struct air_cuda_client *client)
{
	if (c->n_clients < AIR_CUDA_CLIENTS)
		c->client[c->n_clients++] = *client;
}

void air_cuda_remove_client(struct air_cuda *c, void *arg)
{
	for (uint32_t i = 0; i < c->n_clients; i++)
		if (c->client[i].arg == arg)
			c->client[i--] = c->client[--c->n_clients];
}

static void tell_begin(struct air_cuda *c)
{
	for (uint32_t i = 0; i < c->n_clients; i++)
		if (c->client[i].quiet_begin)
			c->client[i].quiet_begin(c->client[i].arg);
}

static void tell_end(struct air_cuda *c)
{
	for (uint32_t i = 0; i < c->n_clients; i++)
		if (c->client[i].quiet_end)
			c->client[i].quiet_end(c->client[i].arg);
}

void air_cuda_quiet_begin(struct air_cuda *c)
{
	if (!c->quiet++ && !c->held && !c->lost)
		tell_begin(c);
}

void air_cuda_quiet_end(struct air_cuda *c)
{
	if (c->quiet == 1 && !c->lost)
		air_hostmem_trim(c);
	/* also when the context was lost meanwhile: they were told to begin */
	if (!--c->quiet && !c->held)
		tell_end(c);
}

void air_cuda_hold(struct air_cuda *c)
{
	/* also when the context is lost: it holds for the next one, too */
	if (!c->held++ && !c->quiet)
		tell_begin(c);
}

void air_cuda_release(struct air_cuda *c)
{
	if (!--c->held && !c->quiet)
		tell_end(c);
}

void air_cuda_make_way(struct air_cuda *c)
{
	if (c->quiet || c->held || c->lost)
		return;
	for (uint32_t i = 0; i < c->n_clients; i++)
		if (c->client[i].make_way)
			c->client[i].make_way(c->client[i].arg);
}

bool air_cuda_loses(CUresult r)
{
	switch (r) {
	case CUDA_ERROR_ECC_UNCORRECTABLE:
	case CUDA_ERROR_CONTAINED:
	case CUDA_ERROR_NVLINK_UNCORRECTABLE:
	case CUDA_ERROR_HARDWARE_STACK_ERROR:
	case CUDA_ERROR_ILLEGAL_INSTRUCTION:
	case CUDA_ERROR_MISALIGNED_ADDRESS:
	case CUDA_ERROR_INVALID_ADDRESS_SPACE:
	case CUDA_ERROR_INVALID_PC:
	case CUDA_ERROR_LAUNCH_FAILED:
	case CUDA_ERROR_ILLEGAL_ADDRESS:
	case CUDA_ERROR_LAUNCH_TIMEOUT:
	case CUDA_ERROR_ASSERT:
	case CUDA_ERROR_CONTEXT_IS_DESTROYED:
	case CUDA_ERROR_INVALID_CONTEXT:
	case CUDA_ERROR_DEINITIALIZED:
	case CUDA_ERROR_UNKNOWN:
		return true;
	default:
		return false;
	}
}

bool air_cuda_is_fatal(struct air_cuda *c, CUresult r)
{
	if (!air_cuda_loses(r))
		return false;
	if (!c->lost)
		c->services->log("cuda: context lost: %s",
				 air_cuda_error_name(r));
	c->lost = r;
	return true;
}

/* Somebody else in this process keeps the context that is lost. */
static void reset(struct air_cuda *c)
{
	pthread_mutex_lock(&reset_lock);
	if (c->epoch == reset_epoch) {
		cu.DevicePrimaryCtxReset(c->dev);
		reset_epoch++;
	}
	c->epoch = reset_epoch;
	pthread_mutex_unlock(&reset_lock);
}

CUresult air_cuda_load_now(CUfunction fn)
{
	int regs;

	if (cu.FuncLoad)
		return cu.FuncLoad(fn);
	/* asking for an attribute loads as well */
	return cu.FuncGetAttribute(&regs, CU_FUNC_ATTRIBUTE_NUM_REGS, fn);
}

/* Fetch, load and configure a function that is not of this generation. */
static CUresult refresh(struct air_cuda *c, struct air_cuda_function *f)
{
	CUresult r = CUDA_SUCCESS;
	uint32_t op_id = 0;
	CUmodule *mod;

	for (uint32_t i = 1; i < AIR_OP_COUNT; i++)
		if (air_cuda_op_find(i) == f->op)
			op_id = i;
	mod = &c->module[op_id];

	if (!*mod)
		r = cu.ModuleLoadDataEx(mod, f->op->fatbin, 0, NULL, NULL);
	if (r == CUDA_SUCCESS)
		r = cu.ModuleGetFunction(&f->fn, *mod, f->name);
	if (r == CUDA_SUCCESS)
		r = air_cuda_load_now(f->fn);
	/* 48 KiB need no asking, of which kernels have some as static */
	if (r == CUDA_SUCCESS && f->shared > 32 * 1024)
		r = cu.FuncSetAttribute(
			f->fn, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
			(int)f->shared);
	if (r == CUDA_SUCCESS)
		f->generation = c->generation;
	return r;
}

/*
 * Whether a process gets another context after a kernel's fault is the driver's
 * choice; some do not, and say so by the same error again.
 */
air_status air_cuda_restore(struct air_cuda *c, struct air_error *e)
{
	air_status st;

	if (c->dead)
		return air_fail(e, AIR_DEVICE_LOST,
				"cuda: %s is lost to this process",
				c->device_name);
	for (uint32_t i = 0; i < c->n_clients; i++)
		if (c->client[i].lost)
			c->client[i].lost(c->client[i].arg);
	air_lt_close(c);
	air_hostmem_lost(c);
	air_devmem_lost(c);
	memset(c->module, 0, sizeof(c->module));

	/* handles of the old context are used no more, come what may */
	c->generation++;
	cu.CtxSetCurrent(NULL);
	cu.DevicePrimaryCtxRelease(c->dev);
	st = enter(c, e);
	if (st) {
		reset(c);
		st = enter(c, e);
	}
	if (st) {
		c->dead = true;
		c->services->process_spent();
		return st;
	}
	/*
	 * Now, and not when they are next launched: by then a stream may wait,
	 * and code cannot be loaded. What fails is tried again.
	 */
	for (struct air_cuda_function *f = c->functions; f; f = f->next)
		refresh(c, f);
	c->lost = CUDA_SUCCESS;
	st = air_hostmem_restore(c);
	if (st)
		return air_fail(e, st,
				"cuda: host memory could not be registered again");
	air_cuda_buffers_restore(c);
	for (uint32_t i = 0; i < c->n_clients; i++)
		if (c->client[i].restored)
			c->client[i].restored(c->client[i].arg);
	c->services->log("cuda: new context on %s", c->device_name);
	return AIR_OK;
}

air_status air_cuda_function(struct air_cuda *c, const struct air_cuda_op *op,
			     const char *name, uint32_t shared,
			     struct air_cuda_function **out,
			     struct air_error *e)
{
	struct air_cuda_function *f = NULL;
	CUresult r;

	for (f = c->functions; f; f = f->next)
		if (f->op == op && !strcmp(f->name, name))
			break;
	if (!f) {
		f = calloc(1, sizeof(*f));
		if (!f)
			return air_fail(e, AIR_NO_MEMORY,
					"cuda: out of memory");
		f->op = op;
		strncpy(f->name, name, sizeof(f->name) - 1);
		f->next = c->functions;
		c->functions = f;
	}
	if (f->generation != c->generation || f->shared < shared) {
		if (f->shared < shared)
			f->shared = shared;
		air_cuda_quiet_begin(c);
		r = refresh(c, f);
		air_cuda_quiet_end(c);
		if (r != CUDA_SUCCESS)
			return air_fail(e,
					air_cuda_is_fatal(c, r) ?
						AIR_DEVICE_LOST :
						air_cuda_status(r),
					"cuda: kernel %s: %s", name,
					air_cuda_error_name(r));
	}
	*out = f;
	return AIR_OK;
}

air_status air_cuda_status(CUresult r)
{
	switch (r) {
	case CUDA_SUCCESS:
		return AIR_OK;
	case CUDA_ERROR_INVALID_VALUE:
	case CUDA_ERROR_INVALID_HANDLE:
	case CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES:
	case CUDA_ERROR_INVALID_SOURCE:
	case CUDA_ERROR_INVALID_IMAGE:
		return AIR_BAD_ARGUMENT;
	case CUDA_ERROR_NOT_FOUND:
		return AIR_BAD_ID;
	case CUDA_ERROR_OUT_OF_MEMORY:
		return AIR_NO_MEMORY;
	case CUDA_ERROR_NO_BINARY_FOR_GPU:
	case CUDA_ERROR_INVALID_PTX:
	case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
	case CUDA_ERROR_NOT_SUPPORTED:
		return AIR_UNSUPPORTED;
	default:
		return AIR_SYSTEM;
	}
}
