// SPDX-License-Identifier: MIT
/*
 * The host side of cuda-resident with a driver that runs nothing
 * (fake_cuda.h): a kernel ends as soon as it was launched, or, while streams
 * are held, does not end. Rings given out and taken back, the kernel kept
 * away, large operators that want the GPU for themselves.
 *
 *	AIRUNNER_LIBCUDA=.../libfake-cuda.so host_resident PLUGIN
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <stdio.h>
#include <time.h>

#include "ops/worker/executor.h"
#include "tests/gpu/fake_cuda.h"
#include "tests/gpu/host_open.h"

#define ORDER 4
#define LARGE (1u << 20)

static const struct air_executor_ops *launch_ops, *resident_ops;
static struct fake_cuda *fake;
static struct air_exec *launch, *resident;
static void *launch_channel, *channel;
static struct air_wbuffer region;
static struct air_ring ring;
static struct air_ring_return returned;
static unsigned int n_returned, n_ended;

static void work_done(struct air_work *work, air_status status, uint32_t detail)
{
	n_ended++;
}

static void ring_returned(struct air_wchannel *ch,
			  const struct air_ring_return *ret)
{
	returned = *ret;
	n_returned++;
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

static void process_spent(void)
{
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
	.ring_returned = ring_returned,
	.now = now,
	.log = say,
	.process_spent = process_spent,
};

static void open_both(bool alone)
{
	struct air_executor_config config = { .spin_ns = 1000,
					      .park_ns = 12345,
					      .large_bytes = LARGE,
					      .large_alone = alone };
	struct air_error e = { "" };

	memset(fake, 0, sizeof(*fake));
	fake->regs = 32;
	n_returned = n_ended = 0;
	assert_int_equal(resident_ops->open(&config, &resident, &e), 0);
	assert_int_equal(launch_ops->open(&config, &launch, &e), 0);
	assert_int_equal(resident_ops->channel_open(resident, NULL, &channel),
			 0);
	assert_int_equal(launch_ops->channel_open(launch, NULL,
						  &launch_channel),
			 0);
	region = (struct air_wbuffer){ .size = 1 << 16, .memory = AIR_HOST };
	region.host = aligned_alloc(4096, region.size);
	memset(region.host, 0, region.size);
	air_ring_init(&ring, region.host, ORDER);
	assert_int_equal(resident_ops->buffer_map(resident, &region), 0);
	assert_int_equal(resident_ops->buffer_set(resident, channel, 0,
						  &region), 0);
}

static int setup(void **state)
{
	open_both(false);
	return 0;
}

static int setup_alone(void **state)
{
	open_both(true);
	return 0;
}

static int teardown(void **state)
{
	fake->hold = 0;
	resident_ops->buffer_unmap(resident, &region);
	launch_ops->channel_close(launch, launch_channel);
	resident_ops->channel_close(resident, channel);
	launch_ops->close(launch);
	resident_ops->close(resident);
	assert_int_equal(fake->retained, 0);
	assert_int_equal(fake->registered, 0);
	free(region.host);
	return 0;
}

static air_status attach(uint64_t index)
{
	return resident_ops->ring_attach(resident, channel, &ring, index);
}

/* A ring whose leader never came to take it is back, untouched. */
static void assert_back(uint64_t index)
{
	unsigned int before = n_returned;

	assert_int_equal(resident_ops->poll(resident), 1);
	assert_int_equal(n_returned, before + 1);
	assert_int_equal(returned.index, index);
	assert_int_equal(returned.completed, 0);
}

static void test_caps(void **state)
{
	struct air_backend_caps caps = { .size = sizeof(caps) };

	resident_ops->caps(resident, &caps);
	assert_int_equal(caps.park_ns, 12345);
	assert_int_equal(caps.large_bytes, LARGE);
	assert_int_equal(caps.large_alone, 0);
}

/* Leader 3's ring comes back when the kernel is sent away. */
static void leave_with_ring(void)
{
	assert_int_equal(resident_ops->quiet(resident, true), 0);
	assert_back(3);
	assert_int_equal(resident_ops->quiet(resident, false), 0);
}

static void test_quiet(void **state)
{
	unsigned int launches;

	assert_int_equal(attach(5), 0);
	assert_int_equal(resident_ops->quiet(resident, true), 0);
	assert_back(5);
	launches = fake->launches;
	assert_int_equal(attach(5), AIR_BUSY);
	for (int i = 0; i < 100; i++)
		assert_int_equal(resident_ops->poll(resident), 0);
	assert_int_equal(fake->launches, launches);
	assert_int_equal(resident_ops->quiet(resident, false), 0);
	assert_int_equal(attach(5), 0);
	assert_int_equal(fake->launches, launches + 1);
	/* nobody keeps it away: a kernel is launched for the ring again */
	assert_int_equal(resident_ops->poll(resident), 0);
	assert_int_equal(fake->launches, launches + 2);
	assert_int_equal(resident_ops->quiet(resident, true), 0);
	assert_back(5);
	assert_int_equal(resident_ops->quiet(resident, false), 0);
}

