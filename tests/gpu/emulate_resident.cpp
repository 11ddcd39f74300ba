// SPDX-License-Identifier: MIT
/*
 * The resident kernel, emulated (emulate.h), with this program as its host:
 * order, completions, refusals, runs, shares, recall, idling, parking.
 */
#include "tests/gpu/emulate.h"

#include "ops/worker/resident/resident.cu"

#include "tests/gpu/emulate_bodies.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libairunner/ring.h"

#define LEADERS	 2
#define BLOCKS	 4
#define ORDER	 6
#define CELLS	 4096
#define LIMIT_NS 60000000000ull

thread_local emu_block *emu;

static void start(unsigned int low, unsigned int high)
{
	emu_block *b = (emu_block *)((uint64_t)high << 32 | low);

	b->entry(b->arg);
	b->ended[b->current] = true;
	_longjmp(b->scheduler, 1);
}

void emu_run(uint32_t index, void (*entry)(void *), void *arg)
{
	emu_block *b = new emu_block();
	uint32_t left = EMU_THREADS, rounds = 0;

	emu = b;
	b->index = index;
	b->entry = entry;
	b->arg = arg;
	for (uint32_t i = 0; i < EMU_THREADS; i++) {
		b->stack[i] = (char *)malloc(EMU_STACK);
		getcontext(&b->start[i]);
		b->start[i].uc_stack.ss_sp = b->stack[i];
		b->start[i].uc_stack.ss_size = EMU_STACK;
		b->start[i].uc_link = NULL;
		makecontext(&b->start[i], (void (*)(void))start, 2,
			    (unsigned int)(uint64_t)b,
			    (unsigned int)((uint64_t)b >> 32));
	}
	while (left) {
		left = 0;
		for (volatile uint32_t i = 0; i < EMU_THREADS; i++) {
			if (b->ended[i])
				continue;
			left++;
			b->current = i;
			if (_setjmp(b->scheduler))
				continue;
			if (b->begun[i])
				_longjmp(b->fibre[i], 1);
			b->begun[i] = true;
			setcontext(&b->start[i]);
		}
		/* other blocks want the processor, too */
		if (++rounds % 8 == 0)
			sched_yield();
	}
	for (uint32_t i = 0; i < EMU_THREADS; i++)
		free(b->stack[i]);
	delete b;
}

/* ------------------------------------------------------------- the machine */

static air_res_host host;
static air_res_job job;
static air_res_state state;
static uint64_t next_of[AIR_RES_MAX_BLOCKS];
static air_res_channel channels[2];
static air_res_params params;
static uint8_t tag[AIR_RES_LEADERS];
static pthread_t thread[BLOCKS];
static bool running;

static void kernel(void *)
{
	air_resident(params);
}

static void *block_main(void *arg)
{
	emu_run((uint32_t)(uintptr_t)arg, kernel, NULL);
	return NULL;
}

static void launch(uint64_t idle_ns, uint64_t park_ns)
{
	memset(&job, 0, sizeof(job));
	memset(&state, 0, sizeof(state));
	host.stop = 0;
	params.host = (uint64_t)&host;
	params.channels = (uint64_t)channels;
	params.job = (uint64_t)&job;
	params.next = (uint64_t)next_of;
	params.state = (uint64_t)&state;
	params.idle_ns = idle_ns;
	params.park_ns = park_ns;
	params.leaders = LEADERS;
	params.mhz = 1000;
	memcpy(params.tag, tag, sizeof(tag));
	for (uintptr_t i = 0; i < BLOCKS; i++)
		pthread_create(&thread[i], NULL, block_main, (void *)i);
	running = true;
}

static void join(void)
{
	for (int i = 0; i < BLOCKS; i++)
		pthread_join(thread[i], NULL);
	running = false;
}

/* -------------------------------------------------------------- its clients */

struct client {
	air_ring ring;
	uint8_t collected[1 << ORDER];
	uint64_t published;
	uint64_t plans[16];
	air_res_buffer buffers[4];
	uint64_t *cells;
	uint32_t leader;
};

