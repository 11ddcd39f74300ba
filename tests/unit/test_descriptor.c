// SPDX-License-Identifier: MIT
/*
 * Descriptors: checked, made by the worker, executed, made again by another
 * worker. Sentences about operands.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <airunner.h>
#include <airunner/ops/relu.h>
#include <airunner/ops/vector_add.h>

#include "libairunner/descriptor.h"
#include "libairunner/descriptor_object.h"
#include "tests/unit/fake_worker.h"

#define assert_sentence(part) assert_non_null(strstr(air_last_error(), part))
#define assert_ok(call)	      assert_int_equal(call, AIR_OK)
#define DIMS(...)	      ((const int64_t[]){ __VA_ARGS__ })

/* --------------------------------------------- with a worker that is real */

static air_device *dev;
static air_channel *ch;
static air_tensor x, y;

static int open_real(void **state)
{
	struct air_device_options o = { .size = sizeof(o),
					.threads = 1,
					.executors = "cpu" };

	assert_ok(air_open("inproc:", &o, &dev));
	assert_ok(air_channel_create(dev, NULL, &ch));
	assert_ok(air_tensor_alloc(ch, AIR_HOST, AIR_F32, 2, DIMS(3, 5), &x));
	assert_ok(air_tensor_alloc(ch, AIR_HOST, AIR_F32, 2, DIMS(3, 5), &y));
	return 0;
}

static int close_real(void **state)
{
	assert_ok(air_channel_destroy(ch));
	assert_ok(air_close(dev));
	return 0;
}

static void test_life(void **state)
{
	float *in = air_tensor_data(&x), *out = air_tensor_data(&y);
	struct air_completion c;
	air_descriptor *relu;
	air_token token;
	const char *why;
	size_t bytes;

	for (int i = 0; i < 15; i++)
		in[i] = (float)(i - 7);
	assert_ok(air_create_relu_descriptor(ch, &relu, &y.desc, &x.desc));
	assert_string_equal(air_descriptor_name(relu), "relu");
	assert_int_equal(air_descriptor_executor(relu, &why), AIR_EXEC_CPU);
	assert_true(strlen(why) > 0);
	assert_int_equal(air_descriptor_executor(relu, NULL), AIR_EXEC_CPU);
	assert_ok(air_get_relu_workspace_size(relu, &bytes));
	assert_int_equal(bytes, 0);
	assert_int_equal(air_get_relu_workspace_size(relu, NULL),
			 AIR_BAD_ARGUMENT);
	assert_ok(air_execute_relu(relu, AIR_NO_REF, air_tensor_ref(&y),
				   air_tensor_ref(&x), &token));
	assert_ok(air_wait(ch, token, AIR_FOREVER, &c));
	for (int i = 0; i < 15; i++)
		assert_true(out[i] == (i > 7 ? (float)(i - 7) : 0));
	/* Detached, then destroyed while it may still be running. */
	memset(out, 0x7f, 60);
	assert_ok(air_execute_relu(relu, AIR_NO_REF, air_tensor_ref(&y),
				   air_tensor_ref(&x), NULL));
	assert_ok(air_destroy_relu_descriptor(relu));
	assert_ok(air_drain(ch, AIR_FOREVER));
	assert_true(out[14] == 7);
	assert_ok(air_channel_error(ch, NULL));
	assert_ok(air_destroy_relu_descriptor(NULL));
}

static void test_refused_at_creation(void **state)
{
	air_descriptor *d = NULL;
	air_tensor_desc bad = x.desc;

	assert_int_equal(air_create_relu_descriptor(NULL, &d, &y.desc, &x.desc),
			 AIR_BAD_ARGUMENT);
	assert_int_equal(air_create_relu_descriptor(ch, NULL, &y.desc, &x.desc),
			 AIR_BAD_ARGUMENT);
	assert_int_equal(air_create_relu_descriptor(ch, &d, &y.desc, NULL),
			 AIR_BAD_ARGUMENT);
	assert_sentence("relu");
	assert_sentence("x");
	bad.shape[1] = 4;
	assert_int_equal(air_create_relu_descriptor(ch, &d, &y.desc, &bad),
			 AIR_BAD_SHAPE);
	assert_sentence("relu");
	bad = x.desc;
	bad.dtype = AIR_I32;
	assert_int_equal(air_create_relu_descriptor(ch, &d, &y.desc, &bad),
			 AIR_BAD_DTYPE);
	bad = y.desc;
	bad.stride[0] = 0;
	assert_int_equal(air_create_relu_descriptor(ch, &d, &bad, &x.desc),
			 AIR_BAD_STRIDES);
	assert_int_equal(air_descriptor_create(ch, (enum air_op_id)250, NULL, 0,
					       NULL, 0, &d),
			 AIR_BAD_OPERATOR);
	assert_int_equal(air_descriptor_create(ch, AIR_OP_relu, NULL, 6, NULL,
					       0, &d),
			 AIR_BAD_ARGUMENT);
	assert_null(d);
}

