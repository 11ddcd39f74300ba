/* SPDX-License-Identifier: MIT */
/*
 * Submissions that the library owes (BUFFER_RELEASE, DESC_DESTROY) and that
 * found the ring full. They are made before the next one of the user's.
 */
#ifndef AIR_DEFERRED_H
#define AIR_DEFERRED_H

#include <stdint.h>

#include <airunner.h>

#include "libairunner/list.h"

/**
 * struct air_deferred - one owed submission
 * @node: in ch->deferred while it waits
 * @word0: its word 0
 * @done: it was submitted, everything before index @end is what came before
 *	or is it; called under the channel's lock
 */
struct air_deferred {
	struct air_list node;
	uint64_t word0;
	void (*done)(struct air_deferred *d, uint64_t end);
};

/*
 * Submit it now or later. The caller holds the channel's lock.
 */
void air_deferred_submit(struct air_channel *ch, struct air_deferred *d);

/*
 * Submit it later, with what the channel's own caller does next. Likewise; for
 * who may not submit in it (AIR_CHANNEL_SINGLE_CALLER).
 */
void air_deferred_append(struct air_channel *ch, struct air_deferred *d);

/* Submit what waits, as far as there is room. Likewise. */
void air_deferred_flush(struct air_channel *ch);

#endif /* AIR_DEFERRED_H */
