// SPDX-License-Identifier: MIT
#include "ops/worker/resident/kernel.h"

#include <stdlib.h>
#include <string.h>

AIR_CUDA_FATBIN_DECLARE(resident);

#define STOP_NS	     2000000000ull
#define CLOCK_ROUNDS 8
/* Job and state, in lines of their own, are cleared as one. */
#define STATE_AT 512
#define CLEARED	 (STATE_AT + sizeof(struct air_res_state))

_Static_assert(sizeof(struct air_res_job) <= STATE_AT, "the job has room");

CUresult air_res_upload(struct air_cuda *c, uint64_t to, const void *from,
			uint64_t size)
{
	CUresult r = cu.MemcpyHtoDAsync(to, from, size, c->service);

	return r == CUDA_SUCCESS ? cu.StreamSynchronize(c->service) : r;
}

/*
 * The GPU's clock and CLOCK_MONOTONIC count the same nanoseconds from
 * different beginnings. Of several looks at both, the closest pair counts.
 */
static CUresult compare_clocks(struct air_res_kernel *k)
{
	CUfunction fn;
	CUdeviceptr word = 0;
	void *args[] = { &word };
	uint64_t best = ~0ull;
	CUresult r = cu.ModuleGetFunction(&fn, k->module, "air_resident_clock");

	if (r == CUDA_SUCCESS)
		r = cu.MemHostGetDevicePointer(&word, &k->host->stop, 0);
	for (int i = 0; i < CLOCK_ROUNDS && r == CUDA_SUCCESS; i++) {
		uint64_t before = k->cuda->services->now(), after;

		r = cu.LaunchKernel(fn, 1, 1, 1, 1, 1, 1, 0, k->stream, args,
				    NULL);
		if (r == CUDA_SUCCESS)
			r = cu.StreamSynchronize(k->stream);
		after = k->cuda->services->now();
		if (after - before < best) {
			best = after - before;
			k->params.clock =
				(int64_t)(before + best / 2 - k->host->stop);
		}
	}
	k->host->stop = 0;
	return r;
}

static uint32_t choose_blocks(const struct air_res_kernel *k)
{
	const struct air_cuda *c = k->cuda;
	const char *want = getenv("AIRUNNER_RESIDENT_BLOCKS");
	/*
	 * Some multiprocessors stay free: kernels with blocks too large to fit
	 * beside a resident block must be able to run somewhere.
	 */
	uint32_t n = want ? (uint32_t)atoi(want)
			  : c->info.sms - c->info.sms / 16 - 1;

	if (k->partition.sms && (!want || n > k->partition.sms))
		n = k->partition.sms;
	if (n > c->info.sms)
		n = c->info.sms;
	if (n > AIR_RES_MAX_BLOCKS)
		n = AIR_RES_MAX_BLOCKS;
	return n ? n : 1;
}

static CUresult load(struct air_res_kernel *k)
{
	CUdeviceptr host = 0;
	CUresult r;

	r = cu.ModuleLoadDataEx(&k->module, AIR_CUDA_FATBIN(resident), 0, NULL,
				NULL);
	if (r == CUDA_SUCCESS)
		r = cu.ModuleGetFunction(&k->fn, k->module, "air_resident");
	if (r == CUDA_SUCCESS)
		r = air_cuda_load_now(k->fn);
	if (r == CUDA_SUCCESS)
		r = air_res_partition_open(&k->partition, k->cuda, &k->stream);
	if (r == CUDA_SUCCESS)
		r = cu.MemAllocHost((void **)&k->host, sizeof(*k->host) + 64);
	if (r != CUDA_SUCCESS)
		return r;
	memset(k->host, 0, sizeof(*k->host) + 64);
	k->ended = (uint64_t *)(k->host + 1);
	r = cu.MemHostGetDevicePointer(&host, k->host, 0);
	if (r == CUDA_SUCCESS)
		r = cu.MemHostGetDevicePointer(&k->ended_dev, k->ended, 0);
	k->params.host = host;
	return r;
}

air_status air_res_kernel_open(struct air_res_kernel *k, struct air_cuda *c,
			       uint64_t park_ns, struct air_error *e)
{
	air_status st;
	int khz = 0;
	CUresult r;

	memset(k, 0, sizeof(*k));
	k->cuda = c;
	r = load(k);
	if (r == CUDA_SUCCESS)
		r = compare_clocks(k);
	if (r != CUDA_SUCCESS) {
		st = air_fail(e,
			      air_cuda_is_fatal(c, r) ? AIR_DEVICE_LOST
						      : AIR_NO_DEVICE,
			      "cuda-resident: kernel cannot be loaded: %s",
			      air_cuda_error_name(r));
		goto fail;
	}
	k->blocks = choose_blocks(k);
	st = air_devmem_alloc(c, CLEARED, &k->job, e);
	k->state = k->job + STATE_AT;
	if (!st)
		st = air_devmem_alloc(c, AIR_RES_MAX_BLOCKS * 8, &k->next, e);
	if (!st)
		st = air_devmem_alloc(
			c, AIR_RES_PLACES * sizeof(struct air_res_channel),
			&k->channels, e);
	if (st)
		goto fail;
	k->params.job = k->job;
	k->params.next = k->next;
	k->params.state = k->state;
	k->params.channels = k->channels;
	k->params.idle_ns = park_ns;
	k->params.park_ns = park_ns;
	/* some must be left to help */
	cu.DeviceGetAttribute(&khz, CU_DEVICE_ATTRIBUTE_CLOCK_RATE, c->dev);
	k->params.mhz = khz > 1000 ? (uint32_t)khz / 1000 : 1000;
	k->params.leaders = k->blocks / 4;
	if (k->params.leaders > AIR_RES_LEADERS)
		k->params.leaders = AIR_RES_LEADERS;
	if (!k->params.leaders)
		k->params.leaders = 1;
	memset(k->tag, 1, sizeof(k->tag));
	return AIR_OK;
fail:
	air_res_kernel_close(k, c->lost);
	return st;
}

