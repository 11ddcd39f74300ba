// SPDX-License-Identifier: MIT
/*
 * Submission, latency, throughput, chains. Ring and peers work on the same
 * memory; whoever ran last in a round is checked by what it left there.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <airunner.h>
#include <airunner/ops/matmul.h>
#include <airunner/ops/softmax.h>
#include <airunner/ops/vector_add.h>

#include "tests/bench/gpu.h"
#include "tests/bench/session.h"

#define ORDER  12
#define MANY   128 /* operators of a graph, outputs of independent ones */
#define BATCH  64
#define WINDOW 16 /* batches that are out */

/**
 * struct subject - an operator, as the ring and as its peers see it
 * @op: directly; @ops: MANY of them, each with an output of its own
 * @call: through the ring; @calls: likewise
 * @outputs: how many of MANY are different
 * @repeats: of a round
 */
struct subject {
	air_channel *ch;
	air_descriptor *d;
	struct direct_op op, ops[MANY];
	struct air_call call, calls[MANY];
	air_buffer *buffers[MANY + 2];
	unsigned int n_buffers, outputs, repeats;
	struct direct_graph *graph1, *graph16, *graph128;
};

/* The memory of all subjects, allocated once: nothing is freed meanwhile. */
static struct {
	size_t bytes;
	char *y, *a, *b;
} pool;

static void settle(void)
{
	/* until a resident kernel has left: it is not the peers' burden */
	struct timespec ts = { .tv_nsec = 3000000 };

	nanosleep(&ts, NULL);
}

/* ----------------------------------------------------------------- checking */

static size_t output_bytes(const struct direct_op *op)
{
	switch (op->kind) {
	case DIRECT_VECTOR_ADD:
		return op->n * 4;
	case DIRECT_SOFTMAX:
		return op->n * op->rows * 4;
	case DIRECT_MATMUL:
		return op->n * op->n * 2;
	default:
		return 0;
	}
}

static float bf16(uint16_t v)
{
	uint32_t bits = (uint32_t)v << 16;
	float f;

	memcpy(&f, &bits, sizeof(f));
	return f;
}

static void check_vector_add(const struct direct_op *op, const float *y)
{
	for (uint64_t i = 0; i < op->n; i++)
		if (y[i] != (float)(i % 1000) + 1)
			bench_fail("vector_add: element %llu is %g",
				   (unsigned long long)i, (double)y[i]);
}

static void check_softmax(const struct direct_op *op, const float *y)
{
	double sum = 0;

	/* a[i] = (i % 13) / 8, so every row begins somewhere else in that */
	for (uint64_t r = 0; r < op->rows; r += op->rows / 8 + 1) {
		sum = 0;
		for (uint64_t i = 0; i < op->n; i++)
			sum += exp((double)((r * op->n + i) % 13) / 8);
		for (uint64_t i = 0; i < op->n; i++) {
			double want =
				exp((double)((r * op->n + i) % 13) / 8) / sum;

			if (fabs((double)y[r * op->n + i] - want) > 1e-5 * want)
				bench_fail("softmax: row %llu element %llu is "
					   "%g, not %g",
					   (unsigned long long)r,
					   (unsigned long long)i,
					   (double)y[r * op->n + i], want);
		}
	}
}

/* A few elements: each needs a row and a column. */
static void check_matmul(const struct direct_op *op, const uint16_t *y)
{
	size_t bytes = op->n * op->n * 2;
	uint16_t *a = malloc(bytes), *b = malloc(bytes);

	if (!a || !b)
		bench_fail("no memory");
	direct_copy_out(a, op->a, bytes);
	direct_copy_out(b, op->b, bytes);
	for (uint64_t k = 0; k < 16; k++) {
		uint64_t row = k * 7919 % op->n, col = k * 104729 % op->n;
		double want = 0, got = (double)bf16(y[row * op->n + col]);

		for (uint64_t i = 0; i < op->n; i++)
			want += (double)bf16(a[row * op->n + i]) *
				(double)bf16(b[i * op->n + col]);
		if (!(fabs(got - want) <= 0.01 * fabs(want) + 0.05))
			bench_fail("matmul: element %llu, %llu is %g, not %g",
				   (unsigned long long)row,
				   (unsigned long long)col, got, want);
	}
	free(a);
	free(b);
}

