// SPDX-License-Identifier: MIT
/*
 * Buffers. libairunner/buffer.h has the states and why nothing is counted.
 */
#include <stdlib.h>
#include <string.h>

#include <airunner.h>

#include "libairunner/channel.h"
#include "libairunner/error.h"

/* ------------------------------------------------------------- handles */

static bool get_bit(const uint64_t *map, uint32_t i)
{
	return map[i / 64] >> i % 64 & 1;
}

static void set_freed(struct air_channel *ch, uint32_t handle, bool freed)
{
	uint64_t bit = UINT64_C(1) << handle % 64;

	if (freed) {
		__atomic_fetch_or(&ch->freed[handle / 64], bit,
				  __ATOMIC_RELAXED);
		__atomic_fetch_add(&ch->n_freed, 1, __ATOMIC_RELAXED);
	} else if (get_bit(ch->freed, handle)) {
		__atomic_fetch_and(&ch->freed[handle / 64], ~bit,
				   __ATOMIC_RELAXED);
		__atomic_fetch_sub(&ch->n_freed, 1, __ATOMIC_RELAXED);
	}
}

/*
 * Round-robin, so that a handle comes back late and a stale reference is
 * refused for as long as possible. 0: none is left.
 */
static uint32_t take_handle(struct air_channel *ch)
{
	uint32_t max = ch->dev->max_handle, h = ch->next_handle;

	for (uint32_t n = 0; n < max; n++, h = h % max + 1) {
		if (get_bit(ch->handles, h))
			continue;
		ch->handles[h / 64] |= UINT64_C(1) << h % 64;
		ch->next_handle = h % max + 1;
		return h;
	}
	return 0;
}

static void give_handle(struct air_channel *ch, uint32_t handle)
{
	set_freed(ch, handle, false);
	ch->handles[handle / 64] &= ~(UINT64_C(1) << handle % 64);
}

struct air_buffer *air_buffer_by_handle(struct air_channel *ch, uint32_t handle)
{
	struct air_list *lists[] = { &ch->buffers, &ch->limbo };

	for (unsigned int l = 0; l < 2; l++) {
		for (struct air_list *pos = lists[l]->next; pos != lists[l];
		     pos = pos->next) {
			struct air_buffer *buf =
				air_list_entry(pos, struct air_buffer, node);

			if (buf->handle == handle)
				return buf;
		}
	}
	return NULL;
}

/* -------------------------------------------------------- giving back */

static void release_submitted(struct air_deferred *d, uint64_t end)
{
	struct air_buffer *buf = air_list_entry(d, struct air_buffer, release);

	buf->until = end;
}

/*
 * The worker is to forget it. The caller holds the channel's lock. @foreign:
 * and has been called for another channel.
 */
static void release(struct air_channel *ch, struct air_buffer *buf,
		    bool foreign)
{
	air_list_remove(&buf->node);
	buf->state = AIR_BUFFER_RELEASING;
	buf->until = UINT64_MAX;
	air_list_append(&ch->limbo, &buf->node);
	if (buf->lost) {
		buf->until = 0;
		return;
	}
	buf->release.word0 = airunner_sqe_head(AIRUNNER_OP_BUFFER_RELEASE, 0, 0,
					       buf->handle);
	buf->release.done = release_submitted;
	if (foreign && ch->ring.single)
		air_deferred_append(ch, &buf->release);
	else
		air_deferred_submit(ch, &buf->release);
}

static void free_buffer(struct air_buffer *buf)
{
	if (!buf->imported)
		air_mapping_destroy(&buf->mapping);
	free(buf);
}

/* Whether every submission before index @until has completed. */
static bool all_done(struct air_channel *ch, uint64_t until)
{
	uint64_t head = air_channel_head(ch);

	if (ch->done < head)
		ch->done = head;
	while (ch->done < until && ch->done < air_channel_tail(ch) &&
	       air_channel_done(ch, ch->done))
		ch->done++;
	return ch->done >= until;
}

/*
 * Of what nothing uses any more the drained go to the cache, the released onto
 * @to. In one hold of both locks, dev->lock and ch->lock: a new worker must
 * find every buffer that it is to know on one of the channel's lists. True when
 * the cache got any.
 */
