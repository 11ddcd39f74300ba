// SPDX-License-Identifier: MIT
/*
 * kmod_arbiter: who is given which turn, and which channel: classes, weights,
 * starvation, balancing over workers, preference, permission. One process
 * plays all sides, so that each decision is exact. See kmod_test.h for how it
 * is run; kmod_fair.c measures the same with real clients.
 */
#include "kmod_test.h"

#define PARAM "/sys/module/airunner/parameters/"

static void channel_with(int fd, struct region *r, unsigned int priority,
			 unsigned int weight, uint64_t caps, uint32_t worker)
{
	struct airunner_build_channel arg;

	region_make(r, 2, 4096);
	arg = build_arg(r);
	arg.priority = priority;
	arg.weight = weight;
	arg.need_caps = caps;
	arg.worker_id = worker;
	check(!build_with(fd, r, &arg));
}

/* Take all NEWs; there are no other events. */
static void introduce(int fd, int nr)
{
	while (nr--)
		expect_event(fd, AIRUNNER_EV_CHANNEL_NEW, 0);
	expect_no_event(fd);
}

static void ring(const struct region *r)
{
	check(!doorbell(r->fd, r->id));
}

static void strict_classes(void)
{
	struct region r[4];
	struct worker w;
	int i, fd = device_open();

	attach(&w);
	for (i = 0; i < 4; i++)
		channel_with(fd, &r[i], i, 0, 0, 0);
	introduce(w.fd, 4);
	/* Rung from the lowest to the highest; served the other way round. */
	for (i = 3; i >= 0; i--)
		ring(&r[i]);
	for (i = 0; i < 4; i++) {
		struct airunner_event event =
			expect_event(w.fd, AIRUNNER_EV_READY, r[i].id);

		check_eq(event.priority, i);
		/* Nobody below while this one is being served. */
		expect_no_event(w.fd);
		report(w.fd, r[i].id, AIRUNNER_REPORT_IDLE, 1000);
	}
	expect_no_event(w.fd);
}

/* A burst of a better class comes first, however late it comes. */
static void better_class_overtakes(void)
{
	struct region low, high;
	struct worker w;
	int i, fd = device_open();

	attach(&w);
	channel_with(fd, &low, AIRUNNER_PRIO_NORMAL, 0, 0, 0);
	channel_with(fd, &high, AIRUNNER_PRIO_HIGH, 0, 0, 0);
	introduce(w.fd, 2);
	ring(&low);
	for (i = 0; i < 5; i++) {
		expect_event(w.fd, AIRUNNER_EV_READY, low.id);
		ring(&high);
		report(w.fd, low.id, AIRUNNER_REPORT_MORE, 1000);
		expect_event(w.fd, AIRUNNER_EV_READY, high.id);
		report(w.fd, high.id, AIRUNNER_REPORT_IDLE, 1000);
	}
}

/*
 * Give turns for as long as it takes to use @total of device time, in
 * operators of @op[] each; what each channel got is in @got.
 */
static void serve(int fd, const struct region *r, const uint64_t *op, int nr,
		  uint64_t total, uint64_t *got, uint32_t room)
{
	struct airunner_event events[16];
	struct airunner_report reports[16];
	uint64_t used = 0;
	int i, c, n, nr_reports = 0;

	while (used < total) {
		n = worker_wait(fd, reports, nr_reports, events, room,
				30 * SECOND);
		check(n > 0);
		nr_reports = 0;
		for (i = 0; i < n; i++) {
			uint64_t spent = 0;

			check_eq(events[i].type, AIRUNNER_EV_READY);
			for (c = 0; c < nr; c++) {
				if (r[c].id == events[i].channel_id)
					break;
			}
			check(c < nr);
			/* Whole operators until the quantum is over. */
			while (spent < events[i].quantum_ns)
				spent += op[c];
			got[c] += spent;
			used += spent;
			reports[nr_reports++] = (struct airunner_report){
				.channel_id = r[c].id,
				.flags = AIRUNNER_REPORT_MORE,
				.device_ns = spent,
			};
		}
	}
	check_eq(worker_wait(fd, reports, nr_reports, NULL, 0, 0), 0);
}

/* Shares within @percent of what the weights say. */
static void check_shares(const uint64_t *got, const unsigned int *weight,
			 int nr, int percent)
{
	uint64_t all = 0, weights = 0;
	int i;

	for (i = 0; i < nr; i++) {
		all += got[i];
		weights += weight[i];
	}
	for (i = 0; i < nr; i++) {
		double want = (double)weight[i] / weights;
		double have = (double)got[i] / all;

		printf("# weight %u: %.2f %% of device time, fair is %.2f %%\n",
		       weight[i], 100 * have, 100 * want);
		if (have < want * (1 - percent / 100.0) ||
		    have > want * (1 + percent / 100.0))
			fail("share of weight %u is off by more than %d %%",
			     weight[i], percent);
	}
}

static void weighted(const unsigned int *weight, const uint64_t *op, int nr,
		     uint32_t room)
{
	struct region r[8];
	struct worker w;
	uint64_t got[8] = {};
	int i, fd = device_open();

	attach(&w);
	for (i = 0; i < nr; i++)
		channel_with(fd, &r[i], AIRUNNER_PRIO_NORMAL, weight[i], 0, 0);
	introduce(w.fd, nr);
	for (i = 0; i < nr; i++)
		ring(&r[i]);
	serve(w.fd, r, op, nr, 2 * SECOND, got, room);
	check_shares(got, weight, nr, 5);
	close(fd);
	close(w.fd);
}

