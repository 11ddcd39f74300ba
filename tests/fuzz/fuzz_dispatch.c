// SPDX-License-Identifier: MIT
/*
 * What a client can put into slots and arena, against the worker's dispatch.
 *
 * Input: arena bytes (4 KiB), then payloads of submissions, 64 bytes each.
 * Each must be answered exactly once with a status that exists. The executor
 * here touches the ends of every operand it is given, between pages that
 * nobody may touch, and runs the operator itself where it is small.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "ops/cpu.h"
#include "ops/worker/internal.h"
#include "tests/fuzz/fuzz.h"

#define ORDER	5
#define ENTRIES (1u << ORDER)
#define REGION	16384
#define ARENA	4096
#define BUFFER	8192
#define PAGE	4096

#define check(cond)                                                        \
	do {                                                               \
		if (!(cond)) {                                             \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, \
				#cond);                                    \
			abort();                                           \
		}                                                          \
	} while (0)

/* ------------------------------------------------------- probing executor */

struct air_exec {
	struct air_pool *pool;
};

struct probe {
	struct air_cpu_plan *cpu;
	uint64_t elements;
};

static air_status probe_open(const struct air_executor_config *config,
			     struct air_exec **out, struct air_error *e)
{
	static struct air_exec the_exec;

	the_exec.pool = air_pool_create(1);
	*out = &the_exec;
	return AIR_OK;
}

static void probe_close(struct air_exec *ex)
{
	air_pool_destroy(ex->pool);
}

static void probe_caps(struct air_exec *ex, struct air_backend_caps *caps)
{
}

/* Strides of 0 make a few bytes a year's work. */
static uint64_t elements(const struct airunner_desc *d)
{
	uint64_t most = 0;

	for (uint32_t t = 0; t < d->n_tensors; t++) {
		uint64_t n = 1;

		for (uint32_t i = 0; i < d->tensor[t].ndim; i++) {
			uint64_t extent = (uint64_t)d->tensor[t].shape[i];

			if (extent && n > UINT64_MAX / extent)
				return UINT64_MAX;
			n *= extent;
		}
		most = n > most ? n : most;
	}
	return most;
}

static air_status probe_plan(struct air_exec *ex, const struct air_plan *plan,
			     void **priv, uint64_t *workspace,
			     struct air_error *why)
{
	struct probe *p = calloc(1, sizeof(*p));
	air_status st = AIR_OK;

	check(p);
	p->elements = elements(&plan->desc);
	if (plan->op->cpu_plan)
		st = plan->op->cpu_plan(&plan->desc, &p->cpu, why);
	if (st) {
		free(p);
		return st;
	}
	*priv = p;
	return AIR_OK;
}

static void probe_unplan(struct air_exec *ex, void *priv)
{
	struct probe *p = priv;

	if (p->cpu)
		p->cpu->destroy(p->cpu);
	free(p);
}

static char *region, *buffer;

/*
 * An operator that is told to write over the rings may: it is the client's own
 * ring. It then can't be asked to keep the protocol here.
 */
static bool in_rings(const struct air_work *work)
{
	uint64_t start = (uintptr_t)region, end = start + REGION - ARENA;

	for (int i = 0; i < AIRUNNER_MAX_TENSORS; i++) {
		const struct air_extent *x = &work->plan->extent[i];

		if (x->present && x->above && work->addr[i] - x->below < end &&
		    work->addr[i] + x->above > start)
			return true;
	}
	return work->plan->workspace &&
	       work->addr[AIRUNNER_MAX_TENSORS] >= start &&
	       work->addr[AIRUNNER_MAX_TENSORS] < end;
}

static void touch(uint64_t addr)
{
	volatile char *p = (volatile char *)addr;

	*p = *p;
}

static air_status probe_run(struct air_exec *ex, struct air_work *work)
{
	const struct probe *p = work->plan_priv;
	void *operand[AIRUNNER_MAX_TENSORS + 1];
	air_status st = AIR_OK;

	if (in_rings(work))
		goto out;
	for (int i = 0; i < AIRUNNER_MAX_TENSORS; i++) {
		const struct air_extent *x = &work->plan->extent[i];

		if (!x->present || !x->above)
			continue;
		touch(work->addr[i] - x->below);
		touch(work->addr[i] + x->above - 1);
	}
	if (work->plan->workspace)
		touch(work->addr[AIRUNNER_MAX_TENSORS] +
		      work->plan->workspace - 1);
	memcpy(operand, work->addr, sizeof(operand));
	if (p->cpu && p->elements <= 4096)
		st = p->cpu->run(p->cpu, operand, ex->pool);
out:
	work->end = air_now();
	return st;
}

