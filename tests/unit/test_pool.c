// SPDX-License-Identifier: MIT
/* The CPU executor's threads: every item once, whoever else is at it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <cmocka.h>

#include "ops/cpu.h"

#define ITEMS 10000

struct count {
	struct air_pool *pool;
	atomic_uchar seen[ITEMS];
	atomic_uint calls;
	uint64_t smallest;
};

static void count(void *arg, uint64_t begin, uint64_t end)
{
	struct count *c = arg;

	assert_true(begin < end);
	for (uint64_t i = begin; i < end; i++)
		c->seen[i]++;
	c->calls++;
}

static void check(struct count *c, uint64_t n)
{
	for (uint64_t i = 0; i < ITEMS; i++)
		assert_int_equal(c->seen[i], i < n);
}

static void test_every_item_once(void **state)
{
	static const unsigned int threads[] = { 1, 2, 3, 9 };

	for (int t = 0; t < 4; t++) {
		struct air_pool *pool = air_pool_create(threads[t]);

		assert_int_equal(air_pool_threads(pool), threads[t]);
		for (uint64_t n = 0; n < 300; n += n < 20 ? 1 : 13) {
			static struct count c;

			memset(&c, 0, sizeof(c));
			air_pool_for(pool, n, 1, count, &c);
			check(&c, n);
		}
		air_pool_destroy(pool);
	}
}

/* Less than two grains is not worth a second thread, nor a second call. */
static void test_grain(void **state)
{
	static struct count c;
	struct air_pool *pool = air_pool_create(3);

	air_pool_for(pool, 199, 100, count, &c);
	assert_int_equal(c.calls, 1);
	check(&c, 199);
	memset(&c, 0, sizeof(c));
	air_pool_for(pool, 0, 100, count, &c);
	assert_int_equal(c.calls, 0);
	air_pool_for(NULL, 5000, 1, count, &c);
	assert_int_equal(c.calls, 1);
	memset(&c, 0, sizeof(c));
	air_pool_for(pool, ITEMS, 1, count, &c);
	assert_in_range(c.calls, 2, 12);
	check(&c, ITEMS);
	air_pool_destroy(pool);
}

/* A loop within a loop runs on the thread that asks. */
static void inner(void *arg, uint64_t begin, uint64_t end)
{
	atomic_fetch_add((atomic_ulong *)arg, end - begin);
}

static void outer(void *arg, uint64_t begin, uint64_t end)
{
	struct count *c = arg;
	atomic_ulong sum = 0;

	for (uint64_t i = begin; i < end; i++)
		air_pool_for(c->pool, 50, 1, inner, &sum);
	assert_int_equal(sum, 50 * (end - begin));
	count(arg, begin, end);
}

static void test_nested(void **state)
{
	static struct count c;

	memset(&c, 0, sizeof(c));
	c.pool = air_pool_create(3);
	air_pool_for(c.pool, 100, 1, outer, &c);
	check(&c, 100);
	air_pool_destroy(c.pool);
}

/* Several callers at once, helpers asleep and awake in between. */
static void *caller(void *arg)
{
	struct air_pool *pool = arg;
	struct count c;

	for (int round = 0; round < 300; round++) {
		memset(&c, 0, sizeof(c));
		air_pool_for(pool, 1000, 10, count, &c);
		for (int i = 0; i < 1000; i++)
			if (c.seen[i] != 1)
				return (void *)1;
		if (round % 30 == 0)
			sched_yield();
	}
	return NULL;
}

static void test_callers(void **state)
{
	struct air_pool *pool = air_pool_create(4);
	pthread_t thread[3];

	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, caller, pool),
				 0);
	for (int i = 0; i < 3; i++) {
		void *wrong;

		pthread_join(thread[i], &wrong);
		assert_null(wrong);
	}
	air_pool_destroy(pool);
}

/* Pools come and go, used or not. */
static void test_create_destroy(void **state)
{
	static struct count c;

	for (int i = 0; i < 200; i++) {
		struct air_pool *pool = air_pool_create(3);

		memset(&c, 0, sizeof(c));
		if (i % 2) {
			air_pool_for(pool, 50, 1, count, &c);
			check(&c, 50);
		}
		air_pool_destroy(pool);
	}
	air_pool_destroy(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_item_once),
		cmocka_unit_test(test_grain),
		cmocka_unit_test(test_nested),
		cmocka_unit_test(test_callers),
		cmocka_unit_test(test_create_destroy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
