// SPDX-License-Identifier: MIT
#include "ops/api.h"

const air_tensor_desc *air_broadcast(const air_tensor_desc *t,
				     const int64_t *shape, uint32_t ndim,
				     air_tensor_desc *out)
{
	uint32_t lead;

	if (!t || ndim > AIR_MAX_DIMS || t->ndim > ndim)
		return t;
	lead = ndim - t->ndim;
	memset(out, 0, sizeof(*out));
	out->dtype = t->dtype;
	out->ndim = ndim;
	for (uint32_t i = 0; i < ndim; i++) {
		out->shape[i] = shape[i];
		if (i < lead)
			continue;
		if (t->shape[i - lead] == shape[i])
			out->stride[i] = t->stride[i - lead];
		else if (t->shape[i - lead] != 1)
			return t;
	}
	return out;
}
