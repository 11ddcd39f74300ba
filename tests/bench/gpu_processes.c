// SPDX-License-Identifier: MIT
/*
 * Several processes at once, each one vector_add(1024) after the other: clients
 * of one airunnerd against as many processes that launch and synchronize
 * themselves. The figure is the time of one operation of all together: what
 * counts is how many a second the machine does.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <airunner.h>
#include <airunner/ops/copy.h>
#include <airunner/ops/vector_add.h>

#include "tests/bench/gpu.h"
#include "tests/bench/session.h"

#define MAX_PROCESSES 4
#define ROUND_MS 40
#define N 1024

/* What parent and children share. */
struct team {
	uint32_t go, quit;
	uint32_t ready, idle;
	uint64_t count[MAX_PROCESSES];
};

struct side {
	struct team *team;
	unsigned int processes;
	pid_t pid[MAX_PROCESSES];
};

static char where[64];

static void rest_us(long us)
{
	struct timespec ts = { .tv_nsec = us * 1000 };

	nanosleep(&ts, NULL);
}

/* --------------------------------------------------------------- a child */

static void work(struct team *t, unsigned int me, void (*once)(void *arg),
		 void *arg)
{
	for (int i = 0; i < 20; i++)
		once(arg);
	__atomic_fetch_add(&t->ready, 1, __ATOMIC_SEQ_CST);
	while (!__atomic_load_n(&t->quit, __ATOMIC_ACQUIRE)) {
		if (!__atomic_load_n(&t->go, __ATOMIC_ACQUIRE)) {
			rest_us(50);
			continue;
		}
		while (__atomic_load_n(&t->go, __ATOMIC_ACQUIRE)) {
			once(arg);
			t->count[me]++;
		}
		__atomic_fetch_add(&t->idle, 1, __ATOMIC_SEQ_CST);
	}
}

static void check(const float *y)
{
	for (int i = 0; i < N; i++)
		if (y[i] != (float)(i % 1000) + 1)
			bench_fail("processes: element %d is %g", i,
				   (double)y[i]);
}

static void launch_once(void *arg)
{
	direct_launch(arg);
	direct_sync();
}

static void direct_child(struct team *t, unsigned int me)
{
	struct direct_op op = { .kind = DIRECT_VECTOR_ADD, .n = N };
	float y[N];
	char why[128];

	if (!direct_init(why, sizeof(why)))
		bench_fail("%s", why);
	op.y = direct_alloc(N * 4);
	op.a = direct_alloc(N * 4);
	op.b = direct_alloc(N * 4);
	direct_fill(op.a, N, 0, 1, 1000);
	direct_fill(op.b, N, 1, 0, 1);
	direct_poison(op.y, N * 4);
	work(t, me, launch_once, &op);
	direct_copy_out(y, op.y, sizeof(y));
	check(y);
}

struct client {
	air_channel *ch;
	struct air_call call;
};

static void ring_once(void *arg)
{
	struct client *c = arg;

	session_call(c->ch, &c->call);
}

static void copy_tensor(air_channel *ch, air_ref to, air_ref from)
{
	int64_t shape = N;
	struct air_call call;
	air_descriptor *d;
	air_tensor_desc t;

	air_tensor_desc_init(&t, AIR_F32, 1, &shape, NULL);
	bench_check(air_create_copy_descriptor(ch, &d, &t, &t), "copy");
	bench_check(air_prepare_copy(d, &call, AIR_NO_REF, to, from), "copy");
	session_call(ch, &call);
	air_destroy_copy_descriptor(d);
}

static void ring_child(struct team *t, unsigned int me, air_executor executor)
{
	struct air_channel_options o = { .size = sizeof(o),
					 .executor = executor };
	air_buffer *device[3], *host[3];
	struct client c;
	int64_t shape = N;
	air_descriptor *d;
	air_tensor_desc desc;
	air_device *dev;
	air_ref ref[3];
	float *data[3];

	bench_check(air_open(where, NULL, &dev), "air_open");
	bench_check(air_channel_create(dev, &o, &c.ch), "air_channel_create");
	for (int i = 0; i < 3; i++) {
		bench_check(air_buffer_alloc(c.ch, N * 4, AIR_DEVICE,
					     &device[i]),
			    "air_buffer_alloc");
		bench_check(air_buffer_alloc(c.ch, N * 4, AIR_HOST, &host[i]),
			    "air_buffer_alloc");
		ref[i] = air_buffer_ref(device[i], 0);
		data[i] = air_buffer_data(host[i]);
	}
	for (int i = 0; i < N; i++) {
		data[0][i] = -1;
		data[1][i] = (float)(i % 1000);
		data[2][i] = 1;
	}
	for (int i = 0; i < 3; i++)
		copy_tensor(c.ch, ref[i], air_buffer_ref(host[i], 0));
	air_tensor_desc_init(&desc, AIR_F32, 1, &shape, NULL);
	bench_check(air_create_vector_add_descriptor(c.ch, &d, &desc, &desc,
						     &desc),
		    "vector_add");
	bench_check(air_prepare_vector_add(d, &c.call, AIR_NO_REF, ref[0],
					   ref[1], ref[2]),
		    "vector_add");
	work(t, me, ring_once, &c);
	copy_tensor(c.ch, air_buffer_ref(host[0], 0), ref[0]);
	check(data[0]);
}

