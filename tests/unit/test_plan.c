// SPDX-License-Identifier: MIT
/*
 * What a worker believes of a descriptor that a client wrote, and of the
 * references of a submission.
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

#include "ops/check.h"
#include "ops/cpu.h"
#include "ops/matmul/matmul.h"
#include "ops/plan.h"

static struct airunner_tensor vector(uint32_t dtype, int64_t n)
{
	return (struct airunner_tensor){
		.dtype = dtype, .ndim = 1, .shape = { n }, .stride = { 1 }
	};
}

static struct airunner_tensor matrix(int64_t m, int64_t n)
{
	return (struct airunner_tensor){ .dtype = AIRUNNER_F32,
					 .ndim = 2,
					 .shape = { m, n },
					 .stride = { n, 1 } };
}

static struct airunner_desc add(int64_t n)
{
	struct airunner_desc d = { .size = sizeof(d),
				   .op = AIR_OP_add,
				   .n_tensors = 3 };

	for (int i = 0; i < 3; i++)
		d.tensor[i] = vector(AIRUNNER_F32, n);
	return d;
}

static struct airunner_desc matmul(void)
{
	struct airunner_desc d = { .size = sizeof(d),
				   .op = AIR_OP_matmul,
				   .n_tensors = 3 };

	d.tensor[0] = matrix(4, 5);
	d.tensor[1] = matrix(4, 6);
	d.tensor[2] = matrix(6, 5);
	d.attr[AIR_MATMUL_ALPHA] = air_attr_bits(1);
	return d;
}

static struct air_error error;

static air_status init(struct airunner_desc d)
{
	struct air_plan plan;

	error.text[0] = 0;
	return air_plan_init(&plan, &d, &error);
}

#define assert_refused(d, status, sentence)                    \
	do {                                                   \
		assert_int_equal(init(d), status);             \
		assert_non_null(strstr(error.text, sentence)); \
	} while (0)

/* ------------------------------------------------------------ descriptors */

static void test_init(void **state)
{
	struct airunner_desc d = add(10);
	struct air_plan plan;

	d.tensor[2].stride[0] = -2;
	assert_int_equal(air_plan_init(&plan, &d, NULL), AIR_OK);
	assert_string_equal(plan.op->name, "add");
	assert_int_equal(plan.extent[0].below, 0);
	assert_int_equal(plan.extent[0].above, 40);
	assert_int_equal(plan.extent[2].below, 72);
	assert_int_equal(plan.extent[2].above, 4);
	assert_int_equal(plan.extent[2].align, 4);
	assert_true(plan.extent[2].present);
	assert_false(plan.extent[3].present);
	assert_int_equal(plan.same_layout, 1U << 1);
	assert_int_equal(plan.workspace, 0);
}

static void test_header(void **state)
{
	struct airunner_desc d = add(10);

	d.size = 0;
	assert_refused(d, AIR_ABI, "size is 0");
	d = add(10);
	d.op = AIR_OP_COUNT;
	assert_refused(d, AIR_BAD_OPERATOR, "no operator");
	d.op = 0;
	assert_refused(d, AIR_BAD_OPERATOR, "no operator 0");
	d.op = UINT32_MAX;
	assert_refused(d, AIR_BAD_OPERATOR, "no operator");
	d = add(10);
	d.executor = 4;
	assert_refused(d, AIR_BAD_ARGUMENT, "add: there is no executor 4");
	d = add(10);
	d.resv[4] = 1;
	assert_refused(d, AIR_BAD_RESERVED, "reserved");
	d = add(10);
	d.attr[0] = 1;
	assert_refused(d, AIR_BAD_ATTRIBUTE, "attribute 0");
	d = add(10);
	d.attr[11] = 1ULL << 63;
	assert_refused(d, AIR_BAD_ATTRIBUTE, "attribute 11");
}

static void test_tensors(void **state)
{
	struct airunner_desc d = add(10);

	d.n_tensors = 2;
	assert_refused(d, AIR_BAD_ARGUMENT, "2 operands; it takes 3 to 3");
	d.n_tensors = UINT32_MAX;
	assert_refused(d, AIR_BAD_ARGUMENT, "operands");
	d = add(10);
	d.tensor[3].shape[0] = 1;
	assert_refused(d, AIR_BAD_RESERVED, "beyond its 3 operands");
	d = add(10);
	memset(&d.tensor[1], 0, sizeof(d.tensor[1]));
	assert_refused(d, AIR_BAD_ARGUMENT, "operand a is missing");
	d = add(10);
	d.tensor[1].stride[0] = INT64_MIN;
	assert_refused(d, AIR_BAD_STRIDES, "add: operand a: stride 0");
	d = add(10);
	d.tensor[0].stride[0] = 0;
	assert_refused(d, AIR_BAD_STRIDES, "add: operand y: elements");
	d = matmul();
	d.n_tensors = 5;
	assert_int_equal(init(d), AIR_OK);
	d.tensor[3].stride[3] = 4;
	assert_refused(d, AIR_BAD_RESERVED, "operand c: has no dtype");
}

