// SPDX-License-Identifier: MIT
/*
 * What a resident kernel costs a kernel that wants the whole GPU, and what can
 * be done about it: a bf16 product of 8192 x 8192 matrices by cuBLASLt beside
 * cuda-resident in the states of server.h, and round trips of vector_add(1024)
 * meanwhile.
 *
 *	beside PLUGIN [JSON [SETTING...]]
 *
 * Each setting (blocks of the resident kernel; see settings[]) has a process of
 * its own: the block count is read when the executor is opened, and one that
 * hangs costs only itself. States alternate with the parked one, so that clocks
 * and temperature are the same for both.
 *
 * What is to be expected. On Hopper such a product is one block an SM, in
 * clusters of two neighbours: 384 threads of 168 registers, 208 KiB of shared
 * memory, so that 1024 registers are left. A resident block takes 40960 (320
 * threads of 128) and 35 KiB of shared memory, and however small it were made,
 * it would not fit beside: it takes its SM from the product, and often the
 * neighbour as well. A product that counts on all SMs then finds that some of
 * its blocks begin when others have ended. One that counts on fewer loses only
 * their share of the work, or nothing where power is what limits the clock.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/gpu/peer_lt.h"
#include "tests/gpu/product.h"
#include "tests/gpu/server.h"

#define N	   PRODUCT_N
#define ROUNDS	   12
#define MIN_ROUNDS 3
#define GROUP_NS   800000000ull
#define TRIPS	   32768
#define CELLS	   8
#define ROWS	   512
#define LIMIT_NS   3000000000ull
#define CHILD_S	   20
#define PAUSE_US   6000
#define CHOICES	   6

/* By what is measured: blocks of the kernel, its own SMs, and how much. */
static const struct setting {
	const char *name;
	const char *blocks, *partition;
	unsigned int n;
	bool all;
} settings[] = {
	{ "default", NULL, NULL, 0, false },
	{ "1", "1", NULL, 1, true },
	{ "2", "2", NULL, 2, false },
	{ "4", "4", NULL, 4, true },
	{ "8", "8", NULL, 8, true },
	{ "16", "16", NULL, 16, false },
	{ "32", "32", NULL, 32, false },
	{ "64", "64", NULL, 64, false },
	{ "partition-2", NULL, "2", 2, true },
	{ "partition-4", NULL, "4", 4, true },
	{ "partition-8", NULL, "8", 8, true },
	{ "partition-16", NULL, "16", 16, true },
};

static const char *const mode_name[] = { "parked", "idle", "busy", "flood" };

/**
 * struct row - a line of the table
 * @us, @max: of a product
 * @base: of the product by all SMs with the executor parked, alternating
 * @trip, @trip99, @trip_max: round trips of vector_add(1024); 0: none
 * @rate: of a flood, operators a microsecond
 * @woken: the kernel had left and came back: this is not what it should be
 */
struct row {
	char setting[16], gemm[48], state[24];
	double us, max, base, trip, trip99, trip_max, rate;
	unsigned int n, woken, stalled;
};

/* Written by children, printed by the parent, whatever becomes of them. */
static struct shared {
	char device[64], gemm[96], doing[96];
	unsigned int n;
	struct row row[ROWS];
} *shared;

/* A product in a state, and what was seen of it. */
struct cell {
	const struct product *gemm;
	enum server_mode mode;
	double *us;
	unsigned int n;
	struct server_trips trips;
};

static const struct setting *now;
static double parked_us;

static void park(void)
{
	server_mode(SERVER_PARKED);
}

/* ------------------------------------------------------------------ groups */

static struct row *new_row(const char *gemm, const char *state)
{
	struct row *r = &shared->row[shared->n];

	snprintf(r->setting, sizeof(r->setting), "%s", now->name);
	snprintf(r->gemm, sizeof(r->gemm), "%s", gemm);
	snprintf(r->state, sizeof(r->state), "%s", state);
	if (shared->n < ROWS - 1)
		shared->n++;
	return r;
}

static void report(struct cell *c, bool stalled)
{
	struct row *r = new_row(c->gemm->name, mode_name[c->mode]);
	struct server_trips *t = &c->trips;

	r->n = c->n;
	r->us = product_quantile(c->us, c->n, 0.5);
	r->max = product_quantile(c->us, c->n, 1);
	r->trip = product_quantile(t->us, t->n, 0.5);
	r->trip99 = product_quantile(t->us, t->n, 0.99);
	r->trip_max = product_quantile(t->us, t->n, 1);
	r->rate = t->flood_us > 0 ? (double)t->operators / t->flood_us : 0;
	r->woken = t->lent;
	r->stalled = stalled;
	r->base = parked_us;
}

