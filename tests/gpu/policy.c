// SPDX-License-Identifier: MIT
/*
 * Parking around a kernel that wants the whole GPU, as a user of the library
 * does it: cuBLASLt's bf16 product of two matrices of 8192 x 8192 while another
 * thread has small operators done, one vector_add(1024) after the other.
 *
 *	policy [JSON]
 *
 * AIRUNNER_PLUGIN_DIR says where libairunner-cuda.so is. Ends with 77 where
 * there is no GPU.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <airunner.h>
#include <airunner/cuda.h>
#include <airunner/ops/matmul.h>
#include <airunner/ops/vector_add.h>

#include "tests/gpu/peer_lt.h"
#include "tests/gpu/product.h"

#define N	PRODUCT_N
#define BATCH	PRODUCT_BATCH
#define ROUNDS	12
#define TRIPS	65536
#define WAIT_NS 5000000000ull

enum state {
	NOT_OPENED,
	PARKED,
	NOTHING_DONE,
	QUIET,
	QUIET_BY_STREAM,
	BY_RING,
	BY_RING_ALONE,
	STATES,
};

static const char *const state_name[STATES] = {
	"not opened",
	"parked",
	"live, nothing done",
	"quiet around it",
	"quiet until the stream is there",
	"through the ring",
	"through the ring, alone",
};

/**
 * struct seen - what came of a state
 * @us: of a product, by CUDA's events; none when it went through the ring
 * @wall_us: of one of a batch, from before anything was done for it until its
 *	end was seen
 * @trip_us: of the other thread's operators meanwhile
 */
static struct seen {
	double us[ROUNDS * BATCH], wall_us[ROUNDS];
	double trip_us[TRIPS];
	unsigned int n_us, n_wall, n_trips;
} seen[STATES];

static air_device *dev;
static air_channel *large;
static air_descriptor *matmul;
static struct air_call matmul_call;
static air_buffer *matrix[3], *workspace;
static struct product product;
static char device[64];

static void stall(const char *what)
{
	printf("STALL: %s\n", what);
	fflush(stdout);
	_Exit(3);
}

static void check(air_status st, const char *what)
{
	if (st == AIR_OK)
		return;
	printf("%s: %s\n", what, air_last_error());
	fflush(stdout);
	_Exit(st == AIR_NO_DEVICE ? 77 : 1);
}

/* -------------------------------------------------------- the other thread */

static atomic_bool busy, stop;
static atomic_uint trips_done;
static _Atomic(struct seen *) record;

static air_tensor_desc tensor(air_dtype dtype, uint32_t ndim, uint64_t n)
{
	int64_t shape[2] = { (int64_t)n, (int64_t)n };
	air_tensor_desc t;

	check(air_tensor_desc_init(&t, dtype, ndim, shape, NULL), "tensor");
	return t;
}

static void trip(air_channel *ch, const struct air_call *call)
{
	struct seen *s = atomic_load(&record);
	uint64_t begin = product_now();
	air_status st;
	air_token token;

	check(air_submit(ch, call, 1, &token), "air_submit");
	while ((st = air_poll(ch, token, NULL)) == AIR_PENDING)
		if (product_now() - begin > WAIT_NS)
			stall("a vector_add has not completed after 5 s");
	check(st, "vector_add");
	if (s && s->n_trips < TRIPS)
		s->trip_us[s->n_trips++] =
			(double)(product_now() - begin) * 1e-3;
	atomic_fetch_add(&trips_done, 1);
}

static void *client(void *arg)
{
	const air_tensor_desc v = tensor(AIR_F32, 1, 1024);
	air_descriptor *add;
	struct air_call call;
	air_buffer *buf[3];
	air_channel *ch;

	check(air_channel_create(dev, NULL, &ch), "channel");
	check(air_create_vector_add_descriptor(ch, &add, &v, &v, &v),
	      "vector_add");
	for (int i = 0; i < 3; i++)
		check(air_buffer_alloc(ch, 4096, AIR_DEVICE, &buf[i]),
		      "device memory");
	check(air_prepare_vector_add(
		      add, &call, AIR_NO_REF, air_buffer_ref(buf[0], 0),
		      air_buffer_ref(buf[1], 0), air_buffer_ref(buf[2], 0)),
	      "vector_add");
	while (!atomic_load(&stop)) {
		if (atomic_load(&busy))
			trip(ch, &call);
		else
			usleep(50);
	}
	for (int i = 0; i < 3; i++)
		check(air_buffer_free(buf[i]), "buffer");
	check(air_destroy_vector_add_descriptor(add), "vector_add");
	check(air_channel_destroy(ch), "channel");
	return NULL;
}

