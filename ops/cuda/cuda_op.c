// SPDX-License-Identifier: MIT
#include "ops/cuda/cuda_op.h"

#define DECLARE(name) extern const struct air_cuda_op air_cuda_##name;
AIR_OPS(DECLARE)

static const struct air_cuda_op *const table[AIR_OP_COUNT] = {
#define ENTRY(name) [AIR_OP_##name] = &air_cuda_##name,
	AIR_OPS(ENTRY)
};

const struct air_cuda_op *air_cuda_op_find(uint32_t id)
{
	return id < AIR_OP_COUNT ? table[id] : NULL;
}
