/* SPDX-License-Identifier: MIT */
#include "ops/scale/kernel.cuh"

AIR_EW_FLOAT_KERNELS(scale, air_scale)
