/* SPDX-License-Identifier: MIT */
/* conv2d: parameters of the CUDA kernels in kernel.cuh. */
#ifndef AIR_CONV2D_PARAMS_H
#define AIR_CONV2D_PARAMS_H

#include "ops/cuda/abi.h"

/**
 * struct air_conv2d_params - strides in elements
 * @images, @groups: how many products there are
 * @pixels: of an image of y: rows of the product
 * @outputs: channels of y in a group: columns of it
 * @depth: channels of x in a group * kernel elements: what is summed over
 * @by_*: divisions that turn a row into a pixel, a depth into its place
 */
struct air_conv2d_params {
	uint64_t images, groups, pixels, outputs, depth;
	int64_t height, width;
	int64_t y_n, y_o, y_h, y_w;
	int64_t x_n, x_c, x_h, x_w;
	int64_t w_o, w_c, w_h, w_w;
	int64_t bias_o;
	int32_t stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w;
	uint32_t channels, activation;
	struct air_div by_ow, by_kw, by_kernel;
};

#endif /* AIR_CONV2D_PARAMS_H */
