// SPDX-License-Identifier: MIT
/*
 * Words that streams of other CUDA users of the process wait on. They are not
 * the rings' own: a stream that comes to its wait late would find a completion
 * word there that has gone round, and it may come to it when the channel and
 * its memory are gone. A word here only ever grows, over all channels that use
 * it one after the other, and stays until the GPU is given up.
 */
#include "ops/worker/cuda/cuda.h"

#include <stdlib.h>
#include <string.h>

#define PAGE  4096u
#define GAP   64u	/* no two words in one line */
#define WORDS (PAGE / GAP)

struct word {
	struct air_handover_page *page;
	uint64_t last;		/* the most that anybody waits for; atomic */
	bool used;
};

/* Mapped like a buffer, so that it has an address in every context. */
struct air_handover_page {
	struct air_handover_page *next;
	struct air_wbuffer buf;
	struct word word[WORDS];
};

static uint64_t *host_of(const struct word *w)
{
	uint64_t i = (uint64_t)(w - w->page->word);

	return (uint64_t *)((char *)w->page->buf.host + i * GAP);
}

static CUdeviceptr address_of(const struct word *w)
{
	uint64_t page = __atomic_load_n(
		&w->page->buf.addr[AIRUNNER_EXEC_CUDA_LAUNCH],
		__ATOMIC_ACQUIRE);

	return page ? page + (uint64_t)(w - w->page->word) * GAP : 0;
}

static struct air_handover_page *add_page(struct air_cuda *c)
{
	struct air_handover_page *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->buf.size = PAGE;
	p->buf.memory = AIR_HOST;
	p->buf.host = aligned_alloc(PAGE, PAGE);
	if (!p->buf.host)
		goto fail;
	memset(p->buf.host, 0, PAGE);
	for (uint32_t i = 0; i < WORDS; i++)
		p->word[i].page = p;
	if (air_cuda_buffer_map(c, &p->buf, AIRUNNER_EXEC_CUDA_LAUNCH))
		goto fail;
	p->next = c->pages;
	c->pages = p;
	return p;
fail:
	free(p->buf.host);
	free(p);
	return NULL;
}

static struct word *find_unused(struct air_cuda *c)
{
	for (struct air_handover_page *p = c->pages; p; p = p->next)
		for (uint32_t i = 0; i < WORDS; i++)
			if (!p->word[i].used)
				return &p->word[i];
	return NULL;
}

air_status air_cuda_handover_open(struct air_cuda *c, struct air_handover *h)
{
	struct word *w = find_unused(c);

	if (!w) {
		struct air_handover_page *p = add_page(c);

		if (!p)
			return AIR_NO_MEMORY;
		w = &p->word[0];
	}
	w->used = true;
	h->word = host_of(w);
	h->base = *h->word;
	h->priv = w;
	return AIR_OK;
}

static void let_pass(struct word *w)
{
	uint64_t last = __atomic_load_n(&w->last, __ATOMIC_ACQUIRE);

	if ((int64_t)(last - *host_of(w)) > 0)
		__atomic_store_n(host_of(w), last, __ATOMIC_RELEASE);
}

void air_cuda_handover_close(struct air_cuda *c, struct air_handover *h)
{
	struct word *w = h->priv;

	let_pass(w);
	w->used = false;
}

void air_cuda_handovers_free(struct air_cuda *c)
{
	for (struct air_handover_page *p = c->pages; p; p = p->next) {
		for (uint32_t i = 0; i < WORDS; i++) {
			let_pass(&p->word[i]);
			air_waiting_forget(host_of(&p->word[i]));
		}
		air_cuda_buffer_unmap(c, &p->buf, AIRUNNER_EXEC_CUDA_LAUNCH);
	}
	/* CUDA reads them until it has unregistered them */
	if (c->pages && !c->dead) {
		air_cuda_quiet_begin(c);
		air_hostmem_trim(c);
		air_cuda_quiet_end(c);
	}
	while (c->pages) {
		struct air_handover_page *p = c->pages;

		c->pages = p->next;
		free(p->buf.host);
		free(p);
	}
}

static void raise_last(struct word *w, uint64_t to)
{
	uint64_t last = __atomic_load_n(&w->last, __ATOMIC_RELAXED);

	while ((int64_t)(to - last) > 0 &&
	       !__atomic_compare_exchange_n(&w->last, &last, to, true,
					    __ATOMIC_RELEASE,
					    __ATOMIC_RELAXED))
		;
}

/*
 * The caller's thread may have no context current, or another: the legacy
 * default stream is that of the current one.
 */
air_status air_cuda_stream_wait(struct air_cuda *c,
				const struct air_handover *h, uint64_t n,
				void *stream, struct air_error *e)
{
	CUdeviceptr addr = address_of(h->priv);
	CUcontext former;
	air_status st;
	CUresult r;

	if (!addr || __atomic_load_n(&c->lost, __ATOMIC_RELAXED))
		return air_fail(e, AIR_DEVICE_LOST, "cuda: %s is lost",
				c->device_name);
	/* should it fail below: what is waited for comes all the same */
	if (!air_waiting_add(stream, h->word, h->base + n, c->max_waiting))
		return air_fail(e, AIR_FULL, "cuda: %u streams wait already",
				c->max_waiting);
	raise_last(h->priv, h->base + n);
	r = cu.CtxPushCurrent(c->ctx);
	if (r == CUDA_SUCCESS) {
		r = cu.StreamWaitValue64(stream, addr, h->base + n,
					 CU_STREAM_WAIT_VALUE_GEQ);
		cu.CtxPopCurrent(&former);
	}
	if (r == CUDA_SUCCESS)
		return AIR_OK;
	/* that is what a stream of another context gets */
	st = r == CUDA_ERROR_INVALID_CONTEXT ? AIR_BAD_ARGUMENT :
	     air_cuda_loses(r)		     ? AIR_DEVICE_LOST :
					       air_cuda_status(r);
	return air_fail(e, st, "cuda: stream %p cannot wait: %s", stream,
			air_cuda_error_name(r));
}
