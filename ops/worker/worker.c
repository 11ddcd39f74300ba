// SPDX-License-Identifier: MIT
/*
 * The worker's thread: what it does next, and when it sleeps.
 *
 * A turn of the loop looks at other threads' calls, executors, sources, and
 * every active channel once. Idle channels are on no list that it walks. When
 * no channel is active it sleeps until something of that kind happens.
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "ops/worker/internal.h"

#define DEFAULT_SPIN_NS	      20000ull
#define DEFAULT_ASYNC_SPIN_NS 10000000ull
#define DEFAULT_PARK_NS	      1000000ull
#define DEFAULT_DRAIN_NS      5000000000ull

/* The worker whose thread this is. */
static __thread struct air_worker *here;

bool air_worker_here(const struct air_worker *w)
{
	return here == w;
}

bool air_block_here_begin(void)
{
	return air_block_begin(here);
}

void air_block_here_end(void)
{
	air_block_end(here);
}

/* ---------------------------------------------------------------- sources */

void air_worker_add_source(struct air_worker *w, struct air_source *s)
{
	struct air_source **end = &w->sources;

	while (*end)
		end = &(*end)->next;
	s->next = NULL;
	*end = s;
}

static void serve_sources(struct air_worker *w)
{
	bool ask = w->now >= w->next_source;

	for (struct air_source *s = w->sources; s; s = s->next) {
		uint32_t pending =
			s->pending ? air_load(s->pending, ACQUIRE) : ask;

		/* What was there and was not to be had is asked for by time. */
		if (!s->due && (!pending || (!ask && pending == s->seen)))
			continue;
		s->due = false;
		s->ops->serve(s);
		s->seen = s->pending ? air_load(s->pending, RELAXED) : 0;
	}
	if (ask)
		w->next_source = w->now + AIR_SOURCE_NS;
}

static bool source_due(const struct air_worker *w)
{
	for (const struct air_source *s = w->sources; s; s = s->next)
		if (s->due)
			return true;
	return false;
}

/* --------------------------------------------------------------- sleeping */

struct sleep {
	struct pollfd fds[1 + AIR_MAX_SOURCES + AIR_EXECUTORS];
	nfds_t n;
	int64_t timeout_ns;
};

static void add_fd(struct sleep *s, int fd)
{
	s->fds[s->n].fd = fd;
	s->fds[s->n].events = POLLIN;
	s->n++;
}

/*
 * Whatever wakes by descriptor. False: something can only be polled, or is
 * worth it.
 */
static bool gather(struct air_worker *w, struct sleep *s)
{
	bool soon = w->now - w->device_at < w->config.async_spin_ns;

	add_fd(s, w->box.fd);
	for (struct air_source *src = w->sources; src; src = src->next)
		add_fd(s, src->ops->fd(src));
	for (uint32_t id = 1; w->async >> id; id++) {
		struct air_wexec *x = &w->exec[id];
		int fd;

		if (!(w->async & (1U << id)) || !x->ops->outstanding ||
		    !x->ops->outstanding(x->ex))
			continue;
		if (soon)
			return false;
		fd = x->ops->wait_fd ? x->ops->wait_fd(x->ex) : -1;
		if (fd < 0)
			return false;
		add_fd(s, fd);
	}
	return true;
}

static void wake_by(struct sleep *s, uint64_t when, uint64_t now)
{
	int64_t left = when > now ? (int64_t)(when - now) : 0;

	if (s->timeout_ns < 0 || left < s->timeout_ns)
		s->timeout_ns = left;
}

/* How long at most; 0: not at all. */
static void limit(struct air_worker *w, struct sleep *s)
{
	struct air_list *pos, *n;

	s->timeout_ns = -1;
	if (w->quiesced)
		wake_by(s, w->drain_end, w->now);
	if (!air_list_empty(&w->timed))
		wake_by(s, air_wchannels_timed_next(w), w->now);
	air_list_each(pos, n, &w->active) {
		struct air_wchannel *ch =
			air_list_entry(pos, struct air_wchannel, on);

		if (ch->holding && ch->held_deadline)
			wake_by(s, ch->held_deadline, w->now);
		if (ch->turn_end != UINT64_MAX && !ch->removing)
			wake_by(s, ch->turn_end, w->now);
	}
}

