// SPDX-License-Identifier: MIT
/*
 * Tensor descriptions, and views of a buffer.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <airunner.h>

#include "tests/unit/fake_worker.h"

#define assert_sentence(part) assert_non_null(strstr(air_last_error(), part))
#define assert_ok(call)	      assert_int_equal(call, AIR_OK)
#define DIMS(...)	      ((const int64_t[]){ __VA_ARGS__ })
#define PERM(...)	      ((const uint32_t[]){ __VA_ARGS__ })

static struct fake f;
static air_tensor t; /* f32 [4, 6], elements numbered */

static int start(void **state)
{
	float *p;

	fake_start(&f, 2);
	assert_ok(air_tensor_alloc(f.ch, AIR_HOST, AIR_F32, 2, DIMS(4, 6), &t));
	p = air_tensor_data(&t);
	for (int i = 0; i < 24; i++)
		p[i] = (float)i;
	return 0;
}

static int stop(void **state)
{
	assert_ok(air_buffer_free(t.buf));
	fake_stop(&f);
	return 0;
}

/* Element (i, j) of a 2-dimensional view. */
static float at(const air_tensor *v, int64_t i, int64_t j)
{
	const float *p = air_tensor_data(v);

	assert_int_equal(v->desc.ndim, 2);
	return p[i * v->desc.stride[0] + j * v->desc.stride[1]];
}

static void assert_dims(const int64_t *got, const int64_t *want, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(got[i], want[i]);
}

/* ----------------------------------------------------------- descriptions */

static void test_dtypes(void **state)
{
	static const struct {
		air_dtype dtype;
		size_t size;
		const char *name;
	} known[] = {
		{ AIR_F32, 4, "f32" },	 { AIR_F16, 2, "f16" },
		{ AIR_BF16, 2, "bf16" }, { AIR_I32, 4, "i32" },
		{ AIR_I8, 1, "i8" },	 { AIR_I64, 8, "i64" },
	};

	for (unsigned int i = 0; i < 6; i++) {
		assert_int_equal(air_dtype_size(known[i].dtype), known[i].size);
		assert_string_equal(air_dtype_name(known[i].dtype),
				    known[i].name);
	}
	assert_int_equal(air_dtype_size((air_dtype)0), 0);
	assert_int_equal(air_dtype_size((air_dtype)7), 0);
	assert_int_equal(air_dtype_size((air_dtype)-1), 0);
	assert_string_equal(air_dtype_name((air_dtype)7), "unknown dtype");
}

static void test_contiguous_by_default(void **state)
{
	air_tensor_desc d;

	assert_ok(air_tensor_desc_init(&d, AIR_F16, 3, DIMS(2, 3, 5), NULL));
	assert_dims(d.stride, DIMS(15, 5, 1, 0, 0, 0, 0, 0), 8);
	assert_int_equal(air_tensor_desc_elements(&d), 30);
	assert_true(air_tensor_desc_contiguous(&d));
	assert_ok(air_tensor_desc_init(&d, AIR_F32, 0, NULL, NULL));
	assert_int_equal(air_tensor_desc_elements(&d), 1);
	assert_true(air_tensor_desc_contiguous(&d));
	assert_ok(air_tensor_desc_init(&d, AIR_F32, 8,
				       DIMS(1, 1, 1, 1, 1, 1, 1, 1), NULL));
	assert_int_equal(air_tensor_desc_elements(&d), 1);
}

static void test_contiguity(void **state)
{
	air_tensor_desc d;

	assert_ok(air_tensor_desc_init(&d, AIR_F32, 2, DIMS(4, 6), DIMS(7, 1)));
	assert_false(air_tensor_desc_contiguous(&d));
	/* The stride of a size-1 dimension has no meaning. */
	assert_ok(air_tensor_desc_init(&d, AIR_F32, 3, DIMS(4, 1, 6),
				       DIMS(6, 99, 1)));
	assert_true(air_tensor_desc_contiguous(&d));
	/* Nor has any of an empty tensor. */
	assert_ok(air_tensor_desc_init(&d, AIR_F32, 2, DIMS(4, 0), DIMS(9, 9)));
	assert_true(air_tensor_desc_contiguous(&d));
	assert_ok(
		air_tensor_desc_init(&d, AIR_F32, 2, DIMS(4, 6), DIMS(-6, -1)));
	assert_false(air_tensor_desc_contiguous(&d));
}

