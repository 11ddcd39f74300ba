// SPDX-License-Identifier: MIT
/*
 * shares: what clients get of one worker behind the module.
 *
 *	shares SECONDS
 *
 * Three clients with weights 1:2:4 and operators of very different sizes keep
 * their rings full: each must get its share of the executor's time, within 5 %
 * of it. Then one of class HIGH submits single operators while the three go
 * on: it must not have to wait for what they have queued.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <airunner.h>
#include <airunner/ops/relu.h>

#include "uapi/airunner.h"

#define FLOODS 3
#define PATIENCE_NS (60 * INT64_C(1000000000))

static const uint32_t weight[FLOODS] = { 100, 200, 400 };
static const int64_t elements[FLOODS] = { 50000, 2000, 20000 };
/*
 * Some hundred milliseconds of work each: a ring that runs dry because its
 * client does not get a processor has no claim to a share.
 */
static const uint32_t order[FLOODS] = { 9, 13, 10 };

/*
 * Shared by all processes. What counts is when an operator ran, not when its
 * client came to collect it: a ring holds much of a client's share.
 */
struct board {
	uint32_t ready;
	uint32_t stop;
	uint64_t begin;
	uint64_t end;
	uint32_t past[FLOODS]; /* has collected all that ran before @end */
	uint64_t device_ns[FLOODS];
	uint64_t done[FLOODS];
};

static struct board *board;

#define load(x) __atomic_load_n(&(x), __ATOMIC_ACQUIRE)
#define store(x, v) __atomic_store_n(&(x), v, __ATOMIC_RELEASE)

static void must(air_status s, const char *what)
{
	if (!s)
		return;
	printf("not ok shares: %s: %s (%s)\n", what, air_status_string(s),
	       air_last_error());
	exit(1);
}

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

struct client {
	air_device *dev;
	air_channel *ch;
	air_buffer *buf;
	air_descriptor *relu;
	struct air_call call;
};

static void open_client(struct client *c, int64_t n, uint32_t entries_order,
			uint32_t w, uint32_t priority)
{
	struct air_channel_options o = {
		.size = sizeof(o),
		.order = entries_order,
		.weight = w,
		.priority = priority,
	};
	air_tensor_desc t;

	must(air_open(AIRUNNER_DEVICE, NULL, &c->dev), "open");
	must(air_channel_create(c->dev, &o, &c->ch), "channel");
	must(air_buffer_alloc(c->ch, (size_t)n * 8, AIR_HOST, &c->buf),
	     "buffer");
	must(air_tensor_desc_init(&t, AIR_F32, 1, &n, NULL), "tensor");
	must(air_create_relu_descriptor(c->ch, &c->relu, &t, &t), "relu");
	must(air_prepare_relu(c->relu, &c->call, AIR_NO_REF,
			      air_buffer_ref(c->buf, (uint64_t)n * 4),
			      air_buffer_ref(c->buf, 0)),
	     "prepare");
}

static void close_client(struct client *c)
{
	must(air_drain(c->ch, PATIENCE_NS), "drain");
	must(air_destroy_relu_descriptor(c->relu), "destroy");
	must(air_buffer_free(c->buf), "free");
	must(air_channel_destroy(c->ch), "channel_destroy");
	must(air_close(c->dev), "close");
}

static void flood(int i)
{
	struct air_completion done;
	struct client c;

	/* What is measured is the wait for the worker, not for a processor. */
	if (nice(15) < 0)
		exit(1);
	open_client(&c, elements[i], order[i], weight[i], 0);
	__atomic_fetch_add(&board->ready, 1, __ATOMIC_RELEASE);
	while (!load(board->stop)) {
		bool idle = true;

		while (!air_submit(c.ch, &c.call, 1, NULL))
			idle = false;
		while (!air_next(c.ch, &done)) {
			must(done.status, "relu");
			idle = false;
			if (done.start >= load(board->end)) {
				store(board->past[i], 1);
			} else if (done.start >= load(board->begin)) {
				board->device_ns[i] += done.duration;
				board->done[i]++;
			}
		}
		/* The machine has fewer processors than there are of us. */
		if (idle)
			usleep(50);
	}
	close_client(&c);
	exit(0);
}

