// SPDX-License-Identifier: MIT
/*
 * What open channels that nobody uses cost the one that is used: round trips
 * with 1, 10, 100 and 1000 channels at the same worker. The peer is the same
 * channel while it is the only one; the others come and go between the rounds.
 */
#include <stdio.h>
#include <stdlib.h>

#include <airunner.h>

#include "tests/bench/cpu.h"
#include "tests/bench/session.h"

#define TRIPS 2000
#define MAX_CHANNELS 1000

struct idle {
	struct session s;
	struct air_call nop;
	unsigned int channels;
	air_channel *other[MAX_CHANNELS];
};

static double trips(struct bench_row *row, struct idle *x)
{
	uint64_t t;

	for (int i = 0; i < 200; i++)
		session_call(x->s.ch, &x->nop);
	for (int i = 0; i < TRIPS; i++) {
		t = bench_ticks();
		session_call(x->s.ch, &x->nop);
		bench_tail(row, bench_ticks_ns(bench_ticks() - t));
	}
	t = bench_ticks();
	for (int i = 0; i < TRIPS; i++)
		session_call(x->s.ch, &x->nop);
	return bench_ticks_ns(bench_ticks() - t) / TRIPS;
}

/* Each was used once: it is one that has gone idle, not one never served. */
static double among_many(struct bench_row *row, void *ctx)
{
	struct air_channel_options o = { .size = sizeof(o), .order = 6 };
	struct idle *x = ctx;
	double value;

	for (unsigned int i = 0; i + 1 < x->channels; i++) {
		bench_check(air_channel_create(x->s.dev, &o, &x->other[i]),
			    "air_channel_create");
		session_call(x->other[i], &x->nop);
	}
	value = trips(row, x);
	for (unsigned int i = 0; i + 1 < x->channels; i++)
		bench_check(air_channel_destroy(x->other[i]),
			    "air_channel_destroy");
	return value;
}

static double alone(struct bench_row *row, void *ctx)
{
	return trips(row, ctx);
}

void cpu_idle_channels(struct bench *b)
{
	static struct idle x;
	char name[64];

	if (!bench_wants(b, "idle_channels_1000_rtt_ns") &&
	    !bench_wants(b, "idle_channels_10_rtt_ns") &&
	    !bench_wants(b, "idle_channels_100_rtt_ns"))
		return;
	session_open(&x.s, 0, SPIN_NS);
	air_prepare_nop(&x.nop);
	for (x.channels = 10; x.channels <= MAX_CHANNELS; x.channels *= 10) {
		const struct bench_contender c[] = {
			{ "ring", among_many, &x },
			{ "one_channel", alone, &x },
		};

		snprintf(name, sizeof(name), "idle_channels_%u_rtt_ns",
			 x.channels);
		bench_run(b,
			  &(struct bench_spec){ name, "ns",
						"round trip beside idle channels",
						31, 2 },
			  c, 2);
	}
	session_close(&x.s);
}
