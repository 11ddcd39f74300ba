// SPDX-License-Identifier: MIT
/*
 * One or several producers and one consumer on the bare ring, at full speed:
 * threads of one process (what ThreadSanitizer sees), and processes that share
 * nothing but the region. Payloads and operand memory are checked on both
 * sides, of every submission.
 *
 *	ring_stress [SECONDS-EACH [NAME-OF-SCENARIO]]
 */
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "libairunner/membarrier.h"
#include "tests/stress/stress.h"

#define MAX_PRODUCERS 8
#define MAX_ORDER     10
#define MAX_BATCH     8
#define OPERAND_WORDS 4

struct scenario {
	const char *name;
	unsigned int producers; /* a single one says that it is */
	uint32_t order;
	uint64_t start;
	bool processes;
	bool asym; /* both sides, without fences */
	bool kill; /* the consumer, again and again */
};

static const struct scenario scenarios[] = {
	{ "threads", 3, 5, 0, false, false, false },
	{ "threads, no fences", 3, 5, 0, false, true, false },
	{ "threads, 2 entries, lap wrap", 2, 1, 2 * 256 - 3, false, true,
	  false },
	{ "threads, 64-bit wrap", 3, 4, -100ULL, false, false, false },
	{ "a single producer", 1, 5, 0, false, false, false },
	{ "a single producer, no fences", 1, 5, 0, false, true, false },
	{ "a single producer, 2 entries, lap wrap", 1, 1, 2 * 256 - 3, false,
	  true, false },
#ifndef AIR_TSAN
	{ "processes", 3, 5, 0, true, false, false },
	{ "processes, no fences", 3, 5, 0, true, true, false },
	{ "processes, 2 entries, lap wrap", 2, 1, 2 * 256 - 3, true, false,
	  false },
	{ "processes, lap wrap", 3, 10, 256 * 1024 - 50, true, true, false },
	{ "processes, 32-bit wrap", 3, 6, (1ULL << 32) - 100, true, true,
	  false },
	{ "processes, 64-bit wrap", 3, 4, -100ULL, true, true, false },
	{ "eight processes", 8, 7, 0, true, true, false },
	{ "consumer killed", 3, 3, 2 * 256 * 8 - 100, true, false, true },
	{ "consumer killed, no fences", 3, 5, 0, true, true, true },
	{ "a single process, 64-bit wrap", 1, 4, -100ULL, true, true, false },
	{ "consumer of a single process killed", 1, 3, 2 * 256 * 8 - 100, true,
	  true, true },
#endif
};

/* What a slot's operand reference would point to: ordinary memory. */
struct operand {
	uint64_t in[OPERAND_WORDS];
	uint64_t out;
};

struct shared {
	struct operand operand[1 << MAX_ORDER];
	uint8_t collected[1 << MAX_ORDER];
	uint64_t accepted[MAX_PRODUCERS][16];
	uint64_t answered[MAX_PRODUCERS][16];
	uint64_t canceled[MAX_PRODUCERS][16];
	uint64_t sleeps;
	uint32_t producers_left;
	uint32_t stop;
	uint32_t failed;
	char why[256];
	char region[] __attribute__((aligned(4096)));
};

static const struct scenario *sc;
static struct shared *sh;
static struct air_ring ring;

static void fail(const char *fmt, ...)
{
	va_list ap;

	if (!__atomic_exchange_n(&sh->failed, 1, __ATOMIC_SEQ_CST)) {
		va_start(ap, fmt);
		vsnprintf(sh->why, sizeof(sh->why), fmt, ap);
		va_end(ap);
	}
	__atomic_store_n(&sh->stop, 1, __ATOMIC_SEQ_CST);
}

static bool stopping(void)
{
	return __atomic_load_n(&sh->stop, __ATOMIC_RELAXED);
}

/* ------------------------------------------------------------- payloads */

static uint64_t checksum(const uint64_t *word, int n)
{
	uint64_t sum = 0;

	for (int i = 0; i < n; i++)
		sum = mix(sum ^ word[i]);
	return sum & AIRUNNER_PAYLOAD_MASK;
}

