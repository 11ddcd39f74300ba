// SPDX-License-Identifier: MIT
/*
 * A client that scribbles over its own region while the worker serves it:
 * control words, submissions, completions, descriptors in transit; with noise,
 * and with what looks almost right. The worker must go on serving others, end
 * up with as many open files as before, and not be kept busy by what the
 * scribbler left behind. Runs against a real airunnerd: a crash is a crash.
 *
 *	scribble_stress [SECONDS]
 */
#include <pthread.h>

#include "libairunner/channel.h"
#include "tests/stress/daemon.h"

struct shared {
	uint32_t stop;
	uint64_t right;
	uint64_t rounds;
	char why[160];
};

static struct shared *sh;

static bool stopping(void)
{
	return __atomic_load_n(&sh->stop, __ATOMIC_RELAXED);
}

/* Another client, whose every result must be right. */
static int bystander(void)
{
	uint64_t seed = now_ns();
	air_device *dev = reach();
	struct adder x;

	if (!dev || adder_open(&x, dev) != AIR_OK) {
		snprintf(sh->why, sizeof(sh->why), "bystander: %s",
			 air_last_error());
		return 1;
	}
	while (!stopping()) {
		air_status st;
		air_token token;

		adder_fill(&x, 0, &seed);
		st = air_submit(x.ch, x.call, 1, &token);
		if (st == AIR_OK)
			st = air_wait(x.ch, token, PATIENCE_NS, NULL);
		if (st != AIR_OK || !adder_right(&x, 0)) {
			snprintf(sh->why, sizeof(sh->why),
				 "bystander: %d: %s", st,
				 st ? air_last_error() : "wrong result");
			return 1;
		}
		__atomic_fetch_add(&sh->right, 1, __ATOMIC_RELAXED);
	}
	return 0;
}

/* ---------------------------------------------------------- the scribbler */

struct scribbler {
	struct air_ring ring;
	uint64_t *region;
	size_t words;
	uint32_t stop;
};

static uint64_t plausible(const struct air_ring *r, uint64_t *seed)
{
	uint64_t tail = air_load(&r->ctrl->sq_tail, RELAXED);
	uint8_t lap = (uint8_t)(airunner_lap(tail, r->order) +
				draw(seed) % 4 - 1);

	/* small numbers reach deeper: opcodes, handles, short offsets */
	return airunner_word(draw(seed) >> draw(seed) % 64, lap);
}

/*
 * Half of the scribblers are gentle: rarely, and in payloads alone, so that the
 * ring still makes sense and the worker gets to what the payloads mean.
 */
static void *scribble(void *arg)
{
	struct scribbler *s = arg;
	uint64_t seed = now_ns();
	bool gentle = draw(&seed) % 2;
	size_t sq = AIRUNNER_SQ_OFFSET / 8;
	size_t cq = airunner_cq_offset(s->ring.order) / 8;
	size_t arena = airunner_arena_offset(s->ring.order) / 8;

	while (!__atomic_load_n(&s->stop, __ATOMIC_RELAXED)) {
		uint64_t what = draw(&seed), where = draw(&seed);
		uint64_t *at;

		if (gentle) {
			at = &s->region[sq + where % (s->words - sq)];
			air_store(at,
				  airunner_word(what >> where % 64,
						airunner_word_lap(air_load(
							at, RELAXED))),
				  RELAXED);
			rest_us((unsigned int)(what % 8));
			continue;
		}
		switch (what % 8) {
		case 0: /* control words, the flags among them */
			at = &s->region[where % sq];
			break;
		case 1:
			at = &s->region[cq + where % (arena - cq)];
			break;
		case 2: /* descriptors in transit */
			at = &s->region[arena + where % (s->words - arena)];
			break;
		case 3:
			at = &s->region[where % s->words];
			break;
		default:
			at = &s->region[sq + where % (cq - sq)];
		}
		air_store(at,
			  what & 8 ? draw(&seed) : plausible(&s->ring, &seed),
			  RELAXED);
		/* now and then let the worker get somewhere */
		if (what >> 56 == 0)
			rest_us(50);
	}
	return NULL;
}