static bool check_shares(void)
{
	uint64_t all = 0, weights = 0;
	bool good = true;

	for (int i = 0; i < FLOODS; i++) {
		all += board->device_ns[i];
		weights += weight[i];
	}
	for (int i = 0; i < FLOODS; i++) {
		double have = (double)board->device_ns[i] / (double)all;
		double want = (double)weight[i] / (double)weights;

		printf("# weight %u: %llu operators of %lld elements, %.2f %% of the time; fair is %.2f %%\n",
		       weight[i], (unsigned long long)board->done[i],
		       (long long)elements[i], 100 * have, 100 * want);
		if (have < want * 0.95 || have > want * 1.05)
			good = false;
	}
	printf("%s shares: as the weights say\n", good ? "ok" : "not ok");
	return good;
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static bool check_high(unsigned int seconds)
{
	uint64_t end = now() + seconds * 1000000000ull;
	static uint64_t waited[100000], queued[100000];
	struct client c;
	size_t n = 0;
	bool good;

	open_client(&c, 16, 4, 0, AIRUNNER_PRIO_HIGH + 1);
	while (now() < end && n < 100000) {
		uint64_t before = now();
		struct air_completion done;
		air_token token;

		must(air_submit(c.ch, &c.call, 1, &token), "submit");
		must(air_wait(c.ch, token, PATIENCE_NS, &done), "wait");
		queued[n] = done.start > before ? done.start - before : 0;
		waited[n++] = now() - before;
		usleep(2000);
	}
	close_client(&c);
	qsort(waited, n, sizeof(waited[0]), by_size);
	qsort(queued, n, sizeof(queued[0]), by_size);
	printf("# queued: median %llu us, 99 %% %llu us, worst %llu us\n",
	       (unsigned long long)queued[n / 2] / 1000,
	       (unsigned long long)queued[n * 99 / 100] / 1000,
	       (unsigned long long)queued[n - 1] / 1000);
	printf("# class high beside the flood: median %llu us, 99 %% %llu us, worst %llu us of %zu\n",
	       (unsigned long long)waited[n / 2] / 1000,
	       (unsigned long long)waited[n * 99 / 100] / 1000,
	       (unsigned long long)waited[n - 1] / 1000, n);
	/*
	 * What is queued in the three rings takes seconds. An emulated
	 * processor on a busy machine takes tens of milliseconds to look up.
	 */
	good = queued[n / 2] < 100000000 && queued[n * 99 / 100] < 1000000000;
	printf("%s shares: a better class does not queue behind a flood\n",
	       good ? "ok" : "not ok");
	return good;
}

int main(int argc, char **argv)
{
	unsigned int seconds = argc > 1 ? (unsigned int)atoi(argv[1]) : 10;
	uint64_t begin;
	bool good;

	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (board == MAP_FAILED)
		return 1;
	board->begin = board->end = UINT64_MAX;
	for (int i = 0; i < FLOODS; i++)
		if (!fork())
			flood(i);
	while (load(board->ready) < FLOODS)
		if (waitpid(-1, NULL, WNOHANG) > 0)
			return 1;
	begin = now() + 500000000;
	store(board->end, begin + seconds * 1000000000ull);
	store(board->begin, begin);
	for (int i = 0; i < FLOODS; i++) {
		while (!load(board->past[i])) {
			if (waitpid(-1, NULL, WNOHANG) > 0)
				return 1;
			usleep(100000);
		}
	}
	good = check_shares();
	good &= check_high(seconds);
	store(board->stop, 1);
	for (int i = 0; i < FLOODS; i++) {
		int status;

		if (wait(&status) < 0 || status)
			good = false;
	}
	return good ? 0 : 1;
}
