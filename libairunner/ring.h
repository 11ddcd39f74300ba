/* SPDX-License-Identifier: MIT */
/*
 * The ring protocol: how both sides load and store the words that
 * include/uapi/airunner.h lays out. Everything here is lock-free, none of it
 * makes a system call, and all ordering of the product's data path is in
 * these few functions.
 *
 * Producer (any number of threads or processes that map the region, unless
 * the ring is said to have a single one):
 *	air_ring_reserve -> air_ring_publish -> air_ring_must_wake
 * Consumer (one thread at a time):
 *	air_ring_fetch -> ... -> air_ring_complete -> air_ring_client_sleeps
 * Waiter (any thread of the client, each for its own index):
 *	air_ring_completed -> air_ring_collect
 * Before sleeping, either side:
 *	read the bell -> air_ring_arm_... -> look again -> sleep on the bell
 *
 * tests/model/ holds the models of all this.
 *
 * Ordering, in the terms of C11:
 *  - What a submission refers to happens-before its words: release at
 *    publish, acquire once all eight words of the slot have the right lap.
 *  - What an operator wrote happens-before its completion: release at the
 *    store of completion word 0, acquire once both words have the right lap.
 *  - A slot is written again only after its completion was collected: the
 *    chain consumer's read -> completion (release) -> waiter (acquire) ->
 *    cq_head (release) -> reserve (acquire) closes the circle, so the
 *    consumer's read of a slot never races with the next lap's write.
 */
#ifndef AIR_RING_H
#define AIR_RING_H

#include <stdbool.h>
#include <stdint.h>

#include "include/uapi/airunner.h"

/**
 * struct air_ring - one side's view of a ring
 * @single: one thread at a time produces and collects, and what one did
 *	happens-before what the next does. Each side may say so of itself; an
 *	exchange that nobody can spoil is then a store. That is less to do, and
 *	above all it does not wait until the slots written before have got
 *	through to memory, as every locked instruction of x86 does: a producer
 *	that submits one by one has several of them on their way
 */
struct air_ring {
	struct airunner_ctrl *ctrl;
	uint64_t *sq;
	uint64_t *cq;
	uint32_t order;
	bool single;
#ifdef AIR_TSAN
	uint64_t witness;
#endif
};

/* One submission's payloads, without laps. */
struct air_sqe {
	uint64_t word[AIRUNNER_SQE_WORDS];
};

struct air_cqe {
	enum airunner_status status;
	uint16_t detail;
	uint64_t start;		/* ns modulo 2^AIRUNNER_START_BITS */
	uint64_t duration;	/* ns */
};

#define air_load(p, order)	__atomic_load_n(p, __ATOMIC_##order)
#define air_store(p, v, order)	__atomic_store_n(p, v, __ATOMIC_##order)

/*
 * ThreadSanitizer does not understand fences. Under it each word is a release
 * store or an acquire load of its own, which is stronger and slower and has
 * the same meaning.
 */
#ifdef AIR_TSAN
#define AIR_WORD_STORE		__ATOMIC_RELEASE
#define AIR_WORD_LOAD		__ATOMIC_ACQUIRE
#define air_fence_release()	do { } while (0)
#define air_fence_acquire()	do { } while (0)
#else
#define AIR_WORD_STORE		__ATOMIC_RELAXED
#define AIR_WORD_LOAD		__ATOMIC_RELAXED
#define air_fence_release()	__atomic_thread_fence(__ATOMIC_RELEASE)
#define air_fence_acquire()	__atomic_thread_fence(__ATOMIC_ACQUIRE)
#endif

/*
 * Two words at once where that is one instruction that moves (at least) whole
 * words: aligned 16-byte accesses of x86-64 and AArch64. What a producer can
 * have on its way to another processor is bounded by its store buffer, and half
 * as many stores leave room for twice as many slots.
 */
#if (defined(__x86_64__) || defined(__aarch64__)) && !defined(__CUDACC__) && \
	!defined(AIR_TSAN)
#define AIR_PAIRS
typedef uint64_t air_pair __attribute__((vector_size(16), may_alias));

static inline air_pair air_pair_of(uint64_t first, uint64_t second)
{
	air_pair p = { first, second };

	return p;
}

/*
 * Loaded one by one: the caller may have stored them so just now, and one load
 * of two words cannot be served from two stores that are still on their way.
 */
