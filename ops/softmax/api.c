// SPDX-License-Identifier: MIT
#include <airunner/ops/softmax.h>

#include "ops/api.h"

air_status air_create_softmax_descriptor(air_channel *ch, air_descriptor **out,
					 const air_tensor_desc *y,
					 const air_tensor_desc *x, int32_t axis)
{
	const air_tensor_desc *const t[] = { y, x };
	const uint64_t attr[] = { (uint64_t)air_axis(axis, x) };

	return air_descriptor_create(ch, AIR_OP_softmax, t, 2, attr,
				     sizeof(attr) / sizeof(attr[0]), out);
}

AIR_OP_API(softmax, AIR_REFS(air_ref y, air_ref x), y, x)
