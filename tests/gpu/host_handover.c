// SPDX-License-Identifier: MIT
/*
 * air_stream_wait() and air_quiet_begin() with a driver that runs nothing
 * (fake_cuda.h): streams wait for as long as they should and no longer, also
 * when they come to it late, and nothing that waits for streams is called
 * meanwhile; work goes on while the resident kernel is kept away.
 *
 *	AIRUNNER_LIBCUDA=.../libfake-cuda.so host_handover
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <time.h>

#include <airunner/cuda.h>
#include <airunner/launch.h>
#include <airunner/ops/matmul.h>
#include <airunner/ops/relu.h>

#include "include/uapi/airunner.h"
#include "tests/gpu/fake_cuda.h"

#define TIME_LIMIT INT64_C(60000000000)
/* Submissions: more laps than a completion word can tell apart. */
#define LONG_AGO 1000
/* More products than it takes until they become a graph. */
#define REPEATS 10
/* Streams that may wait at a time; they are half of the GPU's queues. */
#define LIMIT  3
#define QUEUES "6"

static struct fake_cuda *fake;
static __typeof__(&cuStreamCreateWithPriority) stream_create;
static __typeof__(&cuStreamQuery) stream_query;
static __typeof__(&cuStreamWaitValue64) stream_wait;
static __typeof__(&cuStreamWriteValue64) stream_write;
static __typeof__(&cuMemAllocHost) host_alloc;
static __typeof__(&cuMemFreeHost) host_free;

static air_device *dev;
static air_channel *ch;
static air_descriptor *relu;
static air_tensor x;
static CUstream stream;

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

static void ok(air_status st)
{
	if (st)
		print_error("%s: %s\n", air_status_string(st),
			    air_last_error());
	assert_int_equal(st, AIR_OK);
}

static void hold(int on)
{
	__atomic_store_n(&fake->hold, on, __ATOMIC_RELEASE);
}

static void open_channel(air_channel **out, uint32_t order)
{
	struct air_channel_options o = { .size = sizeof(o), .order = order };

	ok(air_channel_create(dev, &o, out));
}

static int set_up(void **state)
{
	struct air_device_options o = { .size = sizeof(o),
					.threads = 1,
					.executors = "cuda-launch" };

	memset(fake, 0, sizeof(*fake));
	fake->regs = 32;
	setenv("CUDA_DEVICE_MAX_CONNECTIONS", QUEUES, 1);
	ok(air_open("inproc:", &o, &dev));
	open_channel(&ch, 2);
	ok(air_tensor_alloc(ch, AIR_HOST, AIR_F32, 1, (const int64_t[]){ 64 },
			    &x));
	ok(air_create_relu_descriptor(ch, &relu, &x.desc, &x.desc));
	assert_int_equal(stream_create(&stream, CU_STREAM_NON_BLOCKING, 0), 0);
	return 0;
}

static int tear_down(void **state)
{
	hold(0);
	ok(air_channel_destroy(ch));
	ok(air_close(dev));
	assert_int_equal(fake->hangs, 0);
	assert_int_equal(fake->retained, 0);
	assert_int_equal(fake->registered, 0);
	return 0;
}

static air_token submit(void)
{
	air_token token;

	ok(air_execute_relu(relu, AIR_NO_REF, air_tensor_ref(&x),
			    air_tensor_ref(&x), &token));
	return token;
}

static void run_one(void)
{
	ok(air_wait(ch, submit(), TIME_LIMIT, NULL));
}

static bool passes(CUstream s, uint64_t within)
{
	uint64_t limit = now() + within;

	while (stream_query(s) != CUDA_SUCCESS) {
		if (now() > limit)
			return false;
		sched_yield();
	}
	return true;
}

/* A moment in which nothing may happen; longer finds more. */
static void assert_waits(CUstream s)
{
	assert_false(passes(s, 2000000));
}

static void assert_passes(CUstream s)
{
	assert_true(passes(s, (uint64_t)TIME_LIMIT));
}

