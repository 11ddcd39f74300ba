/* SPDX-License-Identifier: MIT */
/*
 * The CPU's reductions. What is kept and what is reduced are two loops; how
 * values are folded is the operator's.
 */
#ifndef AIR_REDUCE_CPU_H
#define AIR_REDUCE_CPU_H

#include "ops/block.h"
#include "ops/cpu.h"
#include "ops/reduce.h"

/* What is known so far of one element of y: @f for floating point, else @i. */
union air_acc {
	double f;
	int64_t i;
};

/* Elements of y folded side by side. */
#define AIR_COLUMNS 1024

/**
 * struct air_reduce_in - how x is walked
 * @along: elements that go into the same element of y
 * @across: elements that go into neighbouring elements of y
 */
struct air_reduce_in {
	struct air_vec along;
	struct air_vec across;
};

/**
 * struct air_reducer - how values of one dtype are folded
 * @start: of nothing
 * @row: fold @n elements along into *@a
 * @columns: fold @rows elements along into each of @n neighbours in @a,
 *	n <= AIR_COLUMNS
 * @combine: fold *@b into *@a
 */
struct air_reducer {
	union air_acc start;
	void (*row)(union air_acc *a, const struct air_reduce_in *in,
		    const char *p, uint64_t n);
	void (*columns)(union air_acc *a, const struct air_reduce_in *in,
			const char *p, uint64_t rows, uint64_t n);
	void (*combine)(union air_acc *a, const union air_acc *b);
};

air_status air_reduce_plan(const struct airunner_desc *d,
			   const struct air_reducer *reducer,
			   struct air_cpu_plan **out, struct air_error *e);

/* row() and columns() for an integer type; @fold(a, v) is an expression. */
#define AIR_REDUCE_INT(name, type, fold)                                      \
	static void name##_row(union air_acc *a,                              \
			       const struct air_reduce_in *in, const char *p, \
			       uint64_t n)                                    \
	{                                                                     \
		int64_t acc = a->i;                                           \
\
		for (uint64_t i = 0; i < n; i++) {                            \
			acc = fold(acc, *(const type *)p);                    \
			p += in->along.stride;                                \
		}                                                             \
		a->i = acc;                                                   \
	}                                                                     \
\
	static void name##_columns(union air_acc *a,                          \
				   const struct air_reduce_in *in,            \
				   const char *p, uint64_t rows, uint64_t n)  \
	{                                                                     \
		for (uint64_t r = 0; r < rows; r++) {                         \
			const char *q = p + (int64_t)r * in->along.stride;    \
\
			for (uint64_t i = 0; i < n; i++) {                    \
				a[i].i = fold(a[i].i, *(const type *)q);      \
				q += in->across.stride;                       \
			}                                                     \
		}                                                             \
	}

#endif /* AIR_REDUCE_CPU_H */
