// SPDX-License-Identifier: MIT
/*
 * From a worker that sleeps: submit, it wakes, serves, completes; against a
 * thread that sleeps in read(2) of an eventfd or in a futex, and answers by
 * storing a word. The waiting side polls in all three cases, and stays awake
 * between them.
 */
#include <errno.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <airunner.h>

#include "tests/bench/cpu.h"
#include "tests/bench/session.h"

#define WAKES 30
#define ASLEEP_NS 100000 /* by then the other side sleeps */

struct wake {
	struct session s;
	struct air_call nop;
	pthread_t thread[2];
	int fd;
	uint32_t word __attribute__((aligned(128)));
	uint64_t answer __attribute__((aligned(128)));
	uint32_t stop;
};

static void let_it_sleep(void)
{
	uint64_t until = bench_now() + ASLEEP_NS;

	while (bench_now() < until)
		bench_relax();
}

static double timed(struct bench_row *row, struct wake *x,
		    void (*wake)(struct wake *x))
{
	double sum = 0;

	for (int i = 0; i < WAKES; i++) {
		uint64_t t;
		double us;

		let_it_sleep();
		t = bench_ticks();
		wake(x);
		us = bench_ticks_ns(bench_ticks() - t) / 1e3;
		bench_tail(row, us);
		sum += us;
	}
	return sum / WAKES;
}

static void ring_wake(struct wake *x)
{
	session_call(x->s.ch, &x->nop);
}

static double ring(struct bench_row *row, void *ctx)
{
	return timed(row, ctx, ring_wake);
}

static void await_answer(struct wake *x, uint64_t before)
{
	while (__atomic_load_n(&x->answer, __ATOMIC_ACQUIRE) == before)
		;
}

static void eventfd_wake(struct wake *x)
{
	uint64_t before = x->answer, one = 1;

	if (write(x->fd, &one, sizeof(one)) != sizeof(one))
		bench_fail("eventfd: %s", strerror(errno));
	await_answer(x, before);
}

static double by_eventfd(struct bench_row *row, void *ctx)
{
	return timed(row, ctx, eventfd_wake);
}

static void *eventfd_sleeper(void *arg)
{
	struct wake *x = arg;
	uint64_t n;

	bench_pin(bench_cpu(1));
	while (read(x->fd, &n, sizeof(n)) == sizeof(n) &&
	       !__atomic_load_n(&x->stop, __ATOMIC_RELAXED))
		__atomic_fetch_add(&x->answer, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void futex_ring(struct wake *x)
{
	__atomic_fetch_add(&x->word, 1, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &x->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void futex_wake(struct wake *x)
{
	uint64_t before = x->answer;

	futex_ring(x);
	await_answer(x, before);
}

static double by_futex(struct bench_row *row, void *ctx)
{
	return timed(row, ctx, futex_wake);
}

static void *futex_sleeper(void *arg)
{
	struct wake *x = arg;
	uint32_t seen = 0, now;

	bench_pin(bench_cpu(1));
	for (;;) {
		while ((now = __atomic_load_n(&x->word, __ATOMIC_ACQUIRE)) ==
		       seen)
			syscall(SYS_futex, &x->word, FUTEX_WAIT_PRIVATE, seen,
				NULL, NULL, 0);
		if (__atomic_load_n(&x->stop, __ATOMIC_RELAXED))
			return NULL;
		seen = now;
		__atomic_fetch_add(&x->answer, 1, __ATOMIC_RELEASE);
	}
}

void cpu_wake(struct bench *b)
{
	const struct bench_spec spec = {
		"wake_us", "us", "the other side sleeps: there and back", 101, 3,
	};
	static struct wake x;
	const struct bench_contender c[] = {
		{ "ring", ring, &x },
		{ "eventfd", by_eventfd, &x },
		{ "futex", by_futex, &x },
	};
	uint64_t one = 1;

	if (!bench_wants(b, spec.name))
		return;
	/* It sleeps after a microsecond: the row is about that. */
	session_open(&x.s, 0, 1000);
	air_prepare_nop(&x.nop);
	x.fd = eventfd(0, EFD_CLOEXEC);
	if (x.fd < 0 ||
	    pthread_create(&x.thread[0], NULL, eventfd_sleeper, &x) ||
	    pthread_create(&x.thread[1], NULL, futex_sleeper, &x))
		bench_fail("cannot set up the sleepers");
	bench_run(b, &spec, c, 3);
	__atomic_store_n(&x.stop, 1, __ATOMIC_SEQ_CST);
	futex_ring(&x);
	if (write(x.fd, &one, sizeof(one)) != sizeof(one))
		bench_fail("eventfd: %s", strerror(errno));
	pthread_join(x.thread[0], NULL);
	pthread_join(x.thread[1], NULL);
	close(x.fd);
	session_close(&x.s);
}
