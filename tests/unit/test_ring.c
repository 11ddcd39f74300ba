// SPDX-License-Identifier: MIT
/*
 * The ring protocol by itself: libairunner/ring.h over plain memory.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "libairunner/ring.h"

struct memory {
	struct air_ring r;
	void *region;
	uint8_t *collected;
};

/* What a single producer does is tested in a ring that is said to have one. */
static bool single;

static int single_producer(void **state)
{
	single = true;
	return 0;
}

static void set_up(struct memory *m, uint32_t order)
{
	size_t size = airunner_arena_offset(order);

	assert_int_equal(posix_memalign(&m->region, 4096, size), 0);
	memset(m->region, 0, size);
	m->collected = calloc(1u << order, 1);
	assert_non_null(m->collected);
	air_ring_init(&m->r, m->region, order);
	m->r.single = single;
}

static void tear_down(struct memory *m)
{
	free(m->region);
	free(m->collected);
}

/* As if everything before @index had been through. */
static void jump(struct memory *m, uint64_t index)
{
	uint64_t entries = UINT64_C(1) << m->r.order;

	for (uint64_t i = index - entries; i != index; i++) {
		uint64_t s = air_ring_slot(&m->r, i);
		uint8_t lap = airunner_lap(i, m->r.order);

		for (int w = 0; w < AIRUNNER_SQE_WORDS; w++)
			m->r.sq[s * AIRUNNER_SQE_WORDS + w] =
				airunner_word(0, lap);
		for (int w = 0; w < AIRUNNER_CQE_WORDS; w++)
			m->r.cq[s * AIRUNNER_CQE_WORDS + w] =
				airunner_word(0, lap);
		m->collected[s] = lap;
	}
	m->r.ctrl->sq_tail = index;
	m->r.ctrl->cq_head = index;
}

static struct air_sqe numbered(uint64_t n)
{
	struct air_sqe sqe;

	for (uint64_t w = 0; w < AIRUNNER_SQE_WORDS; w++)
		sqe.word[w] = (n * 8 + w) & AIRUNNER_PAYLOAD_MASK;
	return sqe;
}

static void publish(struct memory *m, uint64_t index)
{
	struct air_sqe sqe = numbered(index);

	air_ring_publish(&m->r, index, &sqe);
}

static void complete(struct memory *m, uint64_t index)
{
	struct air_cqe cqe = { .status = AIRUNNER_S_OK, .start = index };

	air_ring_complete(&m->r, index, &cqe);
}

static void test_layout(void **state)
{
	assert_int_equal(airunner_cq_offset(4), 0x400 + 16 * 64);
	assert_int_equal(airunner_arena_offset(4), 0x400 + 16 * 80);
	assert_int_equal(offsetof(struct airunner_ctrl, cq_head), 128);
	assert_int_equal(offsetof(struct airunner_ctrl, sq_flags), 256);
	assert_int_equal(offsetof(struct airunner_ctrl, cq_flags), 384);
}

static void test_laps(void **state)
{
	assert_int_equal(airunner_lap(0, 4), 1);
	assert_int_equal(airunner_lap(15, 4), 1);
	assert_int_equal(airunner_lap(16, 4), 2);
	assert_int_equal(airunner_lap(16 * 255 - 1, 4), 255);
	assert_int_equal(airunner_lap(16 * 255, 4), 0);
	assert_int_equal(airunner_lap(16 * 256, 4), 1);
	/* The lap goes on where a 64-bit index starts again. */
	assert_int_equal(airunner_lap(UINT64_MAX, 4), 0);
}

static void test_zeroed_is_empty(void **state)
{
	struct memory m;
	struct air_sqe sqe;
	struct air_cqe cqe;

	set_up(&m, 3);
	for (uint64_t i = 0; i < 8; i++) {
		assert_false(air_ring_fetch(&m.r, i, &sqe));
		assert_false(air_ring_completed(&m.r, i, &cqe));
	}
	tear_down(&m);
}

static void test_words_arrive(void **state)
{
	struct memory m;
	struct air_sqe in, out;
	uint64_t index = 0;

	set_up(&m, 3);
	assert_true(air_ring_reserve(&m.r, m.collected, 1, &index));
	assert_int_equal(index, 0);
	memset(&in, 0xff, sizeof(in));
	air_ring_publish(&m.r, index, &in);
	assert_true(air_ring_fetch(&m.r, index, &out));
	for (int w = 0; w < AIRUNNER_SQE_WORDS; w++)
		assert_int_equal(out.word[w], AIRUNNER_PAYLOAD_MASK);
	assert_false(air_ring_fetch(&m.r, index + 1, &out));
	assert_false(air_ring_fetch(&m.r, index + 8, &out));
	tear_down(&m);
}

