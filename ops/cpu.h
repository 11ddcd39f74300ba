/* SPDX-License-Identifier: MIT */
/*
 * What an operator's CPU side is written against: a plan that runs, and a
 * pool to run it on.
 */
#ifndef AIR_CPU_H
#define AIR_CPU_H

#include <stdint.h>

#include "ops/op.h"

struct air_pool;

/* Threads of the pool, the caller among them; 1 for NULL, a pool of none. */
unsigned int air_pool_threads(const struct air_pool *pool);

/*
 * Call fn(arg, begin, end) so that [0, n) is covered once, on several threads
 * when n / grain is more than one, and return when all have. @grain is the
 * smallest number of items worth another thread.
 */
void air_pool_for(struct air_pool *pool, uint64_t n, uint64_t grain,
		  void (*fn)(void *arg, uint64_t begin, uint64_t end),
		  void *arg);

/* @threads: 0 for one a core this process may use. NULL: no memory. */
struct air_pool *air_pool_create(unsigned int threads);
void air_pool_destroy(struct air_pool *pool);

/**
 * struct air_cpu_plan - an operator ready to run on the CPU
 * @run: do it. @operand: first elements in operand order (NULL for left out),
 *	then the workspace. Operands were bounds-checked against the plan. May
 *	run on several threads at once with different operands.
 * @destroy: give it back
 *
 * Operators embed it as the first member of a struct of their own.
 */
struct air_cpu_plan {
	air_status (*run)(const struct air_cpu_plan *plan,
			  void *const operand[AIRUNNER_MAX_TENSORS + 1],
			  struct air_pool *pool);
	void (*destroy)(struct air_cpu_plan *plan);
};

#endif /* AIR_CPU_H */
