// SPDX-License-Identifier: MIT
/*
 * A channel's life: it is added, served, goes to rest, is woken, dies of
 * what its client did to it, and is removed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/worker/internal.h"

static bool in_turns(const struct air_wchannel *ch)
{
	return ch->ops->turn_over != NULL;
}

/* The place of @index among the 256 laps that a ring can tell apart. */
static uint64_t in_laps(const struct air_wchannel *ch, uint64_t index)
{
	return index & ((256ull << ch->ring.order) - 1);
}

/*
 * Answer what may be waiting: everything that has room in the ring. cq_head is
 * the client's word for how much that is, clamped; a lie spoils its own
 * completions.
 */
static void answer_all(struct air_wchannel *ch, air_status status)
{
	uint64_t entries = 1ull << ch->ring.order;
	uint64_t head = air_load(&ch->ring.ctrl->cq_head, ACQUIRE);
	uint64_t room = in_laps(ch, head + entries - ch->next);
	uint64_t now = air_now();

	if (room > entries)
		room = entries;
	for (; room--; ch->next++)
		if (!air_ring_answered(&ch->ring, ch->next))
			air_answer(ch, ch->next, status, 0, now, now);
}

/* ------------------------------------------------------------- activity */

void air_wchannel_activate(struct air_wchannel *ch)
{
	if (ch->state == AIR_CH_DEAD && !ch->removing)
		answer_all(ch, AIR_CHANNEL_DEAD);
	if (ch->state != AIR_CH_IDLE)
		return;
	/* Without a turn only what is left to finish may go on. */
	if (in_turns(ch) && !ch->turn_end && !ch->removing)
		return;
	ch->state = AIR_CH_ACTIVE;
	ch->w->activated = true;
	ch->idle_since = 0;
	/* One that ends stays armed: whoever submits is to learn of the end. */
	if (!ch->removing)
		air_ring_disarm_consumer(&ch->ring);
	air_list_remove(&ch->on);
	air_list_append(&ch->w->active, &ch->on);
}

static void go_idle(struct air_wchannel *ch)
{
	ch->state = AIR_CH_IDLE;
	air_list_remove(&ch->on);
}

/*
 * Order this thread against producers that go without fences. Where that is
 * refused, doubt() finds what is missed, if later.
 */
static void order_producers(struct air_worker *w)
{
	if (!w->can_barrier || air_membarrier())
		return;
	w->can_barrier = false;
	air_log(AIR_LOG_WARNING,
		"membarrier is refused: now and then an idle channel is served "
		"%u us late",
		AIR_LOOK_AGAIN_NS / 1000);
}

/*
 * It sleeps now; but a producer that goes without fences may not have seen
 * that (libairunner/membarrier.h): look again after a while.
 */
static void doubt(struct air_wchannel *ch)
{
	if (!ch->asym_client)
		return;
	ch->armed_at = air_now();
	air_list_append(&ch->w->timed, &ch->on);
}

static void report(struct air_wchannel *ch, uint32_t flags)
{
	uint64_t device_ns = ch->device_ns, completed = ch->completed;

	ch->device_ns = 0;
	ch->completed = 0;
	ch->ops->turn_over(ch->owner, ch, flags, device_ns, completed);
}

void air_wchannel_ready(struct air_wchannel *ch, uint64_t quantum_ns,
			uint32_t priority)
{
	ch->priority = priority;
	if (quantum_ns > AIR_MAX_QUANTUM_NS)
		quantum_ns = AIR_MAX_QUANTUM_NS;
	ch->turn_left = (int64_t)quantum_ns;
	/* A turn is measured by what it uses, and by time if that is little. */
	ch->turn_end = air_now() + 8 * quantum_ns;
	air_wchannel_activate(ch);
	if (ch->state == AIR_CH_DEAD) {
		ch->turn_end = 0;
		report(ch, AIRUNNER_REPORT_IDLE);
	}
}

static bool is_outranked(const struct air_wchannel *ch)
{
	return ch->best_prio && air_load(ch->best_prio, RELAXED) < ch->priority;
}

