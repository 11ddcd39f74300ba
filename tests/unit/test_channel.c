// SPDX-License-Identifier: MIT
/*
 * Channels: submitting, completions, waiting. The worker is the test itself
 * (fake_worker.h), or a real one where threads have to meet.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include <airunner.h>

#include "tests/unit/fake_worker.h"

#define assert_sentence(part) assert_non_null(strstr(air_last_error(), part))
#define assert_ok(call)	      assert_int_equal(call, AIR_OK)

static struct fake f;

static uint32_t flags;

/* What a single thread does is tested in a channel of either kind. */
static int single_caller(void **state)
{
	flags = AIR_CHANNEL_SINGLE_CALLER;
	return 0;
}

static int start(void **state)
{
	fake_start_with(&f, 2, flags);
	return 0;
}

static int stop(void **state)
{
	fake_stop(&f);
	return 0;
}

/* ------------------------------------------------------------ submitting */

static void test_submit_arguments(void **state)
{
	struct air_call calls[5];
	air_token token;

	for (int i = 0; i < 5; i++)
		air_prepare_nop(&calls[i]);
	assert_int_equal(air_submit(NULL, calls, 1, &token), AIR_BAD_ARGUMENT);
	assert_sentence("channel is NULL");
	assert_int_equal(air_submit(f.ch, NULL, 1, &token), AIR_BAD_ARGUMENT);
	assert_sentence("calls is NULL");
	assert_int_equal(air_submit(f.ch, calls, 0, &token), AIR_BAD_ARGUMENT);
	assert_int_equal(air_submit(f.ch, calls, 5, &token), AIR_BAD_ARGUMENT);
	assert_sentence("5 calls; 1 to 4");
	calls[1].flags = 1u << 9;
	assert_int_equal(air_submit(f.ch, calls, 2, &token), AIR_BAD_FLAGS);
	assert_sentence("call 1: unknown flags 0x200");
	calls[1].flags = 0;
	calls[1].reserved = 3;
	assert_int_equal(air_submit(f.ch, calls, 2, &token), AIR_BAD_RESERVED);
	assert_sentence("call 1: reserved is 3");
	/* All or none: nothing was submitted. */
	assert_false(fake_serve(&f, AIR_OK));
	assert_int_equal(air_channel_entries(f.ch), 4);
	assert_ptr_equal(air_channel_device(f.ch), f.dev);
}

static void test_slot_content(void **state)
{
	struct air_call call;
	air_token token;

	memset(&call, 0, sizeof(call));
	call.word[0] = airunner_sqe_head(AIRUNNER_OP_EXEC, 0, 0, 77);
	for (uint64_t w = 1; w < 8; w++)
		call.word[w] = w << 20;
	call.flags = AIR_CALL_UNORDERED | AIR_CALL_BARRIER;
	call.timeout_ms = 1234;
	assert_ok(air_submit(f.ch, &call, 1, &token));
	assert_true(fake_serve(&f, AIR_OK));
	assert_int_equal(airunner_sqe_opcode(f.last.word[0]), AIRUNNER_OP_EXEC);
	assert_int_equal(airunner_sqe_flags(f.last.word[0]), 3);
	assert_int_equal(airunner_sqe_timeout_ms(f.last.word[0]), 1234);
	assert_int_equal(airunner_sqe_id(f.last.word[0]), 77);
	for (uint64_t w = 1; w < 8; w++)
		assert_int_equal(f.last.word[w], w << 20);
	assert_ok(air_poll(f.ch, token, NULL));
}

static void test_tokens(void **state)
{
	struct air_call calls[3];
	air_token a, b;

	for (int i = 0; i < 3; i++)
		air_prepare_nop(&calls[i]);
	assert_ok(air_submit(f.ch, calls, 3, &a));
	assert_int_not_equal(a, 0);
	b = fake_nop(&f, 0);
	assert_int_equal(b, a + 3);
	fake_serve_all(&f);
	for (int i = 0; i < 4; i++)
		assert_ok(air_poll(f.ch, a + (air_token)i, NULL));
}

static void test_full(void **state)
{
	struct air_call calls[2];
	air_token first = fake_nop(&f, 0);

	air_prepare_nop(&calls[0]);
	air_prepare_nop(&calls[1]);
	fake_nop(&f, 0);
	fake_nop(&f, 0);
	assert_int_equal(air_submit(f.ch, calls, 2, NULL), AIR_FULL);
	assert_sentence("full");
	assert_ok(air_submit(f.ch, calls, 1, NULL));
	assert_int_equal(air_submit(f.ch, calls, 1, NULL), AIR_FULL);
	fake_serve_all(&f);
	assert_int_equal(air_submit(f.ch, calls, 1, NULL), AIR_FULL);
	assert_ok(air_poll(f.ch, first, NULL));
	assert_ok(air_submit(f.ch, calls, 1, NULL));
}

static void test_doorbell_only_for_sleepers(void **state)
{
	fake_nop(&f, 0);
	assert_int_equal(f.bells, 0);
	f.ch->ring.ctrl->sq_flags = AIRUNNER_SQ_NEED_WAKEUP;
	fake_nop(&f, 0);
	assert_int_equal(f.bells, 1);
}

/* ------------------------------------------------------------ completions */

