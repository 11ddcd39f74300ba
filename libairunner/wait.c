// SPDX-License-Identifier: MIT
/*
 * Completions: looking for them, waiting for them, delivering each once.
 */
#include <sched.h>
#include <stdio.h>
#include <time.h>

#include <airunner.h>

#include "libairunner/channel.h"
#include "libairunner/clock.h"
#include "libairunner/error.h"
#include "libairunner/membarrier.h"

/*
 * A worker that was woken on the waiter's own processor, the others being busy,
 * runs only when that lets go of it: poll undisturbed for no longer than a
 * round trip takes when the worker is at hand.
 */
#define YIELD_AFTER_NS 3000

/*
 * The library's own calls: how often to see whether anybody serves the
 * channel, and how long to bear that nobody does.
 */
#define SERVED_CHECK_NS 500000000
#define NO_WORKER_NS	5000000000u

/* After so many unsuccessful polls, see whether the worker still is there. */
#define POLLS_A_CHECK 1024

#define unlikely(x)   __builtin_expect(!!(x), 0)
#define inline_always inline __attribute__((always_inline))

/* --------------------------------------------------- looking, no waiting */

static struct air_slot *slot_of(struct air_channel *ch, uint64_t index)
{
	return &ch->slots[air_ring_slot(&ch->ring, index)];
}

static uint64_t meta_of(struct air_channel *ch, uint64_t index)
{
	return air_load(&slot_of(ch, index)->meta, RELAXED);
}

bool air_channel_taken(struct air_channel *ch, uint64_t index)
{
	uint64_t claimed = air_load(&slot_of(ch, index)->claimed, ACQUIRE);

	return (int64_t)(claimed - (index + 1)) >= 0;
}

bool air_channel_done(struct air_channel *ch, uint64_t index)
{
	struct air_cqe cqe;

	return air_ring_completed(&ch->ring, index, &cqe) ||
	       air_channel_taken(ch, index);
}

