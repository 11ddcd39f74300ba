// SPDX-License-Identifier: MIT
#include "tests/unit/conformance_cases.h"

static void reference(const struct conf_call *c)
{
	for (int64_t i = 0; i < c->count[0]; i++)
		c->out[i] = c->in[1][i] + c->in[2][i];
}

static const struct conf_case cases[] = {
	CONF_BINARY_CASES(CONF_FLOATS),
};

const struct conf_op air_cases_vector_add = {
	.id = AIR_OP_vector_add,
	.reference = reference,
	.error = 1,
	CONF_CASES(cases),
};
