// SPDX-License-Identifier: MIT
#include "ops/block.h"

#include "include/uapi/airunner.h"
#include "ops/math.h"

#define LOAD_PARAMS  (float *dst, const void *src, int64_t stride, uint64_t n)
#define LOAD_ARGS    (dst, src, stride, n)
#define STORE_PARAMS (void *dst, int64_t stride, const float *src, uint64_t n)
#define STORE_ARGS   (dst, stride, src, n)

/* Repeated and contiguous elements are worth loops of their own. */
#define DEFINE_LOAD(name, type, convert)                                       \
	AIR_INLINE void name LOAD_PARAMS                                       \
	{                                                                      \
		if (stride == (int64_t)sizeof(type)) {                         \
			const type *x = src;                                   \
\
			for (uint64_t i = 0; i < n; i++)                       \
				dst[i] = convert(x[i]);                        \
		} else if (!stride) {                                          \
			float v = n ? convert(*(const type *)src) : 0;         \
\
			for (uint64_t i = 0; i < n; i++)                       \
				dst[i] = v;                                    \
		} else {                                                       \
			const char *x = src;                                   \
\
			for (uint64_t i = 0; i < n; i++)                       \
				dst[i] = convert(                              \
					*(const type *)(x +                    \
							(int64_t)i * stride)); \
		}                                                              \
	}                                                                      \
	AIR_VERSIONS(name, LOAD_PARAMS, LOAD_ARGS)

#define DEFINE_STORE(name, type, convert)                            \
	AIR_INLINE void name STORE_PARAMS                            \
	{                                                            \
		if (stride == (int64_t)sizeof(type)) {               \
			type *y = dst;                               \
\
			for (uint64_t i = 0; i < n; i++)             \
				y[i] = convert(src[i]);              \
		} else {                                             \
			char *y = dst;                               \
\
			for (uint64_t i = 0; i < n; i++)             \
				*(type *)(y + (int64_t)i * stride) = \
					convert(src[i]);             \
		}                                                    \
	}                                                            \
	AIR_VERSIONS(name, STORE_PARAMS, STORE_ARGS)

#define SAME(v) (v)

DEFINE_LOAD(load_f32, float, SAME)
DEFINE_LOAD(load_f16, uint16_t, air_f16_to_f32)
DEFINE_LOAD(load_bf16, uint16_t, air_bf16_to_f32)
DEFINE_STORE(store_f32, float, SAME)
DEFINE_STORE(store_f16, uint16_t, air_f32_to_f16)
DEFINE_STORE(store_bf16, uint16_t, air_f32_to_bf16)

air_load_fn air_loader(uint32_t dtype)
{
	switch (dtype) {
	case AIRUNNER_F16:
		return AIR_BEST(load_f16);
	case AIRUNNER_BF16:
		return AIR_BEST(load_bf16);
	default:
		return AIR_BEST(load_f32);
	}
}

air_store_fn air_storer(uint32_t dtype)
{
	switch (dtype) {
	case AIRUNNER_F16:
		return AIR_BEST(store_f16);
	case AIRUNNER_BF16:
		return AIR_BEST(store_bf16);
	default:
		return AIR_BEST(store_f32);
	}
}

void air_vec_init(struct air_vec *v, uint32_t dtype, int64_t stride)
{
	v->load = air_loader(dtype);
	v->store = air_storer(dtype);
	v->stride = stride;
	v->direct = dtype == AIRUNNER_F32 && stride == (int64_t)sizeof(float);
}

/*
 * Sums and maxima run in 64 lanes, so that additions need not wait for each
 * other; the order does not depend on the CPU. Unaligned is fine.
 */
typedef float lanes __attribute__((vector_size(64), aligned(4), may_alias));

#define LANES 16

AIR_INLINE void sum(const float *x, uint64_t n, double *out)
{
	lanes a0 = { 0 }, a1 = { 0 }, a2 = { 0 }, a3 = { 0 };
	double total = 0;
	uint64_t i = 0;

	for (; i + 4 * LANES <= n; i += 4 * LANES) {
		a0 += *(const lanes *)(x + i);
		a1 += *(const lanes *)(x + i + LANES);
		a2 += *(const lanes *)(x + i + 2 * LANES);
		a3 += *(const lanes *)(x + i + 3 * LANES);
	}
	for (; i + LANES <= n; i += LANES)
		a0 += *(const lanes *)(x + i);
	for (; i < n; i++)
		total += x[i];
	a0 = (a0 + a1) + (a2 + a3);
	for (int k = 0; k < LANES; k++)
		total += a0[k];
	*out = total;
}
AIR_VERSIONS(sum, (const float *x, uint64_t n, double *out), (x, n, out))

/* The larger, or whichever is NaN. */
AIR_INLINE float larger(float m, float x)
{
	return x > m || x != x ? x : m;
}

/*
 * Comparisons that mind NaN take four instructions a step, a maximum that drops
 * NaN one. So the sum is taken along: it is NaN if anything was (or Inf met
 * -Inf), and only then are elements looked at with care.
 */
AIR_INLINE void largest(const float *x, uint64_t n, float *out)
{
	float m[4 * LANES], s[4 * LANES];
	float top = -INFINITY, total = 0;
	uint64_t i = 0;

	for (int k = 0; k < 4 * LANES; k++) {
		m[k] = -INFINITY;
		s[k] = 0;
	}
	for (; i + 4 * LANES <= n; i += 4 * LANES)
		for (int k = 0; k < 4 * LANES; k++) {
			m[k] = x[i + k] > m[k] ? x[i + k] : m[k];
			s[k] += x[i + k];
		}
	for (int k = 0; k < 2 * LANES; k++) {
		m[k] = larger(m[k], m[k + 2 * LANES]);
		s[k] += s[k + 2 * LANES];
	}
	for (int k = 0; k < LANES; k++) {
		m[k] = larger(m[k], m[k + LANES]);
		s[k] += s[k + LANES];
	}
	for (int k = 0; k < LANES; k++) {
		top = larger(top, m[k]);
		total += s[k];
	}
	for (uint64_t k = total != total ? 0 : i; k < n; k++)
		top = larger(top, x[k]);
	*out = top;
}
AIR_VERSIONS(largest, (const float *x, uint64_t n, float *out), (x, n, out))

air_sum_fn air_summer(void)
{
	return AIR_BEST(sum);
}

air_max_fn air_maximizer(void)
{
	return AIR_BEST(largest);
}
