// SPDX-License-Identifier: MIT
/*
 * Channels that an arbiter gives turns to: nothing is served outside a turn,
 * turns end when their time is used up, when the ring is empty, or when a
 * better class waits, and what was used is reported.
 */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>

#include <cmocka.h>

#include "libairunner/membarrier.h"
#include "tests/unit/worker_client.h"

static struct air_worker *w;
static struct client c;
static uint32_t best_prio;

struct turn {
	uint64_t quantum_ns;
	uint32_t priority;
};

static air_status give_turn_here(void *arg)
{
	struct turn *t = arg;

	air_wchannel_ready(c.ch, t->quantum_ns, t->priority);
	return AIR_OK;
}

static void give_turn(uint64_t quantum_ns)
{
	struct turn t = { quantum_ns, AIRUNNER_PRIO_NORMAL };

	assert_int_equal(air_worker_call(w, give_turn_here, &t), AIR_OK);
}

static int set_up(void **state)
{
	struct client_options o = {
		.order = 10,
		.turns = true,
		.best_prio = &best_prio,
		.priority = AIRUNNER_PRIO_NORMAL,
	};

	fakes_reset();
	best_prio = AIRUNNER_PRIO_CLASSES;
	w = worker_start(NULL, fake_executors);
	client_open(&c, w, &o);
	return 0;
}

static int tear_down(void **state)
{
	fake_let(0, 10000);
	client_close(&c, AIR_REMOVE_DRAIN);
	worker_end(w);
	return 0;
}

static uint64_t publish(const struct air_sqe *sqe)
{
	uint64_t index = 0;

	assert_true(air_ring_reserve(&c.ring, c.collected, 1, &index));
	air_ring_publish(&c.ring, index, sqe);
	return index;
}

static void test_idle_turn(void **state)
{
	struct air_sqe nop = sqe_nop();
	uint64_t index = 0;

	/* It begins asleep, and nothing is done before its turn. */
	assert_true(air_ring_must_wake(&c.ring, false));
	index = publish(&nop);
	usleep(20000);
	assert_false(client_done(&c, index, NULL));
	give_turn(1000000000);
	assert_int_equal(client_wait(&c, index).status, AIRUNNER_S_OK);
	await(&c.turns, 1);
	assert_int_equal(c.turn_flags, AIRUNNER_REPORT_IDLE);
	assert_int_equal(c.completed, 1);
	assert_true(c.device_ns > 0);
	assert_true(air_ring_must_wake(&c.ring, false));
	/* A turn without work ends too. */
	give_turn(1000000000);
	await(&c.turns, 2);
	assert_int_equal(c.turn_flags, AIRUNNER_REPORT_IDLE);
	assert_int_equal(c.completed, 1);
}

static air_status distrust_here(void *arg)
{
	c.ch->asym_client = true;
	return AIR_OK;
}

static air_status rests_here(void *arg)
{
	bool rests = c.ch->state == AIR_CH_IDLE && !c.ch->turn_end;

	return rests ? AIR_OK : AIR_BUSY;
}

static void until_it_rests(void)
{
	uint64_t end = air_now() + PATIENCE_NS;

	while (air_worker_call(w, rests_here, NULL) != AIR_OK) {
		assert_true(air_now() < end);
		sched_yield();
	}
}

/*
 * What its producer did not ring for is asked a turn for: if it comes before
 * the worker looks a second time, which this thread may be too late for.
 */
static void test_second_look(void **state)
{
	uint64_t end = air_now() + PATIENCE_NS;
	struct air_sqe nop = sqe_nop();
	bool asked = false;

	assert_int_equal(air_worker_call(w, distrust_here, NULL), AIR_OK);
	while (!asked) {
		uint64_t index;

		give_turn(1000000000);
		until_it_rests();
		assert_int_equal(c.turn_flags, AIRUNNER_REPORT_IDLE);
		index = publish(&nop);
		usleep(10 * AIR_LOOK_AGAIN_NS / 1000);
		until_it_rests();
		assert_false(client_done(&c, index, NULL));
		asked = c.turn_flags == AIRUNNER_REPORT_MORE;
		give_turn(1000000000);
		assert_int_equal(client_wait(&c, index).status, AIRUNNER_S_OK);
		assert_true(air_now() < end);
	}
}

