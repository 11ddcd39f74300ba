/* SPDX-License-Identifier: MIT */
#include "ops/silu/kernel.cuh"

AIR_EW_FLOAT_KERNELS(silu, air_silu)
