/* SPDX-License-Identifier: MIT */
/* Parameters of the tiled transposition: see transpose.cuh. */
#ifndef AIR_COPY_TRANSPOSE_H
#define AIR_COPY_TRANSPOSE_H

#include "ops/cuda/abi.h"

#define AIR_TRANSPOSE_THREADS 256

/* Lines and columns of a tile: lines of 256 bytes, of 128 for 1-byte types. */
#define AIR_TRANSPOSE_TILE(size) ((size) == 1 ? 128 : 256 / (size))

/**
 * struct air_transpose_params
 * @width: elements in y's dense dimension
 * @height: elements in x's dense dimension
 * @y_height: y's stride along height
 * @x_width: x's stride along width
 * @tiles_w, @tiles_h: tiles along them
 * @tiles: of all matrices together
 * @vector: 16-byte vectors of both sides are aligned if the addresses are
 * @ndim: dimensions besides these two, innermost first
 * @size, @y_stride, @x_stride: of those
 */
struct air_transpose_params {
	uint64_t width, height;
	int64_t y_height, x_width;
	uint64_t tiles_w, tiles_h, tiles;
	uint32_t ndim;
	uint32_t vector;
	uint64_t size[AIRUNNER_MAX_DIMS];
	int64_t y_stride[AIRUNNER_MAX_DIMS];
	int64_t x_stride[AIRUNNER_MAX_DIMS];
};

#endif /* AIR_COPY_TRANSPOSE_H */
