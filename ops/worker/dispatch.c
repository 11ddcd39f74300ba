// SPDX-License-Identifier: MIT
/*
 * A submission, copied out of the ring, is checked and run. Whatever it is, it
 * gets exactly one answer: here, or from work_done(), or later from answer.c.
 */
#include <stdlib.h>

#include "ops/worker/internal.h"

#define WORKS_A_CHUNK 64

struct work_chunk {
	void *next;
	struct air_work work[WORKS_A_CHUNK];
};

struct air_work *air_work_get(struct air_worker *w)
{
	struct air_work *work = w->free_work;

	if (!work) {
		struct work_chunk *chunk = calloc(1, sizeof(*chunk));

		if (!chunk)
			return NULL;
		chunk->next = w->work_chunks;
		w->work_chunks = chunk;
		for (unsigned int i = 0; i < WORKS_A_CHUNK; i++)
			air_work_put(w, &chunk->work[i]);
		work = w->free_work;
	}
	w->free_work = work->next_out;
	return work;
}

void air_work_put(struct air_worker *w, struct air_work *work)
{
	work->next_out = w->free_work;
	w->free_work = work;
}

bool air_may_start(const struct air_wchannel *ch, uint8_t flags,
		   uint32_t executor)
{
	if (!ch->outstanding)
		return true;
	if (flags & AIRUNNER_SQE_BARRIER)
		return false;
	if (flags & AIRUNNER_SQE_UNORDERED)
		return true;
	return ch->outstanding == ch->out_ex[executor];
}

bool air_work_start(struct air_work *work)
{
	struct air_wchannel *ch = work->ch;
	struct air_worker *w = ch->w;
	struct air_wexec *x = &w->exec[work->executor];
	air_status st;

	/* Linked first: an executor may report from within its run(). */
	work->next_out = NULL;
	work->prev_out = ch->out_last;
	if (ch->out_last)
		ch->out_last->next_out = work;
	else
		ch->out_first = work;
	ch->out_last = work;
	ch->outstanding++;
	ch->out_ex[work->executor]++;
	w->used |= 1U << work->executor;

	work->end = work->start;
	st = x->ops->run(x->ex, work);
	if (st == AIR_PENDING)
		return true;
	if (st == AIR_BUSY) {
		ch->out_last = work->prev_out;
		if (ch->out_last)
			ch->out_last->next_out = NULL;
		else
			ch->out_first = NULL;
		ch->outstanding--;
		ch->out_ex[work->executor]--;
		air_work_put(w, work);
		return false;
	}
	if (work->end > w->now)
		w->now = work->end;
	air_work_done(work, st, 0);
	return true;
}

/* On an executor that has finished when run() returns: the short way. */
static void run_now(struct air_wchannel *ch, struct air_wexec *x,
		    struct air_work *work)
{
	struct air_worker *w = ch->w;
	air_status st;

	st = x->ops->run(x->ex, work);
	w->now = work->end;
	air_answer(ch, work->index, st, 0, work->start, work->end);
}

static bool run_later(struct air_wchannel *ch, struct air_wdesc *wd,
		      const struct air_work *bound)
{
	struct air_work *work = air_work_get(ch->w);

	if (!work) {
		air_answer(ch, bound->index, AIR_NO_MEMORY, 0, bound->start,
			   bound->start);
		return true;
	}
	*work = *bound;
	work->executor = wd->executor;
	return air_work_start(work);
}

static bool exec(struct air_wchannel *ch, uint64_t index,
		 const struct air_sqe *sqe, uint64_t deadline)
{
	struct air_worker *w = ch->w;
	struct air_work *work = &w->sync_work;
	uint64_t head = sqe->word[0];
	struct air_wdesc *wd;
	struct air_wexec *x;
	uint32_t operand;
	air_status st;

	wd = air_table_get(&ch->descs, airunner_sqe_id(head));
	if (air_unlikely(!wd)) {
		air_answer(ch, index, AIR_BAD_ID, 0, w->now, w->now);
		return true;
	}
	if (air_unlikely(ch->outstanding) &&
	    !air_may_start(ch, airunner_sqe_flags(head), wd->executor))
		return false;
	x = &w->exec[wd->executor];
	/* Who drains the ring elsewhere does not know what is to be skipped. */
	if (air_unlikely(x->ops->ring_attach != NULL) && !ch->skip &&
	    index != ch->no_lend &&
	    (!x->ops->ring_wanted || x->ops->ring_wanted(x->ex))) {
		if (ch->outstanding)
			return false;
		if (air_wchannel_lend(ch, wd->executor, index))
			return true;
	}
	ch->bind_executor = wd->executor;
	st = air_plan_bind(&wd->plan, sqe->word, air_buffer_find, ch,
			   work->addr, &operand);
	if (air_unlikely(st)) {
		air_answer(ch, index, st, operand, w->now, w->now);
		return true;
	}
	work->ch = ch;
	work->ch_priv = ch->ex_priv[wd->executor];
	work->index = index;
	work->plan = &wd->plan;
	work->plan_priv = wd->priv;
	work->launch = NULL;
	work->flags = airunner_sqe_flags(head);
	work->start = w->now;
	work->deadline = deadline;
	if (air_unlikely(w->async & (1U << wd->executor)))
		return run_later(ch, wd, work);
	run_now(ch, x, work);
	return true;
}

