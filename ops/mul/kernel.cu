/* SPDX-License-Identifier: MIT */
#include "ops/mul/kernel.cuh"

AIR_EW_FLOAT_KERNELS(mul, air_mul)
