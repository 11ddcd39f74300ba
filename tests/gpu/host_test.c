// SPDX-License-Identifier: MIT
/*
 * The host side of cuda-launch with a driver that runs nothing (fake_cuda.h):
 * completion, order over streams, what happens to work when the context is
 * lost, buffers, registrations, modules.
 *
 *	AIRUNNER_LIBCUDA=.../libfake-cuda.so AIRUNNER_CUBLASLT=(the same) \
 *		host_test PLUGIN
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <stdio.h>
#include <time.h>

#include "ops/cuda/abi.h"
#include "ops/worker/executor.h"
#include "tests/gpu/fake_cuda.h"
#include "tests/gpu/host_open.h"

#define ILLEGAL_ADDRESS 700

static const struct air_executor_ops *ops;
static struct fake_cuda *fake;
static struct air_exec *ex;
static void *channel;

static struct {
	struct air_work *work;
	air_status status;
} ended[64];
static unsigned int n_ended;

static void work_done(struct air_work *work, air_status status, uint32_t detail)
{
	assert_true(n_ended < 64);
	ended[n_ended].work = work;
	ended[n_ended++].status = status;
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

static void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static void say(const char *fmt, ...)
{
}

static unsigned int spent;

static void process_spent(void)
{
	spent++;
}

static bool block_begin(void)
{
	return true;
}

static void block_end(void)
{
}

static const struct air_worker_services services = {
	.work_done = work_done,
	.block_begin = block_begin,
	.block_end = block_end,
	.now = now,
	.log = say,
	.process_spent = process_spent,
};

static struct air_plan plan;
static void *plan_priv;

static void plan_add(void)
{
	uint64_t workspace = 0;
	struct air_error e;

	memset(&plan, 0, sizeof(plan));
	plan.desc.op = AIR_OP_add;
	plan.desc.n_tensors = 3;
	for (int i = 0; i < 3; i++) {
		plan.desc.tensor[i].dtype = AIRUNNER_F32;
		plan.desc.tensor[i].ndim = 1;
		plan.desc.tensor[i].shape[0] = 1000;
		plan.desc.tensor[i].stride[0] = 1;
	}
	assert_int_equal(ops->plan(ex, &plan, &plan_priv, &workspace, &e), 0);
	assert_int_equal(workspace, 0);
}

static int setup(void **state)
{
	struct air_executor_config config = { .spin_ns = 1000 };
	struct air_error e = { "" };

	memset(fake, 0, sizeof(*fake));
	fake->regs = 32;
	n_ended = 0;
	assert_int_equal(ops->open(&config, &ex, &e), 0);
	assert_int_equal(ops->channel_open(ex, NULL, &channel), 0);
	plan_add();
	return 0;
}

static int teardown(void **state)
{
	fake->hold = 0;
	ops->unplan(ex, plan_priv);
	ops->channel_close(ex, channel);
	ops->close(ex);
	assert_int_equal(fake->retained, 0);
	assert_int_equal(fake->registered, 0);
	return 0;
}

static air_status run_of(struct air_work *w, struct air_plan *p, void *priv,
			 uint32_t flags)
{
	*w = (struct air_work){ .ch_priv = channel,
				.plan = p,
				.plan_priv = priv,
				.flags = flags,
				.start = now() };
	return ops->run(ex, w);
}

static air_status run(struct air_work *w, uint32_t flags)
{
	return run_of(w, &plan, plan_priv, flags);
}

static air_status run_user(struct air_work *w, void *function,
			   const void *args, uint32_t bytes)
{
	struct air_launch l = { .function = function, .grid = { 1, 1, 1 },
				.block = { 32, 1, 1 }, .args = args,
				.arg_bytes = bytes };

	*w = (struct air_work){ .ch_priv = channel, .launch = &l,
				.start = now() };
	return ops->run(ex, w);
}

/* Poll until @n have ended: a lost context is noticed within milliseconds. */
static void poll_for(unsigned int n)
{
	uint64_t limit = now() + 10000000000ull;

	while (n_ended < n) {
		ops->poll(ex);
		assert_true(now() < limit);
	}
	assert_int_equal(n_ended, n);
	assert_int_equal(ops->outstanding(ex), 0);
}

static void test_burst(void **state)
{
	struct air_work w[10];
	unsigned int launches = fake->launches, writes = fake->writes;

	for (int i = 0; i < 10; i++)
		assert_int_equal(run(&w[i], 0), AIR_PENDING);
	assert_int_equal(ops->outstanding(ex), 10);
	assert_int_equal(ops->poll(ex), 0);
	ops->flush(ex);
	poll_for(10);
	assert_int_equal(fake->launches - launches, 10);
	/* one completion word for all of them */
	assert_int_equal(fake->writes - writes, 1);
	for (int i = 0; i < 10; i++) {
		assert_ptr_equal(ended[i].work, &w[i]);
		assert_int_equal(ended[i].status, AIR_OK);
		assert_true(w[i].start <= w[i].end);
		/* shares of the burst's time, one after the other */
		if (i)
			assert_true(w[i].start >= w[i - 1].end);
	}
}

