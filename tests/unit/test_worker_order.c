// SPDX-License-Identifier: MIT
/*
 * A channel's order, with executors that finish when the test lets them: in
 * order, UNORDERED, BARRIER, two executors in one channel, time-outs, cancel,
 * fences and releases that wait for earlier work, failures.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/worker_client.h"

static struct air_worker *w;
static struct client c;

/* Descriptors 10 and 11 are on the two fakes, 1 on the CPU. */
static void open_with(const struct air_worker_config *config)
{
	w = worker_start(config, fake_executors);
	client_open(&c, w, NULL);
	for (uint32_t i = 0; i < FAKES; i++) {
		struct airunner_desc d =
			desc_relu(16, AIRUNNER_EXEC_CUDA_LAUNCH + i);

		assert_int_equal(client_desc(&c, 10 + i, &d, NULL), AIR_OK);
	}
}

static int set_up(void **state)
{
	fakes_reset();
	open_with(NULL);
	return 0;
}

static int tear_down(void **state)
{
	for (uint32_t i = 0; i < FAKES; i++)
		fake_let(i, 10000);
	client_close(&c, AIR_REMOVE_DRAIN);
	for (uint32_t i = 0; i < FAKES; i++) {
		assert_int_equal(fakes[i].plans, 0);
		assert_int_equal(fakes[i].buffers, 0);
		assert_int_equal(fakes[i].channels, 0);
		assert_int_equal(fakes[i].modules, 0);
	}
	worker_end(w);
	return 0;
}

static uint64_t submit(unsigned int fake, uint32_t flags)
{
	struct air_sqe sqe = sqe_relu(10 + fake, 0, c.arena, c.arena + 64);

	sqe.word[0] |= (uint64_t)flags << 8;
	return client_submit(&c, &sqe);
}

static uint64_t submit_nop(uint32_t flags)
{
	struct air_sqe sqe = sqe_nop();

	sqe.word[0] |= (uint64_t)flags << 8;
	return client_submit(&c, &sqe);
}

static void settle(void)
{
	/* Everything said so far has been heard when this comes back. */
	struct air_wbuffer_config none = { 0 };

	for (int i = 0; i < 20; i++)
		air_worker_add_buffer(c.ch, 0xffff, &none, NULL);
}

static void expect_ok(uint64_t index)
{
	assert_int_equal(client_wait(&c, index).status, AIRUNNER_S_OK);
}

/* One executor keeps its own order: all is handed over at once. */
static void test_in_order(void **state)
{
	uint64_t index[20];

	for (int i = 0; i < 20; i++)
		index[i] = submit(0, 0);
	await(&fakes[0].started, 20);
	settle();
	assert_false(client_done(&c, index[0], NULL));
	for (int i = 0; i < 20; i++)
		assert_int_equal(fake_runs[i].index, index[i]);
	fake_let(0, 20);
	for (int i = 0; i < 20; i++)
		expect_ok(index[i]);
}

/* Another executor waits for the first, and the first for it. */
static void test_two_executors(void **state)
{
	uint64_t index[6];

	for (int i = 0; i < 6; i++)
		index[i] = submit(i / 2 % 2, 0);
	await(&fakes[0].started, 2);
	settle();
	assert_int_equal(air_load(&fake_n_runs, ACQUIRE), 2);
	fake_let(0, 1);
	expect_ok(index[0]);
	settle();
	assert_int_equal(air_load(&fake_n_runs, ACQUIRE), 2);
	fake_let(0, 1);
	await(&fakes[1].started, 2);
	settle();
	assert_int_equal(air_load(&fake_n_runs, ACQUIRE), 4);
	fake_let(1, 2);
	await(&fakes[0].started, 4);
	fake_let(0, 2);
	for (int i = 1; i < 6; i++)
		expect_ok(index[i]);
	for (int i = 0; i < 6; i++) {
		assert_int_equal(fake_runs[i].index, index[i]);
		assert_int_equal(fake_runs[i].beside[!fake_runs[i].fake], 0);
	}
}

