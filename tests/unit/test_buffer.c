// SPDX-License-Identifier: MIT
/*
 * Buffers: lifetime, handles, the pin cache.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <airunner.h>

#include "tests/unit/fake_worker.h"

#define assert_sentence(part) assert_non_null(strstr(air_last_error(), part))
#define assert_ok(call)	      assert_int_equal(call, AIR_OK)
#define PAGE		      4096u

static struct fake f;

static int start(void **state)
{
	fake_start(&f, 2);
	return 0;
}

static int stop(void **state)
{
	fake_stop(&f);
	return 0;
}

static int start_without_cache(void **state)
{
	setenv("AIRUNNER_CACHE_BYTES", "0", 1);
	fake_start(&f, 2);
	unsetenv("AIRUNNER_CACHE_BYTES");
	return 0;
}

static int start_with_two_pages(void **state)
{
	setenv("AIRUNNER_CACHE_BYTES", "0x2000", 1);
	fake_start(&f, 2);
	unsetenv("AIRUNNER_CACHE_BYTES");
	return 0;
}

static air_buffer *alloc(size_t bytes)
{
	air_buffer *buf;

	assert_ok(air_buffer_alloc(f.ch, bytes, AIR_HOST, &buf));
	return buf;
}

static uint32_t handle(const air_buffer *buf)
{
	return airunner_ref_handle(air_buffer_ref(buf, 0).bits);
}

static struct air_call exec_on(air_ref ref)
{
	struct air_call call = { .word = { AIRUNNER_OP_EXEC } };

	call.word[1] = ref.bits;
	return call;
}

static uint8_t last_opcode(void)
{
	return airunner_sqe_opcode(f.last.word[0]);
}

/* ------------------------------------------------------------------ basics */

static void test_arguments(void **state)
{
	air_buffer *buf = NULL;
	int x;

	assert_int_equal(air_buffer_alloc(NULL, 1, AIR_HOST, &buf),
			 AIR_BAD_ARGUMENT);
	assert_int_equal(air_buffer_alloc(f.ch, 1, AIR_HOST, NULL),
			 AIR_BAD_ARGUMENT);
	assert_int_equal(air_buffer_alloc(f.ch, 0, AIR_HOST, &buf),
			 AIR_BAD_ARGUMENT);
	assert_sentence("0 bytes");
	assert_int_equal(air_buffer_alloc(f.ch, SIZE_MAX, AIR_HOST, &buf),
			 AIR_BAD_ARGUMENT);
	assert_sentence("at most");
	assert_int_equal(air_buffer_alloc(f.ch, 1, (air_memory)3, &buf),
			 AIR_BAD_ARGUMENT);
	assert_sentence("memory kind 3");
	assert_int_equal(air_buffer_import(f.ch, NULL, 1, AIR_HOST, &buf),
			 AIR_BAD_ARGUMENT);
	assert_int_equal(air_buffer_import(f.ch, &x, 0, AIR_HOST, &buf),
			 AIR_BAD_ARGUMENT);
	assert_null(buf);
	assert_ok(air_buffer_free(NULL));
}

static void test_memory_is_there(void **state)
{
	air_buffer *buf = alloc(PAGE + 1);
	char *p = air_buffer_data(buf);

	assert_int_equal(air_buffer_size(buf), 2 * PAGE);
	for (unsigned int i = 0; i < 2 * PAGE; i++)
		assert_int_equal(p[i], 0);
	memset(p, 1, 2 * PAGE);
	assert_int_equal(f.registered, 1);
	assert_ok(air_buffer_free(buf));
}

static void test_reference(void **state)
{
	air_buffer *buf = alloc(PAGE);
	uint64_t bits = air_buffer_ref(buf, 123).bits;

	assert_int_equal(airunner_ref_handle(bits), handle(buf));
	assert_int_equal(airunner_ref_offset(bits), 123);
	/* What does not fit must not come out as something that does. */
	bits = air_buffer_ref(buf, UINT64_C(1) << 40).bits;
	assert_int_equal(airunner_ref_handle(bits), handle(buf));
	assert_int_equal(airunner_ref_offset(bits), AIRUNNER_OFFSET_MASK);
	assert_ok(air_buffer_free(buf));
}

