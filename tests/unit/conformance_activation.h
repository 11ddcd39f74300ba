/* SPDX-License-Identifier: MIT */
#ifndef CONFORMANCE_ACTIVATION_H
#define CONFORMANCE_ACTIVATION_H

#include <math.h>

#include "tests/unit/conformance.h"

static inline conf_real conf_activate(uint64_t act, conf_real v)
{
	switch (act) {
	case AIR_ACT_RELU:
		return v <= 0 ? 0 : v;
	case AIR_ACT_SILU:
		return v / (1 + expl(-v));
	case AIR_ACT_GELU:
		return v / 2 * erfcl(-v / sqrtl(2));
	case AIR_ACT_GELU_TANH:
		return v / (1 + expl(-2 * sqrtl(2 / M_PIl) *
				     (v + 0.044715L * v * v * v)));
	default:
		return v;
	}
}

#endif /* CONFORMANCE_ACTIVATION_H */
