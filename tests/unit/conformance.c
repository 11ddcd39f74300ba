// SPDX-License-Identifier: MIT
#include "tests/unit/conformance.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Poisoned bytes around each operand, to see what is written beside it. */
#define GUARD  256
#define POISON 0xa5

/* Failures of an operator that are told in full. */
#define TOLD 5

#define DECLARE(name) extern const struct conf_op air_cases_##name;
AIR_OPS(DECLARE)
#undef DECLARE

static const struct conf_op *const ops[] = {
#define ENTRY(name) &air_cases_##name,
	AIR_OPS(ENTRY)
#undef ENTRY
};

/* A case, for one dtype and one length, as it runs. */
struct run {
	const struct conf_executor *ex;
	const struct conf_options *opt;
	const struct conf_op *op;
	const struct conf_case *c;
	uint32_t dtype;
	int64_t tail;
	uint64_t random;
	struct airunner_desc d;
	struct conf_call call;
	conf_real *value[AIRUNNER_MAX_TENSORS];
	unsigned char *memory[AIRUNNER_MAX_TENSORS];
	unsigned char *before[AIRUNNER_MAX_TENSORS]; /* to compare with */
	uint64_t bytes[AIRUNNER_MAX_TENSORS];
	uint64_t offset[AIRUNNER_MAX_TENSORS + 1];
	char message[512];
};

static uint64_t next_random(struct run *r)
{
	r->random ^= r->random << 13;
	r->random ^= r->random >> 7;
	r->random ^= r->random << 17;
	return r->random;
}

/* In [0, 1) */
static conf_real uniform(struct run *r)
{
	return ldexpl((conf_real)(next_random(r) >> 11), -53);
}

static bool is_float(uint32_t dtype)
{
	return AIR_DTYPES_FLOAT & AIR_DTYPE_BIT(dtype);
}

static conf_real special(struct run *r)
{
	switch (next_random(r) % 12) {
	case 0:
		return NAN;
	case 1:
		return INFINITY;
	case 2:
		return -INFINITY;
	case 3:
		return 0.0;
	case 4:
		return -0.0;
	case 5:
		return 0x1p-149;
	case 6:
		return -0x1p-130;
	case 7:
		return 1e30;
	case 8:
		return -70000;
	default:
		return uniform(r) * 4 - 2;
	}
}

static conf_real any_value(struct run *r, const struct conf_tensor *t,
			   uint32_t dtype)
{
	conf_real u = uniform(r);

	switch (t->fill) {
	case CONF_INDEX:
		return floorl(u * t->limit);
	case CONF_BAD_INDEX:
		if (next_random(r) % 3)
			return floorl(u * t->limit);
		return next_random(r) % 2 ? t->limit : -1;
	case CONF_ZERO:
		return 0;
	default:
		break;
	}
	if (!is_float(dtype)) {
		int64_t v = (int64_t)next_random(r);

		/* Some near zero, where narrower dtypes can hold them. */
		return next_random(r) % 4 ? (int64_t)(v >> 3 * (v & 15))
					  : v % 300;
	}
	switch (t->fill) {
	case CONF_POSITIVE:
		return u;
	case CONF_WIDE:
		return ldexpl(u * 2 - 1, (int)(next_random(r) % 41) - 20);
	case CONF_SPECIAL:
		return special(r);
	case CONF_HUGE:
		return (u * 2 - 1) * 60000;
	case CONF_NEGATIVE_INF:
		return -INFINITY;
	case CONF_SOME_NEGATIVE_INF:
		return next_random(r) % 2 ? -INFINITY : u;
	case CONF_NAN:
		return NAN;
	case CONF_TENTH:
		return 0.1L;
	case CONF_OFFSET:
		return 1000 + u * 2 - 1;
	default:
		return u * 4 - 2;
	}
}

/* Shape and strides of an operand. */
static void lay_out(const struct run *r, const struct conf_tensor *from,
		    struct airunner_tensor *t)
{
	int64_t step = from->layout == CONF_GAPS ? 2 : 1;

