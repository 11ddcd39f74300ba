// SPDX-License-Identifier: MIT
#include <airunner/ops/layer_norm.h>

#include "ops/api.h"

air_status air_create_layer_norm_descriptor(
	air_channel *ch, air_descriptor **out, const air_tensor_desc *y,
	const air_tensor_desc *x, const air_tensor_desc *weight,
	const air_tensor_desc *bias, double epsilon)
{
	const air_tensor_desc *const t[] = { y, x, weight, bias };
	const uint64_t attr[] = { air_attr_bits(epsilon) };

	return air_descriptor_create(ch, AIR_OP_layer_norm, t, 4, attr,
				     sizeof(attr) / sizeof(attr[0]), out);
}

AIR_OP_API(layer_norm,
	   AIR_REFS(air_ref y, air_ref x, air_ref weight, air_ref bias), y, x,
	   weight, bias)