void air_res_kernel_close(struct air_res_kernel *k, bool lost)
{
	if (!lost) {
		if (k->job)
			air_devmem_free(k->cuda, k->job);
		if (k->next)
			air_devmem_free(k->cuda, k->next);
		if (k->channels)
			air_devmem_free(k->cuda, k->channels);
		if (k->stream)
			cu.StreamDestroy(k->stream);
		air_res_partition_close(&k->partition);
		if (k->host)
			cu.MemFreeHost(k->host);
		if (k->module)
			cu.ModuleUnload(k->module);
	}
	memset(k, 0, sizeof(*k));
}

bool air_res_kernel_runs(const struct air_res_kernel *k)
{
	return __atomic_load_n(k->ended, __ATOMIC_ACQUIRE) < k->started;
}

/* A ring came back, and nobody has taken note yet. */
static bool has_returned(const struct air_res_kernel *k, uint32_t leader)
{
	uint64_t reason = __atomic_load_n(&k->host->mailbox[leader].reason,
					  __ATOMIC_ACQUIRE);

	return airunner_word_lap(reason) == k->tag[leader];
}

bool air_res_kernel_wanted(const struct air_res_kernel *k, uint32_t leader)
{
	uint64_t attach = __atomic_load_n(&k->host->attach[leader],
					  __ATOMIC_RELAXED);

	return airunner_word_lap(attach) == k->tag[leader] &&
	       !has_returned(k, leader);
}

CUresult air_res_kernel_start(struct air_res_kernel *k)
{
	void *args[] = { &k->params };
	CUresult r;

	if (air_res_kernel_runs(k))
		return CUDA_SUCCESS;
	__atomic_store_n(&k->host->stop, 0, __ATOMIC_RELEASE);
	for (uint32_t l = 0; l < AIR_RES_LEADERS; l++)
		k->params.tag[l] =
			(uint8_t)(has_returned(k, l)
					  ? air_res_next_tag(k->tag[l])
					  : k->tag[l]);
	/*
	 * Behind each other in one stream: what a former kernel left is
	 * cleared, and the end is told.
	 */
	r = cu.MemsetD8Async(k->job, 0, CLEARED, k->stream);
	if (r == CUDA_SUCCESS)
		r = cu.LaunchKernel(k->fn, k->blocks, 1, 1, AIR_RES_THREADS, 1,
				    1, 0, k->stream, args, NULL);
	if (r != CUDA_SUCCESS)
		return r;
	k->started++;
	k->launched_at = k->cuda->services->now();
	return cu.StreamWriteValue64(k->stream, k->ended_dev, k->started,
				     CU_STREAM_WRITE_VALUE_DEFAULT);
}

bool air_res_kernel_stop(struct air_res_kernel *k)
{
	uint64_t limit = k->cuda->services->now() + STOP_NS;

	__atomic_store_n(&k->host->stop, 1, __ATOMIC_RELEASE);
	while (air_res_kernel_runs(k)) {
		if (k->cuda->services->now() > limit ||
		    air_cuda_is_fatal(k->cuda, cu.StreamQuery(k->stream)))
			return false;
	}
	return true;
}

void air_res_kernel_attach(struct air_res_kernel *k, uint32_t leader,
			   uint32_t place, uint64_t index)
{
	uint8_t tag = k->tag[leader];

	__atomic_store_n(&k->host->index[leader], airunner_word(index, tag),
			 __ATOMIC_RELAXED);
	__atomic_store_n(&k->host->attach[leader], airunner_word(place, tag),
			 __ATOMIC_RELEASE);
}

bool air_res_kernel_withdraw(struct air_res_kernel *k, uint32_t leader)
{
	if (air_res_kernel_runs(k) || !air_res_kernel_wanted(k, leader))
		return false;
	/* the next kernel waits for another attachment than this one */
	k->tag[leader] = (uint8_t)air_res_next_tag(k->tag[leader]);
	return true;
}

void air_res_kernel_recall(struct air_res_kernel *k, uint32_t leader)
{
	__atomic_store_n(&k->host->recall[leader],
			 airunner_word(1, k->tag[leader]), __ATOMIC_RELEASE);
}

bool air_res_kernel_returned(struct air_res_kernel *k, uint32_t leader,
			     struct air_res_returned *r)
{
	struct air_res_mailbox *m = &k->host->mailbox[leader];
	uint64_t reason = __atomic_load_n(&m->reason, __ATOMIC_ACQUIRE);

	if (airunner_word_lap(reason) != k->tag[leader])
		return false;
	r->reason = (enum air_res_reason)airunner_payload(reason);
	r->index = airunner_payload(
		__atomic_load_n(&m->stopped, __ATOMIC_RELAXED));
	r->completed = airunner_payload(
		__atomic_load_n(&m->completed, __ATOMIC_RELAXED));
	r->busy_ns = airunner_payload(
		__atomic_load_n(&m->busy_ns, __ATOMIC_RELAXED));
	k->tag[leader] = (uint8_t)air_res_next_tag(k->tag[leader]);
	return true;
}
