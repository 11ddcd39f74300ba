/* SPDX-License-Identifier: MIT */
/* Reductions: parameters of the kernels in reduce.cuh. */
#ifndef AIR_CUDA_REDUCE_H
#define AIR_CUDA_REDUCE_H

#include "ops/cuda/abi.h"

/**
 * struct air_reduce_walk - dimensions to be walked by a single index
 * @n: of them, innermost first
 * @wide: 64-bit divisions
 * @size, @div: of each
 * @x, @y: strides in elements
 */
struct air_reduce_walk {
	uint32_t n;
	uint32_t wide;
	uint64_t size[AIRUNNER_MAX_DIMS];
	struct air_div div[AIRUNNER_MAX_DIMS];
	int64_t x[AIRUNNER_MAX_DIMS];
};

/**
 * struct air_reduce_params
 * @outer: results
 * @inner: elements that go into each
 * @lanes: threads that share one result (rows); a power of two up to 32, or
 *	all of a block; of lines (air_reduce_rows_line()) any part of a block
 * @hold: vectors of a row that each of these has: 1, 2 or 4, where rows are
 *	numbered by one dimension; 0: any number
 * @vector: rows are dense and begin at multiples of 16 bytes; columns: x is
 *	dense across results, in multiples of 16 bytes
 * @split: parts that @inner is divided into; more than one: parts go to
 *	scratch memory, [split][outer], and another kernel adds them up
 * @chunk: elements of a part
 * @kept: dimensions that number the results
 * @y: strides of those in the result
 * @reduced: dimensions that number the elements of one
 */
struct air_reduce_params {
	uint64_t outer;
	uint64_t inner;
	uint32_t lanes;
	uint32_t hold;
	uint32_t vector;
	uint32_t resv;
	uint64_t split;
	uint64_t chunk;
	struct air_reduce_walk kept;
	int64_t y[AIRUNNER_MAX_DIMS];
	struct air_reduce_walk reduced;
};

/* How: the end of a kernel's name, and a part of the variant's number. */
enum air_reduce_variant {
	AIR_REDUCE_ROWS = 0,
	AIR_REDUCE_COLUMNS = 1,
};

/* Columns: a block is this many threads across, the rest down. */
#define AIR_REDUCE_ACROSS 32

#endif /* AIR_CUDA_REDUCE_H */
