/* SPDX-License-Identifier: MIT */
/*
 * The pin cache: buffers that were freed but are still known to the worker,
 * pinned, mapped and registered with the GPU, all of which costs far more than
 * the memory. A buffer is reused on its own channel, under its own handle; the
 * number of bytes kept is the device's, and the least recently freed go first.
 *
 * Callers hold the device's lock.
 */
#ifndef AIR_CACHE_H
#define AIR_CACHE_H

#include <stdint.h>

#include <airunner.h>

#include "libairunner/list.h"

/* Eight steps for each power of two from a page up to 2^48. */
#define AIR_CACHE_CLASSES (8 * 37)

struct air_cache {
	uint64_t bytes;
	uint64_t limit;
	struct air_list lru;
};

/* A channel's part: buffers by memory kind and size class. */
struct air_cache_bins {
	struct air_list bin[2][AIR_CACHE_CLASSES];
};

/* The limit comes from AIRUNNER_CACHE_BYTES, else it is 256 MiB. */
void air_cache_init(struct air_cache *cache);
void air_cache_bins_init(struct air_cache_bins *bins);

/* Whether a buffer of @bytes may be kept at all. */
bool air_cache_takes(const struct air_cache *cache, uint64_t bytes);

void air_cache_put(struct air_cache *cache, struct air_buffer *buf);

/*
 * A buffer of at least @bytes and at most an eighth more, or NULL. It is the
 * caller's.
 */
struct air_buffer *air_cache_get(struct air_cache *cache,
				 struct air_cache_bins *bins, air_memory memory,
				 uint64_t bytes);

/* Take the least recently freed buffer while the limit is exceeded, or NULL. */
struct air_buffer *air_cache_evict(struct air_cache *cache);

void air_cache_remove(struct air_cache *cache, struct air_buffer *buf);

#endif /* AIR_CACHE_H */