static void weights_shares(void)
{
	static const unsigned int weight[] = { 100, 200, 400 };
	static const unsigned int tiny[] = { 1, 2, 4 };
	static const unsigned int big[] = { 2500, 5000, 10000 };
	/* Operators of 10 us, 300 us and 2 ms, and the other way round. */
	static const uint64_t op[] = { 10000, 300000, 2000000 };
	static const uint64_t po[] = { 2000000, 300000, 10000 };

	/* A worker that serves one at a time, and one that takes all. */
	weighted(weight, op, 3, 1);
	weighted(weight, po, 3, 1);
	weighted(weight, op, 3, 16);
	weighted(weight, po, 3, 16);
	weighted(tiny, op, 3, 1);
	weighted(tiny, po, 3, 16);
	weighted(big, op, 3, 1);
	weighted(big, po, 3, 16);
}

/* Who was away does not get the time that it did not ask for. */
static void no_saving_up(void)
{
	static const unsigned int weight[] = { 100, 100 };
	static const uint64_t op[] = { 100000, 100000 };
	struct region r[2];
	struct worker w;
	uint64_t got[2] = {};
	int i, fd = device_open();

	attach(&w);
	for (i = 0; i < 2; i++)
		channel_with(fd, &r[i], AIRUNNER_PRIO_NORMAL, 0, 0, 0);
	introduce(w.fd, 2);
	ring(&r[0]);
	serve(w.fd, r, op, 2, SECOND, got, 1);
	check_eq(got[1], 0);
	ring(&r[1]);
	got[0] = 0;
	serve(w.fd, r, op, 2, SECOND / 2, got, 1);
	check_shares(got, weight, 2, 5);
}

/* Nor does one that comes new have to wait for what others had before. */
static void newcomer(void)
{
	static const unsigned int weight[] = { 100, 100 };
	static const uint64_t op[] = { 100000, 100000 };
	struct region r[2];
	struct worker w;
	uint64_t got[2] = {};
	int fd = device_open();

	attach(&w);
	channel_with(fd, &r[0], AIRUNNER_PRIO_NORMAL, 0, 0, 0);
	introduce(w.fd, 1);
	ring(&r[0]);
	serve(w.fd, r, op, 1, SECOND, got, 1);
	channel_with(fd, &r[1], AIRUNNER_PRIO_NORMAL, 0, 0, 0);
	ring(&r[1]);
	/* NEW before anybody's turn. */
	expect_event(w.fd, AIRUNNER_EV_CHANNEL_NEW, r[1].id);
	got[0] = 0;
	serve(w.fd, r, op, 2, SECOND / 2, got, 1);
	check_shares(got, weight, 2, 5);
}

/*
 * The stated bound: starve_ms, plus 8 turns for each ready channel. Two flood
 * in a better class; one waits below.
 */
static void starvation_bound(void)
{
	long starve_ms = read_number(PARAM "starve_ms");
	struct airunner_event event;
	struct region high[2], low;
	struct worker w;
	int64_t before, asked, worst = 0;
	int round, turns, fd = device_open();

	check(starve_ms > 0);
	attach(&w);
	channel_with(fd, &high[0], AIRUNNER_PRIO_HIGH, 0, 0, 0);
	channel_with(fd, &high[1], AIRUNNER_PRIO_HIGH, 0, 0, 0);
	channel_with(fd, &low, AIRUNNER_PRIO_IDLE, 0, 0, 0);
	introduce(w.fd, 3);
	ring(&high[0]);
	ring(&high[1]);
	for (round = 0; round < 3; round++) {
		turns = 0;
		before = now_ns();
		ring(&low);
		asked = now_ns();
		for (;;) {
			check_eq(worker_wait(w.fd, NULL, 0, &event, 1,
					     30 * SECOND), 1);
			check_eq(event.type, AIRUNNER_EV_READY);
			if (event.channel_id == low.id)
				break;
			/* Turns count from when it is due. */
			if (now_ns() - asked > starve_ms * 1000000)
				turns++;
			check(turns <= 3 * 8);
			report(w.fd, event.channel_id, AIRUNNER_REPORT_MORE,
			       100000);
		}
		/* Not before that, either: classes are strict. */
		check(now_ns() - before >= starve_ms * 1000000);
		if (now_ns() - asked > worst)
			worst = now_ns() - asked;
		report(w.fd, low.id, AIRUNNER_REPORT_IDLE, 100000);
	}
	printf("# starve_ms=%ld, longest wait %lld ms\n", starve_ms,
	       (long long)worst / 1000000);
}

/* A worker and two channels of equal weight that both want a turn. */
static void contest(struct worker *w, struct region r[2])
{
	int i, fd = device_open();

	attach(w);
	for (i = 0; i < 2; i++)
		channel_with(fd, &r[i], AIRUNNER_PRIO_NORMAL, 0, 0, 0);
	introduce(w->fd, 2);
	ring(&r[0]);
	ring(&r[1]);
}

/*
 * A channel that is withheld because a slower one is being served, by a
 * worker that takes long over it, is handed out when it has starved.
 */
static void withheld_is_rescued(void)
{
	struct region r[2];
	struct worker w;
	int64_t start;

	contest(&w, r);
	expect_event(w.fd, AIRUNNER_EV_READY, r[0].id);
	expect_event(w.fd, AIRUNNER_EV_READY, r[1].id);
	/* One gets far ahead; the other's turn goes on and on. */
	report(w.fd, r[1].id, AIRUNNER_REPORT_MORE, SECOND);
	expect_no_event(w.fd);
	start = now_ns();
	/* Sleeps in WAIT and is woken for it. */
	expect_event(w.fd, AIRUNNER_EV_READY, r[1].id);
	check(now_ns() - start >= 100000000);
}