/*
 * Keeps submitting while a second thread scribbles. What it is told does not
 * matter; that it may be stuck or die of it does not either.
 */
static void victim_of_itself(void)
{
	uint64_t end = now_ns() + 60000000;
	air_device *dev = reach();
	struct scribbler s = { 0 };
	struct adder x;
	pthread_t thread;

	if (!dev || adder_open(&x, dev) != AIR_OK)
		return;
	s.ring = x.ch->ring;
	s.region = (uint64_t *)x.ch->ring.ctrl;
	s.words = x.ch->region.size / 8;
	if (pthread_create(&thread, NULL, scribble, &s))
		return;
	while (now_ns() < end) {
		air_token token;

		if (air_submit(x.ch, x.call, 8, &token) == AIR_OK)
			air_wait(x.ch, token, 1000000, NULL);
		else
			rest_us(100);
		/* the bell at any rate, whatever the flags say now */
		x.ch->ops->doorbell(x.ch, draw(&end) % 2);
	}
}

static bool report(bool ok, const char *why)
{
	printf("%s scribble_stress: %llu scribblers beside a client with %llu right results%s%s\n",
	       ok ? "ok" : "not ok", (unsigned long long)sh->rounds,
	       (unsigned long long)sh->right, ok ? "" : ": ",
	       ok ? "" : sh->why[0] ? sh->why : why);
	return ok;
}

static bool run(const char *program, double seconds)
{
	pid_t daemon = daemon_start(program), other = spawn();
	uint64_t end;
	unsigned long ticks;
	unsigned int fds;
	int status;

	if (other == 0)
		_exit(bystander());
	while (!__atomic_load_n(&sh->right, __ATOMIC_RELAXED) && !sh->why[0])
		rest_us(1000);
	fds = daemon_fds(daemon);
	end = now_ns() + (uint64_t)(seconds * 1e9);
	while (now_ns() < end && !sh->why[0]) {
		pid_t pid = spawn();

		if (pid == 0) {
			victim_of_itself();
			_exit(0);
		}
		rest_us(100000);
		kill(pid, SIGKILL);
		reap(pid);
		sh->rounds++;
		if (waitpid(daemon, &status, WNOHANG) == daemon) {
			snprintf(sh->why, sizeof(sh->why),
				 "the daemon ended with %#x", status);
			return report(false, NULL);
		}
	}
	if (!daemon_lets_go(daemon, fds))
		return report(false, "the daemon keeps files open");
	__atomic_store_n(&sh->stop, 1, __ATOMIC_SEQ_CST);
	if (reap(other) != 0)
		return report(false, "the bystander crashed");
	rest_us(100000);
	ticks = daemon_ticks(daemon);
	rest_us(1000000);
	ticks = daemon_ticks(daemon) - ticks;
	kill(daemon, SIGTERM);
	if (reap(daemon) != 0)
		return report(false, "the daemon did not end well");
	if (ticks > 20) {
		snprintf(sh->why, sizeof(sh->why),
			 "the daemon used %lu0 ms of a second with no client",
			 ticks);
		return report(false, NULL);
	}
	return report(true, NULL);
}

int main(int argc, char **argv)
{
	const char *program = daemon_program(argv[0]);
	double seconds = argc > 1 ? atof(argv[1]) : 3.0;
	bool ok;

	alarm((unsigned int)(seconds * 2 + 120));
	if (access(program, X_OK)) {
		printf("skip scribble_stress: no %s\n", program);
		return 77;
	}
	snprintf(socket_where, sizeof(socket_where), "unix:/tmp/air-scribble-%d",
		 getpid());
	sh = mmap(NULL, sizeof(*sh), PROT_READ | PROT_WRITE,
		  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (sh == MAP_FAILED)
		return 1;
	ok = run(program, seconds);
	unlink(socket_where + strlen("unix:"));
	return ok ? 0 : 1;
}