static void check_output(const struct direct_op *op)
{
	size_t bytes = output_bytes(op);
	void *y = bytes ? malloc(bytes) : NULL;

	if (!bytes)
		return;
	if (!y)
		bench_fail("no memory");
	direct_copy_out(y, op->y, bytes);
	if (op->kind == DIRECT_VECTOR_ADD)
		check_vector_add(op, y);
	else if (op->kind == DIRECT_SOFTMAX)
		check_softmax(op, y);
	else
		check_matmul(op, y);
	free(y);
}

static void poison(const struct direct_op *op)
{
	if (output_bytes(op))
		direct_poison(op->y, output_bytes(op));
}

/* ---------------------------------------------------------------- subjects */

static air_ref import(struct subject *s, void *p, size_t bytes)
{
	air_buffer **buf = &s->buffers[s->n_buffers++];

	bench_check(air_buffer_import(s->ch, p, bytes, AIR_DEVICE, buf),
		    "air_buffer_import");
	return air_buffer_ref(*buf, 0);
}

static void describe_op(struct subject *s)
{
	const struct direct_op *op = &s->op;
	int64_t shape[2] = { (int64_t)op->n, (int64_t)op->n };
	air_tensor_desc t;

	switch (op->kind) {
	case DIRECT_VECTOR_ADD:
		air_tensor_desc_init(&t, AIR_F32, 1, shape, NULL);
		bench_check(air_create_vector_add_descriptor(s->ch, &s->d, &t,
							     &t, &t),
			    "vector_add");
		break;
	case DIRECT_SOFTMAX:
		shape[0] = (int64_t)op->rows;
		air_tensor_desc_init(&t, AIR_F32, 2, shape, NULL);
		bench_check(air_create_softmax_descriptor(s->ch, &s->d, &t, &t,
							  -1),
			    "softmax");
		break;
	case DIRECT_MATMUL:
		air_tensor_desc_init(&t, AIR_BF16, 2, shape, NULL);
		bench_check(air_create_matmul_descriptor(
				    s->ch, &s->d, &t, &t, &t, NULL, NULL, false,
				    false, 1, 0, AIR_ACT_NONE),
			    "matmul");
		break;
	default:
		break;
	}
}

static size_t workspace_of(const struct subject *s)
{
	size_t bytes = 0;

	if (s->op.kind == DIRECT_MATMUL)
		bench_check(air_get_matmul_workspace_size(s->d, &bytes),
			    "workspace");
	else if (s->op.kind == DIRECT_SOFTMAX)
		bench_check(air_get_softmax_workspace_size(s->d, &bytes),
			    "workspace");
	else if (s->op.kind == DIRECT_VECTOR_ADD)
		bench_check(air_get_vector_add_workspace_size(s->d, &bytes),
			    "workspace");
	return bytes;
}

static void prepare(struct subject *s, struct air_call *call, air_ref ws,
		    air_ref y, air_ref a, air_ref b)
{
	switch (s->op.kind) {
	case DIRECT_VECTOR_ADD:
		bench_check(air_prepare_vector_add(s->d, call, ws, y, a, b),
			    "prepare");
		break;
	case DIRECT_SOFTMAX:
		bench_check(air_prepare_softmax(s->d, call, ws, y, a),
			    "prepare");
		break;
	case DIRECT_MATMUL:
		bench_check(air_prepare_matmul(s->d, call, ws, y, a, b,
					       AIR_NO_REF, AIR_NO_REF),
			    "prepare");
		break;
	default:
		air_prepare_nop(call);
	}
}