/* The CPU, which is at once, waits likewise. */
static void test_cpu_between(void **state)
{
	struct airunner_desc d = desc_relu(16, AIRUNNER_EXEC_CPU);
	struct air_sqe sqe = sqe_relu(1, 0, c.arena, c.arena + 64);
	uint64_t first, second;

	assert_int_equal(client_desc(&c, 1, &d, NULL), AIR_OK);
	first = submit(0, 0);
	second = client_submit(&c, &sqe);
	await(&fakes[0].started, 1);
	settle();
	assert_false(client_done(&c, second, NULL));
	fake_let(0, 1);
	expect_ok(first);
	expect_ok(second);
	/* UNORDERED does not wait. */
	first = submit(0, 0);
	sqe.word[0] |= AIRUNNER_SQE_UNORDERED << 8;
	expect_ok(client_submit(&c, &sqe));
	assert_false(client_done(&c, first, NULL));
	fake_let(0, 1);
	expect_ok(first);
}

static void test_unordered(void **state)
{
	uint64_t a, b, d;

	fakes[1].newest_first = true;
	a = submit(0, 0);
	b = submit(1, AIRUNNER_SQE_UNORDERED);
	d = submit(1, AIRUNNER_SQE_UNORDERED);
	await(&fakes[1].started, 2);
	fake_let(1, 1);
	expect_ok(d);
	assert_false(client_done(&c, b, NULL));
	assert_false(client_done(&c, a, NULL));
	fake_let(1, 1);
	expect_ok(b);
	fake_let(0, 1);
	expect_ok(a);
}

/* In order after unordered: waits for all of it that is elsewhere. */
static void test_order_after_unordered(void **state)
{
	uint64_t a = submit(0, AIRUNNER_SQE_UNORDERED);
	uint64_t b = submit(1, AIRUNNER_SQE_UNORDERED);
	uint64_t d = submit(0, 0);

	await(&fakes[1].started, 1);
	settle();
	assert_int_equal(air_load(&fakes[0].started, ACQUIRE), 1);
	fake_let(1, 1);
	expect_ok(b);
	await(&fakes[0].started, 2);
	fake_let(0, 2);
	expect_ok(a);
	expect_ok(d);
}

static void test_barrier(void **state)
{
	uint64_t a = submit(0, 0);
	uint64_t b = submit(0, AIRUNNER_SQE_UNORDERED);
	uint64_t d = submit(0, AIRUNNER_SQE_BARRIER);
	uint64_t e = submit(0, AIRUNNER_SQE_UNORDERED);

	await(&fakes[0].started, 2);
	settle();
	assert_int_equal(air_load(&fakes[0].started, ACQUIRE), 2);
	fake_let(0, 1);
	expect_ok(a);
	settle();
	assert_int_equal(air_load(&fakes[0].started, ACQUIRE), 2);
	fake_let(0, 1);
	expect_ok(b);
	await(&fakes[0].started, 4);
	assert_int_equal(fake_runs[2].index, d);
	assert_int_equal(fake_runs[2].beside[0], 0);
	fake_let(0, 2);
	expect_ok(d);
	expect_ok(e);
	/* Both flags: the barrier counts. */
	a = submit(0, 0);
	b = submit(1, AIRUNNER_SQE_UNORDERED | AIRUNNER_SQE_BARRIER);
	await(&fakes[0].started, 5);
	settle();
	assert_int_equal(air_load(&fakes[1].started, ACQUIRE), 0);
	fake_let(0, 1);
	fake_let(1, 1);
	expect_ok(a);
	expect_ok(b);
}

/* A NOP ends when what is before it has, without holding up what follows. */
static void test_nop_is_a_fence(void **state)
{
	uint64_t a = submit(0, 0);
	uint64_t nop = submit_nop(0);
	uint64_t free_nop = submit_nop(AIRUNNER_SQE_UNORDERED);
	uint64_t b = submit(0, 0);

	await(&fakes[0].started, 2);
	expect_ok(free_nop);
	settle();
	assert_false(client_done(&c, nop, NULL));
	fake_let(0, 1);
	expect_ok(a);
	expect_ok(nop);
	assert_false(client_done(&c, b, NULL));
	fake_let(0, 1);
	expect_ok(b);
}

/*
 * Released while in use: the handle is gone at once, the memory and the answer
 * when the last user has ended. Likewise descriptors.
 */