/* The quantum is over: the rest waits for the next turn, unrung. */
static void test_quantum(void **state)
{
	struct airunner_desc d = desc_relu(4096, AIRUNNER_EXEC_CPU);
	struct air_sqe sqe = sqe_relu(1, 0, c.arena, c.arena + 16384);
	uint64_t offset = c.size - sizeof(struct airunner_desc_record);
	struct air_sqe create = sqe_head(AIRUNNER_OP_DESC_CREATE, 1);
	uint64_t index, first, turns = 0;

	create.word[1] = airunner_ref(0, offset);
	((struct airunner_desc_record *)((char *)c.region + offset))->desc = d;
	index = publish(&create);
	give_turn(1000000000);
	assert_int_equal(client_wait(&c, index).status, AIRUNNER_S_OK);
	await(&c.turns, 1);

	first = publish(&sqe);
	for (int i = 1; i < 1000; i++)
		index = publish(&sqe);
	do {
		uint32_t before = air_load(&c.turns, ACQUIRE);
		uint64_t done = c.completed, used = c.device_ns;

		give_turn(20000);
		await(&c.turns, before + 1);
		turns++;
		/* Each makes progress, and none takes (very much) longer. */
		if (c.turn_flags == AIRUNNER_REPORT_MORE) {
			assert_true(c.completed > done);
			assert_true(c.device_ns - used >= 20000);
			assert_false(air_ring_must_wake(&c.ring, false));
		}
	} while (c.turn_flags == AIRUNNER_REPORT_MORE);
	assert_true(turns > 3);
	assert_int_equal(c.completed, 1001);
	for (; first <= index; first++)
		assert_int_equal(client_wait(&c, first).status, AIRUNNER_S_OK);
}

/* A better class waits: the turn ends after the operator that runs. */
static void test_outranked(void **state)
{
	struct air_sqe nop = sqe_nop();
	uint64_t index, first = publish(&nop);

	for (int i = 1; i < 1000; i++)
		index = publish(&nop);
	air_store(&best_prio, AIRUNNER_PRIO_HIGH, RELEASE);
	for (uint32_t turn = 1; turn <= 10; turn++) {
		give_turn(1000000000);
		await(&c.turns, turn);
		assert_int_equal(c.turn_flags, AIRUNNER_REPORT_MORE);
		assert_int_equal(c.completed, turn);
	}
	/* Its equals do not outrank it. */
	air_store(&best_prio, AIRUNNER_PRIO_NORMAL, RELEASE);
	give_turn(1000000000);
	await(&c.turns, 11);
	assert_int_equal(c.turn_flags, AIRUNNER_REPORT_IDLE);
	for (; first <= index; first++)
		assert_int_equal(client_wait(&c, first).status, AIRUNNER_S_OK);
}

/* Work that outlives the turn on a device is answered, and accounted later. */
static void test_async_beyond_turn(void **state)
{
	struct airunner_desc d = desc_relu(16, AIRUNNER_EXEC_CUDA_LAUNCH);
	uint64_t offset = c.size - sizeof(struct airunner_desc_record);
	struct air_sqe create = sqe_head(AIRUNNER_OP_DESC_CREATE, 10);
	struct air_sqe sqe = sqe_relu(10, 0, c.arena, c.arena);
	uint64_t a, b, used;

	create.word[1] = airunner_ref(0, offset);
	((struct airunner_desc_record *)((char *)c.region + offset))->desc = d;
	a = publish(&create);
	b = publish(&sqe);
	give_turn(1000000000);
	assert_int_equal(client_wait(&c, a).status, AIRUNNER_S_OK);
	await(&c.turns, 1);
	assert_int_equal(c.turn_flags, AIRUNNER_REPORT_IDLE);
	assert_false(client_done(&c, b, NULL));
	used = c.device_ns;
	usleep(5000);
	fake_let(0, 1);
	assert_int_equal(client_wait(&c, b).status, AIRUNNER_S_OK);
	give_turn(1000000000);
	await(&c.turns, 2);
	assert_true(c.device_ns - used >= 5000000);
	assert_int_equal(c.completed, 2);
}

/* Removal does not wait for a turn that never comes. */
static void test_removed_without_turn(void **state)
{
	struct air_sqe nop = sqe_nop();
	uint64_t index = publish(&nop);

	air_worker_remove_channel(c.ch, AIR_REMOVE_DRAIN);
	await(&c.removed, 1);
	assert_int_equal(client_wait(&c, index).status, AIRUNNER_S_OK);
	client_unmap(&c);
	worker_end(w);
}

#define both(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		both(test_idle_turn),
		both(test_second_look),
		both(test_quantum),
		both(test_outranked),
		both(test_async_beyond_turn),
		cmocka_unit_test_setup(test_removed_without_turn, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
