// SPDX-License-Identifier: MIT
/*
 * Arithmetic on tensor descriptions, against counting elements one by one on
 * random small tensors.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "ops/iter.h"
#include "ops/tensor.h"

#define ROUNDS 20000
/* Bytes of the model of memory, with the first element in the middle. */
#define SPAN 4096

static unsigned int seed;

static int below(int n)
{
	return rand_r(&seed) % n;
}

static struct airunner_tensor random_tensor(void)
{
	static const uint32_t dtypes[] = { AIRUNNER_F32, AIRUNNER_F16,
					   AIRUNNER_I8, AIRUNNER_I64 };
	struct airunner_tensor t = { .dtype = dtypes[below(4)] };

	t.ndim = below(4);
	for (uint32_t i = 0; i < t.ndim; i++) {
		t.shape[i] = below(10) ? below(5) + 1 : 0;
		t.stride[i] = below(25) - 12;
		if (!below(4))
			t.stride[i] = 1 << below(4);
	}
	return t;
}

static int64_t element(const struct airunner_tensor *t, int64_t at)
{
	int64_t offset = 0;

	for (uint32_t i = t->ndim; i-- > 0;) {
		offset += at % t->shape[i] * t->stride[i];
		at /= t->shape[i];
	}
	return offset * air_elem_size(t->dtype);
}

/* How often each byte around the first element is part of an element. */
static void count_bytes(const struct airunner_tensor *t, int64_t at,
			unsigned char map[SPAN])
{
	for (int64_t i = 0; i < air_tensor_count(t); i++)
		for (uint32_t b = 0; b < air_elem_size(t->dtype); b++)
			map[SPAN / 2 + at + element(t, i) + b]++;
}

static void test_extent(void **state)
{
	for (int round = 0; round < ROUNDS; round++) {
		struct airunner_tensor t = random_tensor();
		unsigned char map[SPAN] = { 0 };
		int64_t first = SPAN, last = -1;
		uint64_t lower, upper;

		count_bytes(&t, 0, map);
		for (int i = 0; i < SPAN; i++) {
			if (!map[i])
				continue;
			first = first < i ? first : i;
			last = i;
		}
		air_tensor_extent(&t, &lower, &upper);
		if (last < 0) {
			assert_int_equal(lower, 0);
			assert_int_equal(upper, 0);
			continue;
		}
		assert_int_equal(lower, SPAN / 2 - first);
		assert_int_equal(upper, last + 1 - SPAN / 2);
	}
}

static bool any_shared(const struct airunner_tensor *t)
{
	unsigned char map[SPAN] = { 0 };

	count_bytes(t, 0, map);
	for (int i = 0; i < SPAN; i++)
		if (map[i] > 1)
			return true;
	return false;
}

/* What is called distinct has to be; dense layouts have to be recognised. */
static void test_distinct(void **state)
{
	int yes = 0, no = 0;

	for (int round = 0; round < ROUNDS; round++) {
		struct airunner_tensor t = random_tensor();

		if (air_tensor_distinct(&t)) {
			assert_false(any_shared(&t));
			yes++;
		} else {
			no++;
		}
	}
	assert_in_range(yes, ROUNDS / 20, ROUNDS);
	assert_in_range(no, ROUNDS / 20, ROUNDS);
}

static void test_distinct_examples(void **state)
{
	struct airunner_tensor t = { .dtype = AIRUNNER_F32,
				     .ndim = 2,
				     .shape = { 4, 5 },
				     .stride = { 5, 1 } };

	assert_true(air_tensor_distinct(&t));
	t.stride[0] = 4;
	assert_false(air_tensor_distinct(&t));
	t.stride[0] = 1;
	t.stride[1] = -4;
	assert_true(air_tensor_distinct(&t));
	t.stride[0] = 0;
	assert_false(air_tensor_distinct(&t));
	t.shape[0] = 1;
	assert_true(air_tensor_distinct(&t));
	t.shape[1] = 0;
	t.stride[1] = 0;
	assert_true(air_tensor_distinct(&t));
}

/* No overlap may be missed. */
static void test_overlap(void **state)
{
	int yes = 0, no = 0;

	for (int round = 0; round < ROUNDS; round++) {
		struct airunner_tensor a = random_tensor();
		struct airunner_tensor b = random_tensor();
		unsigned char in_a[SPAN] = { 0 }, in_b[SPAN] = { 0 };
		int64_t at = below(800) - 400;
		bool shared = false;

		count_bytes(&a, 0, in_a);
		count_bytes(&b, at, in_b);
		for (int i = 0; i < SPAN; i++)
			shared = shared || (in_a[i] && in_b[i]);
		if (shared)
			assert_true(air_tensor_overlap(&a, 1 << 20, &b,
						       (1 << 20) + at));
		shared ? yes++ : no++;
	}
	assert_in_range(yes, ROUNDS / 50, ROUNDS);
	assert_in_range(no, ROUNDS / 50, ROUNDS);
}

