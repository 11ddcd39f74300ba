/* SPDX-License-Identifier: MIT */
#include "ops/layer_norm/kernel.cuh"

AIR_ROW_KERNELS(layer_norm, air_layer_norm_plain)
AIR_ROW_KERNELS(layer_norm_bias, air_layer_norm)
