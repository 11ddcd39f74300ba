// SPDX-License-Identifier: MIT
/*
 * The CPU executor's side of `make bench-numpy`: numpy_peer.py asks for an
 * operator and a size, one line a round, and gets back what it took:
 *
 *	add|relu|reduce_sum|reduce_rows|softmax N REPEATS	(N elements)
 *	matmul N REPEATS					(N x N)
 *	=> DIRECT RING ROUND_TRIP FIRST MIDDLE LAST
 *
 * DIRECT: calls of the function that the executor calls; RING: through the
 * ring, sixteen or more in flight; ROUND_TRIP: through the ring, each awaited.
 * Microseconds an operator. Then three elements of the result, for the other
 * side to compare. f32; rows are 1024 long.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <airunner.h>
#include <airunner/ops/add.h>
#include <airunner/ops/matmul.h>
#include <airunner/ops/reduce_sum.h>
#include <airunner/ops/relu.h>
#include <airunner/ops/softmax.h>

#include "ops/cpu.h"
#include "tests/bench/bench.h"
#include "tests/bench/session.h"

#define IN_FLIGHT 16
#define ROW	  1024

static air_device *dev;
static air_channel *ch;
static struct air_pool *pool;

/**
 * struct job - an operator of a size, ready to run
 * @x, @size: operands, the result first, and their elements
 */
static struct job {
	char op[16];
	uint64_t n;
	uint32_t n_operands;
	uint64_t size[3];
	air_buffer *buf[3];
	float *x[3];
	air_descriptor *d;
	air_status (*destroy)(air_descriptor *d);
	struct air_call calls[IN_FLIGHT];
	struct air_cpu_plan *plan;
} job;

/* The same numbers as on the other side. */
static float number(uint64_t i)
{
	uint32_t h = (uint32_t)i * 2654435761u;

	return (float)(h >> 8) / 16777216.0f - 0.5f;
}

static air_tensor_desc tensor(uint32_t ndim, uint64_t rows, uint64_t columns)
{
	int64_t shape[2] = { (int64_t)rows, (int64_t)columns };
	air_tensor_desc t;

	if (ndim == 1)
		shape[0] = (int64_t)(rows * columns);
	bench_check(air_tensor_desc_init(&t, AIR_F32, ndim, shape, NULL),
		    "air_tensor_desc_init");
	return t;
}

static void allocate(struct job *j)
{
	for (uint32_t i = 0; i < j->n_operands; i++) {
		bench_check(air_buffer_alloc(ch, j->size[i] * sizeof(float),
					     AIR_HOST, &j->buf[i]),
			    "air_buffer_alloc");
		j->x[i] = air_buffer_data(j->buf[i]);
		for (uint64_t k = 0; k < j->size[i]; k++)
			j->x[i][k] = i ? number(k + i) : -1;
	}
}

static air_ref ref(const struct job *j, uint32_t i)
{
	return air_buffer_ref(j->buf[i], 0);
}

/* The same operator as the executor's, without executor. */
static void plan_direct(struct job *j, uint32_t op, const air_tensor_desc *t,
			const uint64_t attr[4])
{
	struct airunner_desc d = {
		.size = sizeof(d),
		.op = op,
		.n_tensors = j->n_operands,
	};
	struct air_error e;

	memcpy(d.tensor, t, j->n_operands * sizeof(*t));
	memcpy(d.attr, attr, 4 * sizeof(*attr));
	if (air_op_find(op)->cpu_plan(&d, &j->plan, &e))
		bench_fail("%s: %s", j->op, e.text);
}

static void set_up_add(struct job *j)
{
	const air_tensor_desc v = tensor(1, 1, j->n), t[] = { v, v, v };

	j->n_operands = 3;
	j->size[0] = j->size[1] = j->size[2] = j->n;
	allocate(j);
	bench_check(air_create_add_descriptor(ch, &j->d, &v, &v, &v), j->op);
	bench_check(air_prepare_add(j->d, j->calls, AIR_NO_REF, ref(j, 0),
				    ref(j, 1), ref(j, 2)),
		    j->op);
	j->destroy = air_destroy_add_descriptor;
	plan_direct(j, AIR_OP_add, t, (uint64_t[4]){ 0 });
}