static void block(struct air_worker *w, struct sleep *s)
{
	struct timespec ts = {
		.tv_sec = s->timeout_ns / 1000000000,
		.tv_nsec = s->timeout_ns % 1000000000,
	};
	const struct pollfd *fd = s->fds;
	uint64_t count;
	ssize_t got;

	if (s->n == 1) {
		air_futex_wait(&w->box.sleep, AIR_IN_FUTEX, s->timeout_ns,
			       false);
		return;
	}
	if (ppoll(s->fds, s->n, s->timeout_ns < 0 ? NULL : &ts, NULL) <= 0)
		return;
	if (fd->revents) {
		got = read(w->box.fd, &count, sizeof(count));
		(void)got;
	}
	for (struct air_source *src = w->sources; src; src = src->next)
		src->due |= (++fd)->revents != 0;
}

/*
 * A client that shares the worker's processor, the others being busy, runs only
 * when that lets go of it: so many empty rounds are polled undisturbed.
 */
#define ROUNDS_A_YIELD 64

static void idle(unsigned int *rounds)
{
	if (++*rounds % ROUNDS_A_YIELD)
		air_relax();
	else
		sched_yield();
}

/*
 * Nothing to do: sleep. Nobody's word is lost, as everybody looks at box.sleep
 * after having said it, and it is set here before the last look.
 */
static void go_to_sleep(struct air_worker *w, unsigned int *idle_rounds)
{
	struct sleep s = { .n = 0 };

	if (!gather(w, &s)) {
		idle(idle_rounds);
		return;
	}
	limit(w, &s);
	if (!s.timeout_ns)
		return;
	air_store(&w->box.sleep, s.n == 1 ? AIR_IN_FUTEX : AIR_IN_POLL,
		  SEQ_CST);
	if (air_mailbox_empty(&w->box) && !source_due(w) &&
	    (w->quiesced || !air_load(&w->box.stop, SEQ_CST)) &&
	    !air_quiet_is_over(w) &&
	    !air_executors_poll(w))
		block(w, &s);
	__atomic_exchange_n(&w->box.sleep, AIR_AWAKE, __ATOMIC_SEQ_CST);
}

/* --------------------------------------------------------------- the loop */

/*
 * Serve everybody once. *@rest: somebody has been idle for long enough;
 * *@spin: somebody has not.
 */
static bool serve_channels(struct air_worker *w, bool *rest, bool *spin)
{
	struct air_list *pos, *n;
	bool busy = false;

	*rest = false;
	*spin = false;
	air_list_each(pos, n, &w->active) {
		struct air_wchannel *ch =
			air_list_entry(pos, struct air_wchannel, on);

		if (air_wchannel_serve(ch)) {
			busy = true;
			continue;
		}
		if (ch->holding || ch->removing)
			continue;
		*spin = true;
		*rest |= air_wchannel_may_rest(ch);
	}
	return busy;
}

static void finish_removals(struct air_worker *w)
{
	struct air_list *pos, *n;

	air_list_each(pos, n, &w->all)
		air_wchannel_try_finish(
			air_list_entry(pos, struct air_wchannel, on_all));
}

static void quiesce(struct air_worker *w)
{
	struct air_list *pos, *n;

	w->quiesced = true;
	w->drain_end = w->now + w->config.drain_ns;
	for (struct air_source *s = w->sources; s; s = s->next)
		s->ops->quiesce(s);
	air_list_each(pos, n, &w->all)
		air_worker_remove_channel(
			air_list_entry(pos, struct air_wchannel, on_all),
			AIR_REMOVE_DRAIN);
}