static void test_registration_refused(void **state)
{
	air_buffer *buf;

	f.refuse_buffers = AIR_QUOTA;
	assert_int_equal(air_buffer_alloc(f.ch, 1, AIR_HOST, &buf), AIR_QUOTA);
	f.refuse_buffers = AIR_OK;
	buf = alloc(1);
	assert_ok(air_buffer_free(buf));
}

/* --------------------------------------------------------------- lifetimes */

static void test_lives_until_its_last_use(void **state)
{
	air_buffer *buf = alloc(PAGE);
	struct air_call call = exec_on(air_buffer_ref(buf, 0));
	uint32_t first = handle(buf);
	air_token token;

	assert_ok(air_submit(f.ch, &call, 1, &token));
	assert_ok(air_buffer_free(buf));
	/* Still used: another one gets other memory. */
	buf = alloc(PAGE);
	assert_int_not_equal(handle(buf), first);
	assert_ok(air_buffer_free(buf));
	assert_int_equal(f.unregistered, 0);
	assert_true(fake_serve(&f, AIR_OK));
	/* Completed, if not collected: unused. */
	assert_ok(air_buffer_free(alloc(PAGE)));
	assert_int_equal(f.registered, 2);
	assert_ok(air_poll(f.ch, token, NULL));
}

static void test_cached_memory_is_reused(void **state)
{
	air_buffer *buf = alloc(PAGE * 8);
	void *data = air_buffer_data(buf);
	uint32_t first = handle(buf);

	assert_ok(air_buffer_free(buf));
	assert_int_equal(f.dev->cache.bytes, PAGE * 8);
	/* Not for something much smaller or larger. */
	buf = alloc(PAGE * 9);
	assert_ptr_not_equal(air_buffer_data(buf), data);
	assert_ok(air_buffer_free(buf));
	buf = alloc(PAGE * 7);
	assert_ptr_not_equal(air_buffer_data(buf), data);
	assert_ok(air_buffer_free(buf));
	buf = alloc(PAGE * 7 + 1);
	assert_ptr_equal(air_buffer_data(buf), data);
	assert_int_equal(handle(buf), first);
	assert_int_equal(f.registered, 3);
	assert_int_equal(f.dev->cache.bytes, PAGE * 16);
	assert_ok(air_buffer_free(buf));
}

static void test_a_little_larger_will_do(void **state)
{
	air_buffer *buf = alloc(PAGE * 72);
	void *data = air_buffer_data(buf);

	assert_ok(air_buffer_free(buf));
	buf = alloc(PAGE * 64);
	assert_ptr_equal(air_buffer_data(buf), data);
	assert_int_equal(air_buffer_size(buf), PAGE * 72);
	assert_ok(air_buffer_free(buf));
}

static void test_freed_reference_is_refused(void **state)
{
	air_buffer *buf = alloc(PAGE);
	struct air_call call = exec_on(air_buffer_ref(buf, 8));
	air_token token;

	call.word[6] = AIRUNNER_REF_NONE;
	assert_ok(air_buffer_free(buf));
	assert_ok(air_submit(f.ch, &call, 1, &token));
	assert_true(fake_serve_detail(&f, AIR_BAD_HANDLE, 1));
	/* The worker sees a handle that nothing ever has. */
	assert_int_equal(airunner_ref_handle(f.last.word[1]),
			 AIRUNNER_HANDLE_NONE - 1);
	assert_int_equal(f.last.word[6], AIRUNNER_REF_NONE);
	assert_int_equal(air_wait(f.ch, token, 0, NULL), AIR_BAD_HANDLE);
	assert_sentence("operand 1 at offset 8 of a buffer that was freed");
	/* Reused, the memory is good again. */
	buf = alloc(PAGE);
	assert_ok(air_submit(f.ch, &call, 1, &token));
	assert_true(fake_serve(&f, AIR_OK));
	assert_int_equal(f.last.word[1], call.word[1]);
	assert_ok(air_poll(f.ch, token, NULL));
	assert_ok(air_buffer_free(buf));
}

