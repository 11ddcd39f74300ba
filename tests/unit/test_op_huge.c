// SPDX-License-Identifier: MIT
/*
 * More than 2^31 elements. Not that much memory: inputs repeat one element, or
 * operands are one small file mapped over and over, so that what is written
 * last is what is read everywhere.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "ops/check.h"
#include "ops/cpu.h"
#include "ops/plan.h"

#define COUNT	  (INT64_C(0x80000000) + 1000)
#define FILE_SIZE (1L << 20)

static struct air_pool *pool;

static void run(const struct airunner_desc *d, void *y, void *x, void *x2)
{
	void *operand[AIRUNNER_MAX_TENSORS + 1] = { y, x, x2 };
	struct air_error e = { "" };
	struct air_cpu_plan *cpu;
	struct air_plan plan;

	if (air_plan_init(&plan, d, &e))
		fail_msg("%s", e.text);
	assert_int_equal(plan.workspace, 0);
	assert_int_equal(plan.op->cpu_plan(&plan.desc, &cpu, &e), AIR_OK);
	assert_int_equal(cpu->run(cpu, operand, pool), AIR_OK);
	cpu->destroy(cpu);
}

/* @bytes of addresses with one file behind them. */
static void *map_over(uint64_t bytes)
{
	int fd = memfd_create("huge", 0);
	char *p;

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, FILE_SIZE), 0);
	bytes = (bytes + FILE_SIZE - 1) / FILE_SIZE * FILE_SIZE;
	p = mmap(NULL, bytes, PROT_NONE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_true(p != MAP_FAILED);
	for (uint64_t at = 0; at < bytes; at += FILE_SIZE)
		assert_true(mmap(p + at, FILE_SIZE, PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED);
	close(fd);
	return p;
}

static void unmap(void *p, uint64_t bytes)
{
	munmap(p, (bytes + FILE_SIZE - 1) / FILE_SIZE * FILE_SIZE);
}

static void test_reduce(void **state)
{
	struct airunner_desc d = { .size = sizeof(d),
				   .op = AIR_OP_reduce_sum,
				   .n_tensors = 2,
				   .attr = { 1 } };
	int8_t x = -3;
	int64_t y = 0;

	d.tensor[0].dtype = AIRUNNER_I64;
	d.tensor[1] = (struct airunner_tensor){ .dtype = AIRUNNER_I8,
						.ndim = 1,
						.shape = { COUNT } };
	run(&d, &y, &x, NULL);
	assert_int_equal(y, -3 * COUNT);
}

static void test_reduce_f32(void **state)
{
	struct airunner_desc d = { .size = sizeof(d),
				   .op = AIR_OP_reduce_sum,
				   .n_tensors = 2,
				   .attr = { 3 } };
	float x = 0.1f, y = 0;
	double want = (double)x * 3 * (COUNT / 3);

	d.tensor[0].dtype = AIRUNNER_F32;
	d.tensor[1] = (struct airunner_tensor){ .dtype = AIRUNNER_F32,
						.ndim = 2,
						.shape = { 3, COUNT / 3 } };
	run(&d, &y, &x, NULL);
	/* Blocks of 1024 are summed in f32, their sums in f64. */
	assert_true(y > want * (1 - 1e-6) && y < want * (1 + 1e-6));
}

/* The elements beyond 2^31 are written, and nothing beyond them. */
static void test_copy(void **state)
{
	struct airunner_desc d = { .size = sizeof(d),
				   .op = AIR_OP_copy,
				   .n_tensors = 2 };
	uint64_t bytes = COUNT + FILE_SIZE;
	char *y = map_over(bytes), *x = map_over(bytes);

	for (int i = 0; i < 2; i++)
		d.tensor[i] = (struct airunner_tensor){ .dtype = AIRUNNER_I8,
							.ndim = 1,
							.shape = { COUNT },
							.stride = { 1 } };
	for (long i = 0; i < FILE_SIZE; i++)
		x[i] = (char)(i * 7 + (i >> 8));
	memset(y, 0, FILE_SIZE);
	run(&d, y, x, NULL);
	assert_memory_equal(y + COUNT - 100000, x + COUNT - 100000, 100000);
	unmap(y, bytes);
	unmap(x, bytes);
}

/* Rows and columns whose offsets in bytes need more than 32 bits. */
static void test_add_rows(void **state)
{
	int64_t rows = 1 << 15, cols = COUNT / rows, stride = cols + 3;
	struct airunner_desc d = { .size = sizeof(d),
				   .op = AIR_OP_add,
				   .n_tensors = 3 };
	uint64_t bytes = (uint64_t)rows * stride * sizeof(float);
	float *y = map_over(bytes), x = 2, b = 3;

	d.tensor[0] = (struct airunner_tensor){ .dtype = AIRUNNER_F32,
						.ndim = 2,
						.shape = { rows, cols },
						.stride = { stride, 1 } };
	d.tensor[1] = d.tensor[0];
	memset(d.tensor[1].stride, 0, sizeof(d.tensor[1].stride));
	d.tensor[2] = d.tensor[1];
	run(&d, y, &x, &b);
	assert_true(y[(rows - 1) * stride + cols - 1] == 5);
	unmap(y, bytes);
}

static int start(void **state)
{
	pool = air_pool_create(0);
	return !pool;
}

static int stop(void **state)
{
	air_pool_destroy(pool);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reduce),
		cmocka_unit_test(test_reduce_f32),
		cmocka_unit_test(test_copy),
		cmocka_unit_test(test_add_rows),
	};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	/* Each would take minutes, and shadow memory as large as theirs. */
	puts("skip: more than 2^31 elements, under a sanitizer");
	return 77;
#endif
	return cmocka_run_group_tests(tests, start, stop);
}
