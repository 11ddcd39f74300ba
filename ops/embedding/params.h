/* SPDX-License-Identifier: MIT */
/* embedding: parameters of the CUDA kernels in kernel.cuh. */
#ifndef AIR_EMBEDDING_PARAMS_H
#define AIR_EMBEDDING_PARAMS_H

#include "ops/cuda/abi.h"

/**
 * struct air_embedding_params - strides in elements
 * @items: indices
 * @units: of a row: elements, or vectors of 16 bytes
 * @unit: elements of a unit
 * @rows: of the table
 * @fill: the bits an element of a row that does not exist gets
 * @index_bytes: 4 or 8
 * @wide: 64-bit divisions
 * @item_*: dimensions of the indices, innermost first
 * @row_*: dimensions of a row
 * @table_row: from one row of the table to the next
 */
struct air_embedding_params {
	uint64_t items, units, rows, fill;
	uint32_t unit, index_bytes, wide, resv;
	struct air_div by_units;
	uint32_t item_n, row_n;
	uint64_t item_size[AIRUNNER_MAX_DIMS];
	int64_t item_y[AIRUNNER_MAX_DIMS];
	int64_t item_index[AIRUNNER_MAX_DIMS];
	uint64_t row_size[AIRUNNER_MAX_DIMS];
	int64_t row_y[AIRUNNER_MAX_DIMS];
	int64_t row_table[AIRUNNER_MAX_DIMS];
	int64_t table_row;
};

#endif /* AIR_EMBEDDING_PARAMS_H */
