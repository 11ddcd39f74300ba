// SPDX-License-Identifier: MIT
#include "ops/math.h"
#include "ops/norm.h"
#include "ops/rms_norm/rms_norm.h"

AIR_INLINE void square(float *y, const float *x, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		y[i] = x[i] * x[i];
}
AIR_VERSIONS(square, (float *y, const float *x, uint64_t n), (y, x, n))

/* @w may be NULL */
AIR_INLINE void apply(float *y, const float *x, const float *w, uint64_t n,
		      float by)
{
	if (!w) {
		AIR_IVDEP
		for (uint64_t i = 0; i < n; i++)
			y[i] = x[i] * by;
		return;
	}
	AIR_IVDEP
	for (uint64_t i = 0; i < n; i++)
		y[i] = x[i] * by * w[i];
}
AIR_VERSIONS(apply,
	     (float *y, const float *x, const float *w, uint64_t n, float by),
	     (y, x, w, n, by))

static void row(const struct air_norm *norm, char *const p[4])
{
	const struct air_vec *v = norm->vec;
	const float *w = NULL;
	float tx[AIR_BLOCK], ty[AIR_BLOCK], tw[AIR_BLOCK];
	double total = 0;
	float by;

	for (uint64_t at = 0; at < norm->length; at += AIR_BLOCK) {
		uint64_t n = air_norm_block(norm, at);
		double part;

		AIR_BEST(square)
		(ty, air_vec_load(&v[AIR_NORM_X], p[AIR_NORM_X], at, n, tx), n);
		air_summer()(ty, n, &part);
		total += part;
	}
	by = 1.0f / sqrtf((float)(total / norm->length) + norm->epsilon);
	for (uint64_t at = 0; at < norm->length; at += AIR_BLOCK) {
		uint64_t n = air_norm_block(norm, at);
		float *y =
			air_vec_target(&v[AIR_NORM_Y], p[AIR_NORM_Y], at, ty);
		const float *x =
			air_vec_load(&v[AIR_NORM_X], p[AIR_NORM_X], at, n, tx);

		if (p[AIR_NORM_WEIGHT])
			w = air_vec_load(&v[AIR_NORM_WEIGHT],
					 p[AIR_NORM_WEIGHT], at, n, tw);
		AIR_BEST(apply)(y, x, w, n, by);
		air_vec_store(&v[AIR_NORM_Y], p[AIR_NORM_Y], at, n, y);
	}
}

air_status air_rms_norm_cpu_plan(const struct airunner_desc *d,
				 struct air_cpu_plan **out, struct air_error *e)
{
	return air_norm_plan(d, air_attr_f64(d, AIR_RMS_NORM_EPSILON), row, out,
			     e);
}
