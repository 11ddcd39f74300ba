// SPDX-License-Identifier: MIT
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "libairunner/membarrier.h"
#include "tests/unit/worker_client.h"

/* ---------------------------------------------------------------- worker */

struct air_worker *worker_start(const struct air_worker_config *config,
				const struct air_executor_ops *const *extra)
{
	struct air_worker_config c = { 0 };
	struct air_error e = { "" };
	struct air_worker *w;

	if (config)
		c = *config;
	if (!c.threads)
		c.threads = 1;
	assert_int_equal(air_worker_create(&c, &w, &e), AIR_OK);
	for (; extra && *extra; extra++)
		air_worker_add_executor(w, *extra);
	if (air_worker_start(w, &e))
		fail_msg("worker: %s", e.text);
	return w;
}

void worker_end(struct air_worker *w)
{
	air_worker_stop(w);
	air_worker_destroy(w);
}

void await(const uint32_t *word, uint32_t value)
{
	uint64_t end = air_now() + PATIENCE_NS;

	while (air_load(word, ACQUIRE) < value) {
		if (air_now() > end)
			fail_msg("%u never reached %u", air_load(word, ACQUIRE),
				 value);
		sched_yield();
	}
}

/* ---------------------------------------------------------------- client */

static void count(uint32_t *word)
{
	__atomic_fetch_add(word, 1, __ATOMIC_RELEASE);
}

static void on_gone(void *owner, uint32_t handle, void *host, uint64_t size)
{
	struct client *c = owner;

	air_store(&c->gone_handle, handle, RELEASE);
	count(&c->gone);
}

static void on_dead(void *owner, struct air_wchannel *ch, const char *sentence)
{
	struct client *c = owner;

	count(&c->died);
}

static void on_removed(void *owner)
{
	struct client *c = owner;

	count(&c->removed);
}

static void on_turn_over(void *owner, struct air_wchannel *ch, uint32_t flags,
			 uint64_t device_ns, uint64_t completed)
{
	struct client *c = owner;

	c->device_ns += device_ns;
	c->completed += completed;
	c->turn_flags = flags;
	if (flags)
		count(&c->turns);
}

static const struct air_wchannel_ops plain_ops = {
	.buffer_gone = on_gone,
	.dead = on_dead,
	.removed = on_removed,
};

static const struct air_wchannel_ops turn_ops = {
	.buffer_gone = on_gone,
	.turn_over = on_turn_over,
	.dead = on_dead,
	.removed = on_removed,
};

