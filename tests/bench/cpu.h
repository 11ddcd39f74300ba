/* SPDX-License-Identifier: MIT */
/* The rows of the CPU side; each function measures and prints its own. */
#ifndef BENCH_CPU_H
#define BENCH_CPU_H

#include "tests/bench/bench.h"

void cpu_submit(struct bench *b, struct bench_partner *p);
void cpu_round_trip(struct bench *b, struct bench_partner *p);
void cpu_throughput(struct bench *b, struct bench_partner *p);
void cpu_producers(struct bench *b, struct bench_partner *p);
void cpu_wake(struct bench *b);
void cpu_idle_channels(struct bench *b);
void cpu_operators(struct bench *b);

#endif /* BENCH_CPU_H */
