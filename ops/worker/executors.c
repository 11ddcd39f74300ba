// SPDX-License-Identifier: MIT
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/worker/internal.h"

static const char *const executor_names[AIR_EXECUTORS] = {
	[AIRUNNER_EXEC_CPU] = "cpu",
	[AIRUNNER_EXEC_CUDA_LAUNCH] = "cuda-launch",
	[AIRUNNER_EXEC_CUDA_RESIDENT] = "cuda-resident",
};

void air_worker_add_executor(struct air_worker *w,
			     const struct air_executor_ops *ops)
{
	for (unsigned int i = 0; i < AIR_EXECUTORS; i++) {
		if (!w->extra[i]) {
			w->extra[i] = ops;
			return;
		}
	}
}

static void set_absent(struct air_worker *w, uint32_t id, const char *why)
{
	struct air_backend_caps *caps = &w->exec[id].caps;

	memset(caps, 0, sizeof(*caps));
	caps->size = sizeof(*caps);
	caps->executor = id;
	snprintf(caps->name, sizeof(caps->name), "%.*s",
		 (int)sizeof(caps->name) - 1, why);
}

static air_status open_one(struct air_worker *w,
			   const struct air_executor_ops *ops,
			   struct air_error *e)
{
	struct air_executor_config config = {
		.threads = w->config.threads,
		.spin_ns = w->config.spin_ns,
		.park_ns = w->config.park_ns,
		.large_bytes = w->config.large_bytes,
		.large_alone = w->config.large_alone,
	};
	struct air_wexec *x;
	unsigned int n = 0;
	air_status st;

	if (ops->abi != AIR_EXECUTOR_ABI || !ops->id ||
	    ops->id >= AIR_EXECUTORS)
		return air_fail(e, AIR_ABI,
				"executor %s: made for another worker (ABI %u, this is %u)",
				ops->name, ops->abi, AIR_EXECUTOR_ABI);
	if (!ops->open || !ops->close || !ops->caps || !ops->plan ||
	    !ops->unplan || !ops->run)
		return air_fail(e, AIR_ABI,
				"executor %s: lacks a call that all must have",
				ops->name);
	x = &w->exec[ops->id];
	if (x->ops)
		return AIR_OK;
	st = ops->open(&config, &x->ex, e);
	if (st) {
		set_absent(w, ops->id, e->text);
		return st;
	}
	x->ops = ops;
	memset(&x->caps, 0, sizeof(x->caps));
	ops->caps(x->ex, &x->caps);
	x->caps.size = sizeof(x->caps);
	x->caps.executor = ops->id;
	x->caps.present = 1;
	if (ops->poll)
		w->async |= 1U << ops->id;
	while (w->prefer[n])
		n++;
	w->prefer[n] = ops->id;
	air_log(AIR_LOG_INFO, "executor %s", x->caps.name);
	return AIR_OK;
}

/* All of a plug-in's executors, or the one called @only. */
static air_status open_plugin(struct air_worker *w, const char *name,
			      const char *only, struct air_error *e)
{
	const struct air_executor_ops *const *list = air_plugin_load(name, e);
	air_status st = AIR_NO_DEVICE;
	bool any = false;

	if (!list) {
		for (uint32_t id = AIRUNNER_EXEC_CUDA_LAUNCH;
		     id < AIR_EXECUTORS; id++)
			if (!w->exec[id].ops)
				set_absent(w, id, e->text);
		return st;
	}
	for (; *list; list++) {
		if (only && strcmp((*list)->name, only))
			continue;
		st = open_one(w, *list, e);
		if (!st)
			any = true;
		else
			air_log(AIR_LOG_INFO, "executor %s: %s", (*list)->name,
				e->text);
	}
	return any ? AIR_OK : st;
}

static air_status open_named(struct air_worker *w, const char *name,
			     struct air_error *e)
{
	for (unsigned int i = 0; i < AIR_EXECUTORS && w->extra[i]; i++)
		if (!strcmp(w->extra[i]->name, name))
			return open_one(w, w->extra[i], e);
	if (!strcmp(name, "cpu"))
		return open_one(w, &air_executor_cpu, e);
	if (!strcmp(name, "cuda"))
		return open_plugin(w, "cuda", NULL, e);
	if (!strcmp(name, "cuda-launch") || !strcmp(name, "cuda-resident"))
		return open_plugin(w, "cuda", name, e);
	return air_fail(e, AIR_BAD_ARGUMENT,
			"executor \"%s\": there are cpu, cuda, cuda-launch and cuda-resident",
			name);
}

static air_status open_list(struct air_worker *w, const char *list,
			    struct air_error *e)
{
	char *copy = strdup(list), *rest = copy, *name;
	air_status st = AIR_OK;