/* Word 0 is left out: cancel changes it. */
static void fill(struct air_sqe *sqe, uint64_t index, uint64_t *seed)
{
	struct operand *o = &sh->operand[air_ring_slot(&ring, index)];

	for (int i = 0; i < OPERAND_WORDS; i++)
		o->in[i] = draw(seed);
	sqe->word[0] = airunner_sqe_head(AIRUNNER_OP_NOP, 0, 0, 0);
	sqe->word[1] = index & AIRUNNER_PAYLOAD_MASK;
	for (int i = 2; i < 6; i++)
		sqe->word[i] = draw(seed) & AIRUNNER_PAYLOAD_MASK;
	sqe->word[6] = checksum(o->in, OPERAND_WORDS);
	sqe->word[7] = checksum(&sqe->word[1], 6);
}

/* A consumer that took over knows its index modulo 256 laps: all it needs. */
static uint64_t known_bits(uint64_t index)
{
	return index & (((1ULL << ring.order) << 8) - 1);
}

static struct air_cqe answer_to(uint64_t index, const uint64_t *in,
				enum airunner_status status)
{
	uint64_t h = mix(checksum(in, OPERAND_WORDS) ^ known_bits(index));

	return (struct air_cqe){
		.status = status,
		.detail = (uint16_t)h,
		.start = h & AIRUNNER_START_MASK,
		.duration = (h >> 16) & AIRUNNER_DURATION_MAX,
	};
}

static void check_answer(uint64_t index, const struct air_cqe *got,
			 const uint64_t *in, bool cancel_tried)
{
	const struct operand *o = &sh->operand[air_ring_slot(&ring, index)];
	struct air_cqe want = answer_to(index, in, got->status);

	switch (got->status) {
	case AIRUNNER_S_OK:
		if (o->out != mix(want.start))
			fail("index %#llx: result %#llx, expected %#llx",
			     (unsigned long long)index,
			     (unsigned long long)o->out,
			     (unsigned long long)mix(want.start));
		break;
	case AIRUNNER_S_CANCELED:
		if (!cancel_tried)
			fail("index %#llx canceled, but not by its owner",
			     (unsigned long long)index);
		break;
	case AIRUNNER_S_WORKER_DIED:
		if (!sc->kill)
			fail("index %#llx: no worker died",
			     (unsigned long long)index);
		return;
	default:
		fail("index %#llx: status %d", (unsigned long long)index,
		     got->status);
		return;
	}
	if (got->detail != want.detail || got->start != want.start ||
	    got->duration != want.duration)
		fail("index %#llx: completion of something else",
		     (unsigned long long)index);
}

/* ------------------------------------------------------------- producer */

static void rest(double seconds)
{
	time_t whole = (time_t)seconds;
	struct timespec ts = { whole, (long)((seconds - (double)whole) * 1e9) };

	nanosleep(&ts, NULL);
}

struct pending {
	uint64_t index;
	uint64_t in[OPERAND_WORDS];
	bool cancel_tried;
};

static void shuffle(struct pending *p, unsigned int n, uint64_t *seed)
{
	for (unsigned int i = n; i > 1; i--) {
		unsigned int j = (unsigned int)(draw(seed) % i);
		struct pending t = p[i - 1];

		p[i - 1] = p[j];
		p[j] = t;
	}
}

static void wake_consumer(void)
{
	if (air_ring_must_wake(&ring, sc->asym))
		ring_bell(&ring.ctrl->sq_bell);
}

/* Collect the ones that are there; true if any was. */
static bool collect(struct pending *p, unsigned int *n, uint64_t *answered,
		    uint64_t *canceled)
{
	bool any = false;

	for (unsigned int i = 0; i < *n;) {
		struct air_cqe cqe;

		if (!air_ring_completed(&ring, p[i].index, &cqe)) {
			i++;
			continue;
		}
		check_answer(p[i].index, &cqe, p[i].in, p[i].cancel_tried);
		air_ring_collect(&ring, sh->collected, p[i].index);
		*canceled += cqe.status == AIRUNNER_S_CANCELED;
		++*answered;
		p[i] = p[--*n];
		any = true;
	}
	return any;
}

static bool any_completed(const struct pending *p, unsigned int n)
{
	struct air_cqe cqe;

	for (unsigned int i = 0; i < n; i++)
		if (air_ring_completed(&ring, p[i].index, &cqe))
			return true;
	return false;
}