static void test_arguments(void **state)
{
	struct air_device_options o = { .size = sizeof(o),
					.threads = 1,
					.executors = "cpu" };
	air_device *cpu;
	air_channel *other;
	air_token token;

	assert_int_equal(air_stream_wait(NULL, 1, stream), AIR_BAD_ARGUMENT);
	assert_int_equal(air_stream_wait(ch, 0, stream), AIR_BAD_TOKEN);
	token = submit();
	assert_int_equal(air_stream_wait(ch, token + 1, stream), AIR_BAD_TOKEN);
	assert_non_null(strstr(air_last_error(), "not of this channel"));
	ok(air_wait(ch, token, TIME_LIMIT, NULL));

	hold(1);
	token = submit();
	assert_int_equal(air_stream_wait(ch, token,
					 (void *)FAKE_CUDA_FOREIGN_STREAM),
			 AIR_BAD_ARGUMENT);
	assert_non_null(strstr(air_last_error(), "0x77"));
	hold(0);
	ok(air_wait(ch, token, TIME_LIMIT, NULL));

	ok(air_open("inproc:", &o, &cpu));
	ok(air_channel_create(cpu, NULL, &other));
	ok(air_submit(other, &(struct air_call){ 0 }, 1, &token));
	assert_int_equal(air_stream_wait(other, token, stream),
			 AIR_UNSUPPORTED);
	assert_non_null(strstr(air_last_error(), "no CUDA executor"));
	ok(air_channel_destroy(other));
	ok(air_close(cpu));
}

/* Nothing to wait for: nothing is enqueued. */
static void test_completed(void **state)
{
	air_token token = submit();

	ok(air_drain(ch, TIME_LIMIT));
	ok(air_stream_wait(ch, token, stream));
	ok(air_wait(ch, token, TIME_LIMIT, NULL));
	ok(air_stream_wait(ch, token, stream));
	for (int i = 0; i < LONG_AGO; i++)
		run_one();
	ok(air_stream_wait(ch, token, stream));
	assert_int_equal(fake->waits, 0);
}

static void test_waits(void **state)
{
	for (int i = 0; i < 200; i++) {
		air_token token;

		hold(1);
		token = submit();
		ok(air_stream_wait(ch, token, stream));
		assert_int_equal(fake->waits, i + 1);
		if (i % 50 == 0)
			assert_waits(stream);
		assert_int_equal(air_poll(ch, token, NULL), AIR_PENDING);
		hold(0);
		assert_passes(stream);
		/* it is still there to be collected, and has completed */
		ok(air_poll(ch, token, NULL));
	}
}

/* In the order of submission, and each stream for itself. */
static void test_one_after_the_other(void **state)
{
	air_token token[3];
	CUstream other;

	assert_int_equal(stream_create(&other, CU_STREAM_NON_BLOCKING, 0), 0);
	hold(1);
	for (int i = 0; i < 3; i++)
		token[i] = submit();
	ok(air_stream_wait(ch, token[2], stream));
	ok(air_stream_wait(ch, token[0], other));
	ok(air_stream_wait(ch, token[1], NULL));
	hold(0);
	assert_passes(other);
	assert_passes(stream);
	assert_passes(NULL);
	for (int i = 0; i < 3; i++)
		ok(air_wait(ch, token[i], TIME_LIMIT, NULL));
}

/* Block @s until *gate is 1. */
static void shut(CUstream s, uint64_t *gate)
{
	*gate = 0;
	assert_int_equal(stream_wait(s, (CUdeviceptr)gate, 1,
				     CU_STREAM_WAIT_VALUE_GEQ),
			 0);
}

static void open_gate(uint64_t *gate)
{
	__atomic_store_n(gate, 1, __ATOMIC_RELEASE);
}

/* A wait for a token that is pending when it is enqueued. */
static air_token wait_for_pending(CUstream s)
{
	air_token token;

	hold(1);
	token = submit();
	ok(air_stream_wait(ch, token, s));
	return token;
}

/*
 * The stream comes to its wait when the ring has gone round more often than a
 * completion word can tell.
 */
static void test_late(void **state)
{
	uint64_t gate, after = 0;
	air_token token;

	shut(stream, &gate);
	token = wait_for_pending(stream);
	assert_int_equal(stream_write(stream, (CUdeviceptr)&after, 7, 0), 0);
	hold(0);
	ok(air_wait(ch, token, TIME_LIMIT, NULL));
	for (int i = 0; i < LONG_AGO; i++)
		run_one();
	assert_int_equal(after, 0);
	open_gate(&gate);
	assert_passes(stream);
	assert_int_equal(after, 7);
}

