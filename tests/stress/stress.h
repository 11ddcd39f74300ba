/* SPDX-License-Identifier: MIT */
/*
 * What the stress programs of the bare ring share: a ring that starts at any
 * index, random numbers, futexes between processes.
 */
#ifndef AIR_STRESS_H
#define AIR_STRESS_H

#include <errno.h>
#include <linux/futex.h>
#include <limits.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "libairunner/membarrier.h"
#include "libairunner/ring.h"

static inline uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* splitmix64: any seed is good, also 0, 1, 2 ... */
static inline uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

static inline uint64_t draw(uint64_t *seed)
{
	return mix((*seed)++);
}

/*
 * Sleep while *@word is @value, at most 30 s: far longer than any wake-up
 * takes, so that a lost one ends the test instead of hanging it. Not private:
 * the other side may be another process.
 */
static inline void futex_wait(uint32_t *word, uint32_t value)
{
	struct timespec limit = { .tv_sec = 30 };

	if (syscall(SYS_futex, word, FUTEX_WAIT, value, &limit, NULL, 0) < 0 &&
	    errno == ETIMEDOUT) {
		fprintf(stderr, "nobody woke process %d in 30 s\n", getpid());
		_exit(3);
	}
}

/*
 * The first, short sleep of a side that relies on membarrier(2): it looks again
 * when this returns.
 */
static inline void futex_doze(uint32_t *word, uint32_t value)
{
	struct timespec limit = { .tv_nsec = AIR_LOOK_AGAIN_NS };

	syscall(SYS_futex, word, FUTEX_WAIT, value, &limit, NULL, 0);
}

static inline void futex_wake_all(uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static inline void ring_bell(uint32_t *bell)
{
	__atomic_fetch_add(bell, 1, __ATOMIC_SEQ_CST);
	futex_wake_all(bell);
}

static inline void *map_shared(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
	return p;
}

static inline size_t ring_bytes(uint32_t order)
{
	return airunner_arena_offset(order);
}

/*
 * A ring in which everything before @start has been submitted, completed and
 * collected: 0 is a fresh one, and others are near the wraps that a test could
 * not reach by counting.
 */
static inline void ring_start_at(struct air_ring *r, uint8_t *collected,
				 uint64_t start)
{
	uint64_t entries = 1ULL << r->order;

	r->ctrl->sq_tail = start;
	r->ctrl->cq_head = start;
	if (start == 0)
		return;
	for (uint64_t i = start - entries; i != start; i++) {
		uint64_t slot = air_ring_slot(r, i);
		uint8_t lap = airunner_lap(i, r->order);
		uint64_t word = airunner_word(mix(i), lap);

		for (int w = 0; w < AIRUNNER_SQE_WORDS; w++)
			r->sq[slot * AIRUNNER_SQE_WORDS + w] = word;
		for (int w = 0; w < AIRUNNER_CQE_WORDS; w++)
			r->cq[slot * AIRUNNER_CQE_WORDS + w] = word;
		collected[slot] = lap;
	}
}

#endif /* AIR_STRESS_H */