static void test_extent(void **state)
{
	uint64_t below, above;
	air_tensor_desc d;

	assert_ok(air_tensor_desc_init(&d, AIR_F32, 2, DIMS(4, 6), NULL));
	air_tensor_desc_extent(&d, &below, &above);
	assert_int_equal(below, 0);
	assert_int_equal(above, 96);
	assert_ok(
		air_tensor_desc_init(&d, AIR_F32, 2, DIMS(4, 6), DIMS(-10, 2)));
	air_tensor_desc_extent(&d, &below, &above);
	assert_int_equal(below, 3 * 10 * 4);
	assert_int_equal(above, (5 * 2 + 1) * 4);
	assert_ok(air_tensor_desc_init(&d, AIR_F32, 2, DIMS(4, 0), NULL));
	air_tensor_desc_extent(&d, &below, &above);
	assert_int_equal(below, 0);
	assert_int_equal(above, 0);
	assert_ok(
		air_tensor_desc_init(&d, AIR_I8, 2, DIMS(1000, 6), DIMS(0, 1)));
	air_tensor_desc_extent(&d, &below, &above);
	assert_int_equal(above, 6);
}

static void test_description_refused(void **state)
{
	static const int64_t huge = INT64_C(1) << 40;
	air_tensor_desc d = { .dtype = 4711 };

	assert_int_equal(air_tensor_desc_init(NULL, AIR_F32, 0, NULL, NULL),
			 AIR_BAD_ARGUMENT);
	assert_int_equal(air_tensor_desc_init(&d, (air_dtype)7, 0, NULL, NULL),
			 AIR_BAD_DTYPE);
	assert_sentence("dtype 7");
	assert_int_equal(air_tensor_desc_init(&d, AIR_F32, 9, DIMS(1), NULL),
			 AIR_BAD_SHAPE);
	assert_sentence("9 dimensions");
	assert_int_equal(air_tensor_desc_init(&d, AIR_F32, 1, NULL, NULL),
			 AIR_BAD_ARGUMENT);
	assert_int_equal(air_tensor_desc_init(&d, AIR_F32, 2, DIMS(3, -1),
					      NULL),
			 AIR_BAD_SHAPE);
	assert_sentence("dimension 1 is -1");
	assert_int_equal(air_tensor_desc_init(&d, AIR_F32, 2, DIMS(huge, huge),
					      NULL),
			 AIR_BAD_SHAPE);
	assert_sentence("2^62");
	/* Hidden behind a 0 it would still overflow strides. */
	assert_int_equal(air_tensor_desc_init(&d, AIR_F32, 3,
					      DIMS(0, huge, huge), NULL),
			 AIR_BAD_SHAPE);
	assert_int_equal(air_tensor_desc_init(&d, AIR_F32, 1, DIMS(huge),
					      DIMS(huge)),
			 AIR_BAD_STRIDES);
	assert_sentence("stride 1099511627776 of dimension 0");
	assert_int_equal(air_tensor_desc_init(&d, AIR_F32, 1, DIMS(3),
					      DIMS(INT64_MIN)),
			 AIR_BAD_STRIDES);
	assert_int_equal(d.dtype, 4711);
	/* More than 2^31 elements are fine. */
	assert_ok(air_tensor_desc_init(&d, AIR_F32, 1, DIMS(huge), NULL));
	assert_int_equal(air_tensor_desc_elements(&d), huge);
}

/* ------------------------------------------------------------------ views */

static void test_alloc(void **state)
{
	air_tensor v = { .offset = 4711 };

	assert_int_equal(air_tensor_alloc(f.ch, AIR_HOST, AIR_F32, 1, DIMS(5),
					  NULL),
			 AIR_BAD_ARGUMENT);
	assert_int_equal(air_tensor_alloc(f.ch, AIR_HOST, (air_dtype)0, 1,
					  DIMS(5), &v),
			 AIR_BAD_DTYPE);
	assert_int_equal(air_tensor_alloc(NULL, AIR_HOST, AIR_F32, 1, DIMS(5),
					  &v),
			 AIR_BAD_ARGUMENT);
	assert_int_equal(v.offset, 4711);
	/* An empty one is freed like any other. */
	assert_ok(air_tensor_alloc(f.ch, AIR_HOST, AIR_F32, 1, DIMS(0), &v));
	assert_non_null(air_tensor_data(&v));
	assert_ok(air_buffer_free(v.buf));
	assert_int_equal(air_tensor_ref(&t).bits,
			 air_buffer_ref(t.buf, 0).bits);
}

