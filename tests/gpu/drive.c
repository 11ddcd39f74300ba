// SPDX-License-Identifier: MIT
#include "tests/gpu/drive.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct drive_cuda drive_cuda;

#define LIMIT_NS 20000000000ull

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

static const struct air_worker_services services = {
	.work_done = done,
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
}

void drive_close(struct drive *d)
{
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
	uint64_t limit = drive_now() + LIMIT_NS;
	struct air_work *copies = calloc(n, sizeof(*copies));
	unsigned int started = 0;

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
			printf("no completion of %u after 20 s\n",
			       n - d->done);
			fflush(stdout);
			_Exit(3);
		}
	}
	free(copies);
	return d->status;
}
