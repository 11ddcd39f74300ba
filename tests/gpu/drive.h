/* SPDX-License-Identifier: MIT */
/*
 * Drives an executor of libairunner-cuda.so directly, without worker, ring or
 * library: what a first look at a GPU needs.
 */
#ifndef AIR_TEST_DRIVE_H
#define AIR_TEST_DRIVE_H

#include <cuda.h>

#include "ops/worker/executor.h"

#define DRIVE_ORDER 10

/**
 * struct drive - an executor and one channel
 * @done, @status: of the run in progress: finished, and the first failure
 * @start, @end: of the last work that finished
 * @region, @ring, @collected, @next: executors that drain the ring: it
 * @lent: the executor has the ring
 * @space: what operands lie in, as handle 1
 */
struct drive {
	const struct air_executor_ops *ops;
	struct air_exec *ex;
	void *ch;
	unsigned int done;
	air_status status;
	uint64_t start, end;
	struct air_wbuffer region;
	struct air_ring ring;
	uint8_t collected[1 << DRIVE_ORDER];
	uint64_t next;
	bool lent;
	unsigned int attached, ran_here;
	struct air_wbuffer space;
};

/* cuda.h's calls that the tests make themselves. */
extern struct drive_cuda {
	CUresult (*memcpy_htod)(CUdeviceptr, const void *, size_t);
	CUresult (*memcpy_dtoh)(void *, CUdeviceptr, size_t);
	CUresult (*memcpy_dtod_async)(CUdeviceptr, CUdeviceptr, size_t,
				      CUstream);
	CUresult (*memset_d8)(CUdeviceptr, unsigned char, size_t);
	CUresult (*stream_create)(CUstream *, unsigned int);
	CUresult (*stream_sync)(CUstream);
	CUresult (*event_create)(CUevent *, unsigned int);
	CUresult (*event_record)(CUevent, CUstream);
	CUresult (*event_sync)(CUevent);
	CUresult (*event_elapsed)(float *, CUevent, CUevent);
	CUresult (*module_load)(CUmodule *, const void *);
	CUresult (*module_function)(CUfunction *, CUmodule, const char *);
	CUresult (*launch)(CUfunction, unsigned int, unsigned int, unsigned int,
			   unsigned int, unsigned int, unsigned int,
			   unsigned int, CUstream, void **, void **);
} drive_cuda;

uint64_t drive_now(void);

/* Exits with 77 (skip) and the executor's sentence when there is no GPU. */
void drive_open(struct drive *d, const char *plugin, const char *executor);
void drive_close(struct drive *d);

/* Device memory in *@buf. */
air_status drive_alloc(struct drive *d, struct air_wbuffer *buf, uint64_t size);

/* Have the executor's ring back at the host, if it has one and it is lent. */
void drive_recall(struct drive *d);

/* Lend the ring from d->next on. False: the executor does not want it. */
bool drive_attach(struct drive *d);

/*
 * Start @n times the same work (through the ring, if the executor drains
 * one), wait for all (at most 20 seconds, or AIRUNNER_TEST_PATIENCE times as
 * long, then the process ends with a sentence), and return the first status
 * that is not AIR_OK. @work needs plan or launch, and addr.
 */
air_status drive_run(struct drive *d, struct air_work *work, unsigned int n);

#endif /* AIR_TEST_DRIVE_H */
