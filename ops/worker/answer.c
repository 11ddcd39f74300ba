// SPDX-License-Identifier: MIT
/*
 * Completions: the one place that writes them, and what has to wait for
 * earlier work before it may be answered.
 */
#include <stdlib.h>

#include "ops/worker/internal.h"

void air_touch(struct air_wchannel *ch)
{
	if (ch->touched)
		return;
	ch->touched = true;
	ch->next_touched = ch->w->touched;
	ch->w->touched = ch;
}

void air_answer(struct air_wchannel *ch, uint64_t index, air_status status,
		uint32_t detail, uint64_t start, uint64_t end)
{
	struct air_cqe cqe = {
		.status = (enum airunner_status)status,
		.detail = (uint16_t)detail,
		.start = start,
		.duration = end - start,
	};

	if (air_unlikely(ch->mute))
		return;
	/* Whatever came of it was computed on memory that is gone. */
	if (air_unlikely(air_load(&ch->killed, RELAXED))) {
		cqe.status = AIRUNNER_S_CHANNEL_DEAD;
		cqe.detail = 0;
	}
	air_ring_complete(&ch->ring, index, &cqe);
	ch->completed++;
	air_touch(ch);
}

void air_answer_now(struct air_wchannel *ch, uint64_t index, air_status status,
		    uint32_t detail)
{
	uint64_t start = ch->w->now;

	ch->w->now = air_now();
	air_answer(ch, index, status, detail, start, ch->w->now);
}

static void unlink_work(struct air_wchannel *ch, struct air_work *work)
{
	if (work->prev_out)
		work->prev_out->next_out = work->next_out;
	else
		ch->out_first = work->next_out;
	if (work->next_out)
		work->next_out->prev_out = work->prev_out;
	else
		ch->out_last = work->prev_out;
	ch->outstanding--;
	ch->out_ex[work->executor]--;
}

void air_work_done(struct air_work *work, air_status status, uint32_t detail)
{
	struct air_wchannel *ch = work->ch;
	uint64_t from = work->start > ch->last_end ? work->start : ch->last_end;

	unlink_work(ch, work);
	/* Work that overlaps is paid for once. */
	if (work->end > from) {
		air_charge(ch, work->end - from);
		ch->last_end = work->end;
	}
	air_answer(ch, work->index, status, detail, work->start, work->end);
	air_work_put(ch->w, work);
	if (ch->late_first)
		air_late_run(ch);
	if (ch->holding || ch->removing)
		air_wchannel_activate(ch);
}

static bool before(uint64_t a, uint64_t b)
{
	return (int64_t)(a - b) < 0;
}

static bool late_is_due(const struct air_wchannel *ch,
			const struct air_late *late)
{
	return ch->state != AIR_CH_LENT &&
	       (!ch->out_first || !before(ch->out_first->index, late->index));
}

static void late_do(struct air_wchannel *ch, struct air_late *late)
{
	uint64_t now;

	switch (late->kind) {
	case AIR_LATE_ANSWER:
		break;
	case AIR_LATE_DESC:
		air_wdesc_free(ch, late->object);
		break;
	case AIR_LATE_BUFFER:
		air_wbuf_free(ch, late->id, late->object);
		break;
	case AIR_LATE_MODULE:
		air_wmodule_free(ch, late->object);
		break;
	}
	if (!late->answer)
		return;
	now = late->kind == AIR_LATE_ANSWER ? late->start : air_now();
	air_answer(ch, late->index, AIR_OK, 0, late->start, now);
}

void air_late_run(struct air_wchannel *ch)
{
	struct air_late *late;

	while ((late = ch->late_first) && late_is_due(ch, late)) {
		bool blocks = late->kind == AIR_LATE_MODULE ||
			      late->kind == AIR_LATE_DESC;

		if (blocks && !air_block_begin(ch->w))
			return;
		ch->late_first = late->next;
		if (!ch->late_first)
			ch->late_last = NULL;
		late_do(ch, late);
		free(late);
		if (blocks)
			air_block_end(ch->w);
	}
}

void air_late_add(struct air_wchannel *ch, struct air_late *late)
{
	late->next = NULL;
	if (ch->late_last)
		ch->late_last->next = late;
	else
		ch->late_first = late;
	ch->late_last = late;
	air_late_run(ch);
}

void air_wchannel_wake_futex(struct air_wchannel *ch)
{
	uint32_t *bell = &ch->ring.ctrl->cq_bell;

	__atomic_fetch_add(bell, 1, __ATOMIC_SEQ_CST);
	air_futex_wake(bell, true);
}

static void wake(struct air_wchannel *ch)
{
	air_ring_disarm_waiters(&ch->ring);
	if (ch->ops->wake)
		ch->ops->wake(ch->owner, ch);
	else
		air_wchannel_wake_futex(ch);
}

void air_wake_touched(struct air_worker *w)
{
	struct air_wchannel *ch;

	while ((ch = w->touched)) {
		w->touched = ch->next_touched;
		ch->touched = false;
		if (air_unlikely(ch->handover != NULL))
			air_handover_pass(ch);
		if (air_ring_client_sleeps(&ch->ring, w->asym))
			wake(ch);
	}
}
