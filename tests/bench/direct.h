/* SPDX-License-Identifier: MIT */
/*
 * What the ring is compared with on the GPU side: the same operators launched
 * by <<<>>> and by CUDA graphs. One device, one stream; everything is created
 * up front, as little may be created or freed beside a resident kernel.
 *
 * Functions end the program when CUDA reports an error.
 */
#ifndef BENCH_DIRECT_H
#define BENCH_DIRECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum direct_kind {
	DIRECT_NOP,
	DIRECT_VECTOR_ADD,	/* y = a + b, f32, n elements */
	DIRECT_SOFTMAX,		/* rows of y from rows of a, f32 */
	DIRECT_MATMUL,		/* y = a b, bf16, m = n = k, by cuBLASLt */
};

/**
 * struct direct_op - an operator and its operands on the device
 * @n: elements, or the length of a row, or the size of the matrices
 * @rows: softmax
 */
struct direct_op {
	enum direct_kind kind;
	uint64_t n, rows;
	void *y, *a, *b;
	void *lt;		/* direct.cu's own */
};

/* False, and why: no GPU. @name, @versions: for the machine's description. */
bool direct_init(char *why, size_t size);
void direct_describe(char *name, size_t name_size, char *versions,
		     size_t versions_size);

void *direct_alloc(size_t bytes);
void direct_fill(void *to, uint64_t n, float first, float step,
		 uint64_t period);
void direct_fill_bf16(void *to, uint64_t n, uint32_t seed);
void direct_poison(void *to, size_t bytes);
void direct_copy_out(void *host, const void *device, size_t bytes);

/* For matmul: makes the plan. */
void direct_prepare(struct direct_op *op);

/* Enqueue; returns at once. */
void direct_launch(const struct direct_op *op);
void direct_sync(void);
/* Enqueue, and poll a word of host memory that the kernel writes at its end. */
void direct_launch_poll(const struct direct_op *op);
bool direct_can_poll(const struct direct_op *op);

struct direct_graph;
/* A graph of @nodes operators (not matmul), one after the other or at once. */
struct direct_graph *direct_graph_create(const struct direct_op *ops,
					 unsigned int nodes, bool chain);
void direct_graph_launch(struct direct_graph *g);
/* Set every node's parameters anew, as for other operands. */
void direct_graph_update(struct direct_graph *g);

#ifdef __cplusplus
}
#endif

#endif /* BENCH_DIRECT_H */
