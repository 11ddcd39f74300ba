/* SPDX-License-Identifier: MIT */
/*
 * Multiprocessors that the resident kernel keeps to, so that other work can
 * keep off them: a green context. Whoever splits the device's multiprocessors
 * in the same way has the rest (cuDevSmResourceSplitByCount of one group; that
 * of a size that is no multiple of 8 ignores coscheduling).
 */
#ifndef AIR_RESIDENT_PARTITION_H
#define AIR_RESIDENT_PARTITION_H

#include "ops/worker/cuda/cuda.h"

struct air_res_partition {
	CUgreenCtx green;
	uint32_t sms; /* 0: no partition */
};

/*
 * The number of multiprocessors that AIRUNNER_RESIDENT_PARTITION asks for, or
 * the next larger one that the device can split off, and a stream of theirs.
 * Without the variable, or where the driver or the device has no such thing
 * (it is logged), the stream is an ordinary one.
 */
CUresult air_res_partition_open(struct air_res_partition *p, struct air_cuda *c,
				CUstream *stream);
/* After the stream was destroyed. */
void air_res_partition_close(struct air_res_partition *p);

#endif /* AIR_RESIDENT_PARTITION_H */
