// SPDX-License-Identifier: MIT
#include <airunner/ops/reduce_max.h>

#include "ops/api.h"
#include "ops/reduce.h"

air_status air_create_reduce_max_descriptor(air_channel *ch,
					    air_descriptor **out,
					    const air_tensor_desc *y,
					    const air_tensor_desc *x,
					    const int32_t *axes,
					    uint32_t n_axes, bool keepdim)
{
	const air_tensor_desc *const t[] = { y, x };
	const uint64_t attr[] = { air_reduce_axes(axes, n_axes, x), keepdim };

	return air_descriptor_create(ch, AIR_OP_reduce_max, t, 2, attr,
				     sizeof(attr) / sizeof(attr[0]), out);
}

AIR_OP_API(reduce_max, AIR_REFS(air_ref y, air_ref x), y, x)
