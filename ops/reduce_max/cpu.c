// SPDX-License-Identifier: MIT
#include "ops/math.h"
#include "ops/reduce_cpu.h"
#include "ops/reduce_max/reduce_max.h"

/* The larger, or whichever is NaN. */
AIR_INLINE void raise_to(float *a, const float *x, uint64_t n)
{
	AIR_IVDEP
	for (uint64_t i = 0; i < n; i++)
		a[i] = x[i] > a[i] || x[i] != x[i] ? x[i] : a[i];
}
AIR_VERSIONS(raise_to, (float *a, const float *x, uint64_t n), (a, x, n))

static void float_combine(union air_acc *a, const union air_acc *b)
{
	if (b->f > a->f || isnan(b->f))
		a->f = b->f;
}

static void float_row(union air_acc *a, const struct air_reduce_in *in,
		      const char *p, uint64_t n)
{
	air_max_fn largest = air_maximizer();
	float tmp[AIR_BLOCK];

	for (uint64_t at = 0; at < n; at += AIR_BLOCK) {
		uint64_t m = n - at < AIR_BLOCK ? n - at : AIR_BLOCK;
		union air_acc part;
		float top;

		largest(air_vec_load(&in->along, p, at, m, tmp), m, &top);
		part.f = top;
		float_combine(a, &part);
	}
}

static void float_columns(union air_acc *a, const struct air_reduce_in *in,
			  const char *p, uint64_t rows, uint64_t n)
{
	float tmp[AIR_COLUMNS], top[AIR_COLUMNS];

	for (uint64_t i = 0; i < n; i++)
		top[i] = (float)a[i].f;
	for (uint64_t r = 0; r < rows; r++) {
		AIR_BEST(raise_to)
		(top, air_vec_load(&in->across, p, 0, n, tmp), n);
		p += in->along.stride;
	}
	for (uint64_t i = 0; i < n; i++)
		a[i].f = top[i];
}

#define LARGER(a, v) ((v) > (a) ? (v) : (a))

AIR_REDUCE_INT(i32, int32_t, LARGER)
AIR_REDUCE_INT(i8, int8_t, LARGER)
AIR_REDUCE_INT(i64, int64_t, LARGER)

static void int_combine(union air_acc *a, const union air_acc *b)
{
	a->i = LARGER(a->i, b->i);
}

static const struct air_reducer floats = {
	{ .f = -INFINITY }, float_row, float_columns, float_combine
};
static const struct air_reducer i32 = {
	{ .i = INT64_MIN }, i32_row, i32_columns, int_combine
};
static const struct air_reducer i8 = {
	{ .i = INT64_MIN }, i8_row, i8_columns, int_combine
};
static const struct air_reducer i64 = {
	{ .i = INT64_MIN }, i64_row, i64_columns, int_combine
};

air_status air_reduce_max_cpu_plan(const struct airunner_desc *d,
				   struct air_cpu_plan **out,
				   struct air_error *e)
{
	const struct air_reducer *reducer = &floats;

	if (d->tensor[AIR_REDUCE_X].dtype == AIRUNNER_I32)
		reducer = &i32;
	else if (d->tensor[AIR_REDUCE_X].dtype == AIRUNNER_I8)
		reducer = &i8;
	else if (d->tensor[AIR_REDUCE_X].dtype == AIRUNNER_I64)
		reducer = &i64;
	return air_reduce_plan(d, reducer, out, e);
}
