// SPDX-License-Identifier: MIT
#include <string.h>

#include "libairunner/channel.h"
#include "libairunner/deferred.h"

static bool submit(struct air_channel *ch, struct air_deferred *d)
{
	struct air_call call;
	uint64_t index;

	memset(&call, 0, sizeof(call));
	call.word[0] = d->word0;
	if (!air_channel_try_submit(ch, &call, 1,
				    AIR_SLOT_INTERNAL | AIR_SLOT_DETACHED,
				    &index))
		return false;
	d->done(d, index + 1);
	return true;
}

void air_deferred_append(struct air_channel *ch, struct air_deferred *d)
{
	air_list_append(&ch->deferred, &d->node);
	__atomic_fetch_or(&ch->care, AIR_CARE_DEFERRED, __ATOMIC_RELAXED);
}

void air_deferred_submit(struct air_channel *ch, struct air_deferred *d)
{
	/* Behind those that wait: a channel's releases keep their order. */
	if (!air_list_empty(&ch->deferred) || !submit(ch, d))
		air_deferred_append(ch, d);
}

void air_deferred_flush(struct air_channel *ch)
{
	while (!air_list_empty(&ch->deferred)) {
		struct air_deferred *d = air_list_entry(
			ch->deferred.next, struct air_deferred, node);

		air_list_remove(&d->node);
		if (!submit(ch, d)) {
			/* It was the first and stays so. */
			d->node.next = ch->deferred.next;
			d->node.prev = &ch->deferred;
			ch->deferred.next->prev = &d->node;
			ch->deferred.next = &d->node;
			return;
		}
	}
	__atomic_fetch_and(&ch->care, ~AIR_CARE_DEFERRED, __ATOMIC_RELAXED);
}
