// SPDX-License-Identifier: MIT
/*
 * A CUDA driver that runs nothing: device memory is memory, launches are
 * counted, streams complete at once or when they are told to, and wait for
 * words. Calls that would wait for a stream which waits are counted as hanging.
 * With it the host side of the CUDA executors (order, completion,
 * registrations, what happens when the context is lost) is tested on machines
 * without a GPU:
 *
 *	AIRUNNER_LIBCUDA=.../libfake-cuda.so
 *
 * fake_cuda_control() is how a test looks in and breaks things.
 */
#include "tests/gpu/fake_cuda.h"

#include <cuda.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define EXPORT __attribute__((visibility("default")))
#define MAX_RANGES 64
#define MAX_PENDING 4096
#define MAX_PINNED 64

static struct fake_cuda fake = { .regs = 32 };

static struct {
	char *base;
	size_t size;
} range[MAX_RANGES];

/* Pinned memory is gone with its context: who reads it then is found out. */
static struct {
	void *base;
	size_t size;
} pinned[MAX_PINNED];

/* What streams have not come to yet: writes, and waits for a word. */
static struct {
	CUstream stream;
	uint64_t *where;
	uint64_t value;
	int waits;
} pending[MAX_PENDING];
static unsigned int n_pending;
static pthread_mutex_t pending_lock = PTHREAD_MUTEX_INITIALIZER;

/* Of a process that nobody looks into: see afresh.c. */
static void __attribute__((constructor)) set_up(void)
{
	fake.spent = getenv("FAKE_CUDA_SPENT") != NULL;
}

struct fake_cuda *fake_cuda_control(void);

EXPORT struct fake_cuda *fake_cuda_control(void)
{
	return &fake;
}

/* Every call that can report an earlier fault goes through here. */
static CUresult healthy(void)
{
	return fake.fault ? (CUresult)fake.fault : CUDA_SUCCESS;
}

/* Whether @s has something before place @end that it cannot come past. */
static int stuck(CUstream s, unsigned int end)
{
	for (unsigned int i = 0; i < end; i++)
		if (pending[i].stream == s)
			return 1;
	return 0;
}

static int passed(unsigned int i)
{
	uint64_t word;

	if (!pending[i].waits)
		return 1;
	word = __atomic_load_n(pending[i].where, __ATOMIC_ACQUIRE);
	return (int64_t)(word - pending[i].value) >= 0;
}

/* In the order enqueued; what stays closes up. The caller holds the lock. */
static void advance(void)
{
	unsigned int kept = 0;

	if (__atomic_load_n(&fake.hold, __ATOMIC_ACQUIRE) || fake.fault)
		return;
	for (unsigned int i = 0; i < n_pending; i++) {
		if (stuck(pending[i].stream, kept) || !passed(i)) {
			pending[kept++] = pending[i];
			continue;
		}
		if (!pending[i].waits)
			__atomic_store_n(pending[i].where, pending[i].value,
					 __ATOMIC_RELEASE);
	}
	n_pending = kept;
}

static void enqueue(CUstream s, CUdeviceptr p, uint64_t value, int waits,
		    CUresult *r)
{
	pthread_mutex_lock(&pending_lock);
	if (n_pending == MAX_PENDING) {
		*r = CUDA_ERROR_OUT_OF_MEMORY;
	} else {
		pending[n_pending].stream = s;
		pending[n_pending].where = (uint64_t *)p;
		pending[n_pending].value = value;
		pending[n_pending++].waits = waits;
	}
	advance();
	pthread_mutex_unlock(&pending_lock);
}

static int is_pinned(const void *begin, size_t size)
{
	for (int i = 0; i < MAX_PINNED; i++)
		if (pinned[i].base &&
		    (char *)pinned[i].base < (char *)begin + size &&
		    (char *)begin < (char *)pinned[i].base + pinned[i].size)
			return 1;
	return 0;
}

static int is_registered(const void *p)
{
	for (int i = 0; i < MAX_RANGES; i++)
		if (range[i].base && (char *)p >= range[i].base &&
		    (char *)p < range[i].base + range[i].size)
			return 1;
	return 0;
}

/*
 * A call that returns only when all streams have come through. What a test has
 * them wait for itself is its own business.
 */
static void wait_for_all(void)
{
	pthread_mutex_lock(&pending_lock);
	advance();
	for (unsigned int i = 0; i < n_pending; i++)
		if (pending[i].waits && !passed(i) &&
		    is_registered(pending[i].where)) {
			fake.hangs++;
			break;
		}
	pthread_mutex_unlock(&pending_lock);
}

