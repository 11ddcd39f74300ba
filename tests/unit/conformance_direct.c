// SPDX-License-Identifier: MIT
#include <stdlib.h>
#include <string.h>

#include "ops/cpu.h"
#include "ops/plan.h"
#include "tests/unit/conformance.h"

/* What a worker does with a submission, without one. */
struct conf_direct {
	struct air_pool *pool;
	void *memory[AIRUNNER_MAX_TENSORS + 1];
	uint64_t size[AIRUNNER_MAX_TENSORS + 1];
};

struct handle {
	struct air_plan plan;
	struct air_cpu_plan *cpu;
};

static void *memory(void *arg, uint32_t i, uint64_t bytes)
{
	struct conf_direct *c = arg;

	/* Exactly as large as asked for: sanitizers see what is beyond. */
	free(c->memory[i]);
	c->size[i] = (bytes + 63) / 64 * 64;
	c->memory[i] = aligned_alloc(64, c->size[i]);
	if (!c->memory[i])
		abort();
	return c->memory[i];
}

static air_status create(void *arg, const struct airunner_desc *d,
			 void **handle, uint64_t *workspace,
			 struct air_error *e)
{
	struct handle *h = calloc(1, sizeof(*h));
	air_status st = air_plan_init(&h->plan, d, e);

	if (!st)
		st = h->plan.op->cpu_plan(&h->plan.desc, &h->cpu, e);
	if (st) {
		free(h);
		return st;
	}
	*workspace = h->plan.workspace;
	*handle = h;
	return AIR_OK;
}

/* Handles are operand numbers, from 1. */
static bool find(void *arg, uint32_t handle, struct air_span *span)
{
	struct conf_direct *c = arg;

	if (!handle || handle > AIRUNNER_MAX_TENSORS + 1)
		return false;
	span->addr = (uintptr_t)c->memory[handle - 1];
	span->size = c->size[handle - 1];
	return true;
}

static air_status execute(void *arg, void *handle, const uint64_t *offset,
			  uint32_t in_place)
{
	struct conf_direct *c = arg;
	struct handle *h = handle;
	uint64_t word[AIRUNNER_SQE_WORDS] = { 0 };
	uint64_t addr[AIRUNNER_MAX_TENSORS + 1];
	void *operand[AIRUNNER_MAX_TENSORS + 1];
	uint32_t which;
	air_status st;

	for (uint32_t i = 0; i <= AIRUNNER_MAX_TENSORS; i++)
		word[AIRUNNER_WORD_OPERAND + i] =
			offset[i] == UINT64_MAX
				? AIRUNNER_REF_NONE
				: airunner_ref(i && i == in_place ? 1 : i + 1,
					       offset[i]);
	st = air_plan_bind(&h->plan, word, find, c, addr, &which);
	if (st)
		return st;
	for (uint32_t i = 0; i <= AIRUNNER_MAX_TENSORS; i++)
		operand[i] = (void *)(uintptr_t)addr[i];
	return h->cpu->run(h->cpu, operand, c->pool);
}

static void destroy(void *arg, void *handle)
{
	struct handle *h = handle;

	h->cpu->destroy(h->cpu);
	free(h);
}

struct conf_direct *conf_direct_open(unsigned int threads,
				     struct conf_executor *ex)
{
	struct conf_direct *c = calloc(1, sizeof(*c));

	c->pool = air_pool_create(threads);
	*ex = (struct conf_executor){ .name = "cpu",
				      .is_cpu = true,
				      .arg = c,
				      .memory = memory,
				      .create = create,
				      .execute = execute,
				      .destroy = destroy };
	return c;
}

void conf_direct_close(struct conf_direct *c)
{
	for (uint32_t i = 0; i <= AIRUNNER_MAX_TENSORS; i++)
		free(c->memory[i]);
	air_pool_destroy(c->pool);
	free(c);
}