	t->dtype = from->dtype ? from->dtype : r->dtype;
	t->ndim = from->ndim;
	for (uint32_t i = 0; i < t->ndim; i++) {
		t->shape[i] = from->shape[i];
		if (t->shape[i] == CONF_N)
			t->shape[i] = r->tail;
		if (t->shape[i] == CONF_N1)
			t->shape[i] = r->tail + 1;
	}
	for (uint32_t k = 0; k < t->ndim; k++) {
		uint32_t i =
			from->layout == CONF_PERMUTED ? k : t->ndim - 1 - k;
		int64_t n = t->shape[i] ? t->shape[i] : 1;

		if (from->repeat >> i & 1)
			continue;
		t->stride[i] = step;
		step *= n;
		if (!k && from->layout == CONF_PADDED)
			step += 3;
		if (!k && from->layout == CONF_GAPS)
			step += 5;
		if (from->layout == CONF_REVERSED)
			t->stride[i] = -t->stride[i];
		if (from->layout == CONF_ODD && t->shape[i] == 1)
			t->stride[i] = k % 2 ? -977 : 123456789;
	}
}

static void describe(struct run *r)
{
	memset(&r->d, 0, sizeof(r->d));
	r->d.size = sizeof(r->d);
	r->d.op = r->op->id;
	for (uint32_t i = 0; i < AIRUNNER_MAX_TENSORS; i++) {
		if (r->c->t[i].layout == CONF_ABSENT)
			continue;
		lay_out(r, &r->c->t[i], &r->d.tensor[i]);
		r->d.n_tensors = i + 1;
	}
	for (uint32_t i = 0; i < AIRUNNER_MAX_ATTRS; i++)
		r->d.attr[i] = r->c->f64[i] != 0 ? air_attr_bits(r->c->f64[i])
						 : (uint64_t)r->c->attr[i];
}

/* Bytes from the first element to the one with number @at. */
static int64_t element(const struct airunner_tensor *t, int64_t at)
{
	int64_t offset = 0;

	for (uint32_t i = t->ndim; i-- > 0;) {
		offset += at % t->shape[i] * t->stride[i];
		at /= t->shape[i];
	}
	return offset * air_elem_size(t->dtype);
}

