// SPDX-License-Identifier: MIT
#include <airunner/ops/mul.h>

#include "ops/api.h"

air_status air_create_mul_descriptor(air_channel *ch, air_descriptor **out,
				     const air_tensor_desc *y,
				     const air_tensor_desc *a,
				     const air_tensor_desc *b)
{
	const air_tensor_desc *t[] = { y, a, b };
	air_tensor_desc wide_a, wide_b;

	if (y) {
		t[1] = air_broadcast(a, y->shape, y->ndim, &wide_a);
		t[2] = air_broadcast(b, y->shape, y->ndim, &wide_b);
	}
	return air_descriptor_create(ch, AIR_OP_mul, t, 3, NULL, 0, out);
}

AIR_OP_API(mul, AIR_REFS(air_ref y, air_ref a, air_ref b), y, a, b)
