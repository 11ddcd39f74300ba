// SPDX-License-Identifier: MIT
/* Elementwise results too large for any cache, which are written past them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "ops/cpu.h"
#include "ops/stream.h"

#define GUARD 32

/* All elements, nothing else, wherever the first one lies in its line. */
static void test_store_is_exact(void **state)
{
	float from[100], memory[GUARD + 100 + GUARD];

	for (int i = 0; i < 100; i++)
		from[i] = (float)i;
	for (int shift = 0; shift < 17; shift++) {
		for (uint64_t n = 0; n <= 80; n++) {
			float *to = &memory[shift];

			for (int i = 0; i < GUARD + 100 + GUARD; i++)
				memory[i] = -1;
			air_stream_store(to, from, n);
			air_stream_end();
			for (int i = 0; i < GUARD + 100 + GUARD; i++) {
				int at = i - shift;
				bool in = at >= 0 && (uint64_t)at < n;

				assert_true(memory[i] ==
					    (in ? (float)at : -1.0f));
			}
		}
	}
}

static uint64_t large(void)
{
	uint64_t n = 1 << 20;

	/* Machines with other architectures' caches have nothing to stream. */
	while (n < 1 << 28 && !air_stream_pays(n * 3 * sizeof(float)))
		n *= 2;
	return n == 1 << 28 ? 1 << 20 : n + 13;
}

static float *numbers(uint64_t n, float by)
{
	float *x = malloc((n + 2 * GUARD) * sizeof(*x));

	assert_non_null(x);
	for (uint64_t i = 0; i < n + 2 * GUARD; i++)
		x[i] = (float)(i % 1000) * by - 300;
	return x;
}

/* y = a + b on @threads; in place: y is a. */
static void add(uint64_t n, uint64_t shift, bool in_place, unsigned int threads)
{
	float *a = numbers(n, 1), *b = numbers(n, 0.5f), *y = numbers(n, 0);
	struct airunner_desc d = {
		.size = sizeof(d),
		.op = AIR_OP_add,
		.n_tensors = 3,
	};
	void *operand[AIRUNNER_MAX_TENSORS + 1] = { y + shift, a + 1, b + 2 };
	struct air_pool *pool = air_pool_create(threads);
	struct air_cpu_plan *plan;
	struct air_error e;

	for (int i = 0; i < 3; i++) {
		d.tensor[i].dtype = AIRUNNER_F32;
		d.tensor[i].ndim = 1;
		d.tensor[i].shape[0] = (int64_t)n;
		d.tensor[i].stride[0] = 1;
	}
	if (in_place)
		operand[0] = operand[1];
	assert_int_equal(air_op_find(AIR_OP_add)->cpu_plan(&d, &plan, &e),
			 AIR_OK);
	assert_int_equal(plan->run(plan, operand, pool), AIR_OK);
	for (uint64_t i = 0; i < n + 2 * GUARD; i++) {
		const float *out = in_place ? a : y;
		uint64_t at = i - (in_place ? 1 : shift);
		float was = in_place ? (float)(i % 1000) - 300 : -300;
		float sum = (float)((at + 1) % 1000) - 300 +
			    (float)((at + 2) % 1000) * 0.5f - 300;

		if (out[i] != (at < n ? sum : was))
			fail_msg("element %lld of %llu is %g",
				 (long long)(int64_t)at, (unsigned long long)n,
				 (double)out[i]);
	}
	plan->destroy(plan);
	air_pool_destroy(pool);
	free(a);
	free(b);
	free(y);
}

static void test_large_operators(void **state)
{
	uint64_t n = large();

	add(n, 0, false, 1);
	add(n, 3, false, 3);
	add(n, 0, true, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_store_is_exact),
		cmocka_unit_test(test_large_operators),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
