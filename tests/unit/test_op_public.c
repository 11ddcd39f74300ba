// SPDX-License-Identifier: MIT
/*
 * The public functions of each operator, from outside: attributes by name,
 * broadcasting, sentences about mistakes, and a result each, through a worker
 * in this process. Whether results are right in all cases is the conformance
 * tests' business.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <string.h>
#include <cmocka.h>

#include <airunner.h>
#include <airunner/ops/add.h>
#include <airunner/ops/conv2d.h>
#include <airunner/ops/copy.h>
#include <airunner/ops/embedding.h>
#include <airunner/ops/gelu.h>
#include <airunner/ops/layer_norm.h>
#include <airunner/ops/matmul.h>
#include <airunner/ops/mul.h>
#include <airunner/ops/reduce_max.h>
#include <airunner/ops/reduce_sum.h>
#include <airunner/ops/relu.h>
#include <airunner/ops/rms_norm.h>
#include <airunner/ops/rope.h>
#include <airunner/ops/scale.h>
#include <airunner/ops/silu.h>
#include <airunner/ops/softmax.h>
#include <airunner/ops/vector_add.h>

#define assert_ok(call)                                                      \
	do {                                                                 \
		air_status st_ = (call);                                     \
		if (st_)                                                     \
			fail_msg("%s: %d %s", #call, st_, air_last_error()); \
	} while (0)
#define assert_refused(call, status, part)                       \
	do {                                                     \
		assert_int_equal(call, status);                  \
		assert_non_null(strstr(air_last_error(), part)); \
	} while (0)
#define DIMS(...)                                                   \
	sizeof((const int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t), \
		(const int64_t[])                                   \
	{                                                           \
		__VA_ARGS__                                         \
	}
#define AXES(...) ((const int32_t[]){ __VA_ARGS__ })

static air_device *dev;
static air_channel *ch;
static air_descriptor *d;
static air_token token;

/* Tensors of a test, freed with free_all(). */
static air_tensor pool[8];
static int used;

static air_tensor *tensor(air_dtype dtype, uint32_t ndim, const int64_t *shape)
{
	air_tensor *t = &pool[used++];

	assert_ok(air_tensor_alloc(ch, AIR_HOST, dtype, ndim, shape, t));
	return t;
}

static air_tensor *floats(uint32_t ndim, const int64_t *shape,
			  const float *values)
{
	air_tensor *t = tensor(AIR_F32, ndim, shape);
	size_t n = (size_t)air_tensor_desc_elements(&t->desc);

	if (values)
		memcpy(air_tensor_data(t), values, n * sizeof(float));
	else
		memset(air_tensor_data(t), 0xff, n * sizeof(float));
	return t;
}

#define F(...) ((const float[]){ __VA_ARGS__ })

static int free_all(void **state)
{
	while (used)
		assert_ok(air_buffer_free(pool[--used].buf));
	return 0;
}

static void finish(const air_tensor *y, const float *want)
{
	const float *got = air_tensor_data(y);

	assert_ok(air_wait(ch, token, AIR_FOREVER, NULL));
	for (int64_t i = 0; i < air_tensor_desc_elements(&y->desc); i++)
		if (!(fabsf(got[i] - want[i]) <= 1e-5f * fabsf(want[i])) &&
		    !(isnan(got[i]) && isnan(want[i])))
			fail_msg("element %d is %g, expected %g", (int)i,
				 got[i], want[i]);
}

#define REF(t) air_tensor_ref(t)
#define NONE   AIR_NO_REF

/* ------------------------------------------------- one or two inputs, alike */

static void test_copy(void **state)
{
	air_tensor *x = floats(DIMS(2, 3), F(1, 2, 3, 4, 5, 6)), flipped;
	air_tensor *y = floats(DIMS(3, 2), NULL);

	assert_ok(air_tensor_permute(x, (const uint32_t[]){ 1, 0 }, &flipped));
	assert_ok(air_create_copy_descriptor(ch, &d, &y->desc, &flipped.desc));
	assert_ok(air_execute_copy(d, NONE, REF(y), REF(&flipped), &token));
	finish(y, F(1, 4, 2, 5, 3, 6));
	assert_ok(air_destroy_copy_descriptor(d));
}

