/* SPDX-License-Identifier: MIT */
/*
 * A matmul as the executor sees it: how large the matrices are and how they
 * lie in memory, with transposition flags turned into strides, and as few
 * batches as the layout allows.
 */
#ifndef AIR_MATMUL_LAYOUT_H
#define AIR_MATMUL_LAYOUT_H

#include "ops/iter.h"
#include "ops/matmul/matmul.h"

/* Elements from a row, a column, to the next. */
struct air_matmul_steps {
	int64_t row;
	int64_t col;
};

/**
 * struct air_matmul_layout - A is m x k, B k x n, Y and C m x n
 * @step: of y, a, b, c, as AIR_MATMUL_Y and so on
 * @batch: the loop over batches, over y, a, b, c (y in place of an absent c)
 */
struct air_matmul_layout {
	int64_t m, n, k;
	struct air_matmul_steps step[4];
	struct air_iter batch;
};

void air_matmul_layout(struct air_matmul_layout *l,
		       const struct airunner_desc *d);

#endif /* AIR_MATMUL_LAYOUT_H */
