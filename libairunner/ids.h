/* SPDX-License-Identifier: MIT */
/*
 * Numbers by which a worker knows a channel's descriptors, modules and
 * functions. Always the lowest free one: workers keep tables by them. The
 * ring's order makes early reuse harmless.
 */
#ifndef AIR_IDS_H
#define AIR_IDS_H

#include <stdint.h>

/* What workers take: 1 to this. */
#define AIR_IDS_MAX 65535

/**
 * struct air_ids - which are in use
 * @map: bit an id
 * @words: of @map; grows
 */
struct air_ids {
	uint64_t *map;
	uint32_t words;
};

/* 0: all are in use, or no memory. */
uint32_t air_ids_take(struct air_ids *ids);
void air_ids_give(struct air_ids *ids, uint32_t id);
void air_ids_free(struct air_ids *ids);

#endif /* AIR_IDS_H */
