/* SPDX-License-Identifier: MIT */
/* The rows of the GPU side. */
#ifndef BENCH_GPU_H
#define BENCH_GPU_H

#include <airunner.h>

#include "tests/bench/bench.h"
#include "tests/bench/direct.h"

/* Executors that are measured, by the name of their group in the file. */
extern const struct gpu_executor {
	const char *name;
	air_executor id;
} gpu_executors[2];

/*
 * Several processes at once: must run before this process touches CUDA, as it
 * forks. @daemon: airunnerd's path.
 */
void gpu_processes(struct bench *b, const char *daemon);

/* All others, for one executor. */
void gpu_rows(struct bench *b, air_device *dev, air_executor executor);

/* Their decode_step_us. */
void gpu_decode(struct bench *b, air_channel *ch);

#endif /* BENCH_GPU_H */