/*
 * All cells by turns. The first is what the others are held against: the
 * product by all SMs, parked.
 */
static void group(struct cell *c, unsigned int n)
{
	uint64_t begin = product_now();
	bool stalled[CELLS] = { false };

	for (unsigned int i = 0; i < n; i++) {
		c[i].n = 0;
		c[i].us = calloc(ROUNDS * PRODUCT_BATCH, sizeof(double));
		c[i].trips = (struct server_trips){ .room = TRIPS };
		c[i].trips.us = calloc(TRIPS, sizeof(double));
	}
	for (unsigned int round = 0; round < ROUNDS; round++) {
		if (round >= MIN_ROUNDS && product_now() - begin > GROUP_NS)
			break;
		for (unsigned int i = 0; i < n; i++) {
			/* once is enough, and costs seconds */
			if (stalled[i])
				continue;
			snprintf(shared->doing, sizeof(shared->doing),
				 "%s: %s, %s", now->name, c[i].gemm->name,
				 mode_name[c[i].mode]);
			server_mode(c[i].mode);
			server_record(&c[i].trips);
			if (!product_sample(c[i].gemm, &c[i].us[c[i].n], park))
				stalled[i] = true;
			server_record(NULL);
			c[i].n += PRODUCT_BATCH;
		}
	}
	/* nobody writes to the trips any more */
	server_mode(SERVER_PARKED);
	parked_us = product_quantile(c[0].us, c[0].n, 0.5);
	for (unsigned int i = 0; i < n; i++) {
		report(&c[i], stalled[i]);
		free(c[i].us);
		free(c[i].trips.us);
	}
}

/* @g in all states that matter, beside the product by all SMs. */
static void states(const struct product *all, const struct product *g)
{
	struct cell c[] = {
		{ .gemm = all, .mode = SERVER_PARKED },
		{ .gemm = g, .mode = SERVER_IDLE },
		{ .gemm = g, .mode = SERVER_BUSY },
		{ .gemm = g, .mode = SERVER_FLOOD },
		{ .gemm = g, .mode = SERVER_PARKED },
	};

	group(c, g == all ? 4 : 5);
}

/* The library's other choices: do some suffer less? */
static void choices(const struct product *all, const struct product *other,
		    unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		struct cell c[] = {
			{ .gemm = all, .mode = SERVER_PARKED },
			{ .gemm = &other[i], .mode = SERVER_PARKED },
			{ .gemm = &other[i], .mode = SERVER_IDLE },
		};

		group(c, 3);
	}
}

/* Parked for as long as the product takes: what cuda-launch does by itself. */
static void products(void)
{
	static const struct {
		const char *name;
		enum server_mode mode;
		bool trip;
	} kind[] = {
		{ "parked", SERVER_PARKED, false },
		{ "busy, makes way", SERVER_BUSY, false },
		{ "a trip meanwhile", SERVER_BUSY, true },
	};
	double us[3][ROUNDS];
	struct row *r;

	for (int round = -1; round < ROUNDS; round++)
		for (int k = 0; k < 3; k++) {
			struct server_way way = { .trip = kind[k].trip };

			snprintf(shared->doing, sizeof(shared->doing),
				 "%s: by cuda-launch, %s", now->name,
				 kind[k].name);
			server_product(kind[k].mode, N, product_y, product_a,
				       product_b, &way);
			/* the first loads code */
			if (round >= 0)
				us[k][round] = way.us;
		}
	parked_us = product_quantile(us[0], ROUNDS, 0.5);
	for (int k = 0; k < 3; k++) {
		r = new_row("by cuda-launch", kind[k].name);
		r->n = ROUNDS;
		r->us = product_quantile(us[k], ROUNDS, 0.5);
		r->max = product_quantile(us[k], ROUNDS, 1);
		r->base = parked_us;
		if (!kind[k].trip)
			continue;
		r->trip = r->us;
		r->trip_max = r->max;
		r->us = r->max = 0;
	}
}

/*
 * Launches on a stream of high priority that is made while products run and the
 * kernel is live: they have been seen to make no progress at all.
 */
