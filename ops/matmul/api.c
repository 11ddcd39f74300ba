// SPDX-License-Identifier: MIT
#include <airunner/ops/matmul.h>

#include "ops/api.h"

/* @t with its dimensions before the last two repeated to those of @y. */
static const air_tensor_desc *broadcast_batch(const air_tensor_desc *t,
					      const air_tensor_desc *y,
					      air_tensor_desc *out)
{
	int64_t shape[AIR_MAX_DIMS];

	if (!t || t->ndim < 2 || t->ndim > AIR_MAX_DIMS || y->ndim < 2 ||
	    y->ndim > AIR_MAX_DIMS)
		return t;
	memcpy(shape, y->shape, (y->ndim - 2) * sizeof(shape[0]));
	memcpy(&shape[y->ndim - 2], &t->shape[t->ndim - 2],
	       2 * sizeof(shape[0]));
	return air_broadcast(t, shape, y->ndim, out);
}

air_status air_create_matmul_descriptor(
	air_channel *ch, air_descriptor **out, const air_tensor_desc *y,
	const air_tensor_desc *a, const air_tensor_desc *b,
	const air_tensor_desc *c, const air_tensor_desc *bias, bool trans_a,
	bool trans_b, double alpha, double beta, air_activation activation)
{
	const air_tensor_desc *t[] = { y, a, b, c, bias };
	const uint64_t attr[] = { trans_a, trans_b, air_attr_bits(alpha),
				  air_attr_bits(beta), activation };
	air_tensor_desc wide_a, wide_b, wide_c;

	if (y) {
		t[1] = broadcast_batch(a, y, &wide_a);
		t[2] = broadcast_batch(b, y, &wide_b);
		t[3] = air_broadcast(c, y->shape, y->ndim, &wide_c);
	}
	return air_descriptor_create(ch, AIR_OP_matmul, t, 5, attr, 5, out);
}

AIR_OP_API(matmul,
	   AIR_REFS(air_ref y, air_ref a, air_ref b, air_ref c, air_ref bias),
	   y, a, b, c, bias)
