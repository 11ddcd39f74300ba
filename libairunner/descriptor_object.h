/* SPDX-License-Identifier: MIT */
#ifndef AIR_DESCRIPTOR_OBJECT_H
#define AIR_DESCRIPTOR_OBJECT_H

#include <airunner.h>

#include "libairunner/deferred.h"
#include "libairunner/list.h"
#include "ops/plan.h"

/**
 * struct air_descriptor - what air_create_*_descriptor() returns
 * @ch: its channel
 * @plan: checked here, for sentences and for making it again with a new worker
 * @id: the worker knows it by
 * @executor: enum airunner_executor the worker chose
 * @workspace: bytes an execution needs there
 * @why: the worker's sentence about its choice
 * @node: in ch->descriptors
 * @destroy: DESC_DESTROY on its way
 */
struct air_descriptor {
	struct air_channel *ch;
	struct air_plan plan;
	uint32_t id;
	uint32_t executor;
	uint64_t workspace;
	char why[sizeof(((struct airunner_desc_reply *)0)->why)];
	struct air_list node;
	struct air_deferred destroy;
};

/* The descriptor with @id, or NULL. The caller holds the channel's lock. */
struct air_descriptor *air_descriptor_find(struct air_channel *ch, uint32_t id);

#endif /* AIR_DESCRIPTOR_OBJECT_H */
