// SPDX-License-Identifier: MIT
/*
 * What clients and workers do wrong to each other: scribbled rings, memory
 * that is taken away, workers that died.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <cmocka.h>

#include "tests/unit/worker_client.h"

static struct air_worker *w;

static int set_up(void **state)
{
	fakes_reset();
	w = worker_start(NULL, NULL);
	return 0;
}

static int tear_down(void **state)
{
	worker_end(w);
	return 0;
}

static void wait_asleep(void)
{
	uint64_t end = air_now() + PATIENCE_NS;

	while (air_load(&w->box.sleep, ACQUIRE) == AIR_AWAKE) {
		assert_true(air_now() < end);
		sched_yield();
	}
}

/* A lap that no protocol leads to: the channel ends, and says so to all. */
static void test_impossible_lap(void **state)
{
	struct air_sqe nop = sqe_nop();
	struct air_cqe cqe;
	struct client c, other;
	uint64_t a = 0, b = 0;

	client_open(&c, w, NULL);
	client_open(&other, w, NULL);
	assert_int_equal(client_run(&c, &nop), AIR_OK);
	assert_true(air_ring_reserve(&c.ring, c.collected, 1, &a));
	assert_true(air_ring_reserve(&c.ring, c.collected, 1, &b));
	air_store(&c.ring.sq[a * AIRUNNER_SQE_WORDS + 3],
		  airunner_word(7, 99), RELEASE);
	air_worker_doorbell(c.ch);
	await(&c.died, 1);
	cqe = client_wait(&c, a);
	assert_int_equal(cqe.status, AIRUNNER_S_CHANNEL_DEAD);
	cqe = client_wait(&c, b);
	assert_int_equal(cqe.status, AIRUNNER_S_CHANNEL_DEAD);
	/* It stays dead, and goes on saying so: round and round. */
	for (int i = 0; i < 200; i++) {
		assert_int_equal(client_run(&c, &nop), AIR_CHANNEL_DEAD);
		assert_int_equal(client_run(&other, &nop), AIR_OK);
	}
	assert_int_equal(c.died, 1);
	client_close(&c, AIR_REMOVE_DRAIN);
	client_close(&other, AIR_REMOVE_DRAIN);
}

/* A producer that is at it, for long, is not a scribbler. */
static void test_half_published(void **state)
{
	struct air_sqe nop = sqe_nop();
	struct client c;
	uint64_t a = 0;

	client_open(&c, w, NULL);
	assert_true(air_ring_reserve(&c.ring, c.collected, 1, &a));
	for (int i = 7; i >= 1; i--) {
		air_store(&c.ring.sq[a * AIRUNNER_SQE_WORDS + (unsigned int)i],
			  airunner_word(0, airunner_lap(a, c.order)), RELAXED);
		air_worker_doorbell(c.ch);
		wait_asleep();
	}
	assert_false(client_done(&c, a, NULL));
	air_ring_publish(&c.ring, a, &nop);
	air_worker_doorbell(c.ch);
	assert_int_equal(client_wait(&c, a).status, AIRUNNER_S_OK);
	assert_int_equal(c.died, 0);
	client_close(&c, AIR_REMOVE_DRAIN);
}

struct scribbler {
	struct client *c;
	uint32_t stop;
	uint64_t seed;
};

/* Random words all over the rings, some of them with plausible laps. */
static void *scribble(void *arg)
{
	struct scribbler *s = arg;
	uint64_t words = airunner_arena_offset(s->c->order) / 8;
	uint64_t *region = s->c->region, x = s->seed;

	while (!air_load(&s->stop, RELAXED)) {
		uint64_t at, value;

		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		at = (x >> 20) % words;
		value = x >> 1 & 1 ? airunner_word(x >> 30 & 0xfff, x & 3) : x;
		air_store(&region[at], value, RELAXED);
		if ((x & 0x3f) == 0)
			air_worker_doorbell(s->c->ch);
	}
	return NULL;
}

/* It hurts only itself. */
static void test_scribbler(void **state)
{
	for (int round = 0; round < 30; round++) {
		struct client bad, good;
		struct scribbler s = { .c = &bad };
		struct airunner_desc d = desc_relu(64, AIRUNNER_EXEC_CPU);
		struct client_options o = { .order = 4, .arena = 4096 };
		struct air_sqe sqe;
		pthread_t thread;
		float *x, *y;

		client_open(&bad, w, &o);
		client_open(&good, w, NULL);
		assert_int_equal(client_desc(&bad, 1, &d, NULL), AIR_OK);
		assert_int_equal(client_desc(&good, 1, &d, NULL), AIR_OK);
		s.seed = 88172645463325252ull + (uint64_t)round;
		pthread_create(&thread, NULL, scribble, &s);
		sqe = sqe_relu(1, 0, good.arena, good.arena + 256);
		y = (float *)((char *)good.region + good.arena);
		x = y + 64;
		for (int i = 0; i < 500; i++) {
			for (int k = 0; k < 64; k++)
				x[k] = (float)((i + k) % 7 - 3);
			assert_int_equal(client_run(&good, &sqe), AIR_OK);
			for (int k = 0; k < 64; k++)
				assert_true(y[k] == (x[k] > 0 ? x[k] : 0));
		}
		air_store(&s.stop, 1, RELAXED);
		pthread_join(thread, NULL);
		client_close(&bad, round & 1 ? AIR_REMOVE_DRAIN :
					       AIR_REMOVE_DROP);
		client_close(&good, AIR_REMOVE_DRAIN);
	}
}

