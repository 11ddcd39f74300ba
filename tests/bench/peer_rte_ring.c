// SPDX-License-Identifier: MIT
/*
 * DPDK's ring with 64-byte elements, in ordinary memory: rte_ring needs no
 * environment abstraction layer for that.
 */
#include <stdlib.h>

#include <rte_ring.h>

#include "tests/bench/bench.h"
#include "tests/bench/peers.h"

static void *create(unsigned int entries, bool many_producers)
{
	ssize_t bytes = rte_ring_get_memsize_elem(sizeof(struct air_sqe),
						  entries);
	struct rte_ring *r;

	if (bytes < 0)
		bench_fail("rte_ring: %u entries: error %zd", entries, bytes);
	r = aligned_alloc(128, ((size_t)bytes + 127) & ~(size_t)127);
	if (!r || rte_ring_init(r, "bench", entries,
				(many_producers ? 0 : RING_F_SP_ENQ) |
					RING_F_SC_DEQ))
		bench_fail("rte_ring: cannot set it up");
	return r;
}

static void destroy(void *queue)
{
	free(queue);
}

static unsigned int put(void *queue, const struct air_sqe *m, unsigned int n)
{
	return rte_ring_enqueue_bulk_elem(queue, m, sizeof(*m), n, NULL);
}

static unsigned int get(void *queue, struct air_sqe *m, unsigned int n)
{
	return rte_ring_dequeue_burst_elem(queue, m, sizeof(*m), n, NULL);
}

const struct queue_ops queue_rte_ring = {
	.name = "rte_ring",
	.create = create,
	.destroy = destroy,
	.put = put,
	.get = get,
};