static bool collect_unused(struct air_channel *ch, struct air_list *to)
{
	struct air_list *pos, *next;
	bool cached = false;

	air_list_each(pos, next, &ch->limbo) {
		struct air_buffer *buf =
			air_list_entry(pos, struct air_buffer, node);

		if (!all_done(ch, buf->until))
			continue;
		if (buf->state == AIR_BUFFER_DRAINING) {
			buf->state = AIR_BUFFER_CACHED;
			air_list_remove(pos);
			air_list_append(&ch->buffers, pos);
			air_cache_put(&ch->dev->cache, buf);
			cached = true;
			continue;
		}
		if (ch->ops->buffer_released &&
		    !ch->ops->buffer_released(ch, buf))
			continue;
		air_list_remove(pos);
		air_list_append(to, pos);
	}
	return cached;
}

/* Of any channel's buffers; the caller has been called for @ch. */
static void evict(struct air_channel *ch)
{
	struct air_device *dev = ch->dev;
	struct air_buffer *buf;

	pthread_mutex_lock(&dev->lock);
	while ((buf = air_cache_evict(&dev->cache))) {
		pthread_mutex_lock(&buf->ch->lock);
		release(buf->ch, buf, buf->ch != ch);
		pthread_mutex_unlock(&buf->ch->lock);
	}
	pthread_mutex_unlock(&dev->lock);
}

void air_buffer_reap(struct air_channel *ch)
{
	struct air_device *dev = ch->dev;
	struct air_list unused, *pos, *next;
	bool cached;

	air_list_init(&unused);
	pthread_mutex_lock(&dev->lock);
	pthread_mutex_lock(&ch->lock);
	cached = collect_unused(ch, &unused);
	pthread_mutex_unlock(&ch->lock);
	pthread_mutex_unlock(&dev->lock);

	air_list_each(pos, next, &unused) {
		struct air_buffer *buf =
			air_list_entry(pos, struct air_buffer, node);

		air_list_remove(pos);
		if (ch->ops->buffer_unregister && buf->mapping.addr)
			ch->ops->buffer_unregister(ch, buf);
		pthread_mutex_lock(&ch->lock);
		give_handle(ch, buf->handle);
		pthread_mutex_unlock(&ch->lock);
		free_buffer(buf);
	}
	if (cached)
		evict(ch);
}

void air_buffer_destroy_all(struct air_channel *ch)
{
	struct air_list *lists[] = { &ch->buffers, &ch->limbo };
	struct air_list *pos, *next;

	for (unsigned int l = 0; l < 2; l++)
		air_list_each(pos, next, lists[l])
			free_buffer(
				air_list_entry(pos, struct air_buffer, node));
}

/* ------------------------------------------------------ another worker */

air_status air_buffer_register_all(struct air_channel *ch)
{
	struct air_list *pos, *next;
	air_status status;

	air_list_each(pos, next, &ch->limbo) {
		struct air_buffer *buf =
			air_list_entry(pos, struct air_buffer, node);

		/* What the new worker never knew it need not forget. */
		if (buf->state == AIR_BUFFER_RELEASING) {
			if (buf->until == UINT64_MAX)
				air_list_remove(&buf->release.node);
			buf->until = 0;
			continue;
		}
		if (buf->memory == AIR_DEVICE)
			continue;
		status = ch->ops->buffer_register(ch, buf);
		if (status != AIR_OK)
			return status;
	}
	air_list_each(pos, next, &ch->buffers) {
		struct air_buffer *buf =
			air_list_entry(pos, struct air_buffer, node);

		if (buf->memory == AIR_DEVICE)
			continue;
		status = ch->ops->buffer_register(ch, buf);
		if (status != AIR_OK)
			return status;
	}
	return AIR_OK;
}

void air_buffer_lose_device(struct air_channel *ch)
{
	struct air_list *lists[] = { &ch->buffers, &ch->limbo };
	struct air_list *pos, *next;

	for (unsigned int l = 0; l < 2; l++) {
		air_list_each(pos, next, lists[l]) {
			struct air_buffer *buf =
				air_list_entry(pos, struct air_buffer, node);

			if (buf->memory == AIR_DEVICE)
				buf->lost = true;
		}
	}
}

/* ---------------------------------------------------------- public API */

static air_status check_alloc(air_channel *ch, size_t bytes, air_memory memory,
			      air_buffer **out)
{
	if (!ch || !out)
		return air_error_set(AIR_BAD_ARGUMENT, "buffer: %s is NULL",
				     ch ? "out" : "channel");
	if (!bytes)
		return air_error_static(AIR_BAD_ARGUMENT,
					"a buffer of 0 bytes cannot be");
	if (bytes > AIRUNNER_OFFSET_MASK)
		return air_error_set(
			AIR_BAD_ARGUMENT,
			"a buffer of %zu bytes; at most %llu are possible",
			bytes, (unsigned long long)AIRUNNER_OFFSET_MASK);
	if (memory != AIR_HOST && memory != AIR_DEVICE)
		return air_error_set(
			AIR_BAD_ARGUMENT,
			"memory kind %u is neither AIR_HOST nor AIR_DEVICE",
			(unsigned int)memory);
	return air_channel_usable(ch);
}

