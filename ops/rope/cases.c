// SPDX-License-Identifier: MIT
#include <airunner/ops/rope.h>
#include <math.h>

#include "ops/rope/rope.h"
#include "tests/unit/conformance_cases.h"

static void head(const struct conf_call *c, int64_t at, int64_t pos)
{
	const struct airunner_tensor *y = &c->d->tensor[AIR_ROPE_Y];
	const struct airunner_tensor *table = &c->d->tensor[AIR_ROPE_COS];
	bool halves = c->d->attr[AIR_ROPE_STYLE] == AIR_ROPE_HALVES;
	int64_t pairs = table->shape[1], size = y->shape[y->ndim - 1];
	bool valid = pos >= 0 && pos < table->shape[0];
	const conf_real *x = c->in[AIR_ROPE_X] + at;
	conf_real *out = c->out + at, *mag = c->mag + at;

	for (int64_t k = 0; k < size; k++)
		out[k] = x[k];
	for (int64_t k = 0; k < pairs; k++) {
		int64_t i = halves ? k : 2 * k;
		int64_t j = halves ? k + pairs : 2 * k + 1;
		conf_real cos = NAN, sin = NAN;

		if (valid) {
			cos = c->in[AIR_ROPE_COS][pos * pairs + k];
			sin = c->in[AIR_ROPE_SIN][pos * pairs + k];
		}
		out[i] = x[i] * cos - x[j] * sin;
		out[j] = x[j] * cos + x[i] * sin;
		mag[i] = fabsl(x[i] * cos) + fabsl(x[j] * sin);
		mag[j] = fabsl(x[j] * cos) + fabsl(x[i] * sin);
	}
}

static void reference(const struct conf_call *c)
{
	const struct airunner_tensor *y = &c->d->tensor[AIR_ROPE_Y];
	int64_t tokens = y->shape[y->ndim - 3];
	int64_t heads = y->shape[y->ndim - 2];
	int64_t size = y->shape[y->ndim - 1];

	if (!c->count[AIR_ROPE_Y])
		return;
	for (int64_t i = 0; i < c->count[AIR_ROPE_Y] / size; i++) {
		int64_t t = i / heads;
		const conf_real *pos = c->in[AIR_ROPE_POSITIONS];

		head(c, i * size, pos ? (int64_t)pos[t] : t % tokens);
	}
}

