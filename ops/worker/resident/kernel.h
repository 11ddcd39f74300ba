/* SPDX-License-Identifier: MIT */
/*
 * The resident kernel from the host: its memory, starting it, having it leave.
 * Nothing here knows of channels.
 */
#ifndef AIR_RESIDENT_KERNEL_H
#define AIR_RESIDENT_KERNEL_H

#include "ops/worker/cuda/cuda.h"
#include "ops/worker/resident/partition.h"
#include "ops/worker/resident/resident.h"

/* Rings that the kernel's table has room for. */
#define AIR_RES_PLACES 1024

/**
 * struct air_res_kernel
 * @host: shared with the GPU; @ended beside it is written by the stream
 *	behind the kernel
 * @started: launches; the kernel runs while *@ended is less
 * @tag: number of the attachment each leader waits for or serves
 * @blocks: of a launch
 */
struct air_res_kernel {
	struct air_cuda *cuda;
	CUmodule module;
	CUfunction fn;
	CUstream stream;
	struct air_res_partition partition;
	struct air_res_host *host;
	uint64_t *ended;
	CUdeviceptr ended_dev;
	uint64_t job, next, state, channels;
	uint64_t started;
	struct air_res_params params;
	uint32_t blocks;
	uint8_t tag[AIR_RES_LEADERS];
	uint64_t launched_at;
};

/* Load it, allocate its memory, compare clocks; nothing runs yet. */
air_status air_res_kernel_open(struct air_res_kernel *k, struct air_cuda *c,
			       uint64_t park_ns, struct air_error *e);
/* The kernel must have ended, or the context be lost (@lost). */
void air_res_kernel_close(struct air_res_kernel *k, bool lost);

bool air_res_kernel_runs(const struct air_res_kernel *k);

/* Whether @leader was given a ring that has not come back. */
bool air_res_kernel_wanted(const struct air_res_kernel *k, uint32_t leader);

/* Launch it unless it runs. */
CUresult air_res_kernel_start(struct air_res_kernel *k);

/*
 * Have it give back its rings and end; waits for that, at most two seconds:
 * false when it did not.
 */
bool air_res_kernel_stop(struct air_res_kernel *k);

/* Hand @leader the ring at @place of the table, from @index on. */
void air_res_kernel_attach(struct air_res_kernel *k, uint32_t leader,
			   uint32_t place, uint64_t index);
void air_res_kernel_recall(struct air_res_kernel *k, uint32_t leader);

/*
 * While the kernel does not run: take back what @leader was given. False when
 * it was given nothing, or had it and returned it.
 */
bool air_res_kernel_withdraw(struct air_res_kernel *k, uint32_t leader);

/* What came back from a leader. */
struct air_res_returned {
	enum air_res_reason reason;
	uint64_t index;
	uint64_t completed;
	uint64_t busy_ns;
};

/* Whether @leader has given its ring back; then it can be given another. */
bool air_res_kernel_returned(struct air_res_kernel *k, uint32_t leader,
			     struct air_res_returned *r);

/* Copy to device memory and wait until it is there. */
CUresult air_res_upload(struct air_cuda *c, uint64_t to, const void *from,
			uint64_t size);

#endif /* AIR_RESIDENT_KERNEL_H */