static void change_priority(void)
{
	struct airunner_set_priority arg = { .size = sizeof(arg) };
	struct region r[2];
	struct airunner_event event;
	struct worker w;

	contest(&w, r);
	arg.channel_id = r[1].id;
	arg.priority = AIRUNNER_PRIO_REALTIME;
	arg.weight = 300;
	check(!ioctl(r[1].fd, AIRUNNER_IOC_SET_PRIORITY, &arg));
	event = expect_event(w.fd, AIRUNNER_EV_READY, r[1].id);
	check_eq(event.priority, AIRUNNER_PRIO_REALTIME);
	check_eq(event.weight, 300);
	/* While being served, and 0 leaves the weight. */
	arg.priority = AIRUNNER_PRIO_IDLE;
	arg.weight = 0;
	check(!ioctl(r[1].fd, AIRUNNER_IOC_SET_PRIORITY, &arg));
	report(w.fd, r[1].id, AIRUNNER_REPORT_MORE, 1000);
	expect_event(w.fd, AIRUNNER_EV_READY, r[0].id);
	report(w.fd, r[0].id, AIRUNNER_REPORT_IDLE, 1000);
	event = expect_event(w.fd, AIRUNNER_EV_READY, r[1].id);
	check_eq(event.weight, 300);

	arg.priority = AIRUNNER_PRIO_CLASSES;
	check_errno(ioctl(r[1].fd, AIRUNNER_IOC_SET_PRIORITY, &arg), EINVAL);
	arg.priority = AIRUNNER_PRIO_NORMAL;
	arg.weight = AIRUNNER_WEIGHT_MAX + 1;
	check_errno(ioctl(r[1].fd, AIRUNNER_IOC_SET_PRIORITY, &arg), EINVAL);
	arg.weight = 1;
	arg.resv = 1;
	check_errno(ioctl(r[1].fd, AIRUNNER_IOC_SET_PRIORITY, &arg), EINVAL);
	arg.resv = 0;
	check_errno(ioctl(device_open(), AIRUNNER_IOC_SET_PRIORITY, &arg),
		    ENXIO);
}

static void set_class(const struct region *r, unsigned int priority,
		      unsigned int weight)
{
	struct airunner_set_priority arg = {
		.size = sizeof(arg), .channel_id = r->id,
		.priority = priority, .weight = weight,
	};

	check(!ioctl(r->fd, AIRUNNER_IOC_SET_PRIORITY, &arg));
}

static void set_weight(const struct region *r, unsigned int weight)
{
	set_class(r, AIRUNNER_PRIO_NORMAL, weight);
}

static void write_numbers(const char *path, long value)
{
	char text[32];

	snprintf(text, sizeof(text), "%ld", value);
	check(write_text(path, text));
}

/*
 * How many turns of @ns of device time each @behind gets, both wanting more,
 * before @ahead is given one. Rescues have to be off.
 */
static int turns_until(int fd, const struct region *ahead,
		       const struct region *behind, uint64_t ns)
{
	struct airunner_event event;
	int turns;

	for (turns = 0; turns < 100000; turns++) {
		check_eq(worker_wait(fd, NULL, 0, &event, 1, 30 * SECOND), 1);
		check_eq(event.type, AIRUNNER_EV_READY);
		if (event.channel_id == ahead->id) {
			report(fd, ahead->id, AIRUNNER_REPORT_MORE, 0);
			return turns;
		}
		check_eq(event.channel_id, behind->id);
		report(fd, behind->id, AIRUNNER_REPORT_MORE, ns);
	}
	fail("never served again");
}

/* Have @r use @ns in its next turn. */
static void use(int fd, const struct region *r, uint64_t ns)
{
	struct airunner_event event;

	do {
		check_eq(worker_wait(fd, NULL, 0, &event, 1, 30 * SECOND), 1);
		check_eq(event.type, AIRUNNER_EV_READY);
		report(fd, event.channel_id, AIRUNNER_REPORT_MORE,
		       event.channel_id == r->id ? ns : 10000);
	} while (event.channel_id != r->id);
}

/*
 * What a channel owes it owes as device time, whatever its weight was when it
 * used that, and however often it is changed.
 */
static void weight_to_and_fro(void)
{
	const uint64_t ms = 1000000;
	long starve_ms = read_number(PARAM "starve_ms");
	struct region r[2];
	struct worker w;
	int i, turns;

	check(write_text(PARAM "starve_ms", "1000000"));
	contest(&w, r);

	/* 50 ms ahead: it waits for 50 turns of the other's, less its own. */
	use(w.fd, &r[0], 50 * ms);
	for (i = 0; i < 1000; i++) {
		set_weight(&r[0], 1);
		set_weight(&r[0], 10000);
		set_weight(&r[0], 100);
	}
	turns = turns_until(w.fd, &r[0], &r[1], ms);
	printf("# changed a thousand times: %d turns\n", turns);
	check(turns >= 49 && turns <= 51);

	/* Used at a low weight, where it counts a hundredfold. */
	turns_until(w.fd, &r[1], &r[0], ms);
	set_weight(&r[0], 1);
	use(w.fd, &r[0], 20 * ms);
	set_weight(&r[0], 100);
	turns = turns_until(w.fd, &r[0], &r[1], ms);
	printf("# raised to a hundredfold: %d turns\n", turns);
	check(turns >= 18 && turns <= 22);

	/* Used at a high one, where it counts a hundredth. */
	turns_until(w.fd, &r[1], &r[0], ms);
	set_weight(&r[0], 10000);
	use(w.fd, &r[0], 20 * ms);
	set_weight(&r[0], 100);
	turns = turns_until(w.fd, &r[0], &r[1], ms);
	printf("# lowered to a hundredth: %d turns\n", turns);
	check(turns >= 18 && turns <= 22);

	/* Nor does it lose its place among those that wait. */
	check(write_text(PARAM "starve_ms", "200"));
	use(w.fd, &r[0], 100 * SECOND);
	for (i = 0; i < 50; i++) {
		nap();
		nap();
		nap();
		set_weight(&r[0], 100 - (i & 1));
	}
	turns = turns_until(w.fd, &r[0], &r[1], ms);
	check(turns <= 16);
	write_numbers(PARAM "starve_ms", starve_ms);
}

