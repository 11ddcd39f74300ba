// SPDX-License-Identifier: MIT
#include "tests/gpu/server.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ops/tensor.h"
#include "tests/gpu/drive.h"

#define N	   1024
#define APART	   64
#define FLOOD	   256
#define LIMIT_NS   5000000000ull
#define TRICKLE_NS 200000
/* drive_open() has a ring come back, and a kernel end, after 1 ms each. */
#define LEAVES_NS 5000000

static struct drive dr, launch;
static struct air_wbuffer mem;
static struct air_sqe chain, apart[APART];
static struct air_plan adds, multiplies;
static struct air_work product;
static uint64_t product_n;
static pthread_t thread;

/* Asked for, and reached: modes in the low bits, above them a number. */
static atomic_uint want, have;
static _Atomic(struct server_trips *) record;
static struct server_way *way;
static enum server_mode beside;

#define PRODUCT (SERVER_QUIT + 1)
#define MODES	8u

static void fail(const char *what)
{
	printf("STALL: %s: not after %llu s\n", what, LIMIT_NS / 1000000000ull);
	fflush(stdout);
	_Exit(3);
}

/* ------------------------------------------------------------------ plans */

static void matrix(struct airunner_tensor *t, uint32_t dtype, uint32_t ndim,
		   uint64_t n)
{
	*t = (struct airunner_tensor){ .dtype = dtype, .ndim = ndim };
	for (uint32_t i = 0; i < ndim; i++) {
		t->shape[i] = (int64_t)n;
		t->stride[i] = i + 1 < ndim ? (int64_t)n : 1;
	}
}

static void *plan(struct drive *d, const struct airunner_desc *desc,
		  struct air_plan *p)
{
	struct air_error e = { "" };
	uint64_t workspace = 0;
	void *priv = NULL;
	air_status st = air_plan_init(p, desc, &e);

	if (!st)
		st = d->ops->plan(d->ex, p, &priv, &workspace, &e);
	if (!st)
		return priv;
	printf("%s: %d %s\n", air_op_find(desc->op)->name, st, e.text);
	exit(1);
}

static void *plan_add(void)
{
	struct airunner_desc d = {
		.size = sizeof(d),
		.op = AIR_OP_vector_add,
		.n_tensors = 3,
	};

	for (uint32_t i = 0; i < 3; i++)
		matrix(&d.tensor[i], AIRUNNER_F32, 1, N);
	return plan(&dr, &d, &adds);
}

static void *plan_product(uint64_t n)
{
	struct airunner_desc d = {
		.size = sizeof(d),
		.op = AIR_OP_matmul,
		.n_tensors = 3,
	};
	double one = 1;

	for (uint32_t i = 0; i < 3; i++)
		matrix(&d.tensor[i], AIRUNNER_BF16, 2, n);
	d.attr[1] = 1;
	memcpy(&d.attr[2], &one, 8);
	return plan(&launch, &d, &multiplies);
}

static struct air_sqe exec(uint32_t flags, uint64_t y, uint64_t a, uint64_t b)
{
	struct air_sqe s = { { 0 } };

	s.word[0] = airunner_sqe_head(AIRUNNER_OP_EXEC, (uint8_t)flags, 0, 1);
	s.word[1] = airunner_ref(1, y);
	s.word[2] = airunner_ref(1, a);
	s.word[3] = airunner_ref(1, b);
	return s;
}

static void set_up(void)
{
	if (drive_alloc(&dr, &mem, 4 << 20)) {
		puts("no device memory");
		exit(1);
	}
	dr.ops->buffer_set(dr.ex, dr.ch, 1, &mem);
	dr.ops->desc_set(dr.ex, dr.ch, 1, plan_add());
	chain = exec(0, 0, 4096, 8192);
	for (uint32_t i = 0; i < APART; i++)
		apart[i] = exec(AIRUNNER_SQE_UNORDERED, 16384 + i * 4096, 4096,
				8192);
}

/* ----------------------------------------------------------- client, worker */

static void lend(void)
{
	uint64_t limit = drive_now() + LIMIT_NS;

	while (!dr.lent && !drive_attach(&dr)) {
		dr.ops->poll(dr.ex);
		if (drive_now() > limit)
			fail("a kernel to take the ring");
	}
}

static uint64_t submit(const struct air_sqe *sqe)
{
	uint64_t index;

	if (!air_ring_reserve(&dr.ring, dr.collected, 1, &index))
		fail("room in the ring");
	air_ring_publish(&dr.ring, index, sqe);
	return index;
}

static void await(uint64_t index)
{
	uint64_t limit = 0;
	struct air_cqe cqe;

	for (unsigned int spins = 1; !air_ring_completed(&dr.ring, index, &cqe);
	     spins++) {
		if (spins % 1024)
			continue;
		if (!limit)
			limit = drive_now() + LIMIT_NS;
		dr.ops->poll(dr.ex);
		if (!dr.lent)
			lend();
		if (drive_now() > limit)
			fail("a completion");
	}
	air_ring_collect(&dr.ring, dr.collected, index);
	if (cqe.status == AIRUNNER_S_OK)
		return;
	printf("FAIL: a vector_add has status %d\n", (int)cqe.status);
	fflush(stdout);
	_Exit(1);
}