static const struct air_executor_ops probe_ops = {
	.abi = AIR_EXECUTOR_ABI,
	.id = AIRUNNER_EXEC_CPU,
	.name = "probe",
	.open = probe_open,
	.close = probe_close,
	.caps = probe_caps,
	.plan = probe_plan,
	.unplan = probe_unplan,
	.run = probe_run,
};

/* -------------------------------------------------------------- the client */

static struct air_worker *w;
static uint32_t removed, gone;

/* Memory with a page on either side that faults. */
static void *fenced(size_t bytes)
{
	char *p = mmap(NULL, bytes + 2 * PAGE, PROT_NONE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	check(p != MAP_FAILED);
	check(!mprotect(p + PAGE, bytes, PROT_READ | PROT_WRITE));
	return p + PAGE;
}

static void start(void)
{
	struct air_worker_config config = { .executors = "probe" };
	struct air_error e;

	check(!air_worker_create(&config, &w, &e));
	air_worker_add_executor(w, &probe_ops);
	check(!air_worker_start(w, &e));
	region = fenced(REGION);
	buffer = fenced(BUFFER);
}

static void on_gone(void *owner, uint32_t handle, void *host, uint64_t size)
{
	check(handle == 1 && host == buffer && size == BUFFER);
	__atomic_fetch_add(&gone, 1, __ATOMIC_RELEASE);
}

static void on_removed(void *owner)
{
	__atomic_fetch_add(&removed, 1, __ATOMIC_RELEASE);
}

static const struct air_wchannel_ops ops = {
	.buffer_gone = on_gone,
	.removed = on_removed,
};

static struct air_wchannel *open_channel(struct air_ring *ring)
{
	struct air_wchannel_config config = {
		.region = region,
		.size = REGION,
		.order = ORDER,
		.ops = &ops,
	};
	struct air_wbuffer_config mem = {
		.host = buffer,
		.size = BUFFER,
		.memory = AIR_HOST,
	};
	struct air_wchannel *ch;
	struct air_error e;

	memset(region, 0, REGION);
	air_ring_init(ring, region, ORDER);
	check(!air_worker_add_channel(w, &config, &ch, &e));
	check(!air_worker_add_buffer(ch, 1, &mem, &e));
	return ch;
}

static bool exists(enum airunner_status status)
{
	return strcmp(air_status_string((air_status)status),
		      air_status_string((air_status)255));
}

/* Nor may replies be written over the rings, for the same reason. */
static void keep_off_rings(struct air_sqe *sqe)
{
	uint8_t op = airunner_sqe_opcode(sqe->word[0]);

	if (op != AIRUNNER_OP_DESC_CREATE && op != AIRUNNER_OP_MODULE_LOAD &&
	    op != AIRUNNER_OP_FUNCTION_GET)
		return;
	for (int i = 1; i <= (op == AIRUNNER_OP_MODULE_LOAD ? 2 : 1); i++) {
		uint64_t offset = airunner_ref_offset(sqe->word[i]);

		if (airunner_ref_handle(sqe->word[i]) == 0 &&
		    offset < REGION - ARENA)
			sqe->word[i] = airunner_ref(0, offset % ARENA +
							       REGION - ARENA);
	}
}

static void submit(struct air_ring *ring, struct air_wchannel *ch,
		   uint64_t index, const uint8_t *words)
{
	struct air_sqe sqe;
	struct air_cqe cqe;

	memcpy(&sqe, words, sizeof(sqe));
	keep_off_rings(&sqe);
	air_ring_publish(ring, index, &sqe);
	if (air_ring_must_wake(ring, false))
		air_worker_doorbell(ch);
	while (!air_ring_completed(ring, index, &cqe))
		sched_yield();
	check(exists(cqe.status));
	check(cqe.status != AIRUNNER_S_PENDING);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t n = size < ARENA ? size : ARENA;
	struct air_wchannel *ch;
	struct air_ring ring;
	uint64_t index = 0;

	if (!w)
		start();
	removed = gone = 0;
	ch = open_channel(&ring);
	memcpy(region + REGION - ARENA, data, n);
	for (data += n, size -= n; size >= AIRUNNER_SQE_SIZE;
	     data += AIRUNNER_SQE_SIZE, size -= AIRUNNER_SQE_SIZE)
		submit(&ring, ch, index++, data);
	air_worker_remove_channel(ch, AIR_REMOVE_DRAIN);
	while (!air_load(&removed, ACQUIRE))
		sched_yield();
	check(gone == 1);
	return 0;
}

/* ------------------------------------------------------------ made-up input */

static void make_desc(struct airunner_desc *d, uint64_t (*next)(void))
{
	static const int64_t sizes[] = { 0, 1, 2, 3, 4, 8, 16, 33, 1 << 20 };
	bool same = next() % 4, plain = next() % 4;
	const struct air_op *op;

	memset(d, 0, sizeof(*d));
	d->size = sizeof(*d);
	d->op = (uint32_t)(next() % (AIR_OP_COUNT + 1));
	op = air_op_find(d->op);
	d->n_tensors = op && next() % 8 ? op->n_required :
					  (uint32_t)(next() % 6);
	d->executor = (uint32_t)(next() % 8 ? 0 : next() % 5);
	for (uint32_t t = 0; t < d->n_tensors && t < 5; t++) {
		struct airunner_tensor *x = &d->tensor[t];
		int64_t stride = 1;

		if (t && same) {
			*x = d->tensor[0];
			continue;
		}
		x->dtype = plain ? AIRUNNER_F32 : (uint32_t)(next() % 8);
		x->ndim = (uint32_t)(next() % 4);
		for (uint32_t i = x->ndim; i--;) {
			x->shape[i] = sizes[next() % 9];
			x->stride[i] = plain ? stride :
						    (int64_t)(next() % 7) - 3;
			stride *= x->shape[i];
		}
	}
	for (int i = 0; i < AIRUNNER_MAX_ATTRS && next() % 4 == 0; i++) {
		double value = (double)(next() % 5) - 1;

		d->attr[i] = next() % 4;
		if (next() & 1)
			memcpy(&d->attr[i], &value, sizeof(value));
	}
	if (next() % 16 == 0)
		((uint8_t *)d)[next() % sizeof(*d)] ^= 1 << (next() % 8);
}

static uint64_t make_ref(uint64_t (*next)(void))
{
	uint64_t offset = next() % 64 * 64;

	switch (next() % 8) {
	case 0:
		return AIRUNNER_REF_NONE;
	case 1:
		return 0;
	case 2:
		return next();
	case 3:
		return airunner_ref((uint32_t)(next() % 3), next() % REGION);
	case 4:
		return airunner_ref(1, BUFFER - next() % 256);
	default:
		return airunner_ref((uint32_t)(next() % 2), REGION - ARENA +
								    offset);
	}
}

void fuzz_make_input(uint8_t *data, size_t size, uint64_t (*next)(void))
{
	for (size_t i = 0; i + 8 <= size && i < ARENA; i += 8) {
		uint64_t word = next();

		memcpy(data + i, &word, 8);
	}
	for (size_t at = 0; at + 1024 <= size && at < ARENA; at += 1024)
		make_desc((struct airunner_desc *)(data + at), next);
	for (size_t at = ARENA; at + 64 <= size; at += 64) {
		uint64_t *word = (uint64_t *)(data + at);

		for (int i = 1; i < 8; i++)
			word[i] = next() % 16 ? 0 : make_ref(next);
		word[0] = airunner_sqe_head((uint8_t)(next() % 12),
					    (uint8_t)(next() % 4), 0,
					    (uint32_t)(next() % 4));
		if (next() % 3 == 0) {
			memset(word + 1, 0, 56);
			word[0] = airunner_sqe_head(AIRUNNER_OP_DESC_CREATE, 0,
						    0, next() % 4);
			word[1] = airunner_ref(0, REGION - ARENA +
							  next() % 4 * 1024);
		} else if (next() % 2) {
			for (int i = 1; i < 7; i++)
				word[i] = make_ref(next);
			word[0] = airunner_sqe_head(AIRUNNER_OP_EXEC, 0, 0,
						    next() % 4);
			word[7] = 0;
		}
		if (next() % 32 == 0)
			word[next() % 8] = next();
	}
}
