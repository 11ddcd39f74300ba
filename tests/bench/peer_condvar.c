// SPDX-License-Identifier: MIT
#include <pthread.h>
#include <stdlib.h>

#include "tests/bench/bench.h"
#include "tests/bench/peers.h"

struct condvar_queue {
	pthread_mutex_t lock;
	pthread_cond_t not_empty, not_full;
	unsigned int entries;
	uint64_t head, tail;
	struct air_sqe slot[];
};

static void *create(unsigned int entries, bool many_producers)
{
	struct condvar_queue *q =
		calloc(1, sizeof(*q) + entries * sizeof(q->slot[0]));

	if (!q)
		bench_fail("no memory");
	pthread_mutex_init(&q->lock, NULL);
	pthread_cond_init(&q->not_empty, NULL);
	pthread_cond_init(&q->not_full, NULL);
	q->entries = entries;
	return q;
}

static void destroy(void *queue)
{
	free(queue);
}

static unsigned int put(void *queue, const struct air_sqe *m, unsigned int n)
{
	struct condvar_queue *q = queue;

	pthread_mutex_lock(&q->lock);
	for (unsigned int i = 0; i < n; i++) {
		while (q->tail - q->head == q->entries) {
			pthread_cond_signal(&q->not_empty);
			pthread_cond_wait(&q->not_full, &q->lock);
		}
		q->slot[q->tail++ % q->entries] = m[i];
	}
	pthread_mutex_unlock(&q->lock);
	pthread_cond_signal(&q->not_empty);
	return n;
}

static unsigned int get(void *queue, struct air_sqe *m, unsigned int n)
{
	struct condvar_queue *q = queue;
	unsigned int i = 0;

	pthread_mutex_lock(&q->lock);
	while (q->tail == q->head)
		pthread_cond_wait(&q->not_empty, &q->lock);
	while (i < n && q->head != q->tail)
		m[i++] = q->slot[q->head++ % q->entries];
	pthread_mutex_unlock(&q->lock);
	pthread_cond_broadcast(&q->not_full);
	return i;
}

const struct queue_ops queue_condvar = {
	.name = "condvar",
	.create = create,
	.destroy = destroy,
	.put = put,
	.get = get,
	.blocks = true,
};