static inline bool claim(struct air_channel *ch, uint64_t index)
{
	uint64_t before = index + 1 - (UINT64_C(1) << ch->ring.order);

	if (ch->ring.single) {
		if (air_load(&slot_of(ch, index)->claimed, RELAXED) != before)
			return false;
		air_store(&slot_of(ch, index)->claimed, index + 1, RELAXED);
		return true;
	}
	return __atomic_compare_exchange_n(&slot_of(ch, index)->claimed,
					   &before, index + 1, false,
					   __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

bool air_channel_claim(struct air_channel *ch, uint64_t index)
{
	return claim(ch, index);
}

/*
 * The completion's 48 bits of start time, made whole: the latest such time
 * that is not after a moment from now. The coarse clock may be some
 * milliseconds behind the executor's; the second covers that.
 */
static uint64_t whole_start(const struct air_cqe *cqe)
{
	struct timespec ts;
	uint64_t limit;

	if (!cqe->start && !cqe->duration)
		return 0;
	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	limit = ((uint64_t)ts.tv_sec + 1) * 1000000000u + (uint64_t)ts.tv_nsec;
	return limit - ((limit - cqe->start) & AIRUNNER_START_MASK);
}

/*
 * A worker that was restarted knows none of the descriptors made before. If a
 * submission got through to it before the library saw the change, it says
 * BAD_ID for one that was good: what really happened is that the worker died.
 */
static void correct(struct air_channel *ch, uint64_t meta, struct air_cqe *cqe)
{
	if (cqe->status != AIRUNNER_S_BAD_ID)
		return;
	if (!(meta >> 32) ||
	    meta >> 32 == air_load(&ch->ring.ctrl->sq_epoch, ACQUIRE))
		return;
	cqe->status = AIRUNNER_S_WORKER_DIED;
	cqe->detail = 0;
}

/* By value: a completion whose address is known has to be in memory. */
static __attribute__((noinline)) struct air_cqe
explain(struct air_channel *ch, uint64_t index, struct air_cqe cqe)
{
	uint64_t meta = meta_of(ch, index);

	correct(ch, meta, &cqe);
	air_channel_explain(ch, index, meta, &cqe);
	return cqe;
}

static void fill_in(struct air_channel *ch, uint64_t index,
		    const struct air_cqe *cqe,
		    struct air_completion *completion)
{
	completion->token = index + 1;
	completion->user_data =
		air_load(&slot_of(ch, index)->user_data, RELAXED);
	completion->status = (air_status)cqe->status;
	completion->detail = cqe->detail & 0xf;
	completion->start = whole_start(cqe);
	completion->duration = cqe->duration;
}

/* The caller has claimed @index. Explain a failure. */
static inline_always air_status take(struct air_channel *ch, uint64_t index,
				     struct air_cqe *cqe,
				     struct air_completion *completion)
{
	if (unlikely(cqe->status != AIRUNNER_S_OK))
		*cqe = explain(ch, index, *cqe);
	if (completion)
		fill_in(ch, index, cqe, completion);
	return (air_status)cqe->status;
}

/* The same, and give the slot back. */
static inline_always air_status deliver(struct air_channel *ch, uint64_t index,
					struct air_cqe *cqe,
					struct air_completion *completion)
{
	air_status status = take(ch, index, cqe, completion);

	air_ring_collect(&ch->ring, ch->collected, index);
	return status;
}

/* Nobody asks for @index: collect it, and keep the user's first failure. */
static bool collect_detached(struct air_channel *ch, uint64_t index,
			     struct air_cqe *cqe, uint64_t meta)
{
	struct air_completion completion;

	if (!claim(ch, index))
		return false;
	if (cqe->status == AIRUNNER_S_OK || meta & AIR_SLOT_INTERNAL) {
		air_ring_collect(&ch->ring, ch->collected, index);
		return true;
	}
	deliver(ch, index, cqe, &completion);
	pthread_mutex_lock(&ch->error_lock);
	if (!ch->has_error) {
		snprintf(ch->error_text, sizeof(ch->error_text), "%s",
			 air_last_error());
		ch->error = completion;
		ch->has_error = true;
	}
	pthread_mutex_unlock(&ch->error_lock);
	return true;
}

bool air_channel_sweep(struct air_channel *ch, bool all)
{
	uint64_t end = air_load(&ch->detached_end, RELAXED);
	bool any = false;

	for (uint64_t i = air_channel_head(ch); i < end; i++) {
		struct air_cqe cqe;
		uint64_t meta;

		if (air_channel_taken(ch, i))
			continue;
		if (air_ring_completed(&ch->ring, i, &cqe)) {
			meta = meta_of(ch, i);
			if (meta & AIR_SLOT_DETACHED) {
				any |= collect_detached(ch, i, &cqe, meta);
				continue;
			}
		}
		if (!all)
			break;
	}
	return any;
}

/* --------------------------------------------------------------- waiting */

static inline_always bool look(struct air_channel *ch, uint64_t index,
			       struct air_cqe *cqe, air_status *status)
{
	*status = AIR_OK;
	if (air_ring_completed(&ch->ring, index, cqe))
		return true;
	if (air_channel_taken(ch, index)) {
		*status = AIR_BAD_TOKEN;
		return true;
	}
	return false;
}

static bool spin(struct air_channel *ch, uint64_t index, uint64_t deadline,
		 struct air_cqe *cqe, air_status *status)
{
	uint64_t until = ch->dev->spin_ns;
	uint64_t now, yield;

	if (look(ch, index, cqe, status))
		return true;
	if (!until)
		return false;
	now = air_now();
	yield = now + YIELD_AFTER_NS;
	until = until > UINT64_MAX - now ? UINT64_MAX : now + until;
	if (until > deadline)
		until = deadline;
	do {
		for (int i = 0; i < 32; i++) {
			if (look(ch, index, cqe, status))
				return true;
			air_relax();
		}
		/* Who spins for ever must still see the worker go. */
		if (until == UINT64_MAX && ch->ops->check &&
		    ch->ops->check(ch) != AIR_OK)
			return false;
		now = air_now();
		if (now > yield)
			sched_yield();
	} while (now < until);
	return false;
}

static air_status timed_out(struct air_channel *ch, uint64_t index)
{
	if (!ch->ops->served(ch))
		return air_error_set(
			AIR_NO_WORKER,
			"token %llu has not completed, and no worker serves "
			"the channel: is airunnerd running?",
			(unsigned long long)index + 1);
	return air_error_static(
		AIR_TIMEOUT, "not completed within the time-out of the wait");
}

air_status air_channel_ended(struct air_channel *ch)
{
	air_status status = air_load(&ch->cut, RELAXED);

	if (air_load(&ch->broken, RELAXED))
		return air_error_set(
			AIR_CHANNEL_DEAD,
			"no worker takes the channel: its rings make no sense, "
			"or there is no room for it");
	return air_error_set(status, "the channel has ended: %s",
			     air_status_string(status));
}

air_status air_channel_revive(struct air_channel *ch)
{
	air_status status = ch->ops->revive(ch->dev);

	if (status == AIR_OK && air_load(&ch->broken, RELAXED))
		status = air_channel_ended(ch);
	return status;
}

bool air_channel_revived(struct air_channel *ch, air_status *status)
{
	if (*status != AIR_WORKER_DIED || !ch->ops->revive)
		return false;
	*status = air_channel_revive(ch);
	return *status == AIR_OK;
}

/*
 * Until when a waiter may sleep before it looks again. It need not, where the
 * worker fences. Where it does not, the barrier may have passed it over
 * (libairunner/membarrier.h), or is not to be had here at all.
 */
struct doubt {
	uint64_t seq;	/* nobody has been woken since it was this, and */
	uint64_t until; /* by then the worker has seen that somebody sleeps */
};

static uint64_t arm(struct air_channel *ch, uint64_t seq, struct doubt *doubt)
{
	bool armed = air_ring_arm_waiter(&ch->ring);
	uint64_t now;

	if (!(air_load(&ch->ring.ctrl->sq_flags, RELAXED) & AIRUNNER_SQ_ASYM))
		return UINT64_MAX;
	now = air_now();
	if (!armed || !doubt->until || doubt->seq != seq) {
		doubt->seq = seq;
		doubt->until = now + AIR_LOOK_AGAIN_NS;
	}
	if (now >= doubt->until)
		return UINT64_MAX;
	air_membarrier();
	return doubt->until;
}

air_status air_channel_await(struct air_channel *ch, uint64_t index,
			     uint64_t deadline, struct air_cqe *cqe)
{
	struct doubt doubt = { 0 };
	bool dozed = false;
	air_status status;

	for (;;) {
		uint64_t seq, until;

		/* Nobody was woken: to poll for long again would be in vain. */
		if (dozed ? look(ch, index, cqe, &status) :
			    spin(ch, index, deadline, cqe, &status))
			return status;
		if (!air_remaining(deadline))
			return timed_out(ch, index);

		seq = ch->ops->sleep_begin(ch);
		until = arm(ch, seq, &doubt);
		if (look(ch, index, cqe, &status))
			return status;

		status = AIR_OK;
		if (air_load(&ch->ring.ctrl->sq_flags, RELAXED) &
		    AIRUNNER_SQ_WATCH)
			status = ch->ops->doorbell(ch, true);
		if (status == AIR_OK) {
			if (until > deadline)
				until = deadline;
			status = ch->ops->sleep(ch, seq, until);
		}
		if (status != AIR_OK) {
			air_channel_answer(ch);
			if (look(ch, index, cqe, &status))
				return status;
			if (!ch->ops->revive || air_load(&ch->broken, RELAXED))
				return air_channel_ended(ch);
		}
		dozed = ch->ops->sleep_begin(ch) == seq;
	}
}

/* ------------------------------------------------------------ public API */

static __attribute__((noinline)) air_status bad_token(air_token token)
{
	return air_error_set(AIR_BAD_TOKEN,
			     "token %llu is unknown or was collected already",
			     (unsigned long long)token);
}

static inline_always air_status token_index(struct air_channel *ch,
					    air_token token, uint64_t *index)
{
	*index = token - 1;
	if (unlikely(!ch))
		return air_error_static(AIR_BAD_ARGUMENT, "channel is NULL");
	if (unlikely(ch->fork_generation != air_fork_generation))
		return air_channel_usable(ch);
	if (!token || *index >= air_channel_tail(ch))
		return bad_token(token);
	return AIR_OK;
}

static air_status missed(struct air_channel *ch)
{
	uint32_t misses = air_load(&ch->misses, RELAXED) + 1;

	air_store(&ch->misses, misses, RELAXED);
	if (misses % POLLS_A_CHECK == 0 && ch->ops->check &&
	    ch->ops->check(ch) != AIR_OK) {
		air_channel_answer(ch);
		if (air_load(&ch->broken, RELAXED))
			return air_channel_ended(ch);
	}
	return AIR_PENDING;
}

air_status air_poll(air_channel *ch, air_token token,
		    struct air_completion *completion)
{
	struct air_cqe cqe;
	uint64_t index;
	air_status status = token_index(ch, token, &index);

	if (status != AIR_OK)
		return status;
	if (!look(ch, index, &cqe, &status))
		return missed(ch);
	if (status != AIR_OK || !claim(ch, index))
		return bad_token(token);
	return deliver(ch, index, &cqe, completion);
}

air_status air_wait(air_channel *ch, air_token token, int64_t timeout_ns,
		    struct air_completion *completion)
{
	struct air_cqe cqe;
	uint64_t index;
	air_status status = token_index(ch, token, &index);

	if (status != AIR_OK)
		return status;
	if (!look(ch, index, &cqe, &status))
		status = air_channel_await(ch, index, air_deadline(timeout_ns),
					   &cqe);
	if (status == AIR_BAD_TOKEN)
		return bad_token(token);
	if (status != AIR_OK)
		return status;
	if (!claim(ch, index))
		return bad_token(token);
	return deliver(ch, index, &cqe, completion);
}

/* @n tokens from @first on, of which there is one at least. */
static air_status token_range(struct air_channel *ch, air_token first,
			      uint32_t n, uint32_t *done, uint64_t *index)
{
	air_status status;

	if (!done)
		return air_error_static(AIR_BAD_ARGUMENT, "done is NULL");
	*done = 0;
	if (!n)
		return air_error_static(AIR_BAD_ARGUMENT,
					"0 completions to collect");
	status = token_index(ch, first, index);
	if (status == AIR_OK && n > air_channel_tail(ch) - *index)
		status = air_error_set(
			AIR_BAD_TOKEN,
			"%u tokens from %llu on: the last of them is unknown",
			n, (unsigned long long)first);
	return status;
}

/*
 * Collect from @index + *@done on, to @n: what is there, up to one that failed.
 * Their slots are given back together.
 */
static air_status collect_many(struct air_channel *ch, uint64_t index,
			       uint32_t n, struct air_completion *completions,
			       uint32_t *done)
{
	uint32_t i = *done;
	air_status status;
	struct air_cqe cqe;

	do {
		if (!look(ch, index + i, &cqe, &status)) {
			status = AIR_PENDING;
			break;
		}
		/* the library's own, between calls of two submits */
		if (status != AIR_OK ||
		    meta_of(ch, index + i) & AIR_SLOT_INTERNAL ||
		    !claim(ch, index + i)) {
			status = bad_token(index + i + 1);
			break;
		}
		status = take(ch, index + i, &cqe,
			      completions ? &completions[i] : NULL);
		air_ring_mark(&ch->ring, ch->collected, index + i);
		i++;
	} while (i < n && status == AIR_OK);
	if (i != *done)
		air_ring_advance(&ch->ring, ch->collected);
	*done = i;
	return status;
}

air_status air_poll_many(air_channel *ch, air_token first, uint32_t n,
			 struct air_completion *completions, uint32_t *done)
{
	uint64_t index;
	air_status status = token_range(ch, first, n, done, &index);

	if (status != AIR_OK)
		return status;
	status = collect_many(ch, index, n, completions, done);
	if (status == AIR_PENDING && !*done)
		status = missed(ch);
	return status;
}

air_status air_wait_many(air_channel *ch, air_token first, uint32_t n,
			 int64_t timeout_ns, struct air_completion *completions,
			 uint32_t *done)
{
	uint64_t index, deadline;
	air_status waited, status = token_range(ch, first, n, done, &index);
	struct air_cqe cqe;

	if (status != AIR_OK)
		return status;
	deadline = air_deadline(timeout_ns);
	status = collect_many(ch, index, n, completions, done);
	if (status != AIR_PENDING)
		return status;
	/*
	 * The last one first. Where they are in order all have completed with
	 * it, and nobody looks meanwhile at what the worker is writing.
	 */
	waited = air_channel_await(ch, index + n - 1, deadline, &cqe);
	for (;;) {
		status = collect_many(ch, index, n, completions, done);
		if (status != AIR_PENDING || waited == AIR_TIMEOUT)
			return status;
		if (waited != AIR_OK && waited != AIR_BAD_TOKEN)
			return waited;
		waited = air_channel_await(ch, index + *done, deadline, &cqe);
	}
}

air_status air_next(air_channel *ch, struct air_completion *completion)
{
	uint64_t tail, unordered;
	air_status status;

	if (!ch || !completion)
		return air_error_set(AIR_BAD_ARGUMENT, "air_next: %s is NULL",
				     ch ? "completion" : "channel");
	status = air_channel_usable(ch);
	if (status != AIR_OK)
		return status;
	tail = air_channel_tail(ch);
	unordered = air_load(&ch->unordered_end, RELAXED);
	for (uint64_t i = air_channel_head(ch); i < tail; i++) {
		struct air_cqe cqe;
		uint64_t meta;

		if (air_channel_taken(ch, i))
			continue;
		if (!air_ring_completed(&ch->ring, i, &cqe)) {
			/* In order: nothing behind it has completed either. */
			if (i >= unordered)
				break;
			continue;
		}
		meta = meta_of(ch, i);
		if (meta & AIR_SLOT_DETACHED) {
			collect_detached(ch, i, &cqe, meta);
			continue;
		}
		if (meta & AIR_SLOT_INTERNAL || !claim(ch, i))
			continue;
		deliver(ch, i, &cqe, completion);
		return AIR_OK;
	}
	return missed(ch);
}

air_status air_drain(air_channel *ch, int64_t timeout_ns)
{
	uint64_t deadline, tail;
	air_status status;

	if (!ch)
		return air_error_static(AIR_BAD_ARGUMENT,
					"air_drain: channel is NULL");
	status = air_channel_usable(ch);
	if (status != AIR_OK)
		return status;
	deadline = air_deadline(timeout_ns);
	tail = air_channel_tail(ch);
	for (uint64_t i = air_channel_head(ch); i < tail; i++) {
		struct air_cqe cqe;

		status = air_channel_await(ch, i, deadline, &cqe);
		if (status != AIR_OK && status != AIR_BAD_TOKEN)
			return status;
	}
	air_channel_sweep(ch, true);
	air_buffer_reap(ch);
	return AIR_OK;
}

air_status air_cancel(air_channel *ch, air_token token)
{
	uint64_t index;
	air_status status = token_index(ch, token, &index);

	if (status != AIR_OK)
		return status;
	if (air_channel_taken(ch, index))
		return bad_token(token);
	air_ring_cancel(&ch->ring, index);
	return AIR_OK;
}

air_status air_channel_error(air_channel *ch, struct air_completion *completion)
{
	air_status status;

	if (!ch)
		return air_error_static(AIR_BAD_ARGUMENT,
					"air_channel_error: channel is NULL");
	status = air_channel_usable(ch);
	if (status != AIR_OK)
		return status;
	air_channel_sweep(ch, true);
	pthread_mutex_lock(&ch->error_lock);
	if (ch->has_error) {
		status = ch->error.status;
		if (completion)
			*completion = ch->error;
		air_error_set(status, "%s", ch->error_text);
		ch->has_error = false;
	}
	pthread_mutex_unlock(&ch->error_lock);
	return status;
}

/*
 * Wait as long as somebody serves the channel, and a while longer: a worker
 * may just be restarting.
 */
static air_status await_worker(struct air_channel *ch, uint64_t index,
			       struct air_cqe *cqe)
{
	uint64_t alone_since = 0;

	for (;;) {
		air_status status = air_channel_await(
			ch, index, air_deadline(SERVED_CHECK_NS), cqe);

		if (status == AIR_TIMEOUT)
			alone_since = 0;
		else if (status != AIR_NO_WORKER)
			return status;
		else if (!alone_since)
			alone_since = air_now();
		else if (air_now() - alone_since > NO_WORKER_NS)
			return status;
	}
}

/* Nobody waits for @index any more; whatever becomes of it is collected. */
static void abandon(struct air_channel *ch, uint64_t index)
{
	struct air_slot *slot = slot_of(ch, index);

	air_ring_cancel(&ch->ring, index);
	__atomic_fetch_or(&slot->meta, AIR_SLOT_DETACHED, __ATOMIC_RELAXED);
	air_channel_detach(ch, index);
}

air_status air_channel_call(struct air_channel *ch, const struct air_call *call,
			    struct air_cqe *cqe, bool *abandoned)
{
	air_status status;
	uint64_t index;

	if (abandoned)
		*abandoned = false;
	for (;;) {
		uint64_t head;

		status = air_channel_submit(ch, call, 1, AIR_SLOT_INTERNAL,
					    &index);
		if (status != AIR_FULL)
			break;
		/* Only what nobody has collected for long makes no room. */
		head = air_channel_head(ch);
		if (air_channel_done(ch, head) &&
		    !air_channel_taken(ch, head) &&
		    !(meta_of(ch, head) & AIR_SLOT_DETACHED))
			return status;
		status = await_worker(ch, head, cqe);
		if (status != AIR_OK && status != AIR_BAD_TOKEN)
			return status;
	}
	if (status != AIR_OK)
		return status;
	status = await_worker(ch, index, cqe);
	if (status != AIR_OK) {
		abandon(ch, index);
		if (abandoned)
			*abandoned = true;
		return status;
	}
	air_channel_claim(ch, index);
	air_ring_collect(&ch->ring, ch->collected, index);
	return AIR_OK;
}
