// SPDX-License-Identifier: MIT
/*
 * kill -9 at random moments under load, of the daemon and of clients.
 *
 *	kill_stress [SECONDS-EACH]
 *
 * The daemon is killed: clients go on with the next one; every submission that
 * was accepted is answered, with the right result or with what became of it.
 * A client is killed: another client of the same daemon notices nothing, and
 * the daemon ends up with as many open files as before.
 */
#include "tests/stress/daemon.h"

#define CLIENTS 2

struct counts {
	uint64_t accepted, right, died, refused;
	char why[160];
};

struct shared {
	uint32_t stop;
	struct counts client[CLIENTS];
};

static struct shared *sh;

static bool stopping(void)
{
	return __atomic_load_n(&sh->stop, __ATOMIC_RELAXED);
}

/* Whether the answer is one that @status may be when workers die. */
static bool is_about_worker(air_status status)
{
	return status == AIR_WORKER_DIED || status == AIR_NO_WORKER;
}

static bool collect(struct adder *x, unsigned int lane, bool kills,
		    struct counts *c)
{
	air_status st = air_wait(x->ch, x->token[lane], PATIENCE_NS, NULL);

	if (st == AIR_OK) {
		if (adder_right(x, lane)) {
			c->right++;
			return true;
		}
		snprintf(c->why, sizeof(c->why), "wrong result reported as AIR_OK");
		return false;
	}
	if (kills && st == AIR_WORKER_DIED) {
		c->died++;
		return true;
	}
	snprintf(c->why, sizeof(c->why), "token %llu: %d: %s",
		 (unsigned long long)x->token[lane], st, air_last_error());
	return false;
}

/* Random batches until told to stop; then everything is collected. */
static bool serve_client(struct adder *x, bool kills, struct counts *c)
{
	uint64_t seed = now_ns() ^ (uint64_t)getpid();
	uint64_t progress = now_ns();

	while (!stopping()) {
		unsigned int n = 1 + (unsigned int)(draw(&seed) % ADDER_LANES);
		air_token first;
		air_status st;

		for (unsigned int i = 0; i < n; i++)
			adder_fill(x, i, &seed);
		st = air_submit(x->ch, x->call, n, &first);
		if (st == AIR_OK) {
			c->accepted += n;
			progress = now_ns();
			for (unsigned int i = 0; i < n; i++)
				x->token[i] = first + i;
			for (unsigned int i = 0; i < n; i++)
				if (!collect(x, i, kills, c))
					return false;
			continue;
		}
		if (!kills || !is_about_worker(st)) {
			snprintf(c->why, sizeof(c->why), "submit: %d: %s", st,
				 air_last_error());
			return false;
		}
		c->refused++;
		if (now_ns() - progress > (uint64_t)PATIENCE_NS) {
			snprintf(c->why, sizeof(c->why),
				 "no worker for 30 s: %s", air_last_error());
			return false;
		}
		rest_us(200);
	}
	return true;
}

static int client(unsigned int me, bool kills)
{
	struct counts *c = &sh->client[me];
	air_device *dev = reach();
	struct adder x;
	air_status st;

	if (!dev)
		return 1;
	/* The worker may die here as well: then once more. */
	do {
		st = adder_open(&x, dev);
		if (st && !(kills && is_about_worker(st))) {
			snprintf(c->why, sizeof(c->why), "set-up: %d: %s", st,
				 air_last_error());
			return 1;
		}
	} while (st && !stopping());
	if (st)
		return 0;
	return serve_client(&x, kills, c) ? 0 : 1;
}

/* Killed before it gets to the end. */
static void victim(void)
{
	air_device *dev = reach();
	struct counts c = { 0 };
	struct adder x;

	if (dev && adder_open(&x, dev) == AIR_OK)
		serve_client(&x, false, &c);
}

