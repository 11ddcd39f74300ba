// SPDX-License-Identifier: MIT
/*
 * One worker after another. A worker has what the channel's client gave it
 * (descriptors, modules, functions) in its own memory only; ctrl.sq_epoch tells
 * that another one has taken the ring over, and it is given all of that again
 * before the next submission.
 */
#include "libairunner/channel.h"

static bool changed(struct air_channel *ch)
{
	return air_load(&ch->ring.ctrl->sq_epoch, ACQUIRE) !=
	       air_load(&ch->epoch, RELAXED);
}

air_status air_channel_settle(struct air_channel *ch)
{
	if (air_load(&ch->care, RELAXED) || changed(ch))
		return air_channel_care(ch);
	return AIR_OK;
}

bool air_channel_is_settled(struct air_channel *ch)
{
	/* The first worker of all found what was submitted before it came. */
	if (!ch->epoch && air_load(&ch->ring.ctrl->sq_epoch, ACQUIRE) == 1)
		air_store(&ch->epoch, 1, RELEASE);
	return !changed(ch);
}

/*
 * A new worker that cannot do what the old one did (it has no GPU, say) must
 * not take the rest of the channel along: only what uses that one thing fails,
 * with AIR_BAD_ID.
 */
air_status air_replay_status(air_status status)
{
	switch (status) {
	case AIR_FULL:
	case AIR_NO_WORKER:
	case AIR_WORKER_DIED:
	case AIR_CHANNEL_DEAD:
	case AIR_RESET:
		return status;
	default:
		return AIR_OK;
	}
}

air_status air_channel_replay(struct air_channel *ch)
{
	air_status status = AIR_OK;

	pthread_mutex_lock(&ch->replay_lock);
	while (changed(ch) && status == AIR_OK) {
		uint32_t epoch = air_load(&ch->ring.ctrl->sq_epoch, ACQUIRE);

		pthread_mutex_lock(&ch->lock);
		if (ch->epoch)
			air_buffer_lose_device(ch);
		pthread_mutex_unlock(&ch->lock);
		status = air_module_replay(ch);
		if (status == AIR_OK)
			status = air_descriptor_replay(ch);
		if (status == AIR_OK)
			air_store(&ch->epoch, epoch, RELEASE);
		/*
		 * Once more, then, with the one that comes next; where it is
		 * this side that has to reach that one, the caller sees to it.
		 */
		if (status == AIR_WORKER_DIED &&
		    !(air_load(&ch->care, ACQUIRE) & AIR_CARE_CUT))
			status = AIR_OK;
	}
	pthread_mutex_unlock(&ch->replay_lock);
	return status;
}
