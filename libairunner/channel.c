// SPDX-License-Identifier: MIT
/*
 * Channels: setting them up and taking them down.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <airunner.h>

#include "libairunner/channel.h"
#include "libairunner/clock.h"
#include "libairunner/error.h"
#include "libairunner/membarrier.h"

#define DEFAULT_ORDER 10
#define DEFAULT_ARENA 65536
#define RECORD	      sizeof(struct airunner_desc_record)
/* Records are told apart by the bits of one word. */
#define MAX_RECORDS  64
#define BITMAP_BYTES ((AIRUNNER_HANDLE_NONE + 1) / 8)

#define CHANNEL_FLAGS AIR_CHANNEL_SINGLE_CALLER

#define DESTROY_NS INT64_C(10000000000)

air_status air_channel_usable(const struct air_channel *ch)
{
	if (ch->fork_generation == air_fork_generation)
		return AIR_OK;
	return air_error_static(AIR_FORKED,
				"the channel belongs to this process's parent: "
				"open a device of your own after fork()");
}

static air_status check_options(const struct air_channel_options *o)
{
	if (o->order &&
	    (o->order < AIRUNNER_MIN_ORDER || o->order > AIRUNNER_MAX_ORDER))
		return air_error_set(
			AIR_BAD_ARGUMENT,
			"channel order is %u; %u to %u are possible", o->order,
			AIRUNNER_MIN_ORDER, AIRUNNER_MAX_ORDER);
	if (o->arena && o->arena < RECORD)
		return air_error_set(
			AIR_BAD_ARGUMENT,
			"channel arena is %llu bytes; at least %zu are needed",
			(unsigned long long)o->arena, RECORD);
	if (o->arena > AIRUNNER_OFFSET_MASK / 2)
		return air_error_set(AIR_BAD_ARGUMENT,
				     "channel arena is %llu bytes; at most "
				     "%llu are possible",
				     (unsigned long long)o->arena,
				     (unsigned long long)AIRUNNER_OFFSET_MASK /
					     2);
	if (o->priority > AIRUNNER_PRIO_CLASSES)
		return air_error_set(
			AIR_BAD_ARGUMENT,
			"channel priority is %u; 0 to %u are possible",
			o->priority, AIRUNNER_PRIO_CLASSES);
	if (o->weight > AIRUNNER_WEIGHT_MAX)
		return air_error_set(
			AIR_BAD_ARGUMENT,
			"channel weight is %u; 0 to %u are possible", o->weight,
			AIRUNNER_WEIGHT_MAX);
	if ((uint32_t)o->executor > AIR_EXEC_CUDA_RESIDENT)
		return air_error_set(AIR_BAD_ARGUMENT,
				     "channel executor %u is unknown",
				     (unsigned int)o->executor);
	if (o->flags & ~CHANNEL_FLAGS)
		return air_error_set(AIR_BAD_ARGUMENT,
				     "channel options: unknown flags 0x%x",
				     o->flags & ~CHANNEL_FLAGS);
	return AIR_OK;
}

static void set_up_arena(struct air_channel *ch, uint32_t order)
{
	uint64_t records;

	ch->arena = (airunner_arena_offset(order) + 63) & ~UINT64_C(63);
	records = (ch->region.size - ch->arena) / RECORD;
	ch->arena_records =
		records < MAX_RECORDS ? (uint32_t)records : MAX_RECORDS;
}

static void free_channel(struct air_channel *ch)
{
	air_mapping_destroy(&ch->region);
	pthread_cond_destroy(&ch->arena_free);
	pthread_mutex_destroy(&ch->lock);
	pthread_mutex_destroy(&ch->error_lock);
	pthread_mutex_destroy(&ch->answer_lock);
	pthread_mutex_destroy(&ch->replay_lock);
	air_arguments_free(&ch->arguments);
	air_ids_free(&ch->descriptor_ids);
	air_ids_free(&ch->module_ids);
	air_ids_free(&ch->function_ids);
	free(ch->slots);
	free(ch->collected);
	free(ch->freed);
	free(ch->handles);
	free(ch);
}

static struct air_channel *alloc_channel(struct air_device *dev, uint32_t order)
{
	struct air_channel *ch;