#define OK(name, ...)                      \
	EXPORT CUresult name(__VA_ARGS__); \
	CUresult name(__VA_ARGS__)         \
	{                                  \
		return CUDA_SUCCESS;       \
	}
#define HEALTHY(name, ...)                 \
	EXPORT CUresult name(__VA_ARGS__); \
	CUresult name(__VA_ARGS__)         \
	{                                  \
		return healthy();          \
	}

OK(cuInit, unsigned int flags)
OK(cuCtxSetCurrent, CUcontext ctx)
OK(cuCtxPushCurrent, CUcontext ctx)
OK(cuCtxPopCurrent, CUcontext *ctx)
OK(cuThreadExchangeStreamCaptureMode, CUstreamCaptureMode *mode)
HEALTHY(cuFuncSetAttribute, CUfunction f, CUfunction_attribute a, int v)
HEALTHY(cuStreamDestroy, CUstream s)
HEALTHY(cuStreamWaitEvent, CUstream s, CUevent e, unsigned int flags)
HEALTHY(cuEventDestroy, CUevent e)
HEALTHY(cuEventRecord, CUevent e, CUstream s)
HEALTHY(cuEventQuery, CUevent e)

EXPORT CUresult cuFuncLoad(CUfunction f)
{
	wait_for_all();
	return healthy();
}

EXPORT CUresult cuModuleUnload(CUmodule mod)
{
	wait_for_all();
	return healthy();
}
HEALTHY(cuGraphDestroy, CUgraph g)