/* Operands: y, a and b of the pool; inputs are filled for the operator. */
static void subject_open(struct subject *s, air_channel *ch,
			 enum direct_kind kind, uint64_t n, uint64_t rows)
{
	static char *workspace;
	static size_t workspace_size;
	air_ref ref[3] = { AIR_NO_REF, AIR_NO_REF, AIR_NO_REF };
	air_ref ws = AIR_NO_REF;
	size_t bytes, need;

	memset(s, 0, sizeof(*s));
	s->ch = ch;
	s->op = (struct direct_op){ .kind = kind,
				    .n = n,
				    .rows = rows,
				    .y = pool.y,
				    .a = pool.a,
				    .b = pool.b };
	bytes = output_bytes(&s->op);
	s->outputs = 1;
	if (bytes) {
		if (bytes > pool.bytes)
			bench_fail("operand of %zu bytes", bytes);
		s->outputs = pool.bytes / bytes > MANY
				     ? MANY
				     : (unsigned int)(pool.bytes / bytes);
		ref[0] = import(s, pool.y, bytes * s->outputs);
		ref[1] = import(s, pool.a, bytes);
		ref[2] = import(s, pool.b, bytes);
	}
	if (kind == DIRECT_VECTOR_ADD) {
		direct_fill(pool.a, n, 0, 1, 1000);
		direct_fill(pool.b, n, 1, 0, 1);
	} else if (kind == DIRECT_SOFTMAX) {
		direct_fill(pool.a, n * rows, 0, 0.125f, 13);
	} else if (kind == DIRECT_MATMUL) {
		direct_fill_bf16(pool.a, n * n, 1);
		direct_fill_bf16(pool.b, n * n, 2);
	}
	direct_prepare(&s->op);
	describe_op(s);
	need = kind == DIRECT_NOP ? 0 : workspace_of(s);
	if (need > workspace_size) {
		workspace = direct_alloc(need);
		workspace_size = need;
	}
	if (need)
		ws = import(s, workspace, need);
	prepare(s, &s->call, ws, ref[0], ref[1], ref[2]);
	for (unsigned int i = 0; i < MANY; i++) {
		size_t offset = i % s->outputs * bytes;
		air_ref y = ref[0];

		s->ops[i] = s->op;
		if (bytes) {
			s->ops[i].y = pool.y + offset;
			y = air_buffer_ref(s->buffers[0], offset);
		}
		prepare(s, &s->calls[i], ws, y, ref[1], ref[2]);
	}
	if (kind != DIRECT_MATMUL)
		s->graph1 = direct_graph_create(&s->op, 1, false);
}

static void subject_close(struct subject *s)
{
	bench_check(air_drain(s->ch, 20000000000ll), "air_drain");
	for (unsigned int i = 0; i < s->n_buffers; i++)
		bench_check(air_buffer_free(s->buffers[i]), "air_buffer_free");
	if (s->op.kind == DIRECT_VECTOR_ADD)
		air_destroy_vector_add_descriptor(s->d);
	else if (s->op.kind == DIRECT_SOFTMAX)
		air_destroy_softmax_descriptor(s->d);
	else if (s->op.kind == DIRECT_MATMUL)
		air_destroy_matmul_descriptor(s->d);
}

/* ------------------------------------------------------------ one at a time */

static void ring_once(struct subject *s)
{
	session_call(s->ch, &s->call);
}

static void sync_once(struct subject *s)
{
	direct_launch(&s->op);
	direct_sync();
}

static void poll_once(struct subject *s)
{
	direct_launch_poll(&s->op);
}

static void graph_once(struct subject *s)
{
	direct_graph_launch(s->graph1);
	direct_sync();
}

