// SPDX-License-Identifier: MIT
#include <airunner/ops/copy.h>

#include "ops/api.h"

air_status air_create_copy_descriptor(air_channel *ch, air_descriptor **out,
				      const air_tensor_desc *y,
				      const air_tensor_desc *x)
{
	const air_tensor_desc *const t[] = { y, x };

	return air_descriptor_create(ch, AIR_OP_copy, t, 2, NULL, 0, out);
}

AIR_OP_API(copy, AIR_REFS(air_ref y, air_ref x), y, x)
