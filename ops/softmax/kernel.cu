/* SPDX-License-Identifier: MIT */
#include "ops/softmax/kernel.cuh"

AIR_ROW_KERNELS(softmax, air_softmax)
