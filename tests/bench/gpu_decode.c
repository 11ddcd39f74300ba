// SPDX-License-Identifier: MIT
/*
 * decode_step_us: 100 mixed small operators in order, as a token takes them
 * through a model, by the ring and by a CUDA graph (decode.h). One air_submit()
 * a step; the ring's operators and the graph's kernels work on the same memory
 * and must come to the same token.
 */
#include <math.h>
#include <string.h>
#include <time.h>

#include <airunner.h>
#include <airunner/ops/add.h>
#include <airunner/ops/matmul.h>
#include <airunner/ops/rms_norm.h>
#include <airunner/ops/rope.h>
#include <airunner/ops/silu.h>
#include <airunner/ops/softmax.h>

#include "tests/bench/decode.h"
#include "tests/bench/gpu.h"
#include "tests/bench/session.h"

#define STEPS	4 /* of a round */
#define BUFFERS 9

struct step {
	air_channel *ch;
	struct decode d;
	air_buffer *buffer[BUFFERS];
	air_descriptor *norm, *matmul, *rope, *softmax, *silu, *add;
	struct air_call call[DECODE_STEP];
};

static air_ref import(struct step *s, unsigned int i, void *p, size_t n)
{
	bench_check(air_buffer_import(s->ch, p, n * 2, AIR_DEVICE,
				      &s->buffer[i]),
		    "air_buffer_import");
	return air_buffer_ref(s->buffer[i], 0);
}

static air_tensor_desc tensor(uint32_t ndim, int64_t a, int64_t b, int64_t c)
{
	int64_t shape[3] = { a, b, c };
	air_tensor_desc t;

	bench_check(air_tensor_desc_init(&t, AIR_BF16, ndim, shape, NULL),
		    "air_tensor_desc_init");
	return t;
}

static void describe(struct step *s)
{
	air_tensor_desc row = tensor(2, 1, DECODE_D, 0);
	air_tensor_desc square = tensor(2, DECODE_D, DECODE_D, 0);
	air_tensor_desc gain = tensor(1, DECODE_D, 0, 0);
	air_tensor_desc heads = tensor(2, DECODE_HEADS, DECODE_HEAD, 0);
	air_tensor_desc token = tensor(3, 1, DECODE_HEADS, DECODE_HEAD);
	air_tensor_desc table = tensor(2, 1, DECODE_HEAD / 2, 0);

	bench_check(air_create_rms_norm_descriptor(s->ch, &s->norm, &row, &row,
						   &gain, 1e-5),
		    "rms_norm");
	bench_check(air_create_matmul_descriptor(s->ch, &s->matmul, &row, &row,
						 &square, NULL, NULL, false,
						 true, 1, 0, AIR_ACT_NONE),
		    "matmul");
	bench_check(air_create_rope_descriptor(s->ch, &s->rope, &token, &token,
					       &table, &table, NULL,
					       AIR_ROPE_HALVES),
		    "rope");
	bench_check(air_create_softmax_descriptor(s->ch, &s->softmax, &heads,
						  &heads, -1),
		    "softmax");
	bench_check(air_create_silu_descriptor(s->ch, &s->silu, &row, &row),
		    "silu");
	bench_check(air_create_add_descriptor(s->ch, &s->add, &row, &row, &row),
		    "add");
}