/* Busy: at least 20 trips were made since. Idle: the kernel has left. */
static void set_busy(bool on)
{
	uint64_t begin = product_now();
	unsigned int from;

	atomic_store(&busy, on);
	if (!on) {
		usleep(5000);
		return;
	}
	from = atomic_load(&trips_done);
	while (atomic_load(&trips_done) - from < 20)
		if (product_now() - begin > WAIT_NS)
			stall("no trips");
}

/* --------------------------------------------------------------- a session */

static pthread_t thread;

static void open_device(uint32_t large_alone)
{
	struct air_device_options options = {
		.size = sizeof(options),
		.executors = "cuda",
		.large_alone = large_alone,
	};
	const air_tensor_desc m = tensor(AIR_BF16, 2, N);
	CUdeviceptr at[] = { product_y, product_a, product_b };
	air_ref scratch = AIR_NO_REF;
	size_t bytes = 0;

	check(air_open("inproc:", &options, &dev), "air_open");
	check(air_channel_create(dev, NULL, &large), "channel");
	for (int i = 0; i < 3; i++)
		check(air_buffer_import(large, (void *)at[i], N * N * 2,
					AIR_DEVICE, &matrix[i]),
		      "air_buffer_import");
	check(air_create_matmul_descriptor(large, &matmul, &m, &m, &m, NULL,
					   NULL, false, true, 1, 0,
					   AIR_ACT_NONE),
	      "matmul");
	check(air_get_matmul_workspace_size(matmul, &bytes), "matmul");
	if (bytes) {
		check(air_buffer_alloc(large, bytes, AIR_DEVICE, &workspace),
		      "workspace");
		scratch = air_buffer_ref(workspace, 0);
	}
	check(air_prepare_matmul(matmul, &matmul_call, scratch,
				 air_buffer_ref(matrix[0], 0),
				 air_buffer_ref(matrix[1], 0),
				 air_buffer_ref(matrix[2], 0), AIR_NO_REF,
				 AIR_NO_REF),
	      "matmul");
	atomic_store(&stop, false);
	pthread_create(&thread, NULL, client, NULL);
}

static void close_device(void)
{
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	for (int i = 0; i < 3; i++)
		check(air_buffer_free(matrix[i]), "buffer");
	check(air_buffer_free(workspace), "buffer");
	workspace = NULL;
	check(air_destroy_matmul_descriptor(matmul), "matmul");
	check(air_channel_destroy(large), "channel");
	check(air_close(dev), "air_close");
}

/* The end of what the products might be waiting for. */
static void stalled(void)
{
	atomic_store(&busy, false);
}

static void by_ring(struct seen *s, bool keep)
{
	uint64_t begin = product_now();
	air_token token[BATCH];

	for (int i = 0; i < BATCH; i++)
		check(air_submit(large, &matmul_call, 1, &token[i]),
		      "air_submit");
	for (int i = 0; i < BATCH; i++) {
		air_status st = air_wait(large, token[i], WAIT_NS, NULL);

		if (st == AIR_TIMEOUT)
			stall("a product has not completed after 5 s");
		check(st, "a product");
	}
	if (keep)
		s->wall_us[s->n_wall++] =
			(double)(product_now() - begin) * 1e-3 / BATCH;
}

static void by_stream(enum state state, struct seen *s)
{
	uint64_t begin = product_now();

	if (state == QUIET)
		check(air_quiet_begin(dev), "air_quiet_begin");
	if (!product_sample(&product, &s->us[s->n_us], stalled))
		printf("STALL: %s\n", state_name[state]);
	s->wall_us[s->n_wall++] =
		(double)(product_now() - begin) * 1e-3 / BATCH;
	s->n_us += BATCH;
	if (state == QUIET)
		check(air_quiet_end(dev), "air_quiet_end");
}

static void end_quiet(void *arg)
{
	atomic_store((_Atomic(air_status) *)arg, air_quiet_end(dev));
}