static double latency(struct bench_row *row, struct subject *s,
		      void (*once)(struct subject *s))
{
	double sum = 0;

	settle();
	poison(&s->op);
	for (int i = 0; i < 3; i++)
		once(s);
	for (unsigned int i = 0; i < s->repeats; i++) {
		uint64_t t = bench_ticks();
		double us;

		once(s);
		us = bench_ticks_ns(bench_ticks() - t) / 1e3;
		bench_tail(row, us);
		sum += us;
	}
	return sum / s->repeats;
}

#define LATENCY(name, once)                                                    \
	static double name(struct bench_row *row, void *ctx)                   \
	{                                                                      \
		return latency(row, ctx, once);                                \
	}
LATENCY(ring_latency, ring_once)
LATENCY(sync_latency, sync_once)
LATENCY(poll_latency, poll_once)
LATENCY(graph_latency, graph_once)

static void latency_row(struct bench *b, air_channel *ch, const char *name,
			const char *what, enum direct_kind kind, uint64_t n,
			uint64_t rows, unsigned int rounds,
			unsigned int repeats)
{
	static struct subject s;
	struct bench_contender c[4] = {
		{ "ring", ring_latency, &s },
		{ "launch_sync", sync_latency, &s },
		{ "launch_poll", poll_latency, &s },
		{ "graph1_sync", graph_latency, &s },
	};
	void (*const once[])(struct subject * s) = { ring_once, sync_once,
						     poll_once, graph_once };
	unsigned int count = kind == DIRECT_MATMUL ? 2 : 4;

	if (!bench_wants(b, name))
		return;
	subject_open(&s, ch, kind, n, rows);
	s.repeats = repeats;
	for (unsigned int i = 0; i < count; i++) {
		/* each of them computes the right thing, before any is timed */
		poison(&s.op);
		once[i](&s);
		check_output(&s.op);
	}
	bench_run(b, &(struct bench_spec){ name, "us", what, rounds, 2 }, c,
		  count);
	check_output(&s.op);
	subject_close(&s);
}

/* ------------------------------------------------------------- many at once */

static double ring_independent(struct bench_row *row, void *ctx)
{
	struct subject *s = ctx;
	air_token first[1 << ORDER];
	unsigned int n = 0, done = 0;
	uint64_t t;

	settle();
	poison(&s->op);
	ring_once(s);
	t = bench_ticks();
	for (unsigned int i = 0; i < s->repeats; i += BATCH) {
		bench_check(air_submit(s->ch, &s->calls[i % MANY], BATCH,
				       &first[n++]),
			    "air_submit");
		/* collected as they come, some behind */
		if (n - done > WINDOW)
			session_finish_many(s->ch, first[done++], BATCH);
	}
	session_finish_many(s->ch, first[done], (n - done) * BATCH);
	return bench_ticks_ns(bench_ticks() - t) / 1e3 / s->repeats;
}

static double launch_many(struct bench_row *row, void *ctx)
{
	struct subject *s = ctx;
	uint64_t t;

	settle();
	poison(&s->op);
	direct_launch(&s->op);
	direct_sync();
	t = bench_ticks();
	for (unsigned int i = 0; i < s->repeats; i++)
		direct_launch(&s->ops[i % MANY]);
	direct_sync();
	return bench_ticks_ns(bench_ticks() - t) / 1e3 / s->repeats;
}

static double graphs(struct subject *s, struct direct_graph *g,
		     unsigned int nodes, bool update)
{
	uint64_t t;

	settle();
	poison(&s->op);
	direct_graph_launch(g);
	direct_sync();
	t = bench_ticks();
	for (unsigned int i = 0; i < s->repeats; i += nodes) {
		if (update)
			direct_graph_update(g);
		direct_graph_launch(g);
	}
	direct_sync();
	return bench_ticks_ns(bench_ticks() - t) / 1e3 / s->repeats;
}

static double graph16(struct bench_row *row, void *ctx)
{
	return graphs(ctx, ((struct subject *)ctx)->graph16, 16, false);
}

static double graph128(struct bench_row *row, void *ctx)
{
	return graphs(ctx, ((struct subject *)ctx)->graph128, 128, false);
}

