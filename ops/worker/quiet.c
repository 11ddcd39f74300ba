// SPDX-License-Identifier: MIT
/*
 * Executors that stay on their devices are sent away while somebody else wants
 * those for himself. Who asks for that waits until it is so; who says that it
 * is over does not, and the worker lets them back in its own time.
 */
#include "ops/worker/internal.h"

static air_status keep_away(struct air_worker *w, uint32_t id)
{
	struct air_wexec *x = &w->exec[id];

	return x->ops && x->ops->quiet ? x->ops->quiet(x->ex, true) : AIR_OK;
}

static void let_back(struct air_worker *w, uint32_t below)
{
	for (uint32_t id = 1; id < below; id++) {
		struct air_wexec *x = &w->exec[id];

		if (x->ops && x->ops->quiet)
			x->ops->quiet(x->ex, false);
	}
}

static air_status begin_here(void *arg)
{
	struct air_worker *w = arg;
	air_status st;

	/* Over, and not lifted yet: goes on. */
	for (uint32_t id = 1; !w->quiet && id < AIR_EXECUTORS; id++) {
		st = keep_away(w, id);
		if (st) {
			let_back(w, id);
			return st;
		}
	}
	w->quiet = true;
	__atomic_fetch_add(&w->box.quiet, 1, __ATOMIC_SEQ_CST);
	return AIR_OK;
}

air_status air_worker_quiet_begin(struct air_worker *w)
{
	return air_worker_call(w, begin_here, w);
}

air_status air_worker_quiet_end(struct air_worker *w)
{
	uint32_t n = air_load(&w->box.quiet, RELAXED);

	do {
		if (!n)
			return AIR_BAD_ARGUMENT;
	} while (!__atomic_compare_exchange_n(&w->box.quiet, &n, n - 1, true,
					      __ATOMIC_SEQ_CST,
					      __ATOMIC_RELAXED));
	if (n == 1)
		air_mailbox_wake(&w->box);
	return AIR_OK;
}

bool air_quiet_is_over(const struct air_worker *w)
{
	return w->quiet && !air_load(&w->box.quiet, SEQ_CST);
}

void air_quiet_lift(struct air_worker *w)
{
	w->quiet = false;
	let_back(w, AIR_EXECUTORS);
}