/* A slot with any word of another lap is not there. */
static void test_torn_submission(void **state)
{
	struct memory m;
	struct air_sqe sqe;

	set_up(&m, 2);
	for (int w = 0; w < AIRUNNER_SQE_WORDS; w++) {
		uint64_t *word = &m.r.sq[w];
		uint64_t saved;

		publish(&m, 0);
		saved = *word;
		for (unsigned int lap = 0; lap < 256; lap++) {
			*word = airunner_word(saved, (uint8_t)lap);
			assert_int_equal(air_ring_fetch(&m.r, 0, &sqe),
					 lap == 1);
		}
		*word = saved;
	}
	tear_down(&m);
}

static void test_torn_completion(void **state)
{
	struct memory m;
	struct air_cqe cqe;

	set_up(&m, 2);
	for (int w = 0; w < AIRUNNER_CQE_WORDS; w++) {
		uint64_t *word = &m.r.cq[w];
		uint64_t saved;

		complete(&m, 0);
		saved = *word;
		for (unsigned int lap = 0; lap < 256; lap++) {
			*word = airunner_word(saved, (uint8_t)lap);
			assert_int_equal(air_ring_completed(&m.r, 0, &cqe),
					 lap == 1);
		}
		*word = saved;
	}
	tear_down(&m);
}

static void test_completion_fields(void **state)
{
	struct air_cqe in = {
		.status = AIRUNNER_S_BAD_RANGE,
		.detail = 0xabcd,
		.start = AIRUNNER_START_MASK - 5,
		.duration = (UINT64_C(0x12) << 32) + 77,
	};
	struct air_cqe out;
	struct memory m;

	set_up(&m, 2);
	air_ring_complete(&m.r, 3, &in);
	assert_true(air_ring_completed(&m.r, 3, &out));
	assert_int_equal(out.status, in.status);
	assert_int_equal(out.detail, in.detail);
	assert_int_equal(out.start, in.start);
	assert_int_equal(out.duration, in.duration);
	in.duration = UINT64_MAX;
	air_ring_complete(&m.r, 3, &in);
	assert_true(air_ring_completed(&m.r, 3, &out));
	assert_int_equal(out.duration, AIRUNNER_DURATION_MAX);
	tear_down(&m);
}

static void test_full(void **state)
{
	struct memory m;
	uint64_t index = 0;

	set_up(&m, 2);
	assert_false(air_ring_reserve(&m.r, m.collected, 5, &index));
	assert_int_equal(m.r.ctrl->sq_tail, 0);
	assert_true(air_ring_reserve(&m.r, m.collected, 3, &index));
	assert_int_equal(index, 0);
	assert_false(air_ring_reserve(&m.r, m.collected, 2, &index));
	assert_true(air_ring_reserve(&m.r, m.collected, 1, &index));
	assert_int_equal(index, 3);
	assert_false(air_ring_reserve(&m.r, m.collected, 1, &index));
	/* Completed is not collected: the waiter has not read it yet. */
	complete(&m, 0);
	assert_false(air_ring_reserve(&m.r, m.collected, 1, &index));
	air_ring_collect(&m.r, m.collected, 0);
	assert_true(air_ring_reserve(&m.r, m.collected, 1, &index));
	assert_int_equal(index, 4);
	assert_false(air_ring_reserve(&m.r, m.collected, 1, &index));
	tear_down(&m);
}

static void test_collected_in_any_order(void **state)
{
	struct memory m;
	uint64_t index = 0;

	set_up(&m, 2);
	assert_true(air_ring_reserve(&m.r, m.collected, 4, &index));
	air_ring_collect(&m.r, m.collected, 2);
	air_ring_collect(&m.r, m.collected, 1);
	assert_int_equal(m.r.ctrl->cq_head, 0);
	assert_false(air_ring_reserve(&m.r, m.collected, 1, &index));
	air_ring_collect(&m.r, m.collected, 0);
	assert_int_equal(m.r.ctrl->cq_head, 3);
	assert_true(air_ring_reserve(&m.r, m.collected, 3, &index));
	assert_false(air_ring_reserve(&m.r, m.collected, 1, &index));
	tear_down(&m);
}