static air_status new_buffer(struct air_channel *ch, air_memory memory,
			     size_t size, struct air_buffer **out)
{
	struct air_buffer *buf = calloc(1, sizeof(*buf));

	if (!buf)
		return air_error_static(AIR_NO_MEMORY,
					"no memory for a buffer");
	buf->ch = ch;
	buf->memory = memory;
	buf->mapping.size = size;
	buf->mapping.fd = -1;
	air_list_init(&buf->node);
	air_list_init(&buf->bin);
	air_list_init(&buf->lru);
	air_list_init(&buf->release.node);
	pthread_mutex_lock(&ch->lock);
	buf->handle = take_handle(ch);
	pthread_mutex_unlock(&ch->lock);
	if (!buf->handle) {
		free(buf);
		return air_error_set(
			AIR_QUOTA,
			"the channel has %u buffers, as many as there can be",
			ch->dev->max_handle);
	}
	*out = buf;
	return AIR_OK;
}

static air_status alloc_on_device(struct air_channel *ch,
				  struct air_buffer *buf)
{
	struct air_call call;
	struct air_cqe cqe;
	air_status status;

	memset(&call, 0, sizeof(call));
	call.word[0] =
		airunner_sqe_head(AIRUNNER_OP_BUFFER_ALLOC, 0, 0, buf->handle);
	call.word[AIRUNNER_WORD_ARG] = buf->mapping.size;
	status = air_channel_call(ch, &call, &cqe, NULL);
	if (status != AIR_OK)
		return status;
	if (cqe.status == AIRUNNER_S_UNSUPPORTED)
		return air_error_set(AIR_UNSUPPORTED,
				     "%zu bytes of device memory: no executor "
				     "here has memory of its own; use AIR_HOST",
				     buf->mapping.size);
	if (cqe.status != AIRUNNER_S_OK)
		return air_error_set((air_status)cqe.status,
				     "%zu bytes of device memory: %s",
				     buf->mapping.size,
				     air_status_string((air_status)cqe.status));
	return AIR_OK;
}

/* The caller holds the channel's lock. */
static void enlist_locked(struct air_channel *ch, struct air_buffer *buf)
{
	buf->state = AIR_BUFFER_LIVE;
	set_freed(ch, buf->handle, false);
	air_list_remove(&buf->node);
	air_list_append(&ch->buffers, &buf->node);
}

static void enlist(struct air_channel *ch, struct air_buffer *buf)
{
	pthread_mutex_lock(&ch->lock);
	enlist_locked(ch, buf);
	pthread_mutex_unlock(&ch->lock);
}

/*
 * Device memory asked for when the channel was at @epoch. If another worker has
 * taken over since, nobody can tell whose memory it is, and who marked what is
 * lost did not see it: whoever has it is told to forget it.
 */
static air_status enlist_device(struct air_channel *ch, struct air_buffer *buf,
				uint32_t epoch)
{
	bool same;

	pthread_mutex_lock(&ch->lock);
	/* What was submitted before there was any worker is the first one's. */
	same = air_channel_is_settled(ch) &&
	       (ch->epoch == epoch || (!epoch && ch->epoch == 1));
	if (same)
		enlist_locked(ch, buf);
	else
		release(ch, buf, false);
	pthread_mutex_unlock(&ch->lock);
	if (same)
		return AIR_OK;
	return air_error_static(AIR_WORKER_DIED,
				"the worker died that allocated the memory");
}

static air_status register_once(struct air_channel *ch, struct air_buffer *buf)
{
	air_status status;

	/*
	 * Where the library itself tells a new worker of the buffers, this one
	 * is either told with them or after them.
	 */
	if (ch->ops->revive)
		pthread_mutex_lock(&ch->dev->lock);
	status = ch->ops->buffer_register(ch, buf);
	if (status == AIR_OK)
		enlist(ch, buf);
	if (ch->ops->revive)
		pthread_mutex_unlock(&ch->dev->lock);
	return status;
}

static air_status register_buffer(struct air_channel *ch,
				  struct air_buffer *buf)
{
	air_status status = register_once(ch, buf);

	if (air_channel_revived(ch, &status))
		status = register_once(ch, buf);
	return status;
}

static void discard(struct air_channel *ch, struct air_buffer *buf)
{
	pthread_mutex_lock(&ch->lock);
	give_handle(ch, buf->handle);
	pthread_mutex_unlock(&ch->lock);
	free_buffer(buf);
}

