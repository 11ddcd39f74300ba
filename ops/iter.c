// SPDX-License-Identifier: MIT
#include "ops/iter.h"

static int64_t magnitude(int64_t v)
{
	return v < 0 ? -v : v;
}

/* Whether dimension @a belongs outside of @b: the first tensor decides. */
static bool outside(const struct air_iter *it, uint32_t a, uint32_t b)
{
	for (uint32_t k = 0; k < it->n; k++) {
		int64_t sa = magnitude(it->stride[k][a]);
		int64_t sb = magnitude(it->stride[k][b]);

		if (sa != sb)
			return sa > sb;
	}
	return true;
}

static void swap_dims(struct air_iter *it, uint32_t a, uint32_t b)
{
	int64_t v = it->shape[a];

	it->shape[a] = it->shape[b];
	it->shape[b] = v;
	for (uint32_t k = 0; k < it->n; k++) {
		v = it->stride[k][a];
		it->stride[k][a] = it->stride[k][b];
		it->stride[k][b] = v;
	}
}

static bool mergeable(const struct air_iter *it, uint32_t outer, uint32_t inner)
{
	for (uint32_t k = 0; k < it->n; k++)
		if (it->stride[k][outer] !=
		    it->stride[k][inner] * it->shape[inner])
			return false;
	return true;
}

static void merge(struct air_iter *it)
{
	uint32_t to = 0;

	for (uint32_t i = 1; i < it->ndim; i++) {
		if (mergeable(it, to, i)) {
			it->shape[to] *= it->shape[i];
		} else {
			to++;
			it->shape[to] = it->shape[i];
		}
		for (uint32_t k = 0; k < it->n; k++)
			it->stride[k][to] = it->stride[k][i];
	}
	it->ndim = to + 1;
}

void air_iter_init(struct air_iter *it, uint32_t n,
		   const struct airunner_tensor *const *t, uint32_t dims)
{
	memset(it, 0, sizeof(*it));
	it->n = n;
	it->total = 1;
	for (uint32_t i = 0; i < t[0]->ndim; i++) {
		uint32_t to = it->ndim;
		int64_t size = t[0]->shape[i];

		if (!(dims >> i & 1))
			continue;
		it->total *= size;
		if (size == 1)
			continue;
		it->shape[to] = size;
		for (uint32_t k = 0; k < n; k++)
			it->stride[k][to] =
				t[k]->stride[i] * air_elem_size(t[k]->dtype);
		it->ndim++;
	}
	if (!it->total || !it->ndim) {
		it->ndim = 1;
		it->shape[0] = it->total;
		for (uint32_t k = 0; k < n; k++)
			it->stride[k][0] = air_elem_size(t[k]->dtype);
		return;
	}
	for (uint32_t i = 0; i < it->ndim; i++) {
		if (it->stride[0][i] >= 0)
			continue;
		for (uint32_t k = 0; k < n; k++) {
			it->base[k] += it->stride[k][i] * (it->shape[i] - 1);
			it->stride[k][i] = -it->stride[k][i];
		}
	}
	for (uint32_t i = 1; i < it->ndim; i++)
		for (uint32_t j = i; j && !outside(it, j - 1, j); j--)
			swap_dims(it, j - 1, j);
	merge(it);
}

void air_cursor_set(struct air_cursor *c, const struct air_iter *it,
		    uint32_t ndim, uint64_t at)
{
	for (uint32_t k = 0; k < it->n; k++)
		c->offset[k] = it->base[k];
	for (uint32_t i = ndim; i-- > 0;) {
		/* Most loops begin at their beginning; divisions are slow. */
		if (!at) {
			c->index[i] = 0;
			continue;
		}
		c->index[i] = (int64_t)(at % it->shape[i]);
		at /= it->shape[i];
		for (uint32_t k = 0; k < it->n; k++)
			c->offset[k] += c->index[i] * it->stride[k][i];
	}
}

void air_iter_rows(const struct air_iter *it, void *const *operand,
		   uint64_t begin, uint64_t end, air_row_fn row, void *arg)
{
	uint32_t outer = it->ndim - 1;
	int64_t length = it->shape[outer];
	struct air_cursor c;
	int64_t at;

	if (begin >= end)
		return;
	air_cursor_set(&c, it, outer, begin ? begin / length : 0);
	at = begin ? (int64_t)(begin % length) : 0;
	for (;;) {
		uint64_t n = length - at;
		char *p[AIR_ITER_MAX];

		if (n > end - begin)
			n = end - begin;
		for (uint32_t k = 0; k < it->n; k++)
			p[k] = (char *)operand[k] + c.offset[k] +
			       at * it->stride[k][outer];
		row(arg, p, n);
		begin += n;
		if (begin >= end)
			return;
		at = 0;
		air_cursor_next(&c, it, outer);
	}
}
