// SPDX-License-Identifier: MIT
#include "ops/activation.h"

#include <airunner/ops.h>

#include "ops/math.h"

#define DEFINE(name, fn)                           \
	AIR_INLINE void name(float *y, uint64_t n) \
	{                                          \
		for (uint64_t i = 0; i < n; i++)   \
			y[i] = fn(y[i]);           \
	}                                          \
	AIR_VERSIONS(name, (float *y, uint64_t n), (y, n))

DEFINE(relu, air_reluf)
DEFINE(silu, air_siluf)
DEFINE(gelu, air_geluf)
DEFINE(gelu_tanh, air_gelu_tanhf)

void air_activate(uint32_t act, float *y, uint64_t n)
{
	switch (act) {
	case AIR_ACT_RELU:
		AIR_BEST(relu)(y, n);
		break;
	case AIR_ACT_SILU:
		AIR_BEST(silu)(y, n);
		break;
	case AIR_ACT_GELU:
		AIR_BEST(gelu)(y, n);
		break;
	case AIR_ACT_GELU_TANH:
		AIR_BEST(gelu_tanh)(y, n);
		break;
	default:
		break;
	}
}