static void test_vector_add(void **state)
{
	air_tensor *a = floats(DIMS(3), F(1, 2, 3));
	air_tensor *c = floats(DIMS(3), NULL);
	air_tensor *b = floats(DIMS(3), F(10, 20, 30));

	assert_ok(air_create_vector_add_descriptor(ch, &d, &c->desc, &a->desc,
						   &b->desc));
	assert_string_equal(air_descriptor_name(d), "vector_add");
	assert_ok(air_execute_vector_add(d, NONE, REF(c), REF(a), REF(b),
					 &token));
	finish(c, F(11, 22, 33));
	assert_ok(air_destroy_vector_add_descriptor(d));
}

/* A column, a row and a scalar broadcast as NumPy has it. */
static void test_broadcast(void **state)
{
	air_tensor *y = floats(DIMS(2, 3), NULL);
	air_tensor *column = floats(DIMS(2, 1), F(10, 20));
	air_tensor *row = floats(DIMS(3), F(1, 2, 3));
	air_tensor *scalar = floats(0, NULL, F(7));
	air_tensor *wrong = floats(DIMS(2), F(1, 2));

	assert_ok(air_create_add_descriptor(ch, &d, &y->desc, &column->desc,
					    &row->desc));
	assert_ok(air_execute_add(d, NONE, REF(y), REF(column), REF(row),
				  &token));
	finish(y, F(11, 12, 13, 21, 22, 23));
	assert_ok(air_destroy_add_descriptor(d));

	assert_ok(air_create_mul_descriptor(ch, &d, &y->desc, &scalar->desc,
					    &row->desc));
	assert_ok(air_execute_mul(d, NONE, REF(y), REF(scalar), REF(row),
				  &token));
	finish(y, F(7, 14, 21, 7, 14, 21));
	assert_ok(air_destroy_mul_descriptor(d));

	assert_refused(air_create_add_descriptor(ch, &d, &y->desc, &row->desc,
						 &wrong->desc),
		       AIR_BAD_SHAPE, "add: operand b: shape [2]");
	assert_refused(air_create_mul_descriptor(ch, &d, &row->desc, &y->desc,
						 &row->desc),
		       AIR_BAD_SHAPE, "mul: operand a: shape [2, 3]");
	assert_refused(air_create_add_descriptor(ch, &d, NULL, &row->desc,
						 &row->desc),
		       AIR_BAD_ARGUMENT, "add: operand y is missing");
}

static void test_unary(void **state)
{
	air_tensor *x = floats(DIMS(4), F(-1, 0, 0.5, NAN));
	air_tensor *y = floats(DIMS(4), NULL);

	assert_ok(air_create_relu_descriptor(ch, &d, &y->desc, &x->desc));
	assert_ok(air_execute_relu(d, NONE, REF(y), REF(x), &token));
	finish(y, F(0, 0, 0.5, NAN));
	assert_ok(air_destroy_relu_descriptor(d));

	assert_ok(air_create_silu_descriptor(ch, &d, &y->desc, &x->desc));
	assert_ok(air_execute_silu(d, NONE, REF(y), REF(x), &token));
	finish(y, F(-0.26894142f, 0, 0.31122967f, NAN));
	assert_ok(air_destroy_silu_descriptor(d));

	assert_ok(air_create_scale_descriptor(ch, &d, &y->desc, &x->desc, -2));
	assert_ok(air_execute_scale(d, NONE, REF(y), REF(x), &token));
	finish(y, F(2, 0, -1, NAN));
	assert_ok(air_destroy_scale_descriptor(d));

	assert_ok(air_create_gelu_descriptor(ch, &d, &y->desc, &x->desc,
					     AIR_GELU_ERF));
	assert_ok(air_execute_gelu(d, NONE, REF(y), REF(x), &token));
	finish(y, F(-0.15865526f, 0, 0.34573123f, NAN));
	assert_ok(air_destroy_gelu_descriptor(d));

	assert_ok(air_create_gelu_descriptor(ch, &d, &y->desc, &x->desc,
					     AIR_GELU_TANH));
	assert_ok(air_execute_gelu(d, NONE, REF(y), REF(x), &token));
	finish(y, F(-0.15880801f, 0, 0.34571401f, NAN));
	assert_ok(air_destroy_gelu_descriptor(d));
}