/* The one that is behind may set what it likes: it is owed the same. */
static void owed_stays(void)
{
	const uint64_t ms = 1000000;
	long starve_ms = read_number(PARAM "starve_ms");
	struct region r[2];
	struct worker w;
	int i, turns;

	check(write_text(PARAM "starve_ms", "1000000"));
	contest(&w, r);

	use(w.fd, &r[0], 50 * ms);
	for (i = 0; i < 1000; i++)
		set_weight(&r[1], 0);
	turns = turns_until(w.fd, &r[0], &r[1], ms);
	printf("# set to what it was: %d turns\n", turns);
	check(turns >= 49 && turns <= 51);

	turns_until(w.fd, &r[1], &r[0], ms);
	use(w.fd, &r[0], 50 * ms);
	for (i = 0; i < 1000; i++) {
		set_weight(&r[1], 1);
		set_weight(&r[1], 10000);
		set_weight(&r[1], 100);
	}
	turns = turns_until(w.fd, &r[0], &r[1], ms);
	printf("# weight to and fro: %d turns\n", turns);
	check(turns >= 48 && turns <= 52);
	write_numbers(PARAM "starve_ms", starve_ms);
}

/* To @away and back, as often as it takes to be noticed. */
static void away_and_back(const struct region *r, unsigned int home,
			  unsigned int away)
{
	int i;

	for (i = 0; i < 100; i++) {
		set_class(r, away, 0);
		set_class(r, away, 1 + i);
		set_class(r, away, 100);
		set_class(r, home, 0);
	}
}

/* The next turn must be @r's. */
static void turn_of(int fd, const struct region *r)
{
	expect_event(fd, AIRUNNER_EV_READY, r->id);
}

/*
 * Nobody else is in class @away: a channel that has used more than its share
 * at @home does not find that forgiven when it comes back.
 */
static void leave_debt(unsigned int home, unsigned int away)
{
	const uint64_t ms = 1000000;
	struct region r[2];
	struct worker w;
	int i, turns, fd = device_open();

	attach(&w);
	for (i = 0; i < 2; i++)
		channel_with(fd, &r[i], home, 0, 0, 0);
	introduce(w.fd, 2);
	ring(&r[0]);
	ring(&r[1]);

	use(w.fd, &r[0], 50 * ms);
	away_and_back(&r[0], home, away);
	turns = turns_until(w.fd, &r[0], &r[1], ms);
	printf("# from %u to %u and back, ready: %d turns\n", home, away,
	       turns);
	check(turns >= 48 && turns <= 52);

	/* While it is served: before the report, and over it. */
	turns_until(w.fd, &r[1], &r[0], ms);
	turns_until(w.fd, &r[0], &r[1], ms);
	turn_of(w.fd, &r[0]);
	away_and_back(&r[0], home, away);
	report(w.fd, r[0].id, AIRUNNER_REPORT_MORE, 50 * ms);
	turns = turns_until(w.fd, &r[0], &r[1], ms);
	printf("# served: %d turns\n", turns);
	check(turns >= 48 && turns <= 52);

	turns_until(w.fd, &r[1], &r[0], ms);
	turns_until(w.fd, &r[0], &r[1], ms);
	turn_of(w.fd, &r[0]);
	set_class(&r[0], away, 0);
	report(w.fd, r[0].id, AIRUNNER_REPORT_MORE, 50 * ms);
	set_class(&r[0], home, 0);
	turns = turns_until(w.fd, &r[0], &r[1], ms);
	printf("# charged elsewhere: %d turns\n", turns);
	check(turns >= 48 && turns <= 52);

	/* And while it is idle. */
	turns_until(w.fd, &r[1], &r[0], ms);
	turns_until(w.fd, &r[0], &r[1], ms);
	turn_of(w.fd, &r[0]);
	set_class(&r[0], away, 0);
	report(w.fd, r[0].id, AIRUNNER_REPORT_IDLE, 50 * ms);
	away_and_back(&r[0], home, away);
	ring(&r[0]);
	turns = turns_until(w.fd, &r[0], &r[1], ms);
	printf("# idle: %d turns\n", turns);
	check(turns >= 48 && turns <= 52);
	close(fd);
	close(w.fd);
}

static void class_to_and_fro(void)
{
	long starve_ms = read_number(PARAM "starve_ms");

	check(write_text(PARAM "starve_ms", "1000000"));
	leave_debt(AIRUNNER_PRIO_NORMAL, AIRUNNER_PRIO_IDLE);
	leave_debt(AIRUNNER_PRIO_IDLE, AIRUNNER_PRIO_NORMAL);
	write_numbers(PARAM "starve_ms", starve_ms);
}

