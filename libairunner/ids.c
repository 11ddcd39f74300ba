// SPDX-License-Identifier: MIT
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "libairunner/ids.h"

static bool grow(struct air_ids *ids)
{
	uint32_t words = ids->words ? ids->words * 2 : 1;
	uint64_t *map;

	if (words > (AIR_IDS_MAX + 1) / 64)
		return false;
	map = realloc(ids->map, words * sizeof(*map));
	if (!map)
		return false;
	memset(map + ids->words, 0, (words - ids->words) * sizeof(*map));
	if (!ids->words)
		map[0] = 1; /* 0 is no id */
	ids->map = map;
	ids->words = words;
	return true;
}

uint32_t air_ids_take(struct air_ids *ids)
{
	for (uint32_t w = 0; w < ids->words || grow(ids); w++) {
		uint32_t bit;

		if (!~ids->map[w])
			continue;
		bit = (uint32_t)__builtin_ctzll(~ids->map[w]);
		ids->map[w] |= UINT64_C(1) << bit;
		return w * 64 + bit;
	}
	return 0;
}

void air_ids_give(struct air_ids *ids, uint32_t id)
{
	ids->map[id / 64] &= ~(UINT64_C(1) << id % 64);
}

void air_ids_free(struct air_ids *ids)
{
	free(ids->map);
	ids->map = NULL;
	ids->words = 0;
}
