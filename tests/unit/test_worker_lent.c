// SPDX-License-Identifier: MIT
/*
 * Rings lent to an executor that drains them itself, as a persistent kernel
 * would: here a thread plays the GPU. It takes what it knows, and gives the
 * ring back for the rest; the client sees one order and one answer each.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/worker_client.h"

#define MAX_DESCS 64

/**
 * struct gpu - the executor, and the device it plays
 * @lent: the device has the ring; atomic
 * @recall: it shall give it back; atomic
 * @idle_ns: it gives it back when nothing came for so long
 * @refuse: ring_attach says no
 * @reluctant: it gives the ring back untouched
 * @paused: it takes nothing for the time being; atomic
 * @word, @stream: what a stream waits on, and until when; atomic
 * @stuck: it does not leave when it is asked to
 * @quiet: it stays away
 * @attached, @ran: how often
 */
struct gpu {
	pthread_t thread;
	struct air_ring ring;
	uint64_t next;
	uint32_t lent, recall, stop;
	uint64_t idle_ns;
	bool refuse, reluctant, stuck, quiet;
	uint32_t paused;
	uint64_t word, stream;
	bool open;
	uint32_t attached, ran, ran_here;
	struct air_ring_return ret;
	uint32_t returned;
	void *desc[MAX_DESCS];
	struct air_wchannel *ch;
};

static struct gpu gpu;

struct air_exec {
	int unused;
};

static struct air_exec the_exec;

static void give_back(bool idle)
{
	gpu.ret.index = gpu.next;
	gpu.ret.idle = idle;
	air_store(&gpu.lent, 0, RELEASE);
	air_store(&gpu.returned, 1, RELEASE);
}

static void drain(void)
{
	uint64_t since = air_now();

	while (!air_load(&gpu.recall, ACQUIRE) &&
	       !air_load(&gpu.stop, ACQUIRE)) {
		struct air_cqe cqe = { .status = AIRUNNER_S_OK };
		struct air_sqe sqe;
		uint32_t id;

		if (air_load(&gpu.paused, ACQUIRE) ||
		    !air_ring_fetch(&gpu.ring, gpu.next, &sqe)) {
			if (air_now() - since > gpu.idle_ns) {
				give_back(true);
				return;
			}
			sched_yield();
			continue;
		}
		id = airunner_sqe_id(sqe.word[0]);
		if (airunner_sqe_opcode(sqe.word[0]) != AIRUNNER_OP_EXEC ||
		    id >= MAX_DESCS || !gpu.desc[id] || gpu.reluctant) {
			give_back(false);
			return;
		}
		cqe.start = air_now();
		air_ring_complete(&gpu.ring, gpu.next, &cqe);
		gpu.next++;
		gpu.ret.completed++;
		gpu.ret.device_ns += 10;
		__atomic_fetch_add(&gpu.ran, 1, __ATOMIC_RELEASE);
		since = air_now();
	}
	give_back(false);
}

static void *device(void *arg)
{
	while (!air_load(&gpu.stop, ACQUIRE)) {
		if (air_load(&gpu.lent, ACQUIRE))
			drain();
		else
			sched_yield();
	}
	return NULL;
}

static air_status gpu_open(const struct air_executor_config *config,
			   struct air_exec **out, struct air_error *e)
{
	*out = &the_exec;
	pthread_create(&gpu.thread, NULL, device, NULL);
	return AIR_OK;
}

static void gpu_close(struct air_exec *ex)
{
	air_store(&gpu.stop, 1, RELEASE);
	pthread_join(gpu.thread, NULL);
}

static void gpu_caps(struct air_exec *ex, struct air_backend_caps *caps)
{
	caps->ops = ~0ull;
}

static air_status gpu_plan(struct air_exec *ex, const struct air_plan *plan,
			   void **priv, uint64_t *workspace,
			   struct air_error *why)
{
	*priv = &gpu;
	return air_fail(why, AIR_OK, "the ring is drained there");
}

static void gpu_unplan(struct air_exec *ex, void *priv)
{
}

static air_status gpu_run(struct air_exec *ex, struct air_work *work)
{
	assert_int_equal(air_load(&gpu.lent, ACQUIRE), 0);
	gpu.ran_here++;
	work->end = air_now();
	return AIR_OK;
}