	if (posix_memalign((void **)&ch, 128, sizeof(*ch)))
		return NULL;
	memset(ch, 0, sizeof(*ch));
	ch->dev = dev;
	ch->ops = dev->ops;
	ch->fork_generation = air_fork_generation;
	ch->region.fd = -1;
	pthread_mutex_init(&ch->lock, NULL);
	pthread_cond_init(&ch->arena_free, NULL);
	pthread_mutex_init(&ch->error_lock, NULL);
	pthread_mutex_init(&ch->answer_lock, NULL);
	pthread_mutex_init(&ch->replay_lock, NULL);
	air_list_init(&ch->node);
	air_list_init(&ch->buffers);
	air_list_init(&ch->limbo);
	air_list_init(&ch->deferred);
	air_list_init(&ch->descriptors);
	air_list_init(&ch->modules);
	air_arguments_init(&ch->arguments);
	air_cache_bins_init(&ch->bins);
	ch->next_handle = 1;
	ch->slots = aligned_alloc(64, sizeof(*ch->slots) << order);
	ch->collected = calloc(1ul << order, 1);
	ch->freed = calloc(1, BITMAP_BYTES);
	ch->handles = calloc(1, BITMAP_BYTES);
	if (!ch->slots || !ch->collected || !ch->freed || !ch->handles) {
		free_channel(ch);
		return NULL;
	}
	/* The token one lap before the slot's first. */
	memset(ch->slots, 0, sizeof(*ch->slots) << order);
	for (uint64_t s = 0; s < UINT64_C(1) << order; s++)
		ch->slots[s].claimed = s + 1 - (UINT64_C(1) << order);
	return ch;
}

static air_status create(struct air_device *dev,
			 const struct air_channel_options *o, air_channel **out)
{
	struct air_channel *ch = alloc_channel(dev, o->order);
	air_status status;
	uint64_t size;

	if (!ch)
		return air_error_set(AIR_NO_MEMORY,
				     "no memory for a channel of %u entries",
				     1u << o->order);
	/* Records are aligned to 64 bytes within the region. */
	size = airunner_arena_offset(o->order) + 63 + o->arena;
	status = air_mapping_create(&ch->region, dev->ops->mapping, size,
				    "airunner-channel");
	if (status != AIR_OK)
		goto fail;
	air_ring_init(&ch->ring, ch->region.addr, o->order);
	ch->ring.single = o->flags & AIR_CHANNEL_SINGLE_CALLER;
	ch->executor = o->executor;
	ch->asym = dev->asym;
	ch->ring.ctrl->client_flags = dev->asym ? AIRUNNER_CLIENT_ASYM : 0;
	set_up_arena(ch, o->order);

	pthread_mutex_lock(&dev->lock);
	status = dev->ops->channel_build(ch, o);
	if (status == AIR_OK)
		air_list_append(&dev->channels, &ch->node);
	pthread_mutex_unlock(&dev->lock);
	if (status != AIR_OK)
		goto fail;
	if (!dev->ops->keep_fd)
		air_mapping_close_fd(&ch->region);
	ch->epoch = air_load(&ch->ring.ctrl->sq_epoch, ACQUIRE);
	*out = ch;
	return AIR_OK;
fail:
	free_channel(ch);
	return status;
}

air_status air_channel_create(air_device *dev,
			      const struct air_channel_options *options,
			      air_channel **out)
{
	struct air_channel_options o;
	air_status status;

	if (!dev || !out)
		return air_error_set(AIR_BAD_ARGUMENT,
				     "air_channel_create: %s is NULL",
				     dev ? "out" : "device");
	status = air_device_usable(dev);
	if (status != AIR_OK)
		return status;
	status = air_options_take(&o, sizeof(o), options, "channel options");
	if (status != AIR_OK)
		return status;
	status = check_options(&o);
	if (status != AIR_OK)
		return status;
	if (!o.order)
		o.order = DEFAULT_ORDER;
	if (!o.arena)
		o.arena = DEFAULT_ARENA;

	status = create(dev, &o, out);
	/* In another region: who did not answer may have that one. */
	if (air_device_revived(dev, &status))
		status = create(dev, &o, out);
	return status;
}

static void drop_cached(struct air_channel *ch)
{
	struct air_list *pos, *next;

	pthread_mutex_lock(&ch->lock);
	air_list_each(pos, next, &ch->buffers) {
		struct air_buffer *buf =
			air_list_entry(pos, struct air_buffer, node);

		if (buf->state == AIR_BUFFER_CACHED)
			air_cache_remove(&ch->dev->cache, buf);
	}
	pthread_mutex_unlock(&ch->lock);
}