/* Views of one buffer that lie between each other's elements. */
static void test_interleaved(void **state)
{
	struct airunner_tensor left = { .dtype = AIRUNNER_F32,
					.ndim = 2,
					.shape = { 8, 64 },
					.stride = { 128, 1 } };
	struct airunner_tensor every_other = { .dtype = AIRUNNER_F32,
					       .ndim = 1,
					       .shape = { 50 },
					       .stride = { 2 } };
	struct airunner_tensor backwards = every_other;

	backwards.stride[0] = -2;
	assert_false(air_tensor_overlap(&left, 4096, &left, 4096 + 64 * 4));
	assert_true(air_tensor_overlap(&left, 4096, &left, 4096 + 63 * 4));
	assert_false(air_tensor_overlap(&left, 4096, &left, 4096 - 64 * 4));
	assert_false(
		air_tensor_overlap(&every_other, 4096, &every_other, 4100));
	assert_true(air_tensor_overlap(&every_other, 4096, &every_other, 4104));
	assert_false(air_tensor_overlap(&every_other, 4096, &backwards,
					4100 + 49 * 8));
	assert_true(air_tensor_overlap(&every_other, 4096, &backwards,
				       4096 + 49 * 8));
}

static void test_same_layout(void **state)
{
	struct airunner_tensor a = { .dtype = AIRUNNER_F32,
				     .ndim = 2,
				     .shape = { 1, 5 },
				     .stride = { 5, 1 } };
	struct airunner_tensor b = a;

	assert_true(air_tensor_same_layout(&a, &b));
	b.stride[0] = 77;
	assert_true(air_tensor_same_layout(&a, &b));
	b.stride[1] = 2;
	assert_false(air_tensor_same_layout(&a, &b));
	b = a;
	b.dtype = AIRUNNER_I32;
	assert_false(air_tensor_same_layout(&a, &b));
	b = a;
	b.shape[1] = 4;
	assert_false(air_tensor_same_layout(&a, &b));
}

static air_status check(struct airunner_tensor t)
{
	struct air_error e;
	air_status st = air_tensor_check(&t, "relu", "x", &e);

	if (st)
		assert_non_null(strstr(e.text, "relu: operand x: "));
	return st;
}

static void test_check(void **state)
{
	const struct airunner_tensor good = { .dtype = AIRUNNER_F32,
					      .ndim = 2,
					      .shape = { 4, 5 },
					      .stride = { 5, 1 } };
	struct airunner_tensor t = good;

	assert_int_equal(check(t), AIR_OK);
	t.dtype = 7;
	assert_int_equal(check(t), AIR_BAD_DTYPE);
	t.dtype = 0;
	assert_int_equal(check(t), AIR_BAD_DTYPE);
	t.dtype = UINT32_MAX;
	assert_int_equal(check(t), AIR_BAD_DTYPE);
	t = good;
	t.ndim = 9;
	assert_int_equal(check(t), AIR_BAD_SHAPE);
	t.ndim = UINT32_MAX;
	assert_int_equal(check(t), AIR_BAD_SHAPE);
	t = good;
	t.shape[1] = -1;
	assert_int_equal(check(t), AIR_BAD_SHAPE);
	t.shape[1] = INT64_MIN;
	assert_int_equal(check(t), AIR_BAD_SHAPE);
	t = good;
	t.stride[0] = INT64_MIN;
	assert_int_equal(check(t), AIR_BAD_STRIDES);
	t.stride[0] = INT64_MAX;
	assert_int_equal(check(t), AIR_BAD_STRIDES);
	t = good;
	t.shape[2] = 1;
	assert_int_equal(check(t), AIR_BAD_RESERVED);
	t = good;
	t.stride[7] = 1;
	assert_int_equal(check(t), AIR_BAD_RESERVED);
	/* 2^62 elements, at one address; one more dimension of 2 */
	t = (struct airunner_tensor){ .dtype = AIRUNNER_I8,
				      .ndim = 2,
				      .shape = { INT64_C(1) << 61, 2 } };
	assert_int_equal(check(t), AIR_OK);
	t.shape[1] = 3;
	assert_int_equal(check(t), AIR_BAD_SHAPE);
	/* Partial products count, even if there is nothing in the end. */
	t = (struct airunner_tensor){ .dtype = AIRUNNER_I8,
				      .ndim = 3,
				      .shape = { 0, INT64_C(1) << 61, 4 } };
	assert_int_equal(check(t), AIR_BAD_SHAPE);
	/* Few elements, far apart. */
	t = (struct airunner_tensor){ .dtype = AIRUNNER_I8,
				      .ndim = 1,
				      .shape = { 65 },
				      .stride = { INT64_C(1) << 56 } };
	assert_int_equal(check(t), AIR_BAD_STRIDES);
	t.shape[0] = 64;
	assert_int_equal(check(t), AIR_OK);
}