/*
 * What it used in one class is not held against it in another, where others
 * would have had nothing of what it did not use.
 */
static void class_is_no_debt(void)
{
	const uint64_t ms = 1000000;
	struct region r[2];
	struct worker w;
	int i, turns, fd = device_open();

	attach(&w);
	channel_with(fd, &r[0], AIRUNNER_PRIO_IDLE, 0, 0, 0);
	channel_with(fd, &r[1], AIRUNNER_PRIO_NORMAL, 0, 0, 0);
	introduce(w.fd, 2);
	ring(&r[0]);
	for (i = 0; i < 10; i++)
		use(w.fd, &r[0], 1000 * SECOND);
	ring(&r[1]);
	set_class(&r[0], AIRUNNER_PRIO_NORMAL, 0);
	turns = turns_until(w.fd, &r[0], &r[1], ms);
	check(turns <= 2);
}

/* At the least weight, too, a long turn is owed in full. */
static void long_debt(void)
{
	long starve_ms = read_number(PARAM "starve_ms");
	const int64_t turn = 1000 * SECOND;
	struct region r[2];
	struct worker w;
	int i, turns;

	check(write_text(PARAM "starve_ms", "1000000"));
	contest(&w, r);
	set_weight(&r[0], 1);
	/* Ten thousand seconds, which count a hundredfold. */
	for (i = 0; i < 10; i++)
		report(w.fd, r[0].id, 0, turn);
	set_weight(&r[0], 100);
	turns = turns_until(w.fd, &r[0], &r[1], turn);
	printf("# owed %d turns of 1000 s\n", turns);
	check(turns >= 9 && turns <= 11);
	write_numbers(PARAM "starve_ms", starve_ms);
}

static void ring_watch(const struct region *r)
{
	struct airunner_doorbell bell = {
		.size = sizeof(bell), .flags = AIRUNNER_BELL_WATCH,
		.channel_id = r->id,
	};

	check(!ioctl(r->fd, AIRUNNER_IOC_DOORBELL, &bell));
}

/*
 * Clients ask to be watched as fast as that is told, after each event and with
 * @room for so many at a time: others get their turns.
 */
static void watch_flood(uint32_t room)
{
	struct airunner_event event[8];
	struct region r[5];
	struct worker w;
	int i, j, n, round, told, fd = device_open();

	attach(&w);
	for (i = 0; i < 5; i++)
		channel_with(fd, &r[i], AIRUNNER_PRIO_NORMAL, 0, 0, 0);
	introduce(w.fd, 5);
	/* They have turns, which do not end: only their bells count. */
	for (i = 0; i < 4; i++) {
		ring(&r[i]);
		turn_of(w.fd, &r[i]);
	}
	for (i = 0; i < 4; i++)
		ring_watch(&r[i]);
	for (round = 0; round < 20; round++) {
		bool served = false;

		ring(&r[4]);
		for (told = 0; !served; told += n) {
			check(told <= 4 + 8);
			n = worker_wait(w.fd, NULL, 0, event, room,
					30 * SECOND);
			check(n > 0);
			for (i = 0; i < n; i++) {
				if (event[i].type == AIRUNNER_EV_READY) {
					check_eq(event[i].channel_id, r[4].id);
					served = true;
				} else {
					check_eq(event[i].type,
						 AIRUNNER_EV_WATCH);
				}
			}
			for (j = 0; j < 4; j++)
				ring_watch(&r[j]);
		}
		report(w.fd, r[4].id, AIRUNNER_REPORT_IDLE, 0);
	}
	/* Nor is anything lost that is told. */
	for (i = 0; i < 4; i++)
		expect_event(w.fd, AIRUNNER_EV_WATCH, 0);
	expect_no_event(w.fd);
	close(fd);
	close(w.fd);
}

static atomic_int flood_ends;

static void *flood_bells(void *arg)
{
	const struct region *r = arg;
	int i;

	while (!atomic_load(&flood_ends)) {
		for (i = 0; i < 4; i++)
			ring_watch(&r[i]);
	}
	return NULL;
}

/* The same from threads, while a WAIT with more room than that is filled. */
static void watch_flood_threads(void)
{
	static struct airunner_event event[4096];
	struct region r[5];
	pthread_t thread[2];
	struct worker w;
	int i, n, fd = device_open();
	bool served = false;

	attach(&w);
	for (i = 0; i < 5; i++)
		channel_with(fd, &r[i], AIRUNNER_PRIO_NORMAL, 0, 0, 0);
	introduce(w.fd, 5);
	for (i = 0; i < 4; i++) {
		ring(&r[i]);
		turn_of(w.fd, &r[i]);
	}
	for (i = 0; i < 2; i++)
		check(!pthread_create(&thread[i], NULL, flood_bells, r));
	ring(&r[4]);
	n = worker_wait(w.fd, NULL, 0, event, 4096, 30 * SECOND);
	check(n > 0);
	for (i = 0; i < n && i <= 8; i++)
		served |= event[i].type == AIRUNNER_EV_READY;
	check(served);
	atomic_store(&flood_ends, 1);
	for (i = 0; i < 2; i++)
		check(!pthread_join(thread[i], NULL));
}

static void watch_does_not_starve(void)
{
	watch_flood(1);
	watch_flood(3);
	watch_flood(8);
	watch_flood_threads();
}

/* ------------------------------------------------------- several workers */

/*
 * What somebody's own worker reports of their own channels is nobody's
 * business, and does not follow a channel to a worker that others use.
 */
