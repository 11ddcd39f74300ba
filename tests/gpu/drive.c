// SPDX-License-Identifier: MIT
#include "tests/gpu/drive.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

struct drive_cuda drive_cuda;

/* Times as many as AIRUNNER_TEST_PATIENCE says: tools make GPUs slow. */
#define LIMIT_NS 20000000000ull

static uint64_t limit_ns(void)
{
	const char *patience = getenv("AIRUNNER_TEST_PATIENCE");
	int times = patience ? atoi(patience) : 1;

	return LIMIT_NS * (uint64_t)(times > 0 ? times : 1);
}

uint64_t drive_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

static void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static void say(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fputs("  [executor] ", stdout);
	vprintf(fmt, ap);
	putchar('\n');
	va_end(ap);
}

static void done(struct air_work *work, air_status status, uint32_t detail)
{
	struct drive *d = (struct drive *)(void *)work->ch;

	if (status && !d->status)
		d->status = status;
	d->start = work->start;
	d->end = work->end;
	d->done++;
}

static void returned(struct air_wchannel *ch, const struct air_ring_return *ret)
{
	struct drive *d = (struct drive *)(void *)ch;

	d->next = ret->index;
	d->lent = false;
}

static bool block_begin(void)
{
	return true;
}

static void block_end(void)
{
}

static const struct air_worker_services services = {
	.work_done = done,
	.block_begin = block_begin,
	.block_end = block_end,
	.ring_returned = returned,
	.now = drive_now,
	.log = say,
};

static void find(void *lib, const char *name, void *where)
{
	*(void **)where = dlsym(lib, name);
	if (!*(void **)where) {
		printf("libcuda has no %s\n", name);
		exit(1);
	}
}

static void find_cuda(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW);

	if (!lib) {
		puts("skip: no libcuda");
		exit(77);
	}
	find(lib, "cuMemcpyHtoD_v2", &drive_cuda.memcpy_htod);
	find(lib, "cuMemcpyDtoH_v2", &drive_cuda.memcpy_dtoh);
	find(lib, "cuMemcpyDtoDAsync_v2", &drive_cuda.memcpy_dtod_async);
	find(lib, "cuMemsetD8_v2", &drive_cuda.memset_d8);
	find(lib, "cuStreamCreate", &drive_cuda.stream_create);
	find(lib, "cuStreamSynchronize", &drive_cuda.stream_sync);
	find(lib, "cuEventCreate", &drive_cuda.event_create);
	find(lib, "cuEventRecord", &drive_cuda.event_record);
	find(lib, "cuEventSynchronize", &drive_cuda.event_sync);
	find(lib, "cuEventElapsedTime", &drive_cuda.event_elapsed);
	find(lib, "cuModuleLoadData", &drive_cuda.module_load);
	find(lib, "cuModuleGetFunction", &drive_cuda.module_function);
	find(lib, "cuLaunchKernel", &drive_cuda.launch);
}

static void open_ring(struct drive *d);

void drive_open(struct drive *d, const char *plugin, const char *executor)
{
	struct air_executor_config config = { .spin_ns = 20000,
					      .park_ns = 1000000 };
	const struct air_executor_ops *const *list;
	struct air_error e = { "" };
	air_executors_fn fn;
	void *so = dlopen(plugin, RTLD_NOW);

	memset(d, 0, sizeof(*d));
	if (!so) {
		printf("%s\n", dlerror());
		exit(1);
	}
	*(void **)&fn = dlsym(so, "air_executors");
	for (list = fn(&services); *list; list++)
		if (!strcmp((*list)->name, executor))
			d->ops = *list;
	if (!d->ops) {
		printf("no executor %s in %s\n", executor, plugin);
		exit(1);
	}
	if (d->ops->open(&config, &d->ex, &e)) {
		printf("skip: %s\n", e.text);
		exit(77);
	}
	find_cuda();
	if (d->ops->channel_open(d->ex, (struct air_wchannel *)(void *)d,
				 &d->ch)) {
		puts("channel_open failed");
		exit(1);
	}
	if (d->ops->ring_attach)
		open_ring(d);
}

/* ----------------------------------------------------------------- the ring */

static void fail(const char *what)
{
	printf("%s: not after %llu s\n", what,
	       (unsigned long long)(limit_ns() / 1000000000ull));
	fflush(stdout);
	_Exit(3);
}

