/* SPDX-License-Identifier: MIT */
/* Cases that operators have in common. */
#ifndef CONFORMANCE_CASES_H
#define CONFORMANCE_CASES_H

#include "tests/unit/conformance.h"

/*
 * y and one input of its shape, element by element. @D: dtypes, @A: further
 * fields (attributes) of each case.
 */
#define CONF_UNARY_CASES(D, ...)                                              \
	{ "tails",                                                            \
	  D,                                                                  \
	  { CONF_T(DENSE, CONF_N), CONF_T(DENSE, CONF_N) },                   \
	  ##__VA_ARGS__ },                                                    \
		{ "tails with gaps",                                          \
		  D,                                                          \
		  { CONF_T(GAPS, CONF_N), CONF_T(GAPS, CONF_N) },             \
		  ##__VA_ARGS__ },                                            \
		{ "tails, gaps in y",                                         \
		  D,                                                          \
		  { CONF_T(GAPS, CONF_N), CONF_T(DENSE, CONF_N) },            \
		  ##__VA_ARGS__ },                                            \
		{ "rows of all lengths",                                      \
		  D,                                                          \
		  { CONF_T(PADDED, 5, CONF_N), CONF_T(DENSE, 5, CONF_N) },    \
		  ##__VA_ARGS__ },                                            \
		{ "unaligned",                                                \
		  D,                                                          \
		  { CONF_TX(DENSE, CONF_SHAPE(1037), .misalign = 1),          \
		    CONF_TX(DENSE, CONF_SHAPE(1037), .misalign = 3) },        \
		  ##__VA_ARGS__ },                                            \
		{ "more than a block with gaps",                              \
		  D,                                                          \
		  { CONF_T(DENSE, 2500), CONF_T(GAPS, 2500) },                \
		  ##__VA_ARGS__ },                                            \
		{ "permuted x",                                               \
		  D,                                                          \
		  { CONF_T(DENSE, 7, 6, 35), CONF_T(PERMUTED, 7, 6, 35) },    \
		  ##__VA_ARGS__ },                                            \
		{ "permuted y",                                               \
		  D,                                                          \
		  { CONF_T(PERMUTED, 7, 6, 35), CONF_T(PADDED, 7, 6, 35) },   \
		  ##__VA_ARGS__ },                                            \
		{ "both permuted",                                            \
		  D,                                                          \
		  { CONF_T(PERMUTED, 4, 50), CONF_T(PERMUTED, 4, 50) },       \
		  ##__VA_ARGS__ },                                            \
		{ "reversed x",                                               \
		  D,                                                          \
		  { CONF_T(DENSE, 3, 70), CONF_T(REVERSED, 3, 70) },          \
		  ##__VA_ARGS__ },                                            \
		{ "reversed y",                                               \
		  D,                                                          \
		  { CONF_T(REVERSED, 3, 70), CONF_T(DENSE, 3, 70) },          \
		  ##__VA_ARGS__ },                                            \
		{ "both reversed",                                            \
		  D,                                                          \
		  { CONF_T(REVERSED, 70), CONF_T(REVERSED, 70) },             \
		  ##__VA_ARGS__ },                                            \
		{ "repeated rows",                                            \
		  D,                                                          \
		  { CONF_T(DENSE, 9, 40),                                     \
		    CONF_TX(DENSE, CONF_SHAPE(9, 40), .repeat = 1) },         \
		  ##__VA_ARGS__ },                                            \
		{ "repeated columns",                                         \
		  D,                                                          \
		  { CONF_T(DENSE, 9, 40),                                     \
		    CONF_TX(DENSE, CONF_SHAPE(9, 40), .repeat = 2) },         \
		  ##__VA_ARGS__ },                                            \
		{ "one element repeated",                                     \
		  D,                                                          \
		  { CONF_T(DENSE, 3, 1100),                                   \
		    CONF_TX(DENSE, CONF_SHAPE(3, 1100), .repeat = 3) },       \
		  ##__VA_ARGS__ },                                            \
		{ "scalar", D, { CONF_SCALAR, CONF_SCALAR }, ##__VA_ARGS__ }, \
		{ "eight dimensions",                                         \
		  D,                                                          \
		  { CONF_T(DENSE, 2, 1, 3, 2, 1, 2, 3, 2),                    \
		    CONF_T(PERMUTED, 2, 1, 3, 2, 1, 2, 3, 2) },               \
		  ##__VA_ARGS__ },                                            \
		{ "wild strides of size 1",                                   \
		  D,                                                          \
		  { CONF_T(ODD, 1, 5, 1, 7), CONF_T(ODD, 1, 5, 1, 7) },       \
		  ##__VA_ARGS__ },                                            \
		{ "no elements",                                              \
		  D,                                                          \
		  { CONF_T(DENSE, 0), CONF_T(DENSE, 0) },                     \
		  ##__VA_ARGS__ },                                            \
		{ "a dimension of 0",                                         \
		  D,                                                          \
		  { CONF_T(DENSE, 3, 0, 2), CONF_T(PERMUTED, 3, 0, 2) },      \
		  ##__VA_ARGS__ },                                            \
		{ "in place",                                                 \
		  D,                                                          \
		  { CONF_T(DENSE, 1500), CONF_T(DENSE, 1500) },               \
		  .in_place = 1,                                              \
		  ##__VA_ARGS__ },                                            \
		{ "in place with gaps",                                       \
		  D,                                                          \
		  { CONF_T(GAPS, 5, 300), CONF_T(GAPS, 5, 300) },             \
		  .in_place = 1,                                              \
		  ##__VA_ARGS__ },                                            \
		{ "enough for threads",                                       \
		  (D) & CONF_F32,                                     \
		  { CONF_T(DENSE, 300, 1001), CONF_T(DENSE, 300, 1001) },     \
		  .heavy = true,                                              \
		  ##__VA_ARGS__ },                                            \
	{                                                                     \
		"enough for threads, padded", (D) & (CONF_F16 | CONF_I8), \
			{ CONF_T(PADDED, 300, 1001),                          \
			  CONF_T(PADDED, 300, 1001) },                        \
			.heavy = true, ##__VA_ARGS__                          \
	}

/* What is refused of operators with y and one input of its shape. */
#define CONF_UNARY_REFUSED(...)                                     \
	{ "other shape",                                            \
	  CONF_F32,                                                 \
	  { CONF_T(DENSE, 4, 6), CONF_T(DENSE, 4, 5) },             \
	  .refused = AIR_BAD_SHAPE,                                 \
	  ##__VA_ARGS__ },                                          \
		{ "other number of dimensions",                     \
		  CONF_F32,                                         \
		  { CONF_T(DENSE, 4, 6), CONF_T(DENSE, 24) },       \
		  .refused = AIR_BAD_SHAPE,                         \
		  ##__VA_ARGS__ },                                  \
		{ "output repeats",                                 \
		  CONF_F32,                                         \
		  { CONF_TX(DENSE, CONF_SHAPE(4, 6), .repeat = 1),  \
		    CONF_T(DENSE, 4, 6) },                          \
		  .refused = AIR_BAD_STRIDES,                       \
		  ##__VA_ARGS__ },                                  \
	{                                                           \
		"input is missing", CONF_F32, { CONF_T(DENSE, 4) }, \
			.refused = AIR_BAD_ARGUMENT, ##__VA_ARGS__  \
	}

/* The same for y and two inputs. */
#define CONF_BINARY_CASES(D)                                                   \
	{ "tails",                                                             \
	  D,                                                                   \
	  { CONF_T(DENSE, CONF_N), CONF_T(DENSE, CONF_N),                      \
	    CONF_T(DENSE, CONF_N) } },                                         \
		{ "tails with gaps",                                           \
		  D,                                                           \
		  { CONF_T(GAPS, CONF_N), CONF_T(GAPS, CONF_N),                \
		    CONF_T(GAPS, CONF_N) } },                                  \
		{ "unaligned",                                                 \
		  D,                                                           \
		  { CONF_TX(DENSE, CONF_SHAPE(1037), .misalign = 1),           \
		    CONF_TX(DENSE, CONF_SHAPE(1037), .misalign = 2),           \
		    CONF_TX(DENSE, CONF_SHAPE(1037), .misalign = 3) } },       \
		{ "permuted",                                                  \
		  D,                                                           \
		  { CONF_T(DENSE, 5, 6, 35), CONF_T(PERMUTED, 5, 6, 35),       \
		    CONF_T(PADDED, 5, 6, 35) } },                              \
		{ "permuted y",                                                \
		  D,                                                           \
		  { CONF_T(PERMUTED, 5, 6, 35), CONF_T(DENSE, 5, 6, 35),       \
		    CONF_T(PERMUTED, 5, 6, 35) } },                            \
		{ "reversed",                                                  \
		  D,                                                           \
		  { CONF_T(DENSE, 3, 70), CONF_T(REVERSED, 3, 70),             \
		    CONF_T(DENSE, 3, 70) } },                                  \
		{ "a repeats rows, b columns",                                 \
		  D,                                                           \
		  { CONF_T(DENSE, 9, 40),                                      \
		    CONF_TX(DENSE, CONF_SHAPE(9, 40), .repeat = 1),            \
		    CONF_TX(DENSE, CONF_SHAPE(9, 40), .repeat = 2) } },        \
		{ "b is one element",                                          \
		  D,                                                           \
		  { CONF_T(DENSE, 3, 1100), CONF_T(DENSE, 3, 1100),            \
		    CONF_TX(DENSE, CONF_SHAPE(3, 1100), .repeat = 3) } },      \
		{ "scalar", D, { CONF_SCALAR, CONF_SCALAR, CONF_SCALAR } },    \
		{ "eight dimensions",                                          \
		  D,                                                           \
		  { CONF_T(DENSE, 2, 1, 3, 2, 1, 2, 3, 2),                     \
		    CONF_T(PERMUTED, 2, 1, 3, 2, 1, 2, 3, 2),                  \
		    CONF_TX(DENSE, CONF_SHAPE(2, 1, 3, 2, 1, 2, 3, 2),         \
			    .repeat = 0x14) } },                               \
		{ "wild strides of size 1",                                    \
		  D,                                                           \
		  { CONF_T(ODD, 1, 5, 1, 7), CONF_T(ODD, 1, 5, 1, 7),          \
		    CONF_T(DENSE, 1, 5, 1, 7) } },                             \
		{ "no elements",                                               \
		  D,                                                           \
		  { CONF_T(DENSE, 3, 0), CONF_T(DENSE, 3, 0),                  \
		    CONF_T(DENSE, 3, 0) } },                                   \
		{ "in place with a",                                           \
		  D,                                                           \
		  { CONF_T(DENSE, 1500), CONF_T(DENSE, 1500),                  \
		    CONF_T(GAPS, 1500) },                                      \
		  .in_place = 1 },                                             \
		{ "in place with b",                                           \
		  D,                                                           \
		  { CONF_T(PADDED, 5, 300), CONF_T(DENSE, 5, 300),             \
		    CONF_T(PADDED, 5, 300) },                                  \
		  .in_place = 2 },                                             \
		{ "NaN and Inf",                                               \
		  D,                                                           \
		  { CONF_T(DENSE, 500),                                        \
		    CONF_TX(DENSE, CONF_SHAPE(500), .fill = CONF_SPECIAL),     \
		    CONF_TX(DENSE, CONF_SHAPE(500), .fill = CONF_SPECIAL) } }, \
		{ "all magnitudes",                                            \
		  D,                                                           \
		  { CONF_T(DENSE, 500),                                        \
		    CONF_TX(DENSE, CONF_SHAPE(500), .fill = CONF_WIDE),        \
		    CONF_TX(DENSE, CONF_SHAPE(500), .fill = CONF_WIDE) } },    \
		{ "enough for threads",                                        \
		  (D) & CONF_F32,                                     \
		  { CONF_T(DENSE, 300, 1001), CONF_T(DENSE, 300, 1001),        \
		    CONF_T(DENSE, 300, 1001) },                                \
		  .heavy = true },                                             \
		{ "other shape",                                               \
		  CONF_F32,                                                    \
		  { CONF_T(DENSE, 4, 6), CONF_T(DENSE, 4, 6),                  \
		    CONF_T(DENSE, 4, 5) },                                     \
		  .refused = AIR_BAD_SHAPE },                                  \
		{ "other dtype",                                               \
		  CONF_F32,                                                    \
		  { CONF_T(DENSE, 4, 6), CONF_T(DENSE, 4, 6),                  \
		    CONF_TX(DENSE, CONF_SHAPE(4, 6), .dtype = AIRUNNER_F16) }, \
		  .refused = AIR_BAD_DTYPE },                                  \
		{ "integers",                                                  \
		  CONF_I32,                                                    \
		  { CONF_T(DENSE, 4), CONF_T(DENSE, 4), CONF_T(DENSE, 4) },    \
		  .refused = AIR_BAD_DTYPE },                                  \
		{ "output repeats",                                            \
		  CONF_F32,                                                    \
		  { CONF_TX(DENSE, CONF_SHAPE(4, 6), .repeat = 2),             \
		    CONF_T(DENSE, 4, 6), CONF_T(DENSE, 4, 6) },                \
		  .refused = AIR_BAD_STRIDES },                                \
	{                                                                      \
		"input is missing", CONF_F32,                                  \
			{ CONF_T(DENSE, 4), CONF_T(DENSE, 4) },                \
			.refused = AIR_BAD_ARGUMENT                            \
	}

/* A vector of @n filled so, y and x. */
#define CONF_FILLED(name, D, n, how, ...)                                      \
	{                                                                      \
		name, D,                                                       \
			{ CONF_T(DENSE, n),                                    \
			  CONF_TX(DENSE, CONF_SHAPE(n), .fill = CONF_##how) }, \
			##__VA_ARGS__                                          \
	}

#endif /* CONFORMANCE_CASES_H */
