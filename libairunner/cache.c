// SPDX-License-Identifier: MIT
#include <stdlib.h>

#include "libairunner/channel.h"

#define DEFAULT_LIMIT (UINT64_C(256) << 20)
#define MIN_SHIFT     12
/* Buffers of one class are searched through for one that is large enough. */
#define MAX_LOOK 16

void air_cache_init(struct air_cache *cache)
{
	const char *env = getenv("AIRUNNER_CACHE_BYTES");
	char *end;

	cache->bytes = 0;
	cache->limit = DEFAULT_LIMIT;
	air_list_init(&cache->lru);
	if (env && *env) {
		uint64_t limit = strtoull(env, &end, 0);

		if (!*end)
			cache->limit = limit;
	}
}

void air_cache_bins_init(struct air_cache_bins *bins)
{
	for (unsigned int m = 0; m < 2; m++)
		for (unsigned int i = 0; i < AIR_CACHE_CLASSES; i++)
			air_list_init(&bins->bin[m][i]);
}

/* The class that @bytes falls into: all sizes of one are within an eighth. */
static unsigned int class_of(uint64_t bytes)
{
	unsigned int shift, c;

	if (bytes < 1ul << MIN_SHIFT)
		return 0;
	shift = 63 - (unsigned int)__builtin_clzll(bytes);
	c = (shift - MIN_SHIFT) * 8 + (unsigned int)(bytes >> (shift - 3) & 7);
	return c < AIR_CACHE_CLASSES ? c : AIR_CACHE_CLASSES - 1;
}

static struct air_list *bin_of(struct air_buffer *buf)
{
	return &buf->ch->bins.bin[buf->memory == AIR_DEVICE]
				 [class_of(buf->mapping.size)];
}

bool air_cache_takes(const struct air_cache *cache, uint64_t bytes)
{
	return bytes <= cache->limit;
}

void air_cache_put(struct air_cache *cache, struct air_buffer *buf)
{
	air_list_append(&cache->lru, &buf->lru);
	air_list_append(bin_of(buf), &buf->bin);
	cache->bytes += buf->mapping.size;
}

void air_cache_remove(struct air_cache *cache, struct air_buffer *buf)
{
	air_list_remove(&buf->lru);
	air_list_remove(&buf->bin);
	cache->bytes -= buf->mapping.size;
}

struct air_buffer *air_cache_get(struct air_cache *cache,
				 struct air_cache_bins *bins, air_memory memory,
				 uint64_t bytes)
{
	unsigned int c = class_of(bytes);

	for (unsigned int i = c; i < c + 2 && i < AIR_CACHE_CLASSES; i++) {
		struct air_list *bin = &bins->bin[memory == AIR_DEVICE][i];
		struct air_list *pos = bin->prev;

		/* The last freed first: its pages are the warmest. */
		for (int n = 0; pos != bin && n < MAX_LOOK; pos = pos->prev) {
			struct air_buffer *buf =
				air_list_entry(pos, struct air_buffer, bin);
			uint64_t size = buf->mapping.size;

			if (size >= bytes && size - bytes <= bytes / 8) {
				air_cache_remove(cache, buf);
				return buf;
			}
			n++;
		}
	}
	return NULL;
}

struct air_buffer *air_cache_evict(struct air_cache *cache)
{
	struct air_buffer *buf;

	if (cache->bytes <= cache->limit || air_list_empty(&cache->lru))
		return NULL;
	buf = air_list_entry(cache->lru.next, struct air_buffer, lru);
	air_cache_remove(cache, buf);
	return buf;
}
