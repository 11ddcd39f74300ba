// SPDX-License-Identifier: MIT
/*
 * The CPU executor's threads. One loop runs at a time; whoever finds the pool
 * busy runs its loop alone, which also makes nested loops safe.
 *
 * A loop is open to helpers while its caller still has pieces to give out.
 * Helpers come in and leave by one word (state), so the caller need not wait
 * for threads that have not woken up by the time the work is done.
 */
#include "ops/cpu.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAX_THREADS 512

/* state: open, which loop, and how many helpers are inside */
#define OPEN	    (1U << 31)
#define INSIDE_MASK ((1U << 10) - 1)
#define LOOP_ONE    (1U << 10)
#define LOOP_MASK   (OPEN - LOOP_ONE)

/* How often to look again before sleeping: some microseconds. */
#define SPINS 1000

struct air_pool {
	unsigned int threads;
	unsigned int started;
	pthread_mutex_t busy;

	/* Counts loops and the end of the pool; idle helpers sleep on it. */
	_Atomic uint32_t epoch;
	_Atomic uint32_t sleepers;
	atomic_bool stop;

	_Atomic uint32_t state;

	/* The loop; written before it is opened. */
	void (*fn)(void *arg, uint64_t begin, uint64_t end);
	void *arg;
	uint64_t n;
	uint64_t piece;
	_Atomic uint64_t next;

	pthread_t helper[];
};

static void futex_wait(_Atomic uint32_t *word, uint32_t value)
{
	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word, int n)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, n, NULL, NULL, 0);
}

static inline void relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

unsigned int air_pool_threads(const struct air_pool *pool)
{
	return pool ? pool->threads : 1;
}

static void take_pieces(struct air_pool *pool)
{
	uint64_t n = pool->n;
	uint64_t piece = pool->piece;

	for (;;) {
		uint64_t begin = atomic_fetch_add_explicit(
			&pool->next, piece, memory_order_relaxed);

		if (begin >= n)
			return;
		pool->fn(pool->arg, begin,
			 n - begin < piece ? n : begin + piece);
	}
}

/* Go into the open loop, unless it is @last, which this helper was in. */
static bool enter(struct air_pool *pool, uint32_t *last)
{
	uint32_t s = atomic_load(&pool->state);

	while (s & OPEN && (s & LOOP_MASK) != *last) {
		if (atomic_compare_exchange_weak(&pool->state, &s, s + 1)) {
			*last = s & LOOP_MASK;
			return true;
		}
	}
	return false;
}

static void leave(struct air_pool *pool)
{
	uint32_t s = atomic_fetch_sub(&pool->state, 1) - 1;

	/* The caller sleeps only after it has closed the loop. */
	if (!(s & OPEN) && !(s & INSIDE_MASK))
		futex_wake(&pool->state, 1);
}

static void *helper(void *arg)
{
	struct air_pool *pool = arg;
	uint32_t last = ~0U;

	while (!atomic_load(&pool->stop)) {
		uint32_t epoch = atomic_load(&pool->epoch);
		int spins = SPINS;

		if (enter(pool, &last)) {
			take_pieces(pool);
			leave(pool);
			continue;
		}
		while (atomic_load_explicit(&pool->epoch,
					    memory_order_relaxed) == epoch &&
		       spins--)
			relax();
		if (spins >= 0)
			continue;
		/*
		 * Counted as asleep before the kernel looks at the epoch, so a
		 * caller that sees no sleeper has a change the kernel sees.
		 */
		atomic_fetch_add(&pool->sleepers, 1);
		futex_wait(&pool->epoch, epoch);
		atomic_fetch_sub(&pool->sleepers, 1);
	}
	return NULL;
}

static void wake_helpers(struct air_pool *pool, uint64_t wanted)
{
	atomic_fetch_add(&pool->epoch, 1);
	if (atomic_load(&pool->sleepers))
		futex_wake(&pool->epoch,
			   wanted < MAX_THREADS ? (int)wanted : MAX_THREADS);
}

static void close_loop(struct air_pool *pool)
{
	uint32_t s = atomic_fetch_and(&pool->state, ~OPEN) & ~OPEN;
	int spins = SPINS;

	while (s & INSIDE_MASK) {
		if (spins > 0) {
			spins--;
			relax();
		} else {
			futex_wait(&pool->state, s);
		}
		s = atomic_load(&pool->state);
	}
}

void air_pool_for(struct air_pool *pool, uint64_t n, uint64_t grain,
		  void (*fn)(void *arg, uint64_t begin, uint64_t end),
		  void *arg)
{
	uint64_t threads = air_pool_threads(pool);
	uint64_t pieces;
	uint32_t s;

	if (!grain)
		grain = 1;
	if (threads == 1 || n / grain < 2 ||
	    pthread_mutex_trylock(&pool->busy)) {
		if (n)
			fn(arg, 0, n);
		return;
	}

	/* A few pieces a thread even out threads that are not equally fast. */
	pieces = n / grain < threads * 4 ? n / grain : threads * 4;
	pool->fn = fn;
	pool->arg = arg;
	pool->n = n;
	pool->piece = (n + pieces - 1) / pieces;
	atomic_store_explicit(&pool->next, 0, memory_order_relaxed);

	s = atomic_load_explicit(&pool->state, memory_order_relaxed);
	atomic_store(&pool->state, ((s + LOOP_ONE) & LOOP_MASK) | OPEN);
	wake_helpers(pool, (pieces < threads ? pieces : threads) - 1);
	take_pieces(pool);
	close_loop(pool);
	pthread_mutex_unlock(&pool->busy);
}

static unsigned int cores(void)
{
	cpu_set_t set;

	if (!sched_getaffinity(0, sizeof(set), &set))
		return CPU_COUNT(&set);
	return 1;
}

struct air_pool *air_pool_create(unsigned int threads)
{
	struct air_pool *pool;
	sigset_t all, old;

	if (!threads)
		threads = cores();
	if (threads > MAX_THREADS)
		threads = MAX_THREADS;
	pool = calloc(1, sizeof(*pool) + (threads - 1) * sizeof(pthread_t));
	if (!pool)
		return NULL;
	pthread_mutex_init(&pool->busy, NULL);

	/*
	 * The process's signals are no business of these threads; faults of
	 * their own are: airunnerd survives a client's truncated memory.
	 */
	sigfillset(&all);
	sigdelset(&all, SIGBUS);
	sigdelset(&all, SIGSEGV);
	sigdelset(&all, SIGFPE);
	sigdelset(&all, SIGILL);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	while (pool->started < threads - 1) {
		if (pthread_create(&pool->helper[pool->started], NULL, helper,
				   pool))
			break;
		pool->started++;
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	/* Fewer than asked for is slower, not wrong. */
	pool->threads = pool->started + 1;
	return pool;
}

void air_pool_destroy(struct air_pool *pool)
{
	if (!pool)
		return;
	atomic_store(&pool->stop, true);
	atomic_fetch_add(&pool->epoch, 1);
	futex_wake(&pool->epoch, MAX_THREADS);
	for (unsigned int i = 0; i < pool->started; i++)
		pthread_join(pool->helper[i], NULL);
	pthread_mutex_destroy(&pool->busy);
	free(pool);
}