air_status air_channel_destroy(air_channel *ch)
{
	air_status status;

	if (!ch)
		return AIR_OK;
	status = air_channel_usable(ch);
	if (status != AIR_OK)
		return status;
	if (ch->cut == AIR_OK) {
		status = air_drain(ch, DESTROY_NS);
		if (status == AIR_TIMEOUT)
			return air_error_set(
				AIR_TIMEOUT,
				"the channel still has submissions outstanding "
				"after 10 seconds");
	}
	pthread_mutex_lock(&ch->dev->lock);
	air_list_remove(&ch->node);
	drop_cached(ch);
	pthread_mutex_unlock(&ch->dev->lock);

	ch->ops->channel_destroy(ch);
	air_descriptor_destroy_all(ch);
	air_module_destroy_all(ch);
	air_buffer_destroy_all(ch);
	free_channel(ch);
	return AIR_OK;
}

air_device *air_channel_device(const air_channel *ch)
{
	return ch->dev;
}

uint32_t air_channel_entries(const air_channel *ch)
{
	return 1u << ch->ring.order;
}

/*
 * Who sleeps on a descriptor cannot look again after a while by itself, so the
 * worker must not miss that it does (libairunner/membarrier.h). Once it has
 * seen this, which takes no longer than the pause here, it never does.
 */
static void want_fences(struct air_channel *ch)
{
	struct timespec until;

	if (air_load(&ch->fenced, ACQUIRE))
		return;
	__atomic_fetch_or(&ch->ring.ctrl->cq_flags, AIRUNNER_CQ_FENCE,
			  __ATOMIC_SEQ_CST);
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += AIR_LOOK_AGAIN_NS;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) ==
	       EINTR)
		;
	air_store(&ch->fenced, true, RELEASE);
}

air_status air_channel_fd(air_channel *ch, int *fd)
{
	air_status status;

	if (!ch || !fd)
		return air_error_set(AIR_BAD_ARGUMENT,
				     "air_channel_fd: %s is NULL",
				     ch ? "fd" : "channel");
	status = air_channel_usable(ch);
	if (status != AIR_OK)
		return status;
	status = ch->ops->notify_fd(ch, fd);
	if (air_channel_revived(ch, &status))
		status = ch->ops->notify_fd(ch, fd);
	if (status == AIR_OK)
		want_fences(ch);
	return status;
}

/* Whether air_next() would find something, or somebody's token has completed.
 */
static bool anything_completed(struct air_channel *ch)
{
	uint64_t tail = air_channel_tail(ch);
	uint64_t unordered = air_load(&ch->unordered_end, RELAXED);

	for (uint64_t i = air_channel_head(ch); i < tail; i++) {
		struct air_cqe cqe;
		uint64_t meta;

		if (air_channel_taken(ch, i))
			continue;
		if (!air_ring_completed(&ch->ring, i, &cqe)) {
			if (i >= unordered)
				break;
			continue;
		}
		meta = air_load(&ch->slots[air_ring_slot(&ch->ring, i)].meta,
				RELAXED);
		if (!(meta & (AIR_SLOT_DETACHED | AIR_SLOT_INTERNAL)))
			return true;
	}
	return false;
}

air_status air_channel_arm(air_channel *ch)
{
	air_status status, gone = AIR_OK;

	if (!ch)
		return air_error_static(AIR_BAD_ARGUMENT,
					"air_channel_arm: channel is NULL");
	status = air_channel_usable(ch);
	if (status != AIR_OK)
		return status;
	ch->ops->notify_clear(ch);
	air_ring_arm_waiter(&ch->ring);
	if (air_load(&ch->ring.ctrl->sq_flags, RELAXED) & AIRUNNER_SQ_WATCH)
		gone = ch->ops->doorbell(ch, true);
	else if (ch->ops->check)
		gone = ch->ops->check(ch);
	if (gone != AIR_OK)
		air_channel_answer(ch);
	if (anything_completed(ch))
		return air_error_static(AIR_BUSY,
					"a completion is there already");
	if (gone == AIR_WORKER_DIED)
		return air_error_static(AIR_NO_WORKER,
					"the worker is gone: the next "
					"submission looks for another");
	return gone == AIR_OK ? AIR_OK : air_channel_ended(ch);
}
