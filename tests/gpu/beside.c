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
 * What is to be expected. Hopper's large products are made by blocks of 384
 * threads with 168 registers each and 200 KiB of shared memory or more: an SM
 * has room for one, and 1024 registers left. A resident block takes 40960
 * registers (320 threads of 128) and 35 KiB of shared memory. However small it
 * were made, it would not fit beside: a resident block takes its SM from the
 * product, and, as blocks of a product come in clusters of two neighbours,
 * often the next one, too. The product has 2048 tiles of 128 x 256: that is 16
 * rounds of 132 SMs, and of 131 to 128 as well, and 17 of 127 to 121. So a few
 * resident blocks need cost nothing if they keep to 4 SMs, and the product to
 * the rest.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "include/uapi/airunner.h"
#include "tests/gpu/peer_lt.h"
#include "tests/gpu/server.h"

#define N	   8192ull
#define BYTES	   (N * N * 2)
#define WORKSPACE  (32ull << 20)
#define BATCH	   4
#define ROUNDS	   12
#define MIN_ROUNDS 3
#define GROUP_NS   800000000ull
#define TRIPS	   32768
#define CELLS	   8
#define ROWS	   512
#define LIMIT_NS   3000000000ull
#define CHILD_S	   20
#define CHOICES	   6

#define CUDA_CALLS(X)                                                          \
	X(Init)                                                                \
	X(DeviceGet)                                                           \
	X(DeviceGetName)                                                       \
	X(DeviceGetAttribute)                                                  \
	X(DevicePrimaryCtxRetain)                                              \
	X(CtxSetCurrent)                                                       \
	X(CtxGetStreamPriorityRange)                                           \
	X(MemAlloc)                                                            \
	X(MemcpyHtoD)                                                          \
	X(MemcpyDtoD)                                                          \
	X(StreamCreate)                                                        \
	X(StreamCreateWithPriority)                                            \
	X(StreamSynchronize)                                                   \
	X(StreamQuery)                                                         \
	X(EventCreate)                                                         \
	X(EventRecord)                                                         \
	X(EventQuery)                                                          \
	X(EventElapsedTime)                                                    \
	X(ModuleLoadData)                                                      \
	X(ModuleGetFunction)                                                   \
	X(FuncLoad)                                                            \
	X(LaunchKernel)                                                        \
	X(DeviceGetDevResource)                                                \
	X(DevSmResourceSplitByCount)                                           \
	X(DevResourceGenerateDesc)                                             \
	X(GreenCtxCreate)                                                      \
	X(GreenCtxStreamCreate)

static struct {
#define MEMBER(n) __typeof__(&cu##n) n;
	CUDA_CALLS(MEMBER)
} cuda;

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

/**
 * struct gemm - a way to make the product
 * @target: SMs it is told of; 0: it finds out by itself
 */
struct gemm {
	char name[48];
	struct peer_lt *lt;
	CUstream stream;
	int target;
};

/* A product in a state, and what was seen of it. */
struct cell {
	const struct gemm *gemm;
	enum server_mode mode;
	double *us;
	unsigned int n;
	struct server_trips trips;
};

static CUdeviceptr mat_y, mat_a, mat_b, workspace;
static CUdevice dev;
static int sms;
static CUevent event[BATCH + 1];
static CUfunction vadd;
static const struct setting *now;
static double parked_us;

static uint64_t clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

#define STRING(x) #x
#define SYMBOL(x) STRING(x)

static void check(CUresult r, const char *what)
{
	if (r == CUDA_SUCCESS)
		return;
	printf("%s: CUDA error %d\n", what, (int)r);
	fflush(stdout);
	_Exit(1);
}

#define CHECK(call) check(cuda.call, #call)

/* ------------------------------------------------------------------ set up */

