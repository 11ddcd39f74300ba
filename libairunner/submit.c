// SPDX-License-Identifier: MIT
/*
 * The way into the ring.
 */
#include <string.h>

#include <airunner.h>

#include "libairunner/channel.h"
#include "libairunner/error.h"

#define unlikely(x) __builtin_expect(!!(x), 0)

#define CALL_FLAGS \
	(AIR_CALL_UNORDERED | AIR_CALL_BARRIER | AIR_CALL_DETACHED)

_Static_assert(AIR_CALL_UNORDERED == AIRUNNER_SQE_UNORDERED &&
		       AIR_CALL_BARRIER == AIRUNNER_SQE_BARRIER,
	       "calls carry the ring's own flags");

/* A high-water mark; others may raise it at the same moment. */
static inline void raise_mark(const struct air_channel *ch, uint64_t *mark,
			      uint64_t to)
{
	uint64_t old = air_load(mark, RELAXED);

	if (ch->ring.single) {
		if (old < to)
			air_store(mark, to, RELAXED);
		return;
	}
	while (old < to && !__atomic_compare_exchange_n(mark, &old, to, true,
							__ATOMIC_RELAXED,
							__ATOMIC_RELAXED))
		;
}

void air_channel_detach(struct air_channel *ch, uint64_t index)
{
	raise_mark(ch, &ch->detached_end, index + 1);
}

/* What the library remembers of a submission, for who sees its completion. */
static inline void note(struct air_channel *ch, const struct air_call *call,
			uint32_t slot_flags, uint64_t index)
{
	struct air_slot *slot = &ch->slots[air_ring_slot(&ch->ring, index)];

	if (unlikely(call->flags & AIR_CALL_DETACHED))
		slot_flags |= AIR_SLOT_DETACHED;
	if (unlikely(slot_flags & AIR_SLOT_DETACHED))
		air_channel_detach(ch, index);
	air_store(&slot->user_data, call->user_data, RELAXED);
	air_store(&slot->meta,
		  airunner_sqe_id(call->word[0]) | slot_flags |
			  (uint64_t)air_load(&ch->epoch, RELAXED) << 32,
		  RELAXED);
}

/*
 * The words go from the caller's memory straight into the slot. A store to
 * anywhere else would take a place in the store buffer, which bounds how many
 * slots can be on their way to the worker's processor: hence no copy, and all
 * that is rare out of line, where its registers are not saved for every call.
 */
static inline __attribute__((always_inline)) void
place(struct air_channel *ch, const struct air_call *call, uint64_t index,
      const uint64_t *word)
{
	uint64_t head = word[0] |
			(uint64_t)(call->flags & AIRUNNER_SQE_FLAGS) << 8 |
			(uint64_t)call->timeout_ms << 16;

	air_ring_publish_words(&ch->ring, index, head, word);
}

/* There are freed buffers, which the call may refer to. */
static __attribute__((noinline)) void
place_checked(struct air_channel *ch, const struct air_call *call,
	      uint64_t index)
{
	uint64_t word[AIRUNNER_SQE_WORDS];

	memcpy(word, call->word, sizeof(word));
	if (airunner_sqe_opcode(word[0]) == AIRUNNER_OP_EXEC)
		for (int i = AIRUNNER_WORD_OPERAND;
		     i <= AIRUNNER_WORD_WORKSPACE; i++)
			word[i] = air_channel_live(ch, word[i]);
	place(ch, call, index, word);
}

static void wake(struct air_channel *ch)
{
	if (ch->ops->doorbell(ch, false) != AIR_OK)
		air_channel_answer(ch);
}

static inline void fill(struct air_channel *ch, const struct air_call *calls,
			uint32_t n, uint32_t slot_flags, uint64_t first)
{
	uint32_t flags = 0;

	/*
	 * Before the words of any of them, so that nothing but slots is stored
	 * from then on: what is between two of them keeps the next ones from
	 * being fetched while the first is on its way.
	 */
	for (uint32_t i = 0; i < n; i++) {
		flags |= calls[i].flags;
		note(ch, &calls[i], slot_flags, first + i);
	}
	if (flags & AIR_CALL_UNORDERED)
		raise_mark(ch, &ch->unordered_end, first + n);
	for (uint32_t i = 0; i < n; i++) {
		if (unlikely(air_load(&ch->n_freed, RELAXED)))
			place_checked(ch, &calls[i], first + i);
		else
			place(ch, &calls[i], first + i, calls[i].word);
	}
	if (unlikely(air_ring_must_wake(&ch->ring, ch->asym)))
		wake(ch);
}

bool air_channel_try_submit(struct air_channel *ch,
			    const struct air_call *calls, uint32_t n,
			    uint32_t slot_flags, uint64_t *index)
{
	if (!air_ring_reserve(&ch->ring, ch->collected, n, index))
		return false;
	fill(ch, calls, n, slot_flags, *index);
	return true;
}