static void loop(struct air_worker *w)
{
	unsigned int idle_rounds = 0;
	bool busy, rest, spin;

	for (;;) {
		w->now = air_now();
		busy = air_mailbox_take(w);
		if (air_unlikely(w->quiet) && air_quiet_is_over(w))
			air_quiet_lift(w);
		if (air_unlikely(air_load(&w->box.stop, RELAXED)) &&
		    !w->quiesced)
			quiesce(w);
		if (w->async && air_executors_poll(w)) {
			w->device_at = w->now;
			busy = true;
		}
		if (w->sources)
			serve_sources(w);
		if (!air_list_empty(&w->timed))
			air_wchannels_timed(w);
		w->activated = false;
		busy |= serve_channels(w, &rest, &spin);
		if (w->used) {
			w->device_at = w->now;
			air_executors_flush(w);
		}
		if (!air_list_empty(&w->lent))
			air_wchannels_watch(w);
		if (w->touched)
			air_wake_touched(w);
		if (air_unlikely(w->put_off))
			air_put_off_resume(w);
		if (rest)
			air_wchannels_rest(w);
		if (air_unlikely(w->n_removing))
			finish_removals(w);
		if (air_unlikely(w->quiesced) &&
		    (air_list_empty(&w->all) || w->now >= w->drain_end))
			return;
		if (busy || rest || w->activated) {
			idle_rounds = 0;
		} else if (!spin && air_list_empty(&w->lent)) {
			go_to_sleep(w, &idle_rounds);
		} else {
			idle(&idle_rounds);
		}
	}
}

/* What did not end in time: executors first, so that nothing runs any more. */
static void abandon_channels(struct air_worker *w)
{
	struct air_list *pos, *n;

	air_list_each(pos, n, &w->all) {
		struct air_wchannel *ch =
			air_list_entry(pos, struct air_wchannel, on_all);

		air_log(AIR_LOG_WARNING,
			"channel of %s: %u submissions did not end in time",
			air_wchannel_label(ch), ch->outstanding);
		air_wchannel_abandon(ch);
	}
}

static void free_works(struct air_worker *w)
{
	while (w->work_chunks) {
		void *next = *(void **)w->work_chunks;

		free(w->work_chunks);
		w->work_chunks = next;
	}
	w->free_work = NULL;
}

static air_status begin(struct air_worker *w, struct air_error *e)
{
	struct air_source *s;
	air_status st;

	prctl(PR_SET_NAME, w->name);
	w->asym = air_membarrier_register();
	w->can_barrier = air_membarrier();
	w->now = air_now();
	st = air_executors_open(w, e);
	if (st)
		return st;
	air_mailbox_open(&w->box);
	w->opened = true;
	for (s = w->sources; s; s = s->next) {
		st = s->ops->begin(s, w, e);
		if (st)
			return st;
	}
	return AIR_OK;
}

static void end(struct air_worker *w)
{
	bool leftover = !air_list_empty(&w->all);

	air_mailbox_close(&w->box);
	air_handovers_end(w);
	if (leftover)
		air_executors_close(w);
	abandon_channels(w);
	for (struct air_source *s = w->sources; s; s = s->next)
		if (s->ops->end)
			s->ops->end(s);
	if (!leftover)
		air_executors_close(w);
	free_works(w);
	w->opened = false;
}

air_status air_worker_run(struct air_worker *w, struct air_error *e)
{
	air_status st;

	here = w;
	st = begin(w, e);
	if (w->has_thread) {
		w->start_status = st;
		air_store(&w->started, 1, RELEASE);
		air_futex_wake(&w->started, false);
	}
	if (!st)
		loop(w);
	end(w);
	here = NULL;
	return st;
}

static void *thread_main(void *arg)
{
	struct air_worker *w = arg;

	air_worker_run(w, &w->start_error);
	return NULL;
}

