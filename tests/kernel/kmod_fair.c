// SPDX-License-Identifier: MIT
/*
 * kmod_fair: shares and delays with real clients and a real worker.
 *
 * A worker executes one operator at a time, each taking as long as its
 * argument says, and reports that: when this machine is emulated, and its CPUs
 * are taken away for 50 ms, that is no time of a device. Clients are processes
 * that keep their rings full. Three with weights 1:2:4 and operators of very
 * different sizes get their shares within 5 %; a client of a better class waits
 * no longer than what is running takes, while the others flood; a thousand idle
 * channels change neither, nor what a turn costs. See kmod_test.h for how it
 * is run; it needs two CPUs.
 */
#define CASE_SECONDS 100
#include "kmod_test.h"

#define ORDER 10
#define ENTRIES (1U << ORDER)
#define US 1000LL
#define MS 1000000LL

/*
 * Device time, in memory that all share, by who gives it: a client that looks
 * late, because this machine is emulated and its CPUs are wanted by others,
 * has been served all the same. [0] is what all have asked for and been given,
 * which waits are measured in; [weight] what clients of that weight used.
 */
static _Atomic int64_t *used;

/* ------------------------------------------------------- the worker */

#define MAX_CHANNELS 1100

struct served {
	uint32_t id;
	uint32_t order;
	uint16_t weight;
	void *va;
	uint64_t offset;
	uint64_t size;
	uint64_t head;
};

static struct served served[MAX_CHANNELS];
static int nr_served;

static struct served *find(uint32_t id)
{
	int i;

	for (i = 0; i < nr_served; i++) {
		if (served[i].id == id)
			return &served[i];
	}
	fail("event of channel %u, which was never new", id);
}

static int64_t execute(struct served *s)
{
	_Atomic uint64_t *sq = sq_slot(s->va, s->order, s->head);
	_Atomic uint64_t *cq = cq_slot(s->va, s->order, s->head);
	uint64_t ns = airunner_payload(atomic_load(&sq[AIRUNNER_WORD_ARG]));
	uint8_t lap = airunner_lap(s->head, s->order);
	int64_t start = now_ns(), begun = atomic_load(used);

	while (now_ns() - start < (int64_t)ns)
		;
	atomic_fetch_add(&used[0], ns);
	atomic_fetch_add(&used[s->weight], ns);
	atomic_store(&cq[1], airunner_word(airunner_cqe_word1(begun, ns),
					   lap));
	atomic_store(&cq[0], airunner_word(airunner_cqe_word0(0, 0, ns),
					   lap));
	s->head++;
	return ns;
}

/* Serve until the quantum is over or the ring is empty. */
static struct airunner_report serve(struct served *s, int64_t quantum)
{
	struct airunner_report r = {
		.channel_id = s->id, .flags = AIRUNNER_REPORT_MORE,
	};
	struct airunner_ctrl *ctrl = s->va;
	_Atomic uint32_t *flags = (_Atomic uint32_t *)&ctrl->sq_flags;

	atomic_fetch_and(flags, ~AIRUNNER_SQ_NEED_WAKEUP);
	while ((int64_t)r.device_ns < quantum) {
		if (!submitted(s->va, s->order, s->head)) {
			atomic_fetch_or(flags, AIRUNNER_SQ_NEED_WAKEUP);
			if (!submitted(s->va, s->order, s->head)) {
				r.flags = AIRUNNER_REPORT_IDLE;
				break;
			}
		}
		r.device_ns += execute(s);
		r.completed++;
	}
	return r;
}

static void new_channel(const struct airunner_event *e)
{
	check(nr_served < MAX_CHANNELS);
	served[nr_served++] = (struct served){
		.id = e->channel_id, .order = e->order, .weight = e->weight,
		.offset = e->mmap_offset, .size = e->region_size,
	};
}

static void worker_main(void *arg)
{
	struct airunner_report report;
	struct airunner_event e;
	struct worker w;
	int nr_reports = 0;

	attach(&w);
	for (;;) {
		check_eq(worker_wait(w.fd, &report, nr_reports, &e, 1, -1), 1);
		nr_reports = 0;
		if (e.type == AIRUNNER_EV_CHANNEL_NEW) {
			new_channel(&e);
		} else if (e.type == AIRUNNER_EV_READY) {
			struct served *s = find(e.channel_id);

			if (!s->va) {
				s->va = mmap(NULL, s->size,
					     PROT_READ | PROT_WRITE,
					     MAP_SHARED, w.fd, s->offset);
				check(s->va != MAP_FAILED);
			}
			report = serve(s, e.quantum_ns);
			nr_reports = 1;
			if (doorbell(w.fd, s->id))
				check_eq(errno, ENXIO);
		} else {
			detach(w.fd, e.channel_id);
		}
	}
}

/* ------------------------------------------------------- clients */