static void prepare(struct step *s)
{
	const size_t matrix = (size_t)DECODE_D * DECODE_D;
	const air_ref none = AIR_NO_REF;
	air_ref scratch = none;
	size_t bytes = 0;
	air_ref x = import(s, 0, s->d.x, DECODE_D);
	air_ref h = import(s, 1, s->d.h, DECODE_D);
	air_ref q = import(s, 2, s->d.q, DECODE_D);
	air_ref t = import(s, 3, s->d.t, DECODE_D);
	air_ref gain = import(s, 4, s->d.gain, DECODE_D);
	air_ref cosines = import(s, 5, s->d.cos, DECODE_HEAD / 2);
	air_ref sines = import(s, 6, s->d.sin, DECODE_HEAD / 2);
	struct air_call *c = s->call;

	import(s, 7, s->d.weights, DECODE_LAYERS * DECODE_MATRICES * matrix);
	bench_check(air_get_matmul_workspace_size(s->matmul, &bytes),
		    "workspace");
	if (bytes > DECODE_SCRATCH)
		bench_fail("matmul wants %zu bytes of workspace", bytes);
	if (bytes)
		scratch = import(s, 8, s->d.scratch, DECODE_SCRATCH / 2);
	for (size_t layer = 0; layer < DECODE_LAYERS; layer++) {
		air_ref w[DECODE_MATRICES];

		for (size_t i = 0; i < DECODE_MATRICES; i++)
			w[i] = air_buffer_ref(s->buffer[7],
					      (layer * DECODE_MATRICES + i) *
						      matrix * 2);
		air_prepare_rms_norm(s->norm, c++, none, h, x, gain);
		air_prepare_matmul(s->matmul, c++, scratch, q, h, w[0], none,
				   none);
		air_prepare_rope(s->rope, c++, none, t, q, cosines, sines,
				 none);
		air_prepare_softmax(s->softmax, c++, none, h, t);
		air_prepare_matmul(s->matmul, c++, scratch, t, h, w[1], none,
				   none);
		air_prepare_add(s->add, c++, none, x, x, t);
		air_prepare_rms_norm(s->norm, c++, none, h, x, gain);
		air_prepare_matmul(s->matmul, c++, scratch, q, h, w[2], none,
				   none);
		air_prepare_silu(s->silu, c++, none, t, q);
		air_prepare_add(s->add, c++, none, x, x, t);
	}
}

static void ring_step(struct step *s)
{
	air_token first;

	bench_check(air_submit(s->ch, s->call, DECODE_STEP, &first),
		    "air_submit");
	session_finish_many(s->ch, first, DECODE_STEP);
}

static void graph_step(struct step *s)
{
	decode_graph(&s->d);
}

static double steps(struct bench_row *row, struct step *s,
		    void (*one)(struct step *s))
{
	/* until a resident kernel has left: it is not the graph's burden */
	struct timespec ts = { .tv_nsec = 3000000 };
	double sum = 0;

	nanosleep(&ts, NULL);
	decode_begin(&s->d);
	one(s);
	for (int i = 0; i < STEPS; i++) {
		uint64_t t = bench_ticks();
		double us;

		one(s);
		us = bench_ticks_ns(bench_ticks() - t) / 1e3;
		bench_tail(row, us);
		sum += us;
	}
	return sum / STEPS;
}

static double ring_steps(struct bench_row *row, void *ctx)
{
	return steps(row, ctx, ring_step);
}

static double graph_steps(struct bench_row *row, void *ctx)
{
	return steps(row, ctx, graph_step);
}

/* bf16 on the way, rounded in different places: the tokens' distance. */
static void compare(struct step *s)
{
	static float a[DECODE_D], b[DECODE_D];
	double off = 0, size = 0;

	decode_begin(&s->d);
	graph_step(s);
	decode_result(&s->d, a);
	decode_begin(&s->d);
	ring_step(s);
	decode_result(&s->d, b);
	for (int i = 0; i < DECODE_D; i++) {
		off += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
		size += (double)a[i] * a[i];
	}
	if (!(size > 0 && off <= 0.03 * 0.03 * size))
		bench_fail(
			"decode step: the ring's token is %g off the graph's",
			sqrt(off / size));
}

void gpu_decode(struct bench *b, air_channel *ch)
{
	static struct step s;
	const struct bench_contender c[] = {
		{ "ring", ring_steps, &s },
		{ "graph", graph_steps, &s },
	};

	if (!bench_wants(b, "decode_step_us"))
		return;
	if (!s.d.x)
		decode_open(&s.d);
	s.ch = ch;
	describe(&s);
	prepare(&s);
	compare(&s);
	bench_run(
		b,
		&(struct bench_spec){
			"decode_step_us", "us",
			"100 small operators in order, 30 of them 1x4096x4096",
			21, 2 },
		c, 2);
	compare(&s);
	bench_check(air_drain(ch, 20000000000ll), "air_drain");
	for (int i = 0; i < BUFFERS; i++)
		if (s.buffer[i])
			bench_check(air_buffer_free(s.buffer[i]),
				    "air_buffer_free");
	memset(s.buffer, 0, sizeof(s.buffer));
	air_destroy_rms_norm_descriptor(s.norm);
	air_destroy_matmul_descriptor(s.matmul);
	air_destroy_rope_descriptor(s.rope);
	air_destroy_softmax_descriptor(s.softmax);
	air_destroy_silu_descriptor(s.silu);
	air_destroy_add_descriptor(s.add);
}
