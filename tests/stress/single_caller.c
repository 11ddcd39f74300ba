// SPDX-License-Identifier: MIT
/*
 * A channel of a single caller (AIR_CHANNEL_SINGLE_CALLER), passed from thread
 * to thread at full speed; and what ThreadSanitizer says when two of them use
 * it at once.
 *
 *	single_caller [SECONDS]
 */
#include <pthread.h>
#include <sys/wait.h>

#include <airunner.h>

#include "tests/stress/stress.h"

#define THREADS 3
#define BATCH	16
#define RACE_RC 66

static air_device *dev;
static air_channel *ch;
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static uint64_t submitted, end;
static uint32_t broken;

static void check(air_status status, const char *what)
{
	if (status == AIR_OK)
		return;
	printf("not ok single_caller: %s: %s\n", what, air_last_error());
	fflush(stdout);
	_exit(1);
}

static void open_channel(void)
{
	struct air_device_options d = { .size = sizeof(d),
					.threads = 1,
					.spin_ns = 1000,
					.executors = "cpu" };
	struct air_channel_options o = { .size = sizeof(o),
					 .order = 5,
					 .flags = AIR_CHANNEL_SINGLE_CALLER };

	check(air_open("inproc:", &d, &dev), "air_open");
	check(air_channel_create(dev, &o, &ch), "air_channel_create");
}

static void close_channel(void)
{
	check(air_channel_destroy(ch), "air_channel_destroy");
	check(air_close(dev), "air_close");
}

/* ------------------------------------------------------------------- kept */

/* One by one or together, collected one by one or together. */
static void submit_and_collect(uint64_t *seed)
{
	struct air_completion c[BATCH];
	struct air_call calls[BATCH];
	uint32_t n = 1 + (uint32_t)(draw(seed) % BATCH), done = 0;
	bool together = draw(seed) % 2;
	air_token first;

	for (uint32_t i = 0; i < n; i++) {
		air_prepare_nop(&calls[i]);
		calls[i].user_data = submitted + i;
	}
	if (draw(seed) % 2)
		check(air_submit(ch, calls, n, &first), "air_submit");
	else
		for (uint32_t i = 0; i < n; i++)
			check(air_submit(ch, &calls[i], 1, i ? NULL : &first),
			      "air_submit");
	if (first != submitted + 1) {
		printf("not ok single_caller: token %llu, expected %llu\n",
		       (unsigned long long)first,
		       (unsigned long long)submitted + 1);
		exit(1);
	}
	if (together)
		check(air_wait_many(ch, first, n, AIR_FOREVER, c, &done),
		      "air_wait_many");
	for (; done < n; done++)
		check(air_wait(ch, first + done, AIR_FOREVER, &c[done]),
		      "air_wait");
	for (uint32_t i = 0; i < n; i++)
		if (c[i].token != first + i || c[i].user_data != submitted + i)
			__atomic_store_n(&broken, 1, __ATOMIC_RELAXED);
	submitted += n;
}

static void *take_turns(void *arg)
{
	uint64_t seed = mix((uint64_t)(uintptr_t)&seed);

	while (now_ns() < end) {
		pthread_mutex_lock(&turn);
		submit_and_collect(&seed);
		pthread_mutex_unlock(&turn);
	}
	return NULL;
}

static void run(void *(*fn)(void *arg), int threads)
{
	pthread_t thread[THREADS];

	for (int i = 0; i < threads; i++)
		if (pthread_create(&thread[i], NULL, fn, NULL))
			exit(1);
	for (int i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
}

/* ----------------------------------------------------------------- broken */

#ifdef AIR_TSAN
static void *submit_one(void *arg)
{
	struct air_call call;

	air_prepare_nop(&call);
	air_submit(ch, &call, 1, NULL);
	return NULL;
}

/*
 * One submits, then the other, and nothing orders them but time: there is room
 * for both, so that nothing breaks, and yet it is a race.
 */
static int race(void)
{
	open_channel();
	run(submit_one, 2);
	close_channel();
	return 0;
}

static bool race_is_seen(const char *self)
{
	pid_t pid = fork();
	int status;

	if (pid < 0)
		return false;
	if (!pid) {
		char exitcode[32];

		snprintf(exitcode, sizeof(exitcode), "exitcode=%d", RACE_RC);
		setenv("TSAN_OPTIONS", exitcode, 1);
		/* What it reports is not this test's. */
		if (freopen("/dev/null", "w", stderr))
			execl(self, self, "race", (char *)NULL);
		_exit(1);
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return false;
	return WIFEXITED(status) && WEXITSTATUS(status) == RACE_RC;
}
#endif

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 2.0;

	alarm((unsigned int)seconds + 100);
#ifdef AIR_TSAN
	if (argc > 1 && !strcmp(argv[1], "race"))
		return race();
	if (!race_is_seen(argv[0])) {
		puts("not ok single_caller: ThreadSanitizer sees no race");
		return 1;
	}
	puts("ok single_caller: a broken promise is seen");
#endif
	open_channel();
	end = now_ns() + (uint64_t)(seconds * 1e9);
	run(take_turns, THREADS);
	close_channel();
	if (broken || !submitted) {
		puts("not ok single_caller: completions of something else");
		return 1;
	}
	printf("ok single_caller: in turns: %llu submissions\n",
	       (unsigned long long)submitted);
	return 0;
}
