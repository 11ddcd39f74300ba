// SPDX-License-Identifier: MIT
/*
 * The worker's loop: submissions are answered, once each; it sleeps and is
 * woken; it starts, is called from other threads, and stops.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "libairunner/membarrier.h"
#include "tests/unit/worker_client.h"

static void test_nop(void **state)
{
	struct air_worker *w = worker_start(NULL, NULL);
	struct air_sqe nop = sqe_nop();
	uint64_t before, now;
	struct air_cqe cqe;
	struct client c;

	client_open(&c, w, NULL);
	before = air_now();
	cqe = client_wait(&c, client_submit(&c, &nop));
	now = air_now();
	assert_int_equal(cqe.status, AIRUNNER_S_OK);
	assert_int_equal(cqe.detail, 0);
	/* The worker may have found it while it was being published. */
	assert_true(cqe.start + 1000000 >= (before & AIRUNNER_START_MASK));
	assert_true(cqe.start <= (now & AIRUNNER_START_MASK));
	assert_true(cqe.duration <= now - before + 1000000);
	client_close(&c, AIR_REMOVE_DRAIN);
	worker_end(w);
}

/* Every index of the smallest ring gets its answer, through the lap's wrap. */
static void test_laps(void **state)
{
	struct air_worker *w = worker_start(NULL, NULL);
	struct client_options o = { .order = 1 };
	struct air_sqe nop = sqe_nop();
	struct client c;

	client_open(&c, w, &o);
	for (uint64_t i = 0; i < 3 * 512; i += 2) {
		uint64_t a = client_submit(&c, &nop);
		uint64_t b = client_submit(&c, &nop);

		assert_int_equal(a, i);
		assert_int_equal(b, i + 1);
		assert_int_equal(client_wait(&c, a).status, AIRUNNER_S_OK);
		assert_int_equal(client_wait(&c, b).status, AIRUNNER_S_OK);
	}
	client_close(&c, AIR_REMOVE_DRAIN);
	worker_end(w);
}

/*
 * Both sides sleep as often as they can, with and without the asymmetric
 * barrier: no wake-up is lost.
 */
static void ping_pong(bool asym)
{
	struct air_worker_config config = { .spin_ns = 1 };
	struct air_worker *w = worker_start(&config, NULL);
	struct client_options o = { .asym = asym };
	struct air_sqe nop = sqe_nop();
	struct client c;

	if (asym)
		assert_true(air_membarrier_register());
	client_open(&c, w, &o);
	for (int i = 0; i < 5000; i++) {
		uint64_t index = client_submit(&c, &nop);

		assert_int_equal(client_sleep(&c, index).status, AIRUNNER_S_OK);
	}
	client_close(&c, AIR_REMOVE_DRAIN);
	worker_end(w);
}

static void test_sleep_fence(void **state)
{
	ping_pong(false);
}

static void test_sleep_asym(void **state)
{
	ping_pong(true);
}

static air_status refuse_barriers(void *arg)
{
	((struct air_worker *)arg)->can_barrier = false;
	return AIR_OK;
}

/*
 * Where the barrier is refused or passes a producer over, it may not ring
 * although the worker sleeps: that looks a second time. As nobody rings here, a
 * submission that comes between its two looks is found by the second alone; and
 * one that comes too late for both, as this thread was not running, not at all.
 */
static void second_look(bool refused)
{
	struct air_worker_config config = { .spin_ns = 1 };
	struct air_worker *w = worker_start(&config, NULL);
	struct client_options o = { .asym = true };
	uint64_t end = air_now() + PATIENCE_NS;
	struct air_sqe nop = sqe_nop();
	unsigned int found = 0;
	struct client c;

	if (refused)
		assert_int_equal(air_worker_call(w, refuse_barriers, w),
				 AIR_OK);
	client_open(&c, w, &o);
	while (found < 20) {
		uint64_t index = 0, slept;

		assert_int_equal(client_run(&c, &nop), AIR_OK);
		while (!air_ring_must_wake(&c.ring, false))
			sched_yield();
		slept = air_now();
		while (air_now() < slept + AIR_LOOK_AGAIN_NS / 4)
			sched_yield();
		assert_true(air_ring_reserve(&c.ring, c.collected, 1, &index));
		air_ring_publish(&c.ring, index, &nop);
		usleep(10 * AIR_LOOK_AGAIN_NS / 1000);
		found += client_done(&c, index, NULL);
		air_worker_doorbell(c.ch);
		assert_int_equal(client_wait(&c, index).status, AIRUNNER_S_OK);
		assert_true(air_now() < end);
	}
	client_close(&c, AIR_REMOVE_DRAIN);
	worker_end(w);
}

