/* SPDX-License-Identifier: MIT */
/*
 * The conformance suite: every operator's cases are data (ops/<op>/cases.c),
 * and any executor can be put to them.
 *
 * A case says what tensors there are: shape, layout in memory, how they are
 * filled. It is run for each of its dtypes, on fresh random data, with the
 * output poisoned and guarded, and compared to a reference in at least double
 * precision. Where a shape holds CONF_N, the case is run for each length from
 * 0 to 17 (CONF_N1: from 1 to 18).
 */
#ifndef CONFORMANCE_H
#define CONFORMANCE_H

#include <stdbool.h>
#include <stdint.h>

#include <airunner.h>
#include <airunner/ops.h>

#include "ops/check.h"

/* At least a double; on x86-64 all i64 are exact in it. */
typedef long double conf_real;

#define CONF_N	      (-1)
#define CONF_N1	      (-2)
#define CONF_MAX_TAIL 17

/* How a tensor lies in memory. */
enum conf_layout {
	CONF_ABSENT, /* the operand is left out */
	CONF_DENSE,
	CONF_PADDED,   /* rows of the last dimension do not touch */
	CONF_GAPS,     /* neither do elements */
	CONF_PERMUTED, /* the first dimension runs fastest */
	CONF_REVERSED, /* all dimensions run backwards */
	CONF_ODD,      /* dense, but dimensions of size 1 have wild strides */
};

/* What it holds. */
enum conf_fill {
	CONF_RANDOM,   /* uniform in [-2, 2]; all values of integer dtypes */
	CONF_POSITIVE, /* uniform in [0, 1] */
	CONF_WIDE,     /* of all magnitudes from 2^-20 to 2^20 */
	CONF_SPECIAL,  /* random, with NaN, Inf, -Inf, 0, -0 and the smallest */
	CONF_HUGE,     /* far beyond what exp() can take, of both signs */
	CONF_NEGATIVE_INF,	/* nothing but -Inf */
	CONF_SOME_NEGATIVE_INF, /* every other one */
	CONF_NAN,		/* nothing but NaN */
	CONF_TENTH,		/* nothing but 0.1 */
	CONF_ZERO,
	CONF_INDEX,	/* integers from 0 to limit - 1 */
	CONF_BAD_INDEX, /* the same, with some outside */
	CONF_OFFSET,	/* 1000 + uniform in [-1, 1]: a large mean */
};

/**
 * struct conf_tensor - an operand
 * @layout: CONF_ABSENT leaves it out
 * @dtype: 0 for the dtype the case is run for
 * @ndim: dimensions
 * @shape: elements
 * @repeat: bit i: dimension i has stride 0
 * @fill: contents; the output's are poison in any case
 * @limit: for CONF_INDEX
 * @misalign: elements by which it misses a 64-byte boundary
 */
struct conf_tensor {
	enum conf_layout layout;
	uint32_t dtype;
	uint32_t ndim;
	int64_t shape[AIR_MAX_DIMS];
	uint32_t repeat;
	enum conf_fill fill;
	int64_t limit;
	uint32_t misalign;
};

#define CONF_SHAPE(...)                                               \
	.ndim = sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t), \
	.shape = { __VA_ARGS__ }

/* { .layout, shape } of the case's dtype: CONF_T(DENSE, 3, 4) */
#define CONF_T(how, ...)                                      \
	{                                                     \
		.layout = CONF_##how, CONF_SHAPE(__VA_ARGS__) \
	}
/* ... with more fields: CONF_TX(DENSE, CONF_SHAPE(3, 4), .repeat = 1) */
#define CONF_TX(how, ...)                         \
	{                                         \
		.layout = CONF_##how, __VA_ARGS__ \
	}
#define CONF_SCALAR                  \
	{                            \
		.layout = CONF_DENSE \
	}

/**
 * struct conf_case - a case
 * @name: for messages
 * @dtypes: AIR_DTYPE_BIT() of those it is run for
 * @t: operands, the output first
 * @attr: attributes that are integers, and
 * @f64: attributes that are floating point, by the same number
 * @in_place: operand that is the output as well; 0 for none
 * @refused: status with which the descriptor must be refused
 * @status: status with which it must complete, its output being as the
 *	reference says. Executors other than the CPU may complete with AIR_OK
 * @heavy: left out where time is short (sanitizers)
 */
struct conf_case {
	const char *name;
	uint32_t dtypes;
	struct conf_tensor t[AIRUNNER_MAX_TENSORS];
	int64_t attr[AIRUNNER_MAX_ATTRS];
	double f64[AIRUNNER_MAX_ATTRS];
	uint32_t in_place;
	air_status refused;
	air_status status;
	bool heavy;
};