static void test_operands_are_named(void **state)
{
	struct air_completion c;
	air_descriptor *d;
	air_token token;

	assert_ok(air_create_relu_descriptor(ch, &d, &y.desc, &x.desc));
	assert_ok(air_execute_relu(d, AIR_NO_REF, air_tensor_ref(&y),
				   air_buffer_ref(x.buf, 4092), &token));
	assert_int_equal(air_wait(ch, token, AIR_FOREVER, &c), AIR_BAD_RANGE);
	assert_int_equal(c.detail, 2);
	assert_sentence("relu: x (operand 2) at offset 4092 of a buffer");
	assert_sentence("of 4096 bytes, needs 60 bytes aligned to 4");
	assert_ok(air_execute_relu(d, AIR_NO_REF, air_buffer_ref(y.buf, 1),
				   air_tensor_ref(&x), &token));
	assert_int_equal(air_wait(ch, token, AIR_FOREVER, &c), AIR_BAD_ALIGN);
	assert_sentence("relu: y (operand 1) at offset 1");
	assert_ok(air_execute_relu(d, AIR_NO_REF, air_buffer_ref(x.buf, 4),
				   air_tensor_ref(&x), &token));
	assert_int_equal(air_wait(ch, token, AIR_FOREVER, &c), AIR_ALIASING);
	assert_ok(air_execute_relu(d, AIR_NO_REF, AIR_NO_REF,
				   air_tensor_ref(&x), &token));
	assert_int_equal(air_wait(ch, token, AIR_FOREVER, &c), AIR_BAD_HANDLE);
	assert_sentence("y (operand 1) left out");
	assert_ok(air_destroy_relu_descriptor(d));
}

static void test_descriptor_of_another_operator(void **state)
{
	air_descriptor *d;
	struct air_call call;
	air_token token;
	size_t bytes;

	assert_ok(air_create_relu_descriptor(ch, &d, &y.desc, &x.desc));
	assert_int_equal(air_get_vector_add_workspace_size(d, &bytes),
			 AIR_BAD_ARGUMENT);
	assert_int_equal(air_prepare_vector_add(d, &call, AIR_NO_REF,
						AIR_NO_REF, AIR_NO_REF,
						AIR_NO_REF),
			 AIR_BAD_ARGUMENT);
	assert_sentence(
		"a descriptor of relu was given to a call of vector_add");
	assert_int_equal(air_execute_vector_add(d, AIR_NO_REF, AIR_NO_REF,
						AIR_NO_REF, AIR_NO_REF, &token),
			 AIR_BAD_ARGUMENT);
	assert_int_equal(air_destroy_vector_add_descriptor(d),
			 AIR_BAD_ARGUMENT);
	assert_int_equal(air_execute_relu(NULL, AIR_NO_REF, AIR_NO_REF,
					  AIR_NO_REF, &token),
			 AIR_BAD_ARGUMENT);
	assert_ok(air_destroy_relu_descriptor(d));
}

static void test_preferred_executor(void **state)
{
	air_descriptor *d;

	air_prefer_executor(AIR_EXEC_CUDA_LAUNCH);
	assert_int_equal(air_create_relu_descriptor(ch, &d, &y.desc, &x.desc),
			 AIR_NO_DEVICE);
	assert_sentence("cuda");
	air_prefer_executor(AIR_EXEC_CPU);
	assert_ok(air_create_relu_descriptor(ch, &d, &y.desc, &x.desc));
	air_prefer_executor(AIR_EXEC_ANY);
	assert_ok(air_destroy_relu_descriptor(d));
}