static void set_up_relu(struct job *j)
{
	const air_tensor_desc v = tensor(1, 1, j->n), t[] = { v, v };

	j->n_operands = 2;
	j->size[0] = j->size[1] = j->n;
	allocate(j);
	bench_check(air_create_relu_descriptor(ch, &j->d, &v, &v), j->op);
	bench_check(air_prepare_relu(j->d, j->calls, AIR_NO_REF, ref(j, 0),
				     ref(j, 1)),
		    j->op);
	j->destroy = air_destroy_relu_descriptor;
	plan_direct(j, AIR_OP_relu, t, (uint64_t[4]){ 0 });
}

static void set_up_reduce(struct job *j, bool rows)
{
	const air_tensor_desc t[] = {
		tensor(rows, 1, rows ? j->n / ROW : 1),
		tensor(2, j->n / ROW, ROW),
	};
	const int32_t last = -1;

	j->n_operands = 2;
	j->size[0] = rows ? j->n / ROW : 1;
	j->size[1] = j->n;
	allocate(j);
	bench_check(air_create_reduce_sum_descriptor(ch, &j->d, &t[0], &t[1],
						     &last, rows, false),
		    j->op);
	bench_check(air_prepare_reduce_sum(j->d, j->calls, AIR_NO_REF,
					   ref(j, 0), ref(j, 1)),
		    j->op);
	j->destroy = air_destroy_reduce_sum_descriptor;
	plan_direct(j, AIR_OP_reduce_sum, t,
		    (uint64_t[4]){ rows ? 1 << 1 : 3 });
}

static void set_up_softmax(struct job *j)
{
	const air_tensor_desc v = tensor(2, j->n / ROW, ROW), t[] = { v, v };

	j->n_operands = 2;
	j->size[0] = j->size[1] = j->n;
	allocate(j);
	bench_check(air_create_softmax_descriptor(ch, &j->d, &v, &v, -1),
		    j->op);
	bench_check(air_prepare_softmax(j->d, j->calls, AIR_NO_REF, ref(j, 0),
					ref(j, 1)),
		    j->op);
	j->destroy = air_destroy_softmax_descriptor;
	plan_direct(j, AIR_OP_softmax, t, (uint64_t[4]){ 1 });
}

static void set_up_matmul(struct job *j)
{
	const air_tensor_desc m = tensor(2, j->n, j->n), t[] = { m, m, m };
	const double one = 1;
	uint64_t attr[4] = { 0 };

	memcpy(&attr[2], &one, sizeof(one));
	j->n_operands = 3;
	j->size[0] = j->size[1] = j->size[2] = j->n * j->n;
	allocate(j);
	bench_check(air_create_matmul_descriptor(ch, &j->d, &m, &m, &m, NULL,
						 NULL, false, false, 1, 0,
						 AIR_ACT_NONE),
		    j->op);
	bench_check(air_prepare_matmul(j->d, j->calls, AIR_NO_REF, ref(j, 0),
				       ref(j, 1), ref(j, 2), AIR_NO_REF,
				       AIR_NO_REF),
		    j->op);
	j->destroy = air_destroy_matmul_descriptor;
	plan_direct(j, AIR_OP_matmul, t, attr);
}

static void tear_down(struct job *j)
{
	if (!j->d)
		return;
	j->plan->destroy(j->plan);
	bench_check(j->destroy(j->d), "descriptor");
	for (uint32_t i = 0; i < j->n_operands; i++)
		bench_check(air_buffer_free(j->buf[i]), "air_buffer_free");
}