/* Sentences have names and numbers; the last one is in the README's style. */
static void test_sentences(void **state)
{
	struct airunner_desc d = { .size = sizeof(d),
				   .op = AIR_OP_softmax,
				   .n_tensors = 2 };

	d.tensor[0] = matrix(4, 6);
	d.tensor[1] = matrix(4, 5);
	assert_int_equal(init(d), AIR_BAD_SHAPE);
	assert_string_equal(
		error.text,
		"softmax: operand x: shape [4, 5] differs from y's [4, 6]; they must be equal");
	d.tensor[1] = matrix(4, 6);
	d.tensor[1].dtype = AIRUNNER_F16;
	assert_int_equal(init(d), AIR_BAD_DTYPE);
	assert_string_equal(
		error.text,
		"softmax: operand x: dtype f16 differs from y's f32; they must be equal");
	d.tensor[0].dtype = d.tensor[1].dtype = AIRUNNER_I8;
	assert_int_equal(init(d), AIR_BAD_DTYPE);
	assert_string_equal(
		error.text,
		"softmax: operand y: dtype is i8; it must be one of f32, f16, bf16");
	d.tensor[0].dtype = d.tensor[1].dtype = AIRUNNER_F32;
	d.attr[0] = 2;
	assert_int_equal(init(d), AIR_BAD_ATTRIBUTE);
	assert_string_equal(error.text,
			    "softmax: axis is 2; it must be 0 to 1");
	d = matmul();
	d.tensor[2] = matrix(7, 5);
	assert_int_equal(init(d), AIR_BAD_SHAPE);
	assert_string_equal(
		error.text,
		"matmul: operand b: dimension 0 of shape [7, 5] must be 6 (what a is summed over)");
}

/*
 * Whatever the bytes are: refused with a sentence, or a plan whose extents can
 * be believed and that the CPU can make a plan of. Starts from valid
 * descriptors, so that some get through.
 */
static unsigned int seed;

static uint64_t any_number(void)
{
	static const uint64_t odd[] = {
		0,
		1,
		2,
		3,
		5,
		8,
		9,
		16,
		255,
		1U << 31,
		1ULL << 32,
		1ULL << 55,
		1ULL << 56,
		1ULL << 61,
		1ULL << 62,
		INT64_MAX,
		1ULL << 63,
		UINT64_MAX,
		(uint64_t)-5,
	};

	if (rand_r(&seed) % 2)
		return rand_r(&seed) % 8;
	return odd[rand_r(&seed) % (sizeof(odd) / sizeof(odd[0]))];
}

static void mutate(struct airunner_desc *d)
{
	struct airunner_tensor *t =
		&d->tensor[rand_r(&seed) % AIRUNNER_MAX_TENSORS];
	uint32_t dim = rand_r(&seed) % AIRUNNER_MAX_DIMS;

	switch (rand_r(&seed) % 9) {
	case 0:
		d->op = rand_r(&seed) % (AIR_OP_COUNT + 1);
		break;
	case 1:
		d->n_tensors = rand_r(&seed) % 7;
		break;
	case 2:
		d->attr[rand_r(&seed) % AIRUNNER_MAX_ATTRS] = any_number();
		break;
	case 3:
		t->dtype = rand_r(&seed) % 8;
		break;
	case 4:
		t->ndim = rand_r(&seed) % 10;
		break;
	case 5:
		t->shape[dim % 4] = (int64_t)any_number();
		break;
	case 6:
		t->stride[dim % 4] = (int64_t)any_number();
		break;
	case 7:
		*t = d->tensor[rand_r(&seed) % AIRUNNER_MAX_TENSORS];
		break;
	default:
		((unsigned char *)d)[rand_r(&seed) % sizeof(*d)] ^=
			1U << rand_r(&seed) % 8;
	}
}

/*
 * Run a plan whose operands are small, in memory exactly as large as its
 * extents say: a sanitizer sees what reaches beyond.
 */