air_status air_buffer_alloc(air_channel *ch, size_t bytes, air_memory memory,
			    air_buffer **out)
{
	air_status status = check_alloc(ch, bytes, memory, out);
	struct air_buffer *buf;

	if (status != AIR_OK)
		return status;
	status = air_channel_settle(ch);
	if (status != AIR_OK)
		return status;
	air_buffer_reap(ch);
	bytes = air_page_round(bytes);

	pthread_mutex_lock(&ch->dev->lock);
	do {
		buf = air_cache_get(&ch->dev->cache, &ch->bins, memory, bytes);
		if (buf && buf->lost) {
			pthread_mutex_lock(&ch->lock);
			release(ch, buf, false);
			pthread_mutex_unlock(&ch->lock);
		}
	} while (buf && buf->lost);
	pthread_mutex_unlock(&ch->dev->lock);
	if (buf) {
		enlist(ch, buf);
		*out = buf;
		return AIR_OK;
	}

	status = new_buffer(ch, memory, bytes, &buf);
	if (status != AIR_OK)
		return status;
	if (memory == AIR_DEVICE) {
		uint32_t epoch = air_load(&ch->epoch, ACQUIRE);

		status = alloc_on_device(ch, buf);
		if (status == AIR_OK) {
			status = enlist_device(ch, buf, epoch);
			if (status != AIR_OK)
				return status;
		}
	} else {
		status = air_mapping_create(
			&buf->mapping,
			ch->ops->mapping == AIR_MAPPING_ANONYMOUS ?
				AIR_MAPPING_BUFFER :
				ch->ops->mapping,
			bytes, "airunner-buffer");
		if (status == AIR_OK)
			status = register_buffer(ch, buf);
		if (status == AIR_OK && !ch->ops->keep_fd)
			air_mapping_close_fd(&buf->mapping);
	}
	if (status != AIR_OK) {
		discard(ch, buf);
		return status;
	}
	*out = buf;
	return AIR_OK;
}

air_status air_buffer_import(air_channel *ch, void *data, size_t bytes,
			     air_memory memory, air_buffer **out)
{
	air_status status = check_alloc(ch, bytes, memory, out);
	struct air_buffer *buf;

	if (status != AIR_OK)
		return status;
	if (!data)
		return air_error_static(AIR_BAD_ARGUMENT,
					"air_buffer_import: data is NULL");
	if (!ch->ops->imports)
		return air_error_static(AIR_UNSUPPORTED,
					"only \"inproc:\" can import memory: "
					"the worker of this device is another "
					"process; use air_buffer_alloc()");
	status = new_buffer(ch, memory, bytes, &buf);
	if (status != AIR_OK)
		return status;
	buf->imported = true;
	if (memory == AIR_DEVICE)
		buf->device = (uint64_t)(uintptr_t)data;
	else
		buf->mapping.addr = data;
	status = register_buffer(ch, buf);
	if (status != AIR_OK) {
		discard(ch, buf);
		return status;
	}
	*out = buf;
	return AIR_OK;
}

air_status air_buffer_free(air_buffer *buf)
{
	struct air_channel *ch;
	air_status status;

	if (!buf)
		return AIR_OK;
	ch = buf->ch;
	status = air_channel_usable(ch);
	if (status != AIR_OK)
		return status;
	pthread_mutex_lock(&ch->lock);
	set_freed(ch, buf->handle, true);
	if (buf->imported || buf->lost ||
	    !air_cache_takes(&ch->dev->cache, buf->mapping.size)) {
		release(ch, buf, false);
	} else {
		air_list_remove(&buf->node);
		buf->state = AIR_BUFFER_DRAINING;
		buf->until = air_channel_tail(ch);
		air_list_append(&ch->limbo, &buf->node);
	}
	pthread_mutex_unlock(&ch->lock);
	air_buffer_reap(ch);
	return AIR_OK;
}

void *air_buffer_data(const air_buffer *buf)
{
	return buf->mapping.addr;
}

size_t air_buffer_size(const air_buffer *buf)
{
	return buf->mapping.size;
}

air_ref air_buffer_ref(const air_buffer *buf, uint64_t offset)
{
	/*
	 * An offset beyond what a reference can say must not wrap into the
	 * buffer: the largest one is outside of any.
	 */
	if (offset > AIRUNNER_OFFSET_MASK)
		offset = AIRUNNER_OFFSET_MASK;
	return (air_ref){ airunner_ref(buf->handle, offset) };
}
