// SPDX-License-Identifier: MIT
/*
 * The bare ring as a one-way queue: completions are its credit.
 */
#include <stdlib.h>
#include <string.h>

#include "libairunner/ring.h"
#include "tests/bench/bench.h"
#include "tests/bench/peers.h"

struct ring_queue {
	struct air_ring ring;
	uint8_t *collected;
	void *region;
	bool shared;
	uint64_t answered __attribute__((aligned(128)));
	uint64_t next __attribute__((aligned(128)));
};

static void *create(unsigned int entries, bool many_producers)
{
	uint32_t order = (uint32_t)__builtin_ctz(entries);
	struct ring_queue *q = aligned_alloc(128, sizeof(*q));
	size_t bytes = airunner_arena_offset(order);

	bytes = (bytes + 4095) & ~(size_t)4095;
	if (!q)
		bench_fail("no memory");
	memset(q, 0, sizeof(*q));
	q->region = aligned_alloc(4096, bytes);
	q->collected = calloc(1, entries);
	if (!q->region || !q->collected)
		bench_fail("no memory");
	memset(q->region, 0, bytes);
	q->shared = many_producers;
	air_ring_init(&q->ring, q->region, order);
	q->ring.single = !many_producers;
	return q;
}

static void destroy(void *queue)
{
	struct ring_queue *q = queue;

	free(q->region);
	free(q->collected);
	free(q);
}

/*
 * Any producer may collect; who gets to it first does. A quarter of the ring at
 * least is worth the look: nearer to the consumer, both would be at the same
 * cache line.
 */
static void collect(struct ring_queue *q)
{
	uint64_t i = air_load(&q->answered, RELAXED);
	struct air_cqe cqe;

	if (!air_ring_completed(&q->ring, i + (1u << q->ring.order) / 4, &cqe))
		return;
	while (air_ring_completed(&q->ring, i, &cqe)) {
		if (!q->shared) {
			air_store(&q->answered, i + 1, RELAXED);
			air_ring_mark(&q->ring, q->collected, i++);
		} else if (__atomic_compare_exchange_n(&q->answered, &i, i + 1,
						       false, __ATOMIC_RELAXED,
						       __ATOMIC_RELAXED)) {
			air_ring_mark(&q->ring, q->collected, i++);
		}
	}
	air_ring_advance(&q->ring, q->collected);
}

static unsigned int put(void *queue, const struct air_sqe *m, unsigned int n)
{
	struct ring_queue *q = queue;
	uint64_t first;

	if (!air_ring_reserve(&q->ring, q->collected, n, &first)) {
		collect(q);
		if (!air_ring_reserve(&q->ring, q->collected, n, &first))
			return 0;
	}
	for (unsigned int i = 0; i < n; i++)
		air_ring_publish(&q->ring, first + i,
				 &m[i]);
	return n;
}

static unsigned int get(void *queue, struct air_sqe *m, unsigned int n)
{
	static const struct air_cqe ok = { .status = AIRUNNER_S_OK };
	struct ring_queue *q = queue;
	unsigned int i;

	for (i = 0; i < n; i++) {
		if (!air_ring_fetch(&q->ring, q->next, &m[i]))
			break;
		air_ring_complete(&q->ring, q->next++, &ok);
	}
	return i;
}

const struct queue_ops queue_ring = {
	.name = "ring_bare",
	.create = create,
	.destroy = destroy,
	.put = put,
	.get = get,
};