static bool fail(struct run *r, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static bool fail(struct run *r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(r->message, sizeof(r->message), fmt, ap);
	va_end(ap);
	return false;
}

/* Memory for operand @i, poisoned; its elements at offset[i]. */
static void place(struct run *r, uint32_t i)
{
	const struct airunner_tensor *t = &r->d.tensor[i];
	uint64_t below, above, size = air_elem_size(t->dtype);

	air_tensor_extent(t, &below, &above);
	below = (below + 63) / 64 * 64;
	r->offset[i] = GUARD + below + r->c->t[i].misalign * size;
	r->bytes[i] = r->offset[i] + above + GUARD;
	r->memory[i] = r->ex->memory(r->ex->arg, i, r->bytes[i]);
	memset(r->memory[i], POISON, r->bytes[i]);
}

static void fill(struct run *r, uint32_t i, uint32_t where)
{
	const struct airunner_tensor *t = &r->d.tensor[i];
	int64_t n = air_tensor_count(t);

	r->call.count[i] = n;
	r->value[i] = calloc(n ? n : 1, sizeof(conf_real));
	for (int64_t k = 0; k < n; k++) {
		unsigned char *at =
			r->memory[where] + r->offset[where] + element(t, k);
		conf_real v = any_value(r, &r->c->t[i], t->dtype);

		conf_store(t->dtype, at, conf_round(t->dtype, v));
	}
	/* Read back: where elements repeat, the last one written counts. */
	for (int64_t k = 0; k < n; k++)
		r->value[i][k] = conf_load(t->dtype, r->memory[where] +
							     r->offset[where] +
							     element(t, k));
	r->call.in[i] = r->value[i];
}

static void prepare(struct run *r)
{
	r->call.d = &r->d;
	for (uint32_t i = 0; i < AIRUNNER_MAX_TENSORS; i++) {
		r->offset[i] = UINT64_MAX;
		if (!air_has_operand(&r->d, i))
			continue;
		if (i && i == r->c->in_place) {
			r->offset[i] = r->offset[0];
			fill(r, i, 0);
			continue;
		}
		place(r, i);
		if (i)
			fill(r, i, i);
	}
	for (uint32_t i = 0; i < AIRUNNER_MAX_TENSORS; i++) {
		if (!r->memory[i])
			continue;
		r->before[i] = malloc(r->bytes[i]);
		memcpy(r->before[i], r->memory[i], r->bytes[i]);
	}
	r->call.count[0] = air_tensor_count(&r->d.tensor[0]);
	r->call.out = calloc(r->call.count[0] + 1, sizeof(conf_real));
	r->call.mag = calloc(r->call.count[0] + 1, sizeof(conf_real));
	for (int64_t k = 0; k < r->call.count[0]; k++)
		r->call.mag[k] = NAN;
}

static void clean_up(struct run *r)
{
	for (uint32_t i = 0; i < AIRUNNER_MAX_TENSORS; i++) {
		free(r->value[i]);
		free(r->before[i]);
	}
	free(r->call.out);
	free(r->call.mag);
}

static bool close_enough(const struct conf_op *op, uint32_t dtype,
			 conf_real got, conf_real want, conf_real mag)
{
	static const double half[] = { [AIRUNNER_F32] = 0x1p-24,
				       [AIRUNNER_F16] = 0x1p-11,
				       [AIRUNNER_BF16] = 0x1p-8 };
	/*
	 * Below the normal numbers errors are absolute. Each operation in f32
	 * rounds by up to half of 2^-149, what comes after it (a weight of up
	 * to 2) may double that, and results take up to three of them. Besides,
	 * one unit of y's own dtype.
	 */
	static const double least[] = {
		[AIRUNNER_F32] = 4 * 0x1p-149,
		[AIRUNNER_F16] = 0x1p-24 + 3 * 0x1p-149,
		[AIRUNNER_BF16] = 0x1p-133 + 3 * 0x1p-149,
	};
	conf_real rounded = conf_round(dtype, want);
	conf_real allowed;

	if (isnan(rounded) || isnan(got))
		return isnan(rounded) && isnan(got);
	if (got == rounded)
		return true;
	if (op->exact || !is_float(dtype) || isinf(want))
		return false;
	allowed = half[dtype] * fabsl(want) +
		  op->error * 0x1p-24L * (isnan(mag) ? fabsl(want) : mag) +
		  least[dtype];
	/* Next to the largest number, Inf may be what rounding makes. */
	if (isinf(got))
		return isinf(conf_round(dtype, want + copysignl(allowed, got)));
	if (isinf(rounded))
		return fabsl(got) >= fabsl(want) - allowed;
	return fabsl(got - want) <= allowed;
}

static bool check_values(struct run *r)
{
	const struct airunner_tensor *y = &r->d.tensor[0];

	for (int64_t k = 0; k < r->call.count[0]; k++) {
		conf_real got = conf_load(
			y->dtype, r->memory[0] + r->offset[0] + element(y, k));
		conf_real want = r->call.out[k];

		if (!close_enough(r->op, y->dtype, got, want, r->call.mag[k]))
			return fail(
				r,
				"element %lld of %lld is %.9Lg, expected %.9Lg",
				(long long)k, (long long)r->call.count[0], got,
				conf_round(y->dtype, want));
	}
	return true;
}

/* Nothing but the output's elements has changed. */
static bool check_surroundings(struct run *r)
{
	const struct airunner_tensor *y = &r->d.tensor[0];
	uint32_t size = air_elem_size(y->dtype);

	for (int64_t k = 0; k < r->call.count[0]; k++) {
		int64_t at = (int64_t)r->offset[0] + element(y, k);

		memcpy(r->before[0] + at, r->memory[0] + at, size);
	}
	for (uint32_t i = 0; i < AIRUNNER_MAX_TENSORS; i++) {
		for (uint64_t b = 0; r->memory[i] && b < r->bytes[i]; b++)
			if (r->memory[i][b] != r->before[i][b])
				return fail(
					r,
					"operand %s: byte %lld from its first element was written to",
					air_op_find(r->op->id)->operand[i],
					(long long)b - (long long)r->offset[i]);
	}
	return true;
}

static bool check_status(struct run *r, air_status st)
{
	if (st == r->c->status || (!r->ex->is_cpu && !st))
		return true;
	return fail(r, "completed with %d (%s), expected %d", st,
		    air_status_string(st), r->c->status);
}

enum outcome { PASSED, FAILED, UNSUPPORTED };

static enum outcome run_checked(struct run *r)
{
	struct air_error e = { "" };
	uint64_t workspace = 0;
	void *handle = NULL;
	air_status st =
		r->ex->create(r->ex->arg, &r->d, &handle, &workspace, &e);
	bool good = true;

	if (r->c->refused) {
		if (st == r->c->refused && e.text[0])
			return PASSED;
		fail(r, "descriptor: %d \"%s\", expected %d and a sentence", st,
		     e.text, r->c->refused);
		if (!st)
			r->ex->destroy(r->ex->arg, handle);
		return FAILED;
	}
	if (st == AIR_UNSUPPORTED && !r->ex->is_cpu)
		return UNSUPPORTED;
	if (st) {
		fail(r, "descriptor refused: %d %s", st, e.text);
		return FAILED;
	}

	prepare(r);
	r->offset[AIRUNNER_MAX_TENSORS] = UINT64_MAX;
	if (workspace) {
		/* NaN, if anything of it counts that was not written first. */
		memset(r->ex->memory(r->ex->arg, AIRUNNER_MAX_TENSORS,
				     workspace),
		       0xff, workspace);
		r->offset[AIRUNNER_MAX_TENSORS] = 0;
	}
	r->op->reference(&r->call);
	st = r->ex->execute(r->ex->arg, handle, r->offset, r->c->in_place);
	good = check_status(r, st) && check_values(r) && check_surroundings(r);
	r->ex->destroy(r->ex->arg, handle);
	clean_up(r);
	return good ? PASSED : FAILED;
}

static bool has_tail(const struct conf_case *c)
{
	for (uint32_t i = 0; i < AIRUNNER_MAX_TENSORS; i++)
		for (uint32_t k = 0; k < c->t[i].ndim; k++)
			if (c->t[i].shape[k] < 0)
				return true;
	return false;
}

struct tally {
	unsigned int passed, failed, unsupported;
};

static void run_one(const struct conf_executor *ex,
		    const struct conf_options *opt, const struct conf_op *op,
		    const struct conf_case *c, uint32_t dtype, int64_t tail,
		    struct tally *tally)
{
	struct run r = { .ex = ex,
			 .opt = opt,
			 .op = op,
			 .c = c,
			 .dtype = dtype,
			 .tail = tail };

	r.random = opt->seed * 0x9e3779b97f4a7c15ULL + dtype * 977 + tail + 1;
	describe(&r);
	switch (run_checked(&r)) {
	case PASSED:
		tally->passed++;
		return;
	case UNSUPPORTED:
		tally->unsupported++;
		return;
	default:
		break;
	}
	if (tally->failed++ < TOLD)
		printf("# %s: case \"%s\" (n = %lld), %s, %s%s: %s\n",
		       air_op_find(op->id)->name, c->name, (long long)tail,
		       air_elem_name(dtype), ex->name,
		       opt->label ? opt->label : "", r.message);
}

static void run_op(const struct conf_executor *ex,
		   const struct conf_options *opt, const struct conf_op *op,
		   struct conf_totals *totals)
{
	const char *name = air_op_find(op->id)->name;
	struct tally tally = { 0 };

	for (uint32_t i = 0; i < op->n_cases; i++) {
		const struct conf_case *c = &op->cases[i];
		int64_t longest = has_tail(c) ? CONF_MAX_TAIL : 0;

		if (c->heavy && opt->light)
			continue;
		for (uint32_t t = AIRUNNER_F32; t <= AIRUNNER_I64; t++)
			for (int64_t n = 0; n <= longest; n++)
				if (c->dtypes & AIR_DTYPE_BIT(t))
					run_one(ex, opt, op, c, t, n, &tally);
	}
	printf("%s %s on %s%s: %u cases passed, %u failed, %u unsupported\n",
	       tally.failed ? "not ok" : "ok", name, ex->name,
	       opt->label ? opt->label : "", tally.passed, tally.failed,
	       tally.unsupported);
	fflush(stdout);
	totals->passed += tally.passed;
	totals->failed += tally.failed;
	totals->unsupported += tally.unsupported;
}

void conf_run(const struct conf_executor *ex, const struct conf_options *opt,
	      struct conf_totals *totals)
{
	for (uint32_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
		if (!opt->op || !strcmp(opt->op, air_op_find(ops[i]->id)->name))
			run_op(ex, opt, ops[i], totals);
}

uint64_t conf_seed(void)
{
	const char *given = getenv("CONF_SEED");
	struct timespec ts;
	uint64_t seed;

	clock_gettime(CLOCK_REALTIME, &ts);
	seed = given ? strtoull(given, NULL, 0)
		     : (uint64_t)ts.tv_sec ^ (uint64_t)ts.tv_nsec << 20;
	printf("# CONF_SEED=%llu\n", (unsigned long long)seed);
	return seed;
}
