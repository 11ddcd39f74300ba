// SPDX-License-Identifier: MIT
#include "tests/gpu/product.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "include/uapi/airunner.h"
#include "tests/gpu/peer_lt.h"
#include "tests/gpu/vadd_ptx.h"

#define N	  PRODUCT_N
#define BYTES	  (N * N * 2)
#define WORKSPACE (32ull << 20)
#define BATCH	  PRODUCT_BATCH
#define LIMIT_NS  3000000000ull

struct product_cuda cuda;
CUdeviceptr product_y, product_a, product_b, product_workspace;
int product_sms;
CUfunction product_vadd;

static CUdevice dev;
static CUevent event[BATCH + 1];

uint64_t product_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

#define STRING(x) #x
#define SYMBOL(x) STRING(x)

void product_check(CUresult r, const char *what)
{
	if (r == CUDA_SUCCESS)
		return;
	printf("%s: CUDA error %d\n", what, (int)r);
	fflush(stdout);
	_Exit(1);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

double product_quantile(double *x, unsigned int n, double q)
{
	qsort(x, n, sizeof(*x), by_value);
	return n ? x[(unsigned int)(q * (n - 1))] : 0;
}

static void find_cuda(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW);

	if (!lib) {
		puts("skip: no libcuda");
		exit(77);
	}
#define FIND(n) *(void **)&cuda.n = dlsym(lib, SYMBOL(cu##n));
	PRODUCT_CALLS(FIND)
#define HAVE(n)                                                                \
	if (!cuda.n) {                                                         \
		puts("libcuda has no " SYMBOL(cu##n));                         \
		exit(1);                                                       \
	}
	PRODUCT_CALLS(HAVE)
}

/* Random numbers of size 0.5 to 1: zeros would spare the GPU power. */
static void fill(CUdeviceptr to)
{
	const size_t part = 8 << 20;
	uint16_t *x = malloc(part);
	uint64_t seed = 0x9e3779b97f4a7c15ull + to;

	for (size_t i = 0; i < part / 2; i++) {
		seed ^= seed << 13;
		seed ^= seed >> 7;
		seed ^= seed << 17;
		x[i] = (uint16_t)((seed & 0x807f) | 0x3f00);
	}
	CHECK(MemcpyHtoD(to, x, part));
	for (size_t at = part; at < BYTES; at += part)
		CHECK(MemcpyDtoD(to + at, to, part));
	free(x);
}

void product_open(char *device, int size)
{
	CUcontext ctx;
	CUmodule mod;

	find_cuda();
	CHECK(Init(0));
	CHECK(DeviceGet(&dev, 0));
	CHECK(DeviceGetName(device, size, dev));
	CHECK(DeviceGetAttribute(
		&product_sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, dev));
	CHECK(DevicePrimaryCtxRetain(&ctx, dev));
	CHECK(CtxSetCurrent(ctx));
	CHECK(MemAlloc(&product_y, BYTES));
	CHECK(MemAlloc(&product_a, BYTES));
	CHECK(MemAlloc(&product_b, BYTES));
	CHECK(MemAlloc(&product_workspace, WORKSPACE));
	fill(product_a);
	fill(product_b);
	CHECK(StreamSynchronize(NULL));
	for (int i = 0; i <= BATCH; i++)
		CHECK(EventCreate(&event[i], CU_EVENT_DEFAULT));
	CHECK(ModuleLoadData(&mod, vadd_ptx));
	CHECK(ModuleGetFunction(&product_vadd, mod, "vadd"));
	CHECK(FuncLoad(product_vadd));
}

void product_enqueue(const struct product *g)
{
	int st = peer_lt_run(g->lt, product_y, product_a, product_b,
			     product_workspace, g->stream, 1);

	if (!st)
		return;
	printf("%s: cublasLtMatmul says %d\n", g->name, st);
	fflush(stdout);
	_Exit(1);
}

bool product_ends(uint64_t limit)
{
	CUresult r;

	limit += product_now();
	while ((r = cuda.EventQuery(event[BATCH])) == CUDA_ERROR_NOT_READY)
		if (product_now() > limit)
			return false;
	product_check(r, "products");
	return true;
}

void product_mark(CUstream stream)
{
	CHECK(EventRecord(event[BATCH], stream));
}

bool product_sample(const struct product *g, double us[], void (*stalled)(void))
{
	bool in_time;

	for (int i = 0; i < BATCH; i++) {
		CHECK(EventRecord(event[i], g->stream));
		product_enqueue(g);
	}
	product_mark(g->stream);
	in_time = product_ends(LIMIT_NS);
	if (!in_time) {
		printf("STALL: %s: no end after 3 s\n", g->name);
		stalled();
		if (!product_ends(LIMIT_NS)) {
			puts("STALL: nor with the resident kernel gone");
			_Exit(3);
		}
		puts("STALL: it ended when the resident kernel had left");
	}
	for (int i = 0; i < BATCH; i++) {
		float ms = 0;

		CHECK(EventElapsedTime(&ms, event[i], event[i + 1]));
		us[i] = (double)ms * 1e3;
	}
	return in_time;
}

bool product_make(struct product *g, CUstream stream, int target,
		  unsigned int nth, const char *name)
{
	g->lt = peer_lt_open(AIRUNNER_BF16, N, N, N, 1, true);
	if (!g->lt) {
		puts("no cuBLASLt");
		_Exit(1);
	}
	if (!peer_lt_choose(g->lt, target, nth)) {
		peer_lt_close(g->lt);
		g->lt = NULL;
		return false;
	}
	g->stream = stream;
	g->target = target;
	snprintf(g->name, sizeof(g->name), "%s", name);
	/* code is loaded now, while no kernel is in its way */
	product_enqueue(g);
	product_enqueue(g);
	CHECK(StreamSynchronize(stream));
	return true;
}

CUstream product_partition(unsigned int leave, int *left)
{
	unsigned int flags = 0, one = 1;
	CUdevResource all, few, rest;
	CUdevResourceDesc desc;
	CUgreenCtx green;
	CUstream s = NULL;
	CUresult r;

	if (leave % 8)
		flags = CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING;
	r = cuda.DeviceGetDevResource(dev, &all, CU_DEV_RESOURCE_TYPE_SM);
	if (r == CUDA_SUCCESS)
		r = cuda.DevSmResourceSplitByCount(&few, &one, &all, &rest,
						   flags, leave);
	if (r == CUDA_SUCCESS)
		r = cuda.DevResourceGenerateDesc(&desc, &rest, 1);
	if (r == CUDA_SUCCESS)
		r = cuda.GreenCtxCreate(&green, desc, dev,
					CU_GREEN_CTX_DEFAULT_STREAM);
	if (r == CUDA_SUCCESS)
		r = cuda.GreenCtxStreamCreate(&s, green, CU_STREAM_NON_BLOCKING,
					      0);
	if (r != CUDA_SUCCESS) {
		printf("  no green context that leaves %u SMs: error %d\n",
		       leave, (int)r);
		return NULL;
	}
	*left = (int)rest.sm.smCount;
	printf("  green context of %d SMs, %u left\n", *left, few.sm.smCount);
	return s;
}
