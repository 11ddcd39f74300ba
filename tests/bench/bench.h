/* SPDX-License-Identifier: MIT */
/*
 * What all benchmark programs share: time, pinning, samples, the table and
 * the JSON file.
 *
 * A row compares contenders: the ring, and its peers. Each contender is a
 * function that does one round and returns what it cost an operation. Rounds
 * of all contenders of a row alternate, so that whatever the machine does
 * meanwhile happens to all of them; the first rounds warm up and are dropped.
 * A row's figure is the median of the rounds. Percentiles come from operations
 * that were timed one by one, where a contender does that (bench_tail()).
 *
 * Everything here is for one thread, the program's first.
 */
#ifndef BENCH_H
#define BENCH_H

#include <jansson.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ------------------------------------------------------------------- time */

/* Nanoseconds of CLOCK_MONOTONIC. */
uint64_t bench_now(void);

/* A cheap clock of unspecified unit, and what a difference of it is in ns. */
uint64_t bench_ticks(void);
double bench_ticks_ns(uint64_t ticks);

static inline void bench_relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield" ::: "memory");
#endif
}

/* ---------------------------------------------------------------- pinning */

/*
 * The processors used: bench_cpu(0) for the side that submits, bench_cpu(1)
 * for the side that serves. Not siblings of one core where that can be helped.
 */
int bench_cpu(unsigned int side);

/* Pin the calling thread. Threads it creates afterwards inherit that. */
void bench_pin(int cpu);

/*
 * A thread that sleeps but when asked to do something, so that contenders do
 * not disturb each other. @cpu: where; -1 for all but the serving side's.
 */
struct bench_partner;
struct bench_partner *bench_partner_create(int cpu);
void bench_partner_start(struct bench_partner *p, void (*fn)(void *arg),
			 void *arg);
void bench_partner_join(struct bench_partner *p);
void bench_partner_destroy(struct bench_partner *p);

/* ------------------------------------------------------------------- rows */

struct bench;
struct bench_row;

/* One operation, timed alone, in the row's unit. */
void bench_tail(struct bench_row *row, double value);

/**
 * struct bench_contender - one way of doing what a row is about
 * @name: "ring", or the peer's name in the JSON file
 * @round: do a round, return the cost of an operation in the row's unit. It
 *	checks what came out and calls bench_fail() if that is wrong
 * @ctx: for it
 */
struct bench_contender {
	const char *name;
	double (*round)(struct bench_row *row, void *ctx);
	void *ctx;
};

/**
 * struct bench_spec - a row
 * @name: in the JSON file; ends in its unit
 * @unit: "ns" or "us": what contenders return
 * @what: one line for the table
 * @rounds: counted rounds of each contender
 * @warmup: rounds before them
 */
struct bench_spec {
	const char *name;
	const char *unit;
	const char *what;
	unsigned int rounds;
	unsigned int warmup;
};

/* Run a row, print it, add it to the file. The first contender is the ring. */
void bench_run(struct bench *b, const struct bench_spec *spec,
	       const struct bench_contender *contenders, unsigned int n);

/*
 * @argc, @argv: [--out FILE] [--quick] [--only SUBSTRING], for every program.
 * @group: NULL, or a name under "executors" for the rows from here on.
 */
struct bench *bench_open(int argc, char **argv);
void bench_group(struct bench *b, const char *group);

/* A contender that is not there, and why: goes into the file. */
void bench_absent(struct bench *b, const char *name, const char *why);

/* More about the machine. */
void bench_machine(struct bench *b, const char *key, const char *value);

/* Whether a row would be run: lets a program skip the preparations. */
bool bench_wants(const struct bench *b, const char *name);

/* 1.0, or less when --quick asks for a short run. */
double bench_effort(const struct bench *b);

/* Write the file. The exit status of the program. */
int bench_close(struct bench *b);

/* Something is wrong: say what, and end. */
void bench_fail(const char *fmt, ...)
	__attribute__((format(printf, 1, 2), noreturn));

#endif /* BENCH_H */