static unsigned int gpu_poll(struct air_exec *ex)
{
	struct air_ring_return ret;

	if (!air_load(&gpu.returned, ACQUIRE))
		return 0;
	air_store(&gpu.returned, 0, RELAXED);
	ret = gpu.ret;
	air_services.ring_returned(gpu.ch, &ret);
	return 1;
}

static unsigned int gpu_outstanding(struct air_exec *ex)
{
	return air_load(&gpu.lent, RELAXED);
}

static air_status gpu_channel_open(struct air_exec *ex,
				   struct air_wchannel *ch, void **priv)
{
	gpu.ch = ch;
	*priv = ch;
	return AIR_OK;
}

static air_status gpu_desc_set(struct air_exec *ex, void *ch_priv, uint32_t id,
			       void *plan)
{
	/* The ring is never lent while tables change. */
	assert_int_equal(air_load(&gpu.lent, ACQUIRE), 0);
	if (id < MAX_DESCS)
		gpu.desc[id] = plan;
	return AIR_OK;
}

static air_status gpu_buffer_set(struct air_exec *ex, void *ch_priv,
				 uint32_t handle, struct air_wbuffer *buf)
{
	return AIR_OK;
}

static air_status gpu_ring_attach(struct air_exec *ex, void *ch_priv,
				  struct air_ring *ring, uint64_t index)
{
	if (gpu.refuse || gpu.quiet)
		return AIR_BUSY;
	memset(&gpu.ret, 0, sizeof(gpu.ret));
	gpu.ring = *ring;
	gpu.next = index;
	gpu.attached++;
	air_store(&gpu.recall, 0, RELAXED);
	air_store(&gpu.lent, 1, RELEASE);
	return AIR_OK;
}

static void gpu_ring_recall(struct air_exec *ex, void *ch_priv)
{
	air_store(&gpu.recall, 1, RELEASE);
}

static air_status gpu_quiet(struct air_exec *ex, bool on)
{
	assert_int_not_equal(gpu.quiet, on);
	if (on && gpu.stuck)
		return AIR_TIMEOUT;
	gpu.quiet = on;
	air_store(&gpu.recall, on, RELEASE);
	while (on && air_load(&gpu.lent, ACQUIRE))
		sched_yield();
	return AIR_OK;
}

/* Words are used again: there is no telling where one begins. */
#define BASE (UINT64_MAX - 500)

static air_status gpu_handover_open(struct air_exec *ex, struct air_handover *h)
{
	assert_false(gpu.open);
	gpu.open = true;
	gpu.word = BASE;
	h->word = &gpu.word;
	h->base = BASE;
	return AIR_OK;
}

static void gpu_handover_close(struct air_exec *ex, struct air_handover *h)
{
	assert_true(gpu.open);
	gpu.open = false;
	air_store(&gpu.word, air_load(&gpu.stream, ACQUIRE), RELEASE);
}

static air_status gpu_stream_wait(struct air_exec *ex,
				  const struct air_handover *h, uint64_t n,
				  void *stream, struct air_error *e)
{
	if (stream)
		return air_fail(e, AIR_BAD_ARGUMENT, "no such stream");
	air_store(&gpu.stream, BASE + n, RELEASE);
	return AIR_OK;
}

static bool stream_waits(void)
{
	return (int64_t)(air_load(&gpu.word, ACQUIRE) -
			 air_load(&gpu.stream, ACQUIRE)) < 0;
}

static const struct air_executor_ops gpu_ops = {
	.abi = AIR_EXECUTOR_ABI,
	.id = AIRUNNER_EXEC_CUDA_RESIDENT,
	.name = "gpu",
	.open = gpu_open,
	.close = gpu_close,
	.caps = gpu_caps,
	.channel_open = gpu_channel_open,
	.plan = gpu_plan,
	.unplan = gpu_unplan,
	.run = gpu_run,
	.poll = gpu_poll,
	.outstanding = gpu_outstanding,
	.desc_set = gpu_desc_set,
	.buffer_set = gpu_buffer_set,
	.ring_attach = gpu_ring_attach,
	.ring_recall = gpu_ring_recall,
	.quiet = gpu_quiet,
	.handover_open = gpu_handover_open,
	.handover_close = gpu_handover_close,
	.stream_wait = gpu_stream_wait,
};

