// SPDX-License-Identifier: MIT
#include <math.h>

#include "ops/embedding/embedding.h"
#include "tests/unit/conformance_cases.h"

static void reference(const struct conf_call *c)
{
	const struct airunner_tensor *table =
		&c->d->tensor[AIR_EMBEDDING_TABLE];
	bool integer = AIR_DTYPES_INT & AIR_DTYPE_BIT(table->dtype);
	int64_t row = 1;

	for (uint32_t i = 1; i < table->ndim; i++)
		row *= table->shape[i];
	for (int64_t i = 0; row && i < c->count[AIR_EMBEDDING_Y]; i++) {
		int64_t at = (int64_t)c->in[AIR_EMBEDDING_INDICES][i / row];

		if (at >= 0 && at < table->shape[0])
			c->out[i] =
				c->in[AIR_EMBEDDING_TABLE][at * row + i % row];
		else
			c->out[i] = integer ? 0 : NAN;
	}
}

#define INDEX(how, type, n, ...)                                               \
	CONF_TX(how, .dtype = AIRUNNER_##type, .fill = CONF_INDEX, .limit = n, \
		##__VA_ARGS__)

static const struct conf_case cases[] = {
	{ "rows of all lengths",
	  CONF_ALL,
	  { CONF_T(DENSE, 5, CONF_N), CONF_T(DENSE, 50, CONF_N),
	    INDEX(DENSE, I32, 50, CONF_SHAPE(5)) } },
	{ "i64",
	  CONF_ALL,
	  { CONF_T(DENSE, 9, 40), CONF_T(DENSE, 50, 40),
	    INDEX(DENSE, I64, 50, CONF_SHAPE(9)) } },
	{ "batches",
	  CONF_ALL,
	  { CONF_T(DENSE, 2, 9, 40), CONF_T(DENSE, 50, 40),
	    INDEX(DENSE, I64, 50, CONF_SHAPE(2, 9)) } },
	{ "one index",
	  CONF_ALL,
	  { CONF_T(DENSE, 40), CONF_T(DENSE, 50, 40), INDEX(DENSE, I32, 50) } },
	{ "a vector as the table",
	  CONF_ALL,
	  { CONF_T(DENSE, 3, 4), CONF_T(DENSE, 50),
	    INDEX(DENSE, I32, 50, CONF_SHAPE(3, 4)) } },
	{ "one element",
	  CONF_ALL,
	  { CONF_SCALAR, CONF_T(DENSE, 50), INDEX(DENSE, I32, 50) } },
	{ "matrices",
	  CONF_ALL,
	  { CONF_T(DENSE, 5, 4, 30), CONF_T(PERMUTED, 50, 4, 30),
	    INDEX(DENSE, I32, 50, CONF_SHAPE(5)) } },
	{ "with gaps",
	  CONF_ALL,
	  { CONF_T(GAPS, 9, 40), CONF_T(GAPS, 50, 40),
	    INDEX(GAPS, I32, 50, CONF_SHAPE(9)) } },
	{ "permuted",
	  CONF_ALL,
	  { CONF_T(PERMUTED, 2, 9, 40), CONF_T(DENSE, 50, 40),
	    INDEX(PERMUTED, I64, 50, CONF_SHAPE(2, 9)) } },
	{ "reversed",
	  CONF_ALL,
	  { CONF_T(REVERSED, 9, 40), CONF_T(REVERSED, 50, 40),
	    INDEX(REVERSED, I64, 50, CONF_SHAPE(9)) } },
	{ "the same index",
	  CONF_ALL,
	  { CONF_T(DENSE, 9, 40), CONF_T(DENSE, 50, 40),
	    INDEX(DENSE, I64, 50, CONF_SHAPE(9), .repeat = 1) } },
	{ "unaligned",
	  CONF_ALL,
	  { CONF_TX(DENSE, CONF_SHAPE(9, 41), .misalign = 1),
	    CONF_TX(DENSE, CONF_SHAPE(50, 41), .misalign = 3),
	    INDEX(DENSE, I32, 50, CONF_SHAPE(9), .misalign = 1) } },
	{ "indices outside",
	  CONF_ALL,
	  { CONF_T(DENSE, 60, 40), CONF_T(DENSE, 50, 40),
	    CONF_TX(DENSE, CONF_SHAPE(60), .dtype = AIRUNNER_I32,
		    .fill = CONF_BAD_INDEX, .limit = 50) },
	  .status = AIR_BAD_RANGE },
	{ "indices outside, permuted",
	  CONF_ALL,
	  { CONF_T(PERMUTED, 60, 40), CONF_T(DENSE, 50, 40),
	    CONF_TX(DENSE, CONF_SHAPE(60), .dtype = AIRUNNER_I64,
		    .fill = CONF_BAD_INDEX, .limit = 50) },
	  .status = AIR_BAD_RANGE },
	{ "an empty table",
	  CONF_ALL,
	  { CONF_T(DENSE, 60, 4), CONF_T(DENSE, 0, 4),
	    CONF_TX(DENSE, CONF_SHAPE(60), .dtype = AIRUNNER_I64,
		    .fill = CONF_BAD_INDEX, .limit = 1) },
	  .status = AIR_BAD_RANGE },
	{ "no indices",
	  CONF_ALL,
	  { CONF_T(DENSE, 0, 40), CONF_T(DENSE, 50, 40),
	    INDEX(DENSE, I32, 50, CONF_SHAPE(0)) } },
	{ "many",
	  CONF_ALL,
	  { CONF_T(DENSE, 2000, 300), CONF_T(DENSE, 50, 300),
	    INDEX(DENSE, I32, 50, CONF_SHAPE(2000)) },
	  .heavy = true },
	{ "y of another shape",
	  CONF_F32,
	  { CONF_T(DENSE, 9, 41), CONF_T(DENSE, 50, 40),
	    INDEX(DENSE, I32, 50, CONF_SHAPE(9)) },
	  .refused = AIR_BAD_SHAPE },
	{ "y of another dtype",
	  CONF_F32,
	  { CONF_TX(DENSE, CONF_SHAPE(9, 40), .dtype = AIRUNNER_F16),
	    CONF_T(DENSE, 50, 40), INDEX(DENSE, I32, 50, CONF_SHAPE(9)) },
	  .refused = AIR_BAD_DTYPE },
	{ "indices in i8",
	  CONF_F32,
	  { CONF_T(DENSE, 9, 40), CONF_T(DENSE, 50, 40),
	    INDEX(DENSE, I8, 50, CONF_SHAPE(9)) },
	  .refused = AIR_BAD_DTYPE },
	{ "a scalar as the table",
	  CONF_F32,
	  { CONF_T(DENSE, 9), CONF_SCALAR,
	    INDEX(DENSE, I32, 50, CONF_SHAPE(9)) },
	  .refused = AIR_BAD_SHAPE },
	{ "more than eight dimensions",
	  CONF_F32,
	  { CONF_T(DENSE, 1, 1, 1, 1, 1, 1, 1, 1),
	    CONF_T(DENSE, 1, 1, 1, 1, 1, 1),
	    INDEX(DENSE, I32, 1, CONF_SHAPE(1, 1, 1, 1)) },
	  .refused = AIR_BAD_SHAPE },
	{ "output repeats",
	  CONF_F32,
	  { CONF_TX(DENSE, CONF_SHAPE(9, 40), .repeat = 1),
	    CONF_T(DENSE, 50, 40), INDEX(DENSE, I32, 50, CONF_SHAPE(9)) },
	  .refused = AIR_BAD_STRIDES },
};

const struct conf_op air_cases_embedding = {
	.id = AIR_OP_embedding,
	.reference = reference,
	.exact = true,
	CONF_CASES(cases),
};