/* -------------------------------------------------------------- the parent */

static pid_t child(void)
{
	pid_t parent = getpid(), pid = fork();

	if (pid < 0)
		bench_fail("fork");
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		alarm(120);
	}
	return pid;
}

static void side_open(struct side *s, unsigned int processes,
		      air_executor executor)
{
	memset(s, 0, sizeof(*s));
	s->processes = processes;
	s->team = mmap(NULL, sizeof(*s->team), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (s->team == MAP_FAILED)
		bench_fail("no memory");
	for (unsigned int i = 0; i < processes; i++) {
		s->pid[i] = child();
		if (s->pid[i])
			continue;
		if (executor == AIR_EXEC_ANY)
			direct_child(s->team, i);
		else
			ring_child(s->team, i, executor);
		_exit(0);
	}
}

static bool all(const struct side *s, const uint32_t *word)
{
	uint64_t end = bench_now() + 60000000000ull;

	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) < s->processes) {
		if (bench_now() > end)
			return false;
		rest_us(20);
	}
	return true;
}

static bool side_close(struct side *s)
{
	bool ok = true;
	int status;

	__atomic_store_n(&s->team->quit, 1, __ATOMIC_RELEASE);
	for (unsigned int i = 0; i < s->processes; i++)
		ok &= waitpid(s->pid[i], &status, 0) == s->pid[i] && !status;
	munmap(s->team, sizeof(*s->team));
	return ok;
}

static double round_of(struct bench_row *row, void *ctx)
{
	struct side *s = ctx;
	struct team *t = s->team;
	uint64_t before = 0, after = 0, time;

	for (unsigned int i = 0; i < s->processes; i++)
		before += t->count[i];
	t->idle = 0;
	time = bench_now();
	__atomic_store_n(&t->go, 1, __ATOMIC_RELEASE);
	rest_us(ROUND_MS * 1000);
	__atomic_store_n(&t->go, 0, __ATOMIC_RELEASE);
	if (!all(s, &t->idle))
		bench_fail("processes: one does not come back");
	time = bench_now() - time;
	for (unsigned int i = 0; i < s->processes; i++)
		after += t->count[i];
	return (double)time / 1e3 / (double)(after - before);
}

static void row_of(struct bench *b, unsigned int processes,
		   const struct gpu_executor *x)
{
	static struct side ring, direct;
	const struct bench_contender c[] = {
		{ "ring", round_of, &ring },
		{ "launch_sync", round_of, &direct },
	};
	char name[64];

	snprintf(name, sizeof(name), "processes_%u_vector_add_1024_us_per_op",
		 processes);
	if (!bench_wants(b, name))
		return;
	side_open(&direct, processes, AIR_EXEC_ANY);
	side_open(&ring, processes, x->id);
	if (all(&direct, &direct.team->ready) && all(&ring, &ring.team->ready))
		bench_run(b,
			  &(struct bench_spec){ name, "us",
						"processes at once, together",
						9, 1 },
			  c, 2);
	else
		bench_absent(b, name, "a process did not get ready");
	if (!side_close(&ring) || !side_close(&direct))
		bench_fail("%s: a process failed", name);
}

static air_device *connect_daemon(void)
{
	uint64_t end = bench_now() + 60000000000ull;
	air_device *dev;

	while (air_open(where, NULL, &dev) != AIR_OK) {
		if (bench_now() > end)
			return NULL;
		rest_us(1000);
	}
	return dev;
}

void gpu_processes(struct bench *b, const char *daemon)
{
	air_device *dev;
	pid_t pid;
	int status;

	if (!bench_wants(b, "processes_1_vector_add_1024_us_per_op") &&
	    !bench_wants(b, "processes_2_vector_add_1024_us_per_op") &&
	    !bench_wants(b, "processes_4_vector_add_1024_us_per_op"))
		return;
	if (access(daemon, X_OK)) {
		bench_absent(b, "processes", "no airunnerd beside the program");
		return;
	}
	snprintf(where, sizeof(where), "unix:/tmp/air-bench-%d", getpid());
	pid = child();
	if (pid == 0) {
		execl(daemon, "airunnerd", "--listen", where + strlen("unix:"),
		      "--own", "--quiet", (char *)NULL);
		_exit(127);
	}
	dev = connect_daemon();
	if (!dev) {
		bench_absent(b, "processes", "airunnerd does not answer");
		goto out;
	}
	for (size_t i = 0; i < 2; i++) {
		struct air_backend_caps caps = { .size = sizeof(caps) };

		if (air_backend_caps(dev, gpu_executors[i].id, &caps) ||
		    !caps.present)
			continue;
		bench_group(b, gpu_executors[i].name);
		for (unsigned int n = 1; n <= MAX_PROCESSES; n *= 2)
			row_of(b, n, &gpu_executors[i]);
		bench_group(b, NULL);
	}
	air_close(dev);
out:
	kill(pid, SIGTERM);
	waitpid(pid, &status, 0);
}
