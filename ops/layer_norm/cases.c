// SPDX-License-Identifier: MIT
#include <math.h>

#include "ops/layer_norm/layer_norm.h"
#include "tests/unit/conformance_cases.h"

static void row(const struct conf_call *c, int64_t at, int64_t n)
{
	const conf_real *x = c->in[1] + at;
	const conf_real *w = c->in[2];
	const conf_real *b = c->in[3];
	conf_real eps = air_attr_f64(c->d, AIR_LAYER_NORM_EPSILON);
	conf_real mean = 0, variance = 0, size = 0, by;

	for (int64_t k = 0; k < n; k++) {
		mean += x[k] / n;
		size += fabsl(x[k]) / n;
	}
	for (int64_t k = 0; k < n; k++)
		variance += (x[k] - mean) * (x[k] - mean) / n;
	/* In f32 as well squares of what is huge are Inf. */
	by = 1 / sqrtl(conf_round(AIRUNNER_F32, variance) + eps);
	for (int64_t k = 0; k < n; k++) {
		conf_real scale = by * (w ? w[k] : 1);
		conf_real shift = b ? b[k] : 0;

		c->out[at + k] = (x[k] - mean) * scale + shift;
		c->mag[at + k] =
			(fabsl(x[k]) + size) * fabsl(scale) + fabsl(shift);
	}
}

static void reference(const struct conf_call *c)
{
	const struct airunner_tensor *y = &c->d->tensor[0];
	int64_t n = y->shape[y->ndim - 1];

	for (int64_t at = 0; n && at < c->count[0]; at += n)
		row(c, at, n);
}

#define EPS .f64 = { 1e-5 }