/* ------------------------------------------------------- along dimensions */

static void test_reductions(void **state)
{
	air_tensor *x = floats(DIMS(2, 3), F(1, 2, 3, 4, 5, 6));
	air_tensor *rows = floats(DIMS(2), NULL);
	air_tensor *kept = floats(DIMS(1, 3), NULL);
	air_tensor *all = floats(0, NULL, NULL);

	assert_ok(air_create_reduce_sum_descriptor(
		ch, &d, &rows->desc, &x->desc, AXES(-1), 1, false));
	assert_ok(air_execute_reduce_sum(d, NONE, REF(rows), REF(x), &token));
	finish(rows, F(6, 15));
	assert_ok(air_destroy_reduce_sum_descriptor(d));

	assert_ok(air_create_reduce_max_descriptor(ch, &d, &kept->desc,
						   &x->desc, AXES(0), 1, true));
	assert_ok(air_execute_reduce_max(d, NONE, REF(kept), REF(x), &token));
	finish(kept, F(4, 5, 6));
	assert_ok(air_destroy_reduce_max_descriptor(d));

	/* No axes, and all of them, mean the same. */
	for (uint32_t n = 0; n <= 2; n += 2) {
		assert_ok(air_create_reduce_sum_descriptor(
			ch, &d, &all->desc, &x->desc, AXES(1, 0), n, false));
		assert_ok(air_execute_reduce_sum(d, NONE, REF(all), REF(x),
						 &token));
		finish(all, F(21));
		assert_ok(air_destroy_reduce_sum_descriptor(d));
	}
	assert_refused(air_create_reduce_sum_descriptor(ch, &d, &rows->desc,
							&x->desc, AXES(2), 1,
							false),
		       AIR_BAD_ATTRIBUTE, "axis 2 is not one of x's 2");
	assert_refused(air_create_reduce_sum_descriptor(ch, &d, &rows->desc,
							&x->desc, AXES(-3), 1,
							false),
		       AIR_BAD_ATTRIBUTE, "axis -3 is not one of x's 2");
	assert_refused(air_create_reduce_max_descriptor(ch, &d, &rows->desc,
							&x->desc, AXES(1, -1),
							2, false),
		       AIR_BAD_ATTRIBUTE, "named twice");
}

static void test_softmax(void **state)
{
	air_tensor *x = floats(DIMS(2, 2), F(0, 0, 1, 1));
	air_tensor *y = floats(DIMS(2, 2), NULL);
	const float e = 0.26894142f;

	assert_ok(
		air_create_softmax_descriptor(ch, &d, &y->desc, &x->desc, -1));
	assert_ok(air_execute_softmax(d, NONE, REF(y), REF(x), &token));
	finish(y, F(0.5, 0.5, 0.5, 0.5));
	assert_ok(air_destroy_softmax_descriptor(d));

	assert_ok(air_create_softmax_descriptor(ch, &d, &y->desc, &x->desc, 0));
	assert_ok(air_execute_softmax(d, NONE, REF(y), REF(x), &token));
	finish(y, F(e, e, 1 - e, 1 - e));
	assert_ok(air_destroy_softmax_descriptor(d));

	assert_refused(air_create_softmax_descriptor(ch, &d, &y->desc, &x->desc,
						     -3),
		       AIR_BAD_ATTRIBUTE, "softmax: axis is -3");
}