	if (!copy)
		return air_fail(e, AIR_NO_MEMORY, "no memory");
	while (!st && (name = strsep(&rest, ",")))
		if (*name)
			st = open_named(w, name, e);
	free(copy);
	if (!st && !w->prefer[0])
		st = air_fail(e, AIR_BAD_ARGUMENT,
			      "executors \"%s\": the list names none", list);
	return st;
}

air_status air_executors_open(struct air_worker *w, struct air_error *e)
{
	const char *list = w->executors;
	air_status st;

	for (uint32_t id = 1; id < AIR_EXECUTORS; id++) {
		char why[64];

		snprintf(why, sizeof(why), "%s: not loaded",
			 executor_names[id]);
		set_absent(w, id, why);
	}
	if (!list)
		list = secure_getenv("AIRUNNER_EXECUTORS");
	if (list) {
		st = open_list(w, list, e);
		if (st)
			air_executors_close(w);
		return st;
	}
	/* Accelerators are what this is for: they come before the CPU. */
	for (unsigned int i = 0; i < AIR_EXECUTORS && w->extra[i]; i++) {
		st = open_one(w, w->extra[i], e);
		if (st)
			goto fail;
	}
	if (!w->exec[AIRUNNER_EXEC_CUDA_LAUNCH].ops &&
	    open_plugin(w, "cuda", NULL, e))
		air_log(AIR_LOG_DEBUG, "no cuda: %s", e->text);
	st = open_one(w, &air_executor_cpu, e);
	if (!st)
		return AIR_OK;
fail:
	air_executors_close(w);
	return st;
}

void air_executors_close(struct air_worker *w)
{
	for (uint32_t id = 1; id < AIR_EXECUTORS; id++) {
		struct air_wexec *x = &w->exec[id];

		if (x->ops)
			x->ops->close(x->ex);
		x->ops = NULL;
		x->ex = NULL;
	}
	memset(w->prefer, 0, sizeof(w->prefer));
	w->async = 0;
	w->used = 0;
}

bool air_executors_poll(struct air_worker *w)
{
	unsigned int reported = 0;

	for (uint32_t id = 1; w->async >> id; id++)
		if (w->async & (1U << id))
			reported += w->exec[id].ops->poll(w->exec[id].ex);
	return reported;
}

void air_executors_flush(struct air_worker *w)
{
	for (uint32_t id = 1; w->used >> id; id++) {
		struct air_wexec *x = &w->exec[id];

		if ((w->used & (1U << id)) && x->ops->flush)
			x->ops->flush(x->ex);
	}
	w->used = 0;
}

/* Ask one executor; AIR_OK fills in the descriptor. */
static air_status offer(struct air_wchannel *ch, struct air_wdesc *wd,
			uint32_t id, struct air_error *why)
{
	struct air_wexec *x = &ch->w->exec[id];
	uint64_t workspace = wd->plan.workspace;
	struct air_error e = { "" };
	air_status st;

	if (!x->ops)
		return air_fail(why, AIR_NO_DEVICE, "%s", x->caps.name);
	st = air_wchannel_use(ch, id, &e);
	if (!st)
		st = x->ops->plan(x->ex, &wd->plan, &wd->priv, &workspace, &e);
	if (st)
		return air_fail(why, st, "%s", e.text);
	wd->plan.workspace = workspace;
	wd->executor = id;
	return air_fail(why, AIR_OK, "%s: %s", x->ops->name, e.text);
}

/*
 * What the descriptor asks for, else what the channel does, else the first in
 * order of preference that takes it. The sentence then says what kept it from
 * a better one.
 */
air_status air_executor_choose(struct air_wchannel *ch, struct air_wdesc *wd,
			       struct air_error *why)
{
	uint32_t want = wd->plan.desc.executor ? wd->plan.desc.executor :
						 ch->wants;
	const uint32_t *id = ch->w->prefer;
	struct air_error refusal = { "" };
	air_status st = AIR_UNSUPPORTED;

	if (want)
		return offer(ch, wd, want, why);
	for (; *id; id++) {
		st = offer(ch, wd, *id, why);
		if (!st && refusal.text[0])
			air_fail(why, AIR_OK, "%s, because %s",
				 ch->w->exec[*id].ops->name, refusal.text);
		else if (!st && !ch->w->prefer[1])
			air_fail(why, AIR_OK, "%s, this worker's only executor",
				 ch->w->exec[*id].ops->name);
		if (!st)
			return AIR_OK;
		if (st != AIR_UNSUPPORTED && st != AIR_NO_DEVICE)
			return st;
		refusal = *why;
	}
	return st;
}