static void test_poll_once(void **state)
{
	struct air_completion c;
	struct air_call call;
	air_token token;

	air_prepare_nop(&call);
	call.user_data = 0x1122334455667788;
	assert_ok(air_submit(f.ch, &call, 1, &token));
	assert_int_equal(air_poll(f.ch, token, &c), AIR_PENDING);
	fake_serve(&f, AIR_OK);
	assert_ok(air_poll(f.ch, token, &c));
	assert_int_equal(c.token, token);
	assert_int_equal(c.user_data, 0x1122334455667788);
	assert_int_equal(c.status, AIR_OK);
	assert_int_equal(c.duration, 10);
	assert_int_equal(air_poll(f.ch, token, &c), AIR_BAD_TOKEN);
	assert_sentence("collected already");
	assert_int_equal(air_wait(f.ch, token, 0, &c), AIR_BAD_TOKEN);
	assert_int_equal(air_cancel(f.ch, token), AIR_BAD_TOKEN);
	assert_int_equal(air_poll(f.ch, 0, &c), AIR_BAD_TOKEN);
	assert_int_equal(air_poll(f.ch, token + 1, &c), AIR_BAD_TOKEN);
	assert_int_equal(air_poll(NULL, token, &c), AIR_BAD_ARGUMENT);
}

/* Tokens stay used up, however many laps later and however they are asked. */
static void test_old_tokens_stay_bad(void **state)
{
	air_token first = fake_nop(&f, 0);

	fake_serve(&f, AIR_OK);
	assert_ok(air_poll(f.ch, first, NULL));
	for (int i = 0; i < 4 * 256 * 2; i++) {
		air_token token = fake_nop(&f, 0);

		fake_serve(&f, AIR_OK);
		assert_int_equal(air_poll(f.ch, first, NULL), AIR_BAD_TOKEN);
		assert_ok(air_poll(f.ch, token, NULL));
	}
}