static double trip(void)
{
	struct server_trips *r = atomic_load(&record);
	unsigned int lent = dr.attached;
	uint64_t begin = drive_now();
	double us;

	if (!dr.lent)
		lend();
	await(submit(&chain));
	us = (double)(drive_now() - begin) * 1e-3;
	if (r && r->n < r->room)
		r->us[r->n++] = us;
	if (r)
		r->lent += dr.attached - lent;
	return us;
}

static void flood(void)
{
	struct server_trips *r = atomic_load(&record);
	uint64_t begin = drive_now(), first = 0;

	if (!dr.lent)
		lend();
	for (unsigned int i = 0; i < FLOOD; i++) {
		uint64_t index = submit(&apart[i % APART]);

		first = i ? first : index;
	}
	for (unsigned int i = 0; i < FLOOD; i++)
		await(first + i);
	if (!r)
		return;
	r->operators += FLOOD;
	r->flood_us += (double)(drive_now() - begin) * 1e-3;
}

/* Both ends look after themselves: the ring comes back, the kernel ends. */
static void leave(void)
{
	uint64_t limit = drive_now() + LIMIT_NS, since;

	while (dr.lent) {
		dr.ops->poll(dr.ex);
		if (drive_now() > limit)
			fail("an idle ring back");
	}
	since = drive_now();
	while (drive_now() - since < LEAVES_NS)
		dr.ops->poll(dr.ex);
}

static void step(enum server_mode mode)
{
	static uint64_t next;

	switch (mode) {
	case SERVER_IDLE:
		dr.ops->poll(dr.ex);
		if (drive_now() < next)
			break;
		trip();
		next = drive_now() + TRICKLE_NS;
		break;
	case SERVER_BUSY:
		trip();
		break;
	case SERVER_FLOOD:
		flood();
		break;
	default:
		usleep(50);
	}
}

/* What drive_run() does, or a trip while the product is under way. */
static void multiply(void)
{
	uint64_t begin, limit;
	air_status st;

	if (!product.plan_priv)
		product.plan_priv = plan_product(product_n);
	if (beside == SERVER_PARKED)
		leave();
	for (int i = 0; beside != SERVER_PARKED && i < 100; i++)
		trip();
	begin = product.start = drive_now();
	limit = begin + LIMIT_NS;
	launch.done = 0;
	product.ch = (struct air_wchannel *)(void *)&launch;
	product.ch_priv = launch.ch;
	st = launch.ops->run(launch.ex, &product);
	launch.ops->flush(launch.ex);
	if (st != AIR_PENDING) {
		printf("FAIL: the product has status %d\n", st);
		_Exit(1);
	}
	/* nobody looks for the product's end during a trip: one of the two */
	if (way->trip) {
		while (dr.lent)
			dr.ops->poll(dr.ex);
		trip();
		way->us = (double)(drive_now() - begin) * 1e-3;
	}
	while (!launch.done) {
		launch.ops->poll(launch.ex);
		dr.ops->poll(dr.ex);
		if (drive_now() > limit)
			fail("the product");
	}
	if (!way->trip)
		way->us = (double)(product.end - begin) * 1e-3;
}

static void *serve(void *plugin)
{
	drive_open(&launch, plugin, "cuda-launch");
	drive_open(&dr, plugin, "cuda-resident");
	set_up();
	for (;;) {
		unsigned int asked = atomic_load(&want);
		unsigned int mode = asked % MODES;

		if (asked == atomic_load(&have)) {
			step((enum server_mode)mode);
			continue;
		}
		if (mode == SERVER_PARKED || mode == SERVER_QUIT)
			leave();
		else if (mode == PRODUCT)
			multiply();
		for (int i = 0; mode < SERVER_QUIT && mode && i < 20; i++)
			trip();
		if (mode == SERVER_QUIT)
			break;
		atomic_store(&have, asked);
	}
	dr.ops->buffer_set(dr.ex, dr.ch, 1, NULL);
	dr.ops->buffer_free(dr.ex, &mem);
	drive_close(&dr);
	if (product.plan_priv)
		launch.ops->unplan(launch.ex, product.plan_priv);
	drive_close(&launch);
	atomic_store(&have, atomic_load(&want));
	return NULL;
}

static void ask(unsigned int mode)
{
	unsigned int asked = (atomic_load(&want) / MODES + 1) * MODES + mode;
	uint64_t limit = drive_now() + LIMIT_NS + 2000000000ull;

	atomic_store(&want, asked);
	while (atomic_load(&have) != asked)
		if (drive_now() > limit)
			fail("the executor's thread");
}

void server_start(const char *plugin)
{
	pthread_create(&thread, NULL, serve, (void *)(uintptr_t)plugin);
	ask(SERVER_PARKED);
}

void server_mode(enum server_mode mode)
{
	ask(mode);
	if (mode == SERVER_QUIT)
		pthread_join(thread, NULL);
}

void server_record(struct server_trips *t)
{
	atomic_store(&record, t);
}

void server_product(enum server_mode mode, uint64_t n, uint64_t y, uint64_t a,
		    uint64_t b, struct server_way *out)
{
	/* the thread does nothing with these until it is asked to */
	ask(SERVER_PARKED);
	way = out;
	beside = mode;
	product_n = n;
	product.addr[0] = y;
	product.addr[1] = a;
	product.addr[2] = b;
	product.plan = &multiplies;
	ask(PRODUCT);
}