_Static_assert(sizeof(((struct fake_cuda *)0)->operands) ==
		       sizeof(struct air_operands),
	       "what the fake driver copies");

/* Rows are drawn from a counter: work that may overlap has one each. */
static void test_counters(void **state)
{
	static const uint32_t flags[] = { 0, AIRUNNER_SQE_UNORDERED,
					  AIRUNNER_SQE_UNORDERED,
					  AIRUNNER_SQE_UNORDERED, 0 };
	struct airunner_tensor rows = { .dtype = AIRUNNER_F32,
					.ndim = 2,
					.shape = { 40, 131072 },
					.stride = { 131072, 1 } };
	struct air_plan p = {
		.desc = { .op = AIR_OP_softmax, .n_tensors = 2, .attr = { 1 } }
	};
	uint64_t counter[5], workspace = 0;
	struct air_work w[6];
	struct air_error e;
	void *priv;

	p.desc.tensor[0] = p.desc.tensor[1] = rows;
	assert_int_equal(ops->plan(ex, &p, &priv, &workspace, &e), 0);
	assert_int_equal(workspace, 0);
	fake->limit = 256;
	assert_int_equal(run_of(&w[5], &p, priv, 0), AIR_NO_MEMORY);
	fake->limit = 0;
	for (int i = 0; i < 5; i++) {
		assert_int_equal(run_of(&w[i], &p, priv, flags[i]),
				 AIR_PENDING);
		counter[i] = fake->operands[AIR_WORKSPACE_ADDR];
		assert_int_not_equal(counter[i], 0);
		assert_int_equal(*(uint32_t *)counter[i], 0);
		for (int k = 0; k < i && i < 4; k++)
			assert_int_not_equal(counter[k], counter[i]);
	}
	assert_int_equal(counter[4], counter[0]);
	ops->flush(ex);
	poll_for(5);
	ops->unplan(ex, priv);
}

static void test_held(void **state)
{
	struct air_work w[2];

	fake->hold = 1;
	run(&w[0], 0);
	run(&w[1], AIRUNNER_SQE_UNORDERED);
	ops->flush(ex);
	for (int i = 0; i < 100; i++)
		assert_int_equal(ops->poll(ex), 0);
	fake->hold = 0;
	poll_for(2);
}

/* The context goes while @w[1] and @w[2] are on it; one has ended before. */
static void lose_two(struct air_work *w)
{
	fake->hold = 1;
	run(&w[1], 0);
	run(&w[2], AIRUNNER_SQE_UNORDERED);
	ops->flush(ex);
	fake->fault = ILLEGAL_ADDRESS;
	poll_for(3);
	assert_int_equal(ended[1].status, AIR_DEVICE_LOST);
	assert_int_equal(ended[2].status, AIR_DEVICE_LOST);
}

static void test_lost(void **state)
{
	struct air_work w[3];
	unsigned int resets = fake->resets;

	run(&w[0], 0);
	ops->flush(ex);
	poll_for(1);
	lose_two(w);
	assert_int_equal(fake->resets, resets + 1);
	/* and later work runs, with plans made before */
	fake->hold = 0;
	assert_int_equal(run(&w[0], 0), AIR_PENDING);
	ops->flush(ex);
	poll_for(4);
	assert_int_equal(ended[3].status, AIR_OK);
}

static void test_fault_found_when_launching(void **state)
{
	struct air_work w;

	fake->fault = ILLEGAL_ADDRESS;
	assert_int_equal(run(&w, 0), AIR_PENDING);
	ops->flush(ex);
	poll_for(1);
	assert_int_equal(ended[0].status, AIR_DEVICE_LOST);
}

static void test_offender(void **state)
{
	struct airunner_function_record record = { .name = "kernel" };
	char image[64] = "not looked at";
	struct air_error e = { "" };
	struct air_work w[3];
	void *module, *function;
	uint64_t args[2] = { 0 };

	assert_int_equal(ops->module_load(ex, image, sizeof(image), &module,
					  &e), 0);
	assert_int_equal(ops->function_get(ex, module, &record, &function, &e),
			 0);
	assert_int_equal(record.max_threads, 1024);
	assert_int_equal(run_user(&w[0], function, args, sizeof(args)),
			 AIR_PENDING);
	ops->flush(ex);
	poll_for(1);
	assert_int_equal(ended[0].status, AIR_OK);

	/* what was before it comes through, what is behind it is lost */
	run(&w[0], 0);
	ops->flush(ex);
	ops->poll(ex);
	fake->hold = 1;
	run_user(&w[1], function, args, sizeof(args));
	run(&w[2], 0);
	ops->flush(ex);
	fake->fault = ILLEGAL_ADDRESS;
	poll_for(4);
	assert_int_equal(ended[1].status, AIR_OK);
	assert_ptr_equal(ended[2].work, &w[1]);
	assert_int_equal(ended[2].status, AIR_DEVICE_FAULT);
	assert_int_equal(ended[3].status, AIR_DEVICE_LOST);

	/* the module is loaded again by itself */
	fake->hold = 0;
	run_user(&w[0], function, args, sizeof(args));
	ops->flush(ex);
	poll_for(5);
	assert_int_equal(ended[4].status, AIR_OK);
	ops->module_unload(ex, module);
}

