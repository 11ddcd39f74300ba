/* SPDX-License-Identifier: MIT */
/*
 * What the ring is compared with on the CPU side.
 *
 * Queues move 64-byte messages one way; all of them through this interface,
 * in batches, so that the call costs all of them the same. A message is eight
 * words of 56 bits, as the ring carries them.
 */
#ifndef BENCH_PEERS_H
#define BENCH_PEERS_H

#include <stdbool.h>
#include <stdint.h>

#include "libairunner/ring.h"

/**
 * struct queue_ops - a bounded queue
 * @name: contender's name
 * @create: for @entries (a power of two) messages, several producers or one
 * @put: as many of @n as there is room for; how many
 * @get: up to @n; how many
 * @blocks: put and get wait rather than return 0
 */
struct queue_ops {
	const char *name;
	void *(*create)(unsigned int entries, bool many_producers);
	void (*destroy)(void *queue);
	unsigned int (*put)(void *queue, const struct air_sqe *m,
			    unsigned int n);
	unsigned int (*get)(void *queue, struct air_sqe *m, unsigned int n);
	bool blocks;
};

/* The ring of this project, by libairunner/ring.h alone. */
extern const struct queue_ops queue_ring;
/* A mutex, two condition variables and an array. */
extern const struct queue_ops queue_condvar;
#ifdef HAVE_RTE_RING
/* DPDK's. */
extern const struct queue_ops queue_rte_ring;
#endif

/*
 * io_uring NOPs: a request to the kernel and its completion, for nothing.
 */
#ifdef HAVE_URING
struct uring_peer;
/* NULL, and why in @why: the kernel may refuse it. @sq_cpu: SQPOLL's, or -1 */
struct uring_peer *uring_peer_create(unsigned int entries, int sq_cpu,
				     const char **why);
void uring_peer_destroy(struct uring_peer *p);
/* Submit @n NOPs, do not wait for them. */
void uring_peer_submit(struct uring_peer *p, unsigned int n);
/* Collect up to @n completions that are there; how many. */
unsigned int uring_peer_collect(struct uring_peer *p, unsigned int n);
/* Submit one and wait for it. */
void uring_peer_call(struct uring_peer *p);
/*
 * At the end of a round: the kernel's polling thread goes on for a while, on
 * the processor of whoever measures next. Wait until it sleeps.
 */
void uring_peer_rest(struct uring_peer *p);
#endif

#endif /* BENCH_PEERS_H */