static air_res_plan plan_add, plan_sum, plan_big, plan_product;
static client clients[2];

static void make_plan(air_res_plan *p, uint32_t op, uint32_t tensors,
		      uint64_t n, uint64_t n_out, uint32_t tiles)
{
	memset(p, 0, sizeof(*p));
	p->op = op;
	p->variant = 1;
	p->tiles = tiles;
	for (uint32_t i = 0; i < AIRUNNER_MAX_TENSORS; i++) {
		p->extent[i].above =
			i >= tensors ? AIR_RES_ABSENT : 8 * (i ? n : n_out);
		p->extent[i].align_mask = 7;
		p->extent[i].in_place = i == 1;
	}
	memcpy(p->params, &n, sizeof(n));
}

static void make_client(client *c, uint32_t place)
{
	uint64_t size = airunner_arena_offset(ORDER);
	void *region = aligned_alloc(4096, (size + 4095) & ~4095ull);

	memset(region, 0, size);
	memset(c, 0, sizeof(*c));
	air_ring_init(&c->ring, region, ORDER);
	c->cells = (uint64_t *)calloc(CELLS, 8);
	c->plans[1] = (uint64_t)&plan_add;
	c->plans[2] = (uint64_t)&plan_sum;
	c->plans[3] = (uint64_t)&plan_big;
	c->plans[4] = (uint64_t)&plan_product;
	/* wants the same place near at hand */
	c->plans[12] = (uint64_t)&plan_product;
	c->buffers[1].addr = (uint64_t)c->cells;
	c->buffers[1].size = CELLS * 8;
	channels[place].sq = (uint64_t)c->ring.sq;
	channels[place].cq = (uint64_t)c->ring.cq;
	channels[place].plans = (uint64_t)c->plans;
	channels[place].buffers = (uint64_t)c->buffers;
	channels[place].n_plans = 16;
	channels[place].n_buffers = 4;
	channels[place].order = ORDER;
	c->leader = place;
}

static void fail(const char *what, uint64_t a, uint64_t b)
{
	printf("FAIL %s: %llu, expected %llu\n", what, (unsigned long long)a,
	       (unsigned long long)b);
	fflush(stdout);
	_exit(1);
}

static void expect(const char *what, uint64_t a, uint64_t b)
{
	if (a != b)
		fail(what, a, b);
}

static uint64_t deadline(void)
{
	return gpu_now() + LIMIT_NS;
}

static uint64_t publish(client *c, air_sqe *sqe)
{
	uint64_t index, limit = deadline();

	while (!air_ring_reserve(&c->ring, c->collected, 1, &index)) {
		sched_yield();
		if (gpu_now() > limit)
			fail("room in the ring", 0, 1);
	}
	air_ring_publish(&c->ring, index, sqe);
	c->published = index + 1;
	return index;
}

/* y = a + b on cells from the given ones on; @timeout_ms: 0: none */
static uint64_t submit_timed(client *c, uint32_t id, uint32_t flags,
			     uint16_t timeout_ms, uint64_t y, uint64_t a,
			     uint64_t b)
{
	air_sqe sqe = {};

	sqe.word[0] = airunner_sqe_head(AIRUNNER_OP_EXEC, (uint8_t)flags,
					timeout_ms, id);
	sqe.word[1] = airunner_ref(1, y * 8);
	sqe.word[2] = airunner_ref(1, a * 8);
	sqe.word[3] = id == 2 ? 0 : airunner_ref(1, b * 8);
	return publish(c, &sqe);
}

static uint64_t submit(client *c, uint32_t id, uint32_t flags, uint64_t y,
		       uint64_t a, uint64_t b)
{
	return submit_timed(c, id, flags, 0, y, a, b);
}

static air_cqe wait_for(client *c, uint64_t index)
{
	uint64_t limit = deadline();
	air_cqe cqe;

	while (!air_ring_completed(&c->ring, index, &cqe)) {
		sched_yield();
		if (gpu_now() > limit)
			fail("completion of", index, index);
	}
	air_ring_collect(&c->ring, c->collected, index);
	return cqe;
}

