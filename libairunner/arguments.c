// SPDX-License-Identifier: MIT
#include <stdlib.h>

#include "libairunner/channel.h"
#include "libairunner/error.h"

#define BYTES (256u << 10)
#define ALIGN 16u

void air_arguments_init(struct air_arguments *a)
{
	pthread_mutex_init(&a->lock, NULL);
}

void air_arguments_free(struct air_arguments *a)
{
	/* The buffer goes with the channel's others. */
	free(a->queue);
	pthread_mutex_destroy(&a->lock);
}

static air_status set_up(struct air_channel *ch)
{
	struct air_arguments *a = &ch->arguments;

	if (a->buf)
		return AIR_OK;
	if (!a->queue)
		a->queue = malloc(sizeof(*a->queue) * air_channel_entries(ch));
	if (!a->queue)
		return air_error_static(AIR_NO_MEMORY,
					"no memory for launches");
	return air_buffer_alloc(ch, BYTES, AIR_HOST, &a->buf);
}

/* What has completed is free again, in order. */
static void reclaim(struct air_channel *ch)
{
	struct air_arguments *a = &ch->arguments;

	while (a->n && air_channel_done(ch, a->queue[a->first].index)) {
		a->used = a->queue[a->first].end;
		a->first = (a->first + 1) % air_channel_entries(ch);
		a->n--;
	}
	if (!a->n) {
		a->used = 0;
		a->free = 0;
	}
}

/*
 * Where @bytes in one piece are free, or BYTES. @free never comes up to @used
 * from below: equal, they would mean an empty queue.
 */
static uint32_t find(const struct air_arguments *a, uint32_t bytes)
{
	if (a->free >= a->used) {
		if (BYTES - a->free >= bytes)
			return a->free;
		return a->used > bytes ? 0 : BYTES;
	}
	return a->used - a->free > bytes ? a->free : BYTES;
}

air_status air_arguments_take(struct air_channel *ch, uint32_t bytes, void **at,
			      uint64_t *ref)
{
	struct air_arguments *a = &ch->arguments;
	air_status status;
	uint32_t offset;

	bytes = (bytes + ALIGN - 1) & ~(ALIGN - 1);
	pthread_mutex_lock(&a->lock);
	status = set_up(ch);
	if (status != AIR_OK)
		goto fail;
	reclaim(ch);
	offset = find(a, bytes);
	if (a->n == air_channel_entries(ch)) {
		status = air_error_static(
			AIR_FULL, "the ring is full of launches: wait for one");
		goto fail;
	}
	if (offset == BYTES) {
		status = air_error_static(AIR_FULL,
					  "no room for the arguments of "
					  "another launch: wait for one");
		goto fail;
	}
	a->queue[(a->first + a->n) % air_channel_entries(ch)].end =
		offset + bytes;
	*at = (char *)air_buffer_data(a->buf) + offset;
	*ref = air_buffer_ref(a->buf, offset).bits;
	return AIR_OK;
fail:
	pthread_mutex_unlock(&a->lock);
	return status;
}

void air_arguments_commit(struct air_channel *ch, bool kept, uint64_t index)
{
	struct air_arguments *a = &ch->arguments;
	struct air_argument *last =
		&a->queue[(a->first + a->n) % air_channel_entries(ch)];

	if (kept) {
		last->index = index;
		a->free = last->end;
		a->n++;
	}
	pthread_mutex_unlock(&a->lock);
}
