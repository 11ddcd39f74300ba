// SPDX-License-Identifier: MIT
/*
 * What a submission may and may not be: every malformed slot gets a status of
 * its own, with the number of the word at fault, and nothing else happens.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/worker_client.h"

struct fixture {
	struct air_worker *w;
	struct client c;
};

static struct fixture fx;

/* Descriptor 1 is a relu of 16 floats on the CPU. */
static int set_up(void **state)
{
	struct airunner_desc d = desc_relu(16, AIRUNNER_EXEC_CPU);

	fakes_reset();
	fx.w = worker_start(NULL, NULL);
	client_open(&fx.c, fx.w, NULL);
	assert_int_equal(client_desc(&fx.c, 1, &d, NULL), AIR_OK);
	return 0;
}

static int tear_down(void **state)
{
	client_close(&fx.c, AIR_REMOVE_DRAIN);
	worker_end(fx.w);
	return 0;
}

#define expect(sqe, want, want_detail) \
	expect_at(__LINE__, &(sqe), AIRUNNER_S_##want, want_detail)

static void expect_at(int line, const struct air_sqe *sqe,
		      enum airunner_status want, uint32_t want_detail)
{
	struct air_cqe cqe = client_wait(&fx.c, client_submit(&fx.c, sqe));

	if (cqe.status != want || cqe.detail != want_detail)
		fail_msg("line %d: status %d detail %u; expected %d, %u", line,
			 cqe.status, cqe.detail, want, want_detail);
}

static struct air_sqe good_relu(void)
{
	return sqe_relu(1, 0, fx.c.arena, fx.c.arena + 64);
}

static void test_opcodes(void **state)
{
	static const uint8_t known[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 255 };
	struct air_sqe sqe = { { 0 } };

	expect(sqe, BAD_OPCODE, 0);
	for (int op = 0; op < 256; op++) {
		if (memchr(known, op, sizeof(known)))
			continue;
		sqe = sqe_head((uint8_t)op, 0);
		expect(sqe, BAD_OPCODE, 0);
	}
	sqe = sqe_head(AIRUNNER_OP_CANCELED, 1);
	expect(sqe, CANCELED, 0);
	/* A cancelled one is cancelled, whatever else was wrong with it. */
	memset(&sqe.word[1], 0xff, 7 * 8);
	sqe.word[0] |= 0xffff00;
	expect(sqe, CANCELED, 0);
}

static void test_flags(void **state)
{
	struct air_sqe sqe;

	for (unsigned int bit = 2; bit < 8; bit++) {
		sqe = good_relu();
		sqe.word[0] |= 1ull << (8 + bit);
		expect(sqe, BAD_FLAGS, 0);
		sqe = sqe_nop();
		sqe.word[0] |= 1ull << (8 + bit);
		expect(sqe, BAD_FLAGS, 0);
	}
	for (unsigned int flags = 0; flags < 4; flags++) {
		sqe = good_relu();
		sqe.word[0] |= flags << 8;
		expect(sqe, OK, 0);
		sqe = sqe_nop();
		sqe.word[0] |= flags << 8;
		expect(sqe, OK, 0);
	}
}

static void test_nop(void **state)
{
	struct air_sqe sqe;

	for (unsigned int i = 1; i < 8; i++) {
		sqe = sqe_nop();
		sqe.word[i] = 1;
		expect(sqe, BAD_RESERVED, i);
	}
	sqe = sqe_head(AIRUNNER_OP_NOP, 1);
	expect(sqe, BAD_ID, 0);
}

static void test_exec(void **state)
{
	struct air_sqe sqe = good_relu();
	uint64_t end = fx.c.size;

	expect(sqe, OK, 0);
	sqe = sqe_relu(2, 0, fx.c.arena, fx.c.arena);
	expect(sqe, BAD_ID, 0);
	sqe = sqe_relu(0, 0, fx.c.arena, fx.c.arena);
	expect(sqe, BAD_ID, 0);
	sqe = sqe_relu(AIRUNNER_ID_MASK, 0, fx.c.arena, fx.c.arena);
	expect(sqe, BAD_ID, 0);

	for (unsigned int i = 1; i <= 2; i++) {
		sqe = good_relu();
		sqe.word[i] = airunner_ref(5, 0);
		expect(sqe, BAD_HANDLE, i);
		sqe.word[i] = airunner_ref(0xfffe, 0);
		expect(sqe, BAD_HANDLE, i);
		sqe.word[i] = AIRUNNER_REF_NONE;
		expect(sqe, BAD_HANDLE, i);
		/* one byte, one element and everything too far */
		sqe.word[i] = airunner_ref(0, end - 60);
		expect(sqe, BAD_RANGE, i);
		sqe.word[i] = airunner_ref(0, end);
		expect(sqe, BAD_RANGE, i);
		sqe.word[i] = airunner_ref(0, AIRUNNER_OFFSET_MASK);
		expect(sqe, BAD_RANGE, i);
		sqe.word[i] = airunner_ref(0, fx.c.arena + 1);
		expect(sqe, BAD_ALIGN, i);
		sqe.word[i] = airunner_ref(0, end - 64);
		expect(sqe, OK, 0);
	}
	for (unsigned int i = 3; i <= 5; i++) {
		sqe = good_relu();
		sqe.word[i] = airunner_ref(0, fx.c.arena);
		expect(sqe, BAD_RESERVED, i);
		sqe.word[i] = 0;
		expect(sqe, OK, 0);
	}
	sqe = good_relu();
	sqe.word[7] = 1;
	expect(sqe, BAD_RESERVED, 7);
	/* in place is allowed, half in place is not */
	sqe = sqe_relu(1, 0, fx.c.arena, fx.c.arena);
	expect(sqe, OK, 0);
	sqe = sqe_relu(1, 0, fx.c.arena, fx.c.arena + 32);
	expect(sqe, ALIASING, 2);
}

static void test_desc_create(void **state)
{
	struct airunner_desc_reply reply;
	struct airunner_desc d;
	struct air_sqe sqe;

	for (unsigned int i = 2; i < 8; i++) {
		sqe = sqe_head(AIRUNNER_OP_DESC_CREATE, 2);
		sqe.word[1] = airunner_ref(0, fx.c.arena);
		sqe.word[i] = 1;
		expect(sqe, BAD_RESERVED, i);
	}
	sqe = sqe_head(AIRUNNER_OP_DESC_CREATE, 2);
	sqe.word[1] = airunner_ref(7, 0);
	expect(sqe, BAD_HANDLE, 1);
	sqe.word[1] = AIRUNNER_REF_NONE;
	expect(sqe, BAD_HANDLE, 1);
	sqe.word[1] = airunner_ref(0, fx.c.size - 1016);
	expect(sqe, BAD_RANGE, 1);
	sqe.word[1] = airunner_ref(0, AIRUNNER_OFFSET_MASK);
	expect(sqe, BAD_RANGE, 1);
	sqe.word[1] = airunner_ref(0, fx.c.arena + 4);
	expect(sqe, BAD_ALIGN, 1);

	d = desc_relu(16, AIRUNNER_EXEC_ANY);
	assert_int_equal(client_desc(&fx.c, 1, &d, &reply), AIR_BAD_ID);
	assert_non_null(strstr(reply.why, "descriptor 1"));
	assert_int_equal(client_desc(&fx.c, AIR_MAX_IDS, &d, &reply),
			 AIR_QUOTA);
	assert_int_equal(client_desc(&fx.c, AIRUNNER_ID_MASK, &d, &reply),
			 AIR_QUOTA);
	assert_int_equal(client_desc(&fx.c, AIR_MAX_IDS - 1, &d, &reply),
			 AIR_OK);
	assert_int_equal(reply.executor, AIRUNNER_EXEC_CPU);
	assert_int_equal(reply.workspace, 0);
	assert_int_equal(reply.resv, 0);
	assert_true(reply.why[0]);

	d = desc_relu(16, AIRUNNER_EXEC_CUDA_LAUNCH);
	assert_int_equal(client_desc(&fx.c, 2, &d, &reply), AIR_NO_DEVICE);
	assert_true(reply.why[0]);
	d = desc_relu(16, 4);
	assert_int_equal(client_desc(&fx.c, 2, &d, &reply), AIR_BAD_ARGUMENT);
	d = desc_relu(16, AIRUNNER_EXEC_CPU);
	d.op = 250;
	assert_int_equal(client_desc(&fx.c, 2, &d, &reply), AIR_BAD_OPERATOR);
	d = desc_relu(16, AIRUNNER_EXEC_CPU);
	d.tensor[1].dtype = 99;
	assert_int_equal(client_desc(&fx.c, 2, &d, &reply), AIR_BAD_DTYPE);
	assert_non_null(strstr(reply.why, "relu"));
	/* None of those exists. */
	sqe = sqe_relu(2, 0, fx.c.arena, fx.c.arena);
	expect(sqe, BAD_ID, 0);
}

static void test_desc_destroy(void **state)
{
	struct airunner_desc d = desc_relu(16, AIRUNNER_EXEC_CPU);
	struct air_sqe sqe;

	for (unsigned int i = 1; i < 8; i++) {
		sqe = sqe_head(AIRUNNER_OP_DESC_DESTROY, 1);
		sqe.word[i] = 1;
		expect(sqe, BAD_RESERVED, i);
	}
	sqe = sqe_head(AIRUNNER_OP_DESC_DESTROY, 3);
	expect(sqe, BAD_ID, 0);
	sqe = sqe_head(AIRUNNER_OP_DESC_DESTROY, 1);
	expect(sqe, OK, 0);
	expect(sqe, BAD_ID, 0);
	sqe = good_relu();
	expect(sqe, BAD_ID, 0);
	/* The id is free again. */
	assert_int_equal(client_desc(&fx.c, 1, &d, NULL), AIR_OK);
	expect(sqe, OK, 0);
}

static void test_buffers(void **state)
{
	static float data[64];
	struct air_wbuffer_config config = {
		.host = data,
		.size = sizeof(data),
		.memory = AIR_HOST,
	};
	struct air_error e;
	struct air_sqe sqe;

	assert_int_equal(air_worker_add_buffer(fx.c.ch, 0, &config, &e),
			 AIR_BAD_HANDLE);
	assert_int_equal(air_worker_add_buffer(fx.c.ch, 0xffff, &config, &e),
			 AIR_BAD_HANDLE);
	assert_int_equal(air_worker_add_buffer(fx.c.ch, 9, &config, &e),
			 AIR_OK);
	assert_int_equal(air_worker_add_buffer(fx.c.ch, 9, &config, &e),
			 AIR_BAD_HANDLE);
	config.host = NULL;
	assert_int_equal(air_worker_add_buffer(fx.c.ch, 10, &config, &e),
			 AIR_BAD_ARGUMENT);

	data[0] = -1;
	data[1] = 2;
	sqe = sqe_relu(1, 9, 64, 0);
	expect(sqe, OK, 0);
	assert_true(data[16] == 0 && data[17] == 2);
	sqe = sqe_relu(1, 9, 64, 256 - 60);
	expect(sqe, BAD_RANGE, 2);

	for (unsigned int i = 1; i < 8; i++) {
		sqe = sqe_head(AIRUNNER_OP_BUFFER_RELEASE, 9);
		sqe.word[i] = 1;
		expect(sqe, BAD_RESERVED, i);
	}
	sqe = sqe_head(AIRUNNER_OP_BUFFER_RELEASE, 0);
	expect(sqe, BAD_HANDLE, 0);
	sqe = sqe_head(AIRUNNER_OP_BUFFER_RELEASE, 0xffff);
	expect(sqe, BAD_HANDLE, 0);
	sqe = sqe_head(AIRUNNER_OP_BUFFER_RELEASE, 0x10009);
	expect(sqe, BAD_HANDLE, 0);
	sqe = sqe_head(AIRUNNER_OP_BUFFER_RELEASE, 9);
	expect(sqe, OK, 0);
	assert_int_equal(fx.c.gone, 1);
	assert_int_equal(fx.c.gone_handle, 9);
	expect(sqe, BAD_HANDLE, 0);
	sqe = sqe_relu(1, 9, 64, 0);
	expect(sqe, BAD_HANDLE, 1);

	/* What is left goes with the channel; the transport is told. */
	config.host = data;
	assert_int_equal(air_worker_add_buffer(fx.c.ch, 9, &config, &e),
			 AIR_OK);
	assert_int_equal(air_worker_drop_buffer(fx.c.ch, 9), AIR_OK);
	assert_int_equal(fx.c.gone, 2);
	assert_int_equal(air_worker_drop_buffer(fx.c.ch, 9), AIR_BAD_HANDLE);
	assert_int_equal(air_worker_drop_buffer(fx.c.ch, 0), AIR_BAD_HANDLE);
}

static void test_device_buffers(void **state)
{
	struct air_sqe sqe = sqe_head(AIRUNNER_OP_BUFFER_ALLOC, 4);

	sqe.word[7] = 4096;
	expect(sqe, UNSUPPORTED, 0);	/* the CPU has no memory of its own */
	sqe.word[7] = 0;
	expect(sqe, BAD_ARGUMENT, 7);
	sqe.word[7] = AIRUNNER_OFFSET_MASK + 1;
	expect(sqe, BAD_ARGUMENT, 7);
	for (unsigned int i = 1; i < 7; i++) {
		sqe = sqe_head(AIRUNNER_OP_BUFFER_ALLOC, 4);
		sqe.word[7] = 4096;
		sqe.word[i] = 1;
		expect(sqe, BAD_RESERVED, i);
	}
}

static void test_no_user_kernels(void **state)
{
	struct air_sqe sqe = sqe_head(AIRUNNER_OP_MODULE_LOAD, 1);

	sqe.word[1] = airunner_ref(0, fx.c.arena);
	sqe.word[2] = AIRUNNER_REF_NONE;
	sqe.word[7] = 16;
	expect(sqe, UNSUPPORTED, 0);
	sqe = sqe_head(AIRUNNER_OP_MODULE_UNLOAD, 1);
	expect(sqe, BAD_ID, 0);
	sqe = sqe_head(AIRUNNER_OP_LAUNCH, 1);
	expect(sqe, BAD_ID, 0);
}

/* The record is changed while it is read: what was checked is what is used. */
static uint32_t stop_changing;

static void *change(void *arg)
{
	uint64_t offset = fx.c.size - sizeof(struct airunner_desc_record);
	struct airunner_desc_record *record =
		(struct airunner_desc_record *)((char *)fx.c.region + offset);
	int64_t *n = (int64_t *)&record->desc.tensor[0].shape[0];

	while (!air_load(&stop_changing, RELAXED)) {
		air_store(n, 1ll << 40, RELAXED);
		air_store(n, 16, RELAXED);
	}
	return NULL;
}

static void test_toctou(void **state)
{
	struct air_sqe create = sqe_head(AIRUNNER_OP_DESC_CREATE, 3);
	struct air_sqe destroy = sqe_head(AIRUNNER_OP_DESC_DESTROY, 3);
	struct airunner_desc d = desc_relu(16, AIRUNNER_EXEC_CPU);
	uint64_t offset = fx.c.size - sizeof(struct airunner_desc_record);
	unsigned int refused = 0;
	pthread_t thread;

	assert_int_equal(client_desc(&fx.c, 3, &d, NULL), AIR_OK);
	expect(destroy, OK, 0);
	create.word[1] = airunner_ref(0, offset);
	stop_changing = 0;
	pthread_create(&thread, NULL, change, NULL);
	for (int i = 0; i < 3000; i++) {
		struct air_sqe sqe = sqe_relu(3, 0, fx.c.arena, fx.c.arena);
		air_status st = client_run(&fx.c, &create);

		if (st) {
			assert_int_equal(st, AIR_BAD_SHAPE);
			refused++;
			continue;
		}
		expect(sqe, OK, 0);
		expect(destroy, OK, 0);
	}
	air_store(&stop_changing, 1, RELAXED);
	pthread_join(thread, NULL);
	assert_true(refused < 3000);
}

/* Random words in every field, and what is random is not always nonsense. */
static void test_random_slots(void **state)
{
	uint64_t x = 88172645463325252ull;
	uint32_t answers = 0;

	for (int i = 0; i < 20000; i++) {
		struct air_sqe sqe;

		for (int k = 0; k < 8; k++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			switch (x % 5) {
			case 0:
				sqe.word[k] = 0;
				break;
			case 1:
				sqe.word[k] = airunner_ref(0, fx.c.arena);
				break;
			case 2:
				sqe.word[k] = AIRUNNER_REF_NONE;
				break;
			case 3:
				sqe.word[k] = x >> 50;
				break;
			default:
				sqe.word[k] = x & AIRUNNER_PAYLOAD_MASK;
				break;
			}
		}
		if (x & 1)
			sqe.word[0] = airunner_sqe_head(
				x >> 8 & 15, x >> 20 & 3, 0, x >> 30 & 3);
		client_run(&fx.c, &sqe);
		answers++;
	}
	assert_int_equal(answers, 20000);
	assert_int_equal(fx.c.died, 0);
}

#define both(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		both(test_opcodes),
		both(test_flags),
		both(test_nop),
		both(test_exec),
		both(test_desc_create),
		both(test_desc_destroy),
		both(test_buffers),
		both(test_device_buffers),
		both(test_no_user_kernels),
		both(test_toctou),
		both(test_random_slots),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