#define MANY 300

static void *create_many(void *arg)
{
	for (int i = 0; i < MANY; i++) {
		air_descriptor *d;
		air_token token;

		if (air_create_relu_descriptor(ch, &d, &x.desc, &x.desc) ||
		    air_execute_relu(d, AIR_NO_REF, air_tensor_ref(&x),
				     air_tensor_ref(&x), &token) ||
		    air_destroy_relu_descriptor(d) ||
		    air_wait(ch, token, AIR_FOREVER, NULL))
			return strdup(air_last_error());
	}
	return NULL;
}

static void test_created_by_several_threads(void **state)
{
	struct air_channel_options o = { .size = sizeof(o), .arena = 1024 };
	air_channel *saved = ch;
	air_tensor saved_x = x;
	pthread_t thread[3];
	void *failed;

	/* One record in the arena: they take turns. */
	assert_ok(air_channel_create(dev, &o, &ch));
	assert_ok(air_tensor_alloc(ch, AIR_HOST, AIR_F32, 2, DIMS(3, 5), &x));
	for (int i = 0; i < 3; i++)
		pthread_create(&thread[i], NULL, create_many, NULL);
	for (int i = 0; i < 3; i++) {
		pthread_join(thread[i], &failed);
		if (failed)
			fail_msg("%s", (char *)failed);
	}
	assert_ok(air_channel_destroy(ch));
	ch = saved;
	x = saved_x;
}

/* ------------------------------------------------ with one that is the test */

static struct fake f;
static air_tensor_desc desc;

static int start(void **state)
{
	fake_start(&f, 2);
	assert_ok(air_tensor_desc_init(&desc, AIR_F32, 1, DIMS(8), NULL));
	return 0;
}

static int stop(void **state)
{
	fake_stop(&f);
	return 0;
}

static struct {
	air_status status;
	uint64_t workspace;
	const char *why;
	unsigned int made;
	uint32_t last_id;
} reply;

/* Serve one; of a DESC_CREATE write the reply, as a worker does. */
static void serve_descriptor(struct fake *fake)
{
	struct airunner_desc_record *record;
	struct air_sqe sqe;

	if (!air_ring_fetch(&fake->ch->ring, fake->next, &sqe))
		return;
	if (airunner_sqe_opcode(sqe.word[0]) != AIRUNNER_OP_DESC_CREATE) {
		fake_serve(fake, AIR_OK);
		return;
	}
	assert_int_equal(airunner_ref_handle(sqe.word[1]), 0);
	assert_int_equal(airunner_ref_offset(sqe.word[1]) % 64, 0);
	assert_true(airunner_ref_offset(sqe.word[1]) + sizeof(*record) <=
		    fake->ch->region.size);
	record = (struct airunner_desc_record *)((char *)fake->ch->region.addr +
						 airunner_ref_offset(
							 sqe.word[1]));
	assert_int_equal(record->desc.op, AIR_OP_relu);
	record->reply.workspace = reply.workspace;
	record->reply.executor = AIRUNNER_EXEC_CUDA_RESIDENT;
	memset(record->reply.why, 'x', sizeof(record->reply.why));
	if (reply.why)
		strcpy(record->reply.why, reply.why);
	reply.made++;
	reply.last_id = airunner_sqe_id(sqe.word[0]);
	fake_serve(fake, reply.status);
}

static air_descriptor *create(void)
{
	air_descriptor *d;

	f.on_sleep = serve_descriptor;
	assert_ok(air_create_relu_descriptor(f.ch, &d, &desc, &desc));
	return d;
}

static void reset_reply(void)
{
	memset(&reply, 0, sizeof(reply));
	reply.workspace = 12345;
	reply.why = "because";
}

static void test_reply_is_taken(void **state)
{
	air_descriptor *d;
	const char *why;
	size_t bytes;

	reset_reply();
	d = create();
	assert_int_equal(air_descriptor_executor(d, &why),
			 AIR_EXEC_CUDA_RESIDENT);
	assert_string_equal(why, "because");
	assert_ok(air_get_relu_workspace_size(d, &bytes));
	assert_int_equal(bytes, 12345);
	assert_ok(air_destroy_relu_descriptor(d));
	/* A sentence without an end does not lead astray. */
	reset_reply();
	reply.why = NULL;
	d = create();
	air_descriptor_executor(d, &why);
	assert_int_equal(strlen(why), 175);
	assert_ok(air_destroy_relu_descriptor(d));
}