static double graph128_updated(struct bench_row *row, void *ctx)
{
	return graphs(ctx, ((struct subject *)ctx)->graph128, 128, true);
}

static void independent_open(struct subject *s, air_channel *ch, uint64_t n)
{
	subject_open(s, ch, DIRECT_VECTOR_ADD, n, 0);
	for (unsigned int i = 0; i < MANY; i++)
		s->calls[i].flags = AIR_CALL_UNORDERED;
	/* what small ones cost is told by many: the first wait for the bus */
	s->repeats = n > 100000 ? 128 : n > 4096 ? 512 : 4096;
}

/* @shared: NULL, or a channel for several callers to compare with */
static void independent_row(struct bench *b, air_channel *ch,
			    air_channel *shared, const char *name, uint64_t n)
{
	static struct subject s, many;
	struct bench_contender c[6] = {
		{ "ring", ring_independent, &s },
		{ "launch", launch_many, &s },
		{ "graph128", graph128, &s },
		{ "graph16", graph16, &s },
		{ "graph128_updated", graph128_updated, &s },
		{ "ring_shared", ring_independent, &many },
	};

	if (!bench_wants(b, name))
		return;
	independent_open(&s, ch, n);
	if (shared)
		independent_open(&many, shared, n);
	s.graph16 = direct_graph_create(s.ops, 16, false);
	s.graph128 = direct_graph_create(s.ops, 128, false);
	bench_run(b,
		  &(struct bench_spec){ name, "us",
					"independent operators, back to back",
					15, 2 },
		  c, shared ? 6 : 5);
	for (unsigned int i = 0; i < s.outputs; i++)
		check_output(&s.ops[i]);
	if (shared)
		subject_close(&many);
	subject_close(&s);
}

/* ------------------------------------------------------ one after the other */

/* y += b, MANY times a repeat: begins at 0, so that y counts them. */
static void chain_begin(struct subject *s)
{
	settle();
	direct_fill(s->op.y, s->op.n, 0, 0, 1);
}

static void chain_check(const struct subject *s, unsigned int times)
{
	float y[1024];

	direct_copy_out(y, s->op.y, sizeof(y));
	for (int i = 0; i < 1024; i++)
		if (y[i] != (float)times)
			bench_fail("chain of %u: element %d is %g", times, i,
				   (double)y[i]);
}

#define CHAINS 4

static double ring_chain(struct bench_row *row, void *ctx)
{
	struct subject *s = ctx;
	air_token first[CHAINS];
	uint64_t t;

	chain_begin(s);
	session_call(s->ch, &s->calls[0]);
	t = bench_ticks();
	for (unsigned int i = 0; i < CHAINS; i++)
		bench_check(air_submit(s->ch, s->calls, MANY, &first[i]),
			    "air_submit");
	session_finish_many(s->ch, first[0], CHAINS * MANY);
	t = bench_ticks() - t;
	chain_check(s, CHAINS * MANY + 1);
	return bench_ticks_ns(t) / 1e3 / (CHAINS * MANY);
}

static double launch_chain(struct bench_row *row, void *ctx)
{
	struct subject *s = ctx;
	uint64_t t;

	chain_begin(s);
	direct_launch(&s->ops[0]);
	direct_sync();
	t = bench_ticks();
	for (unsigned int i = 0; i < CHAINS * MANY; i++)
		direct_launch(&s->ops[i % MANY]);
	direct_sync();
	t = bench_ticks() - t;
	chain_check(s, CHAINS * MANY + 1);
	return bench_ticks_ns(t) / 1e3 / (CHAINS * MANY);
}

