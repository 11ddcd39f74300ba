// SPDX-License-Identifier: MIT
/*
 * How many a second. In throughput_ns_per_op "ring" is the ring's protocol
 * between two threads, as rte_ring and the condvar queue are: 64-byte messages
 * one way, and completions back as their credit. "ring_worker" is the whole
 * product: submissions through the library, a worker that dispatches NOPs,
 * completions collected. throughput_nop_ns_per_op compares that with io_uring,
 * whose NOPs are submitted and completed likewise.
 */
#include <airunner.h>

#include "tests/bench/cpu.h"
#include "tests/bench/peers.h"
#include "tests/bench/session.h"

#define ORDER 10
#define BATCH 32
#define MESSAGES 16384 /* a round */

/* ------------------------------------------------- messages through queues */

struct stream {
	const struct queue_ops *ops;
	struct bench_partner *partner;
	bool shared; /* made for several producers, although there is one */
	void *queue;
	uint64_t sum;
	uint32_t ready;
};

static void consume(void *arg)
{
	struct stream *x = arg;
	struct air_sqe m[BATCH];
	uint64_t sum = 0;

	__atomic_store_n(&x->ready, 1, __ATOMIC_RELEASE);
	for (unsigned int left = MESSAGES; left;) {
		unsigned int n = x->ops->get(x->queue, m, BATCH);

		for (unsigned int i = 0; i < n; i++)
			sum += m[i].word[0] ^ m[i].word[7];
		left -= n;
		if (!n)
			bench_relax();
	}
	x->sum = sum;
}

static double stream(struct bench_row *row, void *ctx)
{
	struct stream *x = ctx;
	struct air_sqe m[BATCH] = { 0 };
	uint64_t sum = 0, t;

	if (!x->queue)
		x->queue = x->ops->create(1 << ORDER, x->shared);
	x->ready = 0;
	bench_partner_start(x->partner, consume, x);
	while (!__atomic_load_n(&x->ready, __ATOMIC_ACQUIRE))
		bench_relax();
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
	if (sum != x->sum)
		bench_fail("%s: messages were lost or changed", x->ops->name);
	return bench_ticks_ns(t) / MESSAGES;
}

/* ------------------------------------------------------------ the product */

#define BLOCK 256 /* collected at a time */

struct product {
	air_channel *ch;
	struct air_call calls[BATCH];
};

/*
 * Four blocks fill the ring: one is submitted while the last three are on their
 * way. Completions come in order, so that the last one of a block tells that
 * all are there.
 */
static double product(struct bench_row *row, void *ctx)
{
	struct product *x = ctx;
	air_token first = 0, next;
	uint64_t t;

	session_call(x->ch, &x->calls[0]);
	t = bench_ticks();
	for (unsigned int block = 0; block < MESSAGES / BLOCK + 3; block++) {
		for (unsigned int i = 0; block < MESSAGES / BLOCK && i < BLOCK;
		     i += BATCH) {
			bench_check(air_submit(x->ch, x->calls, BATCH, &next),
				    "air_submit");
			if (!first)
				first = next;
		}
		if (block < 3)
			continue;
		session_finish(x->ch, first + BLOCK - 1);
		session_finish_many(x->ch, first, BLOCK - 1);
		first += BLOCK;
	}
	return bench_ticks_ns(bench_ticks() - t) / MESSAGES;
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
	t = bench_ticks() - t;
	uring_peer_rest(u);
	return bench_ticks_ns(t) / MESSAGES;
}
#endif

void cpu_throughput(struct bench *b, struct bench_partner *p)
{
	const struct bench_spec one_way = {
		"throughput_ns_per_op", "ns",
		"64-byte messages, 32 a batch, 1024 entries", 201, 5,
	};
	const struct bench_spec nops = {
		"throughput_nop_ns_per_op", "ns",
		"NOPs through library and worker, 32 a batch", 101, 5,
	};
	static struct product alone, shared;
	struct session s;
	struct stream bare = { .ops = &queue_ring, .partner = p };
	struct stream many = { .ops = &queue_ring,
			       .partner = p,
			       .shared = true };
	struct stream condvar = { .ops = &queue_condvar, .partner = p };
	struct bench_contender c[8] = {
		{ "ring", stream, &bare },
		{ "ring_shared", stream, &many },
		{ "ring_worker", product, &alone },
		{ "condvar", stream, &condvar },
	};
	struct bench_contender d[4] = {
		{ "ring", product, &alone },
		{ "ring_shared", product, &shared },
	};
	unsigned int n = 4, m = 2;

	if (!bench_wants(b, one_way.name) && !bench_wants(b, nops.name))
		return;
	session_open(&s, ORDER, SPIN_NS);
	alone.ch = s.ch;
	shared.ch = session_shared(&s, ORDER);
	for (unsigned int i = 0; i < BATCH; i++) {
		air_prepare_nop(&alone.calls[i]);
		air_prepare_nop(&shared.calls[i]);
	}
#ifdef HAVE_RTE_RING
	struct stream rte = { .ops = &queue_rte_ring, .partner = p };

	c[n++] = (struct bench_contender){ "rte_ring", stream, &rte };
#endif
#ifdef HAVE_URING
	struct uring_peer *u, *sq;
	const char *why;

	u = uring_peer_create(1 << ORDER, -1, &why);
	if (u)
		d[m++] = c[n++] = (struct bench_contender){ "io_uring_nop",
							    uring, u };
	sq = uring_peer_create(1 << ORDER, bench_cpu(1), &why);
	if (sq)
		d[m++] = c[n++] = (struct bench_contender){ "io_uring_sqpoll",
							    uring, sq };
#endif
	bench_run(b, &one_way, c, n);
	bench_run(b, &nops, d, m);
#ifdef HAVE_URING
	if (u)
		uring_peer_destroy(u);
	if (sq)
		uring_peer_destroy(sq);
#endif
	bench_check(air_channel_destroy(shared.ch), "air_channel_destroy");
	session_close(&s);
}