static void make_operator(void)
{
	ok(air_tensor_alloc(ch, AIR_HOST, AIR_F32, 1, (const int64_t[]){ 64 },
			    &x));
	ok(air_create_relu_descriptor(ch, &relu, &x.desc, &x.desc));
}

/* ... or when the channel is gone, and another has the word. */
static void test_late_for_the_channel(void **state)
{
	uint64_t gate;
	air_token token;

	shut(stream, &gate);
	token = wait_for_pending(stream);
	hold(0);
	ok(air_wait(ch, token, TIME_LIMIT, NULL));
	ok(air_channel_destroy(ch));
	open_channel(&ch, 2);
	make_operator();
	token = wait_for_pending(NULL);
	assert_waits(NULL);
	open_gate(&gate);
	/* streams are held as well: only look at who may pass */
	hold(0);
	assert_passes(stream);
	assert_passes(NULL);
	ok(air_wait(ch, token, TIME_LIMIT, NULL));
}

/* The channel ends with a wait for what was never collected. */
static void test_channel_ends(void **state)
{
	wait_for_pending(stream);
	hold(0);
	ok(air_channel_destroy(ch));
	assert_passes(stream);
	open_channel(&ch, 2);
	make_operator();
}

/* What did not end well lets pass, too. */
static void test_failure(void **state)
{
	struct air_completion c;
	air_token token, bad;

	hold(1);
	token = submit();
	ok(air_execute_relu(relu, AIR_NO_REF, air_tensor_ref(&x),
			    air_buffer_ref(x.buf, 1 << 20), &bad));
	ok(air_stream_wait(ch, bad, stream));
	hold(0);
	assert_passes(stream);
	ok(air_wait(ch, token, TIME_LIMIT, NULL));
	assert_int_equal(air_wait(ch, bad, TIME_LIMIT, &c), AIR_BAD_RANGE);
	assert_int_equal(c.token, bad);
}

/* A context that is lost: all is answered, and the stream is told. */
static void test_lost(void **state)
{
	air_token token = wait_for_pending(stream);
	struct air_completion c;

	fake->fault = CUDA_ERROR_ILLEGAL_ADDRESS;
	hold(0);
	assert_int_equal(air_wait(ch, token, TIME_LIMIT, &c), AIR_DEVICE_LOST);
	/* in the next context all is as it was */
	token = wait_for_pending(stream);
	hold(0);
	assert_passes(stream);
	ok(air_wait(ch, token, TIME_LIMIT, NULL));
}

/* ----------------------------------- what must not be done while one waits */

struct job {
	void (*run)(struct job *job);
	air_channel *ch;
	int done;
};

