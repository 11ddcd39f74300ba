/* SPDX-License-Identifier: MIT */
/*
 * The inside of a channel, and what its parts offer each other.
 *
 * A token is a ring index plus one. Beside each slot the library keeps, where
 * no worker can write, what it must remember of the submission there (struct
 * air_slot), and a byte with the lap of the index that was collected last,
 * after which the slot may be reused.
 */
#ifndef AIR_CHANNEL_H
#define AIR_CHANNEL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <airunner.h>

#include "libairunner/arguments.h"
#include "libairunner/buffer.h"
#include "libairunner/cache.h"
#include "libairunner/device.h"
#include "libairunner/ids.h"
#include "libairunner/ring.h"

/* Nobody waits for it: the library collects it. */
#define AIR_SLOT_DETACHED (1U << 24)
/* The library's own: air_next() passes it by, a failure is not the user's. */
#define AIR_SLOT_INTERNAL (1U << 25)
#define AIR_SLOT_ID	  AIRUNNER_ID_MASK

/**
 * struct air_slot - what the library remembers of the submission in a slot
 * @claimed: token of the last submission here whose completion somebody has
 *	taken upon himself to deliver. All 64 bits, as a thread may hold a token
 *	for longer than laps take to come round
 * @user_data: of the call
 * @meta: AIR_SLOT_*, in the low bits the id of its word 0, in the high half the
 *	epoch it was submitted in
 */
struct air_slot {
	uint64_t claimed;
	uint64_t user_data;
	uint64_t meta;
	uint64_t resv; /* two slots to a cache line */
};

/* What a submitter has to see to before it submits; ch->care. */
#define AIR_CARE_DEFERRED (1U << 0) /* ch->deferred is not empty */
#define AIR_CARE_CUT	  (1U << 1) /* the worker is gone */

/**
 * struct air_channel - see the groups
 */
struct air_channel {
	/* What a submission reads: written rarely. */
	struct air_ring ring;
	struct air_slot *slots;
	uint8_t *collected;
	uint64_t *freed; /* bit a handle: freed, and not reused yet */
	const struct air_transport_ops *ops;
	struct air_device *dev;
	uint32_t fork_generation;
	uint32_t epoch; /* ctrl.sq_epoch our descriptors belong to */
	uint32_t care;
	uint32_t n_freed;
	bool asym;

	/* High-water marks: index + 1 of the last of its kind. */
	uint64_t unordered_end __attribute__((aligned(128)));
	uint64_t detached_end;
	uint32_t misses; /* unsuccessful polls */

	/* Set up once. */
	void *priv __attribute__((aligned(128)));
	struct air_mapping region;
	air_executor executor;
	bool fenced;	/* the worker has seen AIRUNNER_CQ_FENCE */
	uint64_t arena; /* offset of the first descriptor record */
	uint32_t arena_records;
	struct air_list node; /* in dev->channels */

	/*
	 * @lock protects the rest of this group. Nothing blocks under it but
	 * registering buffers with a new worker.
	 */
	pthread_mutex_t lock;
	uint64_t arena_used; /* bit a record */
	uint32_t arena_lost; /* records in use for good */
	pthread_cond_t arena_free;
	uint64_t done;	   /* all indices before it have completed */
	uint64_t *handles; /* bit a handle: in use */
	uint32_t next_handle;
	struct air_list buffers;
	struct air_list limbo;
	struct air_list deferred;
	struct air_list descriptors;
	struct air_ids descriptor_ids;
	struct air_list modules;
	struct air_ids module_ids;
	struct air_ids function_ids;
	struct air_cache_bins bins; /* dev->lock */

	/* First failure of a detached call. */
	pthread_mutex_t error_lock;
	bool has_error;
	struct air_completion error;
	char error_text[320];

	/* One thread at a time acts as the dead worker, or replays. */
	pthread_mutex_t answer_lock;
	air_status cut; /* AIR_OK while the worker is there */
	bool broken;	/* no worker takes it: the laps make no sense, say */
	pthread_mutex_t replay_lock;

	/* Argument bytes of launches; has a lock of its own. */
	struct air_arguments arguments;
};

/* What a reference to a freed buffer is replaced by: nothing has this handle.
 */
#define AIR_HANDLE_FREED (AIRUNNER_HANDLE_NONE - 1)

/*
 * @payload, unless it refers to a buffer that was freed: the worker then
 * refuses it, although the memory behind the handle may still be registered,
 * in the cache.
 */
static inline uint64_t air_channel_live(const struct air_channel *ch,
					uint64_t payload)
{
	uint32_t handle = airunner_ref_handle(payload);

	if (!(air_load(&ch->freed[handle / 64], RELAXED) >> handle % 64 & 1))
		return payload;
	return airunner_ref(AIR_HANDLE_FREED, airunner_ref_offset(payload));
}

