// SPDX-License-Identifier: MIT
#include <airunner/ops/vector_add.h>

#include "ops/api.h"

air_status air_create_vector_add_descriptor(air_channel *ch,
					    air_descriptor **out,
					    const air_tensor_desc *c,
					    const air_tensor_desc *a,
					    const air_tensor_desc *b)
{
	const air_tensor_desc *const t[] = { c, a, b };

	return air_descriptor_create(ch, AIR_OP_vector_add, t, 3, NULL, 0, out);
}

AIR_OP_API(vector_add, AIR_REFS(air_ref c, air_ref a, air_ref b), c, a, b)