air_status air_worker_start(struct air_worker *w, struct air_error *e)
{
	sigset_t all, old;
	int err;

	w->has_thread = true;
	sigfillset(&all);
	/* A fault of the thread's own must stay what it is. */
	sigdelset(&all, SIGBUS);
	sigdelset(&all, SIGSEGV);
	sigdelset(&all, SIGFPE);
	sigdelset(&all, SIGILL);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	err = pthread_create(&w->thread, NULL, thread_main, w);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err) {
		w->has_thread = false;
		return air_fail(e, AIR_SYSTEM,
				"worker: cannot start a thread: %s",
				strerror(err));
	}
	while (!air_load(&w->started, ACQUIRE))
		air_futex_wait(&w->started, 0, -1, false);
	if (!w->start_status)
		return AIR_OK;
	pthread_join(w->thread, NULL);
	w->has_thread = false;
	return air_fail(e, w->start_status, "%s", w->start_error.text);
}

void air_worker_stop_async(struct air_worker *w)
{
	air_store(&w->box.stop, 1, SEQ_CST);
	air_mailbox_wake(&w->box);
}

void air_worker_stop(struct air_worker *w)
{
	air_worker_stop_async(w);
	if (w->has_thread && !air_worker_here(w)) {
		pthread_join(w->thread, NULL);
		w->has_thread = false;
	}
}

air_status air_worker_call(struct air_worker *w, air_status (*fn)(void *arg),
			   void *arg)
{
	struct air_mail mail = { .fn = fn, .arg = arg };

	if (air_worker_here(w))
		return fn(arg);
	return air_mailbox_call(&w->box, &mail);
}

air_status air_worker_caps(struct air_worker *w, air_executor executor,
			   struct air_backend_caps *caps)
{
	struct air_backend_caps all;
	uint32_t size = caps->size;

	if (executor <= AIR_EXEC_ANY || executor >= AIR_EXECUTORS ||
	    size < sizeof(size))
		return AIR_BAD_ARGUMENT;
	all = w->exec[executor].caps;
	memset(caps, 0, size);
	all.size = size;
	memcpy(caps, &all, size < sizeof(all) ? size : sizeof(all));
	return AIR_OK;
}

/* ------------------------------------------------------------ life itself */

static char *copy_string(const char *s, bool *failed)
{
	char *copy = s ? strdup(s) : NULL;

	*failed |= s && !copy;
	return copy;
}

air_status air_worker_create(const struct air_worker_config *config,
			     struct air_worker **out, struct air_error *e)
{
	static const struct air_worker_config defaults;
	struct air_worker *w;
	bool failed = false;

	w = aligned_alloc(_Alignof(struct air_worker), sizeof(*w));
	if (!w)
		return air_fail(e, AIR_NO_MEMORY, "worker: no memory");
	memset(w, 0, sizeof(*w));
	air_list_init(&w->active);
	air_list_init(&w->lent);
	air_list_init(&w->all);
	air_list_init(&w->timed);
	air_list_init(&w->handovers);
	w->config = config ? *config : defaults;
	w->name = copy_string(w->config.name ? w->config.name : "airunner",
			      &failed);
	w->executors = copy_string(w->config.executors, &failed);
	w->config.name = NULL;
	w->config.executors = NULL;
	if (!w->config.spin_ns)
		w->config.spin_ns = DEFAULT_SPIN_NS;
	if (!w->config.async_spin_ns)
		w->config.async_spin_ns = DEFAULT_ASYNC_SPIN_NS;
	if (!w->config.park_ns)
		w->config.park_ns = DEFAULT_PARK_NS;
	if (!w->config.drain_ns)
		w->config.drain_ns = DEFAULT_DRAIN_NS;
	if (air_mailbox_init(&w->box) || failed) {
		air_fail(e, failed ? AIR_NO_MEMORY : AIR_SYSTEM,
			 "worker: no memory, or no eventfd: %s",
			 strerror(errno));
		air_worker_destroy(w);
		return failed ? AIR_NO_MEMORY : AIR_SYSTEM;
	}
	*out = w;
	return AIR_OK;
}

void air_worker_destroy(struct air_worker *w)
{
	if (!w)
		return;
	air_mailbox_fini(&w->box);
	free(w->name);
	free(w->executors);
	free(w);
}