/* Killed (its memory was taken away): also what runs at that moment. */
static void test_kill(void **state)
{
	struct air_sqe nop = sqe_nop();
	struct client c;

	client_open(&c, w, NULL);
	assert_int_equal(client_run(&c, &nop), AIR_OK);
	air_wchannel_kill(c.ch, "the test says so");
	assert_int_equal(client_run(&c, &nop), AIR_CHANNEL_DEAD);
	await(&c.died, 1);
	assert_int_equal(client_run(&c, &nop), AIR_CHANNEL_DEAD);
	client_close(&c, AIR_REMOVE_DRAIN);
}

/* Killed while nobody had to ring for it: from then on somebody has to. */
static void test_kill_busy(void **state)
{
	struct air_worker_config config = { .spin_ns = ~0ull };
	struct client_options o = { .order = 3 };
	struct air_sqe nop = sqe_nop();
	struct air_worker *busy = worker_start(&config, NULL);

	for (int i = 0; i < 2; i++) {
		struct client c;

		o.asym = i;
		client_open(&c, busy, &o);
		assert_int_equal(client_run(&c, &nop), AIR_OK);
		assert_false(air_ring_must_wake(&c.ring, false));
		air_wchannel_kill(c.ch, "the test says so");
		await(&c.died, 1);
		assert_true(air_ring_must_wake(&c.ring, false));
		for (int k = 0; k < 100; k++)
			assert_int_equal(client_run(&c, &nop),
					 AIR_CHANNEL_DEAD);
		client_close(&c, AIR_REMOVE_DRAIN);
	}
	worker_end(busy);
}

static void test_kill_while_running(void **state)
{
	struct airunner_desc d = desc_relu(16, AIRUNNER_EXEC_CUDA_LAUNCH);
	struct air_sqe sqe, nop = sqe_nop();
	struct air_worker *fw;
	struct client c;
	uint64_t a, fence;

	fw = worker_start(NULL, fake_executors);
	client_open(&c, fw, NULL);
	assert_int_equal(client_desc(&c, 1, &d, NULL), AIR_OK);
	sqe = sqe_relu(1, 0, c.arena, c.arena);
	a = client_submit(&c, &sqe);
	fence = client_submit(&c, &nop);
	await(&fakes[0].started, 1);
	air_wchannel_kill(c.ch, "the test says so");
	fake_let(0, 1);
	assert_int_equal(client_wait(&c, a).status, AIRUNNER_S_CHANNEL_DEAD);
	assert_int_equal(client_wait(&c, fence).status,
			 AIRUNNER_S_CHANNEL_DEAD);
	client_close(&c, AIR_REMOVE_DRAIN);
	worker_end(fw);
}

/* --------------------------------------------------------------- recovery */

static void put(struct client *c, uint64_t index, const struct air_sqe *sqe)
{
	air_ring_publish(&c->ring, index, sqe);
}

static void answer_ok(struct client *c, uint64_t index)
{
	struct air_cqe cqe = { .status = AIRUNNER_S_OK };

	air_ring_complete(&c->ring, index, &cqe);
}

/* What was published before the first worker came is run by it. */
static void test_first_worker(void **state)
{
	struct client_options o = { .order = 4 };
	struct air_sqe nop = sqe_nop();
	struct client before = { .order = 4 }, c;
	size_t size;

	o.region = region_new(4, 65536, &size);
	air_ring_init(&before.ring, o.region, 4);
	for (uint64_t i = 0; i < 16; i++)
		put(&before, i, &nop);
	before.ring.ctrl->sq_tail = 16;
	client_open(&c, w, &o);
	for (uint64_t i = 0; i < 16; i++)
		assert_int_equal(client_wait(&c, i).status, AIRUNNER_S_OK);
	assert_int_equal(c.ring.ctrl->sq_epoch, 1);
	assert_int_equal(client_run(&c, &nop), AIR_OK);
	client_close(&c, AIR_REMOVE_DRAIN);
}

/*
 * The worker before died with submissions outstanding: they are answered, one
 * that was still being published is run when it comes, and one behind it that
 * was answered already is not run again.
 */