static void attach(client *c, uint64_t index)
{
	store_sys(&host.index[c->leader], airunner_word(index, tag[c->leader]));
	store_sys(&host.attach[c->leader],
		  airunner_word(c->leader, tag[c->leader]));
}

static uint64_t returned(client *c, uint32_t want)
{
	air_res_mailbox *m = &host.mailbox[c->leader];
	uint64_t limit = deadline(), r;

	while (airunner_word_lap(r = load_sys(&m->reason)) != tag[c->leader]) {
		sched_yield();
		if (gpu_now() > limit)
			fail("the ring's return, reason", 0, want);
	}
	expect("reason of the return", airunner_payload(r), want);
	tag[c->leader] = (uint8_t)air_res_next_tag(tag[c->leader]);
	return airunner_payload(load_sys(&m->stopped));
}

static void recall(client *c)
{
	store_sys(&host.recall[c->leader], airunner_word(1, tag[c->leader]));
}

/* ------------------------------------------------------------------ the tests
 */

/* Each operator adds to what the one before it has written. */
static void chain(client *c, int n)
{
	uint64_t first = c->published;
	int taken = 0;

	c->cells[0] = 0;
	c->cells[1] = 1;
	for (int i = 0; i < n; i++) {
		submit(c, 1, 0, 0, 0, 1);
		/* collect half a ring behind */
		if (i >= 32) {
			expect("status", wait_for(c, first + taken).status, 0);
			taken++;
		}
	}
	for (; taken < n; taken++)
		expect("status", wait_for(c, first + taken).status, 0);
	expect("sum of the chain", c->cells[0], (uint64_t)n);
}

/* Unordered work fills cells; an ordered sum must see all of them. */
static void runs(client *c, int rounds, uint32_t seed)
{
	for (int r = 0; r < rounds; r++) {
		uint64_t first = c->published, sum;
		uint32_t n = (seed = seed * 1103515245 + 12345) >> 8;

		n = n % 45 + 1;
		for (uint32_t i = 0; i < n; i++)
			c->cells[100 + i] = 0;
		for (uint32_t i = n; i < 64; i++)
			c->cells[100 + i] = 7;
		c->cells[1] = (uint64_t)r + 1;
		c->cells[2] = 0;
		for (uint32_t i = 0; i < n; i++)
			submit(c, 1, AIRUNNER_SQE_UNORDERED, 100 + i, 1, 2);
		sum = submit(c, 2, 0, 3, 100, 0);
		/* and one that may overtake the sum */
		submit(c, 1, AIRUNNER_SQE_UNORDERED, 4, 1, 2);
		for (uint64_t i = first; i <= sum + 1; i++)
			expect("status in a run", wait_for(c, i).status, 0);
		expect("sum of a run", c->cells[3],
		       (uint64_t)n * (r + 1) + (64 - n) * 7);
		expect("what overtook", c->cells[4], (uint64_t)r + 1);
	}
}

static void refusals(client *c)
{
	air_cqe cqe;

	cqe = wait_for(c, submit(c, 1, 0, 0, CELLS, 1));
	expect("status beyond the buffer", cqe.status, AIRUNNER_S_BAD_RANGE);
	expect("its operand", cqe.detail, 2);

	air_sqe sqe = {};
	sqe.word[0] = airunner_sqe_head(AIRUNNER_OP_EXEC, 0, 0, 1);
	sqe.word[1] = airunner_ref(1, 0);
	sqe.word[2] = airunner_ref(1, 4);
	sqe.word[3] = airunner_ref(1, 8);
	cqe = wait_for(c, publish(c, &sqe));
	expect("status, unaligned", cqe.status, AIRUNNER_S_BAD_ALIGN);
	sqe.word[2] = airunner_ref(1, 8);
	sqe.word[4] = airunner_ref(1, 8);
	cqe = wait_for(c, publish(c, &sqe));
	expect("status, too many", cqe.status, AIRUNNER_S_BAD_RESERVED);
	expect("its operand", cqe.detail, 4);
	sqe.word[4] = 0;
	sqe.word[7] = 1;
	cqe = wait_for(c, publish(c, &sqe));
	expect("status, argument", cqe.status, AIRUNNER_S_BAD_RESERVED);
	expect("its word", cqe.detail, 7);

	air_sqe nop = {};
	nop.word[0] = airunner_sqe_head(AIRUNNER_OP_NOP, 0, 0, 0);
	expect("nop", wait_for(c, publish(c, &nop)).status, 0);
}