static bool report(const char *what, bool ok, unsigned int kills,
		   const char *why)
{
	uint64_t accepted = 0, right = 0, died = 0;

	for (unsigned int i = 0; i < CLIENTS; i++) {
		const struct counts *c = &sh->client[i];

		accepted += c->accepted;
		right += c->right;
		died += c->died;
		if (!why && c->why[0])
			why = c->why;
	}
	if (ok && accepted != right + died) {
		ok = false;
		why = "answers are missing";
	}
	if (ok && !right) {
		ok = false;
		why = "nothing was computed";
	}
	printf("%s kill_stress: %s: %u kills; %llu accepted, %llu computed, %llu lost and said so%s%s\n",
	       ok ? "ok" : "not ok", what, kills, (unsigned long long)accepted,
	       (unsigned long long)right, (unsigned long long)died,
	       ok ? "" : ": ", ok ? "" : why ? why : "a client crashed");
	fflush(stdout);
	return ok;
}

/* SIGTERM, once it serves: before that it has no handler yet. */
static bool end_daemon(pid_t daemon)
{
	air_device *dev = reach();

	if (!dev)
		return false;
	air_close(dev);
	kill(daemon, SIGTERM);
	return reap(daemon) == 0;
}

static bool daemon_killed(const char *program, double seconds)
{
	uint64_t end = now_ns() + (uint64_t)(seconds * 1e9), seed = now_ns();
	pid_t daemon = daemon_start(program), clients[CLIENTS];
	const char *why = NULL;
	unsigned int kills = 0;
	bool ok = true;

	memset(sh, 0, sizeof(*sh));
	for (unsigned int i = 0; i < CLIENTS; i++) {
		clients[i] = spawn();
		if (clients[i] == 0)
			_exit(client(i, true));
	}
	while (now_ns() < end) {
		rest_us((unsigned int)(draw(&seed) % 60000));
		kill(daemon, SIGKILL);
		reap(daemon);
		kills++;
		rest_us((unsigned int)(draw(&seed) % 3000));
		daemon = daemon_start(program);
	}
	__atomic_store_n(&sh->stop, 1, __ATOMIC_SEQ_CST);
	for (unsigned int i = 0; i < CLIENTS; i++)
		ok &= reap(clients[i]) == 0;
	if (!end_daemon(daemon)) {
		ok = false;
		why = "the daemon does not end well";
	}
	return report("daemon", ok, kills, why);
}

static bool client_killed(const char *program, double seconds)
{
	uint64_t end, seed = now_ns();
	pid_t daemon = daemon_start(program), survivor;
	const char *why = NULL;
	unsigned int kills = 0, fds;
	bool ok;

	memset(sh, 0, sizeof(*sh));
	survivor = spawn();
	if (survivor == 0)
		_exit(client(0, false));
	while (!__atomic_load_n(&sh->client[0].right, __ATOMIC_RELAXED) &&
	       !sh->client[0].why[0])
		rest_us(1000);
	fds = daemon_fds(daemon);
	end = now_ns() + (uint64_t)(seconds * 1e9);
	while (now_ns() < end) {
		pid_t pid = spawn();

		if (pid == 0) {
			victim();
			_exit(0);
		}
		rest_us((unsigned int)(draw(&seed) % 20000));
		kill(pid, SIGKILL);
		reap(pid);
		kills++;
	}
	ok = daemon_lets_go(daemon, fds);
	if (!ok)
		why = "the daemon keeps files of dead clients open";
	__atomic_store_n(&sh->stop, 1, __ATOMIC_SEQ_CST);
	ok &= reap(survivor) == 0;
	if (!end_daemon(daemon)) {
		ok = false;
		why = "the daemon does not end well";
	}
	return report("clients", ok, kills, why);
}

int main(int argc, char **argv)
{
	const char *program = daemon_program(argv[0]);
	double seconds = argc > 1 ? atof(argv[1]) : 3.0;
	bool ok;

	alarm((unsigned int)(seconds * 4 + 180));
	if (access(program, X_OK)) {
		printf("skip kill_stress: no %s\n", program);
		return 77;
	}
	snprintf(socket_where, sizeof(socket_where), "unix:/tmp/air-kill-%d",
		 getpid());
	sh = mmap(NULL, sizeof(*sh), PROT_READ | PROT_WRITE,
		  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (sh == MAP_FAILED)
		return 1;
	ok = daemon_killed(program, seconds);
	ok &= client_killed(program, seconds);
	unlink(socket_where + strlen("unix:"));
	return ok ? 0 : 1;
}
