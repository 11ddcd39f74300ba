/* SPDX-License-Identifier: MIT */
/*
 * An operator's CUDA side, as the executors see it. ops/<op>/cuda.c defines
 * one `const struct air_cuda_op air_cuda_<op>`; its kernels are in
 * ops/<op>/kernel.cu, which is compiled into a module of its own.
 */
#ifndef AIR_CUDA_OP_H
#define AIR_CUDA_OP_H

#include <stdbool.h>
#include <stdint.h>

#include "ops/cuda/abi.h"
#include "ops/op.h"
#include "ops/tensor.h"

/*
 * What plans are made for. @block: 0, or the threads that every block has: the
 * plan is for the resident kernel, whose blocks form no clusters.
 */
struct air_cuda_device {
	uint32_t sms;
	uint32_t cc;		/* compute capability, 90 for 9.0 */
	uint64_t l2_bytes;
	uint32_t shared_optin;	/* most shared memory a block can have */
	uint32_t block;
};

#define AIR_CUDA_STEPS 2

/* Scratch memory that each stream has. */
#define AIR_CUDA_SCRATCH (32u << 20)

/* And for products in f32, where they are needed. */
#define AIR_CUDA_WIDE (32u << 20)

/**
 * struct air_cuda_step - one launch
 * @kernel: its name in the operator's module; a string constant, or in
 *	struct air_cuda_plan.name
 * @grid: blocks
 * @block: threads
 * @shared: dynamic shared memory, bytes
 * @cluster: blocks a cluster; 0 for none (compute capability 9.0 and later)
 * @stays: clusters go on to the next share of the work: no more are launched
 *	than find room at the same time
 */
struct air_cuda_step {
	const char *kernel;
	uint32_t grid[3];
	uint32_t block;
	uint32_t shared;
	uint32_t cluster;
	bool stays;
};

/**
 * struct air_cuda_plan - how an operator runs on a GPU
 * @n_steps: launches, in stream order, all with the same parameters; 0 when
 *	there is nothing to do or @library does it
 * @step: them
 * @scratch: bytes the steps need, at most AIR_CUDA_SCRATCH; the executor's, not
 *	the client's: it stands where the client's workspace would
 * @counter: instead, a word of device memory that is 0, and that the steps
 *	leave so
 * @library: cuBLASLt is better at it, if it can; then @after, if it has a
 *	kernel, runs instead of the steps
 * @piece: @library is to make the bare product in f32, so many rows at a time,
 *	and @after makes those rows of the result of it: its parameters are
 *	those of the operator but for m, its operands begin at these rows, and
 *	the product is where the workspace would be; 0: it is not
 * @variant: which body of the operator the resident kernel runs: one more than
 *	its case there; 0: none
 * @tiles: blocks worth having in the resident kernel
 * @bytes: memory the operator moves, to tell what is small
 * @params: the operator's own
 */
struct air_cuda_plan {
	uint32_t n_steps;
	struct air_cuda_step step[AIR_CUDA_STEPS];
	uint64_t scratch;
	bool counter;
	bool library;
	struct air_cuda_step after;
	uint32_t piece;
	uint32_t variant;
	uint32_t tiles;
	uint64_t bytes;
	uint32_t params_size;
	char name[2][48];
	_Alignas(16) unsigned char params[AIR_PARAMS_MAX];
};

/**
 * struct air_cuda_op
 * @name: as in air_cuda_<name>
 * @fatbin: device code of the operator: AIR_CUDA_FATBIN(name)
 * @plan: fill in @plan (zeroed) for a checked descriptor. AIR_UNSUPPORTED with
 *	a sentence for what the CPU has to do
 */
struct air_cuda_op {
	const char *name;
	const unsigned char *fatbin;
	air_status (*plan)(const struct airunner_desc *d,
			   const struct air_cuda_device *dev,
			   struct air_cuda_plan *plan, struct air_error *e);
};

/* The code of ops/<name>/kernel.cu, as the build put it into the plug-in. */
#define AIR_CUDA_FATBIN(name) air_fatbin_##name
#define AIR_CUDA_FATBIN_DECLARE(name) \
	extern const unsigned char air_fatbin_##name[]

/* The operator's CUDA side, or NULL. */
const struct air_cuda_op *air_cuda_op_find(uint32_t id);

#endif /* AIR_CUDA_OP_H */
