// SPDX-License-Identifier: MIT
/*
 * The CPU executor: runs an operator to its end within run(), on the worker's
 * thread and a pool. There is nothing outstanding, ever, so in-order and
 * unordered work are the same to it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/cpu.h"
#include "ops/worker/internal.h"

_Static_assert(sizeof(void *) == sizeof(uint64_t),
	       "operand addresses are handed on as pointers");

struct air_exec {
	struct air_pool *pool;
};

static void cpu_close(struct air_exec *ex)
{
	air_pool_destroy(ex->pool);
	free(ex);
}

static air_status cpu_open(const struct air_executor_config *config,
			   struct air_exec **out, struct air_error *e)
{
	struct air_exec *ex = calloc(1, sizeof(*ex));

	if (!ex)
		return air_fail(e, AIR_NO_MEMORY, "cpu: no memory");
	ex->pool = air_pool_create(config->threads);
	if (!ex->pool) {
		free(ex);
		return air_fail(e, AIR_NO_MEMORY,
				"cpu: cannot create %u threads",
				config->threads);
	}
	*out = ex;
	return AIR_OK;
}

static void model_name(char *out, size_t size)
{
	FILE *f = fopen("/proc/cpuinfo", "re");
	char line[256];

	snprintf(out, size, "unknown model");
	while (f && fgets(line, sizeof(line), f)) {
		char *value = strchr(line, ':');

		if (strncmp(line, "model name", 10) || !value)
			continue;
		value[strcspn(value, "\n")] = '\0';
		snprintf(out, size, "%s", value + 2);
		break;
	}
	if (f)
		fclose(f);
}

static void cpu_caps(struct air_exec *ex, struct air_backend_caps *caps)
{
	char model[64];

	model_name(model, sizeof(model));
	caps->executor = AIR_EXEC_CPU;
	caps->present = 1;
	caps->threads = air_pool_threads(ex->pool);
	caps->host_buffers = 1;
	for (uint32_t id = 1; id < AIR_OP_COUNT; id++) {
		const struct air_op *op = air_op_find(id);

		if (op && op->cpu_plan)
			caps->ops |= 1ull << id;
	}
	snprintf(caps->name, sizeof(caps->name), "cpu: %s, %u threads", model,
		 caps->threads);
}

static air_status cpu_plan(struct air_exec *ex, const struct air_plan *plan,
			   void **priv, uint64_t *workspace,
			   struct air_error *why)
{
	struct air_cpu_plan *cp;
	air_status st;

	if (!plan->op->cpu_plan)
		return air_fail(why, AIR_UNSUPPORTED, "cpu does not do %s",
				plan->op->name);
	st = plan->op->cpu_plan(&plan->desc, &cp, why);
	if (st)
		return st;
	snprintf(why->text, sizeof(why->text), "%u threads",
		 air_pool_threads(ex->pool));
	*priv = cp;
	return AIR_OK;
}

static void cpu_unplan(struct air_exec *ex, void *priv)
{
	struct air_cpu_plan *cp = priv;

	cp->destroy(cp);
}

static air_status cpu_run(struct air_exec *ex, struct air_work *work)
{
	const struct air_cpu_plan *cp = work->plan_priv;
	void *operand[AIRUNNER_MAX_TENSORS + 1];
	air_status st;

	memcpy(operand, work->addr, sizeof(operand));
	st = cp->run(cp, operand, ex->pool);
	work->end = air_now();
	return st;
}

const struct air_executor_ops air_executor_cpu = {
	.abi = AIR_EXECUTOR_ABI,
	.id = AIRUNNER_EXEC_CPU,
	.name = "cpu",
	.open = cpu_open,
	.close = cpu_close,
	.caps = cpu_caps,
	.plan = cpu_plan,
	.unplan = cpu_unplan,
	.run = cpu_run,
};
