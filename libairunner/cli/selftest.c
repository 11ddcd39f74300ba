// SPDX-License-Identifier: MIT
/*
 * airunner selftest: the way a program uses the library, with every result
 * compared with one computed here in double precision.
 */
#include <argp.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <airunner.h>
#include <airunner/ops/copy.h>
#include <airunner/ops/matmul.h>
#include <airunner/ops/reduce_sum.h>
#include <airunner/ops/relu.h>
#include <airunner/ops/softmax.h>
#include <airunner/ops/vector_add.h>

#include "libairunner/cli/cli.h"

/* Longer than anything here takes, also in an emulated guest. */
#define PATIENCE_NS INT64_C(60000000000)

#define DIMS(...) ((const int64_t[]){ __VA_ARGS__ })

static const char doc[] =
	"Run operators through the ring and check every result.";

static const struct argp_option options[] = {
	{ "device", 'd', "WHERE", 0,
	  "inproc:, unix:PATH, or the path of a device", 0 },
	{ "json", 'j', NULL, 0, "print JSON", 0 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct cli *cli = state->input;

	switch (key) {
	case 'd':
		cli->device = arg;
		return 0;
	case 'j':
		cli->json = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = { options, parse, NULL, doc, NULL, NULL, NULL };

/**
 * struct result - one line of the table
 * @what: operator and shapes
 * @executor: which ran it
 * @duration: on the executor, ns
 * @error: largest, relative to the largest magnitude of what was expected
 * @limit: of @error
 * @ok: as it should be
 */
struct result {
	const char *what;
	const char *executor;
	uint64_t duration;
	double error;
	double limit;
	bool ok;
};

struct selftest {
	air_channel *ch;
	uint64_t random;
	air_buffer *bufs[8];
	unsigned int n_bufs;
};

static float random_float(struct selftest *t)
{
	t->random ^= t->random << 13;
	t->random ^= t->random >> 7;
	t->random ^= t->random << 17;
	return (float)((double)(t->random >> 11) / (double)(1ull << 53) * 4 -
		       2);
}

/* A tensor of random numbers; the caller's results are poisoned instead. */
static air_status make(struct selftest *t, uint32_t ndim, const int64_t *shape,
		       bool result, air_tensor *out)
{
	air_status status =
		air_tensor_alloc(t->ch, AIR_HOST, AIR_F32, ndim, shape, out);
	float *p;
	int64_t n;

	if (status != AIR_OK)
		return status;
	t->bufs[t->n_bufs++] = out->buf;
	p = air_tensor_data(out);
	n = air_tensor_desc_elements(&out->desc);
	for (int64_t i = 0; i < n; i++)
		p[i] = result ? NAN : random_float(t);
	return AIR_OK;
}

static void free_all(struct selftest *t)
{
	while (t->n_bufs)
		air_buffer_free(t->bufs[--t->n_bufs]);
}

static void compare(struct result *r, const float *got, const double *want,
		    int64_t n)
{
	double worst = 0, scale = 0;

	for (int64_t i = 0; i < n; i++) {
		double error = fabs((double)got[i] - want[i]);

		scale = fmax(scale, fabs(want[i]));
		/* NaN is worse than anything. */
		if (!(error <= worst))
			worst = isnan(error) ? INFINITY : error;
	}
	r->error = scale > 0 ? worst / scale : worst;
	r->ok = r->error <= r->limit;
}

static air_status finish(struct selftest *t, struct result *r,
			 const air_descriptor *d, air_token token)
{
	struct air_completion c;
	air_status status = air_wait(t->ch, token, PATIENCE_NS, &c);

	r->executor = cli_executor(air_descriptor_executor(d, NULL));
	if (status == AIR_OK)
		r->duration = c.duration;
	return status;
}

/* ------------------------------------------------------------ operators */

static air_status try_copy(struct selftest *t, struct result *r)
{
	enum { M = 37, N = 53 };
	static double want[M * N];
	air_tensor x, xt, y;
	air_descriptor *d;
	air_token token;
	air_status status;

	r->what = "copy, 37x53 transposed";
	if ((status = make(t, 2, DIMS(N, M), false, &x)) ||
	    (status = make(t, 2, DIMS(M, N), true, &y)) ||
	    (status =
		     air_tensor_permute(&x, (const uint32_t[]){ 1, 0 }, &xt)) ||
	    (status = air_create_copy_descriptor(t->ch, &d, &y.desc, &xt.desc)))
		return status;
	for (int i = 0; i < M; i++)
		for (int j = 0; j < N; j++)
			want[i * N + j] =
				((float *)air_tensor_data(&x))[j * M + i];
	status = air_execute_copy(d, AIR_NO_REF, air_tensor_ref(&y),
				  air_tensor_ref(&xt), &token);
	if (status == AIR_OK)
		status = finish(t, r, d, token);
	if (status == AIR_OK)
		compare(r, air_tensor_data(&y), want, M * N);
	air_destroy_copy_descriptor(d);
	return status;
}

static air_status try_vector_add(struct selftest *t, struct result *r)
{
	enum { N = 10007 };
	static double want[N];
	air_tensor a, b, c;
	air_descriptor *d;
	air_token token;
	air_status status;

	r->what = "vector_add, 10007";
	if ((status = make(t, 1, DIMS(N), false, &a)) ||
	    (status = make(t, 1, DIMS(N), false, &b)) ||
	    (status = make(t, 1, DIMS(N), true, &c)) ||
	    (status = air_create_vector_add_descriptor(t->ch, &d, &c.desc,
						       &a.desc, &b.desc)))
		return status;
	for (int i = 0; i < N; i++)
		want[i] = (double)((float *)air_tensor_data(&a))[i] +
			  ((float *)air_tensor_data(&b))[i];
	status = air_execute_vector_add(d, AIR_NO_REF, air_tensor_ref(&c),
					air_tensor_ref(&a), air_tensor_ref(&b),
					&token);
	if (status == AIR_OK)
		status = finish(t, r, d, token);
	if (status == AIR_OK)
		compare(r, air_tensor_data(&c), want, N);
	air_destroy_vector_add_descriptor(d);
	return status;
}

static air_status try_relu(struct selftest *t, struct result *r)
{
	enum { N = 10007 };
	static double want[N];
	air_descriptor *d;
	air_token token;
	air_status status;
	air_tensor x;

	r->what = "relu, 10007 in place";
	if ((status = make(t, 1, DIMS(N), false, &x)) ||
	    (status = air_create_relu_descriptor(t->ch, &d, &x.desc, &x.desc)))
		return status;
	for (int i = 0; i < N; i++)
		want[i] = fmax(((float *)air_tensor_data(&x))[i], 0);
	status = air_execute_relu(d, AIR_NO_REF, air_tensor_ref(&x),
				  air_tensor_ref(&x), &token);
	if (status == AIR_OK)
		status = finish(t, r, d, token);
	if (status == AIR_OK)
		compare(r, air_tensor_data(&x), want, N);
	air_destroy_relu_descriptor(d);
	return status;
}

static air_status try_reduce_sum(struct selftest *t, struct result *r)
{
	enum { M = 31, N = 1000 };
	static const int32_t last = -1;
	static double want[M];
	air_tensor x, y;
	air_descriptor *d;
	air_token token;
	air_status status;

	r->what = "reduce_sum, rows of 31x1000";
	if ((status = make(t, 2, DIMS(M, N), false, &x)) ||
	    (status = make(t, 1, DIMS(M), true, &y)) ||
	    (status = air_create_reduce_sum_descriptor(
		     t->ch, &d, &y.desc, &x.desc, &last, 1, false)))
		return status;
	memset(want, 0, sizeof(want));
	for (int i = 0; i < M * N; i++)
		want[i / N] += ((float *)air_tensor_data(&x))[i];
	status = air_execute_reduce_sum(d, AIR_NO_REF, air_tensor_ref(&y),
					air_tensor_ref(&x), &token);
	if (status == AIR_OK)
		status = finish(t, r, d, token);
	if (status == AIR_OK)
		compare(r, air_tensor_data(&y), want, M);
	air_destroy_reduce_sum_descriptor(d);
	return status;
}

static void softmax_row(const float *x, double *y, int n)
{
	double max = -INFINITY, sum = 0;

	for (int i = 0; i < n; i++)
		max = fmax(max, x[i]);
	for (int i = 0; i < n; i++)
		sum += y[i] = exp(x[i] - max);
	for (int i = 0; i < n; i++)
		y[i] /= sum;
}

static air_status try_softmax(struct selftest *t, struct result *r)
{
	enum { M = 16, N = 1024 };
	static double want[M * N];
	air_tensor x, y;
	air_descriptor *d;
	air_token token;
	air_status status;

	r->what = "softmax, rows of 16x1024";
	if ((status = make(t, 2, DIMS(M, N), false, &x)) ||
	    (status = make(t, 2, DIMS(M, N), true, &y)) ||
	    (status = air_create_softmax_descriptor(t->ch, &d, &y.desc, &x.desc,
						    -1)))
		return status;
	for (int i = 0; i < M; i++)
		softmax_row((float *)air_tensor_data(&x) + i * N, want + i * N,
			    N);
	status = air_execute_softmax(d, AIR_NO_REF, air_tensor_ref(&y),
				     air_tensor_ref(&x), &token);
	if (status == AIR_OK)
		status = finish(t, r, d, token);
	if (status == AIR_OK)
		compare(r, air_tensor_data(&y), want, M * N);
	air_destroy_softmax_descriptor(d);
	return status;
}

/* @y = @a times the transposed @b, @m x @n over @k. */
static void multiply(double *y, const float *a, const float *b, int m, int n,
		     int k)
{
	for (int i = 0; i < m; i++) {
		for (int j = 0; j < n; j++) {
			double sum = 0;

			for (int l = 0; l < k; l++)
				sum += (double)a[i * k + l] * b[j * k + l];
			y[i * n + j] = sum;
		}
	}
}

static air_status run_matmul(struct selftest *t, struct result *r,
			     air_descriptor *d, const air_tensor *y,
			     const air_tensor *a, const air_tensor *b)
{
	air_ref workspace = AIR_NO_REF;
	air_buffer *buf = NULL;
	air_token token;
	air_status status;
	size_t bytes;

	status = air_get_matmul_workspace_size(d, &bytes);
	if (status == AIR_OK && bytes) {
		status = air_buffer_alloc(t->ch, bytes, AIR_HOST, &buf);
		if (status == AIR_OK)
			workspace = air_buffer_ref(buf, 0);
	}
	if (status == AIR_OK)
		status =
			air_execute_matmul(d, workspace, air_tensor_ref(y),
					   air_tensor_ref(a), air_tensor_ref(b),
					   AIR_NO_REF, AIR_NO_REF, &token);
	if (status == AIR_OK)
		status = finish(t, r, d, token);
	air_buffer_free(buf);
	return status;
}

static air_status try_matmul(struct selftest *t, struct result *r)
{
	enum { B = 3, M = 33, N = 45, K = 57 };
	static double want[B * M * N];
	air_tensor a, b, y;
	air_descriptor *d;
	air_status status;

	r->what = "matmul, 3 x 33x57 by 57x45";
	if ((status = make(t, 3, DIMS(B, M, K), false, &a)) ||
	    (status = make(t, 3, DIMS(B, N, K), false, &b)) ||
	    (status = make(t, 3, DIMS(B, M, N), true, &y)) ||
	    (status = air_create_matmul_descriptor(t->ch, &d, &y.desc, &a.desc,
						   &b.desc, NULL, NULL, false,
						   true, 1, 0, AIR_ACT_NONE)))
		return status;
	for (int i = 0; i < B; i++)
		multiply(want + i * M * N,
			 (float *)air_tensor_data(&a) + i * M * K,
			 (float *)air_tensor_data(&b) + i * N * K, M, N, K);
	status = run_matmul(t, r, d, &y, &a, &b);
	if (status == AIR_OK)
		compare(r, air_tensor_data(&y), want, B * M * N);
	air_destroy_matmul_descriptor(d);
	return status;
}

/* ------------------------------------------------------------- the ring */

/* x becomes x + x, ten times over, without waiting in between. */
static air_status try_order(struct selftest *t, struct result *r)
{
	enum { N = 1000, TIMES = 10 };
	static double want[N];
	struct air_call calls[TIMES];
	air_descriptor *d;
	air_token first;
	air_status status;
	air_tensor x;

	r->what = "10 vector_adds in a row, in order";
	if ((status = make(t, 1, DIMS(N), false, &x)) ||
	    (status = air_create_vector_add_descriptor(t->ch, &d, &x.desc,
						       &x.desc, &x.desc)))
		return status;
	for (int i = 0; i < N; i++)
		want[i] = ((float *)air_tensor_data(&x))[i] * 1024.0;
	for (int i = 0; i < TIMES; i++)
		air_prepare_vector_add(d, &calls[i], AIR_NO_REF,
				       air_tensor_ref(&x), air_tensor_ref(&x),
				       air_tensor_ref(&x));
	status = air_submit(t->ch, calls, TIMES, &first);
	for (air_token i = 0; status == AIR_OK && i < TIMES; i++)
		status = finish(t, r, d, first + i);
	if (status == AIR_OK)
		compare(r, air_tensor_data(&x), want, N);
	air_destroy_vector_add_descriptor(d);
	return status;
}

/* An operand that reaches outside its buffer is refused, and only that. */
static air_status try_bad_operand(struct selftest *t, struct result *r)
{
	struct air_completion c;
	air_descriptor *d;
	air_token token;
	air_status status;
	air_tensor x;

	r->what = "operand outside its buffer: refused";
	if ((status = make(t, 1, DIMS(1000), false, &x)) ||
	    (status = air_create_relu_descriptor(t->ch, &d, &x.desc, &x.desc)))
		return status;
	status = air_execute_relu(d, AIR_NO_REF, air_tensor_ref(&x),
				  air_buffer_ref(x.buf, 4000), &token);
	if (status == AIR_OK) {
		status = air_wait(t->ch, token, PATIENCE_NS, &c);
		r->executor = cli_executor(air_descriptor_executor(d, NULL));
		r->ok = status == AIR_BAD_RANGE && c.detail == 2;
		if (r->ok)
			status = AIR_OK;
		else if (status == AIR_OK)
			status = AIR_SYSTEM;
	}
	air_destroy_relu_descriptor(d);
	return status;
}

/* ------------------------------------------------------------- reporting */

static air_status (*const cases[])(struct selftest *t, struct result *r) = {
	try_copy,    try_vector_add, try_relu,	try_reduce_sum,
	try_softmax, try_matmul,     try_order, try_bad_operand,
};

static void explain(const air_device *dev, const air_channel *ch)
{
	printf("Reached: %s. A channel with a ring of %u slots was built; "
	       "each\n"
	       "operator below was written into one 64-byte slot of it, run by "
	       "the worker,\n"
	       "and its result compared with one computed here in double "
	       "precision.\n\n"
	       "%-38s %-14s %10s  %s\n",
	       cli_transport(dev), air_channel_entries(ch), "operator",
	       "executor", "time", "largest relative error");
}

static void report(const struct cli *cli, const struct result *r,
		   air_status status, bool first)
{
	const char *sentence = status == AIR_OK ? "" : air_last_error();

	if (cli->json) {
		printf("%s\n    {\"what\": \"%s\", \"executor\": \"%s\", "
		       "\"ns\": %" PRIu64 ", \"error\": %g, \"limit\": %g, "
		       "\"ok\": %s, \"sentence\": ",
		       first ? "" : ",", r->what, r->executor, r->duration,
		       isfinite(r->error) ? r->error : 1e300, r->limit,
		       r->ok ? "true" : "false");
		cli_json_string(r->ok ? "" : sentence);
		printf("}");
		return;
	}
	printf("%-38s %-14s ", r->what, r->executor);
	if (status != AIR_OK)
		printf("FAILED: %s\n", sentence);
	else if (r->duration)
		printf("%7.1f us  %.1e%s\n", (double)r->duration / 1e3,
		       r->error, r->ok ? "" : "  WRONG");
	else
		printf("%10s  %s\n", "", r->ok ? "ok" : "WRONG");
}

static double now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

/* Fastest of some round trips of an operator that does nothing, ns; < 0: no. */
static double round_trip(air_channel *ch)
{
	struct air_call call;
	double best = -1;

	air_prepare_nop(&call);
	for (int i = 0; i < 200; i++) {
		double start = now_ns(), took;
		air_token token;

		if (air_submit(ch, &call, 1, &token) != AIR_OK ||
		    air_wait(ch, token, PATIENCE_NS, NULL) != AIR_OK)
			return -1;
		took = now_ns() - start;
		if (best < 0 || took < best)
			best = took;
	}
	return best;
}

static bool run_cases(const struct cli *cli, air_channel *ch)
{
	struct selftest t = { .ch = ch, .random = (uint64_t)time(NULL) | 1 };
	unsigned int n = sizeof(cases) / sizeof(cases[0]), failed = 0;
	double trip;

	for (unsigned int i = 0; i < n; i++) {
		struct result r = { .executor = "", .limit = 1e-5 };
		air_status status = cases[i](&t, &r);

		r.ok = r.ok && status == AIR_OK;
		failed += !r.ok;
		report(cli, &r, status, i == 0);
		free_all(&t);
	}
	trip = round_trip(ch);
	failed += trip < 0;
	if (cli->json)
		printf("],\n  \"round_trip_ns\": %.0f, \"passed\": %u, "
		       "\"failed\": %u}\n",
		       trip, n + 1 - failed, failed);
	else if (trip < 0)
		printf("\nround trip FAILED: %s\n", air_last_error());
	else
		printf("\nFastest round trip of an operator that does nothing: "
		       "%.1f us.\n"
		       "%u passed, %u failed\n",
		       trip / 1e3, n + 1 - failed, failed);
	return !failed;
}

int cli_selftest(struct cli *cli, int argc, char **argv)
{
	int status = CLI_FAILED;
	air_channel *ch;
	air_device *dev;

	argp_parse(&argp, argc, argv, 0, NULL, cli);
	dev = cli_open(cli);
	if (!dev)
		return CLI_NO_DEVICE;
	if (air_channel_create(dev, NULL, &ch) != AIR_OK) {
		fprintf(stderr, "airunner: no channel: %s\n", air_last_error());
		goto close;
	}
	if (cli->json)
		printf("{\"version\": \"%s\", \"reached\": \"%s\",\n  "
		       "\"cases\": [",
		       air_version(), cli_transport(dev));
	else
		explain(dev, ch);
	if (run_cases(cli, ch))
		status = CLI_OK;
	if (air_channel_destroy(ch) != AIR_OK) {
		fprintf(stderr, "airunner: %s\n", air_last_error());
		status = CLI_FAILED;
	}
close:
	if (air_close(dev) != AIR_OK)
		status = CLI_FAILED;
	return status;
}