static void *do_job(void *arg)
{
	struct job *job = arg;

	job->run(job);
	__atomic_store_n(&job->done, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void make_descriptor(struct job *job)
{
	air_descriptor *d;

	ok(air_create_relu_descriptor(job->ch, &d, &x.desc, &x.desc));
}

static void load_module(struct job *job)
{
	static const char image[64] = "not looked at";
	air_module *module;
	air_function *f;

	ok(air_module_load(job->ch, image, sizeof(image), &module));
	ok(air_function_get(module, "kernel", &f));
	ok(air_module_unload(module));
}

static void allocate(struct job *job)
{
	air_buffer *host, *device;

	ok(air_buffer_alloc(job->ch, 123 << 12, AIR_HOST, &host));
	ok(air_buffer_alloc(job->ch, 5000, AIR_DEVICE, &device));
	ok(air_buffer_free(host));
	ok(air_buffer_free(device));
}

static void come_and_go(struct job *job)
{
	air_channel *own;

	open_channel(&own, 3);
	ok(air_create_relu_descriptor(own, &relu, &x.desc, &x.desc));
	ok(air_channel_destroy(own));
}

/*
 * Another thread asks for what may wait for streams, of this channel or of
 * another: it comes to be, behind what the stream waits for.
 */
static void test_put_off(void **state)
{
	static void (*const jobs[])(struct job *) = {
		make_descriptor,
		load_module,
		allocate,
		come_and_go,
	};
	air_descriptor *mine = relu;
	air_channel *other;

	open_channel(&other, 4);
	for (unsigned int i = 0; i < 8; i++) {
		struct job job = { .run = jobs[i / 2],
				   .ch = i % 2 ? other : ch };
		pthread_t thread;
		air_token token;

		relu = mine;
		token = wait_for_pending(stream);
		pthread_create(&thread, NULL, do_job, &job);
		for (int n = 0; n < 3; n++)
			assert_waits(stream);
		if (job.run != allocate)
			assert_int_equal(__atomic_load_n(&job.done,
							 __ATOMIC_ACQUIRE),
					 0);
		hold(0);
		assert_passes(stream);
		ok(air_wait(ch, token, TIME_LIMIT, NULL));
		pthread_join(thread, NULL);
		/* nothing of it is left for the next token to come behind */
		ok(air_drain(job.ch, TIME_LIMIT));
		assert_int_equal(fake->hangs, 0);
	}
	relu = mine;
	ok(air_channel_destroy(other));
}

/*
 * The same with the stream's token behind it: then the caller waits, and not
 * the stream.
 */
static void test_behind_it(void **state)
{
	struct job job = { .run = make_descriptor, .ch = ch };
	air_token first = wait_for_pending(stream), second;
	unsigned int waits = fake->waits;
	pthread_t thread;

	pthread_create(&thread, NULL, do_job, &job);
	/* its request is the next token, of which there is nothing to be had */
	while (air_poll(ch, first + 1, NULL) == AIR_BAD_TOKEN)
		sched_yield();
	second = submit();
	hold(0);
	ok(air_stream_wait(ch, second, stream));
	assert_int_equal(fake->waits, waits);
	assert_passes(stream);
	ok(air_wait(ch, first, TIME_LIMIT, NULL));
	ok(air_wait(ch, second, TIME_LIMIT, NULL));
	pthread_join(thread, NULL);
}

static void prepare_product(air_descriptor **d, struct air_call *call)
{
	const int64_t shape[] = { 256, 256 }, more[] = { 257, 256 };
	air_tensor t[3];

	/* room for operands that begin elsewhere */
	for (int i = 0; i < 3; i++) {
		ok(air_tensor_alloc(ch, AIR_HOST, AIR_F32, 2, more, &t[i]));
		ok(air_tensor_desc_init(&t[i].desc, AIR_F32, 2, shape, NULL));
	}
	ok(air_create_matmul_descriptor(ch, d, &t[0].desc, &t[1].desc,
					&t[2].desc, NULL, NULL, false, false, 1,
					0, AIR_ACT_NONE));
	ok(air_prepare_matmul(*d, call, AIR_NO_REF, air_tensor_ref(&t[0]),
			      air_tensor_ref(&t[1]), air_tensor_ref(&t[2]),
			      AIR_NO_REF, AIR_NO_REF));
	/* held back until the stream waits */
	call->flags = AIR_CALL_BARRIER;
}

static void run_call(const struct air_call *call)
{
	air_token token;

	ok(air_submit(ch, call, 1, &token));
	ok(air_wait(ch, token, TIME_LIMIT, NULL));
}

/* ... with a stream that waits for what comes behind it. */
static void run_while_one_waits(const struct air_call *call)
{
	air_token first, token, last;

	hold(1);
	first = submit();
	ok(air_submit(ch, call, 1, &token));
	last = submit();
	ok(air_stream_wait(ch, last, stream));
	hold(0);
	assert_passes(stream);
	ok(air_wait(ch, first, TIME_LIMIT, NULL));
	ok(air_wait(ch, token, TIME_LIMIT, NULL));
	ok(air_wait(ch, last, TIME_LIMIT, NULL));
}

/* Loads no code for the library's first product while a stream waits. */
static void test_product(void **state)
{
	struct air_call call;
	air_descriptor *d;

	prepare_product(&d, &call);
	run_while_one_waits(&call);
	assert_int_equal(fake->products, 0);
	run_call(&call);
	assert_int_equal(fake->products, 1);
	/* operands of another alignment are for other code of the library's */
	call.word[AIRUNNER_WORD_OPERAND + 1] += 4;
	run_while_one_waits(&call);
	assert_int_equal(fake->products, 1);
	run_call(&call);
	assert_int_equal(fake->products, 2);
	run_while_one_waits(&call);
	assert_int_equal(fake->products, 3);
	ok(air_destroy_matmul_descriptor(d));
}

/* Nor is a graph made of it then; one that is there runs. */
static void test_graph(void **state)
{
	struct air_call call;
	air_descriptor *d;
	unsigned int replays;

	prepare_product(&d, &call);
	run_call(&call);
	for (int i = 0; i < REPEATS; i++)
		run_while_one_waits(&call);
	assert_int_equal(fake->graphs, 0);
	run_call(&call);
	assert_int_equal(fake->graphs, 1);
	replays = fake->replays;
	run_while_one_waits(&call);
	assert_int_equal(fake->replays, replays + 1);
	ok(air_destroy_matmul_descriptor(d));
}

/* ------------------------------------------------------- how many may wait */

struct call {
	air_token token;
	CUstream stream;
	int done;
};

static void *call_stream_wait(void *arg)
{
	struct call *call = arg;

	ok(air_stream_wait(ch, call->token, call->stream));
	__atomic_store_n(&call->done, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* In place of @s, for which there is no room, the caller waits. */
static void assert_caller_waits(CUstream s, air_token token)
{
	struct call call = { .token = token, .stream = s };
	unsigned int waits = fake->waits;
	uint64_t limit = now() + 20000000;
	pthread_t thread;

	pthread_create(&thread, NULL, call_stream_wait, &call);
	while (now() < limit) {
		assert_int_equal(__atomic_load_n(&call.done, __ATOMIC_ACQUIRE),
				 0);
		sched_yield();
	}
	hold(0);
	pthread_join(thread, NULL);
	assert_int_equal(fake->waits, waits);
	assert_passes(s);
	/* still to be collected */
	ok(air_poll(ch, token, NULL));
}

/*
 * As many streams wait as may, one of them more than once; when they are
 * through, as many may again.
 */
static void test_too_many(void **state)
{
	CUstream s[LIMIT + 1];

	for (int i = 0; i <= LIMIT; i++)
		assert_int_equal(
			stream_create(&s[i], CU_STREAM_NON_BLOCKING, 0), 0);
	for (unsigned int round = 1; round <= 3; round++) {
		air_token first = wait_for_pending(s[0]), second = submit();

		for (int i = 1; i < LIMIT; i++)
			ok(air_stream_wait(ch, first, s[i]));
		ok(air_stream_wait(ch, second, s[0]));
		assert_int_equal(fake->waits, round * (LIMIT + 1));
		assert_waits(s[0]);
		assert_caller_waits(s[LIMIT], second);
		for (int i = 0; i < LIMIT; i++)
			assert_passes(s[i]);
		ok(air_wait(ch, first, TIME_LIMIT, NULL));
	}
}

/* Nor may any where the environment leaves one queue. */
static void test_no_queue_to_spare(void **state)
{
	struct air_device_options o = { .size = sizeof(o),
					.threads = 1,
					.executors = "cuda-launch" };
	air_device *former = dev;
	air_channel *mine = ch;
	air_token token;

	setenv("CUDA_DEVICE_MAX_CONNECTIONS", "1", 1);
	ok(air_open("inproc:", &o, &dev));
	open_channel(&ch, 2);
	make_operator();
	hold(1);
	token = submit();
	assert_caller_waits(stream, token);
	assert_int_equal(fake->waits, 0);
	ok(air_channel_destroy(ch));
	ok(air_close(dev));
	dev = former;
	ch = mine;
}

/* Memory that CUDA has allocated, and will not register, is an operand. */
static void test_pinned(void **state)
{
	air_tensor_desc d = x.desc;
	air_buffer *buf;
	air_token token;
	void *memory;

	assert_int_equal(host_alloc(&memory, 4096), 0);
	ok(air_buffer_import(ch, memory, 4096, AIR_HOST, &buf));
	ok(air_tensor_view(buf, 512, &d, &x));
	token = submit();
	ok(air_wait(ch, token, TIME_LIMIT, NULL));
	ok(air_buffer_free(buf));
	ok(air_drain(ch, TIME_LIMIT));
	assert_int_equal(host_free(memory), 0);
}

/* ----------------------------------------------------------------- quiet */

#define BURST 8

/*
 * What is for the resident kernel is launched while that is kept away, and not
 * one by one: each is on its way before the one before has completed.
 */
static void test_quiet(void **state)
{
	struct air_device_options o = { .size = sizeof(o),
					.threads = 1,
					.executors = "cuda" };
	uint64_t limit = now() + (uint64_t)TIME_LIMIT;
	air_device *former = dev;
	air_token token[BURST];
	air_channel *mine = ch;
	unsigned int before;

	ok(air_open("inproc:", &o, &dev));
	ok(air_quiet_begin(dev));
	open_channel(&ch, 6);
	make_operator();
	assert_int_equal(air_descriptor_executor(relu, NULL),
			 AIR_EXEC_CUDA_RESIDENT);
	hold(1);
	before = __atomic_load_n(&fake->launches, __ATOMIC_RELAXED);
	for (int i = 0; i < BURST; i++)
		token[i] = submit();
	while (__atomic_load_n(&fake->launches, __ATOMIC_RELAXED) !=
	       before + BURST) {
		assert_true(now() < limit);
		sched_yield();
	}
	assert_int_equal(air_poll(ch, token[0], NULL), AIR_PENDING);
	hold(0);
	for (int i = 0; i < BURST; i++)
		ok(air_wait(ch, token[i], TIME_LIMIT, NULL));
	ok(air_channel_destroy(ch));
	ok(air_quiet_end(dev));
	ok(air_close(dev));
	dev = former;
	ch = mine;
}

/* --------------------------------------------------------------- threads */

#define THREADS 6
#define ROUNDS	500

static void *submit_and_wait(void *arg)
{
	CUstream s;

	assert_int_equal(stream_create(&s, CU_STREAM_NON_BLOCKING, 0), 0);
	for (int i = 0; i < ROUNDS; i++) {
		air_token token;
		air_status st;

		/* there are more threads than entries */
		while ((st = air_execute_relu(
				relu, AIR_NO_REF, air_tensor_ref(&x),
				air_tensor_ref(&x), &token)) == AIR_FULL)
			sched_yield();
		ok(st);
		ok(air_stream_wait(ch, token, s));
		assert_passes(s);
		/* a stream that is through has seen it completed */
		ok(air_poll(ch, token, NULL));
	}
	return NULL;
}

static void test_threads(void **state)
{
	pthread_t thread[THREADS];

	for (int i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, submit_and_wait, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
}

static void find(void *lib, const char *name, void *where)
{
	*(void **)where = dlsym(lib, name);
	if (!*(void **)where) {
		printf("%s\n", dlerror());
		exit(1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		TEST(test_arguments),
		TEST(test_completed),
		TEST(test_waits),
		TEST(test_one_after_the_other),
		TEST(test_late),
		TEST(test_late_for_the_channel),
		TEST(test_channel_ends),
		TEST(test_failure),
		TEST(test_lost),
		TEST(test_put_off),
		TEST(test_behind_it),
		TEST(test_product),
		TEST(test_graph),
		TEST(test_too_many),
		TEST(test_no_queue_to_spare),
		TEST(test_pinned),
		TEST(test_quiet),
		TEST(test_threads),
	};
	struct fake_cuda *(*control)(void);
	void *driver = dlopen(getenv("AIRUNNER_LIBCUDA"), RTLD_NOW);

	if (!driver) {
		printf("%s\n", dlerror());
		return 1;
	}
	find(driver, "fake_cuda_control", &control);
	find(driver, "cuStreamCreateWithPriority", &stream_create);
	find(driver, "cuStreamQuery", &stream_query);
	find(driver, "cuStreamWaitValue64_v2", &stream_wait);
	find(driver, "cuStreamWriteValue64_v2", &stream_write);
	find(driver, "cuMemAllocHost_v2", &host_alloc);
	find(driver, "cuMemFreeHost", &host_free);
	fake = control();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