static inline air_pair air_pair_at(const uint64_t *word)
{
	return air_pair_of(air_load(&word[0], RELAXED),
			   air_load(&word[1], RELAXED));
}

static inline void air_pair_store(uint64_t *at, air_pair payload, uint8_t lap)
{
	uint64_t tag = airunner_word(0, lap);

	*(volatile air_pair *)at =
		(payload & air_pair_of(AIRUNNER_PAYLOAD_MASK,
				       AIRUNNER_PAYLOAD_MASK)) |
		air_pair_of(tag, tag);
}

/* Copy two payloads to @to; lap bits that are not @lap's go to *@differ. */
static inline void air_pair_fetch(const uint64_t *from, uint64_t *to,
				  uint8_t lap, air_pair *differ)
{
	air_pair p = *(const volatile air_pair *)from;
	uint64_t tag = airunner_word(0, lap);

	*differ |= p ^ air_pair_of(tag, tag);
	p &= air_pair_of(AIRUNNER_PAYLOAD_MASK, AIRUNNER_PAYLOAD_MASK);
	__builtin_memcpy(to, &p, sizeof(p));
}
#endif

static inline void air_ring_init(struct air_ring *r, void *region,
				 uint32_t order)
{
	char *base = (char *)region;

	r->ctrl = (struct airunner_ctrl *)base;
	r->sq = (uint64_t *)(base + AIRUNNER_SQ_OFFSET);
	r->cq = (uint64_t *)(base + airunner_cq_offset(order));
	r->order = order;
	r->single = false;
}

/*
 * What only one thread at a time may do in a ring that is said to be so. The
 * protocol's own words are all atomic: ThreadSanitizer is given one that is
 * not, to see when two threads do it at once.
 */
static inline void air_ring_alone(struct air_ring *r)
{
#ifdef AIR_TSAN
	if (r->single)
		r->witness++;
#endif
}

/*
 * The flags of a side that may sleep, read after everything this thread has
 * stored before. @asym: the sleeper provides that order (membarrier), so the
 * compiler is all that must be held back here. ThreadSanitizer is given an
 * exchange instead of the fence.
 */
static inline uint32_t air_flags_after(uint32_t *flags, bool asym)
{
	if (asym) {
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		return air_load(flags, RELAXED);
	}
#ifdef AIR_TSAN
	return __atomic_fetch_or(flags, 0, __ATOMIC_SEQ_CST);
#else
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return air_load(flags, RELAXED);
#endif
}

/*
 * Say that this side is about to sleep, before everything it looks at from
 * here on. It then looks once more, and sleeps only if there is still nothing.
 * When the other side reads the flags without a fence (asym),
 * membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED) must follow before that look:
 * one call serves all rings that were armed before it. And as it may pass a
 * processor over (libairunner/membarrier.h), the first sleep is a short one,
 * with another look at its end. Return: whether the bit was set already.
 */
static inline bool air_flags_arm(uint32_t *flags, uint32_t bit)
{
	uint32_t before = __atomic_fetch_or(flags, bit, __ATOMIC_SEQ_CST);

#ifndef AIR_TSAN
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
	return before & bit;
}

static inline uint64_t air_ring_slot(const struct air_ring *r, uint64_t index)
{
	return index & ((1ULL << r->order) - 1);
}

/* ------------------------------------------------------------- producer */

/*
 * Move cq_head over every collected completion at its front. @collected has
 * a byte for each slot: the lap of the index last collected there. Two
 * waiters that collect neighbours at the same moment may both miss the
 * other's mark and leave head behind; whoever collects next, or finds the
 * ring full, calls this and catches up, so nothing hangs on it.
 */
static inline void air_ring_advance(struct air_ring *r, uint8_t *collected)
{
	__u64 head = air_load(&r->ctrl->cq_head, RELAXED);

	air_ring_alone(r);
	for (;;) {
		__u64 next = head;

		while (air_load(&collected[air_ring_slot(r, next)], ACQUIRE) ==
		       airunner_lap(next, r->order))
			next++;
		if (next == head)
			return;
		if (r->single) {
			air_store(&r->ctrl->cq_head, next, RELEASE);
			return;
		}
		if (__atomic_compare_exchange_n(&r->ctrl->cq_head, &head, next,
						false, __ATOMIC_RELEASE,
						__ATOMIC_RELAXED))
			head = next;
	}
}

