// SPDX-License-Identifier: MIT
#include <airunner/ops/gelu.h>

#include "ops/api.h"

air_status air_create_gelu_descriptor(air_channel *ch, air_descriptor **out,
				      const air_tensor_desc *y,
				      const air_tensor_desc *x,
				      air_gelu approximate)
{
	const air_tensor_desc *const t[] = { y, x };
	const uint64_t attr[] = { approximate };

	return air_descriptor_create(ch, AIR_OP_gelu, t, 2, attr,
				     sizeof(attr) / sizeof(attr[0]), out);
}

AIR_OP_API(gelu, AIR_REFS(air_ref y, air_ref x), y, x)