static bool run_small(const struct air_plan *plan, struct air_cpu_plan *cpu)
{
	void *memory[AIRUNNER_MAX_TENSORS + 1] = { NULL };
	void *operand[AIRUNNER_MAX_TENSORS + 1] = { NULL };
	bool small = plan->workspace < 1 << 20;

	for (uint32_t i = 0; i < plan->desc.n_tensors; i++)
		small = small && plan->extent[i].below < 1 << 16 &&
			plan->extent[i].above < 1 << 16 &&
			(!air_has_operand(&plan->desc, i) ||
			 air_tensor_count(&plan->desc.tensor[i]) < 1000);
	for (uint32_t i = 0; small && i < plan->desc.n_tensors; i++) {
		const struct air_extent *x = &plan->extent[i];

		if (!x->above)
			continue;
		memory[i] = calloc(1, x->below + x->above);
		operand[i] = (char *)memory[i] + x->below;
	}
	if (small && plan->workspace)
		memory[AIRUNNER_MAX_TENSORS] = malloc(plan->workspace);
	operand[AIRUNNER_MAX_TENSORS] = memory[AIRUNNER_MAX_TENSORS];
	if (small)
		cpu->run(cpu, operand, NULL);
	for (uint32_t i = 0; i <= AIRUNNER_MAX_TENSORS; i++)
		free(memory[i]);
	return small;
}

static bool believe(const struct air_plan *plan)
{
	struct air_cpu_plan *cpu = NULL;
	struct air_error e;
	air_status st;
	bool ran;

	for (uint32_t i = 0; i < AIRUNNER_MAX_TENSORS; i++) {
		const struct air_extent *x = &plan->extent[i];

		assert_true(x->below <= 1ULL << 62);
		assert_true(x->above <= 1ULL << 62);
		assert_true(!x->present || x->align);
	}
	st = plan->op->cpu_plan(&plan->desc, &cpu, &e);
	assert_int_equal(st, AIR_OK);
	ran = run_small(plan, cpu);
	cpu->destroy(cpu);
	return ran;
}

/* What operators need beyond equal matrices to be accepted as they are. */
static void start_valid(struct airunner_desc *d)
{
	switch (d->op) {
	case AIR_OP_reduce_sum:
	case AIR_OP_reduce_max:
		d->tensor[0] = vector(AIRUNNER_F32, 4);
		d->attr[0] = 1 + rand_r(&seed) % 2;
		break;
	case AIR_OP_rms_norm:
	case AIR_OP_layer_norm:
		d->tensor[2] = vector(AIRUNNER_F32, 4);
		d->n_tensors = 3;
		memset(&d->tensor[3], 0, sizeof(d->tensor[3]));
		break;
	case AIR_OP_rope:
		d->tensor[0].ndim = 3;
		d->tensor[0].shape[2] = 4;
		d->tensor[0].stride[0] = 16;
		d->tensor[0].stride[1] = 4;
		d->tensor[0].stride[2] = 1;
		d->tensor[1] = d->tensor[0];
		d->tensor[2] = d->tensor[3] = matrix(4, 2);
		d->tensor[4] = vector(AIRUNNER_I32, 4);
		break;
	case AIR_OP_conv2d:
		for (int i = 0; i < 3; i++)
			d->tensor[i] = (struct airunner_tensor){
				.dtype = AIRUNNER_F32,
				.ndim = 4,
				.shape = { 2, 2, 3, 3 },
				.stride = { 18, 9, 3, 1 }
			};
		d->tensor[3] = vector(AIRUNNER_F32, 2);
		for (int i = 0; i < 7; i++)
			d->attr[i] = 1;
		break;
	case AIR_OP_embedding:
		d->tensor[2] = vector(AIRUNNER_I64, 4);
		break;
	case AIR_OP_matmul:
		d->tensor[4] = vector(AIRUNNER_F32, 4);
		break;
	default:
		break;
	}
}

static void test_arbitrary(void **state)
{
	int accepted = 0, ran = 0;

	for (int round = 0; round < 300000; round++) {
		struct airunner_desc d = round % 2 ? add(4) : matmul();
		struct air_error e = { "" };
		struct air_plan plan;

		if (round % 4 >= 2) {
			d.op = 1 + rand_r(&seed) % (AIR_OP_COUNT - 1);
			d.n_tensors = air_op_find(d.op)->n_tensors;
			for (uint32_t i = 0; i < d.n_tensors; i++)
				d.tensor[i] = matrix(4, 4);
			start_valid(&d);
		}
		for (int k = rand_r(&seed) % 5; k >= 0; k--)
			mutate(&d);
		if (air_plan_init(&plan, &d, &e)) {
			assert_true(e.text[0]);
			continue;
		}
		accepted++;
		ran += believe(&plan);
	}
	assert_in_range(accepted, 300, 300000);
	assert_in_range(ran, 100, accepted);
}

