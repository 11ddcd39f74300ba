// SPDX-License-Identifier: MIT
#include <airunner/ops/rope.h>

#include "ops/api.h"

air_status air_create_rope_descriptor(air_channel *ch, air_descriptor **out,
				      const air_tensor_desc *y,
				      const air_tensor_desc *x,
				      const air_tensor_desc *cos,
				      const air_tensor_desc *sin,
				      const air_tensor_desc *positions,
				      air_rope style)
{
	const air_tensor_desc *t[] = { y, x, cos, sin, positions };
	const uint64_t attr[] = { style };
	air_tensor_desc wide;

	if (y && y->ndim >= 2)
		t[4] = air_broadcast(positions, y->shape, y->ndim - 2, &wide);
	return air_descriptor_create(ch, AIR_OP_rope, t, 5, attr, 1, out);
}

AIR_OP_API(rope,
	   AIR_REFS(air_ref y, air_ref x, air_ref cos, air_ref sin,
		    air_ref positions),
	   y, x, cos, sin, positions)