static void test_second_look(void **state)
{
	second_look(false);
}

static void test_no_membarrier(void **state)
{
	second_look(true);
}

static uint64_t cpu_time(pthread_t thread)
{
	struct timespec ts;
	clockid_t clock;

	assert_int_equal(pthread_getcpuclockid(thread, &clock), 0);
	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

#define MANY 1000

/* A thousand idle channels cost nothing, and one among them is found. */
static void test_idle_costs_nothing(void **state)
{
	struct air_worker *w = worker_start(NULL, NULL);
	struct client_options o = { .order = 1, .arena = 1024 };
	static struct client many[MANY];
	struct air_sqe nop = sqe_nop();
	uint64_t before, end;

	for (int i = 0; i < MANY; i++) {
		client_open(&many[i], w, &o);
		assert_int_equal(client_run(&many[i], &nop), AIR_OK);
	}
	end = air_now() + PATIENCE_NS;
	while (air_load(&w->box.sleep, ACQUIRE) == AIR_AWAKE) {
		assert_true(air_now() < end);
		sched_yield();
	}
	before = cpu_time(w->thread);
	usleep(300000);
	assert_true(cpu_time(w->thread) - before < 3000000);

	assert_int_equal(client_run(&many[MANY / 2], &nop), AIR_OK);
	for (int i = 0; i < MANY; i++)
		client_close(&many[i], AIR_REMOVE_DRAIN);
	worker_end(w);
}

#define PRODUCERS 4
#define EACH	  5000

struct producer {
	struct client *c;
	uint32_t ok;
};

static void *produce(void *arg)
{
	struct producer *p = arg;
	struct air_sqe nop = sqe_nop();

	for (int i = 0; i < EACH; i++)
		if (client_run(p->c, &nop) == AIR_OK)
			p->ok++;
	return NULL;
}

static void test_producers(void **state)
{
	struct air_worker *w = worker_start(NULL, NULL);
	struct client_options o = { .order = 3 };
	struct producer p[PRODUCERS];
	pthread_t thread[PRODUCERS];
	struct client c;

	client_open(&c, w, &o);
	for (int i = 0; i < PRODUCERS; i++) {
		p[i] = (struct producer){ .c = &c };
		pthread_create(&thread[i], NULL, produce, &p[i]);
	}
	for (int i = 0; i < PRODUCERS; i++) {
		pthread_join(thread[i], NULL);
		assert_int_equal(p[i].ok, EACH);
	}
	client_close(&c, AIR_REMOVE_DRAIN);
	worker_end(w);
}

struct flood {
	struct client *c;
	uint32_t stop;
	uint64_t done;
};

static void *flood(void *arg)
{
	struct flood *f = arg;
	struct air_sqe sqe = sqe_relu(1, 0, f->c->arena, f->c->arena);
	uint64_t next = 0, head = 0;

	while (!air_load(&f->stop, RELAXED)) {
		while (client_try_submit(f->c, &sqe, &next))
			;
		while (client_done(f->c, head, NULL)) {
			air_ring_collect(&f->c->ring, f->c->collected, head);
			head++;
			air_store(&f->done, f->done + 1, RELAXED);
		}
		sched_yield();
	}
	for (; head <= next; head++)
		client_wait(f->c, head);
	return NULL;
}

/* One channel that never runs dry does not keep another waiting. */
static void test_flood(void **state)
{
	struct air_worker *w = worker_start(NULL, NULL);
	struct client_options o = { .order = 10 };
	struct airunner_desc d = desc_relu(1024, AIRUNNER_EXEC_CPU);
	struct air_sqe nop = sqe_nop();
	struct client busy, quiet;
	struct flood f = { .c = &busy };
	pthread_t thread;

	client_open(&busy, w, &o);
	client_open(&quiet, w, NULL);
	assert_int_equal(client_desc(&busy, 1, &d, NULL), AIR_OK);
	pthread_create(&thread, NULL, flood, &f);
	/* on a loaded machine it may take long to begin */
	while (!air_load(&f.done, RELAXED))
		sched_yield();
	for (int i = 0; i < 200; i++)
		assert_int_equal(client_run(&quiet, &nop), AIR_OK);
	air_store(&f.stop, 1, RELAXED);
	pthread_join(thread, NULL);
	client_close(&busy, AIR_REMOVE_DRAIN);
	client_close(&quiet, AIR_REMOVE_DRAIN);
	worker_end(w);
}

/* What was published before a stop is answered before it is over. */
static void test_stop_drains(void **state)
{
	struct client_options o = { .order = 8 };
	struct air_sqe nop = sqe_nop();

	for (int round = 0; round < 20; round++) {
		struct air_worker *w = worker_start(NULL, NULL);
		struct air_cqe cqe;
		struct client c;
		uint64_t index;

		client_open(&c, w, &o);
		for (int i = 0; i < 256; i++)
			assert_true(client_try_submit(&c, &nop, &index));
		air_worker_stop(w);
		assert_int_equal(c.removed, 1);
		for (uint64_t i = 0; i < 256; i++) {
			assert_true(client_done(&c, i, &cqe));
			assert_int_equal(cqe.status, AIRUNNER_S_OK);
		}
		client_unmap(&c);
		air_worker_destroy(w);
	}
}

static air_status forty_two(void *arg)
{
	*(pthread_t *)arg = pthread_self();
	return AIR_QUOTA;
}

static void test_call(void **state)
{
	struct air_worker *w = worker_start(NULL, NULL);
	pthread_t where = pthread_self();

	assert_int_equal(air_worker_call(w, forty_two, &where), AIR_QUOTA);
	assert_true(pthread_equal(where, w->thread));
	air_worker_stop(w);
	assert_int_equal(air_worker_call(w, forty_two, &where), AIR_BUSY);
	air_worker_destroy(w);
}

/* The worker on the caller's thread, stopped as a signal handler would. */
static void *stop_soon(void *arg)
{
	struct air_worker *w = arg;

	while (air_load(&w->box.sleep, ACQUIRE) == AIR_AWAKE)
		sched_yield();
	air_worker_stop_async(w);
	return NULL;
}

static void test_run_here(void **state)
{
	struct air_error e = { "" };
	struct air_worker *w;
	pthread_t thread;

	assert_int_equal(air_worker_create(NULL, &w, &e), AIR_OK);
	pthread_create(&thread, NULL, stop_soon, w);
	assert_int_equal(air_worker_run(w, &e), AIR_OK);
	pthread_join(thread, NULL);
	air_worker_destroy(w);
}

/* A source is asked when its descriptor is readable, and when it says so. */
struct source {
	struct air_source s;
	int fds[2];
	uint32_t begun, served, quiesced, ended;
};

static air_status source_begin(struct air_source *s, struct air_worker *w,
			       struct air_error *e)
{
	struct source *src = (struct source *)s;

	src->begun++;
	return AIR_OK;
}

static int source_fd(struct air_source *s)
{
	return ((struct source *)s)->fds[0];
}

static void source_serve(struct air_source *s)
{
	struct source *src = (struct source *)s;
	char byte;

	while (read(src->fds[0], &byte, 1) == 1)
		__atomic_fetch_add(&src->served, 1, __ATOMIC_RELEASE);
}

static void source_quiesce(struct air_source *s)
{
	((struct source *)s)->quiesced++;
}

static void source_end(struct air_source *s)
{
	((struct source *)s)->ended++;
}

static const struct air_source_ops source_ops = {
	.begin = source_begin,
	.fd = source_fd,
	.serve = source_serve,
	.quiesce = source_quiesce,
	.end = source_end,
};

static void test_source(void **state)
{
	struct source src = { .s.ops = &source_ops };
	struct air_error e = { "" };
	struct air_worker *w;
	struct air_sqe nop = sqe_nop();
	struct client c;

	assert_int_equal(pipe2(src.fds, O_NONBLOCK), 0);
	assert_int_equal(air_worker_create(NULL, &w, &e), AIR_OK);
	air_worker_add_source(w, &src.s);
	assert_int_equal(air_worker_start(w, &e), AIR_OK);
	assert_int_equal(src.begun, 1);
	client_open(&c, w, NULL);
	for (uint32_t i = 1; i <= 50; i++) {
		assert_int_equal(write(src.fds[1], "x", 1), 1);
		await(&src.served, i);
		/* and a doorbell reaches a worker that sleeps in poll */
		assert_int_equal(client_run(&c, &nop), AIR_OK);
	}
	client_close(&c, AIR_REMOVE_DRAIN);
	air_worker_stop(w);
	assert_int_equal(src.quiesced, 1);
	assert_int_equal(src.ended, 1);
	air_worker_destroy(w);
	close(src.fds[0]);
	close(src.fds[1]);
}

static void test_bad_configs(void **state)
{
	struct air_worker_config config = { .executors = "cpu,abacus" };
	struct air_backend_caps caps = { .size = sizeof(caps) };
	struct air_error e = { "" };
	struct air_worker *w;
	struct client_options o = { .order = AIRUNNER_MAX_ORDER + 1 };
	struct client c;

	assert_int_equal(air_worker_create(&config, &w, &e), AIR_OK);
	assert_int_equal(air_worker_start(w, &e), AIR_BAD_ARGUMENT);
	assert_non_null(strstr(e.text, "abacus"));
	air_worker_destroy(w);

	config.executors = ",";
	assert_int_equal(air_worker_create(&config, &w, &e), AIR_OK);
	assert_int_equal(air_worker_start(w, &e), AIR_BAD_ARGUMENT);
	air_worker_destroy(w);

	/* A plug-in that is asked for must be there; else it is no matter. */
	setenv("AIRUNNER_PLUGIN_DIR", "/nonexistent", 1);
	config.executors = "cpu,cuda";
	assert_int_equal(air_worker_create(&config, &w, &e), AIR_OK);
	assert_int_equal(air_worker_start(w, &e), AIR_NO_DEVICE);
	assert_non_null(strstr(e.text, "/nonexistent/libairunner-cuda.so"));
	air_worker_destroy(w);
	w = worker_start(NULL, NULL);
	assert_int_equal(air_worker_caps(w, AIR_EXEC_CUDA_LAUNCH, &caps),
			 AIR_OK);
	assert_int_equal(caps.present, 0);
	assert_non_null(strstr(caps.name, "/nonexistent"));
	worker_end(w);
	unsetenv("AIRUNNER_PLUGIN_DIR");

	/* The environment's list counts where the program gives none. */
	setenv("AIRUNNER_EXECUTORS", "abacus", 1);
	config.executors = NULL;
	assert_int_equal(air_worker_create(&config, &w, &e), AIR_OK);
	assert_int_equal(air_worker_start(w, &e), AIR_BAD_ARGUMENT);
	air_worker_destroy(w);
	unsetenv("AIRUNNER_EXECUTORS");

	config.executors = "cpu";
	w = worker_start(&config, NULL);
	assert_int_equal(air_worker_caps(w, AIR_EXEC_CPU, &caps), AIR_OK);
	assert_int_equal(caps.present, 1);
	assert_int_equal(caps.host_buffers, 1);
	assert_true(caps.ops & (1ull << AIR_OP_relu));
	assert_int_equal(air_worker_caps(w, AIR_EXEC_CUDA_LAUNCH, &caps),
			 AIR_OK);
	assert_int_equal(caps.present, 0);
	assert_true(caps.name[0]);
	assert_int_equal(air_worker_caps(w, AIR_EXEC_ANY, &caps),
			 AIR_BAD_ARGUMENT);
	assert_int_equal(air_worker_caps(w, (air_executor)4, &caps),
			 AIR_BAD_ARGUMENT);
	assert_int_equal(client_add(&c, w, &o), AIR_BAD_ARGUMENT);
	client_unmap(&c);
	worker_end(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nop),
		cmocka_unit_test(test_laps),
		cmocka_unit_test(test_sleep_fence),
		cmocka_unit_test(test_sleep_asym),
		cmocka_unit_test(test_no_membarrier),
		cmocka_unit_test(test_second_look),
		cmocka_unit_test(test_idle_costs_nothing),
		cmocka_unit_test(test_producers),
		cmocka_unit_test(test_flood),
		cmocka_unit_test(test_stop_drains),
		cmocka_unit_test(test_call),
		cmocka_unit_test(test_run_here),
		cmocka_unit_test(test_source),
		cmocka_unit_test(test_bad_configs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