static void test_norms(void **state)
{
	air_tensor *x = floats(DIMS(1, 2), F(3, 4));
	air_tensor *w = floats(DIMS(2), F(2, 1));
	air_tensor *b = floats(DIMS(2), F(10, 20));
	air_tensor *y = floats(DIMS(1, 2), NULL);
	float rms = sqrtf(12.5f);

	assert_ok(air_create_rms_norm_descriptor(ch, &d, &y->desc, &x->desc,
						 &w->desc, 0));
	assert_ok(
		air_execute_rms_norm(d, NONE, REF(y), REF(x), REF(w), &token));
	finish(y, F(6 / rms, 4 / rms));
	assert_ok(air_destroy_rms_norm_descriptor(d));

	assert_ok(air_create_rms_norm_descriptor(ch, &d, &y->desc, &x->desc,
						 NULL, 0));
	assert_ok(air_execute_rms_norm(d, NONE, REF(y), REF(x), NONE, &token));
	finish(y, F(3 / rms, 4 / rms));
	assert_ok(air_destroy_rms_norm_descriptor(d));

	assert_ok(air_create_layer_norm_descriptor(ch, &d, &y->desc, &x->desc,
						   &w->desc, &b->desc, 0.75));
	assert_ok(air_execute_layer_norm(d, NONE, REF(y), REF(x), REF(w),
					 REF(b), &token));
	finish(y, F(9, 20.5f));
	assert_ok(air_destroy_layer_norm_descriptor(d));
}

static void test_rope(void **state)
{
	air_tensor *x = floats(DIMS(2, 1, 2), F(1, 2, 3, 4));
	air_tensor *y = floats(DIMS(2, 1, 2), NULL);
	air_tensor *cos = floats(DIMS(3, 1), F(1, 0, -1));
	air_tensor *sin = floats(DIMS(3, 1), F(0, 1, 0));
	air_tensor *at = tensor(AIR_I64, DIMS(1));

	*(int64_t *)air_tensor_data(at) = 1;
	assert_ok(air_create_rope_descriptor(ch, &d, &y->desc, &x->desc,
					     &cos->desc, &sin->desc, NULL,
					     AIR_ROPE_HALVES));
	assert_ok(air_execute_rope(d, NONE, REF(y), REF(x), REF(cos), REF(sin),
				   NONE, &token));
	finish(y, F(1, 2, -4, 3));
	assert_ok(air_destroy_rope_descriptor(d));

	/* One position, for both tokens. */
	assert_ok(air_create_rope_descriptor(ch, &d, &y->desc, &x->desc,
					     &cos->desc, &sin->desc, &at->desc,
					     AIR_ROPE_PAIRS));
	assert_ok(air_execute_rope(d, NONE, REF(y), REF(x), REF(cos), REF(sin),
				   REF(at), &token));
	finish(y, F(-2, 1, -4, 3));
	assert_ok(air_destroy_rope_descriptor(d));
}

static void test_embedding(void **state)
{
	air_tensor *table = floats(DIMS(3, 2), F(1, 2, 3, 4, 5, 6));
	air_tensor *i = tensor(AIR_I32, DIMS(2));
	air_tensor *y = floats(DIMS(2, 2), NULL);
	int32_t *index = air_tensor_data(i);

	index[0] = 2;
	index[1] = 0;
	assert_ok(air_create_embedding_descriptor(ch, &d, &y->desc,
						  &table->desc, &i->desc));
	assert_ok(air_execute_embedding(d, NONE, REF(y), REF(table), REF(i),
					&token));
	finish(y, F(5, 6, 1, 2));
	index[1] = 3;
	assert_ok(air_execute_embedding(d, NONE, REF(y), REF(table), REF(i),
					&token));
	assert_int_equal(air_wait(ch, token, AIR_FOREVER, NULL), AIR_BAD_RANGE);
	assert_true(isnan(((float *)air_tensor_data(y))[2]));
	assert_ok(air_destroy_embedding_descriptor(d));
}

/* --------------------------------------------------- matrices and images */