static void test_view(void **state)
{
	uint64_t size = air_buffer_size(t.buf);
	air_tensor_desc d;
	air_tensor v;

	assert_ok(air_tensor_desc_init(&d, AIR_F32, 1, DIMS(4), NULL));
	assert_ok(air_tensor_view(t.buf, 8, &d, &v));
	assert_ptr_equal(air_tensor_data(&v), (char *)air_tensor_data(&t) + 8);
	assert_ok(air_tensor_view(t.buf, size - 16, &d, &v));
	assert_int_equal(air_tensor_view(t.buf, size - 15, &d, &v),
			 AIR_BAD_RANGE);
	assert_sentence("of a buffer of 4096 bytes");
	assert_int_equal(air_tensor_view(t.buf, UINT64_MAX - 3, &d, &v),
			 AIR_BAD_RANGE);
	d.stride[0] = -1;
	assert_int_equal(air_tensor_view(t.buf, 8, &d, &v), AIR_BAD_RANGE);
	assert_ok(air_tensor_view(t.buf, 12, &d, &v));
	d.stride[0] = INT64_MAX;
	assert_int_equal(air_tensor_view(t.buf, 0, &d, &v), AIR_BAD_STRIDES);
	assert_int_equal(air_tensor_view(NULL, 0, &d, &v), AIR_BAD_ARGUMENT);
	assert_int_equal(air_tensor_view(t.buf, 0, NULL, &v), AIR_BAD_ARGUMENT);
	assert_int_equal(air_tensor_view(t.buf, 0, &d, NULL), AIR_BAD_ARGUMENT);
}

static void test_slice(void **state)
{
	air_tensor v;

	assert_ok(air_tensor_slice(&t, 1, 2, 3, 1, &v));
	assert_dims(v.desc.shape, DIMS(4, 3), 2);
	assert_true(at(&v, 0, 0) == 2);
	assert_true(at(&v, 3, 2) == 22);
	assert_ok(air_tensor_slice(&t, 1, 5, 3, -2, &v));
	assert_true(at(&v, 1, 0) == 11);
	assert_true(at(&v, 1, 2) == 7);
	assert_ok(air_tensor_slice(&t, 0, 1, 2, 2, &v));
	assert_true(at(&v, 1, 5) == 23);
	/* Empty ones, at the end too. */
	assert_ok(air_tensor_slice(&t, 0, 4, 0, 1, &v));
	assert_int_equal(air_tensor_desc_elements(&v.desc), 0);
	/* One element: the step does not matter. */
	assert_ok(air_tensor_slice(&t, 0, 3, 1, 100, &v));
	assert_true(at(&v, 0, 0) == 18);
}

static void test_slice_refused(void **state)
{
	static const int64_t bad[][3] = {
		/* start, n, step */
		{ -1, 1, 1 },	     { 0, 5, 1 },
		{ 3, 2, 1 },	     { 0, 2, 4 },
		{ 0, 2, -1 },	     { 0, -1, 1 },
		{ 5, 0, 1 },	     { 4, 1, 1 },
		{ 0, 2, 0 },	     { 0, INT64_MAX, INT64_MAX },
		{ 1, 2, INT64_MIN },
	};
	air_tensor v;

	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(air_tensor_slice(&t, 0, bad[i][0], bad[i][1],
						  bad[i][2], &v),
				 AIR_BAD_RANGE);
		assert_sentence("dimension 0, which has 4");
	}
	assert_int_equal(air_tensor_slice(&t, 2, 0, 1, 1, &v),
			 AIR_BAD_ARGUMENT);
	assert_int_equal(air_tensor_slice(NULL, 0, 0, 1, 1, &v),
			 AIR_BAD_ARGUMENT);
	assert_int_equal(air_tensor_slice(&t, 0, 0, 1, 1, NULL),
			 AIR_BAD_ARGUMENT);
}

static void test_permute(void **state)
{
	air_tensor v;

	assert_ok(air_tensor_permute(&t, PERM(1, 0), &v));
	assert_dims(v.desc.shape, DIMS(6, 4), 2);
	assert_true(at(&v, 5, 1) == 11);
	assert_int_equal(air_tensor_permute(&t, PERM(1, 1), &v),
			 AIR_BAD_ARGUMENT);
	assert_sentence("entry 1 is 1");
	assert_int_equal(air_tensor_permute(&t, PERM(0, 2), &v),
			 AIR_BAD_ARGUMENT);
	assert_int_equal(air_tensor_permute(&t, NULL, &v), AIR_BAD_ARGUMENT);
}