/* Pass over what a former worker has answered out of order. */
static void skip_answered(struct air_wchannel *ch)
{
	while (ch->skip && air_ring_answered(&ch->ring, ch->next)) {
		ch->next++;
		ch->skip--;
	}
}

static bool has_work(struct air_wchannel *ch)
{
	struct air_sqe sqe;

	skip_answered(ch);
	return air_ring_fetch(&ch->ring, ch->next, &sqe);
}

/*
 * An empty slot's words carry the lap before, or, while a producer is at it,
 * some of them the next. Anything else was not written by the protocol.
 */
static bool makes_sense(const struct air_wchannel *ch)
{
	uint64_t at = air_ring_slot(&ch->ring, ch->next) * AIRUNNER_SQE_WORDS;
	const uint64_t *slot = ch->ring.sq + at;
	uint8_t lap = airunner_lap(ch->next, ch->ring.order);

	for (int i = 0; i < AIRUNNER_SQE_WORDS; i++) {
		uint8_t ahead =
			airunner_word_lap(air_load(&slot[i], RELAXED)) - lap;

		if (ahead != 0 && ahead != 0xff)
			return false;
	}
	return true;
}

/* Whether a turn must end although there is more to do. */
static bool turn_is_over(const struct air_wchannel *ch)
{
	return in_turns(ch) && !ch->removing && ch->turn_end &&
	       (ch->turn_left <= 0 || ch->w->now >= ch->turn_end ||
		is_outranked(ch));
}

bool air_wchannel_may_rest(const struct air_wchannel *ch)
{
	const struct air_worker *w = ch->w;

	if (ch->holding || ch->removing || !ch->idle_since)
		return false;
	return turn_is_over(ch) || w->now - ch->idle_since >= w->config.spin_ns;
}

/* Look once more after NEED_WAKEUP was set; go to rest if nothing came. */
static void rest(struct air_wchannel *ch)
{
	if (has_work(ch)) {
		air_ring_disarm_consumer(&ch->ring);
		ch->idle_since = 0;
		return;
	}
	if (!makes_sense(ch)) {
		air_wchannel_die(ch, "its submission ring was scribbled over");
		return;
	}
	go_idle(ch);
	doubt(ch);
	if (in_turns(ch)) {
		ch->turn_end = 0;
		report(ch, AIRUNNER_REPORT_IDLE);
	}
}

void air_wchannels_rest(struct air_worker *w)
{
	struct air_list *pos, *n, resting;
	bool need_barrier = false;

	air_list_init(&resting);
	air_list_each(pos, n, &w->active) {
		struct air_wchannel *ch =
			air_list_entry(pos, struct air_wchannel, on);

		if (!air_wchannel_may_rest(ch))
			continue;
		air_list_remove(pos);
		air_list_append(&resting, pos);
		air_ring_arm_consumer(&ch->ring);
		need_barrier |= ch->asym_client;
	}
	if (air_list_empty(&resting))
		return;
	/* One for all of them. */
	if (need_barrier)
		order_producers(w);
	air_list_each(pos, n, &resting) {
		air_list_remove(pos);
		air_list_append(&w->active, pos);
		rest(air_list_entry(pos, struct air_wchannel, on));
	}
}

/* Something came, and nobody rang for it. */
static void wake_unasked(struct air_wchannel *ch)
{
	if (in_turns(ch) && ch->state == AIR_CH_IDLE && !ch->removing)
		report(ch, AIRUNNER_REPORT_MORE);
	else
		air_wchannel_activate(ch);
}

void air_wchannels_timed(struct air_worker *w)
{
	struct air_list *pos, *n;

	/* In the order in which they were armed. */
	air_list_each(pos, n, &w->timed) {
		struct air_wchannel *ch =
			air_list_entry(pos, struct air_wchannel, on);

		if (w->now < ch->armed_at + AIR_LOOK_AGAIN_NS)
			break;
		air_list_remove(pos);
		if (has_work(ch))
			wake_unasked(ch);
	}
}

uint64_t air_wchannels_timed_next(const struct air_worker *w)
{
	const struct air_wchannel *first =
		air_list_entry(w->timed.next, const struct air_wchannel, on);

	return first->armed_at + AIR_LOOK_AGAIN_NS;
}