/**
 * struct conf_call - what a reference computes from
 * @d: the descriptor; only shapes, dtypes and attributes matter
 * @in: operands' values as dense arrays in the order of their indices; NULL
 *	for those left out
 * @count: elements of each operand
 * @out: the result; the runner rounds it to y's dtype
 * @mag: the scale of the error allowed for each element, see struct conf_op;
 *	|@out| unless the reference says otherwise
 */
struct conf_call {
	const struct airunner_desc *d;
	const conf_real *in[AIRUNNER_MAX_TENSORS];
	int64_t count[AIRUNNER_MAX_TENSORS];
	conf_real *out;
	conf_real *mag;
};

/**
 * struct conf_op - an operator's cases
 * @exact: the result is the reference rounded to y's dtype, to the bit
 * @error: else it may be off by half a unit of the last place, for rounding,
 *	and by @error * 2^-24 * mag, for computing in f32; and by a few of the
 *	smallest numbers there are, where results are subnormal
 */
struct conf_op {
	enum air_op_id id;
	void (*reference)(const struct conf_call *c);
	bool exact;
	double error;
	const struct conf_case *cases;
	uint32_t n_cases;
};

#define CONF_CASES(array) \
	.cases = array, .n_cases = sizeof(array) / sizeof(array[0])

#define CONF_FLOATS AIR_DTYPES_FLOAT
#define CONF_ALL    (AIR_DTYPES_FLOAT | AIR_DTYPES_INT)
#define CONF_F32    AIR_DTYPE_BIT(AIRUNNER_F32)
#define CONF_F16    AIR_DTYPE_BIT(AIRUNNER_F16)
#define CONF_BF16   AIR_DTYPE_BIT(AIRUNNER_BF16)
#define CONF_I32    AIR_DTYPE_BIT(AIRUNNER_I32)
#define CONF_I8	    AIR_DTYPE_BIT(AIRUNNER_I8)
#define CONF_I64    AIR_DTYPE_BIT(AIRUNNER_I64)

/* Nearest number of that dtype, ties to even; integers saturate. */
conf_real conf_round(uint32_t dtype, conf_real v);
conf_real conf_load(uint32_t dtype, const void *p);
/* @v must be a number of that dtype. */
void conf_store(uint32_t dtype, void *p, conf_real v);

/**
 * struct conf_executor - something that can be put to the cases
 * @name: for messages
 * @is_cpu: it is the CPU executor, of which more is asked
 * @memory: at least @bytes of memory for operand @i (AIRUNNER_MAX_TENSORS: the
 *	workspace), aligned to 64; what is written there is what execute() sees.
 *	Valid until the next call for that operand
 * @create: AIR_UNSUPPORTED: the executor does not do this one
 * @execute: @offset: bytes into each operand's memory; UINT64_MAX for left
 *	out. @in_place: operand that lies in the output's memory, or 0
 */
struct conf_executor {
	const char *name;
	bool is_cpu;
	void *arg;
	void *(*memory)(void *arg, uint32_t i, uint64_t bytes);
	air_status (*create)(void *arg, const struct airunner_desc *d,
			     void **handle, uint64_t *workspace,
			     struct air_error *e);
	air_status (*execute)(void *arg, void *handle,
			      const uint64_t offset[AIRUNNER_MAX_TENSORS + 1],
			      uint32_t in_place);
	void (*destroy)(void *arg, void *handle);
};

struct conf_totals {
	unsigned int passed;
	unsigned int failed;
	unsigned int unsupported;
};

/**
 * struct conf_options - which cases
 * @op: name of the only operator; NULL for all
 * @light: leave out heavy cases
 * @seed: of the random data
 * @label: added to messages
 */
struct conf_options {
	const char *op;
	bool light;
	uint64_t seed;
	const char *label;
};

/*
 * Run all cases. Prints a line for each operator, `ok` or `not ok`, and one for
 * each of its first few failures that names operator, case, dtype, first wrong
 * element, what it was and what was expected.
 */
void conf_run(const struct conf_executor *ex, const struct conf_options *opt,
	      struct conf_totals *totals);

/* CONF_SEED from the environment, or a fresh one; printed. */
uint64_t conf_seed(void);

/* The operators in this process, without ring or worker. */
struct conf_direct;
struct conf_direct *conf_direct_open(unsigned int threads,
				     struct conf_executor *ex);
void conf_direct_close(struct conf_direct *c);

/* The library: @where as for air_open(). Exits with a message if it cannot. */
struct conf_ring;
struct conf_ring *conf_ring_open(const char *where, air_executor executor,
				 air_memory memory, struct conf_executor *ex);
void conf_ring_close(struct conf_ring *c);

#endif /* CONFORMANCE_H */