static void test_release_in_use(void **state)
{
	static float data[64];
	struct air_wbuffer_config config = {
		.host = data,
		.size = sizeof(data),
		.memory = AIR_HOST,
	};
	struct air_sqe use = sqe_relu(10, 3, 0, 64);
	struct air_sqe release = sqe_head(AIRUNNER_OP_BUFFER_RELEASE, 3);
	struct air_sqe destroy = sqe_head(AIRUNNER_OP_DESC_DESTROY, 10);
	uint64_t a, b, d, e;
	struct air_error err;
	struct air_cqe cqe;
	uint32_t plans;

	assert_int_equal(air_worker_add_buffer(c.ch, 3, &config, &err), AIR_OK);
	plans = air_load(&fakes[0].plans, ACQUIRE);
	a = client_submit(&c, &use);
	b = client_submit(&c, &release);
	d = client_submit(&c, &destroy);
	e = client_submit(&c, &use);
	cqe = client_wait(&c, e);
	assert_int_equal(cqe.status, AIRUNNER_S_BAD_ID);
	settle();
	assert_int_equal(air_load(&c.gone, ACQUIRE), 0);
	assert_int_equal(air_load(&fakes[0].plans, ACQUIRE), plans);
	assert_false(client_done(&c, b, NULL));
	assert_false(client_done(&c, d, NULL));
	/* The handle may be given anew meanwhile. */
	assert_int_equal(air_worker_add_buffer(c.ch, 3, &config, &err), AIR_OK);
	fake_let(0, 1);
	expect_ok(a);
	expect_ok(b);
	expect_ok(d);
	assert_int_equal(air_load(&c.gone, ACQUIRE), 1);
	assert_int_equal(air_load(&fakes[0].plans, ACQUIRE), plans - 1);
}

/* Not started in time: only the one that waits for its turn is given up. */
static void test_timeout(void **state)
{
	uint64_t a = submit(0, 0), b, d;
	struct air_sqe sqe = sqe_relu(11, 0, c.arena, c.arena + 64);
	struct air_cqe cqe;
	uint64_t before;

	sqe.word[0] |= 30ull << 16;
	before = air_now();
	b = client_submit(&c, &sqe);
	d = submit(0, 0);
	cqe = client_wait(&c, b);
	assert_int_equal(cqe.status, AIRUNNER_S_TIMEOUT);
	assert_true(air_now() - before >= 30000000);
	assert_false(client_done(&c, a, NULL));
	await(&fakes[0].started, 2);
	fake_let(0, 2);
	expect_ok(a);
	expect_ok(d);
	assert_int_equal(air_load(&fakes[1].started, ACQUIRE), 0);
	/* In time, a time-out changes nothing. */
	sqe.word[0] = airunner_sqe_head(AIRUNNER_OP_EXEC, 0, 20000, 11);
	fake_let(1, 1);
	expect_ok(client_submit(&c, &sqe));
}

static air_status give_fd_here(void *arg)
{
	fakes[0].fd = eventfd(0, EFD_NONBLOCK);
	return AIR_OK;
}

static air_status take_fd_here(void *arg)
{
	close(fakes[0].fd);
	fakes[0].fd = -1;
	return AIR_OK;
}

/* With a descriptor, the worker need not poll the executor. */
static void give_fd(void)
{
	assert_int_equal(air_worker_call(w, give_fd_here, NULL), AIR_OK);
}

static void take_fd(void)
{
	assert_int_equal(air_worker_call(w, take_fd_here, NULL), AIR_OK);
}

/* A worker that waits for a deadline sleeps meanwhile, and wakes for it. */
static void test_timeout_asleep(void **state)
{
	struct air_sqe sqe = sqe_relu(11, 0, c.arena, c.arena + 64);
	uint64_t a, b;

	give_fd();
	a = submit(0, 0);
	sqe.word[0] |= 20ull << 16;
	b = client_submit(&c, &sqe);
	assert_int_equal(client_wait(&c, b).status, AIRUNNER_S_TIMEOUT);
	fake_let(0, 1);
	expect_ok(a);
	take_fd();
}

/* Executors with a descriptor let the worker sleep while they work. */
static void test_executor_wakes(void **state)
{
	give_fd();
	for (int i = 0; i < 200; i++) {
		uint64_t a = submit(0, 0);
		uint64_t end = air_now() + PATIENCE_NS;

		while (air_load(&w->box.sleep, ACQUIRE) == AIR_AWAKE)
			assert_true(air_now() < end);
		fake_let(0, 1);
		assert_int_equal(client_sleep(&c, a).status, AIRUNNER_S_OK);
	}
	take_fd();
}