/* Sleep until there may be a completion. */
static void wait_for_any(struct pending *p, unsigned int n)
{
	uint32_t bell = __atomic_load_n(&ring.ctrl->cq_bell, __ATOMIC_ACQUIRE);

	air_ring_arm_waiter(&ring);
	if (sc->asym && !air_membarrier())
		fail("membarrier: %s", strerror(errno));
	if (any_completed(p, n))
		return;
	__atomic_fetch_add(&sh->sleeps, 1, __ATOMIC_RELAXED);
	if (sc->asym) {
		futex_doze(&ring.ctrl->cq_bell, bell);
		if (any_completed(p, n))
			return;
	}
	futex_wait(&ring.ctrl->cq_bell, bell);
}

static void produce(unsigned int me)
{
	struct pending pending[4 * MAX_BATCH];
	uint64_t seed = mix(now_ns() + me), accepted = 0, answered = 0;
	uint64_t canceled = 0;
	unsigned int n = 0;

	for (;;) {
		uint32_t batch = 1 + (uint32_t)(draw(&seed) % MAX_BATCH);
		uint64_t first;
		bool ended = stopping();

		if (batch > 1U << ring.order)
			batch = 1U << ring.order;
		if (!ended && n + batch <= 4 * MAX_BATCH &&
		    air_ring_reserve(&ring, sh->collected, batch, &first)) {
			struct pending *p = &pending[n];

			for (uint32_t i = 0; i < batch; i++)
				p[i].index = first + i;
			shuffle(p, batch, &seed);
			for (uint32_t i = 0; i < batch; i++) {
				struct air_sqe sqe;

				fill(&sqe, p[i].index, &seed);
				memcpy(p[i].in,
				       sh->operand[air_ring_slot(&ring,
								 p[i].index)]
					       .in,
				       sizeof(p[i].in));
				p[i].cancel_tried = false;
				/* so that a kill finds unpublished ones */
				if (sc->kill && draw(&seed) % 64 == 0)
					rest(1e-4);
				air_ring_publish(&ring, p[i].index, &sqe);
			}
			wake_consumer();
			n += batch;
			accepted += batch;
			for (uint32_t i = 0; i < batch; i++) {
				if (draw(&seed) % 16)
					continue;
				p[i].cancel_tried = true;
				if (!air_ring_cancel(&ring, p[i].index))
					fail("cancel of %#llx found a foreign "
					     "slot",
					     (unsigned long long)p[i].index);
			}
			continue;
		}
		if (n == 0 && ended)
			break;
		shuffle(pending, n, &seed);
		if (collect(pending, &n, &answered, &canceled))
			continue;
		if (n > 0)
			wait_for_any(pending, n);
		else
			sched_yield(); /* full of others' */
		if (__atomic_load_n(&sh->failed, __ATOMIC_RELAXED))
			break;
	}
	sh->accepted[me][0] = accepted;
	sh->answered[me][0] = answered;
	sh->canceled[me][0] = canceled;
	if (__atomic_sub_fetch(&sh->producers_left, 1, __ATOMIC_SEQ_CST) == 0)
		ring_bell(&ring.ctrl->sq_bell);
}

/* ------------------------------------------------------------- consumer */

#define HELD 4

static void wake_waiters(bool anyway)
{
	if (anyway || air_ring_client_sleeps(&ring, sc->asym)) {
		air_ring_disarm_waiters(&ring);
		ring_bell(&ring.ctrl->cq_bell);
	}
}

static void finish(uint64_t index, const struct air_sqe *sqe)
{
	struct operand *o = &sh->operand[air_ring_slot(&ring, index)];
	enum airunner_status status = AIRUNNER_S_OK;
	struct air_cqe cqe;

	if (airunner_sqe_opcode(sqe->word[0]) == AIRUNNER_OP_CANCELED)
		status = AIRUNNER_S_CANCELED;
	cqe = answer_to(index, o->in, status);
	if (status == AIRUNNER_S_OK)
		o->out = mix(cqe.start);
	air_ring_complete(&ring, index, &cqe);
	wake_waiters(false);
}

