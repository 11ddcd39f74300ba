// SPDX-License-Identifier: MIT
#include <airunner/ops/rms_norm.h>

#include "ops/api.h"

air_status air_create_rms_norm_descriptor(air_channel *ch, air_descriptor **out,
					  const air_tensor_desc *y,
					  const air_tensor_desc *x,
					  const air_tensor_desc *weight,
					  double epsilon)
{
	const air_tensor_desc *const t[] = { y, x, weight };
	const uint64_t attr[] = { air_attr_bits(epsilon) };

	return air_descriptor_create(ch, AIR_OP_rms_norm, t, 3, attr,
				     sizeof(attr) / sizeof(attr[0]), out);
}

AIR_OP_API(rms_norm, AIR_REFS(air_ref y, air_ref x, air_ref weight), y, x,
	   weight)
