// SPDX-License-Identifier: MIT
#include <airunner/ops/gelu.h>
#include <math.h>

#include "ops/gelu/gelu.h"
#include "tests/unit/conformance_cases.h"

static conf_real by_erf(conf_real x)
{
	return x / 2 * erfcl(-x / sqrtl(2));
}

static conf_real by_tanh(conf_real x)
{
	conf_real u = sqrtl(2 / M_PIl) * (x + 0.044715L * x * x * x);

	return x / (1 + expl(-2 * u));
}

static void reference(const struct conf_call *c)
{
	uint64_t approximate = c->d->attr[AIR_GELU_APPROXIMATE];

	for (int64_t i = 0; i < c->count[0]; i++) {
		conf_real x = c->in[1][i];

		c->out[i] =
			approximate == AIR_GELU_TANH ? by_tanh(x) : by_erf(x);
		/*
		 * Tails are exponentials of x^2 (of x^3 in the other form),
		 * and f32 knows the exponent to a part of it only.
		 * What is next to nothing may become it.
		 */
		c->mag[i] = fabsl(c->out[i]) *
				    (1 + x * x + fabsl(0.1L * x * x * x)) +
			    0x1p-98;
	}
}

static const struct conf_case cases[] = {
	CONF_UNARY_CASES(CONF_FLOATS, .attr = { AIR_GELU_ERF }),
	CONF_UNARY_CASES(CONF_FLOATS, .attr = { AIR_GELU_TANH }),
	CONF_FILLED("NaN and Inf", CONF_FLOATS, 500, SPECIAL,
		    .attr = { AIR_GELU_ERF }),
	CONF_FILLED("NaN and Inf, tanh", CONF_FLOATS, 500, SPECIAL,
		    .attr = { AIR_GELU_TANH }),
	CONF_FILLED("all magnitudes", CONF_FLOATS, 3000, WIDE,
		    .attr = { AIR_GELU_ERF }),
	CONF_FILLED("all magnitudes, tanh", CONF_FLOATS, 3000, WIDE,
		    .attr = { AIR_GELU_TANH }),
	CONF_FILLED("huge", CONF_FLOATS, 500, HUGE, .attr = { AIR_GELU_ERF }),
	{ "no such approximation",
	  CONF_F32,
	  { CONF_T(DENSE, 4), CONF_T(DENSE, 4) },
	  .attr = { 2 },
	  .refused = AIR_BAD_ATTRIBUTE },
	{ "an attribute too many",
	  CONF_F32,
	  { CONF_T(DENSE, 4), CONF_T(DENSE, 4) },
	  .attr = { 0, 1 },
	  .refused = AIR_BAD_ATTRIBUTE },
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

const struct conf_op air_cases_gelu = {
	.id = AIR_OP_gelu,
	.reference = reference,
	.error = 8,
	CONF_CASES(cases),
};