/* AIR_OK, AIR_FORKED. */
air_status air_channel_usable(const struct air_channel *ch);

/* ------------------------------------------------------------ submit.c */

/*
 * Submit without looking at ch->care. @slot_flags: AIR_SLOT_* for all. *@index
 * is the first one's. AIR_FULL. The caller does not hold ch->lock, as making
 * room may end in explaining a failure.
 */
air_status air_channel_submit(struct air_channel *ch,
			      const struct air_call *calls, uint32_t n,
			      uint32_t slot_flags, uint64_t *index);

/* @index carries AIR_SLOT_DETACHED: sweeps must get as far as that. */
void air_channel_detach(struct air_channel *ch, uint64_t index);

/* The same with what room there is; may be called under ch->lock. */
bool air_channel_try_submit(struct air_channel *ch,
			    const struct air_call *calls, uint32_t n,
			    uint32_t slot_flags, uint64_t *index);

/* See to ch->care and to a changed epoch; AIR_NO_WORKER, AIR_CHANNEL_DEAD. */
air_status air_channel_care(struct air_channel *ch);

/* -------------------------------------------------------------- wait.c */

static inline uint64_t air_channel_head(struct air_channel *ch)
{
	return air_load(&ch->ring.ctrl->cq_head, ACQUIRE);
}

static inline uint64_t air_channel_tail(struct air_channel *ch)
{
	return air_load(&ch->ring.ctrl->sq_tail, RELAXED);
}

/* Whether @index has been collected, or is about to be by somebody else. */
bool air_channel_taken(struct air_channel *ch, uint64_t index);

/* Whether @index has completed; it may have been collected. */
bool air_channel_done(struct air_channel *ch, uint64_t index);

/*
 * Wait for the completion of @index without collecting it. AIR_BAD_TOKEN: it
 * was collected by somebody else; AIR_TIMEOUT; AIR_CHANNEL_DEAD, AIR_RESET.
 */
air_status air_channel_await(struct air_channel *ch, uint64_t index,
			     uint64_t deadline, struct air_cqe *cqe);

/* The right to deliver @index: one caller gets it. */
bool air_channel_claim(struct air_channel *ch, uint64_t index);

/*
 * Submit one call of the library's own and wait for it. *@abandoned, unless
 * NULL: it was submitted, and nobody answered; a worker may yet carry it out.
 */
air_status air_channel_call(struct air_channel *ch, const struct air_call *call,
			    struct air_cqe *cqe, bool *abandoned);

/*
 * Collect detached completions at the front of the ring; @all: wherever they
 * are. True when any was.
 */
bool air_channel_sweep(struct air_channel *ch, bool all);

/* --------------------------------------------------------------- cut.c */

/*
 * The worker is gone for good as far as this connection goes: submissions are
 * answered @status from now on. The caller holds ch->answer_lock.
 */
void air_channel_cut(struct air_channel *ch, air_status status);

/*
 * Another worker has the ring: the library answers no more. Likewise. Those
 * who submit still come by air_channel_care() until air_channel_mend().
 */
void air_channel_handed_over(struct air_channel *ch);
void air_channel_mend(struct air_channel *ch);

/* Say that and why the channel has ended: AIR_CHANNEL_DEAD or AIR_RESET. */
air_status air_channel_ended(struct air_channel *ch);

/* Find the device another worker. Not AIR_OK, too, if that refused @ch. */
air_status air_channel_revive(struct air_channel *ch);
/* As air_device_revived(), for a request on behalf of @ch. */
bool air_channel_revived(struct air_channel *ch, air_status *status);

/* Answer what is outstanding if the channel is cut. No locks held. */
void air_channel_answer(struct air_channel *ch);

/* ----------------------------------------------------------- explain.c */

/* The sentence for a completion that failed. */
void air_channel_explain(struct air_channel *ch, uint64_t index, uint64_t meta,
			 const struct air_cqe *cqe);

/* ------------------------------------------------------------- epoch.c */

/* See to ch->care and to a changed epoch if there is any need. */
air_status air_channel_settle(struct air_channel *ch);

/*
 * Whether what a worker was just given was given to the one that has all the
 * rest. The caller holds ch->lock.
 */
bool air_channel_is_settled(struct air_channel *ch);

/* Give all that a new worker does not have. */
air_status air_channel_replay(struct air_channel *ch);

/* What must end a replay, of how giving one thing ended. */
air_status air_replay_status(air_status status);

/* -------------------------------------------- descriptor.c and module.c */

/* The caller holds ch->replay_lock. */
air_status air_descriptor_replay(struct air_channel *ch);
air_status air_module_replay(struct air_channel *ch);

void air_descriptor_destroy_all(struct air_channel *ch);
void air_module_destroy_all(struct air_channel *ch);

#endif /* AIR_CHANNEL_H */