static void own_worker_lead(void)
{
	static struct airunner_report reports[1000];
	long starve_ms = read_number(PARAM "starve_ms");
	struct region mine, other, victim;
	struct worker own, w;
	int i, turns, fd = device_open();

	check(write_text(PARAM "starve_ms", "1000000"));
	check(!attach_with(&own, device_open(), AIRUNNER_CAP_CPU,
			   AIRUNNER_WORKER_OWN));
	channel_with(fd, &mine, AIRUNNER_PRIO_NORMAL, 1, 0, 0);
	channel_with(fd, &other, AIRUNNER_PRIO_NORMAL, 0, 0, own.id);
	introduce(own.fd, 2);
	ring(&mine);
	ring(&other);
	expect_event(own.fd, AIRUNNER_EV_READY, mine.id);
	expect_event(own.fd, AIRUNNER_EV_READY, other.id);
	/* A thousand times 18 minutes, at a weight of one. */
	for (i = 0; i < 1000; i++) {
		reports[i].channel_id = mine.id;
		reports[i].device_ns = UINT64_MAX;
	}
	check_eq(worker_wait(own.fd, reports, 1000, NULL, 0, 0), 0);

	attach(&w);
	channel_with(fd, &victim, AIRUNNER_PRIO_NORMAL, 0, 0, w.id);
	introduce(w.fd, 1);
	ring(&victim);
	check(!close(own.fd));
	/* It comes with a turn asked for: work may have come meanwhile. */
	expect_event(w.fd, AIRUNNER_EV_CHANNEL_NEW, mine.id);
	turns = turns_until(w.fd, &mine, &victim, SECOND / 10);
	printf("# ahead by %d turns of 100 ms\n", turns);
	check(turns > 30 && turns <= 44);
	write_numbers(PARAM "starve_ms", starve_ms);
}


static int count_new(int fd)
{
	struct airunner_event event;
	int n = 0;

	while (worker_wait(fd, NULL, 0, &event, 1, 0) == 1) {
		check_eq(event.type, AIRUNNER_EV_CHANNEL_NEW);
		n++;
	}
	return n;
}

static void balanced(void)
{
	struct worker w[3];
	struct region r[9], heavy;
	int i, fd = device_open();

	for (i = 0; i < 3; i++)
		attach(&w[i]);
	for (i = 0; i < 9; i++)
		channel_with(fd, &r[i], AIRUNNER_PRIO_NORMAL, 0, 0, 0);
	for (i = 0; i < 3; i++)
		check_eq(count_new(w[i].fd), 3);
	/* By weight, not by number. */
	channel_with(fd, &heavy, AIRUNNER_PRIO_NORMAL, 1000, 0, 0);
	for (i = 0; i < 3; i++)
		count_new(w[i].fd);
	for (i = 0; i < 6; i++) {
		check(!destroy(&r[i]));
		channel_with(fd, &r[i], AIRUNNER_PRIO_NORMAL, 0, 0, 0);
	}
	for (i = 0; i < 3; i++) {
		struct airunner_event event;
		int news = 0;

		while (worker_wait(w[i].fd, NULL, 0, &event, 1, 0) == 1)
			news += event.type == AIRUNNER_EV_CHANNEL_NEW;
		/* The one that has the heavy one gets nothing. */
		check(news == 0 || news == 3);
	}
}

/* A worker that comes later is given what has not been used yet. */
static void late_worker(void)
{
	struct airunner_event event;
	struct worker w, w2;
	struct region r[6];
	int i, asked = 0, fd = device_open();

	attach(&w);
	for (i = 0; i < 6; i++)
		channel_with(fd, &r[i], AIRUNNER_PRIO_NORMAL, 0, 0, 0);
	/* Two have been told of, one of those has been used. */
	expect_event(w.fd, AIRUNNER_EV_CHANNEL_NEW, r[0].id);
	expect_event(w.fd, AIRUNNER_EV_CHANNEL_NEW, r[1].id);
	ring(&r[0]);
	attach(&w2);
	check_eq(count_new(w2.fd), 2);
	/* The third has to be asked back. */
	while (worker_wait(w.fd, NULL, 0, &event, 1, 0) == 1) {
		if (event.type == AIRUNNER_EV_CHANNEL_GONE) {
			check_eq(event.channel_id, r[1].id);
			asked++;
			/* It is rung meanwhile: that is not lost. */
			ring(&r[1]);
			check(!detach(w.fd, r[1].id));
		}
	}
	check_eq(asked, 1);
	expect_event(w2.fd, AIRUNNER_EV_CHANNEL_NEW, r[1].id);
	expect_event(w2.fd, AIRUNNER_EV_READY, r[1].id);
}

static void capabilities(void)
{
	struct worker cpu, gpu;
	struct region r[3];
	uint64_t both = AIRUNNER_CAP_CPU | AIRUNNER_CAP_CUDA;
	int fd = device_open();

	check(!attach_with(&cpu, device_open(), AIRUNNER_CAP_CPU, 0));
	channel_with(fd, &r[0], AIRUNNER_PRIO_NORMAL, 0, AIRUNNER_CAP_CUDA, 0);
	channel_with(fd, &r[1], AIRUNNER_PRIO_NORMAL, 0, AIRUNNER_CAP_CPU, 0);
	expect_event(cpu.fd, AIRUNNER_EV_CHANNEL_NEW, r[1].id);
	expect_no_event(cpu.fd);
	check(!attach_with(&gpu, device_open(), both, 0));
	expect_event(gpu.fd, AIRUNNER_EV_CHANNEL_NEW, r[0].id);
	expect_no_event(gpu.fd);
	{
		struct airunner_info info = { .size = sizeof(info) };

		check(!ioctl(fd, AIRUNNER_IOC_GET_INFO, &info));
		check_eq(info.workers, 2);
		check_eq(info.worker_caps, both);
	}
	/* Its only worker dies: it waits for one that fits. */
	close(gpu.fd);
	expect_no_event(cpu.fd);
	check(!attach_with(&gpu, device_open(), both, 0));
	expect_event(gpu.fd, AIRUNNER_EV_CHANNEL_NEW, r[0].id);
}