static const struct air_executor_ops *const executors[] = { &gpu_ops, NULL };
/* And none of a GPU that may be there. */
static const struct air_worker_config ours = { .executors = "gpu,cpu" };

static struct air_worker *w;
static struct client c;

/* Descriptor 1 is the CPU's, 2 the device's. */
static void open_client(bool turns)
{
	struct airunner_desc d = desc_relu(16, AIRUNNER_EXEC_CPU);
	struct client_options o = { .turns = turns };

	client_open(&c, w, &o);
	if (turns)
		return;
	assert_int_equal(client_desc(&c, 1, &d, NULL), AIR_OK);
	d = desc_relu(16, AIRUNNER_EXEC_CUDA_RESIDENT);
	assert_int_equal(client_desc(&c, 2, &d, NULL), AIR_OK);
}

static int set_up(void **state)
{
	memset(&gpu, 0, sizeof(gpu));
	gpu.idle_ns = 200000;
	w = worker_start(&ours, executors);
	open_client(false);
	return 0;
}

static int tear_down(void **state)
{
	client_close(&c, AIR_REMOVE_DRAIN);
	worker_end(w);
	return 0;
}

static struct air_sqe on(uint32_t id)
{
	return sqe_relu(id, 0, c.arena, c.arena + 64);
}

static void test_lent(void **state)
{
	struct air_sqe sqe = on(2);

	for (int i = 0; i < 1000; i++)
		assert_int_equal(client_run(&c, &sqe), AIR_OK);
	assert_int_equal(air_load(&gpu.ran, ACQUIRE), 1000);
	assert_true(gpu.attached >= 1);
	assert_int_equal(gpu.ran_here, 0);
}

/* What is not for it comes back in order, and the ring goes there again. */
static void test_mixed(void **state)
{
	struct air_sqe gpu_sqe = on(2), cpu_sqe = on(1), nop = sqe_nop();
	struct air_sqe bad = sqe_head(77, 0);
	uint64_t index[40];

	for (int round = 0; round < 100; round++) {
		for (int i = 0; i < 40; i++)
			index[i] = client_submit(&c, i % 5 < 2	? &gpu_sqe :
						     i % 5 == 2 ? &cpu_sqe :
						     i % 5 == 3 ? &nop :
								  &bad);
		for (int i = 0; i < 40; i++)
			assert_int_equal(client_wait(&c, index[i]).status,
					 i % 5 == 4 ? AIRUNNER_S_BAD_OPCODE :
						      AIRUNNER_S_OK);
	}
	assert_int_equal(air_load(&gpu.ran, ACQUIRE), 1600);
}

/* A client that sleeps is woken although the device cannot. */
static void test_sleeping_client(void **state)
{
	struct air_sqe sqe = on(2);

	gpu.idle_ns = 50000000;
	for (int i = 0; i < 500; i++)
		assert_int_equal(client_sleep(&c, client_submit(&c, &sqe))
					 .status,
				 AIRUNNER_S_OK);
}

/* Idle, it comes back; the worker sleeps; the next doorbell finds it. */
static void test_parks(void **state)
{
	struct air_sqe sqe = on(2);
	uint64_t end = air_now() + PATIENCE_NS;

	gpu.idle_ns = 1000;
	for (int i = 0; i < 20; i++) {
		assert_int_equal(client_run(&c, &sqe), AIR_OK);
		while (air_load(&w->box.sleep, ACQUIRE) == AIR_AWAKE) {
			assert_true(air_now() < end);
			sched_yield();
		}
		assert_true(air_ring_must_wake(&c.ring, false));
	}
	assert_true(gpu.attached >= 20);
}

/* Run until the device does it, which is soon, as nothing keeps it away. */
static void until_lent(struct air_sqe *sqe)
{
	uint64_t end = air_now() + PATIENCE_NS;
	uint32_t before = air_load(&gpu.ran, ACQUIRE);

	while (air_load(&gpu.ran, ACQUIRE) == before) {
		assert_int_equal(client_run(&c, sqe), AIR_OK);
		assert_true(air_now() < end);
	}
}

