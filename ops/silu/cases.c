// SPDX-License-Identifier: MIT
#include <math.h>

#include "tests/unit/conformance_cases.h"

static void reference(const struct conf_call *c)
{
	for (int64_t i = 0; i < c->count[0]; i++) {
		conf_real x = c->in[1][i];

		c->out[i] = x / (1 + expl(-x));
		/* What is next to nothing may become it: exp(-x) is Inf. */
		c->mag[i] = fabsl(c->out[i]) + 0x1p-98;
	}
}

static const struct conf_case cases[] = {
	CONF_UNARY_CASES(CONF_FLOATS),
	CONF_FILLED("NaN and Inf", CONF_FLOATS, 500, SPECIAL),
	CONF_FILLED("all magnitudes", CONF_FLOATS, 3000, WIDE),
	CONF_FILLED("huge", CONF_FLOATS, 500, HUGE),
	CONF_UNARY_REFUSED(),
	{ "other dtype",
	  CONF_F32,
	  { CONF_T(DENSE, 4),
	    CONF_TX(DENSE, CONF_SHAPE(4), .dtype = AIRUNNER_BF16) },
	  .refused = AIR_BAD_DTYPE },
	{ "integers",
	  CONF_I32 | CONF_I8,
	  { CONF_T(DENSE, 4), CONF_T(DENSE, 4) },
	  .refused = AIR_BAD_DTYPE },
};

const struct conf_op air_cases_silu = {
	.id = AIR_OP_silu,
	.reference = reference,
	.error = 4,
	CONF_CASES(cases),
};