/* End a turn that has used its time up. */
static void end_turn(struct air_wchannel *ch)
{
	if (!ch->holding && !has_work(ch) && ch->state != AIR_CH_LENT)
		return; /* nothing there: it goes to rest in a moment */
	ch->turn_end = 0;
	go_idle(ch);
	report(ch, AIRUNNER_REPORT_MORE);
}

/* -------------------------------------------------------------- serving */

void air_charge(struct air_wchannel *ch, uint64_t device_ns)
{
	ch->device_ns += device_ns;
	if (!in_turns(ch))
		return;
	if (device_ns > AIR_MAX_QUANTUM_NS)
		device_ns = AIR_MAX_QUANTUM_NS;
	ch->turn_left -= (int64_t)device_ns;
}

static bool try_held(struct air_wchannel *ch)
{
	uint64_t now = ch->w->now;

	if (ch->held_deadline && now >= ch->held_deadline) {
		ch->holding = false;
		air_answer(ch, ch->held_index, AIR_TIMEOUT, 0, now, now);
		return true;
	}
	ch->holding = false;
	if (air_dispatch(ch, ch->held_index, &ch->held, ch->held_deadline))
		return true;
	ch->holding = true;
	return false;
}

static bool take_one(struct air_wchannel *ch)
{
	struct air_sqe sqe;
	uint64_t index, deadline = 0;
	uint32_t timeout_ms;

	if (air_unlikely(ch->removing)) {
		if (ch->mute || !ch->drain_left)
			return false;
	}
	if (air_unlikely(ch->skip))
		skip_answered(ch);
	if (!air_ring_fetch(&ch->ring, ch->next, &sqe))
		return false;
	if (air_unlikely(ch->skip))
		ch->skip--;
	index = ch->next++;
	ch->drain_left--;
	timeout_ms = airunner_sqe_timeout_ms(sqe.word[0]);
	if (air_unlikely(timeout_ms != 0))
		deadline = ch->w->now + timeout_ms * 1000000ull;
	if (air_unlikely(!air_dispatch(ch, index, &sqe, deadline))) {
		ch->held = sqe;
		ch->held_index = index;
		ch->held_deadline = deadline;
		ch->holding = true;
	}
	return true;
}

bool air_wchannel_serve(struct air_wchannel *ch)
{
	struct air_worker *w = ch->w;
	uint64_t start = w->now, end = start + AIR_SLICE_NS;
	uint64_t left = ch->turn_left > 0 ? (uint64_t)ch->turn_left : 0;
	unsigned int n = 0;

	if (air_unlikely(air_load(&ch->killed, RELAXED))) {
		air_wchannel_die(ch, air_load(&ch->killed, RELAXED));
		return true;
	}
	if (left < AIR_SLICE_NS)
		end = start + left;
	while (n < AIR_SLICE_OPS) {
		if (!(air_unlikely(ch->holding) ? try_held(ch) : take_one(ch)))
			break;
		n++;
		if (w->now >= end || ch->state != AIR_CH_ACTIVE ||
		    is_outranked(ch))
			break;
	}
	if (n) {
		/*
		 * Operators that ran here have moved the clock to the end of
		 * the last: what is charged is what the completions say, and
		 * not the reading of the clock, once a slice, on top.
		 */
		if (w->now == start)
			w->now = air_now();
		air_charge(ch, w->now - start);
		ch->idle_since = 0;
	} else if (!ch->idle_since) {
		ch->idle_since = w->now;
	}
	if (ch->state == AIR_CH_ACTIVE && turn_is_over(ch))
		end_turn(ch);
	return n;
}

/* ------------------------------------------------- rings that are lent out */

bool air_wchannel_lend(struct air_wchannel *ch, uint32_t executor,
		       uint64_t index)
{
	struct air_wexec *x = &ch->w->exec[executor];

	if (ch->removing ||
	    x->ops->ring_attach(x->ex, ch->ex_priv[executor], &ch->ring, index))
		return false;
	ch->state = AIR_CH_LENT;
	ch->lent_to = executor;
	ch->recalled = false;
	ch->no_lend = index;
	ch->next = index;
	ch->watch_index = index;
	air_list_remove(&ch->on);
	air_list_append(&ch->w->lent, &ch->on);
	return true;
}