struct client {
	unsigned int priority;
	unsigned int weight;
	int64_t op_ns;
	int64_t pause_ns;	/* 0 floods, else one at a time */
	/* What it measured: in memory shared with the test. */
	_Atomic int64_t device_ns;
	atomic_int done;
	atomic_int ready;
	atomic_int go;
	int64_t delay[4096];
};

static void put(struct region *r, int64_t ns)
{
	_Atomic uint64_t *slot = sq_slot(r->va, r->order, r->tail);
	uint8_t lap = airunner_lap(r->tail, r->order);
	int i;

	for (i = 1; i < AIRUNNER_SQE_WORDS; i++)
		atomic_store(&slot[i], airunner_word(i == AIRUNNER_WORD_ARG ?
						     ns : 0, lap));
	atomic_store(&slot[0], airunner_word(
		airunner_sqe_head(AIRUNNER_OP_NOP, 0, 0, 0), lap));
	r->tail++;
	if (atomic_load((_Atomic uint32_t *)&r->ctrl->sq_flags) &
	    AIRUNNER_SQ_NEED_WAKEUP)
		check(!doorbell(r->fd, r->id));
}

static int64_t begun_at(const struct region *r, uint64_t i)
{
	_Atomic uint64_t *slot = cq_slot(r->va, r->order, i);

	return airunner_cqe_start(airunner_payload(atomic_load(&slot[1])));
}

static int64_t duration_of(const struct region *r, uint64_t i)
{
	_Atomic uint64_t *slot = cq_slot(r->va, r->order, i);

	return airunner_cqe_duration(airunner_payload(atomic_load(&slot[0])),
				     airunner_payload(atomic_load(&slot[1])));
}

static void client_main(void *arg)
{
	struct client *c = arg;
	struct airunner_build_channel b;
	struct region r;
	uint64_t head = 0, seq = 0;
	int n = 0;

	region_make(&r, ORDER, airunner_arena_offset(ORDER));
	b = build_arg(&r);
	b.priority = c->priority;
	b.weight = c->weight;
	check(!build_with(device_open(), &r, &b));
	atomic_store(&c->ready, 1);
	eventually(atomic_load(&c->go));
	for (;;) {
		int64_t asked = 0;

		if (c->pause_ns) {
			struct timespec ts = { .tv_nsec = c->pause_ns };

			nanosleep(&ts, NULL);
			asked = atomic_load(used);
			put(&r, c->op_ns);
		} else {
			while (r.tail - head < ENTRIES)
				put(&r, c->op_ns);
		}
		/* Something is outstanding, so this does not wait for ever. */
		while (answer_of(&r, head) < 0)
			check(!client_wait(r.fd, r.id, &seq, -1));
		if (c->pause_ns && n < 4096) {
			c->delay[n++] = begun_at(&r, head) - asked;
			atomic_store(&c->done, n);
		}
		while (head < r.tail && answer_of(&r, head) >= 0) {
			atomic_fetch_add(&c->device_ns, duration_of(&r, head));
			head++;
		}
	}
}

/* ------------------------------------------------------- measuring */

#define CLIENTS 4

struct setup {
	struct client *client;
	pid_t pid[CLIENTS], worker;
	int nr, idle_fd;
};

static void idle_channels(int fd, int nr)
{
	struct airunner_build_channel b;
	struct region r;
	int i;

	for (i = 0; i < nr; i++) {
		region_make(&r, 1, 4096);
		b = build_arg(&r);
		check(!build_with(fd, &r, &b));
		munmap(r.va, r.size);
		close(r.memfd);
	}
}

static void set_up(struct setup *s, const struct client *clients, int nr,
		   int idle)
{
	int i;

	s->nr = nr;
	s->client = mmap(NULL, sizeof(struct client) * CLIENTS,
			 PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			 -1, 0);
	used = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	check(s->client != MAP_FAILED && used != MAP_FAILED);
	memcpy(s->client, clients, sizeof(struct client) * nr);
	s->worker = spawn(worker_main, NULL);
	eventually(read_number(SYSFS "workers") == 1);
	s->idle_fd = device_open();
	idle_channels(s->idle_fd, idle);
	for (i = 0; i < nr; i++) {
		s->pid[i] = spawn(client_main, &s->client[i]);
		eventually(atomic_load(&s->client[i].ready));
	}
	for (i = 0; i < nr; i++)
		atomic_store(&s->client[i].go, 1);
	for (i = 0; i < nr; i++)
		eventually(atomic_load(&s->client[i].device_ns));
}

static void tear_down(struct setup *s)
{
	int i;

	for (i = 0; i < s->nr; i++) {
		kill(s->pid[i], SIGKILL);
		reap(s->pid[i]);
	}
	kill(s->worker, SIGKILL);
	reap(s->worker);
	close(s->idle_fd);
	eventually(nothing_left());
}

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

