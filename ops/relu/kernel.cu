/* SPDX-License-Identifier: MIT */
#include "ops/relu/kernel.cuh"

AIR_EW_FLOAT_KERNELS(relu, air_relu)