/* Two waiters that missed each other's mark leave head behind. */
static void test_head_left_behind(void **state)
{
	struct memory m;
	uint64_t index = 0;

	set_up(&m, 2);
	assert_true(air_ring_reserve(&m.r, m.collected, 4, &index));
	m.collected[0] = 1;
	m.collected[1] = 1;
	assert_int_equal(m.r.ctrl->cq_head, 0);
	assert_true(air_ring_reserve(&m.r, m.collected, 2, &index));
	assert_int_equal(index, 4);
	assert_int_equal(m.r.ctrl->cq_head, 2);
	tear_down(&m);
}

/* Whatever is not as simple as that is left to air_ring_reserve(). */
static void test_reserve_one(void **state)
{
	struct memory m;
	uint64_t index = 0;

	set_up(&m, 1);
	assert_true(air_ring_reserve_one(&m.r, &index));
	assert_int_equal(index, 0);
	assert_true(air_ring_reserve_one(&m.r, &index));
	assert_int_equal(index, 1);
	assert_false(air_ring_reserve_one(&m.r, &index));
	air_ring_mark(&m.r, m.collected, 0);
	assert_false(air_ring_reserve_one(&m.r, &index));
	assert_int_equal(m.r.ctrl->sq_tail, 2);
	air_ring_advance(&m.r, m.collected);
	assert_true(air_ring_reserve_one(&m.r, &index));
	assert_int_equal(index, 2);
	/* As when others have gone on since the tail was read. */
	m.r.ctrl->cq_head = 4;
	assert_false(air_ring_reserve_one(&m.r, &index));
	assert_int_equal(m.r.ctrl->sq_tail, 3);
	tear_down(&m);
	set_up(&m, 2);
	jump(&m, -2ULL);
	for (int i = 0; i < 4; i++) {
		assert_true(air_ring_reserve_one(&m.r, &index));
		assert_int_equal(index, -2ULL + (uint64_t)i);
	}
	assert_false(air_ring_reserve_one(&m.r, &index));
	tear_down(&m);
}

/* One by one through every lap, several times round 256. */
static void go_round(struct memory *m, uint64_t from, uint64_t n)
{
	jump(m, from);
	for (uint64_t i = from; i != from + n; i++) {
		struct air_sqe want = numbered(i), sqe;
		struct air_cqe cqe;
		uint64_t index = 0;

		assert_true(air_ring_reserve(&m->r, m->collected, 1, &index));
		assert_int_equal(index, i);
		assert_false(air_ring_fetch(&m->r, index, &sqe));
		publish(m, index);
		assert_true(air_ring_fetch(&m->r, index, &sqe));
		assert_memory_equal(&sqe, &want, sizeof(sqe));
		assert_false(air_ring_completed(&m->r, index, &cqe));
		complete(m, index);
		assert_true(air_ring_completed(&m->r, index, &cqe));
		assert_int_equal(cqe.start, index & AIRUNNER_START_MASK);
		air_ring_collect(&m->r, m->collected, index);
		assert_int_equal(m->r.ctrl->cq_head, index + 1);
	}
}

static void test_lap_wraps(void **state)
{
	for (uint32_t order = 1; order <= 4; order++) {
		struct memory m;

		set_up(&m, order);
		go_round(&m, 0, (256 * 3 + 5) << order);
		tear_down(&m);
	}
}

static void test_index_wraps_32_bits(void **state)
{
	struct memory m;

	set_up(&m, 3);
	go_round(&m, (UINT64_C(1) << 32) - 1000, 2000);
	tear_down(&m);
}

static void test_index_wraps_64_bits(void **state)
{
	struct memory m;

	set_up(&m, 3);
	go_round(&m, UINT64_MAX - 999, 2000);
	tear_down(&m);
}

/* Full across the wrap: the difference counts, not the numbers. */
static void test_full_across_wrap(void **state)
{
	static const uint64_t at[] = { UINT64_C(1) << 32, 0 };

	for (unsigned int i = 0; i < 2; i++) {
		struct memory m;
		uint64_t index = 0;

		set_up(&m, 3);
		jump(&m, at[i] - 4);
		assert_true(air_ring_reserve(&m.r, m.collected, 8, &index));
		assert_int_equal(index, at[i] - 4);
		assert_int_equal(m.r.ctrl->sq_tail, at[i] + 4);
		assert_false(air_ring_reserve(&m.r, m.collected, 1, &index));
		for (uint64_t k = at[i] - 4; k != at[i] + 4; k++)
			air_ring_collect(&m.r, m.collected, k);
		assert_int_equal(m.r.ctrl->cq_head, at[i] + 4);
		assert_true(air_ring_reserve(&m.r, m.collected, 8, &index));
		tear_down(&m);
	}
}

