// SPDX-License-Identifier: MIT
/*
 * How many streams of the process wait for a word at a time. A stream that
 * waits keeps one of the GPU's queues to the process, behind which nothing
 * else is launched: with all of them taken, what the streams wait for would
 * never be. Half are left to it, and to waits of the program's own, of which
 * nothing is known here.
 */
#include "ops/worker/cuda/cuda.h"

#include <pthread.h>
#include <stdlib.h>

/* What CUDA takes where the environment says nothing, and at most. */
#define QUEUES	   8
#define QUEUES_MAX 32

/* @stream is past it once *@word has reached @until; NULL: unused. */
struct waiting {
	CUstream stream;
	const uint64_t *word;
	uint64_t until;
};

static struct waiting waiting[QUEUES_MAX / 2];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

uint32_t air_waiting_limit(void)
{
	const char *text = getenv("CUDA_DEVICE_MAX_CONNECTIONS");
	long queues = text && *text ? strtol(text, NULL, 10) : QUEUES;

	if (queues < 0)
		queues = 0;
	if (queues > QUEUES_MAX)
		queues = QUEUES_MAX;
	return (uint32_t)queues / 2;
}

static bool waits(const struct waiting *w)
{
	return w->word && (int64_t)(w->until - __atomic_load_n(
						     w->word,
						     __ATOMIC_ACQUIRE)) > 0;
}

/* One handle stands for as many streams as there are threads. */
static bool is_one(CUstream stream)
{
	return stream != CU_STREAM_PER_THREAD;
}

bool air_waiting_add(CUstream stream, const uint64_t *word, uint64_t until,
		     uint32_t limit)
{
	struct waiting *unused = NULL, *mine = NULL;
	uint32_t n = 0;

	pthread_mutex_lock(&lock);
	for (uint32_t i = 0; i < QUEUES_MAX / 2; i++) {
		struct waiting *w = &waiting[i];

		if (!waits(w))
			unused = w;
		else if (w->word == word && w->stream == stream &&
			 is_one(stream))
			mine = w;
		else
			n++;
	}
	if (mine) {
		if ((int64_t)(until - mine->until) > 0)
			mine->until = until;
	} else if (unused && n < limit) {
		mine = unused;
		*mine = (struct waiting){ stream, word, until };
	}
	pthread_mutex_unlock(&lock);
	return mine != NULL;
}

void air_waiting_forget(const uint64_t *word)
{
	pthread_mutex_lock(&lock);
	for (uint32_t i = 0; i < QUEUES_MAX / 2; i++)
		if (waiting[i].word == word)
			waiting[i].word = NULL;
	pthread_mutex_unlock(&lock);
}