static void launches(const struct product *g, enum server_mode mode)
{
	CUdeviceptr y = product_workspace, a = y + 4096, b = y + 8192;
	void *args[] = { &y, &a, &b };
	int least = 0, greatest = 0;
	double us[40];
	unsigned int n = 0;
	char state[24];
	struct row *r;
	CUstream s;

	snprintf(shared->doing, sizeof(shared->doing), "%s: launches, %s",
		 now->name, mode_name[mode]);
	CHECK(CtxGetStreamPriorityRange(&least, &greatest));
	server_mode(mode);
	for (int i = 0; i < 2 * PRODUCT_BATCH; i++)
		product_enqueue(g);
	product_mark(g->stream);
	CHECK(StreamCreateWithPriority(&s, CU_STREAM_NON_BLOCKING, greatest));
	snprintf(state, sizeof(state), "%s, launches", mode_name[mode]);
	for (; n < 40; n++) {
		uint64_t begin = product_now(), limit = begin + LIMIT_NS;
		CUresult q;

		CHECK(LaunchKernel(product_vadd, 4, 1, 1, 256, 1, 1, 0, s, args,
				   NULL));
		while ((q = cuda.StreamQuery(s)) == CUDA_ERROR_NOT_READY &&
		       product_now() < limit)
			;
		if (q == CUDA_ERROR_NOT_READY) {
			printf("STALL: %s: launch %u on a new stream makes no "
			       "progress\n",
			       state, n);
			break;
		}
		us[n] = (double)(product_now() - begin) * 1e-3;
	}
	if (n < 40)
		server_mode(SERVER_PARKED);
	if (!product_ends(2 * LIMIT_NS)) {
		printf("STALL: %s: the products do not end\n", state);
		_Exit(3);
	}
	server_mode(SERVER_PARKED);
	r = new_row(g->name, state);
	r->stalled = n < 40;
	r->n = n;
	r->trip = product_quantile(us, n, 0.5);
	r->trip99 = product_quantile(us, n, 0.99);
	r->trip_max = product_quantile(us, n, 1);
	r->base = parked_us;
}

/* ---------------------------------------------------------------- a setting */

/* Before airunner is opened: the product alone. */
static void alone(const struct product *g)
{
	double us[ROUNDS * PRODUCT_BATCH];
	struct row *r;

	snprintf(shared->doing, sizeof(shared->doing), "%s: alone", now->name);
	/*
	 * With pauses as long as it takes to have the executor park: without
	 * any, power limits the clock. The first round is a warm-up.
	 */
	for (int i = -ROUNDS; i < ROUNDS; i++) {
		usleep(PAUSE_US);
		product_sample(g, &us[(i < 0 ? 0 : i) * PRODUCT_BATCH], park);
	}
	r = new_row(g->name, "not opened");
	r->n = ROUNDS * PRODUCT_BATCH;
	r->us = r->base = product_quantile(us, ROUNDS * PRODUCT_BATCH, 0.5);
	r->max = product_quantile(us, ROUNDS * PRODUCT_BATCH, 1);
}

static void measure(const char *plugin)
{
	struct product all, target, green[4], other[CHOICES];
	unsigned int n_green = 0, n_other = 0;
	CUstream s;
	char name[48];

	product_open(shared->device, sizeof(shared->device));
	CHECK(StreamCreate(&s, CU_STREAM_NON_BLOCKING));
	product_make(&all, s, 0, 0, "all SMs");
	peer_lt_describe(all.lt, shared->gemm, sizeof(shared->gemm));
	snprintf(name, sizeof(name), "told of %d SMs",
		 product_sms - (int)now->n - (int)now->n % 2);
	if (now->n && now->n <= 32)
		product_make(&target, s,
			     product_sms - (int)now->n - (int)now->n % 2, 0,
			     name);
	for (unsigned int leave = 2; now->all && leave <= 16; leave *= 2) {
		int left = 0;
		CUstream part =
			leave < now->n ? NULL : product_partition(leave, &left);

		snprintf(name, sizeof(name), "green context of %d SMs", left);
		if (part && product_make(&green[n_green], part, left, 0, name))
			n_green++;
	}
	for (unsigned int i = 1; now->n == 4 && i < CHOICES; i++) {
		char how[48];

		if (!product_make(&other[n_other], s, 0, i, ""))
			break;
		peer_lt_describe(other[n_other].lt, how, sizeof(how));
		snprintf(other[n_other].name, sizeof(other->name), "%s", how);
		n_other++;
	}
	alone(&all);
	server_start(plugin);
	states(&all, &all);
	if (now->n && now->n <= 32)
		states(&all, &target);
	for (unsigned int i = 0; i < n_green; i++)
		states(&all, &green[i]);
	launches(&all, SERVER_IDLE);
	launches(&all, SERVER_BUSY);
	choices(&all, other, n_other);
	if (now->all || !now->n)
		products();
	server_mode(SERVER_QUIT);
}

