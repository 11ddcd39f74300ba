// SPDX-License-Identifier: MIT
/*
 * The one place in the ring where two sides each store and then load what the
 * other stored: NEED_WAKEUP. Run on the real machine, with the real
 * membarrier(2) and futex(2).
 *
 *	litmus [SECONDS-EACH]
 *
 * First the bare race, millions of rounds: it must never be that the producer
 * sees no NEED_WAKEUP and the consumer sees no submission. The same without
 * the barrier shows whether this machine makes the mistake at all. With
 * membarrier(2), and on a processor that it passes over where that can be
 * brought about (libairunner/membarrier.h), the consumer looks as long as the
 * protocol lets it doubt.
 *
 * Then rounds in which both sides really sleep every time, without polling:
 * a lost wake-up leaves one of them asleep (futex_wait() gives up after 30 s).
 */
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>

#include "libairunner/membarrier.h"
#include "tests/stress/stress.h"

#define ORDER 4

/* Membarrier comes first: other processes make good what is to go wrong. */
enum barrier { MEMBARRIER, FENCE, NONE };

static const char *const barrier_name[] = { "membarrier", "fences",
					    "no barrier" };

static struct air_ring ring;
static enum barrier barrier;
static uint8_t collected[1 << ORDER];

/* Rounds of the bare race: both sides go when this says so. */
static uint64_t go __attribute__((aligned(128)));
static uint64_t producer_done __attribute__((aligned(128)));
static bool saw_flag;
static uint32_t stop __attribute__((aligned(128)));

/* The producer's processor, where there are two; else -1. */
static int far_cpu = -1;

static void pin(pthread_t thread, int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	pthread_setaffinity_np(thread, sizeof(set), &set);
}

/*
 * Run on one processor, then register on another while the first idles: to it,
 * the next thread of this process is none that has registered.
 */
static bool register_unseen(void)
{
	int near_cpu = -1;
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set))
		return air_membarrier_register();
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &set))
			continue;
		far_cpu = near_cpu;
		near_cpu = cpu;
		if (far_cpu >= 0)
			break;
	}
	if (far_cpu >= 0) {
		pin(pthread_self(), far_cpu);
		pin(pthread_self(), near_cpu);
		usleep(10000);
	}
	return air_membarrier_register();
}

static const struct air_sqe nop = { { AIRUNNER_OP_NOP } };

/* Spin, but let the other side run where there is only one processor. */
static void pause_at(unsigned int *spins)
{
	if (++*spins % 1024 == 0)
		sched_yield();
}

static void await(uint64_t *word, uint64_t value)
{
	unsigned int spins = 0;

	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) < value)
		pause_at(&spins);
}

/*
 * The consumer is the one who says go, so it arrives early by what a cache line
 * takes to the other processor: some hundred cycles, give or take.
 */
static void dither(uint64_t *seed)
{
	for (uint64_t n = draw(seed) % 512; n > 0; n--)
		__asm__ volatile("" ::: "memory");
}

static void *race_producer(void *arg)
{
	for (uint64_t i = 0;; i++) {
		unsigned int spins = 0;

		/* With the flags in its cache, a load overtakes stores. */
		while (__atomic_load_n(&go, __ATOMIC_ACQUIRE) < i + 1) {
			uint32_t flags = __atomic_load_n(&ring.ctrl->sq_flags,
							 __ATOMIC_RELAXED);

			__asm__ volatile("" : : "r"(flags));
			pause_at(&spins);
		}
		if (__atomic_load_n(&stop, __ATOMIC_ACQUIRE))
			return NULL;
		air_ring_publish(&ring, i, &nop);
		saw_flag = air_ring_must_wake(&ring, barrier != FENCE);
		__atomic_store_n(&producer_done, i + 1, __ATOMIC_RELEASE);
	}
}

/* Until the consumer may be sure that it has not been passed over. */
static bool look_again(uint64_t index)
{
	uint64_t end = now_ns() + AIR_LOOK_AGAIN_NS;
	struct air_sqe sqe;

	do {
		if (air_ring_fetch(&ring, index, &sqe))
			return true;
	} while (now_ns() < end);
	return false;
}