static void pinned_to_worker(void)
{
	struct worker w[2];
	struct region r[4], later;
	int i, fd = device_open();

	attach(&w[0]);
	attach(&w[1]);
	for (i = 0; i < 4; i++) {
		channel_with(fd, &r[i], AIRUNNER_PRIO_NORMAL, 0, 0, w[1].id);
		expect_event(w[1].fd, AIRUNNER_EV_CHANNEL_NEW, r[i].id);
	}
	expect_no_event(w[0].fd);
	/* One that is not there (yet). */
	channel_with(fd, &later, AIRUNNER_PRIO_NORMAL, 0, 0, w[1].id + 1);
	expect_no_event(w[0].fd);
	expect_no_event(w[1].fd);
	close(w[0].fd);
	attach(&w[0]);
	check_eq(w[0].id, w[1].id + 1);
	expect_event(w[0].fd, AIRUNNER_EV_CHANNEL_NEW, later.id);
}

/* ------------------------------------------------------- who may what */

static void as_alice(void *arg)
{
	struct airunner_set_priority prio = { .size = sizeof(prio) };
	struct airunner_info info = { .size = sizeof(info) };
	struct airunner_build_channel build_channel;
	struct region r, heavy;
	struct worker w;
	int fd;

	become(ALICE);
	fd = device_open();
	region_make(&r, 2, 4096);
	build_channel = build_arg(&r);
	build_channel.priority = AIRUNNER_PRIO_HIGH;
	check_errno(build_with(fd, &r, &build_channel), EPERM);
	build_channel.priority = AIRUNNER_PRIO_NORMAL;
	check(!build_with(fd, &r, &build_channel));
	prio.channel_id = r.id;
	prio.priority = AIRUNNER_PRIO_REALTIME;
	check_errno(ioctl(fd, AIRUNNER_IOC_SET_PRIORITY, &prio), EPERM);
	prio.priority = AIRUNNER_PRIO_IDLE;
	check(!ioctl(fd, AIRUNNER_IOC_SET_PRIORITY, &prio));
	/* Less of a share than others is hers to choose, more is not. */
	prio.weight = AIRUNNER_WEIGHT_DEFAULT + 1;
	check_errno(ioctl(fd, AIRUNNER_IOC_SET_PRIORITY, &prio), EPERM);
	prio.weight = 1;
	check(!ioctl(fd, AIRUNNER_IOC_SET_PRIORITY, &prio));
	prio.weight = AIRUNNER_WEIGHT_DEFAULT;
	check(!ioctl(fd, AIRUNNER_IOC_SET_PRIORITY, &prio));
	region_make(&heavy, 2, 4096);
	build_channel = build_arg(&heavy);
	build_channel.weight = AIRUNNER_WEIGHT_DEFAULT + 1;
	check_errno(build_with(fd, &heavy, &build_channel), EPERM);
	/* Root's own worker, which is there, does nothing for her. */
	check(!ioctl(fd, AIRUNNER_IOC_GET_INFO, &info));
	check_eq(info.workers, 0);
	check_eq(info.worker_caps, 0);

	/* A worker sees its channels' memory: not anybody may be one. */
	check_errno(attach_with(&w, device_open(), 0, 0), EPERM);
	check(!attach_with(&w, device_open(), 0, AIRUNNER_WORKER_OWN));
	expect_event(w.fd, AIRUNNER_EV_CHANNEL_NEW, r.id);
	expect_no_event(w.fd);
	check(!ioctl(fd, AIRUNNER_IOC_GET_INFO, &info));
	check_eq(info.workers, 1);
	check_eq(info.worker_caps, 0);
}

static void permissions(void)
{
	struct region r;
	struct worker w, own;
	pid_t pid;

	/* Somebody else's channel is not for alice's worker. */
	channel_with(device_open(), &r, AIRUNNER_PRIO_NORMAL, 0, 1ULL << 63,
		     0);
	check(!attach_with(&own, device_open(), AIRUNNER_CAP_CPU,
			   AIRUNNER_WORKER_OWN));
	pid = spawn(as_alice, NULL);
	check_eq(reap(pid), 0);
	check(!attach_with(&w, device_open(), 1ULL << 63, 0));
	expect_event(w.fd, AIRUNNER_EV_CHANNEL_NEW, r.id);
}

static void as_group_member(void *arg)
{
	struct worker w;

	become(BOB);
	check(!attach_with(&w, device_open(), 0, 0));
}

static void as_stranger(void *arg)
{
	check(!setgroups(0, NULL));
	check(!setresgid(1002, 1002, 1002));
	check(!setresuid(1002, 1002, 1002));
	check_errno(open(AIRUNNER_DEVICE, O_RDWR), EACCES);
}

static void worker_group(void)
{
	char group[16];

	snprintf(group, sizeof(group), "%d", GROUP_AIRUNNER);
	check(write_text(PARAM "worker_gid", group));
	check_eq(reap(spawn(as_group_member, NULL)), 0);
	check(write_text(PARAM "worker_gid", "4294967295"));
	check_eq(reap(spawn(as_stranger, NULL)), 0);
}

