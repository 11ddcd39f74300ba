/* SPDX-License-Identifier: MIT */
/*
 * What the CUDA kernels and the host code that launches them both read: the
 * two parameters every kernel has, and integer division by constants.
 *
 * A kernel gets the parameters of its plan (one struct an operator, made once
 * per descriptor) and the operands of this execution. Both are plain values,
 * so a launch copies some hundred bytes and touches no memory of the device.
 */
#ifndef AIR_CUDA_ABI_H
#define AIR_CUDA_ABI_H

#include <stdint.h>

#include "include/uapi/airunner.h"

/* First elements in operand order, then the workspace; 0 where left out. */
struct air_operands {
	uint64_t addr[AIRUNNER_MAX_TENSORS + 1];
};

#define AIR_WORKSPACE_ADDR AIRUNNER_MAX_TENSORS

/* Largest operator parameters: kernels may be given 4096 bytes of them. */
#define AIR_PARAMS_MAX 768

/**
 * struct air_div - division of a number below 2^31 by a constant
 * @d: the divisor, 1 to 2^31 - 1
 * @mul: with @shift: n / d == (umulhi(n, mul) + n) >> shift
 */
struct air_div {
	uint32_t d;
	uint32_t mul;
	uint32_t shift;
};

static inline struct air_div air_div_make(uint32_t d)
{
	struct air_div v = { d, 0, 0 };

	while (v.shift < 31 && (1u << v.shift) < d)
		v.shift++;
	v.mul = (uint32_t)((((uint64_t)1 << 32) *
			    (((uint64_t)1 << v.shift) - d)) / d + 1);
	return v;
}

#endif /* AIR_CUDA_ABI_H */