bool air_words_zero(struct air_wchannel *ch, uint64_t index,
		    const struct air_sqe *sqe, unsigned int from,
		    unsigned int to)
{
	for (unsigned int i = from; i <= to; i++) {
		if (sqe->word[i]) {
			air_answer(ch, index, AIR_BAD_RESERVED, i, ch->w->now,
				   ch->w->now);
			return false;
		}
	}
	return true;
}

/* In order, it ends when everything before it has: a fence, in effect. */
static void nop(struct air_wchannel *ch, uint64_t index,
		const struct air_sqe *sqe)
{
	uint64_t now = ch->w->now;
	struct air_late *late;

	if (airunner_sqe_id(sqe->word[0])) {
		air_answer(ch, index, AIR_BAD_ID, 0, now, now);
		return;
	}
	if (!air_words_zero(ch, index, sqe, 1, 7))
		return;
	if (!ch->outstanding ||
	    (airunner_sqe_flags(sqe->word[0]) & AIRUNNER_SQE_UNORDERED)) {
		air_answer(ch, index, AIR_OK, 0, now, now);
		return;
	}
	late = calloc(1, sizeof(*late));
	if (!late) {
		air_answer(ch, index, AIR_NO_MEMORY, 0, now, now);
		return;
	}
	late->kind = AIR_LATE_ANSWER;
	late->answer = true;
	late->index = index;
	late->start = now;
	air_late_add(ch, late);
}

/* What may wait for all streams of a device: not while one waits. */
static bool control(struct air_wchannel *ch, uint64_t index,
		    const struct air_sqe *sqe,
		    void (*carry_out)(struct air_wchannel *ch, uint64_t index,
				      const struct air_sqe *sqe))
{
	if (!air_block_begin(ch->w))
		return false;
	carry_out(ch, index, sqe);
	air_block_end(ch->w);
	return true;
}

bool air_dispatch(struct air_wchannel *ch, uint64_t index,
		  const struct air_sqe *sqe, uint64_t deadline)
{
	uint64_t head = sqe->word[0];
	uint64_t now = ch->w->now;

	if (air_unlikely(airunner_sqe_opcode(head) == AIRUNNER_OP_CANCELED)) {
		air_answer(ch, index, AIR_CANCELED, 0, now, now);
		return true;
	}
	if (air_unlikely(airunner_sqe_flags(head) & ~AIRUNNER_SQE_FLAGS)) {
		air_answer(ch, index, AIR_BAD_FLAGS, 0, now, now);
		return true;
	}
	if (air_likely(airunner_sqe_opcode(head) == AIRUNNER_OP_EXEC))
		return exec(ch, index, sqe, deadline);
	if ((airunner_sqe_flags(head) & AIRUNNER_SQE_BARRIER) &&
	    ch->outstanding)
		return false;
	switch (airunner_sqe_opcode(head)) {
	case AIRUNNER_OP_NOP:
		nop(ch, index, sqe);
		return true;
	case AIRUNNER_OP_DESC_CREATE:
	case AIRUNNER_OP_BUFFER_ALLOC:
		return control(ch, index, sqe, air_control);
	case AIRUNNER_OP_MODULE_LOAD:
	case AIRUNNER_OP_FUNCTION_GET:
		return control(ch, index, sqe, air_launch_control);
	case AIRUNNER_OP_DESC_DESTROY:
	case AIRUNNER_OP_BUFFER_RELEASE:
		air_control(ch, index, sqe);
		return true;
	case AIRUNNER_OP_MODULE_UNLOAD:
		air_launch_control(ch, index, sqe);
		return true;
	case AIRUNNER_OP_LAUNCH:
		return air_launch_begin(ch, index, sqe, deadline);
	default:
		air_answer(ch, index, AIR_BAD_OPCODE, 0, now, now);
		return true;
	}
}
