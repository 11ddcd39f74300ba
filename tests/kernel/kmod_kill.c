// SPDX-License-Identifier: MIT
/*
 * kmod_kill: kill -9 of workers and clients at random moments under load. The
 * others go on, and every submission of a client that lives is answered once,
 * by a worker or, when that died, by the module. See kmod_test.h for how it is
 * run.
 */
#define CASE_SECONDS 100
#include "kmod_test.h"

#define ORDER 4
#define ENTRIES (1U << ORDER)
#define WORKERS 2
#define CLIENTS 3
#define VICTIMS 2
#define RUN_SECONDS 12

static struct common {
	atomic_int stop;
	_Atomic uint64_t executed, ok, died;
	_Atomic uint64_t killed_workers, killed_clients, given_back;
} *common;

/* ------------------------------------------------------- a worker */

struct served {
	uint32_t id;
	void *va;
	uint64_t size;
	uint64_t head;
};

/*
 * Where to begin: at the oldest index that has no answer. A slot's completion
 * lap says which index of that slot was answered last, modulo 256 laps.
 */
static uint64_t first_unanswered(void *va)
{
	uint64_t wrap = 256ULL << ORDER, first = 0;
	uint32_t i;

	for (i = 0; i < ENTRIES; i++) {
		uint8_t lap = airunner_word_lap(
			atomic_load(cq_slot(va, ORDER, i)));
		uint64_t next = ((uint64_t)lap << ORDER) + i;

		if (!i || (next - first) % wrap > wrap / 2)
			first = next;
	}
	return first % wrap;
}

static bool answered(void *va, uint64_t i)
{
	return airunner_word_lap(atomic_load(cq_slot(va, ORDER, i))) ==
	       airunner_lap(i, ORDER);
}

/* Execute what there is; false when there is no more. */
static bool serve_one(struct served *s)
{
	/* Answered already, when the last worker died. */
	while (answered(s->va, s->head))
		s->head++;
	if (!submitted(s->va, ORDER, s->head))
		return false;
	/* A moment in which to be killed. */
	sched_yield();
	answer(s->va, ORDER, s->head++, AIRUNNER_S_OK);
	atomic_fetch_add(&common->executed, 1);
	return true;
}

static uint32_t serve(struct served *s)
{
	_Atomic uint32_t *flags =
		(_Atomic uint32_t *)&((struct airunner_ctrl *)s->va)->sq_flags;
	int budget = 20;

	atomic_fetch_and(flags, ~AIRUNNER_SQ_NEED_WAKEUP);
	while (budget--) {
		if (serve_one(s))
			continue;
		atomic_fetch_or(flags, AIRUNNER_SQ_NEED_WAKEUP);
		if (!serve_one(s))
			return AIRUNNER_REPORT_IDLE;
		atomic_fetch_and(flags, ~AIRUNNER_SQ_NEED_WAKEUP);
	}
	return AIRUNNER_REPORT_MORE;
}

static void let_go(int fd, struct served *s)
{
	munmap(s->va, s->size);
	check(!detach(fd, s->id));
	s->id = 0;
}

static void worker_main(void *arg)
{
	struct served served[64] = {};
	struct airunner_report r;
	struct airunner_event e;
	struct worker w;
	int i, nr = 0, turns = 0;

	attach(&w);
	for (;;) {
		check_eq(worker_wait(w.fd, &r, nr, &e, 1, -1), 1);
		nr = 0;
		for (i = 0; i < 64; i++) {
			if (e.type == AIRUNNER_EV_CHANNEL_NEW ?
			    !served[i].id : served[i].id == e.channel_id)
				break;
		}
		check(i < 64);
		switch (e.type) {
		case AIRUNNER_EV_CHANNEL_NEW:
			served[i].id = e.channel_id;
			served[i].size = e.region_size;
			served[i].va = worker_map(w.fd, &e);
			served[i].head = first_unanswered(served[i].va);
			break;
		case AIRUNNER_EV_READY:
			r = (struct airunner_report){
				.channel_id = e.channel_id,
				.flags = serve(&served[i]),
				.device_ns = 10000,
			};
			nr = 1;
			check(!doorbell(w.fd, e.channel_id));
			/* Now and then, one is handed over in good order. */
			if (++turns % 500 == 0) {
				nr = 0;
				let_go(w.fd, &served[i]);
				atomic_fetch_add(&common->given_back, 1);
			}
			break;
		default:
			let_go(w.fd, &served[i]);
		}
	}
}

