// SPDX-License-Identifier: MIT
#include <liburing.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/bench.h"
#include "tests/bench/peers.h"

struct uring_peer {
	struct io_uring ring;
	bool polled;
};

struct uring_peer *uring_peer_create(unsigned int entries, int sq_cpu,
				     const char **why)
{
	struct uring_peer *p = calloc(1, sizeof(*p));
	struct io_uring_params params = { 0 };
	int err;

	if (!p)
		bench_fail("no memory");
	if (sq_cpu >= 0) {
		params.flags = IORING_SETUP_SQPOLL | IORING_SETUP_SQ_AFF;
		params.sq_thread_cpu = (unsigned int)sq_cpu;
		params.sq_thread_idle = 2;
		p->polled = true;
	}
	err = io_uring_queue_init_params(entries, &p->ring, &params);
	if (err) {
		*why = strerror(-err);
		free(p);
		return NULL;
	}
	return p;
}

void uring_peer_destroy(struct uring_peer *p)
{
	io_uring_queue_exit(&p->ring);
	free(p);
}

void uring_peer_submit(struct uring_peer *p, unsigned int n)
{
	int done;

	for (unsigned int i = 0; i < n; i++) {
		struct io_uring_sqe *sqe;

		/* SQPOLL takes them when it gets round to it. */
		while (!(sqe = io_uring_get_sqe(&p->ring)))
			bench_relax();
		io_uring_prep_nop(sqe);
	}
	done = io_uring_submit(&p->ring);
	if (done < 0 || (!p->polled && done != (int)n))
		bench_fail("io_uring_submit: %d of %u", done, n);
}

static void check(const struct io_uring_cqe *cqe)
{
	if (cqe->res)
		bench_fail("io_uring NOP ended with %d", cqe->res);
}

unsigned int uring_peer_collect(struct uring_peer *p, unsigned int n)
{
	struct io_uring_cqe *cqe;
	unsigned int head, got = 0;

	io_uring_for_each_cqe(&p->ring, head, cqe) {
		if (got == n)
			break;
		check(cqe);
		got++;
	}
	io_uring_cq_advance(&p->ring, got);
	return got;
}

void uring_peer_rest(struct uring_peer *p)
{
	while (p->polled && !(__atomic_load_n(p->ring.sq.kflags,
					      __ATOMIC_ACQUIRE) &
			      IORING_SQ_NEED_WAKEUP))
		sched_yield();
}

void uring_peer_call(struct uring_peer *p)
{
	struct io_uring_cqe *cqe;

	io_uring_prep_nop(io_uring_get_sqe(&p->ring));
	if (p->polled) {
		io_uring_submit(&p->ring);
		while (io_uring_peek_cqe(&p->ring, &cqe))
			;
	} else if (io_uring_submit_and_wait(&p->ring, 1) < 0 ||
		   io_uring_peek_cqe(&p->ring, &cqe)) {
		bench_fail("io_uring_submit_and_wait");
	}
	check(cqe);
	io_uring_cqe_seen(&p->ring, cqe);
}