static void test_start_time_is_whole(void **state)
{
	struct air_cqe cqe = { .duration = 5 };
	struct air_completion c;
	struct timespec ts;
	air_token token = fake_nop(&f, 0);
	uint64_t now;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	now = (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
	cqe.start = now & AIRUNNER_START_MASK;
	air_ring_complete(&f.ch->ring, f.next++, &cqe);
	assert_ok(air_poll(f.ch, token, &c));
	assert_int_equal(c.start, now);
}

static void test_failed_completion(void **state)
{
	struct air_completion c;
	struct air_call call;
	air_token token;

	memset(&call, 0, sizeof(call));
	call.word[0] = airunner_sqe_head(AIRUNNER_OP_EXEC, 0, 0, 77);
	call.word[2] = airunner_ref(5, 40);
	assert_ok(air_submit(f.ch, &call, 1, &token));
	fake_serve_detail(&f, AIR_BAD_HANDLE, 2);
	assert_int_equal(air_wait(f.ch, token, AIR_FOREVER, &c),
			 AIR_BAD_HANDLE);
	assert_int_equal(c.status, AIR_BAD_HANDLE);
	assert_int_equal(c.detail, 2);
	assert_sentence("execution of descriptor 77");
	assert_sentence(
		"operand 2 at offset 40 of handle 5, which is no buffer");
	assert_sentence(air_status_string(AIR_BAD_HANDLE));
}

static void test_unknown_opcode_is_named(void **state)
{
	struct air_call call;
	air_token token;

	memset(&call, 0, sizeof(call));
	call.word[0] = 99;
	assert_ok(air_submit(f.ch, &call, 1, &token));
	fake_serve(&f, AIR_BAD_OPCODE);
	assert_int_equal(air_wait(f.ch, token, 0, NULL), AIR_BAD_OPCODE);
	assert_sentence("opcode 99");
}

static void test_next_in_order(void **state)
{
	struct air_completion c;
	air_token a, b;

	assert_int_equal(air_next(f.ch, &c), AIR_PENDING);
	assert_int_equal(air_next(f.ch, NULL), AIR_BAD_ARGUMENT);
	assert_int_equal(air_next(NULL, &c), AIR_BAD_ARGUMENT);
	a = fake_nop(&f, 0);
	b = fake_nop(&f, 0);
	assert_int_equal(air_next(f.ch, &c), AIR_PENDING);
	fake_serve(&f, AIR_TIMEOUT);
	fake_serve(&f, AIR_OK);
	assert_ok(air_next(f.ch, &c));
	assert_int_equal(c.token, a);
	assert_int_equal(c.status, AIR_TIMEOUT);
	assert_ok(air_next(f.ch, &c));
	assert_int_equal(c.token, b);
	assert_int_equal(air_next(f.ch, &c), AIR_PENDING);
	assert_int_equal(air_poll(f.ch, a, &c), AIR_BAD_TOKEN);
}

static void test_next_finds_unordered(void **state)
{
	struct air_completion c;
	air_token b;

	fake_nop(&f, AIR_CALL_UNORDERED);
	b = fake_nop(&f, AIR_CALL_UNORDERED);
	fake_answer(&f, b - 1, AIR_OK);
	assert_ok(air_next(f.ch, &c));
	assert_int_equal(c.token, b);
	assert_int_equal(air_next(f.ch, &c), AIR_PENDING);
}

static void test_next_passes_detached_by(void **state)
{
	struct air_completion c;
	air_token b;

	fake_nop(&f, AIR_CALL_DETACHED);
	b = fake_nop(&f, 0);
	fake_serve_all(&f);
	assert_ok(air_next(f.ch, &c));
	assert_int_equal(c.token, b);
	assert_int_equal(air_next(f.ch, &c), AIR_PENDING);
	assert_int_equal(f.ch->ring.ctrl->cq_head, 2);
}

static void test_detached_make_room(void **state)
{
	for (int i = 0; i < 100; i++) {
		fake_nop(&f, AIR_CALL_DETACHED);
		fake_serve(&f, AIR_OK);
	}
	assert_ok(air_channel_error(f.ch, NULL));
}

static void test_detached_failure_is_kept(void **state)
{
	struct air_completion c;
	struct air_call call;

	air_prepare_nop(&call);
	call.flags = AIR_CALL_DETACHED;
	call.user_data = 5;
	assert_ok(air_submit(f.ch, &call, 1, NULL));
	fake_serve(&f, AIR_DEVICE_FAULT);
	call.user_data = 6;
	assert_ok(air_submit(f.ch, &call, 1, NULL));
	fake_serve(&f, AIR_DEVICE_LOST);
	assert_int_equal(air_channel_error(f.ch, &c), AIR_DEVICE_FAULT);
	assert_int_equal(c.user_data, 5);
	assert_int_equal(c.status, AIR_DEVICE_FAULT);
	assert_sentence("nop");
	assert_ok(air_channel_error(f.ch, &c));
	assert_int_equal(air_channel_error(NULL, &c), AIR_BAD_ARGUMENT);
}

/* -------------------------------------------------------- many completions */

static void check_flag_and_serve(struct fake *fake)
{
	assert_true(fake->ch->ring.ctrl->cq_flags & AIRUNNER_CQ_NEED_WAKEUP);
	fake->ch->ring.ctrl->cq_flags = 0;
	fake_serve(fake, AIR_OK);
}

static void test_many_arguments(void **state)
{
	air_token token = fake_nop(&f, 0);
	uint32_t done = 4711;

	assert_int_equal(air_poll_many(NULL, token, 1, NULL, &done),
			 AIR_BAD_ARGUMENT);
	assert_int_equal(done, 0);
	assert_int_equal(air_poll_many(f.ch, token, 1, NULL, NULL),
			 AIR_BAD_ARGUMENT);
	assert_sentence("done is NULL");
	done = 4711;
	assert_int_equal(air_poll_many(f.ch, token, 0, NULL, &done),
			 AIR_BAD_ARGUMENT);
	assert_sentence("0 completions");
	assert_int_equal(done, 0);
	assert_int_equal(air_wait_many(f.ch, token, 0, 0, NULL, &done),
			 AIR_BAD_ARGUMENT);
	done = 4711;
	assert_int_equal(air_poll_many(f.ch, token, 2, NULL, &done),
			 AIR_BAD_TOKEN);
	assert_sentence("2 tokens from 1 on");
	assert_int_equal(done, 0);
	assert_int_equal(air_poll_many(f.ch, token, UINT32_MAX, NULL, &done),
			 AIR_BAD_TOKEN);
	assert_int_equal(air_poll_many(f.ch, 0, 1, NULL, &done), AIR_BAD_TOKEN);
	assert_int_equal(air_poll_many(f.ch, token + 1, 1, NULL, &done),
			 AIR_BAD_TOKEN);
	assert_int_equal(air_poll_many(f.ch, token, 1, NULL, &done),
			 AIR_PENDING);
}

static air_token three_nops(void)
{
	struct air_call calls[3];
	air_token first;

	for (uint64_t i = 0; i < 3; i++) {
		air_prepare_nop(&calls[i]);
		calls[i].user_data = 100 + i;
	}
	assert_ok(air_submit(f.ch, calls, 3, &first));
	return first;
}

static void test_many_as_they_come(void **state)
{
	struct air_completion c[3] = { 0 };
	air_token first = three_nops();
	uint32_t done = 4711;

	assert_int_equal(air_poll_many(f.ch, first, 3, c, &done), AIR_PENDING);
	assert_int_equal(done, 0);
	fake_serve(&f, AIR_OK);
	fake_serve(&f, AIR_OK);
	assert_int_equal(air_poll_many(f.ch, first, 3, c, &done), AIR_PENDING);
	assert_int_equal(done, 2);
	for (uint64_t i = 0; i < 2; i++) {
		assert_int_equal(c[i].token, first + i);
		assert_int_equal(c[i].user_data, 100 + i);
		assert_int_equal(c[i].status, AIR_OK);
	}
	assert_int_equal(c[2].token, 0);
	assert_int_equal(f.ch->ring.ctrl->cq_head, 2);
	fake_serve(&f, AIR_OK);
	assert_int_equal(air_poll_many(f.ch, first, 3, c, &done),
			 AIR_BAD_TOKEN);
	assert_sentence("token 1 ");
	assert_int_equal(done, 0);
	assert_ok(air_poll_many(f.ch, first + 2, 1, NULL, &done));
	assert_int_equal(done, 1);
	assert_int_equal(f.ch->ring.ctrl->cq_head, 3);
}

/* Two in the middle fail: each is told, and those around them are not lost. */
static void test_many_with_failures(void **state)
{
	struct air_completion c[4] = { 0 };
	air_token first = three_nops();
	uint32_t done;

	fake_nop(&f, 0);
	fake_serve(&f, AIR_OK);
	fake_serve_detail(&f, AIR_BAD_RANGE, 3);
	fake_serve(&f, AIR_TIMEOUT);
	fake_serve(&f, AIR_OK);
	assert_int_equal(air_poll_many(f.ch, first, 4, c, &done),
			 AIR_BAD_RANGE);
	assert_sentence(air_status_string(AIR_BAD_RANGE));
	assert_int_equal(done, 2);
	assert_int_equal(c[0].status, AIR_OK);
	assert_int_equal(c[1].status, AIR_BAD_RANGE);
	assert_int_equal(c[1].detail, 3);
	assert_int_equal(c[1].token, first + 1);
	assert_int_equal(air_wait_many(f.ch, first + 2, 2, 0, NULL, &done),
			 AIR_TIMEOUT);
	assert_int_equal(done, 1);
	assert_ok(air_wait_many(f.ch, first + 3, 1, 0, NULL, &done));
	assert_int_equal(done, 1);
	assert_int_equal(f.ch->ring.ctrl->cq_head, 4);
}

/* One was collected alone; those before it are still to be had. */
static void test_many_around_one(void **state)
{
	air_token first = three_nops();
	uint32_t done;

	fake_serve_all(&f);
	assert_ok(air_poll(f.ch, first + 1, NULL));
	assert_int_equal(air_poll_many(f.ch, first, 3, NULL, &done),
			 AIR_BAD_TOKEN);
	assert_sentence("token 2 ");
	assert_int_equal(done, 1);
	assert_int_equal(f.ch->ring.ctrl->cq_head, 2);
	assert_ok(air_poll_many(f.ch, first + 2, 1, NULL, &done));
	assert_int_equal(f.ch->ring.ctrl->cq_head, 3);
}

static void test_many_unordered(void **state)
{
	air_token first = fake_nop(&f, AIR_CALL_UNORDERED);
	uint32_t done;

	fake_nop(&f, AIR_CALL_UNORDERED);
	fake_answer(&f, first, AIR_OK);
	assert_int_equal(air_poll_many(f.ch, first, 2, NULL, &done),
			 AIR_PENDING);
	assert_int_equal(done, 0);
	assert_int_equal(air_wait_many(f.ch, first, 2, 0, NULL, &done),
			 AIR_PENDING);
	assert_int_equal(done, 0);
	f.on_sleep = fake_serve_one;
	assert_ok(air_wait_many(f.ch, first, 2, AIR_FOREVER, NULL, &done));
	assert_int_equal(done, 2);
	assert_int_equal(f.sleeps, 1);
}

static void test_many_make_room(void **state)
{
	air_token first = three_nops();
	struct air_call calls[4];
	uint32_t done;

	for (int i = 0; i < 4; i++)
		air_prepare_nop(&calls[i]);
	fake_nop(&f, 0);
	fake_serve_all(&f);
	assert_int_equal(air_submit(f.ch, calls, 1, NULL), AIR_FULL);
	assert_ok(air_poll_many(f.ch, first, 3, NULL, &done));
	assert_int_equal(air_submit(f.ch, calls, 4, NULL), AIR_FULL);
	assert_ok(air_submit(f.ch, calls, 3, NULL));
	assert_int_equal(air_submit(f.ch, calls, 1, NULL), AIR_FULL);
}

static void many_through_laps(uint64_t from, int laps)
{
	fake_jump(&f, from);
	for (int i = 0; i < laps; i++) {
		struct air_completion c[3];
		air_token first = three_nops();
		uint32_t done;

		assert_int_equal(first, from + 3 * (uint64_t)i + 1);
		assert_int_equal(air_poll_many(f.ch, first, 3, c, &done),
				 AIR_PENDING);
		assert_int_equal(fake_serve_all(&f), 3);
		assert_ok(air_poll_many(f.ch, first, 3, c, &done));
		assert_int_equal(done, 3);
		assert_int_equal(c[2].token, first + 2);
		assert_int_equal(air_poll_many(f.ch, first, 3, c, &done),
				 AIR_BAD_TOKEN);
	}
}

static void test_many_through_laps(void **state)
{
	many_through_laps(0, 4 * 300);
	many_through_laps((UINT64_C(1) << 32) - 20, 40);
}

static void test_wait_many(void **state)
{
	air_token first = three_nops();
	uint32_t done;

	fake_serve(&f, AIR_OK);
	/* What is there is collected although the time is up. */
	assert_int_equal(air_wait_many(f.ch, first, 3, 3000000, NULL, &done),
			 AIR_PENDING);
	assert_int_equal(done, 1);
	f.unserved = true;
	assert_int_equal(air_wait_many(f.ch, first + 1, 2, 0, NULL, &done),
			 AIR_NO_WORKER);
	assert_sentence("airunnerd");
	assert_int_equal(done, 0);
	f.unserved = false;
	f.on_sleep = check_flag_and_serve;
	assert_ok(air_wait_many(f.ch, first + 1, 2, AIR_FOREVER, NULL, &done));
	assert_int_equal(done, 2);
}

static void test_wait_many_for_the_dead(void **state)
{
	struct air_completion c[3];
	air_token first = three_nops();
	uint32_t done;

	fake_serve(&f, AIR_OK);
	f.dead = true;
	assert_int_equal(air_wait_many(f.ch, first, 3, AIR_FOREVER, c, &done),
			 AIR_WORKER_DIED);
	assert_int_equal(done, 2);
	assert_int_equal(c[0].status, AIR_OK);
	assert_int_equal(air_wait_many(f.ch, first + 2, 1, AIR_FOREVER, c,
				       &done),
			 AIR_WORKER_DIED);
	assert_int_equal(done, 1);
	f.next = 3;
}

static void test_who_only_polls_many_notices(void **state)
{
	air_token token = three_nops();
	air_status status;
	uint32_t done;
	int n = 0;

	f.dead = true;
	do {
		status = air_poll_many(f.ch, token, 3, NULL, &done);
	} while (status == AIR_PENDING && n++ < 100000);
	assert_int_equal(status, AIR_WORKER_DIED);
	f.next = 3;
}

/* ----------------------------------------------------------------- waiting */

static void test_wait_times_out(void **state)
{
	air_token token = fake_nop(&f, 0);
	struct air_completion c = { .token = 4711 };

	assert_int_equal(air_wait(f.ch, token, 0, &c), AIR_TIMEOUT);
	assert_int_equal(c.token, 4711);
	assert_int_equal(air_wait(f.ch, token, 3000000, &c), AIR_TIMEOUT);
	f.unserved = true;
	assert_int_equal(air_wait(f.ch, token, 0, &c), AIR_NO_WORKER);
	assert_sentence("airunnerd");
	fake_serve(&f, AIR_OK);
	assert_ok(air_wait(f.ch, token, 0, &c));
	assert_int_equal(c.token, token);
}

/* A submission's own time-out is told from the waiter's. */
static void test_submission_timed_out(void **state)
{
	air_token token = fake_nop(&f, 0);
	struct air_completion c = { .token = 0 };

	fake_serve(&f, AIR_TIMEOUT);
	assert_int_equal(air_wait(f.ch, token, AIR_FOREVER, &c), AIR_TIMEOUT);
	assert_int_equal(c.token, token);
}

static void test_wait_sleeps(void **state)
{
	air_token token;

	fake_nop(&f, 0);
	token = fake_nop(&f, 0);
	f.on_sleep = check_flag_and_serve;
	assert_ok(air_wait(f.ch, token, AIR_FOREVER, NULL));
	assert_int_equal(f.sleeps, 2);
	assert_int_equal(f.watches, 0);
}

static void test_wait_has_device_watched(void **state)
{
	air_token token = fake_nop(&f, 0);

	f.ch->ring.ctrl->sq_flags = AIRUNNER_SQ_WATCH;
	f.on_sleep = check_flag_and_serve;
	assert_ok(air_wait(f.ch, token, AIR_FOREVER, NULL));
	assert_int_equal(f.watches, 1);
	f.ch->ring.ctrl->sq_flags = 0;
}

static void test_wait_with_asymmetric_worker(void **state)
{
	air_token token = fake_nop(&f, 0);

	f.ch->ring.ctrl->sq_flags = AIRUNNER_SQ_ASYM;
	f.on_sleep = check_flag_and_serve;
	assert_ok(air_wait(f.ch, token, AIR_FOREVER, NULL));
	f.ch->ring.ctrl->sq_flags = 0;
}

static void test_drain(void **state)
{
	air_token token = fake_nop(&f, 0);

	fake_nop(&f, AIR_CALL_DETACHED);
	assert_int_equal(air_drain(NULL, 0), AIR_BAD_ARGUMENT);
	assert_int_equal(air_drain(f.ch, 0), AIR_TIMEOUT);
	f.on_sleep = fake_serve_one;
	assert_ok(air_drain(f.ch, AIR_FOREVER));
	assert_int_equal(f.next, 2);
	/* It collects nothing of the user's. */
	assert_ok(air_poll(f.ch, token, NULL));
	assert_int_equal(f.ch->ring.ctrl->cq_head, 2);
}

static void test_cancel(void **state)
{
	struct air_completion c;
	air_token a = fake_nop(&f, 0), b = fake_nop(&f, 0);

	fake_serve(&f, AIR_OK);
	assert_ok(air_cancel(f.ch, a));
	assert_ok(air_cancel(f.ch, b));
	fake_serve(&f, AIR_OK);
	assert_ok(air_wait(f.ch, a, 0, NULL));
	assert_int_equal(air_wait(f.ch, b, 0, &c), AIR_CANCELED);
	assert_int_equal(c.status, AIR_CANCELED);
	assert_int_equal(air_cancel(f.ch, b + 1), AIR_BAD_TOKEN);
	assert_int_equal(air_cancel(NULL, b), AIR_BAD_ARGUMENT);
}

static void test_arm(void **state)
{
	int fd;

	assert_int_equal(air_channel_arm(NULL), AIR_BAD_ARGUMENT);
	assert_int_equal(air_channel_fd(NULL, &fd), AIR_BAD_ARGUMENT);
	assert_int_equal(air_channel_fd(f.ch, NULL), AIR_BAD_ARGUMENT);
	assert_ok(air_channel_arm(f.ch));
	assert_true(f.ch->ring.ctrl->cq_flags & AIRUNNER_CQ_NEED_WAKEUP);
	fake_nop(&f, AIR_CALL_DETACHED);
	fake_serve(&f, AIR_OK);
	assert_ok(air_channel_arm(f.ch));
	fake_nop(&f, 0);
	assert_ok(air_channel_arm(f.ch));
	fake_serve(&f, AIR_OK);
	assert_int_equal(air_channel_arm(f.ch), AIR_BUSY);
}

/* --------------------------------------------------------------- the wraps */

static void go_on(uint64_t from, int n)
{
	fake_jump(&f, from);
	for (int i = 0; i < n; i++) {
		air_token a = fake_nop(&f, 0), b = fake_nop(&f, 0);
		struct air_completion c;

		assert_int_equal(a, from + 2 * (uint64_t)i + 1);
		assert_int_equal(air_poll(f.ch, b, &c), AIR_PENDING);
		assert_int_equal(fake_serve_all(&f), 2);
		assert_ok(air_wait(f.ch, b, 0, &c));
		assert_int_equal(c.token, b);
		assert_ok(air_next(f.ch, &c));
		assert_int_equal(c.token, a);
		assert_int_equal(air_next(f.ch, &c), AIR_PENDING);
	}
}

static void test_lap_wraps(void **state)
{
	go_on(0, 4 * 300);
}

static void test_index_wraps_32_bits(void **state)
{
	go_on((UINT64_C(1) << 32) - 20, 40);
}

static void test_full_at_32_bits(void **state)
{
	fake_jump(&f, (UINT64_C(1) << 32) - 2);
	test_full(state);
}

static void test_detached_at_32_bits(void **state)
{
	fake_jump(&f, (UINT64_C(1) << 32) - 50);
	test_detached_make_room(state);
}

/* --------------------------------------------------- a worker that is gone */

static void test_outstanding_are_answered(void **state)
{
	air_token a = fake_nop(&f, 0), b = fake_nop(&f, 0);
	struct air_completion c;

	fake_serve(&f, AIR_OK);
	f.dead = true;
	assert_int_equal(air_wait(f.ch, b, AIR_FOREVER, &c), AIR_WORKER_DIED);
	assert_ok(air_wait(f.ch, a, AIR_FOREVER, &c));
	assert_int_equal(air_submit(f.ch, &(struct air_call){ .word = { 1 } },
				    1, NULL),
			 AIR_NO_WORKER);
	f.next = 2;
}

/* Published after the cut, by a thread that had not seen it. */
static void test_late_submission_is_answered(void **state)
{
	struct air_call call;
	uint64_t index;

	fake_nop(&f, AIR_CALL_DETACHED);
	f.dead = true;
	assert_int_equal(air_wait(f.ch, 1, AIR_FOREVER, NULL), AIR_WORKER_DIED);
	air_prepare_nop(&call);
	assert_ok(air_channel_submit(f.ch, &call, 1, 0, &index));
	assert_true(f.bells > 0);
	assert_int_equal(air_wait(f.ch, index + 1, AIR_FOREVER, NULL),
			 AIR_WORKER_DIED);
	f.next = 2;
}

static void test_who_only_polls_notices(void **state)
{
	air_token token = fake_nop(&f, 0);
	air_status status;
	int n = 0;

	f.dead = true;
	do {
		status = air_poll(f.ch, token, NULL);
	} while (status == AIR_PENDING && n++ < 100000);
	assert_int_equal(status, AIR_WORKER_DIED);
	f.next = 1;
}

static void test_revived(void **state)
{
	air_token token = fake_nop(&f, 0);
	air_buffer *buf;

	assert_ok(air_buffer_alloc(f.ch, 100, AIR_HOST, &buf));
	f.dead = true;
	assert_int_equal(air_wait(f.ch, token, AIR_FOREVER, NULL),
			 AIR_WORKER_DIED);
	f.can_revive = true;
	token = fake_nop(&f, 0);
	assert_int_equal(f.revived, 1);
	assert_int_equal(f.registered, 1);
	assert_true(fake_serve(&f, AIR_OK));
	assert_ok(air_wait(f.ch, token, AIR_FOREVER, NULL));
	/* With what has happened known, it costs nothing more. */
	fake_nop(&f, AIR_CALL_DETACHED);
	assert_int_equal(f.revived, 1);
}

/* --------------------------------------------------------------- lifetimes */

static void test_create_arguments(void **state)
{
	struct air_channel_options o = { .size = sizeof(o) };
	air_channel *ch = NULL;

	assert_int_equal(air_channel_create(NULL, NULL, &ch), AIR_BAD_ARGUMENT);
	assert_int_equal(air_channel_create(f.dev, NULL, NULL),
			 AIR_BAD_ARGUMENT);
#define REFUSED(field, value, sentence)                                        \
	do {                                                                   \
		o = (struct air_channel_options){ .size = sizeof(o) };         \
		o.field = value;                                               \
		assert_int_equal(air_channel_create(f.dev, &o, &ch),           \
				 AIR_BAD_ARGUMENT);                            \
		assert_sentence(sentence);                                     \
	} while (0)
	REFUSED(order, 17, "order is 17");
	REFUSED(arena, 1023, "arena is 1023");
	REFUSED(arena, UINT64_MAX, "at most");
	REFUSED(priority, 5, "priority is 5");
	REFUSED(weight, 10001, "weight is 10001");
	REFUSED(executor, 9, "executor 9");
	REFUSED(flags, 2, "unknown flags 0x2");
	REFUSED(size, 2, "size is 2");
#undef REFUSED
	assert_null(ch);
	assert_ok(air_channel_destroy(NULL));
	assert_int_equal(air_close(f.dev), AIR_BUSY);
	assert_sentence("channels");
}

static void test_options_of_other_versions(void **state)
{
	struct {
		struct air_channel_options known;
		uint32_t more;
	} newer;
	air_channel *ch, *first = f.ch;

	/* Older: only size and order. */
	memset(&newer, 0, sizeof(newer));
	newer.known.size = 8;
	newer.known.order = 3;
	newer.known.arena = 1;
	assert_ok(air_channel_create(f.dev, &newer.known, &ch));
	assert_int_equal(air_channel_entries(ch), 8);
	assert_ok(air_channel_destroy(ch));
	/* Newer: what is not known must not be asked for. */
	memset(&newer, 0, sizeof(newer));
	newer.known.size = sizeof(newer);
	assert_ok(air_channel_create(f.dev, &newer.known, &ch));
	assert_int_equal(air_channel_entries(ch), 1024);
	assert_ok(air_channel_destroy(ch));
	newer.more = 1;
	assert_int_equal(air_channel_create(f.dev, &newer.known, &ch), AIR_ABI);
	f.ch = first;
}

static int in_child(void)
{
	struct air_completion c;
	struct air_call call;
	air_buffer *buf;
	air_channel *ch;
	uint32_t n;
	int fd;

	air_prepare_nop(&call);
#define FORKED(n, call)                                                        \
	do {                                                                   \
		if ((call) != AIR_FORKED)                                      \
			return n;                                              \
	} while (0)
	FORKED(1, air_submit(f.ch, &call, 1, NULL));
	FORKED(2, air_poll(f.ch, 1, NULL));
	FORKED(3, air_wait(f.ch, 1, 0, NULL));
	FORKED(4, air_next(f.ch, &c));
	FORKED(5, air_drain(f.ch, 0));
	FORKED(6, air_cancel(f.ch, 1));
	FORKED(7, air_channel_error(f.ch, &c));
	FORKED(8, air_channel_fd(f.ch, &fd));
	FORKED(9, air_channel_arm(f.ch));
	FORKED(10, air_buffer_alloc(f.ch, 1, AIR_HOST, &buf));
	FORKED(11, air_channel_create(f.dev, NULL, &ch));
	FORKED(12, air_channel_destroy(f.ch));
	FORKED(13, air_close(f.dev));
	FORKED(14, air_poll_many(f.ch, 1, 1, NULL, &n));
	FORKED(15, air_wait_many(f.ch, 1, 1, 0, NULL, &n));
	if (!strstr(air_last_error(), "fork"))
		return 16;
	/* It can have its own. */
	fake_start(&f, 3);
	fake_nop(&f, 0);
	fake_stop(&f);
	return 0;
#undef FORKED
}

static void test_fork(void **state)
{
	air_token token = fake_nop(&f, 0);
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid)
		_exit(in_child());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	/* To the parent nothing has happened. */
	fake_serve(&f, AIR_OK);
	assert_ok(air_wait(f.ch, token, 0, NULL));
}