static void set_up(struct job *j, const char *op, uint64_t n)
{
	if (!strcmp(j->op, op) && j->n == n)
		return;
	tear_down(j);
	*j = (struct job){ .n = n };
	snprintf(j->op, sizeof(j->op), "%s", op);
	if (!strcmp(op, "add"))
		set_up_add(j);
	else if (!strcmp(op, "relu"))
		set_up_relu(j);
	else if (!strcmp(op, "reduce_sum"))
		set_up_reduce(j, false);
	else if (!strcmp(op, "reduce_rows"))
		set_up_reduce(j, true);
	else if (!strcmp(op, "softmax"))
		set_up_softmax(j);
	else if (!strcmp(op, "matmul"))
		set_up_matmul(j);
	else
		bench_fail("%s: no such operator here", op);
	for (int i = 1; i < IN_FLIGHT; i++)
		j->calls[i] = j->calls[0];
}

/* ------------------------------------------------------------------ rounds */

static double each(uint64_t begin, uint64_t n)
{
	return (double)(bench_now() - begin) / 1e3 / (double)n;
}

static double direct(struct job *j, uint64_t repeats)
{
	void *operand[AIRUNNER_MAX_TENSORS + 1] = { j->x[0], j->x[1], j->x[2] };
	uint64_t begin = bench_now();

	for (uint64_t i = 0; i < repeats; i++)
		if (j->plan->run(j->plan, operand, pool))
			bench_fail("%s refuses to run", j->op);
	return each(begin, repeats);
}

static void finish(air_token token)
{
	bench_check(air_wait(ch, token, 20000000000ull, NULL), "air_wait");
}

static double ring(struct job *j, uint64_t repeats)
{
	uint64_t begin = bench_now(), sent = 0, seen = 0;
	air_token first = 0, token;

	while (seen < repeats) {
		uint32_t n = IN_FLIGHT;

		if (n > repeats - sent)
			n = (uint32_t)(repeats - sent);
		if (n) {
			bench_check(air_submit(ch, j->calls, n, &token),
				    "air_submit");
			first = sent ? first : token;
			sent += n;
		}
		for (; seen < sent && (sent - seen > IN_FLIGHT || !n); seen++)
			finish(first + seen);
	}
	return each(begin, repeats);
}

static double round_trip(struct job *j, uint64_t repeats)
{
	uint64_t begin = bench_now();
	air_token token;

	for (uint64_t i = 0; i < repeats; i++) {
		bench_check(air_submit(ch, j->calls, 1, &token), "air_submit");
		finish(token);
	}
	return each(begin, repeats);
}

int main(int argc, char **argv)
{
	struct air_device_options options = {
		.size = sizeof(options),
		.threads = argc > 1 ? (uint32_t)atoi(argv[1]) : 1,
		.executors = "cpu",
	};
	struct air_backend_caps caps = { .size = sizeof(caps) };
	unsigned long long n, repeats;
	char op[16];

	/* one thread that computes has a processor of its own */
	if (options.threads == 1) {
		options.spin_ns = 1000000;
		bench_pin(bench_cpu(1));
	}
	bench_check(air_open("inproc:", &options, &dev), "air_open");
	if (options.threads == 1)
		bench_pin(bench_cpu(0));
	bench_check(air_channel_create(dev, NULL, &ch), "air_channel_create");
	bench_check(air_backend_caps(dev, AIR_EXEC_CPU, &caps), "caps");
	pool = air_pool_create(options.threads);
	printf("%s\n", caps.name);
	fflush(stdout);
	while (scanf("%15s %llu %llu", op, &n, &repeats) == 3) {
		struct job *j = &job;
		double d, r, t;

		set_up(j, op, n);
		/* the result is the ring's: poisoned after the direct calls */
		d = direct(j, repeats);
		for (uint64_t i = 0; i < j->size[0]; i++)
			j->x[0][i] = -1;
		r = ring(j, repeats);
		t = round_trip(j, repeats);
		printf("%.4f %.4f %.4f %.9g %.9g %.9g\n", d, r, t,
		       (double)j->x[0][0], (double)j->x[0][j->size[0] / 2],
		       (double)j->x[0][j->size[0] - 1]);
		fflush(stdout);
	}
	tear_down(&job);
	air_pool_destroy(pool);
	bench_check(air_channel_destroy(ch), "air_channel_destroy");
	bench_check(air_close(dev), "air_close");
	return 0;
}