EXPORT CUresult cuDriverGetVersion(int *v)
{
	*v = 13000;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuGetErrorName(CUresult r, const char **name)
{
	*name = r == CUDA_ERROR_ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS" :
						  "CUDA_ERROR";
	return CUDA_SUCCESS;
}

EXPORT CUresult cuGetErrorString(CUresult r, const char **s)
{
	return cuGetErrorName(r, s);
}

EXPORT CUresult cuDeviceGetCount(int *n)
{
	*n = 1;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGet(CUdevice *dev, int n)
{
	*dev = n;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetName(char *name, int len, CUdevice dev)
{
	snprintf(name, (size_t)len, "no GPU at all");
	return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetAttribute(int *v, CUdevice_attribute a, CUdevice dev)
{
	switch (a) {
	case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
		*v = 132;
		break;
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
		*v = 9;
		break;
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
		*v = 0;
		break;
	case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
		*v = 50 << 20;
		break;
	case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
		*v = 227 << 10;
		break;
	default:
		*v = 1;
	}
	return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceTotalMem(size_t *bytes, CUdevice dev)
{
	*bytes = 1ull << 37;
	return CUDA_SUCCESS;
}

/* Green contexts: of 132 multiprocessors, up to 64 can be split off. */
EXPORT CUresult cuDeviceGetDevResource(CUdevice dev, CUdevResource *r,
				       CUdevResourceType type)
{
	r->sm.smCount = 132;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuDevSmResourceSplitByCount(CUdevResource *group,
					    unsigned int *n,
					    const CUdevResource *from,
					    CUdevResource *rest,
					    unsigned int flags,
					    unsigned int want)
{
	unsigned int unit = flags ? 2 : 8;

	if (want > 64)
		return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
	group->sm.smCount = (want + unit - 1) / unit * unit;
	rest->sm.smCount = from->sm.smCount - group->sm.smCount;
	*n = 1;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuDevResourceGenerateDesc(CUdevResourceDesc *desc,
					  CUdevResource *r, unsigned int n)
{
	*desc = (CUdevResourceDesc)r;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuGreenCtxCreate(CUgreenCtx *ctx, CUdevResourceDesc desc,
				 CUdevice dev, unsigned int flags)
{
	*ctx = (CUgreenCtx)0x20;
	return healthy();
}

EXPORT CUresult cuGreenCtxDestroy(CUgreenCtx ctx)
{
	return healthy();
}

EXPORT CUresult cuGreenCtxStreamCreate(CUstream *s, CUgreenCtx ctx,
				       unsigned int flags, int priority)
{
	return cuStreamCreateWithPriority(s, flags, priority);
}

EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *ctx, CUdevice dev)
{
	if (fake.spent && fake.fault)
		return healthy();
	*ctx = (CUcontext)(uintptr_t)(0x1000 + fake.resets);
	fake.retained++;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxRelease(CUdevice dev)
{
	fake.retained--;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxReset(CUdevice dev)
{
	fake.resets++;
	if (!fake.spent)
		fake.fault = 0;
	for (int i = 0; i < MAX_PINNED; i++)
		if (pinned[i].base)
			mprotect(pinned[i].base, pinned[i].size, PROT_NONE);
	memset(pinned, 0, sizeof(pinned));
	n_pending = 0;
	memset(range, 0, sizeof(range));
	fake.registered = 0;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
	*least = 0;
	*greatest = -5;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleLoadDataEx(CUmodule *mod, const void *image,
				   unsigned int n, CUjit_option *o, void **v)
{
	wait_for_all();
	*mod = (CUmodule)image;
	fake.modules++;
	return healthy();
}

EXPORT CUresult cuModuleGetFunction(CUfunction *f, CUmodule mod,
				    const char *name)
{
	if (fake.names)
		fprintf((FILE *)fake.names, "%s\n", name);
	*f = (CUfunction)strdup(name);
	return healthy();
}

EXPORT CUresult cuModuleGetGlobal(CUdeviceptr *p, size_t *size, CUmodule mod,
				  const char *name)
{
	static uint64_t global[4096];

	*p = (CUdeviceptr)global;
	*size = sizeof(global);
	return healthy();
}

EXPORT CUresult cuFuncGetAttribute(int *v, CUfunction_attribute a,
				   CUfunction f)
{
	*v = a == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? 1024 : fake.regs;
	return healthy();
}

EXPORT CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *n,
							     CUfunction f,
							     int block,
							     size_t shared)
{
	*n = 1;
	return healthy();
}

EXPORT CUresult cuLaunchKernel(CUfunction f, unsigned int gx, unsigned int gy,
			       unsigned int gz, unsigned int bx,
			       unsigned int by, unsigned int bz,
			       unsigned int shared, CUstream s, void **params,
			       void **extra)
{
	fake.launches++;
	if (!gx || !bx || gx > 0x7fffffff || bx * by * bz > 1024)
		return CUDA_ERROR_INVALID_VALUE;
	if (strstr((const char *)f, "_ahead"))
		memcpy(fake.operands, params[1], sizeof(fake.operands));
	/* what launch.c calls a kernel that reaches outside its memory */
	if (!strcmp((const char *)f, "stray")) {
		fake.fault = CUDA_ERROR_ILLEGAL_ADDRESS;
		return CUDA_SUCCESS;
	}
	return healthy();
}

EXPORT CUresult cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction f,
				 void **params, void **extra)
{
	return cuLaunchKernel(f, c->gridDimX, c->gridDimY, c->gridDimZ,
			      c->blockDimX, c->blockDimY, c->blockDimZ,
			      c->sharedMemBytes, c->hStream, params, extra);
}

EXPORT CUresult cuLaunchHostFunc(CUstream s, CUhostFn fn, void *arg)
{
	if (!fake.fault)
		fn(arg);
	return healthy();
}

EXPORT CUresult cuMemAlloc(CUdeviceptr *p, size_t size)
{
	if (fake.limit && size > fake.limit)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*p = (CUdeviceptr)aligned_alloc(512, (size + 511) & ~511ull);
	fake.allocs++;
	return healthy();
}

EXPORT CUresult cuMemFree(CUdeviceptr p)
{
	wait_for_all();
	fake.frees++;
	free((void *)p);
	return healthy();
}

EXPORT CUresult cuMemGetInfo(size_t *avail, size_t *total)
{
	*avail = *total = 1ull << 37;
	return healthy();
}

EXPORT CUresult cuMemAllocHost(void **p, size_t size)
{
	for (int i = 0; i < MAX_PINNED; i++) {
		if (pinned[i].base)
			continue;
		*p = mmap(NULL, size, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (*p == MAP_FAILED)
			return CUDA_ERROR_OUT_OF_MEMORY;
		pinned[i].base = *p;
		pinned[i].size = size;
		return healthy();
	}
	return CUDA_ERROR_OUT_OF_MEMORY;
}

EXPORT CUresult cuMemFreeHost(void *p)
{
	wait_for_all();
	for (int i = 0; i < MAX_PINNED; i++) {
		if (pinned[i].base != p)
			continue;
		munmap(p, pinned[i].size);
		pinned[i].base = NULL;
		return healthy();
	}
	return CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuMemHostRegister(void *p, size_t size, unsigned int flags)
{
	int slot = -1;

	if (is_pinned(p, size))
		return CUDA_ERROR_INVALID_VALUE;
	for (int i = 0; i < MAX_RANGES; i++) {
		if (!range[i].base)
			slot = i;
		else if (range[i].base < (char *)p + size &&
			 (char *)p < range[i].base + range[i].size)
			return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	}
	range[slot].base = p;
	range[slot].size = size;
	fake.registered++;
	return healthy();
}

EXPORT CUresult cuMemHostUnregister(void *p)
{
	wait_for_all();
	for (int i = 0; i < MAX_RANGES; i++) {
		if (range[i].base != p)
			continue;
		range[i].base = NULL;
		fake.registered--;
		return healthy();
	}
	return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
}

EXPORT CUresult cuMemHostGetDevicePointer(CUdeviceptr *out, void *p,
					  unsigned int flags)
{
	if (!is_registered(p) && !is_pinned(p, 1))
		return CUDA_ERROR_INVALID_VALUE;
	*out = (CUdeviceptr)p;
	return healthy();
}

EXPORT CUresult cuPointerGetAttribute(void *out, CUpointer_attribute a,
				      CUdeviceptr p)
{
	return CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuMemcpyHtoDAsync(CUdeviceptr d, const void *s, size_t n,
				  CUstream st)
{
	memcpy((void *)d, s, n);
	return healthy();
}

EXPORT CUresult cuMemcpyDtoHAsync(void *d, CUdeviceptr s, size_t n,
				  CUstream st)
{
	memcpy(d, (void *)s, n);
	return healthy();
}

EXPORT CUresult cuMemcpyDtoDAsync(CUdeviceptr d, CUdeviceptr s, size_t n,
				  CUstream st)
{
	memcpy((void *)d, (void *)s, n);
	return healthy();
}

EXPORT CUresult cuMemsetD8Async(CUdeviceptr p, unsigned char v, size_t n,
				CUstream st)
{
	memset((void *)p, v, n);
	return healthy();
}

EXPORT CUresult cuStreamCreateWithPriority(CUstream *s, unsigned int flags,
					   int priority)
{
	*s = (CUstream)(uintptr_t)(0x100 + ++fake.streams);
	return healthy();
}

EXPORT CUresult cuStreamQuery(CUstream s)
{
	int busy;

	pthread_mutex_lock(&pending_lock);
	advance();
	busy = stuck(s, n_pending);
	pthread_mutex_unlock(&pending_lock);
	if (fake.fault)
		return healthy();
	return busy ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

EXPORT CUresult cuStreamSynchronize(CUstream s)
{
	cuStreamQuery(s);
	return healthy();
}

EXPORT CUresult cuStreamWriteValue64(CUstream s, CUdeviceptr p, cuuint64_t v,
				     unsigned int flags)
{
	CUresult r = CUDA_SUCCESS;

	fake.writes++;
	enqueue(s, p, v, 0, &r);
	return r ? r : healthy();
}

EXPORT CUresult cuStreamWaitValue64(CUstream s, CUdeviceptr p, cuuint64_t v,
				    unsigned int flags)
{
	CUresult r = CUDA_SUCCESS;

	if (flags != CU_STREAM_WAIT_VALUE_GEQ)
		return CUDA_ERROR_INVALID_VALUE;
	if (s == (CUstream)FAKE_CUDA_FOREIGN_STREAM)
		return CUDA_ERROR_INVALID_HANDLE;
	__atomic_fetch_add(&fake.waits, 1, __ATOMIC_RELAXED);
	enqueue(s, p, v, 1, &r);
	return r ? r : healthy();
}

EXPORT CUresult cuStreamBeginCapture(CUstream s, CUstreamCaptureMode mode)
{
	fake.captured = 1;
	return healthy();
}

EXPORT CUresult cuStreamEndCapture(CUstream s, CUgraph *g)
{
	fake.captured = 0;
	*g = (CUgraph)0x20;
	return healthy();
}

EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec *e, CUgraph g,
					    unsigned long long flags)
{
	wait_for_all();
	fake.graphs++;
	*e = (CUgraphExec)0x30;
	return healthy();
}

EXPORT CUresult cuGraphExecDestroy(CUgraphExec e)
{
	wait_for_all();
	fake.graphs--;
	return healthy();
}

EXPORT CUresult cuGraphLaunch(CUgraphExec e, CUstream s)
{
	fake.replays++;
	return healthy();
}

EXPORT CUresult cuOccupancyMaxActiveClusters(int *n, CUfunction f,
					     const CUlaunchConfig *c)
{
	*n = 60 / (int)c->attrs->value.clusterDim.x;
	return healthy();
}

EXPORT CUresult cuEventCreate(CUevent *e, unsigned int flags)
{
	*e = (CUevent)0x10;
	return healthy();
}