static double graph_chain(struct subject *s, struct direct_graph *g,
			  unsigned int nodes, bool update)
{
	uint64_t t;

	chain_begin(s);
	direct_launch(&s->ops[0]);
	direct_sync();
	t = bench_ticks();
	for (unsigned int i = 0; i < CHAINS * MANY; i += nodes) {
		if (update)
			direct_graph_update(g);
		direct_graph_launch(g);
	}
	direct_sync();
	t = bench_ticks() - t;
	chain_check(s, CHAINS * MANY + 1);
	return bench_ticks_ns(t) / 1e3 / (CHAINS * MANY);
}

static double graph16_chain(struct bench_row *row, void *ctx)
{
	return graph_chain(ctx, ((struct subject *)ctx)->graph16, 16, false);
}

static double graph128_chain(struct bench_row *row, void *ctx)
{
	return graph_chain(ctx, ((struct subject *)ctx)->graph128, 128, false);
}

static double graph128_chain_updated(struct bench_row *row, void *ctx)
{
	return graph_chain(ctx, ((struct subject *)ctx)->graph128, 128, true);
}

static void chain_row(struct bench *b, air_channel *ch)
{
	const struct bench_spec spec = {
		"chain128_vector_add_1024_us_per_op",
		"us",
		"128 operators, each on the result of the one before",
		15,
		2,
	};
	static struct subject s;
	const struct bench_contender c[] = {
		{ "ring", ring_chain, &s },
		{ "launch", launch_chain, &s },
		{ "graph128", graph128_chain, &s },
		{ "graph16", graph16_chain, &s },
		{ "graph128_updated", graph128_chain_updated, &s },
	};
	air_ref y, ones;

	if (!bench_wants(b, spec.name))
		return;
	subject_open(&s, ch, DIRECT_VECTOR_ADD, 1024, 0);
	y = air_buffer_ref(s.buffers[0], 0);
	ones = air_buffer_ref(s.buffers[2], 0);
	for (unsigned int i = 0; i < MANY; i++) {
		s.ops[i].y = s.ops[i].a = s.op.y;
		prepare(&s, &s.calls[i], AIR_NO_REF, y, y, ones);
	}
	s.graph16 = direct_graph_create(s.ops, 16, true);
	s.graph128 = direct_graph_create(s.ops, 128, true);
	bench_run(b, &spec, c, 5);
	subject_close(&s);
}

/* --------------------------------------------------------------- submission */

#define BURST 256

static double ring_submit(struct subject *s, unsigned int batch)
{
	air_token first[BURST];
	unsigned int n = 0;
	uint64_t t;

	settle();
	ring_once(s);
	t = bench_ticks();
	for (unsigned int i = 0; i < BURST; i += batch)
		bench_check(air_submit(s->ch, &s->calls[i % MANY], batch,
				       &first[n++]),
			    "air_submit");
	t = bench_ticks() - t;
	session_finish_many(s->ch, first[0], BURST);
	return bench_ticks_ns(t) / BURST;
}

static double submit_single(struct bench_row *row, void *ctx)
{
	return ring_submit(ctx, 1);
}

static double submit_batch(struct bench_row *row, void *ctx)
{
	return ring_submit(ctx, BATCH);
}

static double submit_launch(struct bench_row *row, void *ctx)
{
	struct subject *s = ctx;
	uint64_t t;

	settle();
	sync_once(s);
	t = bench_ticks();
	for (unsigned int i = 0; i < BURST; i++)
		direct_launch(&s->op);
	t = bench_ticks() - t;
	direct_sync();
	return bench_ticks_ns(t) / BURST;
}

static double submit_graph(struct bench_row *row, void *ctx)
{
	struct subject *s = ctx;
	uint64_t t;

	settle();
	graph_once(s);
	t = bench_ticks();
	for (unsigned int i = 0; i < BURST; i++)
		direct_graph_launch(s->graph1);
	t = bench_ticks() - t;
	direct_sync();
	return bench_ticks_ns(t) / BURST;
}