static void test_reshape(void **state)
{
	air_tensor v, w;

	assert_ok(air_tensor_reshape(&t, 3, DIMS(2, 3, 4), &v));
	assert_dims(v.desc.stride, DIMS(12, 4, 1), 3);
	assert_ok(air_tensor_reshape(&t, 1, DIMS(24), &v));
	assert_int_equal(air_tensor_reshape(&t, 1, DIMS(23), &v),
			 AIR_BAD_SHAPE);
	assert_sentence("24 elements into a shape of 23");
	/* Rows with gaps can be cut, but not joined. */
	assert_ok(air_tensor_slice(&t, 1, 0, 4, 1, &v));
	assert_ok(air_tensor_reshape(&v, 4, DIMS(2, 2, 1, 4), &w));
	assert_dims(w.desc.stride, DIMS(12, 6), 2);
	assert_int_equal(w.desc.stride[3], 1);
	assert_int_equal(air_tensor_reshape(&v, 1, DIMS(16), &w),
			 AIR_BAD_STRIDES);
	assert_sentence("copy");
	/* A transposed one neither. */
	assert_ok(air_tensor_permute(&t, PERM(1, 0), &v));
	assert_int_equal(air_tensor_reshape(&v, 1, DIMS(24), &w),
			 AIR_BAD_STRIDES);
	assert_ok(air_tensor_reshape(&v, 3, DIMS(3, 2, 4), &w));
	assert_dims(w.desc.stride, DIMS(2, 1, 6), 3);
	/* Broadcast dimensions go along. */
	assert_ok(air_tensor_slice(&t, 0, 0, 1, 1, &v));
	assert_ok(air_tensor_broadcast(&v, 2, DIMS(4, 6), &w));
	assert_ok(air_tensor_reshape(&w, 3, DIMS(2, 2, 6), &v));
	assert_dims(v.desc.stride, DIMS(0, 0, 1), 3);
	/* Empty and scalar. */
	assert_ok(air_tensor_slice(&t, 0, 0, 0, 1, &v));
	assert_ok(air_tensor_reshape(&v, 2, DIMS(7, 0), &w));
	assert_ok(air_tensor_slice(&t, 0, 0, 1, 1, &v));
	assert_ok(air_tensor_slice(&v, 1, 3, 1, 1, &v));
	assert_ok(air_tensor_reshape(&v, 0, NULL, &w));
	assert_true(*(float *)air_tensor_data(&w) == 3);
}

static void test_broadcast(void **state)
{
	air_tensor row, v;

	assert_ok(air_tensor_slice(&t, 0, 2, 1, 1, &row));
	assert_ok(air_tensor_broadcast(&row, 2, DIMS(5, 6), &v));
	assert_true(at(&v, 4, 3) == 15);
	assert_dims(v.desc.stride, DIMS(0, 1), 2);
	assert_ok(air_tensor_broadcast(&t, 3, DIMS(7, 4, 6), &v));
	assert_dims(v.desc.stride, DIMS(0, 6, 1), 3);
	assert_int_equal(air_tensor_broadcast(&t, 2, DIMS(4, 12), &v),
			 AIR_BAD_SHAPE);
	assert_sentence("dimension 1 has 6 elements, which cannot become 12");
	assert_int_equal(air_tensor_broadcast(&t, 1, DIMS(6), &v),
			 AIR_BAD_SHAPE);
	assert_sentence("from 2 dimensions to only 1");
}

static void test_views_need_a_buffer(void **state)
{
	air_tensor none = t, v;

	none.buf = NULL;
	assert_int_equal(air_tensor_slice(&none, 0, 0, 1, 1, &v),
			 AIR_BAD_ARGUMENT);
	assert_int_equal(air_tensor_permute(&none, PERM(1, 0), &v),
			 AIR_BAD_ARGUMENT);
	assert_int_equal(air_tensor_reshape(&none, 1, DIMS(24), &v),
			 AIR_BAD_ARGUMENT);
	assert_int_equal(air_tensor_broadcast(&none, 2, DIMS(4, 6), &v),
			 AIR_BAD_ARGUMENT);
	assert_sentence("no buffer");
}

#define T(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_dtypes),
		cmocka_unit_test(test_contiguous_by_default),
		cmocka_unit_test(test_contiguity),
		cmocka_unit_test(test_extent),
		cmocka_unit_test(test_description_refused),
		T(test_alloc),
		T(test_view),
		T(test_slice),
		T(test_slice_refused),
		T(test_permute),
		T(test_reshape),
		T(test_broadcast),
		T(test_views_need_a_buffer),
	};

	return cmocka_run_group_tests_name("tensor", tests, NULL, NULL);
}
