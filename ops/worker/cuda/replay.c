// SPDX-License-Identifier: MIT
#include "ops/worker/cuda/replay.h"

#include <stdlib.h>
#include <string.h>

#define SLOTS 64
/* Executions before a graph is worth making. */
#define OFTEN 4

/* @addr: operands, then the workspace. */
struct slot {
	uint64_t addr[AIRUNNER_MAX_TENSORS + 1];
	uint32_t generation;
	uint32_t seen;
	CUgraphExec graph;
};

struct air_replay {
	struct slot slot[SLOTS];
};

struct air_replay *air_replay_open(void)
{
	return calloc(1, sizeof(struct air_replay));
}

void air_replay_close(struct air_cuda *c, struct air_replay *r)
{
	bool quiet = false;

	if (!r)
		return;
	for (uint32_t i = 0; i < SLOTS; i++) {
		if (!r->slot[i].graph || r->slot[i].generation != c->generation)
			continue;
		if (!quiet)
			air_cuda_quiet_begin(c);
		quiet = true;
		cu.GraphExecDestroy(r->slot[i].graph);
	}
	if (quiet)
		air_cuda_quiet_end(c);
	free(r);
}

static uint32_t place(const uint64_t *addr)
{
	uint64_t h = 0;

	for (uint32_t i = 0; i <= AIRUNNER_MAX_TENSORS; i++)
		h = (h ^ addr[i]) * 0x9e3779b97f4a7c15ull;
	return (uint32_t)(h >> 32) % SLOTS;
}

/* NULL: there is a graph of others in their place, which stays. */
static struct slot *find(struct air_replay *r, const struct air_cuda *c,
			 const struct air_replay_run *run)
{
	struct slot want = { .generation = c->generation }, *s;

	memcpy(want.addr, run->addr, AIRUNNER_MAX_TENSORS * sizeof(uint64_t));
	want.addr[AIRUNNER_MAX_TENSORS] = run->workspace;
	s = &r->slot[place(want.addr)];
	if (s->generation != want.generation ||
	    memcmp(s->addr, want.addr, sizeof(want.addr))) {
		if (s->graph && s->generation == want.generation)
			return NULL;
		*s = want;
	}
	return s;
}

static void make(struct slot *s, const struct air_replay_run *run)
{
	CUgraph graph = NULL;
	CUresult r, end;

	if (cu.StreamBeginCapture(run->stream,
				  CU_STREAM_CAPTURE_MODE_RELAXED))
		return;
	r = run->enqueue(run->arg);
	end = cu.StreamEndCapture(run->stream, &graph);
	if (r || end || cu.GraphInstantiateWithFlags(&s->graph, graph, 0))
		s->graph = NULL;
	if (graph)
		cu.GraphDestroy(graph);
}

CUresult air_replay_run(struct air_cuda *c, struct air_replay *r,
			const struct air_replay_run *run)
{
	struct slot *s = r ? find(r, c, run) : NULL;
	CUresult st;

	if (s && s->graph)
		return cu.GraphLaunch(s->graph, run->stream);
	if (!s || s->seen > OFTEN)
		return run->enqueue(run->arg);
	if (s->seen < OFTEN) {
		s->seen++;
		return run->enqueue(run->arg);
	}
	/* the first launch takes memory of the GPU: not while a stream waits */
	if (!c->services->block_begin())
		return run->enqueue(run->arg);
	s->seen++;
	air_cuda_quiet_begin(c);
	make(s, run);
	st = s->graph ? cu.GraphLaunch(s->graph, run->stream) :
			run->enqueue(run->arg);
	/* the GPU has no room for it */
	if (s->graph && st == CUDA_ERROR_OUT_OF_MEMORY) {
		cu.GraphExecDestroy(s->graph);
		s->graph = NULL;
		st = run->enqueue(run->arg);
	}
	air_cuda_quiet_end(c);
	c->services->block_end();
	return st;
}
