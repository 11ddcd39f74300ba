// SPDX-License-Identifier: MIT
/*
 * steady: a client that goes on, whatever happens to its worker or to others.
 *
 *	steady SECONDS [deaths]
 *
 * Submits bursts of random length to /dev/airunner for SECONDS, and collects
 * every completion. Each submission must be answered, once; with AIR_OK, or,
 * where the worker is killed meanwhile ("deaths"), with AIR_WORKER_DIED. The
 * same descriptor must go on working with the next worker, and what is said to
 * have succeeded must have.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <airunner.h>
#include <airunner/ops/vector_add.h>

#define ORDER 6
#define BURST (1 << ORDER)
#define ELEMENTS 1000
/* Emulated and busy machines are slow; this bounds hangs only. */
#define PATIENCE_NS (90 * INT64_C(1000000000))

static void __attribute__((noreturn)) fail(const char *what, air_status s)
{
	printf("not ok steady: %s: %s (%s)\n", what, air_status_string(s),
	       air_last_error());
	exit(1);
}

static void must(air_status s, const char *what)
{
	if (s)
		fail(what, s);
}

struct tally {
	unsigned long submitted;
	unsigned long right;
	unsigned long died;
};

/*
 * One burst: no-ops, and at its end c = a + b with an a that is new each time,
 * so that an old result is not taken for a new one.
 */
static void burst(air_channel *ch, const air_descriptor *add, air_tensor *t,
		  bool deaths, struct tally *tally)
{
	uint32_t n = 1 + (uint32_t)lrand48() % BURST, i;
	float *c = air_tensor_data(&t[0]), *a = air_tensor_data(&t[1]);
	const float *b = air_tensor_data(&t[2]);
	struct air_call calls[BURST];
	air_status s = AIR_OK;
	air_token first;

	a[0] = (float)(lrand48() % 1000);
	a[ELEMENTS - 1] = a[0] + 1;
	c[0] = c[ELEMENTS - 1] = -1;
	for (i = 0; i < n - 1; i++)
		air_prepare_nop(&calls[i]);
	must(air_prepare_vector_add(add, &calls[n - 1], AIR_NO_REF,
				    air_tensor_ref(&t[0]),
				    air_tensor_ref(&t[1]),
				    air_tensor_ref(&t[2])),
	     "prepare");
	must(air_submit(ch, calls, n, &first), "submit");
	tally->submitted += n;
	for (i = 0; i < n; i++) {
		struct air_completion done = { 0 };

		s = air_wait(ch, first + i, PATIENCE_NS, &done);
		if (done.token != first + i)
			fail("no answer", s);
		if (s == AIR_OK)
			tally->right++;
		else if (s == AIR_WORKER_DIED && deaths)
			tally->died++;
		else
			fail("answer", s);
		s = air_poll(ch, first + i, NULL);
		if (s != AIR_BAD_TOKEN)
			fail("answered twice", s);
		s = done.status;
	}
	if (s == AIR_OK && (c[0] != a[0] + b[0] ||
			    c[ELEMENTS - 1] != a[0] + 1 + b[ELEMENTS - 1])) {
		printf("not ok steady: %g + %g is not %g\n", a[0], b[0], c[0]);
		exit(1);
	}
}

int main(int argc, char **argv)
{
	int seconds = argc > 1 ? atoi(argv[1]) : 5;
	bool deaths = argc > 2 && !strcmp(argv[2], "deaths");
	const struct air_channel_options options = { .size = sizeof(options),
						     .order = ORDER };
	int64_t n = ELEMENTS;
	struct tally tally = { 0 };
	air_descriptor *add;
	air_tensor t[3];
	air_channel *ch;
	air_device *dev;
	time_t end;
	int i;

	setvbuf(stdout, NULL, _IOLBF, 0);
	alarm((unsigned int)seconds + 180);
	srand48(time(NULL) ^ getpid());
	must(air_open("/dev/airunner", NULL, &dev), "open");
	must(air_channel_create(dev, &options, &ch), "channel");
	for (i = 0; i < 3; i++)
		must(air_tensor_alloc(ch, AIR_HOST, AIR_F32, 1, &n, &t[i]),
		     "tensor");
	must(air_create_vector_add_descriptor(ch, &add, &t[0].desc, &t[1].desc,
					      &t[2].desc),
	     "descriptor");
	for (end = time(NULL) + seconds; time(NULL) < end;)
		burst(ch, add, t, deaths, &tally);
	if (!tally.right) {
		printf("not ok steady: nothing was ever run\n");
		return 1;
	}
	must(air_destroy_vector_add_descriptor(add), "destroy");
	must(air_channel_destroy(ch), "channel_destroy");
	must(air_close(dev), "close");
	printf("ok steady: %lu submissions: %lu right, %lu died with a worker\n",
	       tally.submitted, tally.right, tally.died);
	return 0;
}
