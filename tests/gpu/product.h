/* SPDX-License-Identifier: MIT */
/*
 * A kernel that wants the whole GPU, to be run beside other things: the bf16
 * product of two matrices of 8192 x 8192 by cuBLASLt, with CUDA's own calls and
 * nothing of airunner's. Whoever meets an error that makes measuring pointless
 * ends the process with a sentence.
 */
#ifndef AIR_TEST_PRODUCT_H
#define AIR_TEST_PRODUCT_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

#define PRODUCT_N     8192ull
#define PRODUCT_BATCH 4 /* of a sample */

#define PRODUCT_CALLS(X)                                                       \
	X(Init)                                                                \
	X(DeviceGet)                                                           \
	X(DeviceGetName)                                                       \
	X(DeviceGetAttribute)                                                  \
	X(DevicePrimaryCtxRetain)                                              \
	X(CtxSetCurrent)                                                       \
	X(CtxGetStreamPriorityRange)                                           \
	X(MemAlloc)                                                            \
	X(MemcpyHtoD)                                                          \
	X(MemcpyDtoD)                                                          \
	X(StreamCreate)                                                        \
	X(StreamCreateWithPriority)                                            \
	X(StreamSynchronize)                                                   \
	X(StreamQuery)                                                         \
	X(EventCreate)                                                         \
	X(EventRecord)                                                         \
	X(EventQuery)                                                          \
	X(EventElapsedTime)                                                    \
	X(ModuleLoadData)                                                      \
	X(ModuleGetFunction)                                                   \
	X(FuncLoad)                                                            \
	X(LaunchHostFunc)                                                      \
	X(LaunchKernel)                                                        \
	X(DeviceGetDevResource)                                                \
	X(DevSmResourceSplitByCount)                                           \
	X(DevResourceGenerateDesc)                                             \
	X(GreenCtxCreate)                                                      \
	X(GreenCtxStreamCreate)

/* cuda.h's calls. */
extern struct product_cuda {
#define PRODUCT_MEMBER(n) __typeof__(&cu##n) n;
	PRODUCT_CALLS(PRODUCT_MEMBER)
#undef PRODUCT_MEMBER
} cuda;

/* End the process with what failed. */
void product_check(CUresult r, const char *what);
#define CHECK(call) product_check(cuda.call, #call)

/**
 * struct product - a way to make it
 * @target: SMs that cuBLASLt is told of; 0: all
 */
struct product {
	char name[48];
	struct peer_lt *lt;
	CUstream stream;
	int target;
};

/* Operands and workspace; multiprocessors; a vector_add(1024) to be launched
 * as 4 blocks of 256 threads with (y, a, b). */
extern CUdeviceptr product_y, product_a, product_b, product_workspace;
extern int product_sms;
extern CUfunction product_vadd;

uint64_t product_now(void);
/* Sorts. */
double product_quantile(double *x, unsigned int n, double q);

/* The primary context, operands of random numbers; the device's name. */
void product_open(char *device, int size);

/*
 * The library's @nth choice for @target multiprocessors, made twice, so that
 * its code is loaded. False: there are not so many choices.
 */
bool product_make(struct product *p, CUstream stream, int target,
		  unsigned int nth, const char *name);

void product_enqueue(const struct product *p);

/*
 * Times of PRODUCT_BATCH of them back to back. False: they did not end within
 * 3 seconds; after a call of @stalled, which is to end what they may have been
 * waiting for, they did.
 */
bool product_sample(const struct product *p, double us[],
		    void (*stalled)(void));

/* Mark the end of what is enqueued in @stream; wait for it at most so long. */
void product_mark(CUstream stream);
bool product_ends(uint64_t limit_ns);

/*
 * A stream of the multiprocessors that are left when @leave are taken away, in
 * the way that AIRUNNER_RESIDENT_PARTITION takes them; NULL: there is no such.
 */
CUstream product_partition(unsigned int leave, int *left);

#endif /* AIR_TEST_PRODUCT_H */