static void test_without_cache_it_is_released(void **state)
{
	air_buffer *buf = alloc(PAGE);
	uint32_t first = handle(buf);
	air_token token = fake_nop(&f, 0);

	assert_ok(air_buffer_free(buf));
	assert_true(fake_serve(&f, AIR_OK));
	assert_true(fake_serve(&f, AIR_OK));
	assert_int_equal(last_opcode(), AIRUNNER_OP_BUFFER_RELEASE);
	assert_int_equal(airunner_sqe_id(f.last.word[0]), first);
	assert_int_equal(f.unregistered, 0);
	f.held = true;
	air_buffer_reap(f.ch);
	assert_int_equal(f.unregistered, 0);
	f.held = false;
	air_buffer_reap(f.ch);
	assert_int_equal(f.unregistered, 1);
	assert_int_equal(f.registered, 0);
	assert_ok(air_poll(f.ch, token, NULL));
	/* Round-robin: the handle comes back late. */
	buf = alloc(PAGE);
	assert_int_not_equal(handle(buf), first);
	assert_ok(air_buffer_free(buf));
}

static void test_release_waits_for_room(void **state)
{
	air_buffer *buf = alloc(PAGE);
	air_token token[4];

	for (int i = 0; i < 4; i++)
		token[i] = fake_nop(&f, 0);
	assert_ok(air_buffer_free(buf));
	assert_true(f.ch->care & AIR_CARE_DEFERRED);
	assert_int_equal(fake_serve_all(&f), 4);
	assert_ok(air_poll(f.ch, token[0], NULL));
	assert_ok(air_poll(f.ch, token[1], NULL));
	fake_nop(&f, AIR_CALL_DETACHED);
	assert_true(fake_serve(&f, AIR_OK));
	assert_int_equal(last_opcode(), AIRUNNER_OP_BUFFER_RELEASE);
	assert_false(f.ch->care & AIR_CARE_DEFERRED);
	assert_true(fake_serve(&f, AIR_OK));
	assert_int_equal(last_opcode(), AIRUNNER_OP_NOP);
	assert_ok(air_poll(f.ch, token[2], NULL));
	assert_ok(air_poll(f.ch, token[3], NULL));
	air_buffer_reap(f.ch);
	assert_int_equal(f.unregistered, 1);
}

/* A failed release of the library's own is not the user's error. */
static void test_release_failing_is_silent(void **state)
{
	assert_ok(air_buffer_free(alloc(PAGE)));
	assert_true(fake_serve(&f, AIR_WORKER_DIED));
	assert_ok(air_channel_error(f.ch, NULL));
}

static void test_oldest_are_evicted(void **state)
{
	air_buffer *a = alloc(PAGE), *b = alloc(PAGE), *c = alloc(PAGE);
	uint32_t oldest = handle(b);

	assert_ok(air_buffer_free(b));
	assert_ok(air_buffer_free(a));
	assert_false(fake_serve(&f, AIR_OK));
	assert_ok(air_buffer_free(c));
	assert_int_equal(f.dev->cache.bytes, 2 * PAGE);
	assert_true(fake_serve(&f, AIR_OK));
	assert_int_equal(last_opcode(), AIRUNNER_OP_BUFFER_RELEASE);
	assert_int_equal(airunner_sqe_id(f.last.word[0]), oldest);
	/* One larger than the whole cache does not displace what is there. */
	assert_ok(air_buffer_free(alloc(3 * PAGE)));
	assert_int_equal(f.dev->cache.bytes, 2 * PAGE);
}

/*
 * Room in the cache is made by a thread that may not submit in the other
 * channel: that one's own caller does it, with what he does next.
 */
