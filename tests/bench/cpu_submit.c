// SPDX-License-Identifier: MIT
/*
 * What handing over one operation costs the thread that does it, while the
 * other side is awake and takes it. Peers are stopped likewise: what the
 * kernel does inside io_uring_submit() is part of it.
 */
#include <airunner.h>
#include <airunner/ops/vector_add.h>

#include "tests/bench/cpu.h"
#include "tests/bench/peers.h"
#include "tests/bench/session.h"

#define ORDER 10
#define BATCH 64
#define BURST 512 /* timed at a time; fits every queue */

/* A channel that is submitted to. */
struct way {
	air_channel *ch;
	struct adder add;
	struct air_call calls[BATCH];
};

struct submit {
	struct session s;
	struct way alone, shared;
	struct bench_partner *partner;
#ifdef HAVE_URING
	struct uring_peer *uring, *sqpoll;
#endif
	void *rte;
	uint64_t left;
};

static void way_open(struct way *w, air_channel *ch)
{
	w->ch = ch;
	adder_create(&w->add, ch, 1);
	for (unsigned int i = 0; i < BATCH; i++)
		w->calls[i] = w->add.call;
}

/* Awake, and with an empty ring. */
static void warm(struct way *w)
{
	adder_poison(&w->add);
	for (int i = 0; i < 10; i++)
		session_call(w->ch, &w->calls[0]);
	adder_poison(&w->add);
}

static double ring_batches(struct bench_row *row, void *ctx)
{
	struct way *w = ctx;
	air_token first[BURST / BATCH];
	unsigned int n = 0;
	uint64_t t;

	warm(w);
	t = bench_ticks();
	for (unsigned int i = 0; i < BURST; i += BATCH)
		bench_check(air_submit(w->ch, w->calls, BATCH, &first[n++]),
			    "air_submit");
	t = bench_ticks() - t;
	session_finish_many(w->ch, first[0], BURST);
	adder_check(&w->add);
	return bench_ticks_ns(t) / BURST;
}

static double ring_calls(struct bench_row *row, void *ctx)
{
	struct way *w = ctx;
	air_token token[BURST];
	uint64_t t;

	warm(w);
	t = bench_ticks();
	for (unsigned int i = 0; i < BURST; i++)
		bench_check(air_submit(w->ch, &w->calls[i % BATCH], 1,
				       &token[i]),
			    "air_submit");
	t = bench_ticks() - t;
	session_finish_many(w->ch, token[0], BURST);
	adder_check(&w->add);
	return bench_ticks_ns(t) / BURST;
}

static double ring_executes(struct bench_row *row, void *ctx)
{
	struct way *w = ctx;
	air_token token[BURST];
	uint64_t t;

	warm(w);
	t = bench_ticks();
	for (unsigned int i = 0; i < BURST; i++)
		bench_check(air_execute_vector_add(w->add.d, AIR_NO_REF,
						   w->add.ref[0], w->add.ref[1],
						   w->add.ref[2], &token[i]),
			    "air_execute_vector_add");
	t = bench_ticks() - t;
	session_finish_many(w->ch, token[0], BURST);
	adder_check(&w->add);
	return bench_ticks_ns(t) / BURST;
}

#ifdef HAVE_RTE_RING
static void rte_consume(void *arg)
{
	struct submit *x = arg;
	struct air_sqe m[BATCH];

	while (x->left)
		x->left -= queue_rte_ring.get(x->rte, m, BATCH);
}

static double rte_batch(struct bench_row *row, void *ctx)
{
	static struct air_sqe m[BATCH];
	struct submit *x = ctx;
	uint64_t t;

	x->left = BURST + BATCH;
	bench_partner_start(x->partner, rte_consume, x);
	queue_rte_ring.put(x->rte, m, BATCH);
	t = bench_now() + 20000; /* it is awake by then */
	while (bench_now() < t)
		;
	t = bench_ticks();
	for (unsigned int i = 0; i < BURST; i += BATCH)
		if (!queue_rte_ring.put(x->rte, m, BATCH))
			bench_fail("rte_ring is full");
	t = bench_ticks() - t;
	bench_partner_join(x->partner);
	return bench_ticks_ns(t) / BURST;
}
#endif

#ifdef HAVE_URING
static double uring_batch(struct bench_row *row, struct uring_peer *u)
{
	unsigned int left = BURST;
	uint64_t t;

	uring_peer_call(u);
	t = bench_ticks();
	for (unsigned int i = 0; i < BURST; i += BATCH)
		uring_peer_submit(u, BATCH);
	t = bench_ticks() - t;
	while (left)
		left -= uring_peer_collect(u, left);
	uring_peer_rest(u);
	return bench_ticks_ns(t) / BURST;
}

static double uring_nop(struct bench_row *row, void *ctx)
{
	return uring_batch(row, ((struct submit *)ctx)->uring);
}

static double uring_sqpoll(struct bench_row *row, void *ctx)
{
	return uring_batch(row, ((struct submit *)ctx)->sqpoll);
}
#endif

void cpu_submit(struct bench *b, struct bench_partner *p)
{
	const struct bench_spec spec = {
		"submit_ns", "ns", "handing over one operator, 64 a batch", 201, 5,
	};
	static struct submit x;
	struct bench_contender c[10] = {
		{ "ring", ring_batches, &x.alone },
		{ "ring_shared", ring_batches, &x.shared },
		{ "ring_call", ring_calls, &x.alone },
		{ "ring_call_shared", ring_calls, &x.shared },
		{ "ring_single", ring_executes, &x.alone },
		{ "ring_single_shared", ring_executes, &x.shared },
	};
	unsigned int n = 6;

	if (!bench_wants(b, spec.name))
		return;
	x.partner = p;
	session_open(&x.s, ORDER, SPIN_NS);
	way_open(&x.alone, x.s.ch);
	way_open(&x.shared, session_shared(&x.s, ORDER));
#ifdef HAVE_RTE_RING
	x.rte = queue_rte_ring.create(1 << ORDER, false);
	c[n++] = (struct bench_contender){ "rte_ring", rte_batch, &x };
#endif
#ifdef HAVE_URING
	const char *why;

	x.uring = uring_peer_create(1 << ORDER, -1, &why);
	if (x.uring)
		c[n++] = (struct bench_contender){ "io_uring_nop", uring_nop,
						   &x };
	else
		bench_absent(b, "io_uring_nop", why);
	x.sqpoll = uring_peer_create(1 << ORDER, bench_cpu(1), &why);
	if (x.sqpoll)
		c[n++] = (struct bench_contender){ "io_uring_sqpoll",
						   uring_sqpoll, &x };
	else
		bench_absent(b, "io_uring_sqpoll", why);
#endif
	bench_run(b, &spec, c, n);
#ifdef HAVE_URING
	if (x.uring)
		uring_peer_destroy(x.uring);
	if (x.sqpoll)
		uring_peer_destroy(x.sqpoll);
#endif
#ifdef HAVE_RTE_RING
	queue_rte_ring.destroy(x.rte);
#endif
	adder_destroy(&x.shared.add);
	bench_check(air_channel_destroy(x.shared.ch), "air_channel_destroy");
	adder_destroy(&x.alone.add);
	session_close(&x.s);
}
