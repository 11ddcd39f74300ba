/* SPDX-License-Identifier: MIT */
#include "ops/add/kernel.cuh"

AIR_EW_FLOAT_KERNELS(add, air_add)
