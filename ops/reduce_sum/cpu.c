// SPDX-License-Identifier: MIT
#include "ops/math.h"
#include "ops/reduce_cpu.h"
#include "ops/reduce_sum/reduce_sum.h"

/* Rows added up in f32, one after the other, before they go to f64. */
#define ROWS 32

AIR_INLINE void add_to(float *a, const float *x, uint64_t n)
{
	AIR_IVDEP
	for (uint64_t i = 0; i < n; i++)
		a[i] += x[i];
}
AIR_VERSIONS(add_to, (float *a, const float *x, uint64_t n), (a, x, n))

AIR_INLINE void add_up(union air_acc *a, const float *x, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		a[i].f += x[i];
}
AIR_VERSIONS(add_up, (union air_acc * a, const float *x, uint64_t n), (a, x, n))

static void float_row(union air_acc *a, const struct air_reduce_in *in,
		      const char *p, uint64_t n)
{
	air_sum_fn sum = air_summer();
	float tmp[AIR_BLOCK];

	for (uint64_t at = 0; at < n; at += AIR_BLOCK) {
		uint64_t m = n - at < AIR_BLOCK ? n - at : AIR_BLOCK;
		double part;

		sum(air_vec_load(&in->along, p, at, m, tmp), m, &part);
		a->f += part;
	}
}

static void float_columns(union air_acc *a, const struct air_reduce_in *in,
			  const char *p, uint64_t rows, uint64_t n)
{
	float tmp[AIR_COLUMNS], sum[AIR_COLUMNS];

	for (uint64_t r = 0; r < rows; r += ROWS) {
		memset(sum, 0, n * sizeof(sum[0]));
		for (uint64_t k = r; k < rows && k < r + ROWS; k++)
			AIR_BEST(add_to)
		(sum,
		 air_vec_load(&in->across, p + (int64_t)k * in->along.stride, 0,
			      n, tmp),
		 n);
		AIR_BEST(add_up)(a, sum, n);
	}
}

static void float_combine(union air_acc *a, const union air_acc *b)
{
	a->f += b->f;
}

/* Modulo 2^64, and so modulo 2^8 and 2^32 as well. */
#define ADD(a, v) ((int64_t)((uint64_t)(a) + (uint64_t)(int64_t)(v)))

AIR_REDUCE_INT(i32, int32_t, ADD)
AIR_REDUCE_INT(i8, int8_t, ADD)
AIR_REDUCE_INT(i64, int64_t, ADD)

static void int_combine(union air_acc *a, const union air_acc *b)
{
	a->i = ADD(a->i, b->i);
}

static const struct air_reducer floats = {
	{ .f = 0 }, float_row, float_columns, float_combine
};
static const struct air_reducer i32 = {
	{ .i = 0 }, i32_row, i32_columns, int_combine
};
static const struct air_reducer i8 = {
	{ .i = 0 }, i8_row, i8_columns, int_combine
};
static const struct air_reducer i64 = {
	{ .i = 0 }, i64_row, i64_columns, int_combine
};

air_status air_reduce_sum_cpu_plan(const struct airunner_desc *d,
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