/* ---------------------------------------------------------------- binding */

/* Handles 1 to 4: buffers of 4096 bytes at 0x10000, 0x20000, ... */
static bool find(void *arg, uint32_t handle, struct air_span *span)
{
	if (!handle || handle > 4)
		return false;
	*span = (struct air_span){ (uint64_t)handle << 16, 4096 };
	return true;
}

#define NONE AIRUNNER_REF_NONE
#define REF  airunner_ref

static uint64_t addr[AIRUNNER_MAX_TENSORS + 1];
static uint32_t operand;

static air_status bind7(const struct airunner_desc *d, uint64_t w1, uint64_t w2,
			uint64_t w3, uint64_t w4, uint64_t w5, uint64_t ws,
			uint64_t arg)
{
	/* Laps in the words are not looked at. */
	const uint64_t lap = 0x42ULL << AIRUNNER_LAP_SHIFT;
	const uint64_t word[AIRUNNER_SQE_WORDS] = {
		lap,	  lap | w1, lap | w2, lap | w3,
		lap | w4, lap | w5, lap | ws, lap | arg,
	};
	struct air_plan plan;

	assert_int_equal(air_plan_init(&plan, d, NULL), AIR_OK);
	return air_plan_bind(&plan, word, find, NULL, addr, &operand);
}

static air_status bind3(const struct airunner_desc *d, uint64_t y, uint64_t a,
			uint64_t b)
{
	return bind7(d, y, a, b, NONE, NONE, NONE, 0);
}

#define assert_bound(call) assert_int_equal(call, AIR_OK)
#define assert_unbound(call, status, which)       \
	do {                                      \
		assert_int_equal(call, status);   \
		assert_int_equal(operand, which); \
	} while (0)

static void test_bind(void **state)
{
	struct airunner_desc d = add(10);

	assert_bound(bind3(&d, REF(1, 8), REF(2, 0), REF(3, 4056)));
	assert_int_equal(addr[0], 0x10008);
	assert_int_equal(addr[1], 0x20000);
	assert_int_equal(addr[2], 0x30000 + 4056);
	assert_int_equal(addr[3], 0);
	assert_int_equal(addr[5], 0);
	/* Words without operand: none, or zero. */
	assert_bound(bind7(&d, REF(1, 8), REF(2, 0), REF(3, 0), 0, 0, 0, 0));
}

static void test_bind_refusals(void **state)
{
	struct airunner_desc d = add(10);
	uint64_t good = REF(2, 0);

	assert_unbound(bind3(&d, REF(5, 0), good, good), AIR_BAD_HANDLE, 1);
	assert_unbound(bind3(&d, REF(1, 0), REF(0, 0), good), AIR_BAD_HANDLE,
		       2);
	assert_unbound(bind3(&d, REF(1, 0), good, NONE), AIR_BAD_HANDLE, 3);
	assert_unbound(bind3(&d, REF(1, 4060), good, good), AIR_BAD_RANGE, 1);
	assert_unbound(bind3(&d, REF(1, 0), REF(2, 4096), good), AIR_BAD_RANGE,
		       2);
	assert_unbound(bind3(&d, REF(1, 0), good, REF(3, (1ULL << 40) - 4)),
		       AIR_BAD_RANGE, 3);
	assert_unbound(bind3(&d, REF(1, 2), good, good), AIR_BAD_ALIGN, 1);
	assert_unbound(bind7(&d, REF(1, 0), good, good, REF(3, 0), NONE, NONE,
			     0),
		       AIR_BAD_RESERVED, 4);
	assert_unbound(bind7(&d, REF(1, 0), good, good, NONE, NONE, NONE, 1),
		       AIR_BAD_RESERVED, 7);
	d.tensor[1].stride[0] = -1;
	assert_unbound(bind3(&d, REF(1, 0), REF(2, 32), good), AIR_BAD_RANGE,
		       2);
	assert_bound(bind3(&d, REF(1, 0), REF(2, 36), good));
}

static void test_bind_empty(void **state)
{
	struct airunner_desc d = add(0);

	assert_bound(bind3(&d, NONE, NONE, NONE));
	assert_bound(bind3(&d, REF(1, 4096), REF(1, 4096), NONE));
	assert_unbound(bind3(&d, NONE, REF(1, 4100), NONE), AIR_BAD_RANGE, 2);
	assert_unbound(bind3(&d, NONE, NONE, REF(9, 0)), AIR_BAD_HANDLE, 3);
}