/* Loading code meanwhile, which also has the kernel leave, ends nothing. */
static void test_quiet_within(void **state)
{
	char image[64] = "not looked at";
	struct air_error e = { "" };
	void *module;

	assert_int_equal(resident_ops->quiet(resident, true), 0);
	assert_int_equal(launch_ops->module_load(launch, image, sizeof(image),
						 &module, &e), 0);
	assert_int_equal(attach(1), AIR_BUSY);
	launch_ops->module_unload(launch, module);
	assert_int_equal(attach(1), AIR_BUSY);
	assert_int_equal(resident_ops->quiet(resident, false), 0);
	assert_int_equal(attach(1), 0);
	assert_int_equal(resident_ops->quiet(resident, true), 0);
	assert_back(1);
	assert_int_equal(resident_ops->quiet(resident, false), 0);
}

static void test_does_not_leave(void **state)
{
	fake->hold = 1;
	assert_int_equal(attach(0), 0);
	assert_int_equal(resident_ops->quiet(resident, true), AIR_TIMEOUT);
	fake->hold = 0;
	assert_int_equal(resident_ops->quiet(resident, true), 0);
	assert_back(0);
	assert_int_equal(resident_ops->quiet(resident, false), 0);
}

static struct air_plan plan_of(int64_t n)
{
	struct air_plan plan = { 0 };

	plan.desc.op = AIR_OP_add;
	plan.desc.n_tensors = 3;
	for (int i = 0; i < 3; i++) {
		plan.desc.tensor[i].dtype = AIRUNNER_F32;
		plan.desc.tensor[i].ndim = 1;
		plan.desc.tensor[i].shape[0] = n;
		plan.desc.tensor[i].stride[0] = 1;
	}
	return plan;
}

/* Run an add of @n floats, held, with a ring given out before. */
static void run_held(struct air_plan *plan, void **priv, struct air_work *w,
		     int64_t n)
{
	uint64_t workspace = 0;
	struct air_error e = { "" };

	*plan = plan_of(n);
	assert_int_equal(launch_ops->plan(launch, plan, priv, &workspace, &e),
			 0);
	assert_int_equal(attach(3), 0);
	*w = (struct air_work){ .ch_priv = launch_channel, .plan = plan,
				.plan_priv = *priv, .start = now() };
	assert_int_equal(launch_ops->run(launch, w), AIR_PENDING);
	fake->hold = 1;
	launch_ops->flush(launch);
	assert_int_equal(launch_ops->poll(launch), 0);
}

static void end_held(void *priv)
{
	uint64_t limit = now() + 10000000000ull;

	fake->hold = 0;
	while (!n_ended) {
		launch_ops->poll(launch);
		assert_true(now() < limit);
	}
	launch_ops->unplan(launch, priv);
}

/* Three operands of LARGE bytes each, or of a little less together. */
#define MANY (LARGE / 4)
#define FEW  (LARGE / 12 - 16)

static void test_large_alone(void **state)
{
	struct air_plan plan;
	struct air_work w;
	void *priv;

	run_held(&plan, &priv, &w, MANY);
	assert_back(3);
	assert_int_equal(attach(3), AIR_BUSY);
	/* the user's wish on top of it */
	assert_int_equal(resident_ops->quiet(resident, true), 0);
	end_held(priv);
	assert_int_equal(attach(3), AIR_BUSY);
	assert_int_equal(resident_ops->quiet(resident, false), 0);
	assert_int_equal(attach(3), 0);
	leave_with_ring();
}

static void test_small_beside(void **state)
{
	struct air_plan plan;
	struct air_work w;
	unsigned int launches;
	void *priv;

	run_held(&plan, &priv, &w, FEW);
	launches = fake->launches;
	/* not sent away: what ended by itself is launched again */
	fake->hold = 0;
	assert_int_equal(resident_ops->poll(resident), 0);
	assert_int_equal(fake->launches, launches + 1);
	end_held(priv);
	leave_with_ring();
}

/* Without the policy it leaves, and comes back although the work goes on. */
static void test_large_shares(void **state)
{
	struct air_plan plan;
	struct air_work w;
	unsigned int launches;
	void *priv;

	run_held(&plan, &priv, &w, MANY);
	launches = fake->launches;
	assert_int_equal(resident_ops->poll(resident), 0);
	assert_int_equal(fake->launches, launches + 1);
	end_held(priv);
	leave_with_ring();
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
#define TEST(name, with) cmocka_unit_test_setup_teardown(name, with, teardown)
		TEST(test_caps, setup),
		TEST(test_quiet, setup),
		TEST(test_quiet_within, setup),
		TEST(test_does_not_leave, setup),
		TEST(test_large_shares, setup),
		TEST(test_large_alone, setup_alone),
		TEST(test_small_beside, setup_alone),
	};
	const struct air_executor_ops *const *list;

	if (argc < 2)
		return 2;
	list = host_open(argv[1], &services, &fake);
	if (!list)
		return 1;
	for (; *list; list++) {
		if ((*list)->id == AIRUNNER_EXEC_CUDA_LAUNCH)
			launch_ops = *list;
		else if ((*list)->id == AIRUNNER_EXEC_CUDA_RESIDENT)
			resident_ops = *list;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
