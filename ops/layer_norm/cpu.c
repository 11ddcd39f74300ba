// SPDX-License-Identifier: MIT
#include "ops/layer_norm/layer_norm.h"
#include "ops/math.h"
#include "ops/norm.h"

AIR_INLINE void square_difference(float *y, const float *x, uint64_t n,
				  float mean)
{
	for (uint64_t i = 0; i < n; i++)
		y[i] = (x[i] - mean) * (x[i] - mean);
}
AIR_VERSIONS(square_difference,
	     (float *y, const float *x, uint64_t n, float mean),
	     (y, x, n, mean))

AIR_INLINE void normalize(float *y, const float *x, uint64_t n, float mean,
			  float by)
{
	AIR_IVDEP
	for (uint64_t i = 0; i < n; i++)
		y[i] = (x[i] - mean) * by;
}
AIR_VERSIONS(normalize,
	     (float *y, const float *x, uint64_t n, float mean, float by),
	     (y, x, n, mean, by))

AIR_INLINE void multiply(float *y, const float *w, uint64_t n)
{
	AIR_IVDEP
	for (uint64_t i = 0; i < n; i++)
		y[i] *= w[i];
}
AIR_VERSIONS(multiply, (float *y, const float *w, uint64_t n), (y, w, n))

AIR_INLINE void shift(float *y, const float *b, uint64_t n)
{
	AIR_IVDEP
	for (uint64_t i = 0; i < n; i++)
		y[i] += b[i];
}
AIR_VERSIONS(shift, (float *y, const float *b, uint64_t n), (y, b, n))

static float row_mean(const struct air_norm *norm, const char *x)
{
	air_sum_fn sum = air_summer();
	float tmp[AIR_BLOCK];
	double total = 0;

	for (uint64_t at = 0; at < norm->length; at += AIR_BLOCK) {
		uint64_t n = air_norm_block(norm, at);
		double part;

		sum(air_vec_load(&norm->vec[AIR_NORM_X], x, at, n, tmp), n,
		    &part);
		total += part;
	}
	return (float)(total / norm->length);
}

static float row_variance(const struct air_norm *norm, const char *x,
			  float mean)
{
	air_sum_fn sum = air_summer();
	float tmp[AIR_BLOCK], square[AIR_BLOCK];
	double total = 0;

	for (uint64_t at = 0; at < norm->length; at += AIR_BLOCK) {
		uint64_t n = air_norm_block(norm, at);
		double part;

		AIR_BEST(square_difference)
		(square, air_vec_load(&norm->vec[AIR_NORM_X], x, at, n, tmp), n,
		 mean);
		sum(square, n, &part);
		total += part;
	}
	return (float)(total / norm->length);
}

static void row(const struct air_norm *norm, char *const p[4])
{
	const struct air_vec *v = norm->vec;
	float tx[AIR_BLOCK], ty[AIR_BLOCK], tmp[AIR_BLOCK];
	float mean = row_mean(norm, p[AIR_NORM_X]);
	float variance = row_variance(norm, p[AIR_NORM_X], mean);
	float by = 1.0f / sqrtf(variance + norm->epsilon);

	for (uint64_t at = 0; at < norm->length; at += AIR_BLOCK) {
		uint64_t n = air_norm_block(norm, at);
		float *y =
			air_vec_target(&v[AIR_NORM_Y], p[AIR_NORM_Y], at, ty);

		AIR_BEST(normalize)
		(y, air_vec_load(&v[AIR_NORM_X], p[AIR_NORM_X], at, n, tx), n,
		 mean, by);
		if (p[AIR_NORM_WEIGHT])
			AIR_BEST(multiply)
		(y,
		 air_vec_load(&v[AIR_NORM_WEIGHT], p[AIR_NORM_WEIGHT], at, n,
			      tmp),
		 n);
		if (p[AIR_NORM_BIAS])
			AIR_BEST(shift)
		(y,
		 air_vec_load(&v[AIR_NORM_BIAS], p[AIR_NORM_BIAS], at, n, tmp),
		 n);
		air_vec_store(&v[AIR_NORM_Y], p[AIR_NORM_Y], at, n, y);
	}
}

air_status air_layer_norm_cpu_plan(const struct airunner_desc *d,
				   struct air_cpu_plan **out,
				   struct air_error *e)
{
	return air_norm_plan(d, air_attr_f64(d, AIR_LAYER_NORM_EPSILON), row,
			     out, e);
}