/* Root of a user namespace is nobody to us. */
static void in_user_namespace(void *arg)
{
	struct airunner_build_channel build_channel;
	struct region r;
	struct worker w;
	int fd = device_open(), fd2 = device_open();

	limit_memlock(17 * 4096);
	if (unshare(CLONE_NEWUSER))
		_exit(77);
	check_errno(attach_with(&w, fd2, 0, 0), EPERM);
	region_make(&r, 4, REGION_SIZE + 4096);
	build_channel = build_arg(&r);
	build_channel.priority = AIRUNNER_PRIO_REALTIME;
	check_errno(build_with(fd, &r, &build_channel), EPERM);
	build_channel.priority = AIRUNNER_PRIO_NORMAL;
	check_errno(build_with(fd, &r, &build_channel), ENOMEM);
	build_channel.region_size = REGION_SIZE;
	check(!build_with(fd, &r, &build_channel));
	check_errno(channel_call(fd, AIRUNNER_IOC_RESET_CHANNEL, r.id), EPERM);
}

static void user_namespace(void)
{
	int status = reap(spawn(in_user_namespace, NULL));

	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip("no user namespaces here");
	check_eq(status, 0);
}

static void building_child(void *arg)
{
	struct region r;

	/* In its own namespace it is the first. */
	check_eq(getpid(), 1);
	channel_make(device_open(), &r);
	atomic_store((atomic_int *)arg, 1);
	for (;;)
		pause();
}

/* A worker is told who built a channel as it would call that process. */
static void pid_namespace(void)
{
	atomic_int *built = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct airunner_event event;
	struct worker w;
	pid_t pid;

	attach(&w);
	if (unshare(CLONE_NEWPID))
		skip("no pid namespaces here");
	pid = spawn(building_child, built);
	eventually(atomic_load(built));
	event = expect_event(w.fd, AIRUNNER_EV_CHANNEL_NEW, 0);
	check_eq(event.owner_pid, pid);
	kill(pid, SIGKILL);
	reap(pid);
}

/* As many as one call may carry; of channels that are not there, too. */
static void many_reports(void)
{
	const uint32_t max = AIRUNNER_MAX_REPORTS;
	struct airunner_report *reports = calloc(max, sizeof(*reports));
	struct region r;
	struct worker w;
	uint32_t i;

	check(reports);
	attach(&w);
	channel_with(device_open(), &r, AIRUNNER_PRIO_NORMAL, 0, 0, 0);
	introduce(w.fd, 1);
	for (i = 0; i < max; i++)
		reports[i].channel_id = i == max - 1 ? r.id : r.id + 1;
	reports[max - 1].flags = AIRUNNER_REPORT_IDLE;
	ring(&r);
	expect_event(w.fd, AIRUNNER_EV_READY, r.id);
	check_errno(worker_wait(w.fd, reports, max + 1, NULL, 0, 0), EINVAL);
	/* None of them was applied: it still has its turn. */
	ring(&r);
	expect_no_event(w.fd);
	check_eq(worker_wait(w.fd, reports, max, NULL, 0, 0), 0);
	expect_event(w.fd, AIRUNNER_EV_READY, r.id);
	free(reports);
}

static void attach_refused(void)
{
	struct airunner_attach_worker arg = { .size = sizeof(arg) };
	int fd = device_open();

	arg.flags = 2;
	check_errno(ioctl(fd, AIRUNNER_IOC_ATTACH_WORKER, &arg), EINVAL);
	arg.flags = 0;
	arg.resv = 1;
	check_errno(ioctl(fd, AIRUNNER_IOC_ATTACH_WORKER, &arg), EINVAL);
	arg.resv = 0;
	memset(arg.name, 'x', sizeof(arg.name));
	check_errno(ioctl(fd, AIRUNNER_IOC_ATTACH_WORKER, &arg), EINVAL);
	check_eq(read_number(SYSFS "workers"), 0);
	{
		void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		memset(arg.name, 0, sizeof(arg.name));
		memcpy(page, &arg, sizeof(arg));
		check(!mprotect(page, 4096, PROT_READ));
		check_errno(ioctl(fd, AIRUNNER_IOC_ATTACH_WORKER, page),
			    EFAULT);
	}
	check_eq(read_number(SYSFS "workers"), 0);
}

static const struct test_case cases[] = {
	{ "strict_classes", strict_classes },
	{ "better_class_overtakes", better_class_overtakes },
	{ "weights_shares", weights_shares },
	{ "no_saving_up", no_saving_up },
	{ "newcomer", newcomer },
	{ "starvation_bound", starvation_bound },
	{ "withheld_is_rescued", withheld_is_rescued },
	{ "change_priority", change_priority },
	{ "weight_to_and_fro", weight_to_and_fro },
	{ "owed_stays", owed_stays },
	{ "class_to_and_fro", class_to_and_fro },
	{ "class_is_no_debt", class_is_no_debt },
	{ "long_debt", long_debt },
	{ "watch_does_not_starve", watch_does_not_starve },
	{ "own_worker_lead", own_worker_lead },
	{ "balanced", balanced },
	{ "late_worker", late_worker },
	{ "capabilities", capabilities },
	{ "pinned_to_worker", pinned_to_worker },
	{ "permissions", permissions },
	{ "worker_group", worker_group },
	{ "user_namespace", user_namespace },
	{ "pid_namespace", pid_namespace },
	{ "many_reports", many_reports },
	{ "attach_refused", attach_refused },
};

int main(int argc, char **argv)
{
	return RUN_CASES(cases, argc, argv);
}
