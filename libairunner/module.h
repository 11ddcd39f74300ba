/* SPDX-License-Identifier: MIT */
#ifndef AIR_MODULE_H
#define AIR_MODULE_H

#include <airunner/launch.h>

#include "libairunner/deferred.h"
#include "libairunner/list.h"

/**
 * struct air_module - device code
 * @ch: its channel
 * @buf: the image, then room for the worker's replies. Kept for a worker that
 *	is restarted
 * @bytes: of the image
 * @id: the worker knows it by
 * @functions: looked up so far
 * @node: in ch->modules
 * @unload: MODULE_UNLOAD on its way
 */
struct air_module {
	struct air_channel *ch;
	struct air_buffer *buf;
	size_t bytes;
	uint32_t id;
	struct air_list functions;
	struct air_list node;
	struct air_deferred unload;
};

/**
 * struct air_function - a kernel
 * @module: it is in
 * @node: in module->functions
 * @id: the worker knows it by
 * @info: what the worker told
 * @name: NUL-terminated
 */
struct air_function {
	struct air_module *module;
	struct air_list node;
	uint32_t id;
	struct air_function_info info;
	char name[];
};

/* The name of function @id, or NULL. The caller holds ch->lock. */
const char *air_function_name(struct air_channel *ch, uint32_t id);

#endif /* AIR_MODULE_H */