/* An operator that all helpers have a share of. */
static void shares(client *c)
{
	for (int i = 0; i < 1024; i++) {
		c->cells[1000 + i] = (uint64_t)i;
		c->cells[2040 + i] = 3;
	}
	expect("status, shared",
	       wait_for(c, submit(c, 3, 0, 3070, 1000, 2040)).status, 0);
	for (int i = 0; i < 1024; i++)
		expect("shared", c->cells[3070 + i], (uint64_t)i + 3);
}

/*
 * Products, small operators between them: a matrix may be read before its turn,
 * what it is multiplied by may not, and a matrix that has just been written not
 * either.
 */
static void products(client *c)
{
	const uint32_t x = 10, one = 20, y = 1000, m = 2000;
	const int rounds = 9, columns = 512, k = EMU_GEMV_K;
	uint64_t want[512], *cells = c->cells, first, shadow[4];

	for (int i = 0; i < k; i++)
		shadow[i] = cells[x + i] = (uint64_t)i + 2;
	cells[one] = 1;
	for (int i = 0; i < columns * k; i++)
		cells[m + i] = (uint64_t)i % 97;

	const int corner = 300 * k; /* of a column that a helper has */
	uint64_t added = 0, read;

	/* all of them are there before the first is taken */
	recall(c);
	expect("recalled", returned(c, AIR_RES_RECALLED), c->published);
	first = c->published;
	for (int r = 0; r < rounds; r++) {
		for (int i = 0; i < 4; i++)
			submit(c, 1, 0, x, x, one);
		shadow[0] += 4;
		if (r % 3 == 2) {
			submit(c, 1, 0, m + corner, m + corner, one);
			added++;
		}
		submit(c, 4, 0, y, x, m);
		submit(c, 1, 0, x + 1, x + 1, y + columns - 1);
		for (int i = 0; i < columns; i++) {
			want[i] = 0;
			for (int j = 0; j < k; j++) {
				const int at = i * k + j;

				want[i] += shadow[j] *
					   ((uint64_t)at % 97 +
					    (at == corner ? added : 0));
			}
		}
		shadow[1] += want[columns - 1];
	}
	attach(c, first);
	for (uint64_t i = first; i < c->published; i++)
		expect("status, products", wait_for(c, i).status, 0);
	for (int i = 0; i < columns; i++)
		expect("product", cells[y + i], want[i]);
	expect("what the products add up to", cells[x + 1], shadow[1]);
	read = __atomic_load_n(&emu_gemv_ahead, __ATOMIC_RELAXED);
	if (!read ||
	    read > (uint64_t)(rounds - 1 - rounds / 3) * (BLOCKS - LEADERS))
		fail("shares that began ahead", read, rounds);
}

/*
 * Products in a row of which the one in the middle cannot be posted ahead: it
 * has a time-out, or its descriptor is not at hand.
 */
static void products_between(client *c, bool timed)
{
	const uint32_t x = 10, y = 1000, m = 2000;
	uint64_t first;

	recall(c);
	expect("recalled", returned(c, AIR_RES_RECALLED), c->published);
	first = c->published;
	for (int r = 0; r < 6; r++) {
		submit(c, 4, 0, y, x, m);
		if (timed)
			submit_timed(c, 4, 0, 60000, y, x, m);
		else
			submit(c, 12, 0, y, x, m);
		submit(c, 4, 0, y, x, m);
	}
	attach(c, first);
	for (uint64_t i = first; i < c->published; i++)
		expect("status, product between", wait_for(c, i).status, 0);
}

