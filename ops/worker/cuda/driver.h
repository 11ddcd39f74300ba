/* SPDX-License-Identifier: MIT */
/*
 * The CUDA driver, found at run time: nothing of CUDA is linked, so that the
 * plug-in loads on a machine without a driver and says so.
 *
 * A call is cu.MemAlloc(...) for cuMemAlloc(...); the versions are those of
 * the cuda.h this was compiled with.
 */
#ifndef AIR_CUDA_DRIVER_H
#define AIR_CUDA_DRIVER_H

#include <cuda.h>

#include "ops/op.h"

#define AIR_CUDA_CALLS(X)               \
	X(Init)                         \
	X(DriverGetVersion)             \
	X(GetErrorName)                 \
	X(GetErrorString)               \
	X(DeviceGetCount)               \
	X(DeviceGet)                    \
	X(DeviceGetName)                \
	X(DeviceGetAttribute)           \
	X(DeviceTotalMem)               \
	X(DevicePrimaryCtxRetain)       \
	X(DevicePrimaryCtxRelease)      \
	X(DevicePrimaryCtxReset)        \
	X(CtxSetCurrent)                \
	X(CtxPushCurrent)               \
	X(CtxPopCurrent)                \
	X(CtxGetStreamPriorityRange)    \
	X(ThreadExchangeStreamCaptureMode) \
	X(ModuleLoadDataEx)             \
	X(ModuleUnload)                 \
	X(ModuleGetFunction)            \
	X(ModuleGetGlobal)              \
	X(FuncGetAttribute)             \
	X(FuncSetAttribute)             \
	X(OccupancyMaxActiveBlocksPerMultiprocessor) \
	X(OccupancyMaxActiveClusters)   \
	X(LaunchKernel)                 \
	X(LaunchKernelEx)               \
	X(LaunchHostFunc)               \
	X(MemAlloc)                     \
	X(MemFree)                      \
	X(MemGetInfo)                   \
	X(MemAllocHost)                 \
	X(MemFreeHost)                  \
	X(MemHostRegister)              \
	X(MemHostUnregister)            \
	X(MemHostGetDevicePointer)      \
	X(PointerGetAttribute)          \
	X(MemcpyHtoDAsync)              \
	X(MemcpyDtoHAsync)              \
	X(MemcpyDtoDAsync)              \
	X(MemsetD8Async)                \
	X(StreamCreateWithPriority)     \
	X(StreamDestroy)                \
	X(StreamQuery)                  \
	X(StreamBeginCapture)           \
	X(StreamEndCapture)             \
	X(GraphInstantiateWithFlags)    \
	X(GraphLaunch)                  \
	X(GraphExecDestroy)             \
	X(GraphDestroy)                 \
	X(StreamSynchronize)            \
	X(StreamWaitEvent)              \
	X(StreamWriteValue64)           \
	X(StreamWaitValue64)            \
	X(EventCreate)                  \
	X(EventDestroy)                 \
	X(EventRecord)                  \
	X(EventQuery)

/* Younger than the oldest driver that is served (12.0): may be NULL. */
#define AIR_CUDA_OPTIONAL_CALLS(X)      \
	X(FuncLoad)                     \
	X(FuncGetParamInfo)             \
	X(ModuleGetFunctionCount)       \
	X(ModuleEnumerateFunctions)     \
	X(FuncGetName)                  \
	X(DeviceGetDevResource)         \
	X(DevSmResourceSplitByCount)    \
	X(DevResourceGenerateDesc)      \
	X(GreenCtxCreate)               \
	X(GreenCtxDestroy)              \
	X(GreenCtxStreamCreate)

struct air_cuda_driver {
#define AIR_CUDA_MEMBER(name) __typeof__(&cu##name) name;
	AIR_CUDA_CALLS(AIR_CUDA_MEMBER)
	AIR_CUDA_OPTIONAL_CALLS(AIR_CUDA_MEMBER)
#undef AIR_CUDA_MEMBER
};

extern struct air_cuda_driver cu;

/*
 * Find the driver and initialise it; may be called again. AIR_NO_DEVICE with
 * a sentence when there is none, it is too old, or there is no GPU.
 */
air_status air_cuda_driver_load(struct air_error *e);

/* "CUDA_ERROR_ILLEGAL_ADDRESS"; never NULL. */
const char *air_cuda_error_name(CUresult r);

#endif /* AIR_CUDA_DRIVER_H */