static void test_worker_refuses(void **state)
{
	air_descriptor *d;

	reset_reply();
	reply.status = AIR_UNSUPPORTED;
	reply.why = "relu: not here";
	f.on_sleep = serve_descriptor;
	assert_int_equal(air_create_relu_descriptor(f.ch, &d, &desc, &desc),
			 AIR_UNSUPPORTED);
	assert_string_equal(air_last_error(), "relu: not here");
	reply.why = "";
	assert_int_equal(air_create_relu_descriptor(f.ch, &d, &desc, &desc),
			 AIR_UNSUPPORTED);
	assert_string_equal(air_last_error(),
			    air_status_string(AIR_UNSUPPORTED));
}

static void test_execution_slot(void **state)
{
	air_descriptor *d;
	struct air_call call;

	reset_reply();
	d = create();
	assert_ok(air_prepare_relu(d, &call, AIR_NO_REF, (air_ref){ 111 },
				   (air_ref){ 222 }));
	assert_int_equal(airunner_sqe_opcode(call.word[0]), AIRUNNER_OP_EXEC);
	assert_int_equal(airunner_sqe_id(call.word[0]), d->id);
	assert_int_equal(call.word[1], 111);
	assert_int_equal(call.word[2], 222);
	assert_int_equal(call.word[3], 0);
	assert_int_equal(call.word[6], AIR_NO_REF.bits);
	assert_int_equal(call.word[7], 0);
	assert_int_equal(call.flags, 0);
	assert_ok(air_destroy_relu_descriptor(d));
	assert_true(fake_serve(&f, AIR_OK));
	assert_int_equal(airunner_sqe_opcode(f.last.word[0]),
			 AIRUNNER_OP_DESC_DESTROY);
}

static void test_destroyed_while_the_ring_is_full(void **state)
{
	air_descriptor *d;

	reset_reply();
	d = create();
	for (int i = 0; i < 4; i++)
		fake_nop(&f, 0);
	assert_ok(air_destroy_relu_descriptor(d));
	/* Left to fake_stop(): destroying the channel frees it. */
}

static void test_full_ring_makes_creation_wait(void **state)
{
	air_descriptor *d;
	air_token token[4];

	reset_reply();
	f.on_sleep = serve_descriptor;
	for (int i = 0; i < 4; i++)
		token[i] = fake_nop(&f, i ? 0 : AIR_CALL_DETACHED);
	d = create();
	assert_ok(air_poll(f.ch, token[1], NULL));
	assert_ok(air_destroy_relu_descriptor(d));
	/* What is completed and not collected makes no room: said at once. */
	assert_ok(air_poll(f.ch, token[2], NULL));
	assert_ok(air_poll(f.ch, token[3], NULL));
	fake_serve_all(&f);
	for (int i = 0; i < 4; i++)
		token[i] = fake_nop(&f, 0);
	fake_serve_all(&f);
	assert_int_equal(air_create_relu_descriptor(f.ch, &d, &desc, &desc),
			 AIR_FULL);
}

static void test_another_worker_gets_them(void **state)
{
	air_descriptor *d, *e;
	uint32_t first;

	reset_reply();
	d = create();
	e = create();
	first = d->id;
	assert_int_equal(reply.made, 2);
	f.ch->ring.ctrl->sq_epoch++;
	assert_ok(
		air_execute_relu(d, AIR_NO_REF, AIR_NO_REF, AIR_NO_REF, NULL));
	assert_int_equal(reply.made, 4);
	assert_int_equal(d->id, first);
	assert_int_equal(reply.last_id, e->id);
	/* And no more than once. */
	assert_ok(
		air_execute_relu(d, AIR_NO_REF, AIR_NO_REF, AIR_NO_REF, NULL));
	assert_int_equal(reply.made, 4);
	assert_ok(air_destroy_relu_descriptor(e));
	fake_serve_all(&f);
	f.ch->ring.ctrl->sq_epoch++;
	assert_ok(
		air_execute_relu(d, AIR_NO_REF, AIR_NO_REF, AIR_NO_REF, NULL));
	assert_int_equal(reply.made, 5);
	assert_ok(air_destroy_relu_descriptor(d));
}