/* Tables of 32 positions. */
#define TABLE(pairs, ...) CONF_TX(DENSE, CONF_SHAPE(32, pairs), ##__VA_ARGS__)
#define POSITIONS(how, type, ...)                                  \
	CONF_TX(how, .dtype = AIRUNNER_##type, .fill = CONF_INDEX, \
		.limit = 32, ##__VA_ARGS__)
#define HALVES .attr = { AIR_ROPE_HALVES }
#define PAIRS  .attr = { AIR_ROPE_PAIRS }

static const struct conf_case cases[] = {
	{ "halves",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 7, 3, 64), CONF_T(DENSE, 7, 3, 64), TABLE(32),
	    TABLE(32) },
	  HALVES },
	{ "pairs",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 7, 3, 64), CONF_T(DENSE, 7, 3, 64), TABLE(32),
	    TABLE(32) },
	  PAIRS },
	{ "tables of all widths",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 7, 3, 40), CONF_T(DENSE, 7, 3, 40), TABLE(CONF_N),
	    TABLE(CONF_N) },
	  HALVES },
	{ "tables of all widths, pairs",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 7, 3, 40), CONF_T(DENSE, 7, 3, 40), TABLE(CONF_N),
	    TABLE(CONF_N) },
	  PAIRS },
	{ "tables in f32",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 7, 3, 64), CONF_T(DENSE, 7, 3, 64),
	    TABLE(32, .dtype = AIRUNNER_F32),
	    TABLE(32, .dtype = AIRUNNER_F32) },
	  HALVES },
	{ "positions i32",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 2, 7, 3, 64), CONF_T(DENSE, 2, 7, 3, 64), TABLE(32),
	    TABLE(32), POSITIONS(DENSE, I32, CONF_SHAPE(2, 7)) },
	  HALVES },
	{ "positions i64",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 2, 7, 3, 64), CONF_T(DENSE, 2, 7, 3, 64), TABLE(32),
	    TABLE(32), POSITIONS(GAPS, I64, CONF_SHAPE(2, 7)) },
	  PAIRS },
	{ "the same positions in each batch",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 2, 7, 3, 64), CONF_T(DENSE, 2, 7, 3, 64), TABLE(32),
	    TABLE(32), POSITIONS(DENSE, I32, CONF_SHAPE(2, 7), .repeat = 1) },
	  HALVES },
	{ "batches without positions",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 2, 3, 7, 3, 16), CONF_T(DENSE, 2, 3, 7, 3, 16),
	    TABLE(8), TABLE(8) },
	  HALVES },
	{ "wide heads",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 3, 2, 3000), CONF_T(DENSE, 3, 2, 3000), TABLE(1500),
	    TABLE(1500) },
	  HALVES },
	{ "wide heads, pairs",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 3, 2, 3000), CONF_T(DENSE, 3, 2, 3000), TABLE(1400),
	    TABLE(1400) },
	  PAIRS },
	{ "with gaps",
	  CONF_FLOATS,
	  { CONF_T(GAPS, 7, 3, 64), CONF_T(GAPS, 7, 3, 64),
	    CONF_T(GAPS, 32, 30), CONF_T(GAPS, 32, 30) },
	  HALVES },
	{ "permuted",
	  CONF_FLOATS,
	  { CONF_T(PERMUTED, 2, 7, 3, 64), CONF_T(DENSE, 2, 7, 3, 64),
	    CONF_T(PERMUTED, 32, 30), TABLE(30) },
	  HALVES },
	{ "permuted x",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 2, 7, 3, 64), CONF_T(PERMUTED, 2, 7, 3, 64),
	    TABLE(30), TABLE(30) },
	  PAIRS },
	{ "reversed",
	  CONF_FLOATS,
	  { CONF_T(REVERSED, 7, 3, 64), CONF_T(REVERSED, 7, 3, 64),
	    CONF_T(REVERSED, 32, 30), TABLE(30) },
	  HALVES },
	{ "unaligned",
	  CONF_FLOATS,
	  { CONF_TX(DENSE, CONF_SHAPE(7, 3, 64), .misalign = 1),
	    CONF_TX(DENSE, CONF_SHAPE(7, 3, 64), .misalign = 3),
	    TABLE(32, .misalign = 1), TABLE(32, .misalign = 3) },
	  HALVES },
	{ "in place",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 7, 3, 64), CONF_T(DENSE, 7, 3, 64), TABLE(30),
	    TABLE(30) },
	  .in_place = 1,
	  HALVES },
	{ "in place, pairs",
	  CONF_FLOATS,
	  { CONF_T(PADDED, 7, 3, 64), CONF_T(PADDED, 7, 3, 64), TABLE(30),
	    TABLE(30) },
	  .in_place = 1,
	  PAIRS },
	{ "positions outside",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 50, 3, 16), CONF_T(DENSE, 50, 3, 16), TABLE(6),
	    TABLE(6),
	    CONF_TX(DENSE, CONF_SHAPE(50), .dtype = AIRUNNER_I64,
		    .fill = CONF_BAD_INDEX, .limit = 32) },
	  .status = AIR_BAD_RANGE,
	  HALVES },
	{ "NaN and Inf",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 30, 3, 16),
	    CONF_TX(DENSE, CONF_SHAPE(30, 3, 16), .fill = CONF_SPECIAL),
	    TABLE(8), TABLE(8) },
	  PAIRS },
	{ "no tokens",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 0, 3, 16), CONF_T(DENSE, 0, 3, 16), TABLE(8),
	    TABLE(8) },
	  PAIRS },
	{ "no heads",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 5, 0, 16), CONF_T(DENSE, 5, 0, 16), TABLE(8),
	    TABLE(8) },
	  PAIRS },
	{ "many tokens",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 4, 32, 8, 128), CONF_T(DENSE, 4, 32, 8, 128),
	    TABLE(64), TABLE(64) },
	  HALVES,
	  .heavy = true },
	{ "fewer rows than tokens",
	  CONF_F32,
	  { CONF_T(DENSE, 33, 3, 16), CONF_T(DENSE, 33, 3, 16), TABLE(8),
	    TABLE(8) },
	  .refused = AIR_BAD_SHAPE },
	{ "tables wider than half a head",
	  CONF_F32,
	  { CONF_T(DENSE, 7, 3, 16), CONF_T(DENSE, 7, 3, 16), TABLE(9),
	    TABLE(9) },
	  .refused = AIR_BAD_SHAPE },
	{ "tables that differ",
	  CONF_F32,
	  { CONF_T(DENSE, 7, 3, 16), CONF_T(DENSE, 7, 3, 16), TABLE(8),
	    TABLE(7) },
	  .refused = AIR_BAD_SHAPE },
	{ "two dimensions",
	  CONF_F32,
	  { CONF_T(DENSE, 7, 16), CONF_T(DENSE, 7, 16), TABLE(8), TABLE(8) },
	  .refused = AIR_BAD_SHAPE },
	{ "positions of another shape",
	  CONF_F32,
	  { CONF_T(DENSE, 2, 7, 3, 16), CONF_T(DENSE, 2, 7, 3, 16), TABLE(8),
	    TABLE(8), POSITIONS(DENSE, I32, CONF_SHAPE(7)) },
	  .refused = AIR_BAD_SHAPE },
	{ "positions in f32",
	  CONF_F32,
	  { CONF_T(DENSE, 7, 3, 16), CONF_T(DENSE, 7, 3, 16), TABLE(8),
	    TABLE(8), CONF_T(DENSE, 7) },
	  .refused = AIR_BAD_DTYPE },
	{ "tables of another dtype",
	  CONF_F16,
	  { CONF_T(DENSE, 7, 3, 16), CONF_T(DENSE, 7, 3, 16),
	    TABLE(8, .dtype = AIRUNNER_BF16),
	    TABLE(8, .dtype = AIRUNNER_BF16) },
	  .refused = AIR_BAD_DTYPE },
	{ "no such style",
	  CONF_F32,
	  { CONF_T(DENSE, 7, 3, 16), CONF_T(DENSE, 7, 3, 16), TABLE(8),
	    TABLE(8) },
	  .attr = { 2 },
	  .refused = AIR_BAD_ATTRIBUTE },
};

const struct conf_op air_cases_rope = {
	.id = AIR_OP_rope,
	.reference = reference,
	.error = 3,
	CONF_CASES(cases),
};
