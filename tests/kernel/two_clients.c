// SPDX-License-Identifier: MIT
/*
 * two_clients: two processes share one worker.
 *
 *	two_clients [WHERE [ROUNDS]]	(/dev/airunner, 10)
 *
 * Each opens WHERE, builds a channel, and runs every one of the first six
 * operators ROUNDS times on random f32 data of random shape, while the other
 * does the same. Outputs are poisoned beforehand and compared with sums made
 * here in double precision. A line an operator and client says how it went.
 */
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <airunner.h>
#include <airunner/ops/copy.h>
#include <airunner/ops/matmul.h>
#include <airunner/ops/reduce_sum.h>
#include <airunner/ops/relu.h>
#include <airunner/ops/softmax.h>
#include <airunner/ops/vector_add.h>

#define CLIENTS 2
/* Emulated and busy machines are slow; this bounds hangs only. */
#define PATIENCE_NS (60 * INT64_C(1000000000))

static int who;
static int ready_fd;
static air_channel *ch;

static void __attribute__((noreturn, format(printf, 1, 2)))
fail(const char *fmt, ...)
{
	va_list ap;

	printf("not ok client %d: ", who);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	/* The parent may be waiting for this client's "r". */
	if (write(ready_fd, "x", 1) != 1)
		printf("not ok client %d: the parent is gone\n", who);
	exit(1);
}

static void must(air_status s, const char *what)
{
	if (s)
		fail("%s: %s (%s)", what, air_status_string(s),
		     air_last_error());
}

/* ---------------------------------------------------------------- data */

static float random_float(void)
{
	return (float)(drand48() * 2 - 1);
}

static int64_t random_size(int64_t max)
{
	return 1 + (int64_t)(drand48() * (double)max);
}

static float *data(const air_tensor *t)
{
	return air_tensor_data(t);
}

/* A new tensor of random numbers. */
static air_tensor random_tensor(uint32_t ndim, const int64_t *shape)
{
	air_tensor t;
	int64_t i;

	must(air_tensor_alloc(ch, AIR_HOST, AIR_F32, ndim, shape, &t),
	     "tensor");
	for (i = 0; i < air_tensor_desc_elements(&t.desc); i++)
		data(&t)[i] = random_float();
	return t;
}

/* One to write to, full of what no operator may leave there. */
static air_tensor poisoned_tensor(uint32_t ndim, const int64_t *shape)
{
	air_tensor t = random_tensor(ndim, shape);
	int64_t i;

	for (i = 0; i < air_tensor_desc_elements(&t.desc); i++)
		data(&t)[i] = NAN;
	return t;
}

static void forget(const air_tensor *t)
{
	must(air_buffer_free(t->buf), "air_buffer_free");
}

/* Scratch memory for one execution, if there is need of any. */
static air_ref workspace(size_t bytes, air_buffer **buf)
{
	*buf = NULL;
	if (!bytes)
		return AIR_NO_REF;
	must(air_buffer_alloc(ch, bytes, AIR_HOST, buf), "workspace");
	return air_buffer_ref(*buf, 0);
}

static void finish(air_token token, air_buffer *scratch)
{
	must(air_wait(ch, token, PATIENCE_NS, NULL), "air_wait");
	if (scratch)
		must(air_buffer_free(scratch), "air_buffer_free");
}

/* Relative to what was summed up; NaN is the worst of all. */
static double error(double got, double want, double magnitude)
{
	double e = fabs(got - want) / (magnitude + 1e-30);

	return isnan(e) ? INFINITY : e;
}

/* ----------------------------------------------------------- operators */

/*
 * Each runs its operator once and returns the worst error. EXECUTE is the part
 * that is the same everywhere: workspace, submit, wait, destroy.
 */