/* What another worker cannot make must not stop the channel. */
static void test_another_worker_refuses_one(void **state)
{
	air_descriptor *d;

	reset_reply();
	d = create();
	f.ch->ring.ctrl->sq_epoch++;
	reply.status = AIR_UNSUPPORTED;
	fake_nop(&f, AIR_CALL_DETACHED);
	assert_int_equal(reply.made, 2);
	fake_nop(&f, AIR_CALL_DETACHED);
	assert_int_equal(reply.made, 2);
	assert_ok(air_destroy_relu_descriptor(d));
}

/*
 * A submission that reached the new worker before the library knew of it: the
 * worker says BAD_ID; what the user is told is what happened.
 */
static void test_bad_id_of_a_new_worker(void **state)
{
	air_descriptor *d;
	air_token token;

	reset_reply();
	d = create();
	assert_ok(air_execute_relu(d, AIR_NO_REF, AIR_NO_REF, AIR_NO_REF,
				   &token));
	f.ch->ring.ctrl->sq_epoch++;
	fake_serve(&f, AIR_BAD_ID);
	assert_int_equal(air_wait(f.ch, token, 0, NULL), AIR_WORKER_DIED);
	/* Of the same worker it is what it says. */
	f.on_sleep = serve_descriptor;
	assert_ok(air_execute_relu(d, AIR_NO_REF, AIR_NO_REF, AIR_NO_REF,
				   &token));
	while (fake_serve(&f, AIR_BAD_ID))
		;
	assert_int_equal(air_wait(f.ch, token, 0, NULL), AIR_BAD_ID);
	assert_sentence("relu");
	assert_ok(air_destroy_relu_descriptor(d));
}

/* More in a channel's life than a worker has numbers for. */
static void test_ids_come_back(void **state)
{
	air_descriptor *kept;

	reset_reply();
	kept = create();
	for (int i = 0; i < AIR_IDS_MAX + 10; i++) {
		air_descriptor *d = create();

		assert_int_equal(d->id, kept->id + 1);
		assert_ok(air_destroy_relu_descriptor(d));
		fake_serve_all(&f);
	}
	assert_ok(air_destroy_relu_descriptor(kept));
}

static void test_ids_run_out(void **state)
{
	struct air_ids ids = { .map = NULL };

	for (uint32_t i = 1; i <= AIR_IDS_MAX; i++)
		assert_int_equal(air_ids_take(&ids), i);
	assert_int_equal(air_ids_take(&ids), 0);
	air_ids_give(&ids, 4711);
	assert_int_equal(air_ids_take(&ids), 4711);
	air_ids_free(&ids);
}

static void die(struct fake *fake)
{
	fake->dead = true;
}

static void test_creation_when_the_worker_dies(void **state)
{
	air_descriptor *d;

	reset_reply();
	f.on_sleep = die;
	assert_int_equal(air_create_relu_descriptor(f.ch, &d, &desc, &desc),
			 AIR_NO_WORKER);
	f.next = air_channel_tail(f.ch);
}

#define T(name) cmocka_unit_test_setup_teardown(name, start, stop)
#define R(name) cmocka_unit_test_setup_teardown(name, open_real, close_real)

int main(void)
{
	const struct CMUnitTest tests[] = {
		R(test_life),
		R(test_refused_at_creation),
		R(test_operands_are_named),
		R(test_descriptor_of_another_operator),
		R(test_preferred_executor),
		R(test_created_by_several_threads),
		T(test_reply_is_taken),
		T(test_worker_refuses),
		T(test_execution_slot),
		T(test_destroyed_while_the_ring_is_full),
		T(test_full_ring_makes_creation_wait),
		T(test_another_worker_gets_them),
		T(test_another_worker_refuses_one),
		T(test_bad_id_of_a_new_worker),
		T(test_ids_come_back),
		cmocka_unit_test(test_ids_run_out),
		T(test_creation_when_the_worker_dies),
	};

	return cmocka_run_group_tests_name("descriptor", tests, NULL, NULL);
}