/* ------------------------------------------------------- a client */

static void client_main(void *arg)
{
	uint64_t head = 0, seq = 0, ok = 0, died = 0;
	struct region r;
	int64_t end;

	region_make(&r, ORDER, 4096);
	check(!build(device_open(), &r));
	while (!atomic_load(&common->stop) || head < r.tail) {
		while (!atomic_load(&common->stop) && r.tail - head < ENTRIES)
			submit(&r, AIRUNNER_OP_NOP);
		end = now_ns() + 40 * SECOND;
		while (answer_of(&r, head) < 0) {
			if (client_wait(r.fd, r.id, &seq, SECOND))
				check_eq(errno, ETIME);
			if (now_ns() > end)
				fail("submission %llu is never answered",
				     (unsigned long long)head);
		}
		while (head < r.tail && answer_of(&r, head) >= 0) {
			int status = answer_of(&r, head++);

			if (status == AIRUNNER_S_OK)
				ok++;
			else if (status == AIRUNNER_S_WORKER_DIED)
				died++;
			else
				fail("status %d", status);
		}
	}
	check_eq(ok + died, r.tail);
	atomic_fetch_add(&common->ok, ok);
	atomic_fetch_add(&common->died, died);
	/* Nothing more comes: what is answered stays as it is. */
	check_eq(answer_of(&r, r.tail), -1);
}

/* ------------------------------------------------------- all together */

static void under_load(void)
{
	int64_t end = now_ns() + RUN_SECONDS * SECOND;
	pid_t worker[WORKERS], client[CLIENTS], victim[VICTIMS];
	int i;

	srand(time(NULL));
	common = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (i = 0; i < WORKERS; i++)
		worker[i] = spawn(worker_main, NULL);
	for (i = 0; i < CLIENTS; i++)
		client[i] = spawn(client_main, NULL);
	for (i = 0; i < VICTIMS; i++)
		victim[i] = spawn(client_main, NULL);
	while (now_ns() < end) {
		int status;

		usleep(rand() % 60000);
		i = rand() % WORKERS;
		if (rand() & 1) {
			kill(worker[i], SIGKILL);
			status = reap(worker[i]);
			check(WIFSIGNALED(status));
			worker[i] = spawn(worker_main, NULL);
			atomic_fetch_add(&common->killed_workers, 1);
		} else {
			i = rand() % VICTIMS;
			kill(victim[i], SIGKILL);
			status = reap(victim[i]);
			check(WIFSIGNALED(status));
			victim[i] = spawn(client_main, NULL);
			atomic_fetch_add(&common->killed_clients, 1);
		}
	}
	/* Some worker is there to the end. */
	atomic_store(&common->stop, 1);
	for (i = 0; i < CLIENTS; i++)
		check_eq(reap(client[i]), 0);
	for (i = 0; i < VICTIMS; i++)
		check_eq(reap(victim[i]), 0);
	for (i = 0; i < WORKERS; i++) {
		kill(worker[i], SIGKILL);
		check(WIFSIGNALED(reap(worker[i])));
	}
#define N(what) ((unsigned long long)atomic_load(&common->what))
	printf("# %llu workers and %llu clients killed, %llu channels given back; of those that lived, %llu submissions were executed, %llu were told that their worker died\n",
	       N(killed_workers), N(killed_clients), N(given_back), N(ok),
	       N(died));
	check(N(killed_workers) > 10 && N(killed_clients) > 10);
	check(N(ok) > 1000 && N(died) > 0);
}

static const struct test_case cases[] = {
	{ "under_load", under_load },
};

int main(int argc, char **argv)
{
	return RUN_CASES(cases, argc, argv);
}