static void test_evicted_by_another_channel(void **state)
{
	struct air_channel_options o = { .size = sizeof(o),
					 .order = 2,
					 .flags = AIR_CHANNEL_SINGLE_CALLER };
	air_buffer *a = alloc(PAGE), *b = alloc(PAGE), *c;
	air_channel *first = f.ch, *single;

	assert_ok(air_channel_create(f.dev, &o, &single));
	assert_ok(air_buffer_alloc(single, PAGE, AIR_HOST, &c));
	assert_ok(air_buffer_free(c));
	assert_int_equal(f.dev->cache.bytes, PAGE);
	assert_ok(air_buffer_free(a));
	assert_ok(air_buffer_free(b));
	assert_int_equal(f.dev->cache.bytes, 2 * PAGE);
	assert_false(fake_serve(&f, AIR_OK));
	fake_nop(&f, 0);
	assert_true(fake_serve(&f, AIR_OK));
	assert_int_equal(last_opcode(), AIRUNNER_OP_BUFFER_RELEASE);
	assert_true(fake_serve(&f, AIR_OK));
	assert_int_equal(last_opcode(), AIRUNNER_OP_NOP);
	assert_ok(air_channel_destroy(single));
	f.ch = first;
	f.next = 0;
}

/* Not so in a channel for many, and not when it is the channel's own caller. */
static void test_evicted_at_once(void **state)
{
	air_channel *first = f.ch, *other;
	air_buffer *a, *b = alloc(PAGE), *c = alloc(PAGE);
	struct air_ring *r = &first->ring;
	struct air_sqe sqe;

	a = alloc(PAGE);
	assert_ok(air_buffer_free(a));
	assert_ok(air_channel_create(f.dev, NULL, &other));
	f.ch = first;
	assert_ok(air_buffer_alloc(other, 2 * PAGE, AIR_HOST, &a));
	assert_ok(air_buffer_free(a));
	assert_true(air_ring_fetch(r, 0, &sqe));
	assert_int_equal(airunner_sqe_opcode(sqe.word[0]),
			 AIRUNNER_OP_BUFFER_RELEASE);
	assert_ok(air_channel_destroy(other));

	r->single = true;
	assert_ok(air_buffer_free(b));
	fake_serve_all(&f);
	assert_ok(air_buffer_free(c));
	fake_serve_all(&f);
	assert_ok(air_buffer_free(alloc(2 * PAGE)));
	assert_true(fake_serve(&f, AIR_OK));
	assert_int_equal(last_opcode(), AIRUNNER_OP_BUFFER_RELEASE);
}

static void test_left_to_the_channel(void **state)
{
	/* Live, draining and cached: fake_stop() and ASan see to the rest. */
	air_buffer *buf = alloc(PAGE);

	alloc(2 * PAGE);
	assert_ok(air_buffer_free(alloc(3 * PAGE)));
	fake_nop(&f, AIR_CALL_DETACHED);
	assert_ok(air_buffer_free(buf));
}

/* ------------------------------------------------------------------ import */

static void test_import(void **state)
{
	static char mine[100];
	air_buffer *buf;
	air_token token;

	assert_ok(air_buffer_import(f.ch, mine, sizeof(mine), AIR_HOST, &buf));
	assert_ptr_equal(air_buffer_data(buf), mine);
	assert_int_equal(air_buffer_size(buf), sizeof(mine));
	token = fake_nop(&f, 0);
	assert_ok(air_buffer_free(buf));
	/* Never cached: it is not ours to keep. */
	assert_int_equal(f.dev->cache.bytes, 0);
	assert_int_equal(fake_serve_all(&f), 2);
	assert_int_equal(last_opcode(), AIRUNNER_OP_BUFFER_RELEASE);
	air_buffer_reap(f.ch);
	assert_int_equal(f.registered, 0);
	assert_ok(air_poll(f.ch, token, NULL));
}

static void test_import_device_pointer(void **state)
{
	air_buffer *buf;

	assert_ok(
		air_buffer_import(f.ch, (void *)0x7000, 100, AIR_DEVICE, &buf));
	assert_null(air_buffer_data(buf));
	assert_int_equal(buf->device, 0x7000);
	assert_ok(air_buffer_free(buf));
	assert_true(fake_serve(&f, AIR_OK));
}

/* ----------------------------------------------------------- device memory */

static air_status next_status;

static void serve_next(struct fake *fake)
{
	fake_serve(fake, next_status);
}

