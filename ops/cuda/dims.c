// SPDX-License-Identifier: MIT
#include "ops/cuda/dims.h"

void air_dims_merge(struct air_dims *out, const int64_t *shape,
		    const uint32_t *dim, uint32_t n_dim,
		    const int64_t *const *stride, uint32_t tensors)
{
	uint32_t n = 0;

	*out = (struct air_dims){ .count = 1 };
	for (uint32_t i = n_dim; i-- > 0;) {
		uint64_t size = (uint64_t)shape[dim[i]];
		bool merges = n > 0;

		out->count *= size;
		if (size == 1)
			continue;
		for (uint32_t t = 0; merges && t < tensors; t++)
			merges = stride[t][dim[i]] ==
				 out->stride[t][n - 1] *
					 (int64_t)out->size[n - 1];
		if (merges) {
			out->size[n - 1] *= size;
			continue;
		}
		out->size[n] = size;
		for (uint32_t t = 0; t < tensors; t++)
			out->stride[t][n] = stride[t][dim[i]];
		n++;
	}
	if (n == 0) {
		out->size[0] = 1;
		for (uint32_t t = 0; t < tensors; t++)
			out->stride[t][0] = 1;
		n = 1;
	}
	out->n = n;
}

void air_dims_of(struct air_dims *out, const struct airunner_tensor *const *t,
		 uint32_t tensors)
{
	static const uint32_t all[AIRUNNER_MAX_DIMS] = { 0, 1, 2, 3,
							 4, 5, 6, 7 };
	const int64_t *stride[AIRUNNER_MAX_TENSORS];

	for (uint32_t i = 0; i < tensors; i++)
		stride[i] = (const int64_t *)t[i]->stride;
	air_dims_merge(out, (const int64_t *)t[0]->shape, all, t[0]->ndim,
		       stride, tensors);
}

static uint64_t magnitude(int64_t x)
{
	return x < 0 ? -(uint64_t)x : (uint64_t)x;
}

void air_dims_sorted(struct air_dims *out,
		     const struct airunner_tensor *const *t, uint32_t tensors)
{
	const int64_t *stride[AIRUNNER_MAX_TENSORS];
	uint32_t order[AIRUNNER_MAX_DIMS], n = t[0]->ndim;

	for (uint32_t i = 0; i < tensors; i++)
		stride[i] = (const int64_t *)t[i]->stride;
	/* insertion sort, stable, largest stride first */
	for (uint32_t i = 0; i < n; i++) {
		uint32_t at = i;

		while (at > 0 && magnitude(stride[0][order[at - 1]]) <
					 magnitude(stride[0][i])) {
			order[at] = order[at - 1];
			at--;
		}
		order[at] = i;
	}
	air_dims_merge(out, (const int64_t *)t[0]->shape, order, n, stride,
		       tensors);
}