static void open_ring(struct drive *d)
{
	uint64_t size = (airunner_arena_offset(DRIVE_ORDER) + 4095) & ~4095ull;

	d->region = (struct air_wbuffer){ .size = size, .memory = AIR_HOST };
	d->region.host = mmap(NULL, size, PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (d->region.host == MAP_FAILED ||
	    d->ops->buffer_map(d->ex, &d->region) ||
	    d->ops->buffer_set(d->ex, d->ch, 0, &d->region)) {
		puts("the ring's region cannot be mapped");
		exit(1);
	}
	air_ring_init(&d->ring, d->region.host, DRIVE_ORDER);
}

bool drive_attach(struct drive *d)
{
	if (d->ops->ring_attach(d->ex, d->ch, &d->ring, d->next))
		return false;
	d->lent = true;
	d->attached++;
	return true;
}

void drive_recall(struct drive *d)
{
	uint64_t limit = drive_now() + limit_ns();

	if (!d->lent)
		return;
	d->ops->ring_recall(d->ex, d->ch);
	while (d->lent) {
		d->ops->poll(d->ex);
		if (drive_now() > limit)
			fail("the ring back");
	}
}

/* Operands as references into one buffer that spans all of them. */
static void span(struct drive *d, const struct air_work *work,
		 struct air_sqe *sqe)
{
	uint64_t base = ~0ull;

	for (uint32_t i = 0; i < AIRUNNER_MAX_TENSORS; i++)
		if (work->addr[i] && work->addr[i] < base)
			base = work->addr[i];
	base = base > (1ull << 32) ? base - (1ull << 32) : 4096;
	base &= ~4095ull;
	d->space = (struct air_wbuffer){ .size = AIRUNNER_OFFSET_MASK,
					 .memory = AIR_DEVICE };
	d->space.addr[AIRUNNER_EXEC_CUDA_RESIDENT] = base;
	memset(sqe, 0, sizeof(*sqe));
	sqe->word[0] = airunner_sqe_head(AIRUNNER_OP_EXEC,
					 (uint8_t)work->flags, 0, 1);
	for (uint32_t i = 0; i < AIRUNNER_MAX_TENSORS; i++)
		sqe->word[1 + i] =
			work->addr[i] ?
				airunner_ref(1, work->addr[i] - base) :
				AIRUNNER_REF_NONE;
	sqe->word[6] = AIRUNNER_REF_NONE;
}

/* What the executor gave back is run by its run(), as a worker would. */
static void run_here(struct drive *d, struct air_work *work)
{
	unsigned int before = d->done;
	struct air_work w = *work;
	uint64_t limit = drive_now() + limit_ns();
	struct air_cqe cqe = { .status = AIRUNNER_S_OK };
	air_status st;

	w.ch = (struct air_wchannel *)(void *)d;
	w.ch_priv = d->ch;
	st = d->ops->run(d->ex, &w);
	d->ops->flush(d->ex);
	while (st == AIR_PENDING && d->done == before) {
		d->ops->poll(d->ex);
		if (drive_now() > limit)
			fail("work that came back");
	}
	d->done = before;
	cqe.status = (enum airunner_status)(st == AIR_PENDING ? d->status : st);
	air_ring_complete(&d->ring, d->next, &cqe);
	d->next++;
	d->ran_here++;
}

static air_status run_ring(struct drive *d, struct air_work *work,
			   unsigned int n)
{
	uint64_t limit = drive_now() + limit_ns(), index = 0;
	uint64_t offered = ~0ull;
	unsigned int sent = 0, seen = 0;
	uint64_t first = d->next;
	struct air_sqe sqe;
	struct air_cqe cqe;

	drive_recall(d);
	first = d->next;
	span(d, work, &sqe);
	d->ops->buffer_set(d->ex, d->ch, 1, &d->space);
	d->ops->desc_set(d->ex, d->ch, 1, work->plan_priv);
	d->done = 0;
	d->status = AIR_OK;
	drive_attach(d);
	while (seen < n) {
		while (sent < n && air_ring_reserve(&d->ring, d->collected, 1,
						    &index)) {
			air_ring_publish(&d->ring, index, &sqe);
			sent++;
		}
		d->ops->poll(d->ex);
		if (!d->lent && d->next < first + sent &&
		    !air_ring_answered(&d->ring, d->next)) {
			/*
			 * It may have come back because nothing came while a
			 * tool kept us here: what is offered and not taken is
			 * not for it.
			 */
			if (offered == d->next || !drive_attach(d))
				run_here(d, work);
			else
				offered = d->next;
		}
		while (seen < sent &&
		       air_ring_completed(&d->ring, first + seen, &cqe)) {
			air_ring_collect(&d->ring, d->collected, first + seen);
			if (cqe.status && !d->status)
				d->status = (air_status)cqe.status;
			d->end = cqe.start + cqe.duration;
			d->start = cqe.start;
			seen++;
		}
		if (drive_now() > limit)
			fail("a completion in the ring");
	}
	return d->status;
}

void drive_close(struct drive *d)
{
	if (d->ops->ring_attach) {
		drive_recall(d);
		d->ops->buffer_set(d->ex, d->ch, 0, NULL);
		d->ops->buffer_unmap(d->ex, &d->region);
	}
	d->ops->channel_close(d->ex, d->ch);
	d->ops->close(d->ex);
}

air_status drive_alloc(struct drive *d, struct air_wbuffer *buf, uint64_t size)
{
	*buf = (struct air_wbuffer){ .size = size, .memory = AIR_DEVICE };
	return d->ops->buffer_alloc(d->ex, buf);
}

air_status drive_run(struct drive *d, struct air_work *work, unsigned int n)
{
	uint64_t limit = drive_now() + limit_ns();
	struct air_work *copies = calloc(n, sizeof(*copies));
	unsigned int started = 0;

	if (d->ops->ring_attach) {
		free(copies);
		return run_ring(d, work, n);
	}
	d->done = 0;
	d->status = AIR_OK;
	while (started < n) {
		struct air_work *w = &copies[started];
		air_status st;

		*w = *work;
		w->ch = (struct air_wchannel *)(void *)d;
		w->ch_priv = d->ch;
		w->start = drive_now();
		st = d->ops->run(d->ex, w);
		if (st == AIR_BUSY) {
			d->ops->poll(d->ex);
			continue;
		}
		started++;
		if (st != AIR_PENDING) {
			d->done++;
			if (st && !d->status)
				d->status = st;
		}
	}
	d->ops->flush(d->ex);
	while (d->done < n) {
		d->ops->poll(d->ex);
		if (drive_now() > limit) {
			printf("%u have no completion\n", n - d->done);
			fail("a completion");
		}
	}
	free(copies);
	return d->status;
}
