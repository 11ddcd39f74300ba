// SPDX-License-Identifier: MIT
#include <math.h>

#include "ops/scale/scale.h"
#include "tests/unit/conformance_cases.h"

static void reference(const struct conf_call *c)
{
	for (int64_t i = 0; i < c->count[0]; i++) {
		conf_real x = c->in[1][i];

		c->out[i] = (float)air_attr_f64(c->d, AIR_SCALE_ALPHA) * x;
	}
}

static const struct conf_case cases[] = {
	CONF_UNARY_CASES(CONF_FLOATS, .f64 = { 0.7 }),
	CONF_FILLED("NaN and Inf", CONF_FLOATS, 500, SPECIAL, .f64 = { -3 }),
	CONF_FILLED("by 0", CONF_FLOATS, 500, SPECIAL),
	CONF_FILLED("by NaN", CONF_FLOATS, 50, RANDOM, .f64 = { NAN }),
	CONF_FILLED("overflow", CONF_FLOATS, 500, WIDE, .f64 = { 1e36 }),
	CONF_FILLED("underflow", CONF_FLOATS, 500, WIDE, .f64 = { 1e-38 }),
	CONF_UNARY_REFUSED(.f64 = { 1 }),
	{ "other dtype",
	  CONF_F32,
	  { CONF_T(DENSE, 4),
	    CONF_TX(DENSE, CONF_SHAPE(4), .dtype = AIRUNNER_BF16) },
	  .refused = AIR_BAD_DTYPE,
	  .f64 = { 1 } },
	{ "integers",
	  CONF_I32 | CONF_I8,
	  { CONF_T(DENSE, 4), CONF_T(DENSE, 4) },
	  .refused = AIR_BAD_DTYPE,
	  .f64 = { 1 } },
};

const struct conf_op air_cases_scale = {
	.id = AIR_OP_scale,
	.reference = reference,
	.error = 1,
	CONF_CASES(cases),
};
