// SPDX-License-Identifier: MIT
#include <math.h>

#include "ops/softmax/softmax.h"
#include "tests/unit/conformance_cases.h"

/* The row that starts at element @at and goes on in steps of @step. */
static void row(const struct conf_call *c, int64_t at, int64_t n, int64_t step)
{
	const conf_real *x = c->in[1] + at;
	conf_real max = -INFINITY, sum = 0;

	for (int64_t k = 0; k < n; k++)
		max = fmaxl(max, x[k * step]);
	for (int64_t k = 0; k < n; k++)
		sum += expl(x[k * step] - max);
	for (int64_t k = 0; k < n; k++) {
		conf_real below = x[k * step] - max;
		conf_real v = expl(below) / sum;

		c->out[at + k * step] = v;
		/* In f32, x - max is known to a part of its size. */
		c->mag[at + k * step] = v * (1 + fabsl(below));
		if (isinf(below))
			c->mag[at + k * step] = 0;
	}
}

static void reference(const struct conf_call *c)
{
	const struct airunner_tensor *y = &c->d->tensor[0];
	uint64_t axis = c->d->attr[AIR_SOFTMAX_AXIS];
	int64_t n = y->shape[axis], step = 1, outer = 1;

	for (uint32_t i = (uint32_t)axis + 1; i < y->ndim; i++)
		step *= y->shape[i];
	for (uint32_t i = 0; i < axis; i++)
		outer *= y->shape[i];
	for (int64_t i = 0; i < outer; i++)
		for (int64_t k = 0; k < step; k++)
			row(c, i * n * step + k, n, step);
}

#define LAST .attr = { 1 }

