/* SPDX-License-Identifier: MIT */
/*
 * A token through layers of a model, as far as its operators are concerned: 100
 * of them, each on the result of the one before. Here its memory, and the same
 * as a CUDA graph of one kernel a node.
 *
 * Functions end the program when CUDA reports an error.
 */
#ifndef BENCH_DECODE_H
#define BENCH_DECODE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DECODE_D	4096 /* elements of a token */
#define DECODE_HEADS	32
#define DECODE_HEAD	(DECODE_D / DECODE_HEADS)
#define DECODE_LAYERS	10
#define DECODE_MATRICES 3 /* of a layer, each of its own */
#define DECODE_SCRATCH	(32u << 20)
#define DECODE_STEP	(DECODE_LAYERS * 10)

/**
 * struct decode - device memory, bf16
 * @x: the token; @h, @q, @t: what is made of it on the way
 * @gain: of rms_norm
 * @cos, @sin: of one position
 * @weights: DECODE_LAYERS * DECODE_MATRICES matrices of DECODE_D squared, each
 *	output's row after the other
 * @scratch: DECODE_SCRATCH bytes, for the ring's matmul where it wants some
 */
struct decode {
	void *x, *h, *q, *t, *gain, *cos, *sin, *weights, *scratch;
};

void decode_open(struct decode *d);
/* The token as it was at first. */
void decode_begin(const struct decode *d);
/* The step as a graph, launched; returns when it has ended. */
void decode_graph(const struct decode *d);
/* @x as f32 numbers. */
void decode_result(const struct decode *d, float x[DECODE_D]);

#ifdef __cplusplus
}
#endif

#endif /* BENCH_DECODE_H */