static void test_wakeup_flags(void **state)
{
	struct memory m;

	set_up(&m, 2);
	for (int asym = 0; asym < 2; asym++) {
		m.r.ctrl->sq_flags = AIRUNNER_SQ_WATCH | AIRUNNER_SQ_ASYM;
		assert_false(air_ring_must_wake(&m.r, asym));
		m.r.ctrl->sq_flags |= AIRUNNER_SQ_NEED_WAKEUP;
		assert_true(air_ring_must_wake(&m.r, asym));
		m.r.ctrl->cq_flags = 0;
		assert_false(air_ring_client_sleeps(&m.r, asym));
		m.r.ctrl->cq_flags = AIRUNNER_CQ_FENCE;
		assert_false(air_ring_client_sleeps(&m.r, asym));
		assert_false(air_ring_arm_waiter(&m.r));
		assert_true(air_ring_client_sleeps(&m.r, asym));
		assert_true(air_ring_arm_waiter(&m.r));
		air_ring_disarm_waiters(&m.r);
		assert_int_equal(m.r.ctrl->cq_flags, AIRUNNER_CQ_FENCE);
		m.r.ctrl->cq_flags = AIRUNNER_CQ_NEED_WAKEUP;
		assert_true(air_ring_client_sleeps(&m.r, asym));
	}
	tear_down(&m);
}

static void test_cancel(void **state)
{
	struct memory m;
	struct air_sqe sqe;

	set_up(&m, 2);
	assert_false(air_ring_cancel(&m.r, 0));
	sqe = numbered(1000);
	sqe.word[0] = airunner_sqe_head(AIRUNNER_OP_EXEC, 1, 2, 3);
	air_ring_publish(&m.r, 0, &sqe);
	assert_true(air_ring_cancel(&m.r, 0));
	assert_true(air_ring_fetch(&m.r, 0, &sqe));
	assert_int_equal(airunner_sqe_opcode(sqe.word[0]),
			 AIRUNNER_OP_CANCELED);
	assert_int_equal(airunner_sqe_id(sqe.word[0]), 3);
	/* Another lap has the slot: not this submission's any more. */
	publish(&m, 4);
	assert_false(air_ring_cancel(&m.r, 0));
	assert_true(air_ring_fetch(&m.r, 4, &sqe));
	assert_int_equal(sqe.word[0], numbered(4).word[0]);
	tear_down(&m);
}

/*
 * A canceler against a consumer: whichever way it goes, the consumer has read
 * one whole submission, the original or the canceled one.
 */
struct race {
	struct memory m;
	uint64_t rounds;
	uint64_t published; /* rounds the producer has begun */
	uint64_t canceled;  /* rounds the canceler is done with */
};

static void *cancel_all(void *arg)
{
	struct race *race = arg;

	for (uint64_t i = 0; i < race->rounds; i++) {
		while (air_load(&race->published, ACQUIRE) < i + 1)
			sched_yield();
		air_ring_cancel(&race->m.r, i);
		air_store(&race->canceled, i + 1, RELEASE);
	}
	return NULL;
}

static void test_cancel_race(void **state)
{
	struct race race = { .rounds = 3000 };
	pthread_t thread;
	uint64_t i;

	set_up(&race.m, 2);
	pthread_create(&thread, NULL, cancel_all, &race);
	for (i = 0; i < race.rounds; i++) {
		struct air_sqe sqe = numbered(i);
		uint64_t w0 = airunner_sqe_head(AIRUNNER_OP_EXEC, 0, 0, 7);
		uint64_t index = 0;

		assert_true(air_ring_reserve(&race.m.r, race.m.collected, 1,
					     &index));
		sqe.word[0] = w0;
		air_ring_publish(&race.m.r, index, &sqe);
		air_store(&race.published, i + 1, RELEASE);
		assert_true(air_ring_fetch(&race.m.r, index, &sqe));
		if (sqe.word[0] != w0)
			assert_int_equal(sqe.word[0],
					 airunner_sqe_head(AIRUNNER_OP_CANCELED,
							   0, 0, 7));
		assert_int_equal(sqe.word[7], numbered(i).word[7]);
		while (air_load(&race.canceled, ACQUIRE) != i + 1)
			sched_yield();
		complete(&race.m, index);
		air_ring_collect(&race.m.r, race.m.collected, index);
	}
	pthread_join(thread, NULL);
	tear_down(&race.m);
}

