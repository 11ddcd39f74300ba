/* SPDX-License-Identifier: MIT */
/*
 * Blocks: pieces of rows, as contiguous f32, small enough to stay in the
 * nearest cache. Kernels compute on blocks only; what dtype and stride the
 * tensors have is settled here, once for all operators.
 */
#ifndef AIR_BLOCK_H
#define AIR_BLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* Elements. */
#define AIR_BLOCK 1024

typedef void (*air_load_fn)(float *dst, const void *src, int64_t stride,
			    uint64_t n);
typedef void (*air_store_fn)(void *dst, int64_t stride, const float *src,
			     uint64_t n);

/* For f32, f16 and bf16, in the version that is best for this CPU. */
air_load_fn air_loader(uint32_t dtype);
air_store_fn air_storer(uint32_t dtype);

/**
 * struct air_vec - how elements along one dimension are read and written
 * @load: to f32
 * @store: from f32, rounding to nearest even
 * @stride: bytes
 * @direct: they are contiguous f32: use them where they are
 */
struct air_vec {
	air_load_fn load;
	air_store_fn store;
	int64_t stride;
	bool direct;
};

void air_vec_init(struct air_vec *v, uint32_t dtype, int64_t stride);

/* Elements [at, at + n) from @p on, n <= AIR_BLOCK; @tmp is used if need be. */
static inline const float *air_vec_load(const struct air_vec *v, const char *p,
					uint64_t at, uint64_t n, float *tmp)
{
	p += (int64_t)at * v->stride;
	if (v->direct)
		return (const float *)p;
	v->load(tmp, p, v->stride, n);
	return tmp;
}

/* Where to write elements [at, ...): in place, or @tmp for air_vec_store(). */
static inline float *air_vec_target(const struct air_vec *v, char *p,
				    uint64_t at, float *tmp)
{
	return v->direct ? (float *)(p + at * sizeof(float)) : tmp;
}

static inline void air_vec_store(const struct air_vec *v, char *p, uint64_t at,
				 uint64_t n, const float *from)
{
	if (!v->direct)
		v->store(p + (int64_t)at * v->stride, v->stride, from, n);
}

/*
 * Sum of a block: in f32 by lanes, the lanes in f64. Largest of a block: NaN if
 * there is one, -Inf if it is empty.
 */
typedef void (*air_sum_fn)(const float *x, uint64_t n, double *out);
typedef void (*air_max_fn)(const float *x, uint64_t n, float *out);

air_sum_fn air_summer(void);
air_max_fn air_maximizer(void);

#endif /* AIR_BLOCK_H */
