// SPDX-License-Identifier: MIT
/*
 * Memory that its owner truncates while the worker uses it: the worker lives,
 * the channel ends, others go on.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "ops/worker/daemon/daemon.h"
#include "tests/unit/worker_client.h"

#define N (1 << 18)
#define BYTES (2ul * N * sizeof(float))

struct file {
	int fd;
	void *addr;
};

static struct file file_of(size_t bytes)
{
	struct file f = { .fd = memfd_create("test", MFD_CLOEXEC) };

	assert_true(f.fd >= 0);
	assert_int_equal(ftruncate(f.fd, (off_t)bytes), 0);
	f.addr = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, f.fd, 0);
	assert_true(f.addr != MAP_FAILED);
	return f;
}

static struct air_worker *w;
static struct client c, other;

/* In each test: CMocka brings handlers of its own for each. */
static void guard(void)
{
	assert_true(air_guard_init());
}

static int set_up(void **state)
{
	struct airunner_desc d = desc_relu(N, AIRUNNER_EXEC_CPU);
	struct airunner_desc small = desc_relu(16, AIRUNNER_EXEC_CPU);
	struct air_worker_config config = { .threads = 2 };

	w = worker_start(&config, NULL);
	client_open(&c, w, NULL);
	client_open(&other, w, NULL);
	assert_int_equal(client_desc(&c, 1, &d, NULL), AIR_OK);
	assert_int_equal(client_desc(&other, 1, &small, NULL), AIR_OK);
	return 0;
}

static int tear_down(void **state)
{
	struct air_sqe sqe = sqe_relu(1, 0, other.arena, other.arena);

	assert_int_equal(client_run(&other, &sqe), AIR_OK);
	client_close(&c, AIR_REMOVE_DRAIN);
	client_close(&other, AIR_REMOVE_DRAIN);
	worker_end(w);
	return 0;
}

/* Truncated before the operator comes to it. */
static void test_truncated_buffer(void **state)
{
	struct file f = file_of(BYTES);
	struct air_wbuffer_config config = {
		.host = f.addr,
		.size = BYTES,
		.memory = AIR_HOST,
	};
	struct air_sqe sqe = sqe_relu(1, 3, 0, BYTES / 2);
	struct air_guard *g = air_guard_add(f.addr, BYTES);
	struct air_error e;

	guard();
	assert_non_null(g);
	air_guard_channel(g, c.ch);
	assert_int_equal(air_worker_add_buffer(c.ch, 3, &config, &e), AIR_OK);
	assert_int_equal(client_run(&c, &sqe), AIR_OK);
	assert_int_equal(ftruncate(f.fd, 4096), 0);
	assert_int_equal(client_run(&c, &sqe), AIR_CHANNEL_DEAD);
	await(&c.died, 1);
	assert_int_equal(client_run(&c, &sqe), AIR_CHANNEL_DEAD);
	air_guard_remove(g);
	close(f.fd);
}

struct cutter {
	int fd;
	uint32_t go;
};

static void *cut(void *arg)
{
	struct cutter *k = arg;

	await(&k->go, 1);
	for (int i = 0; i < 20; i++)
		sched_yield();
	if (ftruncate(k->fd, 0))
		air_store(&k->go, 99, RELEASE);
	return NULL;
}

/* Truncated while it runs, on whichever thread of the pool. */
static void test_truncated_meanwhile(void **state)
{
	struct file f = file_of(BYTES);
	struct air_wbuffer_config config = {
		.host = f.addr,
		.size = BYTES,
		.memory = AIR_HOST,
	};
	struct air_sqe sqe = sqe_relu(1, 3, 0, BYTES / 2);
	struct air_guard *g = air_guard_add(f.addr, BYTES);
	struct cutter k = { .fd = f.fd };
	struct air_error e;
	pthread_t thread;
	air_status st;

	guard();
	air_guard_channel(g, c.ch);
	assert_int_equal(air_worker_add_buffer(c.ch, 3, &config, &e), AIR_OK);
	pthread_create(&thread, NULL, cut, &k);
	air_store(&k.go, 1, RELEASE);
	do
		st = client_run(&c, &sqe);
	while (st == AIR_OK);
	assert_int_equal(st, AIR_CHANNEL_DEAD);
	pthread_join(thread, NULL);
	assert_int_equal(k.go, 1);
	air_guard_remove(g);
	close(f.fd);
}

/* The region itself: nobody can be answered, but the worker lives. */
static void test_truncated_region(void **state)
{
	struct client_options o = { .order = 6 };
	struct air_sqe nop = sqe_nop();
	struct air_guard *g;
	struct client gone;
	struct file f;

	guard();
	f = file_of(1 << 17);
	o.region = f.addr;
	g = air_guard_add(f.addr, 1 << 17);
	client_open(&gone, w, &o);
	air_guard_channel(g, gone.ch);
	assert_int_equal(client_run(&gone, &nop), AIR_OK);
	assert_int_equal(ftruncate(f.fd, 0), 0);
	air_worker_doorbell(gone.ch);
	await(&gone.died, 1);
	air_worker_remove_channel(gone.ch, AIR_REMOVE_DRAIN);
	await(&gone.removed, 1);
	air_guard_remove(g);
	munmap(f.addr, 1 << 17);
	free(gone.collected);
	close(f.fd);
}

/* It was hit before the channel existed: told when it does. */
static void test_hit_before(void **state)
{
	struct file f = file_of(8192);
	struct air_guard *g = air_guard_add(f.addr, 8192);
	struct air_sqe nop = sqe_nop();

	guard();
	assert_int_equal(ftruncate(f.fd, 4096), 0);
	/* What is there now reads as zero, on this thread as on any. */
	assert_int_equal(air_load((uint32_t *)f.addr + 1024, RELAXED), 0);
	air_guard_channel(g, c.ch);
	assert_int_equal(client_run(&c, &nop), AIR_CHANNEL_DEAD);
	air_guard_remove(g);
	munmap(f.addr, 8192);
	close(f.fd);
}

static void test_many_guards(void **state)
{
	static char memory[1000][16];
	struct air_guard *many[1000];

	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 1000; i++) {
			many[i] = air_guard_add(memory[i], 16);
			assert_non_null(many[i]);
			for (int k = 0; k < i; k += 97)
				assert_ptr_not_equal(many[k], many[i]);
		}
		for (int i = 0; i < 1000; i++)
			air_guard_remove(many[i]);
	}
	air_guard_remove(NULL);
}

#define both(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		both(test_truncated_buffer),
		both(test_truncated_meanwhile),
		both(test_truncated_region),
		both(test_hit_before),
		both(test_many_guards),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
