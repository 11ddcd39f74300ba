/* SPDX-License-Identifier: MIT */
#include "ops/rms_norm/kernel.cuh"

AIR_ROW_KERNELS(rms_norm, air_rms_norm)