/* While it is kept away, run() serves, and then the device does again. */
static void test_quiet(void **state)
{
	struct air_sqe sqe = on(2);
	uint32_t before;

	gpu.idle_ns = 10000000000;
	assert_int_equal(air_worker_quiet_end(w), AIR_BAD_ARGUMENT);
	until_lent(&sqe);
	assert_int_equal(air_worker_quiet_begin(w), AIR_OK);
	assert_int_equal(air_load(&gpu.lent, ACQUIRE), 0);
	assert_int_equal(air_worker_quiet_begin(w), AIR_OK);
	before = air_load(&gpu.ran, ACQUIRE);
	for (int i = 0; i < 50; i++)
		assert_int_equal(client_run(&c, &sqe), AIR_OK);
	/* the inner one */
	assert_int_equal(air_worker_quiet_end(w), AIR_OK);
	for (int i = 0; i < 50; i++)
		assert_int_equal(client_run(&c, &sqe), AIR_OK);
	assert_int_equal(air_load(&gpu.ran, ACQUIRE), before);
	assert_int_equal(gpu.ran_here, 100);
	assert_int_equal(air_worker_quiet_end(w), AIR_OK);
	until_lent(&sqe);
	assert_int_equal(air_worker_quiet_end(w), AIR_BAD_ARGUMENT);
	/* begun anew, perhaps before the worker has seen the end */
	for (int i = 0; i < 100; i++) {
		assert_int_equal(air_worker_quiet_begin(w), AIR_OK);
		assert_int_equal(client_run(&c, &sqe), AIR_OK);
		assert_int_equal(air_load(&gpu.lent, ACQUIRE), 0);
		assert_int_equal(air_worker_quiet_end(w), AIR_OK);
	}
	until_lent(&sqe);
}

/* It cannot leave: nothing has begun, and all goes on. */
static void test_stuck(void **state)
{
	struct air_sqe sqe = on(2);

	gpu.stuck = true;
	assert_int_equal(air_worker_quiet_begin(w), AIR_TIMEOUT);
	assert_int_equal(air_worker_quiet_end(w), AIR_BAD_ARGUMENT);
	until_lent(&sqe);
	gpu.stuck = false;
	assert_int_equal(air_worker_quiet_begin(w), AIR_OK);
	assert_int_equal(air_worker_quiet_end(w), AIR_OK);
}

static void assert_stream_passes(void)
{
	uint64_t end = air_now() + PATIENCE_NS;

	while (stream_waits()) {
		assert_true(air_now() < end);
		sched_yield();
	}
}

static void stream_wait(struct client *of, uint64_t index)
{
	struct air_error e = { "" };
	air_status st;

	while ((st = air_worker_stream_wait(of->ch, index, NULL, &e)) ==
	       AIR_BUSY)
		sched_yield();
	assert_int_equal(st, AIR_OK);
}

/* Whoever runs it, the stream is let on once it has completed. */
static void test_stream(void **state)
{
	struct air_sqe gpu_sqe = on(2), cpu_sqe = on(1), nop = sqe_nop();
	struct air_error e = { "" };

	assert_int_equal(air_worker_handover(c.ch), AIR_OK);
	assert_int_equal(air_worker_handover(c.ch), AIR_OK);
	for (int i = 0; i < 1000; i++) {
		uint64_t index = client_submit(&c, i % 7 == 3 ? &cpu_sqe :
						   i % 7 == 5 ? &nop :
								&gpu_sqe);
		struct air_cqe cqe;

		stream_wait(&c, index);
		if (i % 3 == 0)
			client_wait(&c, index);
		assert_stream_passes();
		if (i % 3) {
			assert_true(client_done(&c, index, &cqe));
			client_wait(&c, index);
		}
		/* no further than has completed */
		assert_true((int64_t)(air_load(&gpu.word, ACQUIRE) -
				      (BASE + index + 1)) <= 0);
	}
	assert_int_equal(air_worker_stream_wait(c.ch, 1000, &e, &e),
			 AIR_BAD_ARGUMENT);
}

