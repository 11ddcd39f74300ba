/* SPDX-License-Identifier: MIT */
/*
 * Beside other CUDA work of the process: the resident kernel is sent away while
 * something else wants the whole GPU. For devices whose worker is in this
 * process ("inproc:"). Nothing of CUDA is needed to compile or to link.
 *
 *	air_quiet_begin(dev);
 *	cublasGemmEx(...);				// has all the GPU
 *	cudaStreamSynchronize(stream);
 *	air_quiet_end(dev);
 */
#ifndef AIRUNNER_CUDA_H
#define AIRUNNER_CUDA_H

#include <airunner.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * air_quiet_begin() - have the resident kernel leave the GPU, and stay away
 *
 * Returns once it has left. Until the matching air_quiet_end() the kernel does
 * not come back: small operators run by launches in the meantime, in the same
 * order and with the same results, only later. Submissions are never refused.
 * Pairs may be nested and may come from different threads; the kernel comes
 * back after the last.
 *
 * A device without a resident kernel needs to do nothing and says AIR_OK.
 * AIR_UNSUPPORTED: the worker is not in this process, and its GPU not the
 * caller's alone (airunnerd has options of its own). AIR_TIMEOUT: an operator
 * that runs does not end, so the kernel cannot leave within two seconds. On
 * failure nothing has begun.
 */
AIR_API air_status air_quiet_begin(air_device *dev);

/*
 * The kernel may come back; it does with the next submission it has a use for.
 * Never waits and makes no call of CUDA, so it may be called from a host
 * function of a stream (cudaLaunchHostFunc()), behind the work that wanted the
 * GPU. AIR_BAD_ARGUMENT without a begin.
 */
AIR_API air_status air_quiet_end(air_device *dev);

#ifdef __cplusplus
}
#endif

#endif /* AIRUNNER_CUDA_H */
