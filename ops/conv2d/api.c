// SPDX-License-Identifier: MIT
#include <airunner/ops/conv2d.h>

#include "ops/api.h"

air_status
air_create_conv2d_descriptor(air_channel *ch, air_descriptor **out,
			     const air_tensor_desc *y, const air_tensor_desc *x,
			     const air_tensor_desc *weight,
			     const air_tensor_desc *bias, const int32_t *stride,
			     const int32_t *padding, const int32_t *dilation,
			     int32_t groups, air_activation activation)
{
	const air_tensor_desc *const t[] = { y, x, weight, bias };
	const uint64_t attr[] = {
		/* Sign-extended: the check names negative values. */
		(uint64_t)(int64_t)(stride ? stride[0] : 1),
		(uint64_t)(int64_t)(stride ? stride[1] : 1),
		(uint64_t)(int64_t)(padding ? padding[0] : 0),
		(uint64_t)(int64_t)(padding ? padding[1] : 0),
		(uint64_t)(int64_t)(dilation ? dilation[0] : 1),
		(uint64_t)(int64_t)(dilation ? dilation[1] : 1),
		(uint64_t)(int64_t)groups,
		activation,
	};

	return air_descriptor_create(ch, AIR_OP_conv2d, t, 4, attr,
				     sizeof(attr) / sizeof(attr[0]), out);
}

AIR_OP_API(conv2d, AIR_REFS(air_ref y, air_ref x, air_ref weight, air_ref bias),
	   y, x, weight, bias)
