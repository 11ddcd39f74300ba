// SPDX-License-Identifier: MIT
#include <airunner/ops/scale.h>

#include "ops/api.h"

air_status air_create_scale_descriptor(air_channel *ch, air_descriptor **out,
				       const air_tensor_desc *y,
				       const air_tensor_desc *x, double alpha)
{
	const air_tensor_desc *const t[] = { y, x };
	const uint64_t attr[] = { air_attr_bits(alpha) };

	return air_descriptor_create(ch, AIR_OP_scale, t, 2, attr,
				     sizeof(attr) / sizeof(attr[0]), out);
}

AIR_OP_API(scale, AIR_REFS(air_ref y, air_ref x), y, x)
