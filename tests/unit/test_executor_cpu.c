// SPDX-License-Identifier: MIT
/*
 * The CPU executor behind the ring: operators run on what the references say,
 * workspace is insisted on, chains see each other's results, several threads.
 * That the operators themselves are right is tested elsewhere.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ops/matmul/matmul.h"
#include "tests/unit/worker_client.h"

static struct air_worker *w;
static struct client c;

static void open_with(uint32_t threads)
{
	struct air_worker_config config = {
		.threads = threads,
		.executors = "cpu",
	};
	struct client_options o = { .order = 8, .arena = 8 << 20 };

	w = worker_start(&config, NULL);
	client_open(&c, w, &o);
}

static int set_up(void **state)
{
	open_with(1);
	return 0;
}

static int tear_down(void **state)
{
	client_close(&c, AIR_REMOVE_DRAIN);
	worker_end(w);
	return 0;
}

static float *at(uint64_t offset)
{
	return (float *)((char *)c.region + c.arena + offset);
}

static struct airunner_desc desc_of(enum air_op_id op, uint32_t n_tensors,
				    uint32_t ndim, const int64_t *shape)
{
	struct airunner_desc d = {
		.size = sizeof(d),
		.op = op,
		.n_tensors = n_tensors,
	};

	for (uint32_t t = 0; t < n_tensors; t++) {
		int64_t stride = 1;

		d.tensor[t].dtype = AIRUNNER_F32;
		d.tensor[t].ndim = ndim;
		for (uint32_t i = ndim; i--;) {
			d.tensor[t].shape[i] = shape[i];
			d.tensor[t].stride[i] = stride;
			stride *= shape[i];
		}
	}
	return d;
}

static struct air_sqe exec3(uint32_t id, uint64_t y, uint64_t a, uint64_t b)
{
	struct air_sqe sqe = sqe_relu(id, 0, c.arena + y, c.arena + a);

	sqe.word[3] = airunner_ref(0, c.arena + b);
	return sqe;
}

/* y = relu(y + x), a hundred times in a row, submitted at once. */
static void test_chain(void **state)
{
	int64_t n = 1000;
	struct airunner_desc add = desc_of(AIR_OP_add, 3, 1, &n);
	struct airunner_desc relu = desc_of(AIR_OP_relu, 2, 1, &n);
	uint64_t last = 0;
	float *y = at(0), *x = at(65536);

	assert_int_equal(client_desc(&c, 1, &add, NULL), AIR_OK);
	assert_int_equal(client_desc(&c, 2, &relu, NULL), AIR_OK);
	for (int i = 0; i < n; i++) {
		y[i] = 0;
		x[i] = (float)(i % 5 - 2);
	}
	for (int i = 0; i < 100; i++) {
		struct air_sqe a = exec3(1, 0, 0, 65536);
		struct air_sqe r = sqe_relu(2, 0, c.arena, c.arena);

		client_submit(&c, &a);
		last = client_submit(&c, &r);
	}
	assert_int_equal(client_wait(&c, last).status, AIRUNNER_S_OK);
	for (int i = 0; i < n; i++)
		assert_true(y[i] == (x[i] > 0 ? 100 * x[i] : 0));
}

/* Times of a burst do not overlap, and follow each other. */
static void test_times(void **state)
{
	int64_t n = 20000;
	struct airunner_desc relu = desc_of(AIR_OP_relu, 2, 1, &n);
	struct air_sqe r = sqe_relu(1, 0, c.arena, c.arena);
	uint64_t index[50], before, end = 0;

	assert_int_equal(client_desc(&c, 1, &relu, NULL), AIR_OK);
	before = air_now() & AIRUNNER_START_MASK;
	for (int i = 0; i < 50; i++)
		index[i] = client_submit(&c, &r);
	for (int i = 0; i < 50; i++) {
		struct air_cqe cqe = client_wait(&c, index[i]);

		assert_true(cqe.start >= end);
		assert_true(cqe.duration > 0);
		end = cqe.start + cqe.duration;
	}
	assert_true(end > before);
	assert_true(end <= (air_now() & AIRUNNER_START_MASK));
}

static void test_workspace(void **state)
{
	static const int64_t shape[] = { 64, 64 };
	struct airunner_desc d = desc_of(AIR_OP_matmul, 3, 2, shape);
	struct air_sqe sqe = exec3(1, 0, 65536, 131072);
	struct airunner_desc_reply reply;
	const double alpha = 1;
	struct air_cqe cqe;
	uint64_t ws;

	for (int i = 0; i < 3; i++)
		d.tensor[i].dtype = AIRUNNER_F16;
	memcpy(&d.attr[AIR_MATMUL_ALPHA], &alpha, sizeof(alpha));
	if (client_desc(&c, 1, &d, &reply))
		fail_msg("matmul: %s", reply.why);
	ws = reply.workspace;
	assert_true(ws > 0);
	sqe.word[6] = AIRUNNER_REF_NONE;
	cqe = client_wait(&c, client_submit(&c, &sqe));
	assert_int_equal(cqe.status, AIRUNNER_S_WORKSPACE);
	assert_int_equal(cqe.detail, 6);
	/* Short of a few bytes at the region's end, then just right. */
	sqe.word[6] = airunner_ref(0, (c.size - ws + 64) & ~63ull);
	assert_int_equal(client_run(&c, &sqe), AIR_WORKSPACE);
	sqe.word[6] = airunner_ref(0, (c.size - ws) & ~63ull);
	assert_int_equal(client_run(&c, &sqe), AIR_OK);
}

/* Large enough for several threads; every element once. */
static void test_threads(void **state)
{
	const int64_t n = 1000000;
	const uint64_t middle = 4 << 20;
	struct airunner_desc relu = desc_of(AIR_OP_relu, 2, 1, &n);
	struct air_backend_caps caps = { .size = sizeof(caps) };
	struct air_sqe r;
	float *x, *y;

	open_with(4);
	x = at(0);
	y = at(middle);
	r = sqe_relu(1, 0, c.arena + middle, c.arena);
	assert_int_equal(air_worker_caps(w, AIR_EXEC_CPU, &caps), AIR_OK);
	assert_int_equal(caps.threads, 4);
	assert_int_equal(client_desc(&c, 1, &relu, NULL), AIR_OK);
	for (int64_t i = 0; i < n; i++)
		x[i] = (float)(i % 1001 - 500);
	for (int round = 0; round < 20; round++) {
		memset(y, 0xff, (size_t)n * 4);
		assert_int_equal(client_run(&c, &r), AIR_OK);
		for (int64_t i = 0; i < n; i++)
			assert_true(y[i] == (x[i] > 0 ? x[i] : 0));
	}
	tear_down(NULL);
}

#define both(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		both(test_chain),
		both(test_times),
		both(test_workspace),
		cmocka_unit_test(test_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
