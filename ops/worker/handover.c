// SPDX-License-Identifier: MIT
/*
 * CUDA streams of the caller's that wait for submissions. A stream waits, on
 * the device, for a word (struct air_handover) to reach a number; the worker
 * counts the channel's completions, wherever they come from, and stores how
 * many there are in a row.
 *
 * While a stream waits for the worker, the worker must not wait for the stream.
 * Some calls of CUDA do, for all streams of the process: loading code, freeing
 * and unregistering memory. Each is made between air_block_begin() and
 * air_block_end(), and put off while somebody waits. That ends, as what is
 * waited for never comes behind what is put off: a client does not have a
 * stream wait for a submission that one of the library's own precedes which has
 * not been answered (libairunner/stream.c), and operators themselves are never
 * put off.
 */
#include <stdlib.h>
#include <time.h>

#include "ops/worker/internal.h"

/* How often a call that was put off is made again. */
#define PAUSE_NS 50000

static bool waits(const struct air_whandover *h)
{
	return (int64_t)(air_load(&h->wanted, SEQ_CST) - h->done) > 0;
}

/*
 * cq_head has gone past what was collected, and only then can a slot be another
 * lap's: so laps tell the truth of all that is not before it.
 */
void air_handover_pass(struct air_wchannel *ch)
{
	struct air_whandover *h = ch->handover;
	uint64_t wanted, head;

	if (!waits(h))
		return;
	wanted = air_load(&h->wanted, ACQUIRE);
	head = air_load(&ch->ring.ctrl->cq_head, ACQUIRE);
	if ((int64_t)(head - h->done) > 0)
		h->done = head;
	while ((int64_t)(wanted - h->done) > 0 &&
	       air_ring_answered(&ch->ring, h->done))
		h->done++;
	/* What the operators wrote comes before this. */
	air_fence_acquire();
	air_store(h->h.word, h->h.base + h->done, RELEASE);
}

/* ---------------------------------------------------- not to wait for them */

static bool somebody_waits(struct air_worker *w)
{
	struct air_list *pos, *n;
	bool any = false;

	air_list_each(pos, n, &w->handovers) {
		struct air_whandover *h = air_list_entry(
			pos, struct air_whandover, on_handovers);

		air_handover_pass(h->ch);
		any |= waits(h);
	}
	return any;
}

bool air_block_begin(struct air_worker *w)
{
	if (w->blocks || air_list_empty(&w->handovers)) {
		w->blocks++;
		return true;
	}
	/* Others raise what they want, and then look at this. */
	air_store(&w->box.blocked, 1, SEQ_CST);
	if (somebody_waits(w)) {
		air_store(&w->box.blocked, 0, RELEASE);
		w->put_off = true;
		return false;
	}
	w->blocks++;
	return true;
}

void air_block_end(struct air_worker *w)
{
	if (!--w->blocks)
		air_store(&w->box.blocked, 0, RELEASE);
}

air_status air_call_patiently(struct air_worker *w, air_status (*fn)(void *arg),
			      void *arg)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	air_status st;

	while ((st = air_worker_call(w, fn, arg)) == AIR_PENDING)
		nanosleep(&pause, NULL);
	return st;
}

void air_put_off_resume(struct air_worker *w)
{
	struct air_list *pos, *n;

	if (somebody_waits(w))
		return;
	w->put_off = false;
	w->activated = true;
	air_list_each(pos, n, &w->all) {
		struct air_wchannel *ch =
			air_list_entry(pos, struct air_wchannel, on_all);

		if (ch->late_first)
			air_late_run(ch);
	}
}

/* ---------------------------------------------------------- beginning, end */

static void close_one(struct air_whandover *h)
{
	struct air_worker *w = h->ch->w;
	struct air_wexec *x = &w->exec[h->executor];

	x->ops->handover_close(x->ex, &h->h);
	air_list_remove(&h->on_handovers);
	h->ch->handover = NULL;
	free(h);
}

void air_handover_end(struct air_wchannel *ch)
{
	if (ch->handover)
		close_one(ch->handover);
}

void air_handovers_end(struct air_worker *w)
{
	struct air_list *pos, *n;

	air_list_each(pos, n, &w->handovers)
		close_one(air_list_entry(pos, struct air_whandover,
					 on_handovers));
}

static air_status open_one(struct air_wchannel *ch, uint32_t executor)
{
	struct air_wexec *x = &ch->w->exec[executor];
	struct air_whandover *h = calloc(1, sizeof(*h));
	air_status st;

	if (!h)
		return AIR_NO_MEMORY;
	st = x->ops->handover_open(x->ex, &h->h);
	if (st) {
		free(h);
		return st;
	}
	h->ch = ch;
	h->executor = executor;
	air_list_append(&ch->w->handovers, &h->on_handovers);
	air_store(&ch->handover, h, RELEASE);
	return AIR_OK;
}

static air_status open_here(void *arg)
{
	struct air_wchannel *ch = arg;
	struct air_worker *w = ch->w;
	uint32_t id = 1;
	air_status st;

	/* Another thread may have been quicker. */
	if (ch->handover)
		return AIR_OK;
	while (id < AIR_EXECUTORS &&
	       (!w->exec[id].ops || !w->exec[id].ops->handover_open))
		id++;
	if (id == AIR_EXECUTORS)
		return AIR_UNSUPPORTED;
	/* It may take memory to be registered, and other to be let go. */
	if (!air_block_begin(w))
		return AIR_PENDING;
	st = open_one(ch, id);
	air_block_end(w);
	return st;
}

air_status air_worker_handover(struct air_wchannel *ch)
{
	if (air_load(&ch->handover, ACQUIRE))
		return AIR_OK;
	return air_call_patiently(ch->w, open_here, ch);
}

static void raise_wanted(struct air_whandover *h, uint64_t to)
{
	uint64_t old = air_load(&h->wanted, RELAXED);

	while ((int64_t)(to - old) > 0 &&
	       !__atomic_compare_exchange_n(&h->wanted, &old, to, true,
					    __ATOMIC_SEQ_CST,
					    __ATOMIC_RELAXED))
		;
}

air_status air_worker_stream_wait(struct air_wchannel *ch, uint64_t index,
				  void *stream, struct air_error *e)
{
	struct air_whandover *h = air_load(&ch->handover, ACQUIRE);
	struct air_wexec *x = &ch->w->exec[h->executor];
	air_status st;

	raise_wanted(h, index + 1);
	/* From here on it does not begin to wait for streams. */
	if (air_load(&ch->w->box.blocked, SEQ_CST))
		return AIR_BUSY;
	st = x->ops->stream_wait(x->ex, &h->h, index + 1, stream, e);
	/* It looks at what is wanted once more. */
	air_mailbox_ring(&ch->w->box, ch);
	return st;
}
