// SPDX-License-Identifier: MIT
#include <math.h>

#include "ops/reduce.h"
#include "tests/unit/conformance_cases.h"

static void reference(const struct conf_call *c)
{
	const struct airunner_tensor *x = &c->d->tensor[AIR_REDUCE_X];
	uint64_t axes = c->d->attr[AIR_REDUCE_AXES];

	for (int64_t i = 0; i < c->count[AIR_REDUCE_Y]; i++) {
		c->out[i] = -INFINITY;
		c->mag[i] = 0;
	}
	for (int64_t i = 0; i < c->count[AIR_REDUCE_X]; i++) {
		conf_real v = c->in[AIR_REDUCE_X][i];
		int64_t rest = i, at = 0, step = 1;

		for (uint32_t k = x->ndim; k-- > 0;) {
			if (!(axes >> k & 1)) {
				at += rest % x->shape[k] * step;
				step *= x->shape[k];
			}
			rest /= x->shape[k];
		}
		if (v > c->out[at] || isnan(v))
			c->out[at] = v;
	}
}

/* x, y and the axes, for each of the dtypes. */
#define CASE(name, dtypes, y, x, axes, keep)                   \
	{                                                      \
		name, dtypes, { y, x }, .attr = { axes, keep } \
	}

static const struct conf_case cases[] = {
	CASE("rows of all lengths", CONF_ALL, CONF_T(DENSE, 5),
	     CONF_T(DENSE, 5, CONF_N1), 2, 0),
	CASE("rows that do not touch", CONF_ALL, CONF_T(DENSE, 5),
	     CONF_T(PADDED, 5, CONF_N1), 2, 0),
	CASE("columns of all lengths", CONF_ALL, CONF_T(DENSE, 40),
	     CONF_T(DENSE, CONF_N1, 40), 1, 0),
	CASE("all numbers of columns", CONF_ALL, CONF_T(DENSE, CONF_N),
	     CONF_T(DENSE, 9, CONF_N), 1, 0),
	CASE("rows with gaps", CONF_ALL, CONF_T(GAPS, 5), CONF_T(GAPS, 5, 300),
	     2, 0),
	CASE("columns with gaps", CONF_ALL, CONF_T(GAPS, 70),
	     CONF_T(GAPS, 33, 70), 1, 0),
	CASE("everything", CONF_ALL, CONF_SCALAR, CONF_T(DENSE, 6, 7, 50), 7,
	     0),
	CASE("everything, keepdim", CONF_ALL, CONF_T(DENSE, 1, 1, 1),
	     CONF_T(DENSE, 6, 7, 50), 7, 1),
	CASE("the middle", CONF_ALL, CONF_T(DENSE, 6, 50),
	     CONF_T(DENSE, 6, 7, 50), 2, 0),
	CASE("the middle, keepdim", CONF_ALL, CONF_T(DENSE, 6, 1, 50),
	     CONF_T(DENSE, 6, 7, 50), 2, 1),
	CASE("first and last", CONF_ALL, CONF_T(DENSE, 7),
	     CONF_T(DENSE, 6, 7, 50), 5, 0),
	CASE("first and last, keepdim", CONF_ALL, CONF_T(PADDED, 1, 7, 1),
	     CONF_T(PERMUTED, 6, 7, 50), 5, 1),
	CASE("permuted", CONF_ALL, CONF_T(DENSE, 6, 50),
	     CONF_T(PERMUTED, 6, 7, 50), 2, 0),
	CASE("permuted y", CONF_ALL, CONF_T(PERMUTED, 6, 50),
	     CONF_T(DENSE, 6, 7, 50), 2, 0),
	CASE("reversed", CONF_ALL, CONF_T(REVERSED, 6, 50),
	     CONF_T(REVERSED, 6, 7, 50), 2, 0),
	CASE("reversed rows", CONF_ALL, CONF_T(DENSE, 6),
	     CONF_T(REVERSED, 6, 350), 2, 0),
	CASE("no axis", CONF_ALL, CONF_T(DENSE, 6, 50), CONF_T(PADDED, 6, 50),
	     0, 0),
	CASE("scalar", CONF_ALL, CONF_SCALAR, CONF_SCALAR, 0, 0),
	CASE("repeated elements", CONF_ALL, CONF_T(DENSE, 9),
	     CONF_TX(DENSE, CONF_SHAPE(9, 40), .repeat = 2), 2, 0),
	CASE("repeated rows", CONF_ALL, CONF_T(DENSE, 40),
	     CONF_TX(DENSE, CONF_SHAPE(9, 40), .repeat = 1), 1, 0),
	CASE("eight dimensions", CONF_ALL, CONF_T(DENSE, 2, 2, 2, 3),
	     CONF_T(DENSE, 2, 3, 2, 1, 2, 5, 3, 2), 0xaa, 0),
	CASE("wild strides of size 1", CONF_ALL, CONF_T(ODD, 1, 5),
	     CONF_T(ODD, 1, 5, 1, 7), 0xc, 0),
	CASE("unaligned", CONF_ALL,
	     CONF_TX(DENSE, CONF_SHAPE(3), .misalign = 1),
	     CONF_TX(DENSE, CONF_SHAPE(3, 1037), .misalign = 1), 2, 0),
	CASE("nothing in, nothing out", CONF_ALL, CONF_T(DENSE, 0),
	     CONF_T(DENSE, 0, 5), 2, 0),
	CASE("nothing of nothing", CONF_ALL, CONF_T(DENSE, 0),
	     CONF_T(DENSE, 0, 0), 2, 0),
	CASE("NaN and Inf", CONF_FLOATS, CONF_T(DENSE, 300),
	     CONF_TX(DENSE, CONF_SHAPE(300, 5), .fill = CONF_SPECIAL), 2, 0),
	CASE("NaN and Inf in columns", CONF_FLOATS, CONF_T(DENSE, 300),
	     CONF_TX(DENSE, CONF_SHAPE(5, 300), .fill = CONF_SPECIAL), 1, 0),
	CASE("NaN and Inf in long rows", CONF_FLOATS, CONF_T(DENSE, 20),
	     CONF_TX(DENSE, CONF_SHAPE(20, 1300), .fill = CONF_SPECIAL), 2, 0),
	CASE("nothing but -Inf", CONF_FLOATS, CONF_T(DENSE, 3),
	     CONF_TX(DENSE, CONF_SHAPE(3, 100), .fill = CONF_NEGATIVE_INF), 2,
	     0),
	{ "many rows",
	  CONF_ALL,
	  { CONF_T(DENSE, 3000), CONF_T(DENSE, 3000, 130) },
	  .attr = { 2 },
	  .heavy = true },
	{ "a long row",
	  CONF_ALL,
	  { CONF_SCALAR, CONF_T(DENSE, 600000) },
	  .attr = { 1 },
	  .heavy = true },
	{ "long columns",
	  CONF_ALL,
	  { CONF_T(DENSE, 20), CONF_T(DENSE, 30000, 20) },
	  .attr = { 1 },
	  .heavy = true },
	{ "wide columns",
	  CONF_ALL,
	  { CONF_T(DENSE, 5000), CONF_T(DENSE, 60, 5000) },
	  .attr = { 1 },
	  .heavy = true },
	{ "the largest of nothing",
	  CONF_ALL,
	  { CONF_T(DENSE, 5), CONF_T(DENSE, 5, 0) },
	  .attr = { 2 },
	  .refused = AIR_BAD_SHAPE },
	{ "no such axis",
	  CONF_F32,
	  { CONF_T(DENSE, 4), CONF_T(DENSE, 4, 5) },
	  .attr = { 4 },
	  .refused = AIR_BAD_ATTRIBUTE },
	{ "a list that is none",
	  CONF_F32,
	  { CONF_T(DENSE, 4), CONF_T(DENSE, 4, 5) },
	  .attr = { (int64_t)(AIR_REDUCE_BAD_AXIS | 7) },
	  .refused = AIR_BAD_ATTRIBUTE },
	{ "keepdim of 2",
	  CONF_F32,
	  { CONF_T(DENSE, 4), CONF_T(DENSE, 4, 5) },
	  .attr = { 2, 2 },
	  .refused = AIR_BAD_ATTRIBUTE },
	{ "y keeps too much",
	  CONF_F32,
	  { CONF_T(DENSE, 4, 5), CONF_T(DENSE, 4, 5) },
	  .attr = { 2 },
	  .refused = AIR_BAD_SHAPE },
	{ "y of the other axis",
	  CONF_F32,
	  { CONF_T(DENSE, 5), CONF_T(DENSE, 4, 5) },
	  .attr = { 2 },
	  .refused = AIR_BAD_SHAPE },
	{ "other dtype",
	  CONF_F32,
	  { CONF_TX(DENSE, CONF_SHAPE(4), .dtype = AIRUNNER_I32),
	    CONF_T(DENSE, 4, 5) },
	  .attr = { 2 },
	  .refused = AIR_BAD_DTYPE },
	{ "narrower dtype",
	  CONF_F32,
	  { CONF_TX(DENSE, CONF_SHAPE(4), .dtype = AIRUNNER_F16),
	    CONF_T(DENSE, 4, 5) },
	  .attr = { 2 },
	  .refused = AIR_BAD_DTYPE },
	{ "output repeats",
	  CONF_F32,
	  { CONF_TX(DENSE, CONF_SHAPE(4), .repeat = 1), CONF_T(DENSE, 4, 5) },
	  .attr = { 2 },
	  .refused = AIR_BAD_STRIDES },
};

const struct conf_op air_cases_reduce_max = {
	.id = AIR_OP_reduce_max,
	.reference = reference,
	.exact = true,
	CONF_CASES(cases),
};
