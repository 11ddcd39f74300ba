// SPDX-License-Identifier: MIT
/*
 * How many a second. "ring" is the whole product: submissions through the
 * library, a worker that dispatches NOPs, completions collected. "ring_bare"
 * is the ring's protocol between two threads, which is what rte_ring and the
 * condvar queue do: 64-byte messages one way. io_uring's NOPs are submitted and
 * their completions collected, as the product's.
 */
#include <airunner.h>

#include "tests/bench/cpu.h"
#include "tests/bench/peers.h"
#include "tests/bench/session.h"

#define ORDER 10
#define BATCH 32
#define MESSAGES 65536 /* a round */

/* ------------------------------------------------- messages through queues */

struct stream {
	const struct queue_ops *ops;
	struct bench_partner *partner;
	void *queue;
	uint64_t sum;
};

static void consume(void *arg)
{
	struct stream *x = arg;
	struct air_sqe m[BATCH];
	uint64_t sum = 0;

	for (unsigned int left = MESSAGES; left;) {
		unsigned int n = x->ops->get(x->queue, m, BATCH);

		for (unsigned int i = 0; i < n; i++)
			sum += m[i].word[0] ^ m[i].word[7];
		left -= n;
	}
	x->sum = sum;
}

static double stream(struct bench_row *row, void *ctx)
{
	struct stream *x = ctx;
	struct air_sqe m[BATCH] = { 0 };
	uint64_t sum = 0, t;

	x->queue = x->ops->create(1 << ORDER, false);
	bench_partner_start(x->partner, consume, x);
	t = bench_ticks();
	for (unsigned int sent = 0; sent < MESSAGES; sent += BATCH) {
		for (unsigned int i = 0; i < BATCH; i++) {
			m[i].word[0] = sent + i;
			m[i].word[7] = (uint64_t)i << 32;
			sum += m[i].word[0] ^ m[i].word[7];
		}
		while (!x->ops->put(x->queue, m, BATCH))
			;
	}
	bench_partner_join(x->partner);
	t = bench_ticks() - t;
	x->ops->destroy(x->queue);
	if (sum != x->sum)
		bench_fail("%s: messages were lost or changed", x->ops->name);
	return bench_ticks_ns(t) / MESSAGES;
}

/* ------------------------------------------------------------ the product */

struct product {
	struct session s;
	struct air_call calls[BATCH];
};

static double product(struct bench_row *row, void *ctx)
{
	struct product *x = ctx;
	struct air_completion done;
	unsigned int sent = 0, got = 0;
	uint64_t t;

	session_call(x->s.ch, &x->calls[0]);
	t = bench_ticks();
	while (got < MESSAGES) {
		if (sent < MESSAGES &&
		    air_submit(x->s.ch, x->calls, BATCH, NULL) == AIR_OK) {
			sent += BATCH;
			continue;
		}
		while (got < sent && air_next(x->s.ch, &done) == AIR_OK) {
			bench_check(done.status, "nop");
			got++;
		}
	}
	t = bench_ticks() - t;
	return bench_ticks_ns(t) / MESSAGES;
}

/* --------------------------------------------------------------- io_uring */

#ifdef HAVE_URING
static double uring(struct bench_row *row, void *ctx)
{
	struct uring_peer *u = ctx;
	unsigned int sent = 0, got = 0;
	uint64_t t;

	uring_peer_call(u);
	t = bench_ticks();
	while (got < MESSAGES) {
		if (sent < MESSAGES && sent - got + BATCH <= 1 << ORDER) {
			uring_peer_submit(u, BATCH);
			sent += BATCH;
		}
		if (sent == MESSAGES || sent - got + BATCH > 1 << ORDER)
			got += uring_peer_collect(u, 1 << ORDER);
	}
	return bench_ticks_ns(bench_ticks() - t) / MESSAGES;
}
#endif

void cpu_throughput(struct bench *b, struct bench_partner *p)
{
	const struct bench_spec spec = {
		"throughput_ns_per_op", "ns",
		"64-byte messages, 32 a batch, 1024 entries", 61, 3,
	};
	static struct product prod;
	struct stream bare = { &queue_ring, p, NULL, 0 };
	struct stream condvar = { &queue_condvar, p, NULL, 0 };
	struct bench_contender c[8] = {
		{ "ring", product, &prod },
		{ "ring_bare", stream, &bare },
		{ "condvar", stream, &condvar },
	};
	unsigned int n = 3;

	if (!bench_wants(b, spec.name))
		return;
	session_open(&prod.s, ORDER, 0);
	for (unsigned int i = 0; i < BATCH; i++)
		air_prepare_nop(&prod.calls[i]);
#ifdef HAVE_RTE_RING
	struct stream rte = { &queue_rte_ring, p, NULL, 0 };

	c[n++] = (struct bench_contender){ "rte_ring", stream, &rte };
#endif
#ifdef HAVE_URING
	struct uring_peer *u, *sq;
	const char *why;

	u = uring_peer_create(1 << ORDER, -1, &why);
	if (u)
		c[n++] = (struct bench_contender){ "io_uring_nop", uring, u };
	sq = uring_peer_create(1 << ORDER, bench_cpu(1), &why);
	if (sq)
		c[n++] = (struct bench_contender){ "io_uring_sqpoll", uring,
						   sq };
#endif
	bench_run(b, &spec, c, n);
#ifdef HAVE_URING
	if (u)
		uring_peer_destroy(u);
	if (sq)
		uring_peer_destroy(sq);
#endif
	session_close(&prod.s);
}