static void recall(struct air_wchannel *ch)
{
	struct air_wexec *x = &ch->w->exec[ch->lent_to];

	if (ch->recalled)
		return;
	ch->recalled = true;
	x->ops->ring_recall(x->ex, ch->ex_priv[ch->lent_to]);
}

void air_wchannel_returned(struct air_wchannel *ch,
			   const struct air_ring_return *ret)
{
	/* One that comes back untouched is not lent for that index again. */
	if (ret->index != ch->next)
		ch->no_lend = ret->index - 1;
	ch->next = ret->index;
	ch->completed += ret->completed;
	air_charge(ch, ret->device_ns);
	ch->state = AIR_CH_IDLE;
	air_list_remove(&ch->on);
	/* What was completed last has not been looked at. */
	air_touch(ch);
	if (ch->late_first)
		air_late_run(ch);
	air_wchannel_activate(ch);
	/* It has been idle over there: it need not be watched here as long. */
	if (ret->idle && ch->w->now > ch->w->config.spin_ns)
		ch->idle_since = ch->w->now - ch->w->config.spin_ns;
}

/*
 * Completions of lent rings are written by a device that wakes nobody: do it
 * for it, and end the turns of those that had theirs.
 */
void air_wchannels_watch(struct air_worker *w)
{
	struct air_list *pos, *n;

	air_list_each(pos, n, &w->lent) {
		struct air_wchannel *ch =
			air_list_entry(pos, struct air_wchannel, on);
		uint64_t seen = ch->watch_index;

		while (air_ring_answered(&ch->ring, ch->watch_index))
			ch->watch_index++;
		if (ch->watch_index != seen)
			air_touch(ch);
		else if (air_unlikely(ch->handover != NULL))
			air_handover_pass(ch);
		if (ch->removing || ch->late_first || turn_is_over(ch) ||
		    air_load(&ch->killed, RELAXED))
			recall(ch);
	}
}

void air_wchannel_watch(struct air_wchannel *ch)
{
	/* Lent rings are watched all the time: it is enough to look once. */
	air_touch(ch);
}

/* ---------------------------------------------------------------- adding */

air_status air_wchannel_use(struct air_wchannel *ch, uint32_t executor,
			    struct air_error *e)
{
	struct air_wexec *x = &ch->w->exec[executor];
	air_status st = AIR_OK;

	if (ch->opened & (1U << executor))
		return AIR_OK;
	if (x->ops->channel_open)
		st = x->ops->channel_open(x->ex, ch, &ch->ex_priv[executor]);
	if (st)
		return air_fail(e, st, "%s does not take the channel: %s",
				x->ops->name, air_status_string(st));
	ch->opened |= 1U << executor;
	air_buffers_map(ch, executor);
	return AIR_OK;
}

static void answer_died(void *arg, uint64_t index)
{
	struct air_wchannel *ch = arg;
	uint64_t now = air_now();

	air_answer(ch, index, AIR_WORKER_DIED, 0, now, now);
}

/*
 * Find out where the ring stands. Before any worker has served it everything
 * in it is to be run; afterwards what is unanswered was lost with that worker.
 */
static air_status take_over(struct air_wchannel *ch, struct air_error *e)
{
	struct airunner_ctrl *ctrl = ch->ring.ctrl;
	int64_t next = 0;

	if (air_load(&ctrl->sq_epoch, ACQUIRE)) {
		next = air_ring_recover(&ch->ring, answer_died, ch);
		ch->skip = 1ull << ch->ring.order;
	}
	if (next < 0)
		return air_fail(e, AIR_CHANNEL_DEAD,
				"channel of %s: its rings' laps make no sense",
				air_wchannel_label(ch));
	ch->next = (uint64_t)next;
	ch->no_lend = ch->next - 1;
	__atomic_fetch_add(&ctrl->sq_epoch, 1, __ATOMIC_RELEASE);
	__atomic_fetch_or(&ctrl->sq_flags, AIRUNNER_SQ_NEED_WAKEUP,
			  __ATOMIC_SEQ_CST);
	if (ch->w->asym)
		__atomic_fetch_or(&ctrl->sq_flags, AIRUNNER_SQ_ASYM,
				  __ATOMIC_SEQ_CST);
	else
		__atomic_fetch_and(&ctrl->sq_flags, ~AIRUNNER_SQ_ASYM,
				   __ATOMIC_SEQ_CST);
	/* Who died may have answered somebody and not come to wake him. */
	air_touch(ch);
	return AIR_OK;
}

