/* SPDX-License-Identifier: MIT */
/*
 * What a library enqueues for the same operands again and again, kept as
 * graphs: for a small product the library takes longer to find out what to
 * launch than the GPU takes to do it.
 */
#ifndef AIR_CUDA_REPLAY_H
#define AIR_CUDA_REPLAY_H

#include "ops/worker/cuda/cuda.h"

/* Of one plan. Operands that find no place are enqueued as ever. */
struct air_replay;

/**
 * struct air_replay_run - one execution
 * @addr: operands, AIRUNNER_MAX_TENSORS of them
 * @workspace: the stream's own, so that no graph runs beside itself
 * @enqueue: enqueue it on @stream, given @arg; may be called twice
 */
struct air_replay_run {
	const uint64_t *addr;
	uint64_t workspace;
	CUstream stream;
	CUresult (*enqueue)(void *arg);
	void *arg;
};

/* NULL: no memory; air_replay_run() does without. */
struct air_replay *air_replay_open(void);
void air_replay_close(struct air_cuda *c, struct air_replay *r);

/*
 * Enqueue: from the time that the operands have come some times, as a graph.
 * Code that @enqueue loads must be there by then.
 */
CUresult air_replay_run(struct air_cuda *c, struct air_replay *r,
			const struct air_replay_run *run);

#endif /* AIR_CUDA_REPLAY_H */