static void check_submission(uint64_t index, const struct air_sqe *sqe)
{
	const struct operand *o = &sh->operand[air_ring_slot(&ring, index)];

	if (known_bits(sqe->word[1]) != known_bits(index))
		fail("slot of %#llx taken for index %#llx",
		     (unsigned long long)sqe->word[1],
		     (unsigned long long)index);
	if (sqe->word[7] != checksum(&sqe->word[1], 6))
		fail("index %#llx: torn submission", (unsigned long long)index);
	if (sqe->word[6] != checksum(o->in, OPERAND_WORDS))
		fail("index %#llx: operand memory older than its slot",
		     (unsigned long long)index);
}

static void answer_died(void *arg, uint64_t index)
{
	struct air_cqe cqe = { .status = AIRUNNER_S_WORKER_DIED };

	air_ring_complete(&ring, index, &cqe);
}

/* No submission, none that a former consumer answered, no end. */
static bool nothing_at(uint64_t index, uint64_t recovered_until)
{
	struct air_sqe sqe;

	return !air_ring_fetch(&ring, index, &sqe) &&
	       !(index != recovered_until && air_ring_answered(&ring, index)) &&
	       __atomic_load_n(&sh->producers_left, __ATOMIC_SEQ_CST);
}

/* Take in order, complete in any order, sleep when there is nothing. */
static void consume(uint64_t index, bool take_over)
{
	struct {
		uint64_t index;
		struct air_sqe sqe;
	} held[HELD];
	uint64_t seed = now_ns();
	unsigned int n = 0, idle = 0;
	uint64_t recovered_until = index;

	if (take_over) {
		int64_t next = air_ring_recover(&ring, answer_died, NULL);

		if (next < 0) {
			fail("recovery: laps make no sense");
			return;
		}
		index = (uint64_t)next;
		recovered_until = index + (1ULL << ring.order);
		air_ring_disarm_consumer(&ring);
		wake_waiters(true);
	}

	for (;;) {
		struct air_sqe sqe;
		uint32_t bell;

		if (index != recovered_until &&
		    air_ring_answered(&ring, index)) {
			index++;
			continue;
		}
		if (air_ring_fetch(&ring, index, &sqe)) {
			check_submission(index, &sqe);
			held[n].index = index++;
			held[n++].sqe = sqe;
			idle = 0;
			if (n < HELD && draw(&seed) % 2)
				continue;
		}
		if (n > 0) {
			unsigned int i = (unsigned int)(draw(&seed) % n);

			finish(held[i].index, &held[i].sqe);
			held[i] = held[--n];
			continue;
		}
		if (__atomic_load_n(&sh->producers_left, __ATOMIC_SEQ_CST) == 0)
			return;
		if (++idle < 100)
			continue;
		idle = 0;
		bell = __atomic_load_n(&ring.ctrl->sq_bell, __ATOMIC_ACQUIRE);
		air_ring_arm_consumer(&ring);
		if (sc->asym && !air_membarrier())
			fail("membarrier: %s", strerror(errno));
		if (nothing_at(index, recovered_until)) {
			__atomic_fetch_add(&sh->sleeps, 1, __ATOMIC_RELAXED);
			if (sc->asym)
				futex_doze(&ring.ctrl->sq_bell, bell);
			if (!sc->asym || nothing_at(index, recovered_until))
				futex_wait(&ring.ctrl->sq_bell, bell);
		}
		air_ring_disarm_consumer(&ring);
	}
}

/* --------------------------------------------------- threads, processes */

static void *producer_thread(void *arg)
{
	produce((unsigned int)(uintptr_t)arg);
	return NULL;
}

static void *consumer_thread(void *arg)
{
	consume(sc->start, false);
	return NULL;
}

static void run_threads(double seconds)
{
	pthread_t producer[MAX_PRODUCERS], consumer;

	if (pthread_create(&consumer, NULL, consumer_thread, NULL))
		exit(1);
	for (unsigned int i = 0; i < sc->producers; i++)
		if (pthread_create(&producer[i], NULL, producer_thread,
				   (void *)(uintptr_t)i))
			exit(1);
	rest(seconds);
	__atomic_store_n(&sh->stop, 1, __ATOMIC_SEQ_CST);
	for (unsigned int i = 0; i < sc->producers; i++)
		pthread_join(producer[i], NULL);
	pthread_join(consumer, NULL);
}