/* How often both sides missed the other, also *@at_first sight. */
static uint64_t race(double seconds, uint64_t *rounds, uint64_t *at_first)
{
	uint64_t end = now_ns() + (uint64_t)(seconds * 1e9);
	uint64_t missed = 0, seed = 2;
	pthread_t producer;
	uint64_t i;

	*at_first = 0;
	memset(ring.ctrl, 0, ring_bytes(ORDER));
	go = producer_done = 0;
	stop = 0;
	if (pthread_create(&producer, NULL, race_producer, NULL))
		exit(1);
	if (far_cpu >= 0)
		pin(producer, far_cpu);
	for (i = 0; i % 1024 || now_ns() < end; i++) {
		struct air_sqe sqe;
		bool saw_slot, saw_later;

		__atomic_store_n(&go, i + 1, __ATOMIC_RELEASE);
		dither(&seed);
		if (barrier == NONE)
			__atomic_store_n(&ring.ctrl->sq_flags,
					 AIRUNNER_SQ_NEED_WAKEUP,
					 __ATOMIC_RELAXED);
		else
			air_ring_arm_consumer(&ring);
		if (barrier == MEMBARRIER)
			air_membarrier();
		saw_slot = air_ring_fetch(&ring, i, &sqe);
		saw_later =
			saw_slot || (barrier == MEMBARRIER && look_again(i));
		await(&producer_done, i + 1);
		*at_first += !saw_slot && !saw_flag;
		missed += !saw_later && !saw_flag;
		air_ring_disarm_consumer(&ring);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	__atomic_store_n(&go, i + 1, __ATOMIC_RELEASE);
	pthread_join(producer, NULL);
	*rounds = i;
	return missed;
}

/* ------------------------------------------------------- sleep and wake */

static uint64_t sleeps[2];

static void *sleeping_consumer(void *arg)
{
	const struct air_cqe ok = { .status = AIRUNNER_S_OK };
	bool asym = barrier == MEMBARRIER;
	uint64_t index = 0;

	if (far_cpu >= 0)
		pin(pthread_self(), far_cpu);
	for (;;) {
		struct air_sqe sqe;
		uint32_t bell;

		bell = __atomic_load_n(&ring.ctrl->sq_bell, __ATOMIC_ACQUIRE);
		air_ring_arm_consumer(&ring);
		if (asym)
			air_membarrier();
		if (!air_ring_fetch(&ring, index, &sqe)) {
			sleeps[0]++;
			if (asym)
				futex_doze(&ring.ctrl->sq_bell, bell);
			if (!asym || !air_ring_fetch(&ring, index, &sqe))
				futex_wait(&ring.ctrl->sq_bell, bell);
			if (!air_ring_fetch(&ring, index, &sqe))
				continue;
		}
		air_ring_disarm_consumer(&ring);
		air_ring_complete(&ring, index++, &ok);
		if (air_ring_client_sleeps(&ring, asym)) {
			air_ring_disarm_waiters(&ring);
			ring_bell(&ring.ctrl->cq_bell);
		}
		if (airunner_sqe_id(sqe.word[0]))
			return NULL;
	}
}

static void sleeping_client(uint64_t index, bool last)
{
	struct air_sqe sqe = { { airunner_sqe_head(AIRUNNER_OP_NOP, 0, 0,
						   last) } };
	bool asym = barrier == MEMBARRIER;
	struct air_cqe cqe;
	uint32_t bell;

	air_ring_publish(&ring, index, &sqe);
	if (air_ring_must_wake(&ring, asym))
		ring_bell(&ring.ctrl->sq_bell);
	for (;;) {
		bell = __atomic_load_n(&ring.ctrl->cq_bell, __ATOMIC_ACQUIRE);
		air_ring_arm_waiter(&ring);
		if (asym)
			air_membarrier();
		if (air_ring_completed(&ring, index, &cqe))
			break;
		sleeps[1]++;
		if (asym) {
			futex_doze(&ring.ctrl->cq_bell, bell);
			if (air_ring_completed(&ring, index, &cqe))
				break;
		}
		futex_wait(&ring.ctrl->cq_bell, bell);
	}
	air_ring_collect(&ring, collected, index);
}

static uint64_t sleep_and_wake(double seconds)
{
	uint64_t end = now_ns() + (uint64_t)(seconds * 1e9), index;
	pthread_t consumer;
	bool last = false;

	memset(ring.ctrl, 0, ring_bytes(ORDER));
	memset(collected, 0, sizeof(collected));
	sleeps[0] = sleeps[1] = 0;
	if (pthread_create(&consumer, NULL, sleeping_consumer, NULL))
		exit(1);
	for (uint64_t i = 0; !last; i++) {
		last = now_ns() >= end;
		if (!air_ring_reserve(&ring, collected, 1, &index) ||
		    index != i) {
			puts("not ok litmus: no room in an empty ring");
			exit(1);
		}
		sleeping_client(index, last);
	}
	pthread_join(consumer, NULL);
	return index + 1;
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 2.0;
	uint64_t rounds, missed, at_first;
	int failed = 0;

	alarm((unsigned int)(seconds * 10 + 100));
	ring.ctrl = map_shared(ring_bytes(ORDER));
	air_ring_init(&ring, ring.ctrl, ORDER);
	if (!register_unseen() || !air_membarrier()) {
		puts("skip litmus: no membarrier");
		return 77;
	}
	for (barrier = MEMBARRIER; barrier <= NONE; barrier++) {
		missed = race(seconds, &rounds, &at_first);
		if (barrier == NONE) {
			printf("# with %s the race is lost %llu times in %llu "
			       "rounds\n",
			       barrier_name[barrier],
			       (unsigned long long)missed,
			       (unsigned long long)rounds);
			break;
		}
		failed |= missed != 0;
		printf("%s litmus: %s: lost in %llu of %llu rounds\n",
		       missed ? "not ok" : "ok", barrier_name[barrier],
		       (unsigned long long)missed, (unsigned long long)rounds);
		if (barrier == MEMBARRIER)
			printf("# %llu of them at first sight\n",
			       (unsigned long long)at_first);
		fflush(stdout);
	}
	for (barrier = MEMBARRIER; barrier <= FENCE; barrier++) {
		for (int single = 0; single < 2; single++) {
			ring.single = single;
			rounds = sleep_and_wake(seconds);
			printf("ok litmus: sleeping with %s%s: %llu rounds, "
			       "%llu + %llu sleeps\n",
			       barrier_name[barrier],
			       single ? ", a single producer" : "",
			       (unsigned long long)rounds,
			       (unsigned long long)sleeps[0],
			       (unsigned long long)sleeps[1]);
			fflush(stdout);
		}
	}
	return failed;
}