/* A large buffer keeps its pages: a child has no part in them. */
static void test_fork_large(void **state)
{
	const size_t bytes = 4 << 20;
	unsigned char there;
	air_device *dev;
	air_channel *ch;
	air_buffer *buf;
	char *data;
	int status;
	pid_t pid;

	assert_ok(air_open("inproc:", NULL, &dev));
	assert_ok(air_channel_create(dev, NULL, &ch));
	assert_ok(air_buffer_alloc(ch, bytes, AIR_HOST, &buf));
	data = air_buffer_data(buf);
	memset(data, 1, bytes);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		_exit(mincore(data, 1, &there) && errno == ENOMEM ? 0 : 1);
	memset(data, 2, bytes);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_ok(air_channel_destroy(ch));
	assert_ok(air_close(dev));
}

/* ------------------------------------------------------------ real threads */

#define WAITERS 4
#define ROUNDS	200

struct crowd {
	air_channel *ch;
	uint32_t failed;
	uint32_t delivered;
};

static void *submit_and_wait(void *arg)
{
	struct crowd *c = arg;
	struct air_call call;

	air_prepare_nop(&call);
	for (int i = 0; i < ROUNDS; i++) {
		struct air_completion done;
		air_token token;
		air_status status;

		call.user_data = (uint64_t)(uintptr_t)&call + (uint64_t)i;
		while ((status = air_submit(c->ch, &call, 1, &token)) ==
		       AIR_FULL)
			air_drain(c->ch, 1000000);
		if (status != AIR_OK ||
		    air_wait(c->ch, token, AIR_FOREVER, &done) != AIR_OK ||
		    done.token != token || done.user_data != call.user_data)
			__atomic_fetch_add(&c->failed, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void test_waiters_get_their_own(void **state)
{
	struct air_channel_options options = { .size = sizeof(options),
					       .order = 2 };
	struct air_device_options device = { .size = sizeof(device),
					     .threads = 1,
					     .spin_ns = 1000,
					     .executors = "cpu" };
	struct crowd c = { .failed = 0 };
	pthread_t thread[WAITERS];
	air_device *dev;

	assert_ok(air_open("inproc:", &device, &dev));
	assert_ok(air_channel_create(dev, &options, &c.ch));
	for (int i = 0; i < WAITERS; i++)
		pthread_create(&thread[i], NULL, submit_and_wait, &c);
	for (int i = 0; i < WAITERS; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(c.failed, 0);
	assert_ok(air_channel_destroy(c.ch));
	assert_ok(air_close(dev));
}

#define BATCH 16

struct delivery {
	air_channel *ch;
	air_token first;
	uint32_t count[BATCH];
	uint32_t stop;
};

static void *take_next(void *arg)
{
	struct delivery *d = arg;
	struct air_completion c;

	while (!__atomic_load_n(&d->stop, __ATOMIC_ACQUIRE))
		if (air_next(d->ch, &c) == AIR_OK)
			__atomic_fetch_add(&d->count[c.user_data], 1,
					   __ATOMIC_RELAXED);
	while (air_next(d->ch, &c) == AIR_OK)
		__atomic_fetch_add(&d->count[c.user_data], 1, __ATOMIC_RELAXED);
	return NULL;
}

/* air_next() in one thread, air_wait() in another: each is delivered once. */
static void test_each_is_delivered_once(void **state)
{
	struct air_device_options device = { .size = sizeof(device),
					     .threads = 1,
					     .executors = "cpu" };
	struct delivery d;
	air_device *dev;

	assert_ok(air_open("inproc:", &device, &dev));
	assert_ok(air_channel_create(dev, NULL, &d.ch));
	for (int round = 0; round < 50; round++) {
		struct air_call call[BATCH];
		pthread_t thread;

		memset(d.count, 0, sizeof(d.count));
		d.stop = 0;
		for (int i = 0; i < BATCH; i++) {
			air_prepare_nop(&call[i]);
			call[i].user_data = (uint64_t)i;
		}
		pthread_create(&thread, NULL, take_next, &d);
		assert_ok(air_submit(d.ch, call, BATCH, &d.first));
		for (air_token i = 0; i < BATCH; i++) {
			air_status status =
				air_wait(d.ch, d.first + i, AIR_FOREVER, NULL);

			if (status == AIR_OK)
				__atomic_fetch_add(&d.count[i], 1,
						   __ATOMIC_RELAXED);
			else
				assert_int_equal(status, AIR_BAD_TOKEN);
		}
		__atomic_store_n(&d.stop, 1, __ATOMIC_RELEASE);
		pthread_join(thread, NULL);
		for (int i = 0; i < BATCH; i++)
			assert_int_equal(d.count[i], 1);
	}
	assert_ok(air_channel_destroy(d.ch));
	assert_ok(air_close(dev));
}

/* An event loop: arm, poll(2), collect. */
static void test_event_loop(void **state)
{
	struct air_device_options device = { .size = sizeof(device),
					     .threads = 1,
					     .spin_ns = 1,
					     .executors = "cpu" };
	struct pollfd p = { .events = POLLIN };
	air_device *dev;
	air_channel *ch;
	int got = 0;

	assert_ok(air_open("inproc:", &device, &dev));
	assert_ok(air_channel_create(dev, NULL, &ch));
	assert_ok(air_channel_fd(ch, &p.fd));
	while (got < 200) {
		struct air_completion c;
		struct air_call call;
		air_status status;

		air_prepare_nop(&call);
		assert_ok(air_submit(ch, &call, 1, NULL));
		while ((status = air_next(ch, &c)) == AIR_PENDING) {
			status = air_channel_arm(ch);
			if (status == AIR_BUSY)
				continue;
			assert_int_equal(status, AIR_OK);
			assert_int_equal(poll(&p, 1, 20000), 1);
		}
		assert_int_equal(status, AIR_OK);
		got++;
	}
	assert_ok(air_channel_destroy(ch));
	assert_ok(air_close(dev));
}

#define T(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
	const struct CMUnitTest alone[] = {
		T(test_submit_arguments),
		T(test_slot_content),
		T(test_tokens),
		T(test_full),
		T(test_doorbell_only_for_sleepers),
		T(test_poll_once),
		T(test_old_tokens_stay_bad),
		T(test_start_time_is_whole),
		T(test_failed_completion),
		T(test_unknown_opcode_is_named),
		T(test_next_in_order),
		T(test_next_finds_unordered),
		T(test_next_passes_detached_by),
		T(test_detached_make_room),
		T(test_detached_failure_is_kept),
		T(test_many_arguments),
		T(test_many_as_they_come),
		T(test_many_with_failures),
		T(test_many_around_one),
		T(test_many_unordered),
		T(test_many_make_room),
		T(test_many_through_laps),
		T(test_wait_many),
		T(test_wait_many_for_the_dead),
		T(test_who_only_polls_many_notices),
		T(test_wait_times_out),
		T(test_submission_timed_out),
		T(test_wait_sleeps),
		T(test_wait_has_device_watched),
		T(test_wait_with_asymmetric_worker),
		T(test_drain),
		T(test_cancel),
		T(test_arm),
		T(test_lap_wraps),
		T(test_index_wraps_32_bits),
		T(test_full_at_32_bits),
		T(test_detached_at_32_bits),
		T(test_outstanding_are_answered),
		T(test_late_submission_is_answered),
		T(test_who_only_polls_notices),
		T(test_revived),
		T(test_create_arguments),
		T(test_options_of_other_versions),
		T(test_fork),
		T(test_fork_large),
	};
	const struct CMUnitTest together[] = {
		cmocka_unit_test(test_waiters_get_their_own),
		cmocka_unit_test(test_each_is_delivered_once),
		cmocka_unit_test(test_event_loop),
	};
	int failed;

	failed = cmocka_run_group_tests_name("channel", alone, NULL, NULL);
	failed += cmocka_run_group_tests_name("channel, single caller", alone,
					      single_caller, NULL);
	failed += cmocka_run_group_tests_name("channel, threads", together,
					      NULL, NULL);
	return failed;
}
