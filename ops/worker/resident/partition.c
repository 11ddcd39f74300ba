// SPDX-License-Identifier: MIT
#include "ops/worker/resident/partition.h"

#include <stdlib.h>

/* What GPUs of compute capability 9.0 and later keep together. */
#define TOGETHER 8

static CUresult split(struct air_res_partition *p, struct air_cuda *c,
		      unsigned int want)
{
	unsigned int groups = 1, flags = 0;
	CUdevResource all, mine, rest;
	CUdevResourceDesc desc;
	CUresult r;

	if (want % TOGETHER)
		flags = CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING;
	r = cu.DeviceGetDevResource(c->dev, &all, CU_DEV_RESOURCE_TYPE_SM);
	if (r == CUDA_SUCCESS)
		r = cu.DevSmResourceSplitByCount(&mine, &groups, &all, &rest,
						 flags, want);
	if (r == CUDA_SUCCESS && groups != 1)
		r = CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
	if (r == CUDA_SUCCESS)
		r = cu.DevResourceGenerateDesc(&desc, &mine, 1);
	if (r == CUDA_SUCCESS)
		r = cu.GreenCtxCreate(&p->green, desc, c->dev,
				      CU_GREEN_CTX_DEFAULT_STREAM);
	if (r == CUDA_SUCCESS)
		p->sms = mine.sm.smCount;
	return r;
}

CUresult air_res_partition_open(struct air_res_partition *p, struct air_cuda *c,
				CUstream *stream)
{
	const char *text = getenv("AIRUNNER_RESIDENT_PARTITION");
	int want = text ? atoi(text) : 0;
	CUresult r = CUDA_ERROR_NOT_SUPPORTED;

	if (want <= 0 || (uint32_t)want > c->info.sms)
		return cu.StreamCreateWithPriority(stream,
						   CU_STREAM_NON_BLOCKING, 0);
	if (cu.DeviceGetDevResource && cu.DevSmResourceSplitByCount &&
	    cu.DevResourceGenerateDesc && cu.GreenCtxCreate &&
	    cu.GreenCtxDestroy && cu.GreenCtxStreamCreate)
		r = split(p, c, (unsigned int)want);
	if (r == CUDA_SUCCESS) {
		r = cu.GreenCtxStreamCreate(stream, p->green,
					    CU_STREAM_NON_BLOCKING, 0);
		if (r == CUDA_SUCCESS)
			return r;
		air_res_partition_close(p);
	}
	c->services->log(
		"cuda-resident: no partition of %d multiprocessors: %s", want,
		air_cuda_error_name(r));
	return cu.StreamCreateWithPriority(stream, CU_STREAM_NON_BLOCKING, 0);
}

void air_res_partition_close(struct air_res_partition *p)
{
	if (p->green)
		cu.GreenCtxDestroy(p->green);
	p->green = NULL;
	p->sms = 0;
}
