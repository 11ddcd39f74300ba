/* SPDX-License-Identifier: MIT */
/*
 * A CUDA stream whose progress is read from a word of host memory: after a
 * burst of launches the stream is told to write the number of the last one
 * there. Polling costs a load; nothing waits in a CUDA call.
 */
#ifndef AIR_CUDA_STREAM_H
#define AIR_CUDA_STREAM_H

#include "ops/worker/cuda/cuda.h"

/* Work that one write may answer: bounds how late the first of a burst is
 * seen. */
#define AIR_STREAM_BURST 32

/**
 * struct air_stream
 * @word: the number of the last work that has completed, written by the GPU
 * @word_dev: its address there
 * @given: number of the last work that was enqueued
 * @told: number that the last enqueued write will write
 * @armed: number at whose completion the sleeper's eventfd is written
 * @first, @last: work that is outstanding, oldest first
 * @free_at: when the last completion was seen: what is behind it did not
 *	start earlier
 * @event: for other streams to wait on
 * @scratch: AIR_CUDA_SCRATCH bytes for what runs here; 0 until needed
 * @wide: AIR_CUDA_WIDE bytes, likewise
 * @counter: a word that is 0 between kernels (struct air_cuda_plan), likewise
 * @active: on the executor's list of streams with outstanding work
 */
struct air_stream {
	CUstream stream;
	CUevent event;
	uint64_t *word;
	CUdeviceptr word_dev;
	uint64_t given;
	uint64_t told;
	uint64_t armed;
	struct air_work *first, *last;
	uint64_t free_at;
	uint64_t scratch;
	uint64_t wide;
	uint64_t counter;
	bool active;
	struct air_stream *next;
};

/* @word: a word of mapped host memory, 64 bytes from any other. */
CUresult air_stream_open(struct air_stream *s, uint64_t *word);
void air_stream_close(struct air_cuda *c, struct air_stream *s);

/* Work was enqueued on s->stream: give it a number and remember it. */
void air_stream_push(struct air_stream *s, struct air_work *work);

/* Have the stream tell of everything enqueued so far. */
CUresult air_stream_tell(struct air_stream *s);

/*
 * Take the work that has completed off @s, with start and end filled in.
 * Returns a list linked by ->next.
 */
struct air_work *air_stream_pop(struct air_stream *s, uint64_t now);

/* Take everything off. */
struct air_work *air_stream_pop_all(struct air_stream *s);

#endif /* AIR_CUDA_STREAM_H */