/* What was passed on long ago, with the same number, gives nobody a ring. */
static void old_words(client *c, client *d)
{
	attach(d, d->published);
	chain(d, 10);
	store_sys(&state.attach[c->leader],
		  airunner_word(c->leader, tag[c->leader]));
	chain(d, 70);
	expect("rings attached", state.attached, 1);
}

/* Things a leader does not do: the ring comes back at that index. */
static void foreign(client *c)
{
	uint64_t before, at;

	for (int kind = 0; kind < 4; kind++) {
		before = submit(c, 1, 0, 0, 0, 1);
		switch (kind) {
		case 0: /* a descriptor of another executor */
			at = submit(c, 5, 0, 0, 0, 1);
			break;
		case 1: { /* an unknown buffer */
			air_sqe sqe = {};

			sqe.word[0] =
				airunner_sqe_head(AIRUNNER_OP_EXEC, 0, 0, 1);
			sqe.word[1] = sqe.word[3] = airunner_ref(1, 0);
			sqe.word[2] = airunner_ref(2, 0);
			at = publish(c, &sqe);
			break;
		}
		case 2: /* overlapping, not in place */
			at = submit(c, 3, 0, 0, 1, 2000);
			break;
		default: {
			air_sqe sqe = {};

			sqe.word[0] = airunner_sqe_head(AIRUNNER_OP_DESC_CREATE,
							0, 0, 9);
			at = publish(c, &sqe);
		}
		}
		expect("where it came back", returned(c, AIR_RES_FOREIGN), at);
		expect("before it", wait_for(c, before).status, 0);
		/* the host answers that one */
		air_cqe cqe = {};
		cqe.status = AIRUNNER_S_BAD_ID;
		air_ring_complete(&c->ring, at, &cqe);
		wait_for(c, at);
		attach(c, at + 1);
		chain(c, 3);
	}
}

int main(void)
{
	client *c = &clients[0], *d = &clients[1];
	const uint64_t second = 1000000000ull;

	setvbuf(stdout, NULL, _IOLBF, 0);
	make_plan(&plan_add, AIR_OP_add, 3, 1, 1, 1);
	make_plan(&plan_sum, AIR_OP_reduce_sum, 2, 64, 1, 1);
	make_plan(&plan_big, AIR_OP_add, 3, 1024, 1024, BLOCKS);
	make_plan(&plan_product, AIR_OP_matmul, 3, EMU_GEMV_K, 512, BLOCKS);
	plan_product.gemv = 1;
	plan_product.extent[2].above = 8 * 512 * EMU_GEMV_K;
	((air_matmul_params *)plan_product.params)->n = 512;
	memset(tag, 1, sizeof(tag));
	make_client(c, 0);
	make_client(d, 1);

	launch(100 * second, 100 * second);
	attach(c, 0);
	chain(c, 200);
	puts("ok chain");
	refusals(c);
	puts("ok refusals");
	shares(c);
	puts("ok shares");
	products(c);
	products_between(c, false);
	products_between(c, true);
	puts("ok products");
	foreign(c);
	puts("ok foreign");
	runs(c, 12, 1);
	puts("ok runs");
	recall(c);
	expect("recalled", returned(c, AIR_RES_RECALLED), c->published);
	old_words(c, d);
	puts("ok old words");
	attach(c, c->published);
	chain(c, 70);
	chain(d, 70);
	runs(d, 3, 2);
	runs(c, 3, 3);
	puts("ok two rings");
	/* the kernel stops with rings attached: both come back */
	store_sys(&host.stop, 1);
	expect("stopped", returned(c, AIR_RES_RECALLED), c->published);
	expect("stopped", returned(d, AIR_RES_RECALLED), d->published);
	join();
	puts("ok stop");
	/* it comes again, and ends by itself once nothing comes */
	attach(c, c->published);
	launch(second / 5, second / 5);
	chain(c, 20);
	expect("idle", returned(c, AIR_RES_IDLE), c->published);
	join();
	puts("ok idle and park");
	puts("all ok");
	return 0;
}
