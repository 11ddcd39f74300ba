// SPDX-License-Identifier: MIT
#include <airunner.h>
#include <airunner/ops/vector_add.h>

#include "tests/bench/bench.h"
#include "tests/bench/session.h"

#define FINISH_NS 20000000000ull

void bench_check(air_status status, const char *what)
{
	const char *sentence = air_last_error();

	if (status != AIR_OK)
		bench_fail("%s: %s", what,
			   *sentence ? sentence : air_status_string(status));
}

void session_open(struct session *s, uint32_t order, uint64_t spin_ns)
{
	struct air_device_options dev = {
		.size = sizeof(dev),
		.threads = 1,
		.spin_ns = spin_ns,
		.executors = "cpu",
	};
	struct air_channel_options ch = { .size = sizeof(ch),
					  .order = order,
					  .flags = AIR_CHANNEL_SINGLE_CALLER };

	/* The worker's thread inherits this. */
	bench_pin(bench_cpu(1));
	bench_check(air_open("inproc:", &dev, &s->dev), "air_open");
	bench_pin(bench_cpu(0));
	bench_check(air_channel_create(s->dev, &ch, &s->ch),
		    "air_channel_create");
}

void session_close(struct session *s)
{
	bench_check(air_channel_destroy(s->ch), "air_channel_destroy");
	bench_check(air_close(s->dev), "air_close");
}

air_channel *session_shared(struct session *s, uint32_t order)
{
	struct air_channel_options o = { .size = sizeof(o), .order = order };
	air_channel *ch;

	bench_check(air_channel_create(s->dev, &o, &ch), "air_channel_create");
	return ch;
}

/* Ends the program when @token has not completed for too long. */
static void pending(air_token token, uint32_t *polls, uint64_t *limit)
{
	if (++*polls % 65536)
		return;
	if (!*limit)
		*limit = bench_now() + FINISH_NS;
	else if (bench_now() > *limit)
		bench_fail("token %llu has not completed in 20 s",
			   (unsigned long long)token);
}

void session_finish(air_channel *ch, air_token token)
{
	uint64_t limit = 0;
	uint32_t polls = 0;
	air_status status;

	while ((status = air_poll(ch, token, NULL)) == AIR_PENDING)
		pending(token, &polls, &limit);
	if (status != AIR_OK)
		bench_check(status, "operator");
}

void session_finish_many(air_channel *ch, air_token first, uint32_t n)
{
	uint64_t limit = 0;
	uint32_t polls = 0, done;
	air_status status;

	while ((status = air_poll_many(ch, first, n, NULL, &done)) ==
	       AIR_PENDING) {
		first += done;
		n -= done;
		pending(first, &polls, &limit);
	}
	if (status != AIR_OK)
		bench_check(status, "operator");
}

void session_call(air_channel *ch, const struct air_call *call)
{
	air_token token;
	air_status status = air_submit(ch, call, 1, &token);

	if (status != AIR_OK)
		bench_check(status, "air_submit");
	session_finish(ch, token);
}

void adder_create(struct adder *x, air_channel *ch, uint64_t n)
{
	int64_t shape = (int64_t)n;
	air_tensor_desc t;

	x->n = n;
	bench_check(air_tensor_desc_init(&t, AIR_F32, 1, &shape, NULL),
		    "air_tensor_desc_init");
	bench_check(air_create_vector_add_descriptor(ch, &x->d, &t, &t, &t),
		    "air_create_vector_add_descriptor");
	for (int i = 0; i < 3; i++) {
		bench_check(air_buffer_alloc(ch, n ? n * sizeof(float) : 1,
					     AIR_HOST, &x->buf[i]),
			    "air_buffer_alloc");
		x->ref[i] = air_buffer_ref(x->buf[i], 0);
	}
	x->c = air_buffer_data(x->buf[0]);
	x->a = air_buffer_data(x->buf[1]);
	x->b = air_buffer_data(x->buf[2]);
	for (uint64_t i = 0; i < n; i++) {
		x->a[i] = (float)(i % 1000);
		x->b[i] = 1;
	}
	bench_check(air_prepare_vector_add(x->d, &x->call, AIR_NO_REF,
					   x->ref[0], x->ref[1], x->ref[2]),
		    "air_prepare_vector_add");
}

void adder_destroy(struct adder *x)
{
	for (int i = 0; i < 3; i++)
		bench_check(air_buffer_free(x->buf[i]), "air_buffer_free");
	bench_check(air_destroy_vector_add_descriptor(x->d),
		    "air_destroy_vector_add_descriptor");
}

void adder_poison(struct adder *x)
{
	for (uint64_t i = 0; i < x->n; i++)
		x->c[i] = -1;
}

void adder_check(const struct adder *x)
{
	for (uint64_t i = 0; i < x->n; i++)
		if (x->c[i] != (float)(i % 1000) + 1)
			bench_fail("vector_add: element %llu of %llu is %g",
				   (unsigned long long)i,
				   (unsigned long long)x->n, (double)x->c[i]);
}