/* Cancelled before it was taken, and what is behind it is not harmed. */
static void test_cancel(void **state)
{
	uint64_t a = submit(0, 0);
	uint64_t barrier = submit(1, 0);
	uint64_t x = submit(0, 0);
	uint64_t last = submit_nop(0);

	await(&fakes[0].started, 1);
	settle();
	assert_true(air_ring_cancel(&c.ring, x));
	fake_let(0, 1);
	fake_let(1, 1);
	expect_ok(a);
	expect_ok(barrier);
	assert_int_equal(client_wait(&c, x).status, AIRUNNER_S_CANCELED);
	expect_ok(last);
	assert_int_equal(air_load(&fake_n_runs, ACQUIRE), 2);
	/* Too late: it has been taken, and ends as it ends. */
	a = submit(0, 0);
	await(&fakes[0].started, 2);
	air_ring_cancel(&c.ring, a);
	fake_let(0, 1);
	expect_ok(a);
}

static void test_failure(void **state)
{
	struct air_cqe cqe;

	fakes[0].status = AIR_DEVICE_FAULT;
	fakes[0].detail = 2;
	fake_let(0, 1);
	cqe = client_wait(&c, submit(0, 0));
	assert_int_equal(cqe.status, AIRUNNER_S_DEVICE_FAULT);
	assert_int_equal(cqe.detail, 2);
	fakes[0].status = AIR_OK;
	fakes[0].detail = 0;
	fake_let(0, 1);
	expect_ok(submit(0, 0));
}

/* An executor that is full is asked again, in order. */
static void test_busy_executor(void **state)
{
	uint64_t index[50];

	fakes[0].room = 2;
	for (int i = 0; i < 50; i++)
		index[i] = submit(0, i % 3 ? 0 : AIRUNNER_SQE_UNORDERED);
	await(&fakes[0].started, 2);
	settle();
	assert_int_equal(air_load(&fakes[0].started, ACQUIRE), 2);
	fake_let(0, 50);
	for (int i = 0; i < 50; i++) {
		expect_ok(index[i]);
		assert_int_equal(fake_runs[i].index, index[i]);
	}
}

/* Which executor a descriptor gets, and what it is told about it. */
static void test_choice(void **state)
{
	struct airunner_desc d = desc_relu(16, AIRUNNER_EXEC_ANY);
	struct airunner_desc_reply reply;

	assert_int_equal(client_desc(&c, 20, &d, &reply), AIR_OK);
	assert_int_equal(reply.executor, AIRUNNER_EXEC_CUDA_LAUNCH);
	assert_non_null(strstr(reply.why, "fake 0 takes anything"));
	fakes[0].refuse_plans = true;
	fakes[1].refuse_plans = true;
	assert_int_equal(client_desc(&c, 21, &d, &reply), AIR_OK);
	assert_int_equal(reply.executor, AIRUNNER_EXEC_CPU);
	assert_non_null(strstr(reply.why, "does not want to"));
	d = desc_relu(16, AIRUNNER_EXEC_CUDA_LAUNCH);
	assert_int_equal(client_desc(&c, 22, &d, &reply), AIR_UNSUPPORTED);
	assert_non_null(strstr(reply.why, "does not want to"));
}

/* Buffers are known to an executor as soon as the channel uses it. */
static void test_buffer_mapping(void **state)
{
	static float data[64];
	struct air_wbuffer_config config = {
		.host = data,
		.size = sizeof(data),
		.memory = AIR_HOST,
	};
	struct air_sqe alloc = sqe_head(AIRUNNER_OP_BUFFER_ALLOC, 8);
	struct air_sqe release = sqe_head(AIRUNNER_OP_BUFFER_RELEASE, 8);
	struct air_sqe use = sqe_relu(10, 8, 0, 64);
	struct air_error e;

	/* the region */
	assert_int_equal(fakes[0].buffers, 1);
	assert_int_equal(fakes[1].buffers, 1);
	assert_int_equal(air_worker_add_buffer(c.ch, 5, &config, &e), AIR_OK);
	assert_int_equal(fakes[0].buffers, 2);
	assert_int_equal(air_worker_drop_buffer(c.ch, 5), AIR_OK);
	assert_int_equal(fakes[0].buffers, 1);

	alloc.word[7] = 4096;
	assert_int_equal(client_run(&c, &alloc), AIR_OK);
	assert_int_equal(client_run(&c, &alloc), AIR_BAD_HANDLE);
	fake_let(0, 1);
	assert_int_equal(client_run(&c, &use), AIR_OK);
	/* The CPU cannot see it. */
	use = sqe_relu(1, 8, 0, 64);
	{
		struct airunner_desc d = desc_relu(16, AIRUNNER_EXEC_CPU);

		assert_int_equal(client_desc(&c, 1, &d, NULL), AIR_OK);
	}
	assert_int_equal(client_run(&c, &use), AIR_BAD_HANDLE);
	assert_int_equal(client_run(&c, &release), AIR_OK);
	assert_int_equal(fakes[0].buffers, 1);
	assert_int_equal(c.gone, 1);
}