/* What makes the worker wait for streams is not done while one waits. */
static void test_put_off(void **state)
{
	struct airunner_desc d = desc_relu(16, AIRUNNER_EXEC_CPU);
	struct airunner_desc_record *record;
	struct air_sqe sqe = on(2), nop = sqe_nop();
	struct air_sqe create = sqe_head(AIRUNNER_OP_DESC_CREATE, 9);
	struct client other;
	uint64_t offset;

	gpu.idle_ns = 10000000000;
	client_open(&other, w, NULL);
	offset = other.size - sizeof(*record);
	record = (struct airunner_desc_record *)((char *)other.region + offset);
	create.word[1] = airunner_ref(0, offset);
	assert_int_equal(air_worker_handover(c.ch), AIR_OK);
	for (uint32_t i = 0; i < 50; i++) {
		uint64_t waited, made, first;
		struct air_cqe cqe;

		air_store(&gpu.paused, 1, RELEASE);
		waited = client_submit(&c, &sqe);
		stream_wait(&c, waited);
		first = client_submit(&other, &nop);
		record->desc = d;
		create.word[0] = airunner_sqe_head(AIRUNNER_OP_DESC_CREATE, 0,
						   0, 9 + i);
		made = client_submit(&other, &create);
		/* the worker comes by, and leaves it where it is */
		client_wait(&other, first);
		for (int n = 0; n < 100; n++) {
			assert_false(client_done(&other, made, &cqe));
			assert_true(stream_waits());
			sched_yield();
		}
		air_store(&gpu.paused, 0, RELEASE);
		assert_int_equal(client_wait(&other, made).status, AIR_OK);
		assert_false(stream_waits());
		client_wait(&c, waited);
	}
	client_close(&other, AIR_REMOVE_DRAIN);
}

/* A channel that ends, drained or not, lets its streams on. */
static void test_stream_of_the_dead(void **state)
{
	struct air_sqe sqe = on(2);

	for (int drop = 0; drop < 2; drop++) {
		assert_int_equal(air_worker_handover(c.ch), AIR_OK);
		air_store(&gpu.paused, 1, RELEASE);
		stream_wait(&c, client_submit(&c, &sqe));
		if (!drop)
			air_store(&gpu.paused, 0, RELEASE);
		client_close(&c, drop ? AIR_REMOVE_DROP : AIR_REMOVE_DRAIN);
		assert_false(stream_waits());
		assert_false(gpu.open);
		air_store(&gpu.paused, 0, RELEASE);
		open_client(false);
	}
}

/* Refused or given back untouched: it runs through run(). */
static void test_not_taken(void **state)
{
	struct air_sqe sqe = on(2);

	gpu.refuse = true;
	for (int i = 0; i < 50; i++)
		assert_int_equal(client_run(&c, &sqe), AIR_OK);
	assert_int_equal(gpu.ran_here, 50);
	gpu.refuse = false;
	gpu.reluctant = true;
	for (int i = 0; i < 50; i++)
		assert_int_equal(client_run(&c, &sqe), AIR_OK);
	assert_int_equal(gpu.ran_here, 100);
	assert_int_equal(air_load(&gpu.ran, ACQUIRE), 0);
}

/* Recalled to drop a buffer, to be removed, to be killed. */
static void test_recalled(void **state)
{
	static float data[64];
	struct air_wbuffer_config config = {
		.host = data,
		.size = sizeof(data),
		.memory = AIR_HOST,
	};
	struct air_sqe sqe = on(2);
	struct air_error e;

	gpu.idle_ns = ~0ull;
	assert_int_equal(client_run(&c, &sqe), AIR_OK);
	assert_int_equal(air_worker_add_buffer(c.ch, 3, &config, &e), AIR_OK);
	assert_int_equal(client_run(&c, &sqe), AIR_OK);
	assert_int_equal(air_worker_drop_buffer(c.ch, 3), AIR_OK);
	await(&c.gone, 1);
	assert_int_equal(client_run(&c, &sqe), AIR_OK);
	assert_int_equal(air_load(&gpu.lent, ACQUIRE), 1);
	air_wchannel_kill(c.ch, "the test says so");
	await(&c.died, 1);
	assert_int_equal(client_run(&c, &sqe), AIR_CHANNEL_DEAD);
	client_close(&c, AIR_REMOVE_DRAIN);

	/* Removed while it is lent and busy. */
	open_client(false);
	sqe = on(2);
	assert_int_equal(client_run(&c, &sqe), AIR_OK);
	assert_int_equal(air_load(&gpu.lent, ACQUIRE), 1);
}

/*
 * A ring that a former worker left, with an answer behind two submissions that
 * were still being published: not lent before that answer has been passed.
 */