void *region_new(uint32_t order, size_t arena, size_t *size)
{
	void *region;

	*size = airunner_arena_offset(order) + arena;
	*size = (*size + 4095) & ~4095ul;
	region = mmap(NULL, *size, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(region != MAP_FAILED);
	return region;
}

air_status client_add(struct client *c, struct air_worker *w,
		      const struct client_options *o)
{
	static const struct client_options none;
	struct air_wchannel_config config = { 0 };
	struct air_error e = { "" };

	o = o ? o : &none;
	memset(c, 0, sizeof(*c));
	c->w = w;
	c->order = o->order ? o->order : 6;
	c->asym = o->asym;
	c->region = region_new(c->order, o->arena ? o->arena : 65536, &c->size);
	if (o->region) {
		munmap(c->region, c->size);
		c->region = o->region;
	}
	c->arena = (airunner_arena_offset(c->order) + 63) & ~63ull;
	c->collected = calloc(1, 1u << c->order);
	assert_non_null(c->collected);
	air_ring_init(&c->ring, c->region, c->order);
	if (c->asym)
		c->ring.ctrl->client_flags = AIRUNNER_CLIENT_ASYM;
	config.region = c->region;
	config.size = c->size;
	config.order = c->order;
	config.ops = o->turns ? &turn_ops : &plain_ops;
	config.owner = c;
	config.label = "the test";
	config.best_prio = o->best_prio;
	config.priority = o->priority;
	return air_worker_add_channel(w, &config, &c->ch, &e);
}

void client_open(struct client *c, struct air_worker *w,
		 const struct client_options *o)
{
	assert_int_equal(client_add(c, w, o), AIR_OK);
}

void client_unmap(struct client *c)
{
	munmap(c->region, c->size);
	free(c->collected);
}

void client_close(struct client *c, enum air_remove how)
{
	air_worker_remove_channel(c->ch, how);
	await(&c->removed, 1);
	client_unmap(c);
}

bool client_try_submit(struct client *c, const struct air_sqe *sqe,
		       uint64_t *index)
{
	if (!air_ring_reserve(&c->ring, c->collected, 1, index))
		return false;
	air_ring_publish(&c->ring, *index, sqe);
	if (air_ring_must_wake(&c->ring, c->asym))
		air_worker_doorbell(c->ch);
	return true;
}

uint64_t client_submit(struct client *c, const struct air_sqe *sqe)
{
	uint64_t end = air_now() + PATIENCE_NS, index;

	while (!client_try_submit(c, sqe, &index)) {
		if (air_now() > end)
			fail_msg("the ring stays full");
		sched_yield();
	}
	return index;
}

bool client_done(struct client *c, uint64_t index, struct air_cqe *cqe)
{
	struct air_cqe unused;

	return air_ring_completed(&c->ring, index, cqe ? cqe : &unused);
}

struct air_cqe client_wait(struct client *c, uint64_t index)
{
	uint64_t end = air_now() + PATIENCE_NS;
	struct air_cqe cqe;

	while (!air_ring_completed(&c->ring, index, &cqe)) {
		if (air_now() > end)
			fail_msg("submission %llu is never answered",
				 (unsigned long long)index);
		sched_yield();
	}
	air_ring_collect(&c->ring, c->collected, index);
	return cqe;
}

struct air_cqe client_sleep(struct client *c, uint64_t index)
{
	uint64_t end = air_now() + PATIENCE_NS;
	struct airunner_ctrl *ctrl = c->ring.ctrl;
	struct air_cqe cqe;

	for (;;) {
		uint32_t bell = air_load(&ctrl->cq_bell, ACQUIRE);

		air_ring_arm_waiter(&c->ring);
		if (air_load(&ctrl->sq_flags, RELAXED) & AIRUNNER_SQ_ASYM)
			assert_true(air_membarrier());
		if (air_ring_completed(&c->ring, index, &cqe))
			break;
		if (air_now() > end)
			fail_msg("the wake-up for %llu was lost",
				 (unsigned long long)index);
		air_futex_wait(&ctrl->cq_bell, bell, AIR_LOOK_AGAIN_NS, true);
		if (air_ring_completed(&c->ring, index, &cqe))
			break;
		air_futex_wait(&ctrl->cq_bell, bell, 2 * PATIENCE_NS, true);
	}
	air_ring_collect(&c->ring, c->collected, index);
	return cqe;
}

air_status client_run(struct client *c, const struct air_sqe *sqe)
{
	return (air_status)client_wait(c, client_submit(c, sqe)).status;
}

struct air_sqe sqe_head(uint8_t opcode, uint32_t id)
{
	struct air_sqe sqe = { { airunner_sqe_head(opcode, 0, 0, id) } };

	return sqe;
}

struct air_sqe sqe_nop(void)
{
	return sqe_head(AIRUNNER_OP_NOP, 0);
}

struct air_sqe sqe_relu(uint32_t id, uint32_t handle, uint64_t y, uint64_t x)
{
	struct air_sqe sqe = sqe_head(AIRUNNER_OP_EXEC, id);

	sqe.word[1] = airunner_ref(handle, y);
	sqe.word[2] = airunner_ref(handle, x);
	for (int i = 3; i <= 6; i++)
		sqe.word[i] = AIRUNNER_REF_NONE;
	return sqe;
}

struct airunner_desc desc_relu(int64_t n, uint32_t executor)
{
	struct airunner_desc d = {
		.size = sizeof(d),
		.op = AIR_OP_relu,
		.n_tensors = 2,
		.executor = executor,
	};

	for (int i = 0; i < 2; i++) {
		d.tensor[i].dtype = AIRUNNER_F32;
		d.tensor[i].ndim = 1;
		d.tensor[i].shape[0] = n;
		d.tensor[i].stride[0] = 1;
	}
	return d;
}

air_status client_desc(struct client *c, uint32_t id,
		       const struct airunner_desc *desc,
		       struct airunner_desc_reply *reply)
{
	struct air_sqe sqe = sqe_head(AIRUNNER_OP_DESC_CREATE, id);
	uint64_t offset = c->size - sizeof(struct airunner_desc_record);
	struct airunner_desc_record *record =
		(struct airunner_desc_record *)((char *)c->region + offset);
	air_status st;

	record->desc = *desc;
	memset(&record->reply, 0xaa, sizeof(record->reply));
	sqe.word[1] = airunner_ref(0, offset);
	st = client_run(c, &sqe);
	if (reply)
		*reply = record->reply;
	return st;
}

/* ----------------------------------------------------------------- fakes */

struct fake fakes[FAKES];
struct fake_run fake_runs[65536];
uint32_t fake_n_runs;

struct air_exec {
	unsigned int fake;
};

static struct air_exec exec_of[FAKES] = { { 0 }, { 1 } };

static const struct air_worker_services *services = &air_services;

void fakes_reset(void)
{
	memset(fakes, 0, sizeof(fakes));
	for (int i = 0; i < FAKES; i++)
		fakes[i].fd = -1;
	fake_n_runs = 0;
}

void fake_let(unsigned int fake, uint32_t n)
{
	uint64_t one = 1;

	__atomic_fetch_add(&fakes[fake].allow, n, __ATOMIC_RELEASE);
	if (fakes[fake].fd >= 0)
		assert_int_equal(write(fakes[fake].fd, &one, 8), 8);
}

static air_status open0(const struct air_executor_config *config,
			struct air_exec **out, struct air_error *e)
{
	*out = &exec_of[0];
	return AIR_OK;
}

static air_status open1(const struct air_executor_config *config,
			struct air_exec **out, struct air_error *e)
{
	*out = &exec_of[1];
	return AIR_OK;
}

static void fake_close(struct air_exec *ex)
{
}

static void fake_caps(struct air_exec *ex, struct air_backend_caps *caps)
{
	caps->ops = ~0ull;
	caps->user_kernels = 1;
	caps->device_buffers = 1;
}

static air_status fake_channel_open(struct air_exec *ex,
				    struct air_wchannel *ch, void **priv)
{
	*priv = &fakes[ex->fake];
	count(&fakes[ex->fake].channels);
	return AIR_OK;
}

static void fake_channel_close(struct air_exec *ex, void *priv)
{
	assert_ptr_equal(priv, &fakes[ex->fake]);
	__atomic_fetch_sub(&fakes[ex->fake].channels, 1, __ATOMIC_RELEASE);
}

/* Their address space is the host's, one million further on. */
static air_status fake_map(struct air_exec *ex, struct air_wbuffer *buf)
{
	uint32_t id = AIRUNNER_EXEC_CUDA_LAUNCH + ex->fake;

	if (buf->host)
		buf->addr[id] = (uintptr_t)buf->host + 1000000;
	count(&fakes[ex->fake].buffers);
	return AIR_OK;
}

static void fake_unmap(struct air_exec *ex, struct air_wbuffer *buf)
{
	__atomic_fetch_sub(&fakes[ex->fake].buffers, 1, __ATOMIC_RELEASE);
}

static air_status fake_alloc(struct air_exec *ex, struct air_wbuffer *buf)
{
	buf->addr[AIRUNNER_EXEC_CUDA_LAUNCH] = 0x700000000000;
	buf->addr[AIRUNNER_EXEC_CUDA_RESIDENT] = 0x700000000000;
	count(&fakes[ex->fake].buffers);
	return AIR_OK;
}

static air_status fake_plan(struct air_exec *ex, const struct air_plan *plan,
			    void **priv, uint64_t *workspace,
			    struct air_error *why)
{
	if (fakes[ex->fake].refuse_plans)
		return air_fail(why, AIR_UNSUPPORTED, "fake %u does not want to",
				ex->fake);
	air_fail(why, AIR_OK, "fake %u takes anything", ex->fake);
	*priv = &fakes[ex->fake];
	count(&fakes[ex->fake].plans);
	return AIR_OK;
}

static void fake_unplan(struct air_exec *ex, void *priv)
{
	__atomic_fetch_sub(&fakes[ex->fake].plans, 1, __ATOMIC_RELEASE);
}

static air_status fake_run(struct air_exec *ex, struct air_work *work)
{
	struct fake *f = &fakes[ex->fake];
	struct fake_run *run = &fake_runs[fake_n_runs % 65536];

	if (f->room && f->n_works == f->room)
		return AIR_BUSY;
	assert_true(f->n_works < 4096);
	assert_ptr_equal(work->ch_priv, f);
	run->index = work->index;
	run->fake = ex->fake;
	run->flags = work->flags;
	for (int i = 0; i < FAKES; i++)
		run->beside[i] = fakes[i].n_works;
	count(&fake_n_runs);
	if (work->launch) {
		f->launch = *work->launch;
		memcpy(f->args, work->launch->args, work->launch->arg_bytes);
	}
	f->works[f->n_works++] = work;
	count(&f->started);
	return AIR_PENDING;
}

static void end_work(struct fake *f, uint32_t i)
{
	struct air_work *work = f->works[i];

	memmove(&f->works[i], &f->works[i + 1],
		(f->n_works - i - 1) * sizeof(f->works[0]));
	f->n_works--;
	work->end = services->now();
	services->work_done(work, f->status, f->detail);
	count(&f->ended);
}

static unsigned int fake_poll(struct air_exec *ex)
{
	struct fake *f = &fakes[ex->fake];
	unsigned int n = 0;
	uint64_t seen;

	if (f->fd >= 0)
		while (read(f->fd, &seen, 8) > 0)
			;
	while (f->n_works && f->hold_ns &&
	       services->now() - f->works[0]->start >= f->hold_ns) {
		end_work(f, 0);
		n++;
	}
	while (f->n_works && air_load(&f->allow, ACQUIRE)) {
		__atomic_fetch_sub(&f->allow, 1, __ATOMIC_ACQ_REL);
		end_work(f, f->newest_first ? f->n_works - 1 : 0);
		n++;
	}
	return n;
}

static unsigned int fake_outstanding(struct air_exec *ex)
{
	return fakes[ex->fake].n_works;
}

static int fake_wait_fd(struct air_exec *ex)
{
	return fakes[ex->fake].fd;
}

static air_status fake_module_load(struct air_exec *ex, const void *image,
				   uint64_t size, void **module,
				   struct air_error *e)
{
	if (memcmp(image, "code", 4))
		return air_fail(e, AIR_BAD_ARGUMENT, "that is no code");
	*module = &fakes[ex->fake];
	count(&fakes[ex->fake].modules);
	return AIR_OK;
}

static void fake_module_unload(struct air_exec *ex, void *module)
{
	__atomic_fetch_sub(&fakes[ex->fake].modules, 1, __ATOMIC_RELEASE);
}

static air_status fake_function_get(struct air_exec *ex, void *module,
				    struct airunner_function_record *record,
				    void **function, struct air_error *e)
{
	if (strcmp(record->name, "kernel"))
		return air_fail(e, AIR_BAD_ARGUMENT, "no function %s",
				record->name);
	record->n_params = 2;
	record->param_bytes = 24;
	record->max_threads = 1024;
	record->param[1].offset = 8;
	*function = &fakes[ex->fake].launch;
	return AIR_OK;
}

#define FAKE(n, number)                                     \
	static const struct air_executor_ops fake_ops##n = { \
		.abi = AIR_EXECUTOR_ABI,                    \
		.id = (enum airunner_executor)(number),     \
		.name = "fake" #n,                          \
		.open = open##n,                            \
		.close = fake_close,                        \
		.caps = fake_caps,                          \
		.channel_open = fake_channel_open,          \
		.channel_close = fake_channel_close,        \
		.buffer_map = fake_map,                     \
		.buffer_unmap = fake_unmap,                 \
		.buffer_alloc = fake_alloc,                 \
		.buffer_free = fake_unmap,                  \
		.plan = fake_plan,                          \
		.unplan = fake_unplan,                      \
		.run = fake_run,                            \
		.poll = fake_poll,                          \
		.outstanding = fake_outstanding,            \
		.wait_fd = fake_wait_fd,                    \
		.module_load = fake_module_load,            \
		.module_unload = fake_module_unload,        \
		.function_get = fake_function_get,          \
	}

FAKE(0, AIRUNNER_EXEC_CUDA_LAUNCH);
FAKE(1, AIRUNNER_EXEC_CUDA_RESIDENT);

const struct air_executor_ops *const fake_executors[] = {
	&fake_ops0,
	&fake_ops1,
	NULL,
};
