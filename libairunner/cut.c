// SPDX-License-Identifier: MIT
/*
 * A worker that is gone answers nothing any more, so the library does: it acts
 * as the consumer that takes the ring over, and answers what is outstanding.
 * That it does so only while the channel is cut, and that this ends in the
 * same hold of answer_lock in which the next worker gets the ring, keeps two
 * consumers from answering at once.
 */
#include "libairunner/channel.h"
#include "libairunner/membarrier.h"

void air_channel_cut(struct air_channel *ch, air_status status)
{
	if (ch->cut != AIR_OK)
		return;
	air_store(&ch->cut, status, RELEASE);
	__atomic_fetch_or(&ch->care, AIR_CARE_CUT, __ATOMIC_RELEASE);
	/*
	 * A submission that got past the look at ch->care must not be left
	 * alone: its submitter is made to ring, and then answers it itself.
	 * Where it does not see that (libairunner/membarrier.h), whoever waits
	 * or polls for it learns that the channel is cut, and answers it.
	 */
	__atomic_fetch_or(&ch->ring.ctrl->sq_flags, AIRUNNER_SQ_NEED_WAKEUP,
			  __ATOMIC_SEQ_CST);
	if (ch->asym)
		air_membarrier();
}

void air_channel_handed_over(struct air_channel *ch)
{
	air_store(&ch->cut, AIR_OK, RELEASE);
}

void air_channel_mend(struct air_channel *ch)
{
	__atomic_fetch_and(&ch->care, ~AIR_CARE_CUT, __ATOMIC_RELEASE);
}

static void answer(void *arg, uint64_t index)
{
	struct air_channel *ch = arg;
	struct air_cqe cqe = {
		.status = (enum airunner_status)ch->cut,
	};

	air_ring_complete(&ch->ring, index, &cqe);
}

void air_channel_answer(struct air_channel *ch)
{
	pthread_mutex_lock(&ch->answer_lock);
	if (ch->cut != AIR_OK && air_ring_recover(&ch->ring, answer, ch) < 0)
		air_store(&ch->broken, true, RELAXED);
	pthread_mutex_unlock(&ch->answer_lock);
}
