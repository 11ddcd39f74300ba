/* SPDX-License-Identifier: MIT */
#include "ops/gelu/kernel.cuh"

AIR_EW_FLOAT_KERNELS(gelu, air_gelu_any)
