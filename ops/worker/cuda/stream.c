// SPDX-License-Identifier: MIT
#include "ops/worker/cuda/stream.h"

#include <string.h>

CUresult air_stream_open(struct air_stream *s, uint64_t *word)
{
	int least = 0, greatest = 0;
	CUresult r;

	*s = (struct air_stream){ .word = word };
	*word = 0;
	/*
	 * The highest priority, so that the small work that travels here is
	 * not queued behind other libraries' full-chip kernels.
	 */
	cu.CtxGetStreamPriorityRange(&least, &greatest);
	r = cu.MemHostGetDevicePointer(&s->word_dev, word, 0);
	if (r == CUDA_SUCCESS)
		r = cu.StreamCreateWithPriority(
			&s->stream, CU_STREAM_NON_BLOCKING, greatest);
	if (r != CUDA_SUCCESS)
		return r;
	r = cu.EventCreate(&s->event, CU_EVENT_DISABLE_TIMING);
	if (r != CUDA_SUCCESS) {
		cu.StreamDestroy(s->stream);
		s->stream = NULL;
	}
	return r;
}

void air_stream_close(struct air_cuda *c, struct air_stream *s)
{
	if (!s->stream)
		return;
	cu.EventDestroy(s->event);
	cu.StreamDestroy(s->stream);
	if (s->scratch)
		air_devmem_free(c, s->scratch);
	if (s->wide)
		air_devmem_free(c, s->wide);
	if (s->counter)
		air_devmem_free(c, s->counter);
	memset(s, 0, sizeof(*s));
}

void air_stream_push(struct air_stream *s, struct air_work *work)
{
	work->priv = (void *)(uintptr_t)++s->given;
	work->next = NULL;
	if (s->last)
		s->last->next = work;
	else
		s->first = work;
	s->last = work;
}

CUresult air_stream_tell(struct air_stream *s)
{
	CUresult r;

	if (s->told == s->given)
		return CUDA_SUCCESS;
	/* the default flags order the write behind all the stream's writes */
	r = cu.StreamWriteValue64(s->stream, s->word_dev, s->given,
				  CU_STREAM_WRITE_VALUE_DEFAULT);
	if (r == CUDA_SUCCESS)
		s->told = s->given;
	return r;
}

/*
 * Nobody measures each launch: that would cost more than many of them take.
 * What one write answers is given equal shares of the time from when the first
 * could start to when the write was seen, so that the sum is right, which is
 * what the arbiter accounts by.
 */
static void share_time(struct air_stream *s, struct air_work *first, uint64_t n,
		       uint64_t now)
{
	uint64_t begin = first->start > s->free_at ? first->start : s->free_at;
	uint64_t k = 0;

	if (begin > now)
		begin = now;
	for (struct air_work *w = first; w; w = w->next, k++) {
		w->start = begin + (now - begin) * k / n;
		w->end = begin + (now - begin) * (k + 1) / n;
	}
	s->free_at = now;
}

struct air_work *air_stream_pop(struct air_stream *s, uint64_t now)
{
	uint64_t done = __atomic_load_n(s->word, __ATOMIC_ACQUIRE), n = 0;
	struct air_work *first = s->first, *last = NULL;

	for (struct air_work *w = first;
	     w && (uint64_t)(uintptr_t)w->priv <= done; w = w->next) {
		last = w;
		n++;
	}
	if (!last)
		return NULL;
	s->first = last->next;
	if (!s->first)
		s->last = NULL;
	last->next = NULL;
	share_time(s, first, n, now);
	return first;
}

struct air_work *air_stream_pop_all(struct air_stream *s)
{
	struct air_work *first = s->first;

	s->first = s->last = NULL;
	s->told = s->given;
	return first;
}