static air_status check(const struct air_wchannel_config *c,
			struct air_error *e)
{
	if (c->order < AIRUNNER_MIN_ORDER || c->order > AIRUNNER_MAX_ORDER)
		return air_fail(e, AIR_BAD_ARGUMENT,
				"ring order is %u; expected %u to %u", c->order,
				AIRUNNER_MIN_ORDER, AIRUNNER_MAX_ORDER);
	if (!c->region || (uintptr_t)c->region & 63)
		return air_fail(e, AIR_BAD_ARGUMENT,
				"region at %p; expected a page boundary",
				c->region);
	if (c->size < airunner_arena_offset(c->order) ||
	    c->size > AIRUNNER_OFFSET_MASK)
		return air_fail(
			e, AIR_BAD_ARGUMENT,
			"region of %llu bytes; order %u needs %llu",
			(unsigned long long)c->size, c->order,
			(unsigned long long)airunner_arena_offset(c->order));
	if (!c->ops || !c->ops->removed || c->executor >= AIR_EXECUTORS)
		return air_fail(e, AIR_BAD_ARGUMENT,
				"channel's ops or executor %u", c->executor);
	return AIR_OK;
}

static air_status add(struct air_worker *w, const struct air_wchannel_config *c,
		      struct air_wchannel **out, struct air_error *e)
{
	struct air_wbuffer_config whole = {
		.host = c->region,
		.size = c->size,
		.memory = AIR_HOST,
	};
	struct air_wchannel *ch;
	air_status st = check(c, e);

	if (st)
		return st;
	if (w->quiesced)
		return air_fail(e, AIR_BUSY, "the worker is stopping");
	ch = calloc(1, sizeof(*ch));
	if (!ch)
		return air_fail(e, AIR_NO_MEMORY, "channel: no memory");
	ch->w = w;
	ch->ops = c->ops;
	ch->owner = c->owner;
	ch->region = c->region;
	ch->size = c->size;
	ch->wants = c->executor;
	ch->priority = c->priority;
	ch->best_prio = c->best_prio;
	ch->drain_left = UINT64_MAX;
	ch->turn_end = in_turns(ch) ? 0 : UINT64_MAX;
	ch->turn_left = INT64_MAX;
	ch->state = AIR_CH_IDLE;
	air_list_init(&ch->on);
	snprintf(ch->label, sizeof(ch->label), "%s", c->label ? c->label : "");
	air_ring_init(&ch->ring, c->region, c->order);
	ch->asym_client = air_load(&ch->ring.ctrl->client_flags, ACQUIRE) &
			  AIRUNNER_CLIENT_ASYM;
	st = air_buffer_add(ch, AIRUNNER_HANDLE_REGION, &whole);
	if (st) {
		st = air_fail(e, st, "channel: no memory");
		goto fail;
	}
	st = take_over(ch, e);
	air_wake_touched(w);
	if (st)
		goto fail;
	air_list_append(&w->all, &ch->on_all);
	air_wchannel_activate(ch);
	if (ch->state == AIR_CH_IDLE)
		doubt(ch);
	*out = ch;
	return AIR_OK;
fail:
	if (air_table_get(&ch->bufs, AIRUNNER_HANDLE_REGION))
		air_wbuf_free(ch, AIRUNNER_HANDLE_REGION, ch->bufs.slot[0]);
	air_table_free(&ch->bufs);
	free(ch);
	return st;
}

/* ------------------------------------------------------ death and removal */