static void test_later_worker(void **state)
{
	struct client_options o = { .order = 3 };
	struct air_sqe nop = sqe_nop(), bad = sqe_head(200, 0);
	struct client c, old;
	size_t size;
	uint64_t base = 3 * 8;	/* lap 4 */

	o.region = region_new(3, 65536, &size);
	memset(&old, 0, sizeof(old));
	old.order = 3;
	air_ring_init(&old.ring, o.region, 3);
	for (uint64_t i = base - 8; i < base; i++) {
		put(&old, i, &nop);
		answer_ok(&old, i);
	}
	/* base: answered; +1, +2: outstanding; +3: reserved; +4: outstanding */
	put(&old, base, &nop);
	answer_ok(&old, base);
	put(&old, base + 1, &nop);
	put(&old, base + 2, &nop);
	put(&old, base + 4, &nop);
	old.ring.ctrl->sq_tail = base + 5;
	old.ring.ctrl->cq_head = base;
	old.ring.ctrl->sq_epoch = 1;

	client_open(&c, w, &o);
	assert_int_equal(c.ring.ctrl->sq_epoch, 2);
	assert_int_equal(client_wait(&c, base).status, AIRUNNER_S_OK);
	assert_int_equal(client_wait(&c, base + 1).status,
			 AIRUNNER_S_WORKER_DIED);
	assert_int_equal(client_wait(&c, base + 2).status,
			 AIRUNNER_S_WORKER_DIED);
	assert_int_equal(client_wait(&c, base + 4).status,
			 AIRUNNER_S_WORKER_DIED);
	assert_false(client_done(&c, base + 3, NULL));
	put(&c, base + 3, &bad);
	air_worker_doorbell(c.ch);
	assert_int_equal(client_wait(&c, base + 3).status,
			 AIRUNNER_S_BAD_OPCODE);
	for (int i = 0; i < 40; i++)
		assert_int_equal(client_run(&c, &nop), AIR_OK);
	client_close(&c, AIR_REMOVE_DRAIN);
}

/* Laps that make no sense: refused, with a sentence. */
static void test_scribbled_before(void **state)
{
	struct client_options o = { .order = 3 };
	struct client c, old = { .order = 3 };
	size_t size;

	o.region = region_new(3, 65536, &size);
	air_ring_init(&old.ring, o.region, 3);
	for (uint64_t i = 0; i < 16; i++)
		old.ring.cq[i] = airunner_word(0, (uint8_t)(i * 37));
	old.ring.ctrl->sq_epoch = 1;
	assert_int_equal(client_add(&c, w, &o), AIR_CHANNEL_DEAD);
	client_unmap(&c);
}

/* One worker after another on the same ring, under load. */
struct load {
	struct client *c;
	uint32_t stop;
	uint64_t ok, died;
};

static void *keep_submitting(void *arg)
{
	struct load *l = arg;
	struct air_sqe nop = sqe_nop();
	uint64_t index;

	while (!air_load(&l->stop, ACQUIRE)) {
		struct air_cqe cqe;

		if (!air_ring_reserve(&l->c->ring, l->c->collected, 1, &index))
			break;
		air_ring_publish(&l->c->ring, index, &nop);
		/* Nobody may be there to be rung: the next worker looks. */
		while (!client_done(l->c, index, &cqe))
			sched_yield();
		air_ring_collect(&l->c->ring, l->c->collected, index);
		if (cqe.status == AIRUNNER_S_OK)
			l->ok++;
		else if (cqe.status == AIRUNNER_S_WORKER_DIED)
			l->died++;
		else
			break;
	}
	return NULL;
}

static void test_workers_in_turn(void **state)
{
	struct air_worker_config config = { .spin_ns = ~0ull };
	struct client_options o = { .order = 3 };
	struct client c, again;
	struct load l = { .c = &c };
	pthread_t thread;
	size_t size;

	o.region = region_new(3, 65536, &size);
	client_open(&c, w, &o);
	pthread_create(&thread, NULL, keep_submitting, &l);
	air_worker_remove_channel(c.ch, AIR_REMOVE_DROP);
	await(&c.removed, 1);
	for (int i = 0; i < 100; i++) {
		struct air_worker *next = worker_start(&config, NULL);

		client_open(&again, next, &o);
		sched_yield();
		air_worker_remove_channel(again.ch, AIR_REMOVE_DROP);
		await(&again.removed, 1);
		free(again.collected);
		worker_end(next);
	}
	client_open(&again, w, &o);
	air_store(&l.stop, 1, RELEASE);
	/* whatever the last one is, it must be answered */
	while (1) {
		struct timespec soon;

		clock_gettime(CLOCK_REALTIME, &soon);
		soon.tv_sec++;
		if (!pthread_timedjoin_np(thread, NULL, &soon))
			break;
		air_worker_doorbell(again.ch);
	}
	assert_true(l.ok + l.died > 0);
	air_worker_remove_channel(again.ch, AIR_REMOVE_DRAIN);
	await(&again.removed, 1);
	free(again.collected);
	client_unmap(&c);
}

#define both(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		both(test_impossible_lap),
		both(test_half_published),
		both(test_scribbler),
		both(test_kill),
		both(test_kill_busy),
		both(test_kill_while_running),
		both(test_first_worker),
		both(test_later_worker),
		both(test_scribbled_before),
		both(test_workers_in_turn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
