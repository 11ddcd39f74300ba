// SPDX-License-Identifier: GPL-2.0-only
/*
 * airunner: what the module itself does in a region.
 *
 * Little, and all of it from outside the data path: ask producers to ring the
 * doorbell, and answer what a worker left unanswered. The client can write
 * everything here at any time. Nothing read is used as an index or a length;
 * the worst a scribbled ring can do is to end its own channel.
 */
#include <linux/highmem.h>
#include <linux/smp.h>
#include <linux/timekeeping.h>

#include "internal.h"
#include "trace.h"

/*
 * A word of the region, mapped for as long as the caller needs it. Slots are
 * aligned to their size, so neither a slot nor a word crosses a page.
 */
static void *air_map(struct air_channel *ch, u64 offset)
{
	struct page *page = air_region_page(&ch->region, offset >> PAGE_SHIFT);

	lockdep_assert_held(&ch->mem);
	if (!page)
		return NULL;
	return kmap_local_page(page) + offset_in_page(offset);
}

static int air_flags_set(struct air_channel *ch, u64 offset, u32 bits)
{
	atomic_t *word = air_map(ch, offset);

	if (!word)
		return -EIO;
	atomic_or(bits, word);
	kunmap_local(word);
	return 0;
}

static int air_flags_clear(struct air_channel *ch, u64 offset, u32 bits)
{
	atomic_t *word = air_map(ch, offset);

	if (!word)
		return -EIO;
	atomic_andnot(bits, word);
	kunmap_local(word);
	return 0;
}

/*
 * air_ring_sleep() - nobody watches the ring of @ch: have producers ring the
 *	doorbell. Caller holds @ch->mem.
 *
 * Return: -EIO when the region has been truncated or punched.
 */
int air_ring_sleep(struct air_channel *ch)
{
	return air_flags_set(ch, offsetof(struct airunner_ctrl, sq_flags),
			     AIRUNNER_SQ_NEED_WAKEUP);
}

/* The lap that every word of the slot carries, or -1: it is not whole. */
static int air_slot_lap(const u64 *slot, unsigned int words)
{
	u8 lap = airunner_word_lap(READ_ONCE(slot[0]));
	unsigned int i;

	for (i = 1; i < words; i++) {
		if (airunner_word_lap(READ_ONCE(slot[i])) != lap)
			return -1;
	}
	return lap;
}

/* Answer slot @i if it holds a submission without an answer. */
static int air_slot_answer(struct air_channel *ch, u32 i, u8 status, u64 now)
{
	u64 *sqe, *cqe;
	int lap, ret = 0;
	u8 done;

	sqe = air_map(ch, AIRUNNER_SQ_OFFSET + (u64)i * AIRUNNER_SQE_SIZE);
	if (!sqe)
		return -EIO;
	lap = air_slot_lap(sqe, AIRUNNER_SQE_WORDS);
	kunmap_local(sqe);

	cqe = air_map(ch, airunner_cq_offset(ch->order) +
			  (u64)i * AIRUNNER_CQE_SIZE);
	if (!cqe)
		return -EIO;
	/* Word 0 is written last: a worker may have died between the two. */
	done = airunner_word_lap(READ_ONCE(cqe[0]));
	if (lap == (u8)(done + 1)) {
		WRITE_ONCE(cqe[1], airunner_word(airunner_cqe_word1(now, 0),
						 lap));
		/* Pairs with the client's acquire of word 0. */
		smp_store_release(&cqe[0],
				  airunner_word(airunner_cqe_word0(status, 0,
								   0), lap));
		ret = 1;
	} else if (lap >= 0 && lap != done) {
		/* Neither answered nor next: no protocol leads here. */
		ret = -EUCLEAN;
	}
	kunmap_local(cqe);
	return ret;
}

static void air_ring_fence_here(void *unused)
{
	/* Stands in for a fence between a producer's slot and its look. */
	smp_mb();
}

/*
 * NEED_WAKEUP has been set: whoever publishes from here on sees it, and what
 * was published before is seen by us.
 *
 * Producers that fence have done their part. Those that leave it to whoever
 * goes to sleep (AIRUNNER_CLIENT_ASYM) need what membarrier(2) does for a
 * worker, on all processors, as nobody knows who has the region mapped. A
 * client that lies about it does so to itself.
 */
void air_rings_fence(void)
{
	/* Our NEED_WAKEUP is seen before anybody is asked to catch up. */
	smp_mb();
	on_each_cpu(air_ring_fence_here, NULL, true);
}

static bool air_ring_asym(struct air_channel *ch)
{
	struct airunner_ctrl *ctrl = air_map(ch, 0);
	bool asym = false;

	if (ctrl) {
		asym = READ_ONCE(ctrl->client_flags) & AIRUNNER_CLIENT_ASYM;
		kunmap_local(ctrl);
	}
	return asym;
}

/*
 * air_ring_arm() - have whoever submits to @ch from now on ring
 *
 * Return: whether air_rings_fence() must follow for that to be so.
 */
bool air_ring_arm(struct air_channel *ch)
{
	bool asym = false;

	mutex_lock(&ch->mem);
	if (ch->region.file && !air_ring_sleep(ch))
		asym = air_ring_asym(ch);
	mutex_unlock(&ch->mem);
	return asym;
}

/*
 * air_ring_answer() - answer every outstanding submission of @ch with @status
 *
 * For when its worker cannot any more. Slots that are being published at this
 * moment are skipped: their producers find NEED_WAKEUP set, and ring. @fenced:
 * air_ring_arm() and air_rings_fence() have seen to that already.
 *
 * Return: how many; -EIO when the region has been truncated or punched,
 * -EUCLEAN when a slot makes no sense (all others have been answered), -ENXIO
 * when there is no region.
 */
int air_ring_answer(struct air_channel *ch, enum airunner_status status,
		    bool fenced)
{
	u32 i, entries = 1U << ch->order;
	u64 now = ktime_get_ns();
	int ret = 0, answered = 0;
	bool unclean = false;

	mutex_lock(&ch->mem);
	if (!ch->region.file) {
		ret = -ENXIO;
		goto out;
	}
	ret = air_ring_sleep(ch);
	if (!fenced && air_ring_asym(ch))
		air_rings_fence();
	/* Pairs with the producers' fence. */
	smp_mb();
	for (i = 0; i < entries && ret != -EIO; i++) {
		ret = air_slot_answer(ch, i, status, now);
		if (ret > 0)
			answered++;
		/* It may be moving on just now; the others are owed theirs. */
		else if (ret == -EUCLEAN)
			unclean = true;
		if (!(i & 1023))
			cond_resched();
	}
	if (ret != -EIO)
		ret = air_flags_clear(ch, offsetof(struct airunner_ctrl,
						   cq_flags),
				      AIRUNNER_CQ_NEED_WAKEUP);
	if (!ret && unclean)
		ret = -EUCLEAN;
out:
	ch->answered += answered;
	mutex_unlock(&ch->mem);
	trace_air_channel_answered(ch->id, status, answered);
	return ret < 0 ? ret : answered;
}

/*
 * air_ring_heads() - what the client's words say, for humans; caller holds
 *	@ch->mem
 */
int air_ring_heads(struct air_channel *ch, u64 *sq_tail, u64 *cq_head)
{
	struct airunner_ctrl *ctrl = air_map(ch, 0);

	if (!ctrl)
		return -EIO;
	*sq_tail = READ_ONCE(ctrl->sq_tail);
	*cq_head = READ_ONCE(ctrl->cq_head);
	kunmap_local(ctrl);
	return 0;
}
