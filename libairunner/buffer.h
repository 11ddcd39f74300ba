/* SPDX-License-Identifier: MIT */
/*
 * A buffer's way:
 *
 *	LIVE --air_buffer_free()--> DRAINING --what used it has completed-->
 *	CACHED --reused--> LIVE, or --evicted--> RELEASING --BUFFER_RELEASE has
 *	completed--> given back
 *
 * Imported memory, and what the cache does not take, goes from LIVE to
 * RELEASING at once: the ring keeps the order.
 *
 * No submission is counted: a buffer is unused when every submission made
 * before it was freed has completed, which costs the submit path nothing.
 */
#ifndef AIR_BUFFER_H
#define AIR_BUFFER_H

#include <stdbool.h>
#include <stdint.h>

#include <airunner.h>

#include "libairunner/deferred.h"
#include "libairunner/list.h"
#include "libairunner/mapping.h"

enum air_buffer_state {
	AIR_BUFFER_LIVE,
	AIR_BUFFER_DRAINING,
	AIR_BUFFER_CACHED,
	AIR_BUFFER_RELEASING,
};

/**
 * struct air_buffer - memory with a handle
 * @ch: its channel
 * @mapping: host memory; addr is the owner's for an import, NULL for device
 *	memory; size is what the worker checks operands against
 * @device: import of device memory: its address
 * @until: DRAINING, RELEASING: unused once all indices before it are done
 * @node: in the channel's list of its state (LIVE, CACHED: ch->buffers;
 *	DRAINING, RELEASING: ch->limbo)
 * @bin: CACHED: in its size class
 * @lru: CACHED: in order of being freed
 * @release: BUFFER_RELEASE on its way
 */
struct air_buffer {
	struct air_channel *ch;
	struct air_mapping mapping;
	uint64_t device;
	uint64_t until;
	uint32_t handle;
	enum air_buffer_state state;
	air_memory memory;
	bool imported;
	bool lost;
	struct air_list node;
	struct air_list bin;
	struct air_list lru;
	struct air_deferred release;
};

/* Move on what can be moved on. The caller holds no lock. */
void air_buffer_reap(struct air_channel *ch);

/* At the end of a channel: the worker has let go of everything. */
void air_buffer_destroy_all(struct air_channel *ch);

/*
 * Another worker has taken over: register what it must know. The caller holds
 * the channel's lock.
 */
air_status air_buffer_register_all(struct air_channel *ch);

/* The worker that had them is gone, and device memory with it. */
void air_buffer_lose_device(struct air_channel *ch);

/* The buffer of @handle, or NULL. The caller holds the channel's lock. */
struct air_buffer *air_buffer_by_handle(struct air_channel *ch,
					uint32_t handle);

#endif /* AIR_BUFFER_H */