static const struct conf_case cases[] = {
	{ "rows of all lengths",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 5, CONF_N), CONF_T(DENSE, 5, CONF_N),
	    CONF_TX(DENSE, CONF_SHAPE(CONF_N)),
	    CONF_TX(DENSE, CONF_SHAPE(CONF_N)) },
	  EPS },
	{ "nothing but x",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 5, 300), CONF_T(DENSE, 5, 300) },
	  EPS },
	{ "one row",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 300), CONF_T(DENSE, 300),
	    CONF_TX(DENSE, CONF_SHAPE(300)), CONF_TX(DENSE, CONF_SHAPE(300)) },
	  EPS },
	{ "vectors in f32",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 5, 300), CONF_T(DENSE, 5, 300),
	    CONF_TX(DENSE, CONF_SHAPE(300), .dtype = AIRUNNER_F32),
	    CONF_TX(DENSE, CONF_SHAPE(300), .dtype = AIRUNNER_F32) },
	  EPS },
	{ "with gaps",
	  CONF_FLOATS,
	  { CONF_T(GAPS, 5, 300), CONF_T(GAPS, 5, 300),
	    CONF_TX(GAPS, CONF_SHAPE(300)), CONF_TX(GAPS, CONF_SHAPE(300)) },
	  EPS },
	{ "more than a block",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 3, 2500), CONF_T(DENSE, 3, 2500),
	    CONF_TX(DENSE, CONF_SHAPE(2500)),
	    CONF_TX(DENSE, CONF_SHAPE(2500)) },
	  EPS },
	{ "more than a block with gaps",
	  CONF_FLOATS,
	  { CONF_T(GAPS, 3, 2500), CONF_T(GAPS, 3, 2500),
	    CONF_TX(GAPS, CONF_SHAPE(2500)), CONF_TX(GAPS, CONF_SHAPE(2500)) },
	  EPS },
	{ "unaligned",
	  CONF_FLOATS,
	  { CONF_TX(DENSE, CONF_SHAPE(3, 1037), .misalign = 1),
	    CONF_TX(DENSE, CONF_SHAPE(3, 1037), .misalign = 3),
	    CONF_TX(DENSE, CONF_SHAPE(1037), .misalign = 1),
	    CONF_TX(DENSE, CONF_SHAPE(1037), .misalign = 1) },
	  EPS },
	{ "permuted x",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 4, 6, 30), CONF_T(PERMUTED, 4, 6, 30),
	    CONF_TX(DENSE, CONF_SHAPE(30)), CONF_TX(DENSE, CONF_SHAPE(30)) },
	  EPS },
	{ "permuted y",
	  CONF_FLOATS,
	  { CONF_T(PERMUTED, 4, 6, 30), CONF_T(DENSE, 4, 6, 30),
	    CONF_TX(DENSE, CONF_SHAPE(30)), CONF_TX(DENSE, CONF_SHAPE(30)) },
	  EPS },
	{ "reversed",
	  CONF_FLOATS,
	  { CONF_T(REVERSED, 4, 30), CONF_T(REVERSED, 4, 30),
	    CONF_TX(REVERSED, CONF_SHAPE(30)),
	    CONF_TX(REVERSED, CONF_SHAPE(30)) },
	  EPS },
	{ "repeated rows",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 4, 30),
	    CONF_TX(DENSE, CONF_SHAPE(4, 30), .repeat = 1),
	    CONF_TX(DENSE, CONF_SHAPE(30)), CONF_TX(DENSE, CONF_SHAPE(30)) },
	  EPS },
	{ "eight dimensions",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 2, 1, 3, 2, 1, 2, 3, 20),
	    CONF_T(PERMUTED, 2, 1, 3, 2, 1, 2, 3, 20),
	    CONF_TX(DENSE, CONF_SHAPE(20)), CONF_TX(DENSE, CONF_SHAPE(20)) },
	  EPS },
	{ "no rows",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 0, 5), CONF_T(DENSE, 0, 5),
	    CONF_TX(DENSE, CONF_SHAPE(5)), CONF_TX(DENSE, CONF_SHAPE(5)) },
	  EPS },
	{ "in place",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 5, 2500), CONF_T(DENSE, 5, 2500),
	    CONF_TX(DENSE, CONF_SHAPE(2500)),
	    CONF_TX(DENSE, CONF_SHAPE(2500)) },
	  .in_place = 1,
	  EPS },
	{ "in place with gaps",
	  CONF_FLOATS,
	  { CONF_T(GAPS, 5, 300), CONF_T(GAPS, 5, 300),
	    CONF_TX(DENSE, CONF_SHAPE(300)), CONF_TX(DENSE, CONF_SHAPE(300)) },
	  .in_place = 1,
	  EPS },
	{ "NaN and Inf",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 100, 3),
	    CONF_TX(DENSE, CONF_SHAPE(100, 3), .fill = CONF_SPECIAL),
	    CONF_TX(DENSE, CONF_SHAPE(3)), CONF_TX(DENSE, CONF_SHAPE(3)) },
	  EPS },
	{ "zeros",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 3, 50),
	    CONF_TX(DENSE, CONF_SHAPE(3, 50), .fill = CONF_ZERO),
	    CONF_TX(DENSE, CONF_SHAPE(50)), CONF_TX(DENSE, CONF_SHAPE(50)) },
	  EPS },
	{ "zeros without epsilon",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 3, 50),
	    CONF_TX(DENSE, CONF_SHAPE(3, 50), .fill = CONF_ZERO),
	    CONF_TX(DENSE, CONF_SHAPE(50)), CONF_TX(DENSE, CONF_SHAPE(50)) } },
	{ "many rows",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 900, 200), CONF_T(DENSE, 900, 200),
	    CONF_TX(DENSE, CONF_SHAPE(200)), CONF_TX(DENSE, CONF_SHAPE(200)) },
	  EPS,
	  .heavy = true },
	{ "bias alone",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 5, 300),
	    CONF_T(DENSE, 5, 300),
	    { CONF_ABSENT },
	    CONF_T(DENSE, 300) },
	  EPS },
	{ "weight alone",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 5, 300), CONF_T(DENSE, 5, 300), CONF_T(DENSE, 300) },
	  EPS },
	{ "a large mean",
	  CONF_F32,
	  { CONF_T(DENSE, 5, 3000),
	    CONF_TX(DENSE, CONF_SHAPE(5, 3000), .fill = CONF_OFFSET) },
	  EPS },
	{ "bias of another length",
	  CONF_F32,
	  { CONF_T(DENSE, 4, 5), CONF_T(DENSE, 4, 5), CONF_T(DENSE, 5),
	    CONF_T(DENSE, 4) },
	  .refused = AIR_BAD_SHAPE },
	{ "weight of another length",
	  CONF_F32,
	  { CONF_T(DENSE, 4, 5), CONF_T(DENSE, 4, 5), CONF_T(DENSE, 4) },
	  .refused = AIR_BAD_SHAPE },
	{ "weight with two dimensions",
	  CONF_F32,
	  { CONF_T(DENSE, 4, 5), CONF_T(DENSE, 4, 5), CONF_T(DENSE, 1, 5) },
	  .refused = AIR_BAD_SHAPE },
	{ "weight of another dtype",
	  CONF_F16,
	  { CONF_T(DENSE, 4, 5), CONF_T(DENSE, 4, 5),
	    CONF_TX(DENSE, CONF_SHAPE(5), .dtype = AIRUNNER_BF16) },
	  .refused = AIR_BAD_DTYPE },
	{ "negative epsilon",
	  CONF_F32,
	  { CONF_T(DENSE, 4, 5), CONF_T(DENSE, 4, 5) },
	  .f64 = { -1 },
	  .refused = AIR_BAD_ATTRIBUTE },
	{ "epsilon of NaN",
	  CONF_F32,
	  { CONF_T(DENSE, 4, 5), CONF_T(DENSE, 4, 5) },
	  .f64 = { NAN },
	  .refused = AIR_BAD_ATTRIBUTE },
	{ "no dimensions",
	  CONF_F32,
	  { CONF_SCALAR, CONF_SCALAR },
	  .refused = AIR_BAD_SHAPE },
	{ "integers",
	  CONF_I32,
	  { CONF_T(DENSE, 4), CONF_T(DENSE, 4) },
	  .refused = AIR_BAD_DTYPE },
	CONF_UNARY_REFUSED(),
};

const struct conf_op air_cases_layer_norm = {
	.id = AIR_OP_layer_norm,
	.reference = reference,
	.error = 8,
	CONF_CASES(cases),
};