static void test_bind_aliasing(void **state)
{
	struct airunner_desc d = add(10);

	assert_bound(bind3(&d, REF(1, 0), REF(1, 0), REF(1, 0)));
	assert_unbound(bind3(&d, REF(1, 0), REF(1, 4), REF(2, 0)), AIR_ALIASING,
		       2);
	assert_unbound(bind3(&d, REF(1, 40), REF(2, 0), REF(1, 4)),
		       AIR_ALIASING, 3);
	assert_bound(bind3(&d, REF(1, 0), REF(1, 40), REF(1, 80)));
	/* Inputs may overlap each other as they like. */
	assert_bound(bind3(&d, REF(1, 0), REF(2, 0), REF(2, 4)));
	/* The same place, walked differently, is no in-place. */
	d.tensor[1].stride[0] = 2;
	assert_unbound(bind3(&d, REF(1, 0), REF(1, 0), REF(2, 0)), AIR_ALIASING,
		       2);
	/* Between each other's elements. */
	d.tensor[0].stride[0] = 2;
	assert_bound(bind3(&d, REF(1, 0), REF(1, 4), REF(2, 0)));
	assert_unbound(bind3(&d, REF(1, 0), REF(1, 8), REF(2, 0)), AIR_ALIASING,
		       2);
}

/* matmul may have c in place, but neither a nor b, however they lie. */
static void test_bind_matmul(void **state)
{
	struct airunner_desc d = matmul();
	uint64_t y = REF(1, 0);

	d.n_tensors = 4;
	d.tensor[0] = d.tensor[1] = d.tensor[2] = d.tensor[3] = matrix(4, 4);
	d.attr[AIR_MATMUL_BETA] = air_attr_bits(1);
	assert_bound(bind7(&d, y, REF(2, 0), REF(2, 0), y, NONE, NONE, 0));
	assert_unbound(bind7(&d, y, y, REF(2, 0), y, NONE, NONE, 0),
		       AIR_ALIASING, 2);
	assert_unbound(bind7(&d, y, REF(2, 0), y, y, NONE, NONE, 0),
		       AIR_ALIASING, 3);
	assert_unbound(bind7(&d, y, REF(2, 0), REF(2, 0), REF(1, 4), NONE, NONE,
			     0),
		       AIR_ALIASING, 4);
}

static void test_bind_workspace(void **state)
{
	struct airunner_desc d = matmul();
	uint64_t y = REF(1, 0), a = REF(2, 0), b = REF(2, 1024);
	struct air_plan plan;
	uint64_t n;

	for (int i = 0; i < 3; i++)
		d.tensor[i].dtype = AIRUNNER_F16;
	assert_int_equal(air_plan_init(&plan, &d, NULL), AIR_OK);
	n = plan.workspace;
	assert_in_range(n, 1, 4000);
	assert_bound(bind7(&d, y, a, b, NONE, NONE, REF(3, 64), 0));
	assert_int_equal(addr[5], 0x30040);
	assert_unbound(bind7(&d, y, a, b, NONE, NONE, NONE, 0), AIR_WORKSPACE,
		       6);
	assert_unbound(bind7(&d, y, a, b, NONE, NONE,
			     REF(3, (4096 - n) / 64 * 64 + 64), 0),
		       AIR_WORKSPACE, 6);
	assert_unbound(bind7(&d, y, a, b, NONE, NONE, REF(3, 4100), 0),
		       AIR_WORKSPACE, 6);
	assert_unbound(bind7(&d, y, a, b, NONE, NONE, REF(3, 32), 0),
		       AIR_BAD_ALIGN, 6);
	assert_unbound(bind7(&d, y, a, b, NONE, NONE, REF(7, 0), 0),
		       AIR_BAD_HANDLE, 6);
	assert_unbound(bind7(&d, y, a, b, NONE, NONE, REF(1, 0), 0),
		       AIR_ALIASING, 6);
	assert_unbound(bind7(&d, y, a, b, NONE, NONE, REF(2, 960), 0),
		       AIR_ALIASING, 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_init),
		cmocka_unit_test(test_header),
		cmocka_unit_test(test_tensors),
		cmocka_unit_test(test_sentences),
		cmocka_unit_test(test_arbitrary),
		cmocka_unit_test(test_bind),
		cmocka_unit_test(test_bind_refusals),
		cmocka_unit_test(test_bind_empty),
		cmocka_unit_test(test_bind_aliasing),
		cmocka_unit_test(test_bind_matmul),
		cmocka_unit_test(test_bind_workspace),
	};
	const char *given = getenv("SEED");

	seed = given ? (unsigned int)strtoul(given, NULL, 0)
		     : (unsigned int)time(NULL);
	printf("# SEED=%u\n", seed);
	fflush(stdout);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