static const struct conf_case cases[] = {
	{ "rows of all lengths",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 5, CONF_N), CONF_T(DENSE, 5, CONF_N) },
	  LAST },
	{ "columns of all lengths",
	  CONF_FLOATS,
	  { CONF_T(DENSE, CONF_N, 40), CONF_T(DENSE, CONF_N, 40) } },
	{ "all numbers of columns",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 6, CONF_N), CONF_T(DENSE, 6, CONF_N) } },
	{ "one dimension",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 300), CONF_T(DENSE, 300) } },
	{ "with gaps",
	  CONF_FLOATS,
	  { CONF_T(GAPS, 5, 300), CONF_T(GAPS, 5, 300) },
	  LAST },
	{ "rows of more than a block",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 5, 2500), CONF_T(DENSE, 5, 2500) },
	  LAST },
	{ "rows of more than a block, gaps",
	  CONF_FLOATS,
	  { CONF_T(GAPS, 5, 2500), CONF_T(DENSE, 5, 2500) },
	  LAST },
	{ "unaligned",
	  CONF_FLOATS,
	  { CONF_TX(DENSE, CONF_SHAPE(3, 1037), .misalign = 1),
	    CONF_TX(DENSE, CONF_SHAPE(3, 1037), .misalign = 3) },
	  LAST },
	{ "the middle",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 4, 30, 20), CONF_T(DENSE, 4, 30, 20) },
	  LAST },
	{ "the first of three",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 4, 30, 20), CONF_T(PADDED, 4, 30, 20) } },
	{ "more columns than a block",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 3, 2500), CONF_T(DENSE, 3, 2500) } },
	{ "permuted x",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 4, 30, 20), CONF_T(PERMUTED, 4, 30, 20) },
	  LAST },
	{ "permuted y",
	  CONF_FLOATS,
	  { CONF_T(PERMUTED, 4, 30, 20), CONF_T(DENSE, 4, 30, 20) },
	  .attr = { 2 } },
	{ "reversed",
	  CONF_FLOATS,
	  { CONF_T(REVERSED, 4, 30), CONF_T(REVERSED, 4, 30) },
	  LAST },
	{ "reversed columns",
	  CONF_FLOATS,
	  { CONF_T(REVERSED, 4, 30), CONF_T(REVERSED, 4, 30) } },
	{ "repeated rows",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 4, 30),
	    CONF_TX(DENSE, CONF_SHAPE(4, 30), .repeat = 1) },
	  LAST },
	{ "all the same",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 4, 30),
	    CONF_TX(DENSE, CONF_SHAPE(4, 30), .repeat = 2) },
	  LAST },
	{ "eight dimensions",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 2, 1, 3, 2, 1, 2, 3, 2),
	    CONF_T(PERMUTED, 2, 1, 3, 2, 1, 2, 3, 2) },
	  .attr = { 6 } },
	{ "wild strides of size 1",
	  CONF_FLOATS,
	  { CONF_T(ODD, 1, 5, 1, 7), CONF_T(ODD, 1, 5, 1, 7) },
	  .attr = { 2 } },
	{ "a dimension of 0",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 0, 5), CONF_T(DENSE, 0, 5) },
	  LAST },
	{ "in place",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 5, 300), CONF_T(DENSE, 5, 300) },
	  .in_place = 1,
	  LAST },
	{ "in place, more than a block, gaps",
	  CONF_FLOATS,
	  { CONF_T(GAPS, 5, 2500), CONF_T(GAPS, 5, 2500) },
	  .in_place = 1,
	  LAST },
	{ "in place, columns",
	  CONF_FLOATS,
	  { CONF_T(PADDED, 50, 30), CONF_T(PADDED, 50, 30) },
	  .in_place = 1 },
	{ "NaN and Inf",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 200, 4),
	    CONF_TX(DENSE, CONF_SHAPE(200, 4), .fill = CONF_SPECIAL) },
	  LAST },
	{ "NaN and Inf in columns",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 4, 200),
	    CONF_TX(DENSE, CONF_SHAPE(4, 200), .fill = CONF_SPECIAL) } },
	{ "nothing but -Inf",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 3, 100),
	    CONF_TX(DENSE, CONF_SHAPE(3, 100), .fill = CONF_NEGATIVE_INF) },
	  LAST },
	{ "nothing but -Inf in columns",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 3, 100),
	    CONF_TX(DENSE, CONF_SHAPE(3, 100), .fill = CONF_NEGATIVE_INF) } },
	{ "some -Inf",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 30, 10), CONF_TX(DENSE, CONF_SHAPE(30, 10),
					   .fill = CONF_SOME_NEGATIVE_INF) },
	  LAST },
	{ "nothing but NaN",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 3, 100),
	    CONF_TX(DENSE, CONF_SHAPE(3, 100), .fill = CONF_NAN) },
	  LAST },
	{ "huge spreads",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 30, 50),
	    CONF_TX(DENSE, CONF_SHAPE(30, 50), .fill = CONF_HUGE) },
	  LAST },
	{ "huge spreads in columns",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 30, 50),
	    CONF_TX(DENSE, CONF_SHAPE(30, 50), .fill = CONF_HUGE) } },
	{ "all equal",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 3, 777),
	    CONF_TX(DENSE, CONF_SHAPE(3, 777), .fill = CONF_TENTH) },
	  LAST },
	{ "many rows",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 900, 200), CONF_T(DENSE, 900, 200) },
	  LAST,
	  .heavy = true },
	{ "many columns",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 50, 4000), CONF_T(DENSE, 50, 4000) },
	  .heavy = true },
	{ "a long row",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 200000), CONF_T(DENSE, 200000) },
	  .heavy = true },
	{ "many long rows",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 134, 40000), CONF_T(DENSE, 134, 40000) },
	  LAST,
	  .heavy = true },
	{ "many long rows, in place",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 150, 40000), CONF_T(DENSE, 150, 40000) },
	  LAST,
	  .in_place = 1,
	  .heavy = true },
	{ "no such axis",
	  CONF_F32,
	  { CONF_T(DENSE, 4, 5), CONF_T(DENSE, 4, 5) },
	  .attr = { 2 },
	  .refused = AIR_BAD_ATTRIBUTE },
	{ "negative axis",
	  CONF_F32,
	  { CONF_T(DENSE, 4, 5), CONF_T(DENSE, 4, 5) },
	  .attr = { -3 },
	  .refused = AIR_BAD_ATTRIBUTE },
	{ "no dimensions",
	  CONF_F32,
	  { CONF_SCALAR, CONF_SCALAR },
	  .refused = AIR_BAD_SHAPE },
	{ "integers",
	  CONF_I32,
	  { CONF_T(DENSE, 4), CONF_T(DENSE, 4) },
	  .refused = AIR_BAD_DTYPE },
	{ "other dtype",
	  CONF_F32,
	  { CONF_T(DENSE, 4),
	    CONF_TX(DENSE, CONF_SHAPE(4), .dtype = AIRUNNER_F16) },
	  .refused = AIR_BAD_DTYPE },
	CONF_UNARY_REFUSED(),
};

const struct conf_op air_cases_softmax = {
	.id = AIR_OP_softmax,
	.reference = reference,
	.error = 4,
	CONF_CASES(cases),
};