static void test_matmul(void **state)
{
	air_tensor *a = floats(DIMS(2, 2, 2), F(1, 2, 3, 4, 5, 6, 7, 8));
	air_tensor *b = floats(DIMS(2, 1), F(10, -1));
	air_tensor *c = floats(DIMS(1), F(100));
	air_tensor *bias = floats(DIMS(1), F(-90));
	air_tensor *y = floats(DIMS(2, 2, 1), NULL);

	/* b for both batches, c for every element. */
	assert_ok(air_create_matmul_descriptor(
		ch, &d, &y->desc, &a->desc, &b->desc, &c->desc, &bias->desc,
		false, false, 2, -1, AIR_ACT_NONE));
	assert_ok(air_execute_matmul(d, NONE, REF(y), REF(a), REF(b), REF(c),
				     REF(bias), &token));
	finish(y, F(-174, -138, -102, -66));
	assert_ok(air_destroy_matmul_descriptor(d));

	assert_ok(air_create_matmul_descriptor(ch, &d, &y->desc, &a->desc,
					       &b->desc, NULL, NULL, true,
					       false, 1, 0, AIR_ACT_RELU));
	assert_ok(air_execute_matmul(d, NONE, REF(y), REF(a), REF(b), NONE,
				     NONE, &token));
	finish(y, F(7, 16, 43, 52));
	assert_ok(air_destroy_matmul_descriptor(d));

	assert_refused(air_create_matmul_descriptor(ch, &d, &y->desc, &a->desc,
						    &b->desc, NULL, NULL, false,
						    true, 1, 0, AIR_ACT_NONE),
		       AIR_BAD_SHAPE, "matmul: operand b: dimension");
	assert_refused(air_create_matmul_descriptor(
			       ch, &d, &y->desc, &a->desc, &b->desc, NULL, NULL,
			       false, false, 1, 0.5, AIR_ACT_NONE),
		       AIR_BAD_ARGUMENT, "beta is 0 (it is 0.5)");
}

/* bf16 needs workspace: it is asked for, given, and missed. */
static void test_workspace(void **state)
{
	air_tensor *a = tensor(AIR_BF16, DIMS(4, 4));
	air_tensor *b = tensor(AIR_BF16, DIMS(4, 4));
	air_tensor *y = floats(DIMS(4, 4), NULL);
	air_buffer *workspace;
	float zero[16] = { 0 };
	size_t bytes = 0;

	memset(air_tensor_data(a), 0, 32);
	memset(air_tensor_data(b), 0, 32);
	assert_ok(air_create_matmul_descriptor(ch, &d, &y->desc, &a->desc,
					       &b->desc, NULL, NULL, false,
					       false, 1, 0, AIR_ACT_NONE));
	assert_ok(air_get_matmul_workspace_size(d, &bytes));
	assert_true(bytes > 0);
	assert_ok(air_buffer_alloc(ch, bytes, AIR_HOST, &workspace));
	assert_ok(air_execute_matmul(d, air_buffer_ref(workspace, 0), REF(y),
				     REF(a), REF(b), NONE, NONE, &token));
	finish(y, zero);
	assert_ok(air_execute_matmul(d, NONE, REF(y), REF(a), REF(b), NONE,
				     NONE, &token));
	assert_int_equal(air_wait(ch, token, AIR_FOREVER, NULL), AIR_WORKSPACE);
	assert_ok(air_buffer_free(workspace));
	assert_ok(air_destroy_matmul_descriptor(d));
}

static void test_conv2d(void **state)
{
	air_tensor *x = floats(DIMS(1, 1, 2, 2), F(1, 2, 3, 4));
	air_tensor *w = floats(DIMS(1, 1, 2, 2), F(1, 1, 1, 1));
	air_tensor *bias = floats(DIMS(1), F(0.5));
	air_tensor *y = floats(DIMS(1, 1, 1, 1), NULL);
	air_tensor *wide = floats(DIMS(1, 1, 2, 3), NULL);
	size_t bytes;
	air_buffer *workspace;

	assert_ok(air_create_conv2d_descriptor(ch, &d, &y->desc, &x->desc,
					       &w->desc, &bias->desc, NULL,
					       NULL, NULL, 1, AIR_ACT_NONE));
	assert_ok(air_get_conv2d_workspace_size(d, &bytes));
	assert_ok(air_buffer_alloc(ch, bytes, AIR_HOST, &workspace));
	assert_ok(air_execute_conv2d(d, air_buffer_ref(workspace, 0), REF(y),
				     REF(x), REF(w), REF(bias), &token));
	finish(y, F(10.5));
	assert_ok(air_destroy_conv2d_descriptor(d));
	assert_ok(air_buffer_free(workspace));

	assert_ok(air_create_conv2d_descriptor(
		ch, &d, &wide->desc, &x->desc, &w->desc, NULL, AXES(2, 1),
		AXES(1, 1), NULL, 1, AIR_ACT_NONE));
	assert_ok(air_get_conv2d_workspace_size(d, &bytes));
	assert_ok(air_buffer_alloc(ch, bytes, AIR_HOST, &workspace));
	assert_ok(air_execute_conv2d(d, air_buffer_ref(workspace, 0), REF(wide),
				     REF(x), REF(w), NONE, &token));
	finish(wide, F(1, 3, 2, 3, 7, 4));
	assert_ok(air_destroy_conv2d_descriptor(d));
	assert_ok(air_buffer_free(workspace));

	assert_refused(air_create_conv2d_descriptor(
			       ch, &d, &y->desc, &x->desc, &w->desc, NULL,
			       AXES(1, -2), NULL, NULL, 1, AIR_ACT_NONE),
		       AIR_BAD_ATTRIBUTE, "conv2d: stride is -2");
}