static const char ptx[] =
	".version 7.8\n.target sm_80\n.address_size 64\n"
	".visible .entry vadd(.param .u64 y, .param .u64 a, .param .u64 b)\n"
	"{\n"
	".reg .b32 %r<5>; .reg .f32 %f<4>; .reg .b64 %d<8>;\n"
	"ld.param.u64 %d0, [y]; ld.param.u64 %d1, [a]; ld.param.u64 %d2, [b];\n"
	"mov.u32 %r0, %ctaid.x; mov.u32 %r1, %tid.x;\n"
	"mad.lo.u32 %r2, %r0, 256, %r1;\n"
	"mul.wide.u32 %d3, %r2, 4;\n"
	"add.u64 %d4, %d1, %d3; add.u64 %d5, %d2, %d3; add.u64 %d6, %d0, %d3;\n"
	"ld.global.f32 %f0, [%d4]; ld.global.f32 %f1, [%d5];\n"
	"add.f32 %f2, %f0, %f1; st.global.f32 [%d6], %f2;\n"
	"ret;\n}\n";

static void find_cuda(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW);

	if (!lib) {
		puts("skip: no libcuda");
		exit(77);
	}
#define FIND(n) *(void **)&cuda.n = dlsym(lib, SYMBOL(cu##n));
	CUDA_CALLS(FIND)
#define HAVE(n)                                                                \
	if (!cuda.n) {                                                         \
		puts("libcuda has no " SYMBOL(cu##n));                         \
		exit(1);                                                       \
	}
	CUDA_CALLS(HAVE)
}

/* Random numbers of size 0.5 to 1: zeros would spare the GPU power. */
static void fill(CUdeviceptr to)
{
	const size_t part = 8 << 20;
	uint16_t *x = malloc(part);
	uint64_t seed = 0x9e3779b97f4a7c15ull + to;

	for (size_t i = 0; i < part / 2; i++) {
		seed ^= seed << 13;
		seed ^= seed >> 7;
		seed ^= seed << 17;
		x[i] = (uint16_t)((seed & 0x807f) | 0x3f00);
	}
	CHECK(MemcpyHtoD(to, x, part));
	for (size_t at = part; at < BYTES; at += part)
		CHECK(MemcpyDtoD(to + at, to, part));
	free(x);
}

static void open_cuda(void)
{
	CUcontext ctx;
	CUmodule mod;

	find_cuda();
	CHECK(Init(0));
	CHECK(DeviceGet(&dev, 0));
	CHECK(DeviceGetName(shared->device, sizeof(shared->device), dev));
	CHECK(DeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
				 dev));
	CHECK(DevicePrimaryCtxRetain(&ctx, dev));
	CHECK(CtxSetCurrent(ctx));
	CHECK(MemAlloc(&mat_y, BYTES));
	CHECK(MemAlloc(&mat_a, BYTES));
	CHECK(MemAlloc(&mat_b, BYTES));
	CHECK(MemAlloc(&workspace, WORKSPACE));
	fill(mat_a);
	fill(mat_b);
	CHECK(StreamSynchronize(NULL));
	for (int i = 0; i <= BATCH; i++)
		CHECK(EventCreate(&event[i], CU_EVENT_DEFAULT));
	CHECK(ModuleLoadData(&mod, ptx));
	CHECK(ModuleGetFunction(&vadd, mod, "vadd"));
	CHECK(FuncLoad(vadd));
}

/* ---------------------------------------------------------------- products */

static void enqueue(const struct gemm *g)
{
	int st = peer_lt_run(g->lt, mat_y, mat_a, mat_b, workspace, g->stream,
			     1);

	if (!st)
		return;
	printf("%s: cublasLtMatmul says %d\n", g->name, st);
	fflush(stdout);
	_Exit(1);
}

static bool ends(uint64_t limit)
{
	CUresult r;

	limit += clock_ns();
	while ((r = cuda.EventQuery(event[BATCH])) == CUDA_ERROR_NOT_READY)
		if (clock_ns() > limit)
			return false;
	check(r, "products");
	return true;
}

/* Times of BATCH products back to back. False: they took too long. */
static bool sample(const struct gemm *g, double us[])
{
	bool in_time;

	for (int i = 0; i < BATCH; i++) {
		CHECK(EventRecord(event[i], g->stream));
		enqueue(g);
	}
	CHECK(EventRecord(event[BATCH], g->stream));
	in_time = ends(LIMIT_NS);
	if (!in_time) {
		printf("STALL: %s, %s: no end after 3 s\n", now->name, g->name);
		server_mode(SERVER_PARKED);
		if (!ends(LIMIT_NS)) {
			puts("STALL: nor with the resident kernel gone");
			_Exit(3);
		}
		puts("STALL: it ended when the resident kernel had left");
	}
	for (int i = 0; i < BATCH; i++) {
		float ms = 0;

		CHECK(EventElapsedTime(&ms, event[i], event[i + 1]));
		us[i] = (double)ms * 1e3;
	}
	return in_time;
}