void air_wchannel_die(struct air_wchannel *ch, const char *sentence)
{
	if (ch->state == AIR_CH_DEAD)
		return;
	air_log(AIR_LOG_WARNING, "channel of %s is dead: %s",
		air_wchannel_label(ch), sentence);
	air_list_remove(&ch->on);
	ch->state = AIR_CH_DEAD;
	if (ch->holding) {
		ch->holding = false;
		air_answer(ch, ch->held_index, AIR_CHANNEL_DEAD, 0, ch->w->now,
			   ch->w->now);
	}
	/*
	 * Nobody looks at its ring from here on: whoever submits what the
	 * answers below do not reach must ring. It stays armed.
	 */
	air_ring_arm_consumer(&ch->ring);
	if (ch->asym_client)
		order_producers(ch->w);
	answer_all(ch, AIR_CHANNEL_DEAD);
	doubt(ch);
	air_store(&ch->killed, sentence, RELAXED);
	if (in_turns(ch) && ch->turn_end) {
		ch->turn_end = 0;
		report(ch, AIRUNNER_REPORT_IDLE);
	}
	if (ch->ops->dead)
		ch->ops->dead(ch->owner, ch, sentence);
}

void air_wchannel_kill(struct air_wchannel *ch, const char *sentence)
{
	const char *none = NULL;

	__atomic_compare_exchange_n(&ch->killed, &none, sentence, false,
				    __ATOMIC_RELEASE, __ATOMIC_RELAXED);
	/* It may be on its way to rest, and is to be looked at all the same. */
	air_mailbox_ring(&ch->w->box, ch);
}

static void forget_all(struct air_wchannel *ch)
{
	struct air_late *late;

	while ((late = ch->late_first)) {
		ch->late_first = late->next;
		if (late->kind == AIR_LATE_DESC)
			air_wdesc_free(ch, late->object);
		else if (late->kind == AIR_LATE_BUFFER)
			air_wbuf_free(ch, late->id, late->object);
		else if (late->kind == AIR_LATE_MODULE)
			air_wmodule_free(ch, late->object);
		free(late);
	}
	for (uint32_t i = 0; i < ch->descs.size; i++)
		if (ch->descs.slot[i])
			air_wdesc_free(ch, ch->descs.slot[i]);
	for (uint32_t i = 0; i < ch->functions.size; i++)
		free(ch->functions.slot[i]);
	for (uint32_t i = 0; i < ch->modules.size; i++)
		if (ch->modules.slot[i])
			air_wmodule_free(ch, ch->modules.slot[i]);
	for (uint32_t i = 0; i < ch->bufs.size; i++)
		if (ch->bufs.slot[i])
			air_wbuf_free(ch, i, ch->bufs.slot[i]);
	for (uint32_t id = 1; ch->opened >> id; id++) {
		struct air_wexec *x = &ch->w->exec[id];

		if ((ch->opened & (1U << id)) && x->ops &&
		    x->ops->channel_close)
			x->ops->channel_close(x->ex, ch->ex_priv[id]);
	}
}

/* Nothing refers to the channel any more: the end of it. */
static void finish(struct air_wchannel *ch)
{
	void (*removed)(void *owner) = ch->ops->removed;
	struct air_worker *w = ch->w;
	void *owner = ch->owner;

	air_handover_end(ch);
	forget_all(ch);
	air_wake_touched(w);
	/*
	 * Whoever submits from now on rings, and learns who is there; or looks
	 * for the answer in vain, and then learns it.
	 */
	air_ring_arm_consumer(&ch->ring);
	/* A bell may have come before the removal did. */
	if (air_load(&ch->rung, ACQUIRE))
		air_mailbox_take_rung(w);
	air_list_remove(&ch->on);
	air_list_remove(&ch->on_all);
	w->n_removing -= ch->removing;
	air_table_free(&ch->descs);
	air_table_free(&ch->bufs);
	air_table_free(&ch->modules);
	air_table_free(&ch->functions);
	free(ch);
	removed(owner);
}

bool air_wchannel_try_finish(struct air_wchannel *ch)
{
	bool drained = ch->mute || ch->state == AIR_CH_DEAD ||
		       !ch->drain_left || !has_work(ch);
	struct air_worker *w = ch->w;

	if (!ch->removing || ch->holding || ch->outstanding ||
	    ch->state == AIR_CH_LENT || !drained)
		return false;
	/* Nothing more will complete; others' streams may go on waiting. */
	air_handover_end(ch);
	if (!air_block_begin(w))
		return false;
	finish(ch);
	air_block_end(w);
	return true;
}

