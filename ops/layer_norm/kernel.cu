/* SPDX-License-Identifier: MIT */
#include "ops/layer_norm/kernel.cuh"

AIR_ROW_KERNELS(layer_norm, air_layer_norm)