/* Three flood until @device of time has been used; their shares. */
static void shares(int idle, int64_t device)
{
	static const struct client clients[] = {
		{ .priority = 2, .weight = 100, .op_ns = 3 * MS },
		{ .priority = 2, .weight = 200, .op_ns = 100 * US },
		{ .priority = 2, .weight = 400, .op_ns = 600 * US },
	};
	int64_t start[3], got[3], all, end = now_ns() + 60 * SECOND;
	struct setup s;
	int i, off = 0;

	set_up(&s, clients, 3, idle);
	for (i = 0; i < 3; i++)
		start[i] = atomic_load(&used[clients[i].weight]);
	do {
		nap();
		check(now_ns() < end);
		for (all = 0, i = 0; i < 3; i++) {
			got[i] = atomic_load(&used[clients[i].weight]) -
				 start[i];
			all += got[i];
		}
	} while (all < device);
	tear_down(&s);
	printf("# %d idle channels:", idle);
	for (i = 0; i < 3; i++) {
		double want = clients[i].weight / 700.0;
		double have = (double)got[i] / all;

		printf(" weight %u has %.2f %% of %.2f %%;", clients[i].weight,
		       100 * have, 100 * want);
		off |= have < want * 0.95 || have > want * 1.05;
	}
	printf(" of %lld ms\n", (long long)(all / MS));
	if (off)
		fail("a share is off by more than 5 %%");
}

/* Channels that nobody uses. */
#define MANY 1000

static void shares_alone(void)
{
	shares(0, 5 * SECOND);
}

static void shares_with_idle(void)
{
	shares(MANY, 5 * SECOND);
}

/*
 * Three flood, one of a better class asks now and then; its median wait. Now
 * and then one is put off the CPU between looking at the time and asking.
 */
static int64_t high_priority(int idle)
{
	static const struct client clients[] = {
		{ .priority = 2, .weight = 100, .op_ns = 3 * MS },
		{ .priority = 2, .weight = 200, .op_ns = 100 * US },
		{ .priority = 3, .weight = 400, .op_ns = 600 * US },
		{ .priority = 1, .weight = 100, .op_ns = 50 * US,
		  .pause_ns = 3 * MS },
	};
	struct client *c;
	struct setup s;
	int64_t median;
	int n;

	set_up(&s, clients, 4, idle);
	c = &s.client[3];
	eventually(atomic_load(&c->done) >= 200);
	n = atomic_load(&c->done);
	tear_down(&s);
	qsort(c->delay, n, sizeof(c->delay[0]), compare);
	median = c->delay[n / 2];
	printf("# %d idle channels: %d waits, median %lld us, 90 %% %lld us, longest %lld us\n",
	       idle, n, (long long)(median / US),
	       (long long)(c->delay[n * 9 / 10] / US),
	       (long long)(c->delay[n - 1] / US));
	return median;
}

/*
 * What may be in the way is the operator that is running, of 3 ms, and a turn
 * of 1 ms that has been given out already.
 */
#define BOUND (3 * MS + 1 * MS)

static void high_priority_bounded(void)
{
	check(high_priority(0) <= BOUND);
}

static void high_priority_with_idle(void)
{
	check(high_priority(MANY) <= BOUND);
}

/* The best of many times of a doorbell, the turn it asks for and its report. */
static int64_t turn_cost(int fd, const struct region *r, int worker)
{
	struct airunner_event e;
	int64_t best = INT64_MAX;
	int i, j;

	for (i = 0; i < 50; i++) {
		int64_t start = now_ns(), took;

		for (j = 0; j < 20; j++) {
			check(!doorbell(fd, r->id));
			check_eq(worker_wait(worker, NULL, 0, &e, 1, -1), 1);
			report(worker, r->id, AIRUNNER_REPORT_IDLE, 1000);
		}
		took = (now_ns() - start) / 20;
		best = took < best ? took : best;
	}
	return best;
}

static void idle_cost_nothing(void)
{
	struct airunner_event e;
	struct region r;
	struct worker w;
	int64_t alone, with;
	int i, fd = device_open();

	attach(&w);
	channel_make(fd, &r);
	expect_event(w.fd, AIRUNNER_EV_CHANNEL_NEW, r.id);
	alone = turn_cost(fd, &r, w.fd);
	idle_channels(fd, MANY);
	for (i = 0; i < MANY; i++)
		check_eq(worker_wait(w.fd, NULL, 0, &e, 1, -1), 1);
	with = turn_cost(fd, &r, w.fd);
	printf("# doorbell + turn + report: %lld ns alone, %lld ns beside %d idle channels\n",
	       (long long)alone, (long long)with, MANY);
	check(with < alone * 3 / 2);
}

static const struct test_case cases[] = {
	{ "shares_alone", shares_alone },
	{ "shares_with_idle", shares_with_idle },
	{ "high_priority_bounded", high_priority_bounded },
	{ "high_priority_with_idle", high_priority_with_idle },
	{ "idle_cost_nothing", idle_cost_nothing },
};

int main(int argc, char **argv)
{
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2) {
		printf("skip kmod_fair: needs two CPUs\n");
		return 77;
	}
	return RUN_CASES(cases, argc, argv);
}