/*
 * Many submissions, random executors and flags, executors that finish by
 * themselves: each is answered once, and the order rules hold for all.
 */
static void test_mix(void **state)
{
	uint64_t x = 88172645463325252ull, head = 0, tail = 0;
	uint32_t n = 20000, last_barrier = 0;

	fakes[0].hold_ns = fakes[1].hold_ns = 1;
	fakes[1].newest_first = true;
	while (head < n) {
		struct air_sqe sqe;
		uint64_t index;

		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		sqe = sqe_relu(10 + (x & 1), 0, c.arena, c.arena + 64);
		sqe.word[0] |= (x >> 8 & 3) << 8;
		if ((x >> 20 & 7) == 0)
			sqe = sqe_nop();
		if (tail < n && client_try_submit(&c, &sqe, &index))
			tail++;
		else
			expect_ok(2 + head++);
	}
	for (uint32_t i = 1; i < fake_n_runs; i++) {
		struct fake_run *r = &fake_runs[i];

		assert_true(r->index > fake_runs[i - 1].index);
		if (r->flags & AIRUNNER_SQE_BARRIER)
			assert_int_equal(r->beside[0] + r->beside[1], 0);
		else if (!(r->flags & AIRUNNER_SQE_UNORDERED))
			assert_int_equal(r->beside[!r->fake], 0);
		last_barrier = i;
	}
	assert_true(last_barrier > n / 2);
}

/* An executor that never finishes does not keep the worker from stopping. */
static void test_hung_executor(void **state)
{
	struct air_worker_config config = { .drain_ns = 20000000 };
	struct air_cqe cqe;
	uint64_t a, b, d, fence;

	fakes_reset();
	open_with(&config);
	a = submit(0, 0);
	fence = submit_nop(0);
	b = submit(1, 0);
	d = submit_nop(0);
	await(&fakes[0].started, 1);
	air_worker_stop(w);
	assert_int_equal(c.removed, 1);
	assert_true(client_done(&c, a, &cqe));
	assert_int_equal(cqe.status, AIRUNNER_S_WORKER_DIED);
	assert_true(client_done(&c, b, &cqe));
	assert_int_equal(cqe.status, AIRUNNER_S_WORKER_DIED);
	assert_true(client_done(&c, d, &cqe));
	assert_int_equal(cqe.status, AIRUNNER_S_WORKER_DIED);
	assert_true(client_done(&c, fence, &cqe));
	assert_int_equal(cqe.status, AIRUNNER_S_WORKER_DIED);
	client_unmap(&c);
	air_worker_destroy(w);
}

/* Dropped: what runs ends, nothing is answered any more. */
static void test_drop(void **state)
{
	uint64_t a, b;

	fakes_reset();
	open_with(NULL);
	a = submit(0, 0);
	b = submit(1, 0);
	await(&fakes[0].started, 1);
	air_worker_remove_channel(c.ch, AIR_REMOVE_DROP);
	assert_int_equal(air_load(&c.removed, ACQUIRE), 0);
	fake_let(0, 1);
	await(&c.removed, 1);
	assert_false(client_done(&c, a, NULL));
	assert_false(client_done(&c, b, NULL));
	assert_int_equal(fakes[1].started, 0);
	client_unmap(&c);
	worker_end(w);
}

#define both(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		both(test_in_order),
		both(test_two_executors),
		both(test_cpu_between),
		both(test_unordered),
		both(test_order_after_unordered),
		both(test_barrier),
		both(test_nop_is_a_fence),
		both(test_release_in_use),
		both(test_timeout),
		both(test_timeout_asleep),
		both(test_executor_wakes),
		both(test_cancel),
		both(test_failure),
		both(test_busy_executor),
		both(test_choice),
		both(test_buffer_mapping),
		both(test_mix),
		cmocka_unit_test(test_hung_executor),
		cmocka_unit_test(test_drop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
