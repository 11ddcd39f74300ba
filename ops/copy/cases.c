// SPDX-License-Identifier: MIT
#include <math.h>

#include "tests/unit/conformance_cases.h"

/* Integers go to the narrow floating point dtypes by way of f32. */
static conf_real cast(uint32_t to, uint32_t from, conf_real v)
{
	bool from_int = AIR_DTYPES_INT & AIR_DTYPE_BIT(from);
	bool to_int = AIR_DTYPES_INT & AIR_DTYPE_BIT(to);

	if (from_int && !to_int)
		return conf_round(AIRUNNER_F32, v);
	if (to_int && !from_int)
		return isnan(v) ? 0 : truncl(v);
	return v;
}

static void reference(const struct conf_call *c)
{
	for (int64_t i = 0; i < c->count[0]; i++)
		c->out[i] = cast(c->d->tensor[0].dtype, c->d->tensor[1].dtype,
				 c->in[1][i]);
}

static const struct conf_case cases[] = {
	CONF_UNARY_CASES(CONF_ALL),
	{ "from any dtype to f32",
	  CONF_ALL,
	  { CONF_TX(DENSE, CONF_SHAPE(1500), .dtype = AIRUNNER_F32),
	    CONF_T(DENSE, 1500) } },
	{ "from any dtype to f32, strided",
	  CONF_ALL,
	  { CONF_TX(PERMUTED, CONF_SHAPE(7, 50), .dtype = AIRUNNER_F32),
	    CONF_T(GAPS, 7, 50) } },
	{ "special values to f32",
	  CONF_FLOATS,
	  { CONF_TX(DENSE, CONF_SHAPE(1500), .dtype = AIRUNNER_F32),
	    CONF_TX(DENSE, CONF_SHAPE(1500), .fill = CONF_SPECIAL) } },
	{ "all magnitudes to f32",
	  CONF_FLOATS,
	  { CONF_TX(DENSE, CONF_SHAPE(1500), .dtype = AIRUNNER_F32),
	    CONF_TX(DENSE, CONF_SHAPE(1500), .fill = CONF_WIDE) } },
	{ "from any dtype to f16",
	  CONF_ALL,
	  { CONF_TX(DENSE, CONF_SHAPE(1500), .dtype = AIRUNNER_F16),
	    CONF_T(DENSE, 1500) } },
	{ "from any dtype to f16, strided",
	  CONF_ALL,
	  { CONF_TX(PERMUTED, CONF_SHAPE(7, 50), .dtype = AIRUNNER_F16),
	    CONF_T(GAPS, 7, 50) } },
	{ "special values to f16",
	  CONF_FLOATS,
	  { CONF_TX(DENSE, CONF_SHAPE(1500), .dtype = AIRUNNER_F16),
	    CONF_TX(DENSE, CONF_SHAPE(1500), .fill = CONF_SPECIAL) } },
	{ "all magnitudes to f16",
	  CONF_FLOATS,
	  { CONF_TX(DENSE, CONF_SHAPE(1500), .dtype = AIRUNNER_F16),
	    CONF_TX(DENSE, CONF_SHAPE(1500), .fill = CONF_WIDE) } },
	{ "from any dtype to bf16",
	  CONF_ALL,
	  { CONF_TX(DENSE, CONF_SHAPE(1500), .dtype = AIRUNNER_BF16),
	    CONF_T(DENSE, 1500) } },
	{ "from any dtype to bf16, strided",
	  CONF_ALL,
	  { CONF_TX(PERMUTED, CONF_SHAPE(7, 50), .dtype = AIRUNNER_BF16),
	    CONF_T(GAPS, 7, 50) } },
	{ "special values to bf16",
	  CONF_FLOATS,
	  { CONF_TX(DENSE, CONF_SHAPE(1500), .dtype = AIRUNNER_BF16),
	    CONF_TX(DENSE, CONF_SHAPE(1500), .fill = CONF_SPECIAL) } },
	{ "all magnitudes to bf16",
	  CONF_FLOATS,
	  { CONF_TX(DENSE, CONF_SHAPE(1500), .dtype = AIRUNNER_BF16),
	    CONF_TX(DENSE, CONF_SHAPE(1500), .fill = CONF_WIDE) } },
	{ "from any dtype to i32",
	  CONF_ALL,
	  { CONF_TX(DENSE, CONF_SHAPE(1500), .dtype = AIRUNNER_I32),
	    CONF_T(DENSE, 1500) } },
	{ "from any dtype to i32, strided",
	  CONF_ALL,
	  { CONF_TX(PERMUTED, CONF_SHAPE(7, 50), .dtype = AIRUNNER_I32),
	    CONF_T(GAPS, 7, 50) } },
	{ "special values to i32",
	  CONF_FLOATS,
	  { CONF_TX(DENSE, CONF_SHAPE(1500), .dtype = AIRUNNER_I32),
	    CONF_TX(DENSE, CONF_SHAPE(1500), .fill = CONF_SPECIAL) } },
	{ "all magnitudes to i32",
	  CONF_FLOATS,
	  { CONF_TX(DENSE, CONF_SHAPE(1500), .dtype = AIRUNNER_I32),
	    CONF_TX(DENSE, CONF_SHAPE(1500), .fill = CONF_WIDE) } },
	{ "from any dtype to i8",
	  CONF_ALL,
	  { CONF_TX(DENSE, CONF_SHAPE(1500), .dtype = AIRUNNER_I8),
	    CONF_T(DENSE, 1500) } },
	{ "from any dtype to i8, strided",
	  CONF_ALL,
	  { CONF_TX(PERMUTED, CONF_SHAPE(7, 50), .dtype = AIRUNNER_I8),
	    CONF_T(GAPS, 7, 50) } },
	{ "special values to i8",
	  CONF_FLOATS,
	  { CONF_TX(DENSE, CONF_SHAPE(1500), .dtype = AIRUNNER_I8),
	    CONF_TX(DENSE, CONF_SHAPE(1500), .fill = CONF_SPECIAL) } },
	{ "all magnitudes to i8",
	  CONF_FLOATS,
	  { CONF_TX(DENSE, CONF_SHAPE(1500), .dtype = AIRUNNER_I8),
	    CONF_TX(DENSE, CONF_SHAPE(1500), .fill = CONF_WIDE) } },
	{ "from any dtype to i64",
	  CONF_ALL,
	  { CONF_TX(DENSE, CONF_SHAPE(1500), .dtype = AIRUNNER_I64),
	    CONF_T(DENSE, 1500) } },
	{ "from any dtype to i64, strided",
	  CONF_ALL,
	  { CONF_TX(PERMUTED, CONF_SHAPE(7, 50), .dtype = AIRUNNER_I64),
	    CONF_T(GAPS, 7, 50) } },
	{ "special values to i64",
	  CONF_FLOATS,
	  { CONF_TX(DENSE, CONF_SHAPE(1500), .dtype = AIRUNNER_I64),
	    CONF_TX(DENSE, CONF_SHAPE(1500), .fill = CONF_SPECIAL) } },
	{ "all magnitudes to i64",
	  CONF_FLOATS,
	  { CONF_TX(DENSE, CONF_SHAPE(1500), .dtype = AIRUNNER_I64),
	    CONF_TX(DENSE, CONF_SHAPE(1500), .fill = CONF_WIDE) } },
	{ "transposed, large",
	  CONF_ALL,
	  { CONF_T(DENSE, 333, 70), CONF_T(PERMUTED, 333, 70) } },
	{ "transposed in a batch",
	  CONF_ALL,
	  { CONF_T(PADDED, 3, 65, 40), CONF_T(PERMUTED, 3, 65, 40) } },
	{ "transposed and reversed",
	  CONF_F32,
	  { CONF_T(REVERSED, 65, 40), CONF_T(PERMUTED, 65, 40) } },
	{ "transposed, enough for threads",
	  CONF_F32 | CONF_I8,
	  { CONF_T(DENSE, 700, 900), CONF_T(PERMUTED, 700, 900) },
	  .heavy = true },
	CONF_UNARY_REFUSED(),
};

const struct conf_op air_cases_copy = {
	.id = AIR_OP_copy,
	.reference = reference,
	.exact = true,
	CONF_CASES(cases),
};
