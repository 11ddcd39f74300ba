/* SPDX-License-Identifier: MIT */
/*
 * Beside other CUDA work of the process: results handed over to a stream of the
 * caller's, and the resident kernel sent away while something else wants the
 * whole GPU. For devices whose worker is in this process ("inproc:"). Nothing
 * of CUDA is needed to compile or to link.
 *
 *	air_execute_rms_norm(norm, AIR_NO_REF, y, x, w, &token);
 *	air_stream_wait(ch, token, stream);
 *	my_kernel<<<grid, block, 0, stream>>>(y);	// sees y
 *
 *	air_quiet_begin(dev);
 *	cublasGemmEx(...);				// has all the GPU
 *	cudaStreamSynchronize(stream);
 *	air_quiet_end(dev);
 *
 * The other direction, a submission that is to follow work of a stream, needs
 * no call of its own. Submit once the stream is known to have come so far
 * (cudaStreamSynchronize(), cudaEventQuery()), or from a host function of the
 * stream (cudaLaunchHostFunc()): air_submit() and what is built on it make no
 * call of CUDA, so they are allowed there.
 */
#ifndef AIRUNNER_CUDA_H
#define AIRUNNER_CUDA_H

#include <airunner.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * air_stream_wait() - have a CUDA stream wait for a submission
 * @token: any that @ch has returned, collected or not
 * @stream: a CUstream or cudaStream_t of the primary context of the worker's
 *	device; NULL is the legacy default stream
 *
 * Work enqueued in @stream after this call begins only once @token has
 * completed, whatever its status, and sees what it wrote. The caller's CPU does
 * not wait for it, but in two cases below: the first call for a channel waits
 * for the worker, later ones enqueue a wait and ring the worker's bell. Nothing
 * is enqueued when @token has completed already. The token stays as it was: its
 * completion is still to be collected.
 *
 * While a stream waits, whatever makes CUDA wait for all streams is put off:
 * the creation of descriptors, modules and device buffers, and the end of
 * channels, take until no stream waits. Should such a request stand unanswered
 * before @token in the ring (another thread's, or an air_module_unload()), the
 * call itself waits for @token instead.
 *
 * A stream that waits keeps one of the GPU's queues to the process; on an H200
 * nothing is launched any more once all are taken, also not what the streams
 * wait for. So this process's streams that wait at a time may be half as many
 * as there are queues: CUDA_DEVICE_MAX_CONNECTIONS of them if the environment
 * has it (as it was at air_open()), else 8. For a stream beyond that the call
 * itself waits for @token: all of them with one queue. What @token depends on
 * must therefore not come from the caller after the call. cuStreamWaitValue64()
 * and the like of the program's own take queues, too, but are not counted.
 *
 * Of the caller's own calls, cudaFree(), cudaFreeHost(), cudaHostUnregister()
 * and the loading of a module wait until no stream waits, and nobody's launches
 * return meanwhile: for what has not been launched yet, that is for ever. Make
 * none from air_stream_wait() on until the stream is past it; nor have a second
 * air_device on this GPU, which knows nothing of this one's streams, make
 * anything meanwhile. cudaDeviceSynchronize() and cuModuleUnload() wait for the
 * stream as well, but let launches through.
 *
 * Completions are passed on by the worker, in the order of submission: what was
 * submitted before @token has completed as well when the stream goes on, also
 * where AIR_CALL_UNORDERED would let @token be earlier.
 *
 * The stream goes on in any case: an error, air_cancel(), the end of the
 * channel or of its worker let it pass, too. Until it has come past the waits,
 * air_close() may wait for it; so before air_close(), nothing in the stream may
 * depend on what the caller does afterwards. Buffers that its work uses are to
 * be kept by the caller, as always.
 *
 * Not for streams in capture: a graph would wait each time for what was over
 * with its first launch.
 *
 * Thread-safety: as the channel's. AIR_BAD_TOKEN (never returned by @ch),
 * AIR_UNSUPPORTED (another transport, no CUDA executor in the worker),
 * AIR_BAD_ARGUMENT (CUDA does not know the stream), AIR_DEVICE_LOST,
 * AIR_NO_MEMORY, AIR_SYSTEM. On failure nothing was enqueued.
 */
AIR_API air_status air_stream_wait(air_channel *ch, air_token token,
				   void *stream);

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