void air_wchannel_abandon(struct air_wchannel *ch)
{
	uint64_t now = air_now();

	for (struct air_work *work = ch->out_first; work; work = work->next_out)
		air_answer(ch, work->index, AIR_WORKER_DIED, 0, now, now);
	for (struct air_late *late = ch->late_first; late; late = late->next)
		if (late->answer)
			air_answer(ch, late->index, AIR_WORKER_DIED, 0, now,
				   now);
	if (ch->holding)
		air_answer(ch, ch->held_index, AIR_WORKER_DIED, 0, now, now);
	/* Executors are gone: whoever had the ring will not answer. */
	answer_all(ch, AIR_WORKER_DIED);
	ch->mute = true;
	finish(ch);
}

static void begin_removal(struct air_wchannel *ch, enum air_remove how)
{
	if (how == AIR_REMOVE_DROP) {
		ch->mute = true;
		ch->holding = false;
	}
	if (!ch->removing) {
		ch->removing = true;
		ch->drain_left = 1ull << ch->ring.order;
		ch->w->n_removing++;
		air_wchannel_activate(ch);
	}
}

/* ------------------------------------------- what other threads may call */

struct add_call {
	struct air_worker *w;
	const struct air_wchannel_config *config;
	struct air_wchannel **out;
	struct air_error *e;
};

static air_status add_here(void *arg)
{
	struct add_call *c = arg;

	return add(c->w, c->config, c->out, c->e);
}

air_status air_worker_add_channel(struct air_worker *w,
				  const struct air_wchannel_config *config,
				  struct air_wchannel **out,
				  struct air_error *e)
{
	struct add_call c = { w, config, out, e };
	air_status st;

	air_fail(e, AIR_OK, "%s", "");
	st = air_worker_call(w, add_here, &c);
	if (st == AIR_BUSY && e && !e->text[0])
		air_fail(e, AIR_BUSY, "the worker is not running");
	return st;
}

struct remove_call {
	struct air_wchannel *ch;
	enum air_remove how;
};

static air_status remove_here(void *arg)
{
	struct remove_call *c = arg;

	begin_removal(c->ch, c->how);
	return AIR_OK;
}

void air_worker_remove_channel(struct air_wchannel *ch, enum air_remove how)
{
	struct remove_call c = { ch, how };

	/* A worker that has stopped has removed it already. */
	air_worker_call(ch->w, remove_here, &c);
}

void air_worker_doorbell(struct air_wchannel *ch)
{
	air_mailbox_ring(&ch->w->box, ch);
}

struct buffer_call {
	struct air_wchannel *ch;
	uint32_t handle;
	const struct air_wbuffer_config *config;
};

static air_status add_buffer_here(void *arg)
{
	struct buffer_call *c = arg;
	air_status st = AIR_PENDING;

	if (air_block_begin(c->ch->w)) {
		st = air_buffer_add(c->ch, c->handle, c->config);
		air_block_end(c->ch->w);
	}
	return st;
}

air_status air_worker_add_buffer(struct air_wchannel *ch, uint32_t handle,
				 const struct air_wbuffer_config *config,
				 struct air_error *e)
{
	struct buffer_call c = { ch, handle, config };
	air_status st;

	if (!handle)
		return air_fail(e, AIR_BAD_HANDLE,
				"buffer handle 0 is the channel's region");
	st = air_call_patiently(ch->w, add_buffer_here, &c);
	if (st == AIR_BAD_HANDLE)
		air_fail(e, st, "buffer handle %u is taken or out of range",
			 handle);
	else if (st)
		air_fail(e, st, "buffer %u of %llu bytes: %s", handle,
			 (unsigned long long)config->size,
			 air_status_string(st));
	return st;
}

static air_status drop_buffer_here(void *arg)
{
	struct buffer_call *c = arg;

	return air_buffer_drop(c->ch, c->handle);
}

air_status air_worker_drop_buffer(struct air_wchannel *ch, uint32_t handle)
{
	struct buffer_call c = { ch, handle, NULL };

	return air_worker_call(ch->w, drop_buffer_here, &c);
}
