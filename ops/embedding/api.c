// SPDX-License-Identifier: MIT
#include <airunner/ops/embedding.h>

#include "ops/api.h"

air_status air_create_embedding_descriptor(air_channel *ch,
					   air_descriptor **out,
					   const air_tensor_desc *y,
					   const air_tensor_desc *table,
					   const air_tensor_desc *indices)
{
	const air_tensor_desc *const t[] = { y, table, indices };

	return air_descriptor_create(ch, AIR_OP_embedding, t, 3, NULL, 0, out);
}

AIR_OP_API(embedding, AIR_REFS(air_ref y, air_ref table, air_ref indices), y,
	   table, indices)
