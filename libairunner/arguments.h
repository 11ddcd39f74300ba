/* SPDX-License-Identifier: MIT */
/*
 * Where launch records lie until the worker has read them: one host buffer a
 * channel, made at the first launch and used round and round.
 */
#ifndef AIR_ARGUMENTS_H
#define AIR_ARGUMENTS_H

#include <pthread.h>
#include <stdint.h>

#include <airunner.h>

/**
 * struct air_arguments - a queue of byte ranges
 * @lock: held from air_arguments_take() to air_arguments_commit()
 * @buf: the memory; NULL before the first launch
 * @used: first byte in use
 * @free: first byte free
 * @queue: what is in use, in order: ends at byte @end, for submission @index
 * @first: of @queue
 * @n: in @queue; never more than the ring has entries
 */
struct air_arguments {
	pthread_mutex_t lock;
	struct air_buffer *buf;
	uint32_t used;
	uint32_t free;
	struct air_argument {
		uint64_t index;
		uint32_t end;
	} * queue;
	uint32_t first;
	uint32_t n;
};

void air_arguments_init(struct air_arguments *a);
void air_arguments_free(struct air_arguments *a);

/*
 * @bytes of memory; *@ref refers to it. Takes the lock when it succeeds, which
 * air_arguments_commit() gives back. AIR_FULL.
 */
air_status air_arguments_take(struct air_channel *ch, uint32_t bytes, void **at,
			      uint64_t *ref);

/* They are submission @index's; or, with @kept false, of none. */
void air_arguments_commit(struct air_channel *ch, bool kept, uint64_t index);

#endif /* AIR_ARGUMENTS_H */
