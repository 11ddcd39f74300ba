// SPDX-License-Identifier: MIT
/*
 * 1, 2, 4 and 8 threads submit at once, into one channel or queue; one side
 * serves. Producers run on all processors but the serving side's; where that
 * is only one, they take turns on it and the row shows what that costs.
 */
#include <sched.h>
#include <stdio.h>

#include <airunner.h>

#include "tests/bench/cpu.h"
#include "tests/bench/peers.h"
#include "tests/bench/session.h"

#define ORDER 10
#define BATCH 8
#define MESSAGES 32768 /* a round, of all producers together */
#define MAX_PRODUCERS 8

struct crowd {
	unsigned int producers;
	struct bench_partner *thread[MAX_PRODUCERS];
	struct bench_partner *partner;
	const struct queue_ops *ops;
	void *queue;
	uint64_t sum;
	air_channel *ch;
	uint32_t go;
};

struct member {
	struct crowd *crowd;
	uint64_t sum;
};

static void start_together(struct crowd *x)
{
	while (!__atomic_load_n(&x->go, __ATOMIC_ACQUIRE))
		sched_yield();
}

static double race(struct crowd *x, void (*fn)(void *arg),
		   struct member member[MAX_PRODUCERS])
{
	uint64_t t;

	x->go = 0;
	for (unsigned int i = 0; i < x->producers; i++) {
		member[i] = (struct member){ .crowd = x };
		bench_partner_start(x->thread[i], fn, &member[i]);
	}
	t = bench_ticks();
	__atomic_store_n(&x->go, 1, __ATOMIC_RELEASE);
	for (unsigned int i = 0; i < x->producers; i++)
		bench_partner_join(x->thread[i]);
	if (x->ops)
		bench_partner_join(x->partner);
	return bench_ticks_ns(bench_ticks() - t) / MESSAGES;
}

/* ------------------------------------------------------------ the product */

static void submit_share(void *arg)
{
	struct member *me = arg;
	struct crowd *x = me->crowd;
	air_channel *ch = x->ch;
	struct air_call calls[BATCH];
	air_token out[32];
	unsigned int head = 0, tail = 0;

	for (unsigned int i = 0; i < BATCH; i++)
		air_prepare_nop(&calls[i]);
	start_together(x);
	for (unsigned int left = MESSAGES / x->producers / BATCH;
	     left || head != tail;) {
		if (left && tail - head < 32) {
			air_status st = air_submit(ch, calls, BATCH,
						   &out[tail % 32]);

			if (st == AIR_OK) {
				tail++;
				left--;
				continue;
			}
			if (st != AIR_FULL)
				bench_check(st, "air_submit");
		}
		if (head == tail) {
			sched_yield();
			continue;
		}
		session_finish_many(ch, out[head++ % 32], BATCH);
	}
}

static double product(struct bench_row *row, void *ctx)
{
	struct member member[MAX_PRODUCERS];

	return race(ctx, submit_share, member);
}

/* ------------------------------------------------------------------ queues */

static void put_share(void *arg)
{
	struct member *me = arg;
	struct crowd *x = me->crowd;
	struct air_sqe m[BATCH] = { 0 };

	start_together(x);
	for (unsigned int n = MESSAGES / x->producers / BATCH; n; n--) {
		for (unsigned int i = 0; i < BATCH; i++) {
			m[i].word[7] = n * BATCH + i;
			me->sum += m[i].word[7];
		}
		while (!x->ops->put(x->queue, m, BATCH))
			sched_yield();
	}
}

static void get_all(void *arg)
{
	struct crowd *x = arg;
	struct air_sqe m[BATCH];
	uint64_t sum = 0;

	for (unsigned int left = MESSAGES; left;) {
		unsigned int n = x->ops->get(x->queue, m, BATCH);

		for (unsigned int i = 0; i < n; i++)
			sum += m[i].word[7];
		left -= n;
	}
	x->sum = sum;
}

static double queue(struct bench_row *row, void *ctx)
{
	struct member member[MAX_PRODUCERS];
	struct crowd *x = ctx;
	uint64_t sum = 0;
	double value;

	x->queue = x->ops->create(1 << ORDER, true);
	bench_partner_start(x->partner, get_all, x);
	value = race(x, put_share, member);
	x->ops->destroy(x->queue);
	for (unsigned int i = 0; i < x->producers; i++)
		sum += member[i].sum;
	if (sum != x->sum)
		bench_fail("%s: messages were lost or changed", x->ops->name);
	return value;
}

static void run(struct bench *b, struct bench_partner *p, air_channel *ch,
		unsigned int producers)
{
	const struct queue_ops *queues[] = {
		&queue_ring,
		&queue_condvar,
#ifdef HAVE_RTE_RING
		&queue_rte_ring,
#endif
	};
	struct crowd crowd[4] = { { .producers = producers, .ch = ch } };
	struct bench_contender c[4] = { { "ring", product, &crowd[0] } };
	unsigned int n = 1;
	char name[64];

	for (unsigned int i = 0; i < producers; i++)
		crowd[0].thread[i] = bench_partner_create(-1);
	for (size_t i = 0; i < sizeof(queues) / sizeof(queues[0]); i++, n++) {
		crowd[n] = crowd[0];
		crowd[n].ops = queues[i];
		crowd[n].partner = p;
		c[n] = (struct bench_contender){ queues[i]->name, queue,
						 &crowd[n] };
	}
	snprintf(name, sizeof(name), "producers_%u_ns_per_op", producers);
	bench_run(b,
		  &(struct bench_spec){ name, "ns", "many threads, 8 a batch",
					21, 2 },
		  c, n);
	for (unsigned int i = 0; i < producers; i++)
		bench_partner_destroy(crowd[0].thread[i]);
}

void cpu_producers(struct bench *b, struct bench_partner *p)
{
	struct session s;
	air_channel *ch;

	if (!bench_wants(b, "producers_1_ns_per_op") &&
	    !bench_wants(b, "producers_8_ns_per_op"))
		return;
	session_open(&s, ORDER, SPIN_NS);
	ch = session_shared(&s, ORDER);
	for (unsigned int producers = 1; producers <= MAX_PRODUCERS;
	     producers *= 2)
		run(b, p, ch, producers);
	bench_check(air_channel_destroy(ch), "air_channel_destroy");
	session_close(&s);
}