/* Make @from, which was read from sq_tail, @to. */
static inline bool air_ring_move_tail(struct air_ring *r, __u64 *from, __u64 to)
{
	if (r->single) {
		air_store(&r->ctrl->sq_tail, to, RELAXED);
		return true;
	}
	return __atomic_compare_exchange_n(&r->ctrl->sq_tail, from, to, true,
					   __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/*
 * Reserve one index, at the first attempt. False, and nothing changed, when
 * that does not do it: air_ring_reserve() then tells whether there is room.
 */
static inline bool air_ring_reserve_one(struct air_ring *r, uint64_t *index)
{
	__u64 tail = air_load(&r->ctrl->sq_tail, RELAXED);
	uint64_t head = air_load(&r->ctrl->cq_head, ACQUIRE);

	air_ring_alone(r);
	/* Wraps, and is large, where head has passed that tail. */
	if (tail - head >= 1ULL << r->order)
		return false;
	*index = tail;
	return air_ring_move_tail(r, &tail, tail + 1);
}

/*
 * Reserve @n consecutive indices from *@index on. False, and nothing changed,
 * when there is no room for all of them. Never waits.
 */
static inline bool air_ring_reserve(struct air_ring *r, uint8_t *collected,
				    uint32_t n, uint64_t *index)
{
	uint64_t entries = 1ULL << r->order;
	__u64 tail = air_load(&r->ctrl->sq_tail, RELAXED);
	bool advanced = false;

	air_ring_alone(r);
	for (;;) {
		uint64_t head = air_load(&r->ctrl->cq_head, ACQUIRE);

		/*
		 * head may have passed a tail read earlier; the difference is
		 * then negative and the exchange below fails.
		 */
		if ((int64_t)(tail + n - head) > (int64_t)entries) {
			if (advanced)
				return false;
			air_ring_advance(r, collected);
			advanced = true;
			tail = air_load(&r->ctrl->sq_tail, RELAXED);
			continue;
		}
		if (air_ring_move_tail(r, &tail, tail + n)) {
			*index = tail;
			return true;
		}
	}
}

/*
 * Publish the submission of a reserved @index: @word with @head in place of
 * word 0. Reservations may be published in any order; each must be, as the
 * consumer takes them by index. Word 0 goes last so that a consumer's first
 * look at it mostly finds the rest in place.
 */
static inline void air_ring_publish_words(struct air_ring *r, uint64_t index,
					  uint64_t head, const uint64_t *word)
{
	uint64_t *slot = r->sq + air_ring_slot(r, index) * AIRUNNER_SQE_WORDS;
	uint8_t lap = airunner_lap(index, r->order);

	air_fence_release();
#ifdef AIR_PAIRS
	for (int i = AIRUNNER_SQE_WORDS - 2; i > 0; i -= 2)
		air_pair_store(&slot[i], air_pair_at(&word[i]), lap);
	air_pair_store(slot, air_pair_of(head, word[1]), lap);
#else
	for (int i = AIRUNNER_SQE_WORDS - 1; i > 0; i--)
		__atomic_store_n(&slot[i], airunner_word(word[i], lap),
				 AIR_WORD_STORE);
	__atomic_store_n(slot, airunner_word(head, lap), AIR_WORD_STORE);
#endif
}

static inline void air_ring_publish(struct air_ring *r, uint64_t index,
				    const struct air_sqe *sqe)
{
	air_ring_publish_words(r, index, sqe->word[0], sqe->word);
}

/*
 * Whether the consumer must be woken for what was just published. @asym: this
 * process registered for membarrier and said so in client_flags; the sleeper
 * then provides the store-load ordering, else the fence here does.
 */
static inline bool air_ring_must_wake(struct air_ring *r, bool asym)
{
	return air_flags_after(&r->ctrl->sq_flags, asym) &
	       AIRUNNER_SQ_NEED_WAKEUP;
}

/*
 * Turn a published submission into a canceled one. True when the change was
 * made in time to be possible; the completion says what came of it. @index
 * must not have been collected yet: its slot is this submission's until then.
 */
static inline bool air_ring_cancel(struct air_ring *r, uint64_t index)
{
	uint64_t *slot = r->sq + air_ring_slot(r, index) * AIRUNNER_SQE_WORDS;
	uint8_t lap = airunner_lap(index, r->order);
	uint64_t word = air_load(slot, RELAXED);

	if (airunner_word_lap(word) != lap)
		return false;
	return __atomic_compare_exchange_n(
		slot, &word, (word & ~0xffULL) | AIRUNNER_OP_CANCELED, false,
		__ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/* --------------------------------------------------------------- waiter */

/*
 * A waiter that is about to sleep: read cq_bell (or the module's sequence),
 * arm, look at the completion once more, sleep while cq_bell is as read. In
 * this order: whoever wakes clears the flag before it counts the bell, and so
 * cannot clear one that was set by a waiter who misses the count.
 */
static inline bool air_ring_arm_waiter(struct air_ring *r)
{
	return air_flags_arm(&r->ctrl->cq_flags, AIRUNNER_CQ_NEED_WAKEUP);
}

/* Look once for the completion of @index; *@cqe is a copy. */
static inline bool air_ring_completed(const struct air_ring *r, uint64_t index,
				      struct air_cqe *cqe)
{
	const uint64_t *slot =
		r->cq + air_ring_slot(r, index) * AIRUNNER_CQE_WORDS;
	uint8_t lap = airunner_lap(index, r->order);
	uint64_t w0 = __atomic_load_n(&slot[0], AIR_WORD_LOAD);
	uint64_t w1;

	if (airunner_word_lap(w0) != lap)
		return false;
	w1 = __atomic_load_n(&slot[1], AIR_WORD_LOAD);
	if (airunner_word_lap(w1) != lap)
		return false;
	air_fence_acquire();
	cqe->status = (enum airunner_status)airunner_cqe_status(w0);
	cqe->detail = airunner_cqe_detail(w0);
	cqe->start = airunner_cqe_start(w1);
	cqe->duration = airunner_cqe_duration(w0, w1);
	return true;
}

/*
 * Mark a completion as copied. Its slot goes back to the producers with the
 * next air_ring_advance(): whoever collects many marks them all first.
 */
static inline void air_ring_mark(struct air_ring *r, uint8_t *collected,
				 uint64_t index)
{
	air_store(&collected[air_ring_slot(r, index)],
		  airunner_lap(index, r->order), RELEASE);
}

/* Give the slot of a completion that has been copied back to the producers. */
static inline void air_ring_collect(struct air_ring *r, uint8_t *collected,
				    uint64_t index)
{
	air_ring_mark(r, collected, index);
	air_ring_advance(r, collected);
}

/* ------------------------------------------------------------- consumer */

/*
 * Copy the submission of @index to *@sqe if it is all there; else *@sqe is not
 * to be used. What is validated and used afterwards is the copy; the first
 * look only saves reading the rest of a slot that is not there yet.
 */
static inline bool air_ring_fetch(const struct air_ring *r, uint64_t index,
				  struct air_sqe *sqe)
{
	const uint64_t *slot =
		r->sq + air_ring_slot(r, index) * AIRUNNER_SQE_WORDS;
	uint8_t lap = airunner_lap(index, r->order);
	uint64_t differ = 0;

	if (airunner_word_lap(air_load(&slot[0], RELAXED)) != lap)
		return false;
#ifdef AIR_PAIRS
	air_pair differing = { 0 };

	for (int i = 0; i < AIRUNNER_SQE_WORDS; i += 2)
		air_pair_fetch(&slot[i], &sqe->word[i], lap, &differing);
	differ = differing[0] | differing[1];
#else
	for (int i = 0; i < AIRUNNER_SQE_WORDS; i++) {
		uint64_t word = __atomic_load_n(&slot[i], AIR_WORD_LOAD);

		differ |= word ^ airunner_word(0, lap);
		sqe->word[i] = airunner_payload(word);
	}
#endif
	if (airunner_word_lap(differ))
		return false;
	air_fence_acquire();
	return true;
}

static inline void air_ring_complete(struct air_ring *r, uint64_t index,
				     const struct air_cqe *cqe)
{
	uint64_t *slot = r->cq + air_ring_slot(r, index) * AIRUNNER_CQE_WORDS;
	uint8_t lap = airunner_lap(index, r->order);

	__atomic_store_n(&slot[1],
			 airunner_word(airunner_cqe_word1(cqe->start,
							  cqe->duration),
				       lap),
			 AIR_WORD_STORE);
	air_store(&slot[0],
		  airunner_word(airunner_cqe_word0((uint8_t)cqe->status,
						   cqe->detail, cqe->duration),
				lap),
		  RELEASE);
}

/*
 * Whether a client sleeps and must be woken for what was just completed.
 * @asym: this worker said AIRUNNER_SQ_ASYM.
 */
static inline bool air_ring_client_sleeps(struct air_ring *r, bool asym)
{
	uint32_t flags = air_flags_after(&r->ctrl->cq_flags, asym);

	if (asym && flags & AIRUNNER_CQ_FENCE)
		flags = air_flags_after(&r->ctrl->cq_flags, false);
	return flags & AIRUNNER_CQ_NEED_WAKEUP;
}

/* What must precede the wake-up of the clients, whatever carries it. */
static inline void air_ring_disarm_waiters(struct air_ring *r)
{
	__atomic_fetch_and(&r->ctrl->cq_flags, ~AIRUNNER_CQ_NEED_WAKEUP,
			   __ATOMIC_SEQ_CST);
}

/*
 * A consumer that is about to sleep; the same order as for a waiter. It
 * disarms itself once it is awake.
 */
static inline void air_ring_arm_consumer(struct air_ring *r)
{
	air_flags_arm(&r->ctrl->sq_flags, AIRUNNER_SQ_NEED_WAKEUP);
}

static inline void air_ring_disarm_consumer(struct air_ring *r)
{
	__atomic_fetch_and(&r->ctrl->sq_flags, ~AIRUNNER_SQ_NEED_WAKEUP,
			   __ATOMIC_RELAXED);
}

/*
 * A consumer that takes over a used ring needs no journal. Every slot whose
 * submission is one lap ahead of its completion is outstanding; @answer is
 * called for it and must complete it. Once none is, the next index is the
 * first slot with the lowest lap among the completions: with all of them
 * answered in order, laps step down by one there. Submissions behind it may
 * have been answered (a producer had reserved that index but not yet
 * published), in two laps of the ring: the laps before the step are one or two
 * above the lowest, those behind it none or one. A consumer skips what
 * air_ring_answered() says, for one lap.
 *
 * Returns the next index (modulo 256 laps, which is all a consumer needs), or
 * -1 when the laps make no sense because somebody scribbled on them.
 */
static inline int64_t air_ring_recover(struct air_ring *r,
				       void (*answer)(void *arg,
						      uint64_t index),
				       void *arg)
{
	uint64_t entries = 1ULL << r->order, next = 0;
	uint8_t first = 0;
	int low = 0;

	for (uint64_t s = 0; s < entries; s++) {
		uint64_t w0 = air_load(&r->cq[s * AIRUNNER_CQE_WORDS], ACQUIRE);
		uint8_t lap = airunner_word_lap(w0);
		uint64_t index = ((uint64_t)lap << r->order) + s;
		struct air_sqe sqe;
		int step;

		/* Its lap is lap + 1: the one after that completion. */
		if (air_ring_fetch(r, index, &sqe)) {
			answer(arg, index);
			lap++;
		}
		if (s == 0)
			first = lap;
		step = (int8_t)(uint8_t)(lap - first);
		if (step < -2 || step > 2)
			return -1;
		if (step < low) {
			low = step;
			next = s;
		}
	}
	for (uint64_t s = 0; s < entries; s++) {
		uint64_t w0 =
			air_load(&r->cq[s * AIRUNNER_CQE_WORDS], RELAXED);
		int step = (int8_t)(uint8_t)(airunner_word_lap(w0) - first) -
			   low - (s < next);

		if (step < 0 || step > 1)
			return -1;
	}
	return (int64_t)(((uint64_t)(uint8_t)(first + low) << r->order) + next);
}

/* Whether @index was answered before this consumer took over. */
static inline bool air_ring_answered(const struct air_ring *r, uint64_t index)
{
	uint64_t w0 = air_load(
		&r->cq[air_ring_slot(r, index) * AIRUNNER_CQE_WORDS], RELAXED);

	return airunner_word_lap(w0) == airunner_lap(index, r->order);
}

#endif /* AIR_RING_H */