/* Nobody waits: the stream itself says when it needs the GPU no more. */
static void until_stream(struct seen *s)
{
	static _Atomic(air_status) ended;
	uint64_t begin = product_now();

	atomic_store(&ended, AIR_PENDING);
	check(air_quiet_begin(dev), "air_quiet_begin");
	for (int i = 0; i < BATCH; i++)
		product_enqueue(&product);
	CHECK(LaunchHostFunc(product.stream, end_quiet, &ended));
	product_mark(product.stream);
	if (!product_ends(WAIT_NS))
		stall("the stream does not end");
	s->wall_us[s->n_wall++] =
		(double)(product_now() - begin) * 1e-3 / BATCH;
	check(atomic_load(&ended), "air_quiet_end in a host function");
}

static void once(enum state state)
{
	struct seen *s = &seen[state];

	set_busy(state > PARKED);
	atomic_store(&record, state > PARKED ? s : NULL);
	switch (state) {
	case QUIET_BY_STREAM:
		until_stream(s);
		break;
	case BY_RING:
	case BY_RING_ALONE:
		by_ring(s, true);
		break;
	default:
		by_stream(state, s);
	}
	atomic_store(&record, NULL);
}

/* ----------------------------------------------------------------- results */

static void report(FILE *json)
{
	double base = product_quantile(seen[NOT_OPENED].wall_us,
				       seen[NOT_OPENED].n_wall, 0.5);

	printf("%s\n%-34s %9s %9s %9s %7s %9s %9s %9s %8s\n", device, "state",
	       "gpu us", "wall us", "max", "loss %", "trip us", "p99", "max",
	       "trips");
	if (json)
		fprintf(json, "{\n\"device\": \"%s\",\n\"rows\": [", device);
	for (int i = 0; i < STATES; i++) {
		struct seen *s = &seen[i];
		double us = product_quantile(s->us, s->n_us, 0.5);
		double wall = product_quantile(s->wall_us, s->n_wall, 0.5);
		double max = product_quantile(s->wall_us, s->n_wall, 1);
		double t = product_quantile(s->trip_us, s->n_trips, 0.5);
		double t99 = product_quantile(s->trip_us, s->n_trips, 0.99);
		double t_max = product_quantile(s->trip_us, s->n_trips, 1);
		double loss = 100 - 100 * base / wall;

		printf("%-34s %9.1f %9.1f %9.1f %7.2f %9.2f %9.2f %9.2f %8u\n",
		       state_name[i], us, wall, max, loss, t, t99, t_max,
		       s->n_trips);
		if (json)
			fprintf(json,
				"%s\n{\"state\": \"%s\", \"gpu_us\": %.1f, "
				"\"wall_us\": %.1f, \"max_wall_us\": %.1f, "
				"\"loss_percent\": %.2f, \"trip_us\": %.2f, "
				"\"trip_p99_us\": %.2f, \"trip_max_us\": %.2f, "
				"\"trips\": %u}",
				i ? "," : "", state_name[i], us, wall, max,
				loss, t, t99, t_max, s->n_trips);
	}
	if (json)
		fputs("\n]\n}\n", json);
}

int main(int argc, char **argv)
{
	FILE *json = NULL;
	CUstream stream;

	setvbuf(stdout, NULL, _IOLBF, 0);
	product_open(device, sizeof(device));
	CHECK(StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	product_make(&product, stream, 0, 0, "the product");
	for (int i = -2; i < ROUNDS; i++) {
		if (!i)
			memset(&seen[NOT_OPENED], 0, sizeof(seen[NOT_OPENED]));
		by_stream(NOT_OPENED, &seen[NOT_OPENED]);
	}
	open_device(0);
	by_ring(NULL, false);
	for (int i = 0; i < ROUNDS; i++)
		for (enum state s = PARKED; s <= BY_RING; s++)
			once(s);
	set_busy(false);
	close_device();
	open_device(1);
	by_ring(NULL, false);
	for (int i = 0; i < ROUNDS; i++)
		once(BY_RING_ALONE);
	set_busy(false);
	close_device();
	if (argc > 1)
		json = fopen(argv[1], "w");
	report(json);
	if (json)
		fclose(json);
	return 0;
}