/* ------------------------------------------------------------- recovery */

struct recovery {
	struct memory *m;
	unsigned int answered;
};

static void answer(void *arg, uint64_t index)
{
	struct recovery *rec = arg;
	struct air_cqe cqe = { .status = AIRUNNER_S_WORKER_DIED };

	air_ring_complete(&rec->m->r, index, &cqe);
	rec->answered++;
}

static uint64_t rnd(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

/* The same position, as far as a consumer can tell: modulo 256 laps. */
static uint64_t position(const struct air_ring *r, uint64_t index)
{
	return index & ((UINT64_C(256) << r->order) - 1);
}

/*
 * A ring in a random state, with holes where producers have reserved and not
 * published, is taken over twice; in between the holes stay or are filled.
 */
static void recover_once(uint64_t *seed)
{
	uint32_t order = 1 + (uint32_t)(rnd(seed) % 4);
	uint64_t entries = UINT64_C(1) << order;
	uint64_t base = rnd(seed) % (600 * entries);
	uint64_t tail, next, expect_answered = 0;
	bool hole[16] = { false };
	struct recovery rec = { 0 };
	struct memory m;
	int64_t got;

	if (rnd(seed) % 4 == 0)
		base += (UINT64_C(1) << 32) - 300 * entries;
	set_up(&m, order);
	jump(&m, base);
	rec.m = &m;
	tail = base + rnd(seed) % (entries + 1);
	m.r.ctrl->sq_tail = tail;
	/* The old worker got so far, in order, before the first hole. */
	next = base;
	for (uint64_t i = base; i < tail; i++) {
		hole[i - base] = rnd(seed) % 4 == 0;
		if (!hole[i - base])
			publish(&m, i);
	}
	while (next < tail && !hole[next - base] && rnd(seed) % 3) {
		complete(&m, next);
		next++;
	}
	for (uint64_t i = next; i < tail; i++)
		expect_answered += !hole[i - base];

	for (int round = 0; round < 2; round++) {
		while (next < tail && !hole[next - base])
			next++;
		rec.answered = 0;
		got = air_ring_recover(&m.r, answer, &rec);
		assert_true(got >= 0);
		assert_int_equal(rec.answered, expect_answered);
		assert_int_equal(position(&m.r, (uint64_t)got),
				 position(&m.r, next));
		expect_answered = 0;
		for (uint64_t i = base; i < tail; i++) {
			struct air_cqe cqe;

			assert_int_equal(air_ring_completed(&m.r, i, &cqe),
					 !hole[i - base]);
			if (hole[i - base] && rnd(seed) % 2) {
				hole[i - base] = false;
				publish(&m, i);
				expect_answered++;
			}
		}
	}
	tear_down(&m);
}

static void test_recover_random_states(void **state)
{
	uint64_t seed = 0x9e3779b97f4a7c15;

	for (int i = 0; i < 20000; i++)
		recover_once(&seed);
}

/* After a takeover with holes, the new consumer meets every index once. */
static void test_recover_then_go_on(void **state)
{
	struct memory m;
	struct recovery rec = { .m = &m };
	struct air_sqe sqe;
	int64_t next;

	set_up(&m, 2);
	jump(&m, 6);
	m.r.ctrl->sq_tail = 10;
	/* 7 is a hole; 8 and 9 lie in the next lap. */
	publish(&m, 6);
	publish(&m, 8);
	publish(&m, 9);
	next = air_ring_recover(&m.r, answer, &rec);
	assert_int_equal(rec.answered, 3);
	assert_int_equal(next, 7);
	assert_false(air_ring_fetch(&m.r, 7, &sqe));
	publish(&m, 7);
	assert_true(air_ring_fetch(&m.r, 7, &sqe));
	assert_false(air_ring_answered(&m.r, 7));
	complete(&m, 7);
	assert_true(air_ring_fetch(&m.r, 8, &sqe));
	assert_true(air_ring_answered(&m.r, 8));
	assert_true(air_ring_answered(&m.r, 9));
	assert_false(air_ring_answered(&m.r, 10));
	tear_down(&m);
}

/* Whatever stands in a ring, a takeover ends, and within it. */
static void test_recover_forged_laps(void **state)
{
	uint64_t seed = 0xdeadbeefcafe1234;
	unsigned int refused = 0;

	for (int i = 0; i < 5000; i++) {
		uint32_t order = 1 + (uint32_t)(rnd(&seed) % 5);
		struct recovery rec = { 0 };
		struct memory m;
		uint64_t *word;
		int64_t next;

		set_up(&m, order);
		rec.m = &m;
		word = (uint64_t *)((char *)m.region + AIRUNNER_SQ_OFFSET);
		for (uint64_t w = 0; w < UINT64_C(10) << order; w++)
			word[w] = rnd(&seed);
		next = air_ring_recover(&m.r, answer, &rec);
		assert_true(next < (INT64_C(256) << order));
		assert_true(next >= -1);
		assert_true(rec.answered <= 1u << order);
		refused += next < 0;
		tear_down(&m);
	}
	assert_true(refused > 4000);
}

/* --------------------------------------------------- several producers */

#define PRODUCERS 3
#define EACH	  4000

struct crowd {
	struct memory m;
	uint64_t claimed;
};

static void *produce(void *arg)
{
	struct crowd *c = arg;

	for (int n = 0; n < EACH; n++) {
		struct air_cqe cqe;
		uint64_t index = 0;

		while (!air_ring_reserve(&c->m.r, c->m.collected, 1, &index))
			sched_yield();
		publish(&c->m, index);
		while (!air_ring_completed(&c->m.r, index, &cqe))
			sched_yield();
		if (cqe.start != (index & AIRUNNER_START_MASK))
			return (void *)1;
		air_ring_collect(&c->m.r, c->m.collected, index);
	}
	return NULL;
}

static void test_many_producers(void **state)
{
	pthread_t thread[PRODUCERS];
	struct crowd c = { .claimed = 0 };

	set_up(&c.m, 2);
	for (int i = 0; i < PRODUCERS; i++)
		pthread_create(&thread[i], NULL, produce, &c);
	for (uint64_t i = 0; i < PRODUCERS * EACH; i++) {
		struct air_sqe sqe, want = numbered(i);

		while (!air_ring_fetch(&c.m.r, i, &sqe))
			sched_yield();
		assert_memory_equal(&sqe, &want, sizeof(sqe));
		complete(&c.m, i);
	}
	for (int i = 0; i < PRODUCERS; i++) {
		void *failed;

		pthread_join(thread[i], &failed);
		assert_null(failed);
	}
	assert_int_equal(c.m.r.ctrl->cq_head, PRODUCERS * EACH);
	tear_down(&c.m);
}

int main(void)
{
	const struct CMUnitTest alone[] = {
		cmocka_unit_test(test_layout),
		cmocka_unit_test(test_laps),
		cmocka_unit_test(test_zeroed_is_empty),
		cmocka_unit_test(test_words_arrive),
		cmocka_unit_test(test_torn_submission),
		cmocka_unit_test(test_torn_completion),
		cmocka_unit_test(test_completion_fields),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_collected_in_any_order),
		cmocka_unit_test(test_head_left_behind),
		cmocka_unit_test(test_reserve_one),
		cmocka_unit_test(test_lap_wraps),
		cmocka_unit_test(test_index_wraps_32_bits),
		cmocka_unit_test(test_index_wraps_64_bits),
		cmocka_unit_test(test_full_across_wrap),
		cmocka_unit_test(test_wakeup_flags),
		cmocka_unit_test(test_cancel),
		cmocka_unit_test(test_cancel_race),
		cmocka_unit_test(test_recover_random_states),
		cmocka_unit_test(test_recover_then_go_on),
		cmocka_unit_test(test_recover_forged_laps),
	};
	const struct CMUnitTest together[] = {
		cmocka_unit_test(test_many_producers),
	};
	int failed = 0;

	failed += cmocka_run_group_tests_name("ring, threads", together, NULL,
					      NULL);
	failed += cmocka_run_group_tests_name("ring", alone, NULL, NULL);
	failed += cmocka_run_group_tests_name("ring, single producer", alone,
					      single_producer, NULL);
	return failed;
}