static void run(const char *plugin, const struct setting *s)
{
	pid_t pid;
	int status = 0;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		now = s;
		if (s->blocks)
			setenv("AIRUNNER_RESIDENT_BLOCKS", s->blocks, 1);
		if (s->partition)
			setenv("AIRUNNER_RESIDENT_PARTITION", s->partition, 1);
		printf("== %s\n", s->name);
		measure(plugin);
		fflush(stdout);
		_Exit(0);
	}
	for (int i = 0; i < CHILD_S * 100; i++) {
		if (waitpid(pid, &status, WNOHANG) == pid)
			break;
		usleep(10000);
		if (i < CHILD_S * 100 - 1)
			continue;
		printf("STALL: not done after %d s: %s\n", CHILD_S,
		       shared->doing);
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		exit(77);
	if (status)
		printf("  ended with status %#x in: %s\n", status,
		       shared->doing);
}

/* ------------------------------------------------------------------ results */

static void number(FILE *f, const char *name, double v, const char *format)
{
	if (v <= 0)
		return;
	fprintf(f, ", \"%s\": ", name);
	fprintf(f, format, v);
}

static void print_json(FILE *f)
{
	fprintf(f,
		"{\n\"device\": \"%s\",\n\"product\": \"bf16 8192 x 8192 x "
		"8192, cuBLASLt %s\",\n\"rows\": [",
		shared->device, shared->gemm);
	for (unsigned int i = 0; i < shared->n; i++) {
		const struct row *r = &shared->row[i];

		fprintf(f,
			"%s\n{\"blocks\": \"%s\", \"product\": \"%s\", "
			"\"executor\": \"%s\", \"n\": %u",
			i ? "," : "", r->setting, r->gemm, r->state, r->n);
		number(f, "us", r->us, "%.1f");
		number(f, "max_us", r->max, "%.1f");
		if (r->us > 0)
			fprintf(f, ", \"loss_percent\": %.2f",
				100 - 100 * r->base / r->us);
		number(f, "trip_us", r->trip, "%.2f");
		number(f, "trip_p99_us", r->trip99, "%.2f");
		number(f, "trip_max_us", r->trip_max, "%.2f");
		number(f, "flood_mops", r->rate, "%.2f");
		fprintf(f, ", \"stalled\": %u, \"woken\": %u}", r->stalled,
			r->woken);
	}
	fprintf(f, "\n]\n}\n");
}

static void print_table(void)
{
	printf("\n%s, %s\n%-12s %-38s %-17s %9s %9s %6s %6s %8s %8s %8s %6s\n",
	       shared->device, shared->gemm, "blocks", "product", "executor",
	       "us", "max", "TF/s", "loss%", "trip us", "p99", "max", "Mop/s");
	for (unsigned int i = 0; i < shared->n; i++) {
		const struct row *r = &shared->row[i];

		printf("%-12s %-38s %-17s %9.1f %9.1f %6.0f %6.2f %8.2f %8.2f "
		       "%8.2f %6.2f%s%s\n",
		       r->setting, r->gemm, r->state, r->us, r->max,
		       r->us > 0 ? 2e-6 * (double)(N * N * N) / r->us : 0,
		       r->us > 0 ? 100 - 100 * r->base / r->us : 0, r->trip,
		       r->trip99, r->trip_max, r->rate,
		       r->stalled ? " STALLED" : "", r->woken ? " woken" : "");
	}
}

static bool wanted(const char *name, int argc, char **argv)
{
	for (int i = 3; i < argc; i++)
		if (!strcmp(argv[i], name))
			return true;
	return argc < 4;
}

int main(int argc, char **argv)
{
	unsigned int stalled = 0;
	FILE *f;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc < 2) {
		puts("beside PLUGIN [JSON [SETTING...]]");
		return 2;
	}
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return 1;
	for (size_t i = 0; i < sizeof(settings) / sizeof(*settings); i++)
		if (wanted(settings[i].name, argc, argv))
			run(argv[1], &settings[i]);
	print_table();
	if (argc > 2) {
		f = fopen(argv[2], "w");
		if (!f) {
			perror(argv[2]);
			return 1;
		}
		print_json(f);
		fclose(f);
	}
	for (unsigned int i = 0; i < shared->n; i++)
		stalled += shared->row[i].stalled;
	printf("beside: %u rows, %u stalled\n", shared->n, stalled);
	return stalled || !shared->n ? 1 : 0;
}
