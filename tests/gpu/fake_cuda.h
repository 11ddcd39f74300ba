/* SPDX-License-Identifier: MIT */
#ifndef AIR_TEST_FAKE_CUDA_H
#define AIR_TEST_FAKE_CUDA_H

/**
 * struct fake_cuda - what a test sees of, and does to, the fake driver
 * @fault: a CUresult that every call gives from now on; a reset clears it
 * @hold: streams do not come through
 * @limit: allocations above it fail; 0 for none
 * @spent: after a fault there is no other context for this process
 * @regs: what functions' attributes say
 * @names: FILE * that gets the name of every function asked for; may be NULL
 * @hangs: calls that would have waited for a stream that waits for a word
 * @captured: what is enqueued is recorded, not done
 * @operands: addresses that the last kernel of rows ahead was given
 * @launches, @writes, ...: counts; @products: of cuBLASLt, @replays: of graphs
 */
struct fake_cuda {
	int fault;
	int hold;
	int spent;
	unsigned long limit;
	int regs;
	void *names;
	unsigned int launches, writes, modules, streams;
	unsigned int hangs, waits;
	unsigned int allocs, frees, registered, retained, resets;
	int captured;
	unsigned long operands[6];
	unsigned int products, graphs, replays;
};

/* A stream that the driver does not know. */
#define FAKE_CUDA_FOREIGN_STREAM 0x77

#endif /* AIR_TEST_FAKE_CUDA_H */