static bool make(struct gemm *g, CUstream stream, int target, unsigned int nth,
		 const char *name)
{
	g->lt = peer_lt_open(AIRUNNER_BF16, N, N, N, 1, true);
	if (!g->lt) {
		puts("no cuBLASLt");
		_Exit(1);
	}
	if (!peer_lt_choose(g->lt, target, nth)) {
		peer_lt_close(g->lt);
		g->lt = NULL;
		return false;
	}
	g->stream = stream;
	g->target = target;
	snprintf(g->name, sizeof(g->name), "%s", name);
	/* code is loaded now, while no kernel is in its way */
	enqueue(g);
	enqueue(g);
	CHECK(StreamSynchronize(stream));
	return true;
}

/* A stream of the SMs that are left when @leave are taken away. */
static CUstream partition(unsigned int leave, int *left)
{
	unsigned int flags = 0, one = 1;
	CUdevResource all, few, rest;
	CUdevResourceDesc desc;
	CUgreenCtx green;
	CUstream s = NULL;
	CUresult r;

	if (leave % 8)
		flags = CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING;
	r = cuda.DeviceGetDevResource(dev, &all, CU_DEV_RESOURCE_TYPE_SM);
	if (r == CUDA_SUCCESS)
		r = cuda.DevSmResourceSplitByCount(&few, &one, &all, &rest,
						   flags, leave);
	if (r == CUDA_SUCCESS)
		r = cuda.DevResourceGenerateDesc(&desc, &rest, 1);
	if (r == CUDA_SUCCESS)
		r = cuda.GreenCtxCreate(&green, desc, dev,
					CU_GREEN_CTX_DEFAULT_STREAM);
	if (r == CUDA_SUCCESS)
		r = cuda.GreenCtxStreamCreate(&s, green, CU_STREAM_NON_BLOCKING,
					      0);
	if (r != CUDA_SUCCESS) {
		printf("  no green context that leaves %u SMs: error %d\n",
		       leave, (int)r);
		return NULL;
	}
	*left = (int)rest.sm.smCount;
	printf("  green context of %d SMs, %u left\n", *left, few.sm.smCount);
	return s;
}

/* ------------------------------------------------------------------ groups */

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double quantile(double *x, unsigned int n, double q)
{
	qsort(x, n, sizeof(*x), by_value);
	return n ? x[(unsigned int)(q * (n - 1))] : 0;
}

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
	r->us = quantile(c->us, c->n, 0.5);
	r->max = quantile(c->us, c->n, 1);
	r->trip = quantile(t->us, t->n, 0.5);
	r->trip99 = quantile(t->us, t->n, 0.99);
	r->trip_max = quantile(t->us, t->n, 1);
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
	uint64_t begin = clock_ns();
	bool stalled[CELLS] = { false };

	for (unsigned int i = 0; i < n; i++) {
		c[i].n = 0;
		c[i].us = calloc(ROUNDS * BATCH, sizeof(double));
		c[i].trips = (struct server_trips){ .room = TRIPS };
		c[i].trips.us = calloc(TRIPS, sizeof(double));
	}
	for (unsigned int round = 0; round < ROUNDS; round++) {
		if (round >= MIN_ROUNDS && clock_ns() - begin > GROUP_NS)
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
			if (!sample(c[i].gemm, &c[i].us[c[i].n]))
				stalled[i] = true;
			server_record(NULL);
			c[i].n += BATCH;
		}
	}
	/* nobody writes to the trips any more */
	server_mode(SERVER_PARKED);
	parked_us = quantile(c[0].us, c[0].n, 0.5);
	for (unsigned int i = 0; i < n; i++) {
		report(&c[i], stalled[i]);
		free(c[i].us);
		free(c[i].trips.us);
	}
}