air_status air_channel_submit(struct air_channel *ch,
			      const struct air_call *calls, uint32_t n,
			      uint32_t slot_flags, uint64_t *index)
{
	uint64_t first;

	if (unlikely(!air_ring_reserve(&ch->ring, ch->collected, n, &first))) {
		if (!air_channel_sweep(ch, false) ||
		    !air_ring_reserve(&ch->ring, ch->collected, n, &first))
			return air_error_static(
				AIR_FULL,
				"the ring is full: collect completions first");
	}
	fill(ch, calls, n, slot_flags, first);
	*index = first;
	return AIR_OK;
}

/* A channel that is cut gets the next worker, if there is a way to one. */
static air_status mend(struct air_channel *ch)
{
	air_channel_answer(ch);
	/* A channel that no worker can take must not cost the others theirs. */
	if (!ch->ops->revive || air_load(&ch->broken, RELAXED))
		return air_channel_ended(ch);
	return air_channel_revive(ch);
}

air_status air_channel_care(struct air_channel *ch)
{
	air_status status;

	do {
		status = AIR_OK;
		if (air_load(&ch->care, ACQUIRE) & AIR_CARE_CUT) {
			status = mend(ch);
			if (status != AIR_OK)
				return status;
		}
		if (air_load(&ch->ring.ctrl->sq_epoch, ACQUIRE) !=
		    air_load(&ch->epoch, RELAXED))
			status = air_channel_replay(ch);
		/* The next worker may die while it is told what to know. */
	} while (status == AIR_WORKER_DIED);
	if (status != AIR_OK)
		return status;
	if (air_load(&ch->care, RELAXED) & AIR_CARE_DEFERRED) {
		air_channel_sweep(ch, false);
		pthread_mutex_lock(&ch->lock);
		air_deferred_flush(ch);
		pthread_mutex_unlock(&ch->lock);
	}
	return AIR_OK;
}

static air_status refuse_calls(const struct air_call *calls, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		if (calls[i].flags & ~CALL_FLAGS)
			return air_error_set(AIR_BAD_FLAGS,
					     "call %u: unknown flags 0x%x", i,
					     calls[i].flags & ~CALL_FLAGS);
		if (calls[i].reserved)
			return air_error_set(AIR_BAD_RESERVED,
					     "call %u: reserved is %u, not 0",
					     i, calls[i].reserved);
	}
	return AIR_OK;
}

static __attribute__((noinline)) air_status
submit_any(struct air_channel *ch, const struct air_call *calls, uint32_t n,
	   air_token *first)
{
	uint32_t flags = 0;
	air_status status;
	uint64_t index;

	if (unlikely(!ch || !calls))
		return air_error_set(AIR_BAD_ARGUMENT, "air_submit: %s is NULL",
				     ch ? "calls" : "channel");
	status = air_channel_usable(ch);
	if (unlikely(status != AIR_OK))
		return status;
	if (unlikely(!n || n > air_channel_entries(ch)))
		return air_error_set(
			AIR_BAD_ARGUMENT,
			"air_submit: %u calls; 1 to %u (the ring) can be submitted at once",
			n, air_channel_entries(ch));
	for (uint32_t i = 0; i < n; i++)
		flags |= (calls[i].flags & ~CALL_FLAGS) | calls[i].reserved;
	if (unlikely(flags))
		return refuse_calls(calls, n);
	if (unlikely(air_load(&ch->care, RELAXED) ||
		     air_load(&ch->ring.ctrl->sq_epoch, RELAXED) !=
			     air_load(&ch->epoch, RELAXED))) {
		status = air_channel_care(ch);
		if (status != AIR_OK)
			return status;
	}
	status = air_channel_submit(ch, calls, n, 0, &index);
	if (status == AIR_OK && first)
		*first = index + 1;
	return status;
}

/* Whether nothing but the slot has to be seen to. */
static inline bool is_plain(const struct air_channel *ch,
			    const struct air_call *call)
{
	return !((call->flags & ~AIR_CALL_UNORDERED) | call->reserved |
		 (ch->fork_generation ^ air_fork_generation) |
		 air_load(&ch->care, RELAXED) |
		 air_load(&ch->n_freed, RELAXED) |
		 (air_load(&ch->ring.ctrl->sq_epoch, RELAXED) ^
		  air_load(&ch->epoch, RELAXED)));
}

/*
 * One ordinary call. Here again it is what lies between two slots that counts:
 * registers saved and addresses to return to, of a function in a function, are
 * more stores than the slot's own. So this is all in one, and whatever is out
 * of the ordinary goes elsewhere.
 */
air_status air_submit(air_channel *ch, const struct air_call *calls,
		      uint32_t n, air_token *first)
{
	uint64_t index;

	if (unlikely(n != 1 || !ch || !calls || !is_plain(ch, calls) ||
		     !air_ring_reserve_one(&ch->ring, &index)))
		return submit_any(ch, calls, n, first);
	if (calls->flags)
		raise_mark(ch, &ch->unordered_end, index + 1);
	note(ch, calls, 0, index);
	place(ch, calls, index, calls->word);
	if (first)
		*first = index + 1;
	if (unlikely(air_ring_must_wake(&ch->ring, ch->asym)))
		wake(ch);
	return AIR_OK;
}

void air_prepare_nop(struct air_call *call)
{
	memset(call, 0, sizeof(*call));
	call->word[0] = airunner_sqe_head(AIRUNNER_OP_NOP, 0, 0, 0);
}