static void test_device_memory(void **state)
{
	air_buffer *buf;

	f.on_sleep = serve_next;
	next_status = AIR_UNSUPPORTED;
	assert_int_equal(air_buffer_alloc(f.ch, 100, AIR_DEVICE, &buf),
			 AIR_UNSUPPORTED);
	assert_sentence("AIR_HOST");
	next_status = AIR_NO_MEMORY;
	assert_int_equal(air_buffer_alloc(f.ch, 100, AIR_DEVICE, &buf),
			 AIR_NO_MEMORY);
	next_status = AIR_OK;
	assert_ok(air_buffer_alloc(f.ch, 100, AIR_DEVICE, &buf));
	assert_int_equal(last_opcode(), AIRUNNER_OP_BUFFER_ALLOC);
	assert_int_equal(airunner_sqe_id(f.last.word[0]), handle(buf));
	assert_int_equal(f.last.word[7], PAGE);
	assert_null(air_buffer_data(buf));
	assert_int_equal(f.registered, 0);
	/* It has a cache of its own kind. */
	assert_ok(air_buffer_free(buf));
	assert_int_equal(f.dev->cache.bytes, PAGE);
	assert_ok(air_buffer_free(alloc(PAGE)));
	assert_int_equal(f.dev->cache.bytes, 2 * PAGE);
	assert_ok(air_buffer_alloc(f.ch, 100, AIR_DEVICE, &buf));
	assert_int_equal(f.dev->cache.bytes, PAGE);
	assert_ok(air_buffer_free(buf));
}

static void test_device_memory_goes_with_its_worker(void **state)
{
	struct air_call call;
	air_buffer *buf;
	air_token token;

	f.on_sleep = fake_serve_one;
	assert_ok(air_buffer_alloc(f.ch, 100, AIR_DEVICE, &buf));
	f.ch->ring.ctrl->sq_epoch++;
	call = exec_on(air_buffer_ref(buf, 0));
	assert_ok(air_submit(f.ch, &call, 1, &token));
	assert_true(fake_serve_detail(&f, AIR_BAD_HANDLE, 1));
	assert_int_equal(air_wait(f.ch, token, 0, NULL), AIR_BAD_HANDLE);
	assert_sentence("went with its worker");
	assert_ok(air_buffer_free(buf));
	assert_int_equal(f.dev->cache.bytes, 0);
}

/* ----------------------------------------------------------------- handles */

static void test_handles_run_out(void **state)
{
	air_buffer *buf;

	f.dev->max_handle = 2;
	alloc(PAGE);
	alloc(PAGE);
	assert_int_equal(air_buffer_alloc(f.ch, 1, AIR_HOST, &buf), AIR_QUOTA);
	assert_sentence("2 buffers");
}

static void test_handles_go_round(void **state)
{
	uint32_t last = 0;

	f.dev->max_handle = 5;
	for (int i = 0; i < 20; i++) {
		air_buffer *buf = alloc(PAGE);

		assert_int_equal(handle(buf), last % 5 + 1);
		last = handle(buf);
		assert_ok(air_buffer_free(buf));
		fake_serve_all(&f);
		air_buffer_reap(f.ch);
	}
}

#define T(name) cmocka_unit_test_setup_teardown(name, start, stop)
#define T0(name)                                                               \
	cmocka_unit_test_setup_teardown(name, start_without_cache, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_arguments),
		T(test_memory_is_there),
		T(test_reference),
		T(test_registration_refused),
		T(test_lives_until_its_last_use),
		T(test_cached_memory_is_reused),
		T(test_a_little_larger_will_do),
		T(test_freed_reference_is_refused),
		T0(test_without_cache_it_is_released),
		T0(test_release_waits_for_room),
		T0(test_release_failing_is_silent),
		cmocka_unit_test_setup_teardown(test_oldest_are_evicted,
						start_with_two_pages, stop),
		cmocka_unit_test_setup_teardown(test_evicted_by_another_channel,
						start_with_two_pages, stop),
		cmocka_unit_test_setup_teardown(test_evicted_at_once,
						start_with_two_pages, stop),
		T(test_left_to_the_channel),
		T(test_import),
		T(test_import_device_pointer),
		T(test_device_memory),
		T(test_device_memory_goes_with_its_worker),
		T(test_handles_run_out),
		T0(test_handles_go_round),
	};

	return cmocka_run_group_tests_name("buffer", tests, NULL, NULL);
}
