// SPDX-License-Identifier: MIT
/*
 * vector_add of 0 to 10^7 elements through the ring, one at a time ("ring")
 * and sixteen in flight ("ring_pipelined"), against a call of the very function
 * that the worker's executor calls ("direct"). One thread computes in all
 * cases.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <airunner.h>

#include "ops/cpu.h"
#include "ops/op.h"
#include "tests/bench/cpu.h"
#include "tests/bench/session.h"

#define IN_FLIGHT 16
#define ELEMENTS_A_ROUND 1000000u

struct operators {
	struct session s;
	struct adder add;
	struct air_cpu_plan *plan;
	struct air_call calls[IN_FLIGHT];
	unsigned int repeats;
};

static double finish(struct operators *x, uint64_t t, unsigned int n)
{
	double us = bench_ticks_ns(t) / 1e3 / n;

	adder_check(&x->add);
	return us;
}

static double ring(struct bench_row *row, void *ctx)
{
	struct operators *x = ctx;
	uint64_t t;

	session_call(x->s.ch, &x->add.call);
	adder_poison(&x->add);
	session_call(x->s.ch, &x->add.call);
	t = bench_ticks();
	for (unsigned int i = 0; i < x->repeats; i++)
		session_call(x->s.ch, &x->add.call);
	return finish(x, bench_ticks() - t, x->repeats);
}

static double ring_pipelined(struct bench_row *row, void *ctx)
{
	struct operators *x = ctx;
	unsigned int batches = (x->repeats + IN_FLIGHT - 1) / IN_FLIGHT;
	air_token first, last = 0;
	uint64_t t;

	adder_poison(&x->add);
	session_call(x->s.ch, &x->add.call);
	t = bench_ticks();
	for (unsigned int i = 0; i < batches; i++) {
		bench_check(air_submit(x->s.ch, x->calls, IN_FLIGHT, &first),
			    "air_submit");
		for (unsigned int k = 0; last && k < IN_FLIGHT; k++)
			session_finish(x->s.ch, last + k);
		last = first;
	}
	for (unsigned int k = 0; k < IN_FLIGHT; k++)
		session_finish(x->s.ch, last + k);
	return finish(x, bench_ticks() - t, batches * IN_FLIGHT);
}

static double direct(struct bench_row *row, void *ctx)
{
	struct operators *x = ctx;
	void *operand[AIRUNNER_MAX_TENSORS + 1] = { x->add.c, x->add.a,
						    x->add.b };
	uint64_t t;

	adder_poison(&x->add);
	if (x->plan->run(x->plan, operand, NULL))
		bench_fail("vector_add refuses to run");
	t = bench_ticks();
	for (unsigned int i = 0; i < x->repeats; i++)
		x->plan->run(x->plan, operand, NULL);
	return finish(x, bench_ticks() - t, x->repeats);
}

static void plan_direct(struct operators *x)
{
	const struct air_op *op = air_op_find(AIR_OP_vector_add);
	struct airunner_desc d = {
		.size = sizeof(d),
		.op = AIR_OP_vector_add,
		.n_tensors = 3,
	};
	struct air_error e;

	for (int i = 0; i < 3; i++) {
		d.tensor[i].dtype = AIRUNNER_F32;
		d.tensor[i].ndim = 1;
		d.tensor[i].shape[0] = (int64_t)x->add.n;
		d.tensor[i].stride[0] = 1;
	}
	if (op->cpu_plan(&d, &x->plan, &e))
		bench_fail("vector_add: %s", e.text);
}

void cpu_operators(struct bench *b)
{
	static const uint32_t sizes[] = { 0,	 1,	 10,	  100,	  1000,
					  10000, 100000, 1000000, 10000000 };
	static struct operators x;
	char name[64], what[64];

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		const struct bench_contender c[] = {
			{ "ring", ring, &x },
			{ "direct", direct, &x },
			{ "ring_pipelined", ring_pipelined, &x },
		};
		uint32_t n = sizes[i];

		snprintf(name, sizeof(name), "operator_vector_add_%u_us", n);
		snprintf(what, sizeof(what), "%u elements", n);
		if (!bench_wants(b, name))
			continue;
		session_open(&x.s, 0, SPIN_NS);
		adder_create(&x.add, x.s.ch, n);
		plan_direct(&x);
		for (int k = 0; k < IN_FLIGHT; k++)
			x.calls[k] = x.add.call;
		x.repeats = ELEMENTS_A_ROUND / (n ? n : 1);
		if (x.repeats > 320)
			x.repeats = 320;
		if (x.repeats < 2)
			x.repeats = 2;
		bench_run(b,
			  &(struct bench_spec){ name, "us", what,
						n > 100000 ? 15 : 51, 2 },
			  c, 3);
		x.plan->destroy(x.plan);
		adder_destroy(&x.add);
		session_close(&x.s);
	}
}