/* Drivers that give a process no other context after a fault. */
static void test_spent(void **state)
{
	struct air_wbuffer device = { .size = 4096, .memory = AIR_DEVICE };
	struct air_wbuffer host = { .size = 4096, .memory = AIR_HOST };
	struct airunner_function_record record = { .name = "kernel" };
	char image[64] = "not looked at";
	struct air_error e = { "" };
	uint64_t workspace = 0;
	void *module, *priv;
	struct air_work w[3];

	host.host = aligned_alloc(4096, 4096);
	assert_int_equal(ops->module_load(ex, image, sizeof(image), &module,
					  &e), 0);
	run(&w[0], 0);
	ops->flush(ex);
	poll_for(1);
	spent = 0;
	fake->spent = 1;
	lose_two(w);
	assert_int_equal(spent, 1);

	/* from then on all is answered at once, and the worker may sleep */
	for (int i = 0; i < 3; i++) {
		assert_int_equal(run(&w[i], 0), AIR_DEVICE_LOST);
		ops->flush(ex);
		assert_int_equal(ops->poll(ex), 0);
		assert_true(ops->wait_fd(ex) >= 0);
	}
	assert_int_equal(ops->outstanding(ex), 0);
	assert_int_equal(spent, 1);
	assert_int_equal(ops->plan(ex, &plan, &priv, &workspace, &e),
			 AIR_DEVICE_LOST);
	assert_int_equal(ops->module_load(ex, image, sizeof(image), &priv, &e),
			 AIR_DEVICE_LOST);
	assert_int_equal(ops->function_get(ex, module, &record, &priv, &e),
			 AIR_DEVICE_LOST);
	assert_int_equal(ops->buffer_alloc(ex, &device), AIR_DEVICE_LOST);
	/* the CPU may go on with it */
	assert_int_equal(ops->buffer_map(ex, &host), 0);
	ops->buffer_unmap(ex, &host);
	ops->module_unload(ex, module);
	free(host.host);
}

static void test_device_memory(void **state)
{
	struct air_wbuffer a = { .size = 10000, .memory = AIR_DEVICE };
	struct air_wbuffer b = { .size = 9990, .memory = AIR_DEVICE };
	unsigned int frees = fake->frees;
	uint64_t addr;

	assert_int_equal(ops->buffer_alloc(ex, &a), 0);
	addr = a.addr[AIRUNNER_EXEC_CUDA_LAUNCH];
	assert_int_not_equal(addr, 0);
	memset((void *)addr, 0x5a, 10000);
	ops->buffer_free(ex, &a);
	/* from the cache, without what the other client left in it */
	assert_int_equal(ops->buffer_alloc(ex, &b), 0);
	assert_int_equal(b.addr[AIRUNNER_EXEC_CUDA_LAUNCH], addr);
	for (int i = 0; i < 9990; i++)
		assert_int_equal(((char *)addr)[i], 0);
	assert_int_equal(fake->frees, frees);
	/* it exists in the next context, too */
	fake->fault = ILLEGAL_ADDRESS;
	struct air_work w;
	run(&w, 0);
	poll_for(1);
	assert_int_not_equal(b.addr[AIRUNNER_EXEC_CUDA_LAUNCH], 0);
	ops->buffer_free(ex, &b);
	fake->limit = 4096;
	assert_int_equal(ops->buffer_alloc(ex, &(struct air_wbuffer){
		.size = 1 << 20, .memory = AIR_DEVICE }), AIR_NO_MEMORY);
}