static pid_t spawn(void (*fn)(uint64_t arg, bool flag), uint64_t arg, bool flag)
{
	pid_t parent = getpid(), pid = fork();

	if (pid < 0) {
		perror("fork");
		exit(1);
	}
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		if (sc->asym && !air_membarrier_register())
			fail("membarrier: %s", strerror(errno));
		fn(arg, flag);
		_exit(0);
	}
	return pid;
}

static void producer_process(uint64_t me, bool flag)
{
	produce((unsigned int)me);
}

static void reap(pid_t pid, bool killed)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			exit(1);
	if (killed && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
		return;
	if (status)
		fail("process %d ended with %#x", pid, status);
}

static unsigned int run_processes(double seconds)
{
	pid_t producer[MAX_PRODUCERS], consumer;
	uint64_t seed = now_ns();
	uint64_t end = now_ns() + (uint64_t)(seconds * 1e9);
	unsigned int kills = 0;

	consumer = spawn(consume, sc->start, false);
	for (unsigned int i = 0; i < sc->producers; i++)
		producer[i] = spawn(producer_process, i, false);
	while (sc->kill && now_ns() < end && !stopping()) {
		rest((double)(draw(&seed) % 4000) * 1e-6);
		kill(consumer, SIGKILL);
		kills++;
		reap(consumer, true);
		consumer = spawn(consume, 0, true);
	}
	if (!sc->kill)
		rest(seconds);
	__atomic_store_n(&sh->stop, 1, __ATOMIC_SEQ_CST);
	for (unsigned int i = 0; i < sc->producers; i++)
		reap(producer[i], false);
	reap(consumer, false);
	return kills;
}

static bool run(double seconds)
{
	size_t bytes = sizeof(*sh) + ring_bytes(sc->order);
	uint64_t accepted = 0, answered = 0, canceled = 0;
	unsigned int kills = 0;
	bool ok;

	sh = map_shared(bytes);
	sh->producers_left = sc->producers;
	air_ring_init(&ring, sh->region, sc->order);
	ring.single = sc->producers == 1;
	ring_start_at(&ring, sh->collected, sc->start);
	if (sc->processes)
		kills = run_processes(seconds);
	else
		run_threads(seconds);

	for (unsigned int i = 0; i < sc->producers; i++) {
		accepted += sh->accepted[i][0];
		answered += sh->answered[i][0];
		canceled += sh->canceled[i][0];
	}
	if (!sh->failed) {
		air_ring_advance(&ring, sh->collected);
		if (accepted != answered)
			fail("%llu accepted, %llu answered",
			     (unsigned long long)accepted,
			     (unsigned long long)answered);
		else if (ring.ctrl->sq_tail != sc->start + accepted ||
			 ring.ctrl->cq_head != sc->start + accepted)
			fail("ring ends at %#llx, %#llx instead of %#llx",
			     (unsigned long long)ring.ctrl->sq_tail,
			     (unsigned long long)ring.ctrl->cq_head,
			     (unsigned long long)(sc->start + accepted));
		else if (accepted == 0)
			fail("nothing was submitted");
	}
	ok = !sh->failed;
	printf("%s ring_stress: %s: %llu submissions, %llu canceled, %llu "
	       "sleeps",
	       ok ? "ok" : "not ok", sc->name, (unsigned long long)accepted,
	       (unsigned long long)canceled, (unsigned long long)sh->sleeps);
	if (sc->kill)
		printf(", %u kills", kills);
	if (!ok)
		printf(": %.*s", (int)sizeof(sh->why), sh->why);
	putchar('\n');
	fflush(stdout);
	munmap(sh, bytes);
	return ok;
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 1.0;
	bool ok = true, asym = air_membarrier_register() && air_membarrier();

	alarm((unsigned int)(seconds * 30 + 100));
	for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++) {
		sc = &scenarios[i];
		if (argc > 2 && strcmp(argv[2], sc->name))
			continue;
		if (sc->asym && !asym) {
			printf("skip ring_stress: %s: no membarrier\n",
			       sc->name);
			continue;
		}
		ok &= run(seconds);
	}
	return ok ? 0 : 1;
}