static void test_taken_over(void **state)
{
	struct airunner_desc d = desc_relu(16, AIRUNNER_EXEC_CUDA_RESIDENT);
	struct air_cqe ok = { .status = AIRUNNER_S_OK };
	struct air_cqe late = { .status = AIRUNNER_S_TIMEOUT };
	struct air_sqe create = sqe_head(AIRUNNER_OP_DESC_CREATE, 2), sqe;
	struct client_options o = { .order = 3 };
	struct airunner_desc_record *record;
	struct air_sqe nop = sqe_nop();
	uint64_t base = 3 * 8;
	struct air_ring old;
	size_t size;

	client_close(&c, AIR_REMOVE_DRAIN);
	o.region = region_new(3, 65536, &size);
	air_ring_init(&old, o.region, 3);
	for (uint64_t i = base - 8; i < base; i++) {
		air_ring_publish(&old, i, &nop);
		air_ring_complete(&old, i, &ok);
	}
	/* What the device would take for work of its own. */
	sqe = on(2);
	air_ring_publish(&old, base + 2, &sqe);
	air_ring_complete(&old, base + 2, &late);
	old.ctrl->sq_tail = base + 3;
	old.ctrl->cq_head = base;
	old.ctrl->sq_epoch = 1;

	client_open(&c, w, &o);
	record = (void *)((char *)c.region + c.arena);
	record->desc = d;
	create.word[1] = airunner_ref(0, c.arena);
	sqe = on(2);
	air_ring_publish(&c.ring, base + 1, &sqe);
	air_ring_publish(&c.ring, base, &create);
	air_worker_doorbell(c.ch);
	assert_int_equal(client_wait(&c, base).status, AIRUNNER_S_OK);
	assert_int_equal(client_wait(&c, base + 1).status, AIRUNNER_S_OK);
	assert_int_equal(client_run(&c, &sqe), AIR_OK);
	assert_int_equal(client_wait(&c, base + 2).status, AIRUNNER_S_TIMEOUT);
	assert_int_equal(air_load(&gpu.ran, ACQUIRE), 0);
	assert_int_equal(gpu.ran_here, 2);
	for (int i = 0; i < 20; i++)
		assert_int_equal(client_run(&c, &sqe), AIR_OK);
	assert_int_equal(air_load(&gpu.ran, ACQUIRE) + gpu.ran_here, 22);
	assert_true(air_load(&gpu.ran, ACQUIRE) > 0);
}

static air_status give_turn_here(void *arg)
{
	air_wchannel_ready(c.ch, 1000000, AIRUNNER_PRIO_NORMAL);
	return AIR_OK;
}

/* A turn that is over recalls the ring, and what was used is reported. */
static void test_turns(void **state)
{
	struct airunner_desc d = desc_relu(16, AIRUNNER_EXEC_CUDA_RESIDENT);
	struct airunner_desc_record *record;
	struct air_sqe create = sqe_head(AIRUNNER_OP_DESC_CREATE, 2), sqe;
	uint64_t index = 0;

	memset(&gpu, 0, sizeof(gpu));
	gpu.idle_ns = ~0ull;
	w = worker_start(&ours, executors);
	open_client(true);
	record = (void *)((char *)c.region + c.arena);
	record->desc = d;
	create.word[1] = airunner_ref(0, c.arena);
	assert_true(client_try_submit(&c, &create, &index));
	sqe = on(2);
	for (int i = 0; i < 5; i++)
		assert_true(client_try_submit(&c, &sqe, &index));
	assert_int_equal(air_worker_call(w, give_turn_here, NULL), AIR_OK);
	client_wait(&c, index);
	await(&c.turns, 1);
	assert_int_equal(air_load(&gpu.lent, ACQUIRE), 0);
	assert_int_equal(c.completed, 6);
	assert_int_equal(air_load(&gpu.ran, ACQUIRE), 5);
	tear_down(NULL);
}

#define both(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		both(test_lent),
		both(test_mixed),
		both(test_sleeping_client),
		both(test_parks),
		both(test_quiet),
		both(test_stuck),
		both(test_stream),
		both(test_put_off),
		both(test_stream_of_the_dead),
		both(test_not_taken),
		both(test_recalled),
		both(test_taken_over),
		cmocka_unit_test(test_turns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