/* The loop visits each element once, at the same place in both tensors. */
struct visit {
	const struct air_iter *it;
	unsigned char seen[1024];
	char *x;
};

static void visit_row(void *arg, char *const *p, uint64_t n)
{
	struct visit *v = arg;
	uint32_t last = v->it->ndim - 1;

	for (uint64_t i = 0; i < n; i++) {
		const int16_t *y =
			(int16_t *)(p[0] + (int64_t)i * v->it->stride[0][last]);
		const int32_t *x =
			(int32_t *)(p[1] + (int64_t)i * v->it->stride[1][last]);

		assert_int_equal(*y, *x);
		v->seen[*y]++;
	}
}

static void test_iter(void **state)
{
	for (int round = 0; round < 3000; round++) {
		static int16_t y[SPAN];
		static int32_t x[SPAN];
		struct airunner_tensor ty = random_tensor(), tx;
		const struct airunner_tensor *t[2] = { &ty, &tx };
		void *operand[2] = { y + SPAN / 2, x + SPAN / 2 };
		struct visit v = { 0 };
		struct air_iter it;
		uint64_t n, cut;

		ty.dtype = AIRUNNER_F16;
		tx = ty;
		tx.dtype = AIRUNNER_F32;
		/* Another layout without shared elements for x. */
		for (uint32_t i = 0, step = 1; i < tx.ndim; i++) {
			tx.stride[i] =
				below(2) ? (int64_t)step : -(int64_t)step;
			step *= tx.shape[i] ? tx.shape[i] : 1;
		}
		if (!air_tensor_distinct(&ty))
			continue;
		n = air_tensor_count(&ty);
		for (uint64_t i = 0; i < n; i++) {
			y[SPAN / 2 + element(&ty, i) / 2] = i;
			x[SPAN / 2 + element(&tx, i) / 4] = i;
		}
		air_iter_init(&it, 2, t, ~0U);
		assert_int_equal(it.total, n);
		v.it = &it;
		cut = n ? (uint64_t)below(n + 1) : 0;
		air_iter_rows(&it, operand, 0, cut, visit_row, &v);
		air_iter_rows(&it, operand, cut, n, visit_row, &v);
		for (uint64_t i = 0; i < n; i++)
			assert_int_equal(v.seen[i], 1);
	}
}

/* What can be one row is one. */
static void test_iter_merges(void **state)
{
	struct airunner_tensor a = { .dtype = AIRUNNER_F32,
				     .ndim = 4,
				     .shape = { 2, 3, 1, 4 },
				     .stride = { 12, 4, 99, 1 } };
	const struct airunner_tensor *t[2] = { &a, &a };
	struct air_iter it;

	air_iter_init(&it, 2, t, ~0U);
	assert_int_equal(it.ndim, 1);
	assert_int_equal(it.shape[0], 24);
	for (int i = 0; i < 4; i++)
		a.stride[i] = -a.stride[i];
	air_iter_init(&it, 2, t, ~0U);
	assert_int_equal(it.ndim, 1);
	assert_int_equal(it.stride[0][0], 4);
	assert_int_equal(it.base[0], -23 * 4);
}

static void test_shape_string(void **state)
{
	char buf[AIR_SHAPE_STRING];
	__s64 wide[8];

	assert_string_equal(air_shape_string(buf, (__s64[]){ 4, 5 }, 2),
			    "[4, 5]");
	assert_string_equal(air_shape_string(buf, NULL, 0), "[]");
	for (int i = 0; i < 8; i++)
		wide[i] = INT64_MAX;
	/* Too long for the buffer: cut off, not overrun. */
	assert_int_equal(strlen(air_shape_string(buf, wide, 8)),
			 AIR_SHAPE_STRING - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_extent),
		cmocka_unit_test(test_distinct),
		cmocka_unit_test(test_distinct_examples),
		cmocka_unit_test(test_overlap),
		cmocka_unit_test(test_interleaved),
		cmocka_unit_test(test_same_layout),
		cmocka_unit_test(test_check),
		cmocka_unit_test(test_iter),
		cmocka_unit_test(test_iter_merges),
		cmocka_unit_test(test_shape_string),
	};
	const char *given = getenv("SEED");

	seed = given ? (unsigned int)strtoul(given, NULL, 0)
		     : (unsigned int)time(NULL);
	printf("# SEED=%u\n", seed);
	fflush(stdout);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