#define EXECUTE(op, d, ...)                                                   \
	do {                                                                  \
		air_buffer *scratch;                                          \
		air_token token;                                              \
		air_ref ws;                                                   \
		size_t bytes;                                                 \
									      \
		must(air_get_##op##_workspace_size(d, &bytes), #op);          \
		ws = workspace(bytes, &scratch);                              \
		must(air_execute_##op(d, ws, __VA_ARGS__, &token), #op);      \
		finish(token, scratch);                                       \
		must(air_destroy_##op##_descriptor(d), #op);                  \
	} while (0)

static double try_copy(void)
{
	int64_t shape[2] = { random_size(40), random_size(70) };
	air_tensor x = random_tensor(2, shape);
	air_tensor y = poisoned_tensor(2, shape);
	air_descriptor *d;
	double worst = 0;
	int64_t i;

	must(air_create_copy_descriptor(ch, &d, &y.desc, &x.desc), "copy");
	EXECUTE(copy, d, air_tensor_ref(&y), air_tensor_ref(&x));
	for (i = 0; i < shape[0] * shape[1]; i++)
		worst = fmax(worst, error(data(&y)[i], data(&x)[i], 1));
	forget(&x);
	forget(&y);
	return worst;
}

static double try_vector_add(void)
{
	int64_t n = random_size(5000), i;
	air_tensor a = random_tensor(1, &n), b = random_tensor(1, &n);
	air_tensor c = poisoned_tensor(1, &n);
	air_descriptor *d;
	double worst = 0;

	must(air_create_vector_add_descriptor(ch, &d, &c.desc, &a.desc,
					      &b.desc),
	     "vector_add");
	EXECUTE(vector_add, d, air_tensor_ref(&c), air_tensor_ref(&a),
		air_tensor_ref(&b));
	for (i = 0; i < n; i++)
		worst = fmax(worst,
			     error(data(&c)[i],
				   (double)data(&a)[i] + (double)data(&b)[i],
				   1));
	forget(&a);
	forget(&b);
	forget(&c);
	return worst;
}

static double try_relu(void)
{
	int64_t n = random_size(5000), i;
	air_tensor x = random_tensor(1, &n), y = poisoned_tensor(1, &n);
	air_descriptor *d;
	double worst = 0;

	must(air_create_relu_descriptor(ch, &d, &y.desc, &x.desc), "relu");
	EXECUTE(relu, d, air_tensor_ref(&y), air_tensor_ref(&x));
	for (i = 0; i < n; i++)
		worst = fmax(worst,
			     error(data(&y)[i],
				   data(&x)[i] > 0 ? data(&x)[i] : 0, 1));
	forget(&x);
	forget(&y);
	return worst;
}

static double try_reduce_sum(void)
{
	int64_t shape[2] = { random_size(40), random_size(200) }, i, j;
	air_tensor x = random_tensor(2, shape), y = poisoned_tensor(1, shape);
	air_descriptor *d;
	double worst = 0;
	int32_t axis = 1;

	must(air_create_reduce_sum_descriptor(ch, &d, &y.desc, &x.desc, &axis,
					      1, false),
	     "reduce_sum");
	EXECUTE(reduce_sum, d, air_tensor_ref(&y), air_tensor_ref(&x));
	for (i = 0; i < shape[0]; i++) {
		double sum = 0, magnitude = 0;

		for (j = 0; j < shape[1]; j++) {
			sum += data(&x)[i * shape[1] + j];
			magnitude += fabsf(data(&x)[i * shape[1] + j]);
		}
		worst = fmax(worst, error(data(&y)[i], sum, magnitude));
	}
	forget(&x);
	forget(&y);
	return worst;
}

static double try_softmax(void)
{
	int64_t shape[2] = { random_size(40), random_size(200) }, i, j;
	air_tensor x = random_tensor(2, shape), y = poisoned_tensor(2, shape);
	air_descriptor *d;
	double worst = 0;

	must(air_create_softmax_descriptor(ch, &d, &y.desc, &x.desc, 1),
	     "softmax");
	EXECUTE(softmax, d, air_tensor_ref(&y), air_tensor_ref(&x));
	for (i = 0; i < shape[0]; i++) {
		const float *row = data(&x) + i * shape[1];
		double sum = 0;

		for (j = 0; j < shape[1]; j++)
			sum += exp(row[j]);
		for (j = 0; j < shape[1]; j++)
			worst = fmax(worst, error(data(&y)[i * shape[1] + j],
						  exp(row[j]) / sum,
						  exp(row[j]) / sum));
	}
	forget(&x);
	forget(&y);
	return worst;
}

/* Batched, with the second operand transposed. */
static double try_matmul(void)
{
	int64_t bs = random_size(3), m = random_size(20), n = random_size(20);
	int64_t k = random_size(60), i, j, p;
	air_tensor a = random_tensor(3, (int64_t[]){ bs, m, k });
	air_tensor b = random_tensor(3, (int64_t[]){ bs, n, k });
	air_tensor y = poisoned_tensor(3, (int64_t[]){ bs, m, n });
	air_descriptor *d;
	double worst = 0;

	must(air_create_matmul_descriptor(ch, &d, &y.desc, &a.desc, &b.desc,
					  NULL, NULL, false, true, 1, 0,
					  AIR_ACT_NONE),
	     "matmul");
	EXECUTE(matmul, d, air_tensor_ref(&y), air_tensor_ref(&a),
		air_tensor_ref(&b), AIR_NO_REF, AIR_NO_REF);
	for (i = 0; i < bs * m; i++) {
		for (j = 0; j < n; j++) {
			const float *row = data(&a) + i * k;
			const float *col = data(&b) + (i / m * n + j) * k;
			double sum = 0, magnitude = 0;

			for (p = 0; p < k; p++) {
				double term = (double)row[p] * col[p];

				sum += term;
				magnitude += fabs(term);
			}
			worst = fmax(worst, error(data(&y)[i * n + j], sum,
						  magnitude));
		}
	}
	forget(&a);
	forget(&b);
	forget(&y);
	return worst;
}

static const struct {
	const char *name;
	double (*run)(void);
	/* A few roundings of f32; sums grow by their terms' magnitude. */
	double tolerance;
} ops[] = {
	{ "copy", try_copy, 0 },
	{ "vector_add", try_vector_add, 2e-7 },
	{ "relu", try_relu, 0 },
	{ "reduce_sum", try_reduce_sum, 2e-6 },
	{ "softmax", try_softmax, 2e-6 },
	{ "matmul", try_matmul, 2e-6 },
};

#define N_OPS (sizeof(ops) / sizeof(ops[0]))

/* ------------------------------------------------------------- clients */

/*
 * Nobody submits before everybody has a channel (a byte to ready_fd, then one
 * from @go), so that the worker has all of them at once.
 */
static void client(const char *where, int rounds, int go)
{
	double worst[N_OPS] = { 0 };
	air_device *dev;
	size_t i;
	char c;
	int r;

	must(air_open(where, NULL, &dev), where);
	must(air_channel_create(dev, NULL, &ch), "air_channel_create");
	printf("client %d: process %d has a channel of %u slots\n", who,
	       getpid(), air_channel_entries(ch));
	fflush(stdout);
	if (write(ready_fd, "r", 1) != 1 || read(go, &c, 1) != 1)
		fail("the other client is gone");
	for (r = 0; r < rounds; r++)
		for (i = 0; i < N_OPS; i++)
			worst[i] = fmax(worst[i], ops[i].run());
	for (i = 0; i < N_OPS; i++) {
		if (!(worst[i] <= ops[i].tolerance))
			fail("%s: error %g, allowed %g", ops[i].name, worst[i],
			     ops[i].tolerance);
		printf("ok client %d: %s, %d times, worst error %.1e\n", who,
		       ops[i].name, rounds, worst[i]);
	}
	must(air_channel_destroy(ch), "air_channel_destroy");
	must(air_close(dev), "air_close");
}

int main(int argc, char **argv)
{
	const char *where = argc > 1 ? argv[1] : "/dev/airunner";
	int rounds = argc > 2 ? atoi(argv[2]) : 10;
	int ready[2], go[2], i, status, failed = 0;
	long seed = (long)time(NULL);
	char c;

	setvbuf(stdout, NULL, _IOLBF, 0);
	alarm(300);
	printf("two_clients: %s, seed %ld\n", where, seed);
	if (pipe(ready) || pipe(go)) {
		perror("pipe");
		return 1;
	}
	for (who = 1; who <= CLIENTS; who++) {
		pid_t pid = fork();

		if (pid < 0) {
			perror("fork");
			return 1;
		}
		if (!pid) {
			close(ready[0]);
			close(go[1]);
			srand48(seed + who);
			ready_fd = ready[1];
			client(where, rounds, go[0]);
			return 0;
		}
	}
	close(ready[1]);
	close(go[0]);
	for (i = 0; i < CLIENTS; i++)
		if (read(ready[0], &c, 1) != 1 || c != 'r')
			failed = 1;
	if (!failed && write(go[1], "gg", CLIENTS) != CLIENTS)
		failed = 1;
	close(go[1]);
	while (wait(&status) > 0)
		if (status)
			failed = 1;
	if (failed)
		printf("not ok two_clients: a client failed\n");
	else
		printf("two_clients: all good\n");
	return failed;
}