/* @g in all states that matter, beside the product by all SMs. */
static void states(const struct gemm *all, const struct gemm *g)
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
static void choices(const struct gemm *all, const struct gemm *other,
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
			server_product(kind[k].mode, N, mat_y, mat_a, mat_b,
				       &way);
			/* the first loads code */
			if (round >= 0)
				us[k][round] = way.us;
		}
	parked_us = quantile(us[0], ROUNDS, 0.5);
	for (int k = 0; k < 3; k++) {
		r = new_row("by cuda-launch", kind[k].name);
		r->n = ROUNDS;
		r->us = quantile(us[k], ROUNDS, 0.5);
		r->max = quantile(us[k], ROUNDS, 1);
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
static void launches(const struct gemm *g, enum server_mode mode)
{
	CUdeviceptr y = workspace, a = workspace + 4096, b = workspace + 8192;
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
	for (int i = 0; i < 2 * BATCH; i++)
		enqueue(g);
	CHECK(EventRecord(event[BATCH], g->stream));
	CHECK(StreamCreateWithPriority(&s, CU_STREAM_NON_BLOCKING, greatest));
	snprintf(state, sizeof(state), "%s, launches", mode_name[mode]);
	for (; n < 40; n++) {
		uint64_t begin = clock_ns(), limit = begin + LIMIT_NS;
		CUresult q;

		CHECK(LaunchKernel(vadd, 4, 1, 1, 256, 1, 1, 0, s, args, NULL));
		while ((q = cuda.StreamQuery(s)) == CUDA_ERROR_NOT_READY &&
		       clock_ns() < limit)
			;
		if (q == CUDA_ERROR_NOT_READY) {
			printf("STALL: %s: launch %u on a new stream makes no "
			       "progress\n",
			       state, n);
			break;
		}
		us[n] = (double)(clock_ns() - begin) * 1e-3;
	}
	if (n < 40)
		server_mode(SERVER_PARKED);
	if (!ends(2 * LIMIT_NS)) {
		printf("STALL: %s: the products do not end\n", state);
		_Exit(3);
	}
	server_mode(SERVER_PARKED);
	r = new_row(g->name, state);
	r->stalled = n < 40;
	r->n = n;
	r->trip = quantile(us, n, 0.5);
	r->trip99 = quantile(us, n, 0.99);
	r->trip_max = quantile(us, n, 1);
	r->base = parked_us;
}

/* ---------------------------------------------------------------- a setting */

/* Before airunner is opened: the product alone. */
static void alone(const struct gemm *g)
{
	double us[ROUNDS * BATCH];
	struct row *r;

	snprintf(shared->doing, sizeof(shared->doing), "%s: alone", now->name);
	for (int i = 0; i < ROUNDS; i++)
		sample(g, &us[i * BATCH]);
	for (int i = 0; i < ROUNDS; i++)
		sample(g, &us[i * BATCH]);
	r = new_row(g->name, "not opened");
	r->n = ROUNDS * BATCH;
	r->us = r->base = quantile(us, ROUNDS * BATCH, 0.5);
	r->max = quantile(us, ROUNDS * BATCH, 1);
}

static void measure(const char *plugin)
{
	struct gemm all, target, green[3], other[CHOICES];
	unsigned int n_green = 0, n_other = 0;
	CUstream s;
	char name[48];

	open_cuda();
	CHECK(StreamCreate(&s, CU_STREAM_NON_BLOCKING));
	make(&all, s, 0, 0, "all SMs");
	peer_lt_describe(all.lt, shared->gemm, sizeof(shared->gemm));
	snprintf(name, sizeof(name), "told of %d SMs",
		 sms - (int)now->n - (int)now->n % 2);
	if (now->n && now->n <= 32)
		make(&target, s, sms - (int)now->n - (int)now->n % 2, 0, name);
	for (unsigned int leave = 4; now->all && leave <= 16; leave *= 2) {
		int left = 0;
		CUstream part = leave < now->n ? NULL : partition(leave, &left);

		snprintf(name, sizeof(name), "green context of %d SMs", left);
		if (part && make(&green[n_green], part, left, 0, name))
			n_green++;
	}
	for (unsigned int i = 1; now->n == 4 && i < CHOICES; i++) {
		char how[48];

		if (!make(&other[n_other], s, 0, i, ""))
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
