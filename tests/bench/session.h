/* SPDX-License-Identifier: MIT */
/*
 * A channel to a worker on the serving side's processor, and the operators
 * that rows use.
 */
#ifndef BENCH_SESSION_H
#define BENCH_SESSION_H

#include <airunner.h>

/**
 * struct session - a device and a channel
 * @ch: of a single caller
 */
struct session {
	air_device *dev;
	air_channel *ch;
};

/* Ends the program when @status is an error. */
void bench_check(air_status status, const char *what);

/* The library's default where there is more than one processor. */
#define SPIN_NS 20000

/*
 * "inproc:", its worker pinned to bench_cpu(1), the caller to bench_cpu(0).
 * @order: of the ring. @spin_ns: how long both sides poll before they sleep;
 * the library cannot choose as it sees a pinned thread, so it is told.
 */
void session_open(struct session *s, uint32_t order, uint64_t spin_ns);
void session_close(struct session *s);

/*
 * One more channel, for any number of callers: what the others have for being
 * of a single one. air_channel_destroy() ends it.
 */
air_channel *session_shared(struct session *s, uint32_t order);

/* Submit and poll until it has completed, without sleeping. */
void session_call(air_channel *ch, const struct air_call *call);

/* Poll until @token has completed well. */
void session_finish(air_channel *ch, air_token token);
/* The same of @n tokens from @first on. */
void session_finish_many(air_channel *ch, air_token first, uint32_t n);

/**
 * struct adder - vector_add of @n elements in a channel
 * @call: c = a + b, prepared
 *
 * a[i] is i % 1000, b[i] is 1: c tells whether it was done.
 */
struct adder {
	uint64_t n;
	air_descriptor *d;
	air_buffer *buf[3];
	air_ref ref[3];
	float *c, *a, *b;
	struct air_call call;
};

void adder_create(struct adder *x, air_channel *ch, uint64_t n);
void adder_destroy(struct adder *x);
/* Spoil the output; see whether it has been computed since. */
void adder_poison(struct adder *x);
void adder_check(const struct adder *x);

#endif /* BENCH_SESSION_H */
