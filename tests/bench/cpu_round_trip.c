// SPDX-License-Identifier: MIT
/*
 * There and back between two processors. The limit is what the machine takes
 * to move a cache line there and another one back: two lines, each written by
 * one side and polled by the other.
 */
#include <airunner.h>

#include "tests/bench/cpu.h"
#include "tests/bench/peers.h"
#include "tests/bench/session.h"

#define TRIPS 500 /* timed together, and as many one by one */

struct line {
	uint64_t word __attribute__((aligned(128)));
};

struct trip {
	struct session s;
	struct adder add;
	struct air_call nop;
	struct bench_partner *partner;
	struct line there, back;
	struct uring_peer *uring;
};

static double timed(struct bench_row *row, struct trip *x,
		    void (*trip)(struct trip *x))
{
	uint64_t t;

	for (int i = 0; i < 50; i++)
		trip(x);
	for (int i = 0; i < TRIPS; i++) {
		t = bench_ticks();
		trip(x);
		bench_tail(row, bench_ticks_ns(bench_ticks() - t));
	}
	t = bench_ticks();
	for (int i = 0; i < TRIPS; i++)
		trip(x);
	return bench_ticks_ns(bench_ticks() - t) / TRIPS;
}

static void ring_trip(struct trip *x)
{
	session_call(x->s.ch, &x->nop);
}

static double ring(struct bench_row *row, void *ctx)
{
	return timed(row, ctx, ring_trip);
}

static void ring_wait_trip(struct trip *x)
{
	air_token token;

	bench_check(air_submit(x->s.ch, &x->nop, 1, &token), "air_submit");
	bench_check(air_wait(x->s.ch, token, AIR_FOREVER, NULL), "air_wait");
}

static double ring_wait(struct bench_row *row, void *ctx)
{
	return timed(row, ctx, ring_wait_trip);
}

static void operator_trip(struct trip *x)
{
	session_call(x->s.ch, &x->add.call);
}

static double ring_operator(struct bench_row *row, void *ctx)
{
	struct trip *x = ctx;
	double value;

	adder_poison(&x->add);
	value = timed(row, ctx, operator_trip);
	adder_check(&x->add);
	return value;
}

static void answer_line(void *arg)
{
	struct trip *x = arg;
	uint64_t seen = 0, now;

	do {
		while ((now = __atomic_load_n(&x->there.word,
					      __ATOMIC_ACQUIRE)) == seen)
			;
		seen = now;
		__atomic_store_n(&x->back.word, now, __ATOMIC_RELEASE);
	} while (now != UINT64_MAX);
}

static void line_trip(struct trip *x)
{
	uint64_t next = x->back.word + 1;

	__atomic_store_n(&x->there.word, next, __ATOMIC_RELEASE);
	while (__atomic_load_n(&x->back.word, __ATOMIC_ACQUIRE) != next)
		;
}

static double pingpong(struct bench_row *row, void *ctx)
{
	struct trip *x = ctx;
	double value;

	x->there.word = x->back.word = 0;
	bench_partner_start(x->partner, answer_line, x);
	value = timed(row, x, line_trip);
	__atomic_store_n(&x->there.word, UINT64_MAX, __ATOMIC_RELEASE);
	bench_partner_join(x->partner);
	return value;
}

#ifdef HAVE_URING
static void uring_trip(struct trip *x)
{
	uring_peer_call(x->uring);
}

static double uring_nop(struct bench_row *row, void *ctx)
{
	return timed(row, ctx, uring_trip);
}
#endif

void cpu_round_trip(struct bench *b, struct bench_partner *p)
{
	const struct bench_spec spec = {
		"rtt_ns", "ns", "submit, worker, completion; NOP", 201, 5,
	};
	static struct trip x;
	struct bench_contender c[6] = {
		{ "ring", ring, &x },
		{ "cacheline_pingpong", pingpong, &x },
		{ "ring_wait", ring_wait, &x },
		{ "ring_vector_add_1", ring_operator, &x },
	};
	unsigned int n = 4;

	if (!bench_wants(b, spec.name))
		return;
	x.partner = p;
	session_open(&x.s, 0, SPIN_NS);
	adder_create(&x.add, x.s.ch, 1);
	air_prepare_nop(&x.nop);
#ifdef HAVE_URING
	const char *why;

	x.uring = uring_peer_create(64, -1, &why);
	if (x.uring)
		c[n++] = (struct bench_contender){ "io_uring_nop", uring_nop,
						   &x };
#endif
	bench_run(b, &spec, c, n);
#ifdef HAVE_URING
	if (x.uring)
		uring_peer_destroy(x.uring);
#endif
	adder_destroy(&x.add);
	session_close(&x.s);
}