static void submit_row(struct bench *b, air_channel *ch, air_channel *shared)
{
	const struct bench_spec spec = {
		"submit_ns",
		"ns",
		"processor time to hand over vector_add(1024)",
		31,
		2,
	};
	static struct subject s, many;
	const struct bench_contender c[] = {
		{ "ring", submit_single, &s },
		{ "launch", submit_launch, &s },
		{ "ring_batch64", submit_batch, &s },
		{ "graph1", submit_graph, &s },
		{ "ring_shared", submit_single, &many },
		{ "ring_shared_batch64", submit_batch, &many },
	};

	if (!bench_wants(b, spec.name))
		return;
	subject_open(&s, ch, DIRECT_VECTOR_ADD, 1024, 0);
	subject_open(&many, shared, DIRECT_VECTOR_ADD, 1024, 0);
	poison(&s.op);
	bench_run(b, &spec, c, 6);
	check_output(&s.op);
	subject_close(&many);
	subject_close(&s);
}

void gpu_rows(struct bench *b, air_device *dev, air_executor executor)
{
	struct air_channel_options o = {
		.size = sizeof(o),
		.order = ORDER,
		.executor = executor,
	};
	air_channel *ch, *shared;
	char name[64];

	/*
	 * The resident executor is measured as users get it: it takes what is
	 * smaller than a launch is worth, and leaves the rest to cuda-launch.
	 */
	if (executor == AIR_EXEC_CUDA_RESIDENT)
		o.executor = AIR_EXEC_ANY;

	if (!pool.y) {
		pool.bytes = 1ull << 28; /* 2^26 elements */
		pool.y = direct_alloc(pool.bytes);
		pool.a = direct_alloc(pool.bytes);
		pool.b = direct_alloc(pool.bytes);
	}
	bench_check(air_channel_create(dev, &o, &shared), "air_channel_create");
	o.flags = AIR_CHANNEL_SINGLE_CALLER;
	bench_check(air_channel_create(dev, &o, &ch), "air_channel_create");
	submit_row(b, ch, shared);
	latency_row(b, ch, "rtt_nop_us", "submit, worker, completion",
		    DIRECT_NOP, 0, 0, 31, 50);
	latency_row(b, ch, "rtt_vector_add_1024_us", "1024 elements",
		    DIRECT_VECTOR_ADD, 1024, 0, 31, 50);
	latency_row(b, ch, "rtt_softmax_64x1024_us", "64 rows of 1024",
		    DIRECT_SOFTMAX, 1024, 64, 31, 50);
	latency_row(b, ch, "rtt_softmax_8192x4096_us", "8192 rows of 4096",
		    DIRECT_SOFTMAX, 4096, 8192, 15, 10);
	latency_row(b, ch, "rtt_matmul_bf16_256_us", "256 x 256 x 256",
		    DIRECT_MATMUL, 256, 0, 31, 50);
	independent_row(b, ch, shared, "independent_vector_add_1024_us_per_op",
			1024);
	chain_row(b, ch);
	gpu_decode(b, ch);
	latency_row(b, ch, "large_vector_add_2p26_us", "2^26 elements",
		    DIRECT_VECTOR_ADD, 1ull << 26, 0, 21, 10);
	latency_row(b, ch, "matmul_bf16_8192_us", "8192 x 8192 x 8192",
		    DIRECT_MATMUL, 8192, 0, 15, 5);
	for (unsigned int k = 0; k <= 26; k += 2) {
		snprintf(name, sizeof(name), "size_vector_add_2p%u_us", k);
		latency_row(b, ch, name, "one at a time", DIRECT_VECTOR_ADD,
			    1ull << k, 0, 11, k > 20 ? 10 : 30);
	}
	for (unsigned int k = 0; k <= 20; k += 4) {
		snprintf(name, sizeof(name),
			 "size_independent_vector_add_2p%u_us_per_op", k);
		independent_row(b, ch, NULL, name, 1ull << k);
	}
	bench_check(air_channel_destroy(ch), "air_channel_destroy");
	bench_check(air_channel_destroy(shared), "air_channel_destroy");
}