static void test_registrations(void **state)
{
	unsigned char *p = mmap(NULL, 16 * 4096, PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct air_wbuffer a = { .size = 4 * 4096, .memory = AIR_HOST,
				 .host = p + 4096 };
	struct air_wbuffer b = { .size = 8 * 4096, .memory = AIR_HOST,
				 .host = p };
	struct air_wbuffer c = { .size = 100, .memory = AIR_HOST,
				 .host = p + 4096 + 50 };
	unsigned int before = fake->registered;

	/* one inside the other, overlapping, and a part of a page */
	assert_int_equal(ops->buffer_map(ex, &a), 0);
	assert_int_equal(ops->buffer_map(ex, &b), 0);
	assert_int_equal(ops->buffer_map(ex, &c), 0);
	assert_int_equal(fake->registered, before + 3);
	assert_int_equal(a.addr[AIRUNNER_EXEC_CUDA_LAUNCH],
			 (uint64_t)a.host);
	assert_int_equal(c.addr[AIRUNNER_EXEC_CUDA_LAUNCH],
			 (uint64_t)c.host);
	/* they are there again in the next context */
	fake->fault = ILLEGAL_ADDRESS;
	struct air_work w;
	run(&w, 0);
	poll_for(1);
	assert_int_equal(b.addr[AIRUNNER_EXEC_CUDA_LAUNCH],
			 (uint64_t)b.host);
	ops->buffer_unmap(ex, &b);
	ops->buffer_unmap(ex, &a);
	ops->buffer_unmap(ex, &c);
	/* the same addresses, perhaps other pages: registered anew */
	assert_int_equal(ops->buffer_map(ex, &b), 0);
	assert_int_equal(fake->registered, 1);
	ops->buffer_unmap(ex, &b);
	munmap(p, 16 * 4096);
}

static void plan_product(void)
{
	uint64_t workspace = 0;
	struct air_error e;

	ops->unplan(ex, plan_priv);
	memset(&plan, 0, sizeof(plan));
	plan.desc.op = AIR_OP_matmul;
	plan.desc.n_tensors = 3;
	for (int i = 0; i < 3; i++) {
		plan.desc.tensor[i].dtype = AIRUNNER_F32;
		plan.desc.tensor[i].ndim = 2;
		plan.desc.tensor[i].shape[0] = 256;
		plan.desc.tensor[i].shape[1] = 256;
		plan.desc.tensor[i].stride[0] = 256;
		plan.desc.tensor[i].stride[1] = 1;
	}
	memcpy(&plan.desc.attr[2], &(double){ 1 }, 8);
	assert_int_equal(ops->plan(ex, &plan, &plan_priv, &workspace, &e), 0);
}

/* Run it @n times on operands at @addr and beyond. */
static void run_product(uint64_t addr, unsigned int n)
{
	struct air_work w[20];

	for (unsigned int i = 0; i < n; i++) {
		w[i] = (struct air_work){ .ch_priv = channel, .plan = &plan,
					  .plan_priv = plan_priv,
					  .start = now() };
		for (uint64_t k = 0; k < 3; k++)
			w[i].addr[k] = addr + (k << 20);
		assert_int_equal(ops->run(ex, &w[i]), AIR_PENDING);
	}
	ops->flush(ex);
	n_ended = 0;
	poll_for(n);
}

/* Products that come often become graphs, one for each set of operands. */
static void test_products(void **state)
{
	plan_product();
	run_product(0x10000000, 3);
	assert_int_equal(fake->products, 3);
	assert_int_equal(fake->graphs, 0);
	run_product(0x10000000, 17);
	assert_int_equal(fake->graphs, 1);
	/* all but some at first, one of which was recorded, not done */
	assert_true(fake->products < 10);
	assert_int_equal(fake->products - 1 + fake->replays, 20);
	assert_int_equal(fake->captured, 0);
	run_product(0x20000000, 3);
	assert_int_equal(fake->products - 1 + fake->replays, 23);
	assert_int_equal(fake->graphs, 1);
	ops->unplan(ex, plan_priv);
	assert_int_equal(fake->graphs, 0);
	plan_add();
}

/* The library's handle goes with the context, and so do the graphs. */
static void test_products_lost(void **state)
{
	unsigned int products;
	struct air_work w;

	plan_product();
	run_product(0x10000000, 20);
	assert_int_equal(fake->graphs, 1);
	fake->hold = 1;
	n_ended = 0;
	run(&w, 0);
	ops->flush(ex);
	fake->fault = ILLEGAL_ADDRESS;
	poll_for(1);
	assert_int_equal(ended[0].status, AIR_DEVICE_LOST);
	fake->hold = 0;
	products = fake->products;
	run_product(0x10000000, 3);
	assert_int_equal(fake->products, products + 3);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(test_burst),
		TEST(test_counters),
		TEST(test_held),
		TEST(test_lost),
		TEST(test_fault_found_when_launching),
		TEST(test_offender),
		TEST(test_spent),
		TEST(test_device_memory),
		TEST(test_registrations),
		TEST(test_products),
		TEST(test_products_lost),
	};
	const struct air_executor_ops *const *list;

	if (argc < 2)
		return 2;
	list = host_open(argv[1], &services, &fake);
	if (!list)
		return 1;
	for (; *list; list++)
		if ((*list)->id == AIRUNNER_EXEC_CUDA_LAUNCH)
			ops = *list;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