/* ------------------------------------------------- what holds for them all */

static void test_another_operators_descriptor(void **state)
{
	air_tensor *x = floats(DIMS(2), F(1, 2));
	air_tensor *y = floats(DIMS(2), NULL);
	struct air_call call;
	size_t bytes;

	assert_ok(air_create_relu_descriptor(ch, &d, &y->desc, &x->desc));
	assert_int_equal(air_execute_silu(d, NONE, REF(y), REF(x), &token),
			 AIR_BAD_ARGUMENT);
	assert_int_equal(air_prepare_silu(d, &call, NONE, REF(y), REF(x)),
			 AIR_BAD_ARGUMENT);
	assert_int_equal(air_get_silu_workspace_size(d, &bytes),
			 AIR_BAD_ARGUMENT);
	assert_int_equal(air_destroy_silu_descriptor(d), AIR_BAD_ARGUMENT);
	assert_ok(air_get_relu_workspace_size(d, &bytes));
	assert_int_equal(bytes, 0);
	assert_ok(air_destroy_relu_descriptor(d));
}

/* Prepared once, submitted in one go, in order. */
static void test_prepared(void **state)
{
	air_tensor *x = floats(DIMS(2), F(1, -2));
	air_descriptor *scale;
	struct air_call calls[3];

	assert_ok(air_create_relu_descriptor(ch, &d, &x->desc, &x->desc));
	assert_ok(air_create_scale_descriptor(ch, &scale, &x->desc, &x->desc,
					      -3));
	assert_ok(air_prepare_scale(scale, &calls[0], NONE, REF(x), REF(x)));
	assert_ok(air_prepare_relu(d, &calls[1], NONE, REF(x), REF(x)));
	assert_ok(air_prepare_scale(scale, &calls[2], NONE, REF(x), REF(x)));
	assert_ok(air_submit(ch, calls, 3, &token));
	assert_ok(air_wait(ch, token, AIR_FOREVER, NULL));
	assert_ok(air_wait(ch, token + 1, AIR_FOREVER, NULL));
	token += 2;
	finish(x, F(0, -18));
	assert_ok(air_destroy_relu_descriptor(d));
	assert_ok(air_destroy_scale_descriptor(scale));
}

static int start(void **state)
{
	assert_ok(air_open("inproc:", NULL, &dev));
	assert_ok(air_channel_create(dev, NULL, &ch));
	return 0;
}

static int stop(void **state)
{
	assert_ok(air_channel_destroy(ch));
	assert_ok(air_close(dev));
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_copy, free_all),
		cmocka_unit_test_teardown(test_vector_add, free_all),
		cmocka_unit_test_teardown(test_broadcast, free_all),
		cmocka_unit_test_teardown(test_unary, free_all),
		cmocka_unit_test_teardown(test_reductions, free_all),
		cmocka_unit_test_teardown(test_softmax, free_all),
		cmocka_unit_test_teardown(test_norms, free_all),
		cmocka_unit_test_teardown(test_rope, free_all),
		cmocka_unit_test_teardown(test_embedding, free_all),
		cmocka_unit_test_teardown(test_matmul, free_all),
		cmocka_unit_test_teardown(test_workspace, free_all),
		cmocka_unit_test_teardown(test_conv2d, free_all),
		cmocka_unit_test_teardown(test_another_operators_descriptor,
					  free_all),
		cmocka_unit_test_teardown(test_prepared, free_all),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
