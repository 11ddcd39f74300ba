// SPDX-License-Identifier: GPL-2.0-only
/*
 * airunner: AIRUNNER_URING_WAIT: WAIT as an io_uring command.
 *
 * Only where the kernel can cancel a command that is parked here: elsewhere
 * the process that sent it could not exit. There the device has no uring_cmd,
 * io_uring says -EOPNOTSUPP, and GET_INFO does not offer it.
 *
 * A command is in one of three states, told by its list node: not parked yet
 * or not any more (empty), parked (in the channel's list), cancelled before
 * it could be parked (no list at all). The channel's bell lock protects it.
 */
#include <linux/io_uring/cmd.h>

#include "internal.h"

/* What a parked command keeps in the 32 bytes that io_uring gives it. */
struct air_parked {
	struct list_head node;
	struct air_channel *ch;
	u64 seq;
};

static struct air_parked *air_parked(struct io_uring_cmd *cmd)
{
	BUILD_BUG_ON(sizeof(struct air_parked) > sizeof(cmd->pdu));
	return (struct air_parked *)cmd->pdu;
}

static struct io_uring_cmd *air_parked_cmd(struct air_parked *parked)
{
	return container_of((void *)parked, struct io_uring_cmd, pdu);
}

static bool air_parked_ready(const struct air_parked *parked)
{
	return atomic64_read(&parked->ch->seq) != parked->seq ||
	       air_channel_ended(parked->ch);
}

/* All of them can be for one completion, which ends them under the lock. */
#define AIR_MAX_PARKED 64u

/*
 * Who waits for something waits for an entry of the ring: more than those are
 * nobody's, and would cost every completion a look at each. Lock held.
 */
static int air_park(struct air_parked *parked)
{
	struct air_channel *ch = parked->ch;

	if (ch->nr_uring >= min(1U << ch->order, AIR_MAX_PARKED))
		return -EBUSY;
	ch->nr_uring++;
	list_add_tail(&parked->node, &ch->uring);
	return -EIOCBQUEUED;
}

static void air_unpark(struct air_parked *parked)
{
	list_del_init(&parked->node);
	parked->ch->nr_uring--;
}

static void air_parked_done(struct io_uring_cmd *cmd, int ret,
			    unsigned int issue_flags)
{
	struct air_channel *ch = air_parked(cmd)->ch;

	if (!ret) {
		air_channel_saw(ch);
		ret = air_channel_ended(ch) ? -ESHUTDOWN : 0;
	}
	io_uring_cmd_done(cmd, ret, 0, issue_flags);
	air_channel_put(ch);
}

/* In the context of the task that sent it. */
static void air_parked_work(struct io_uring_cmd *cmd, unsigned int issue_flags)
{
	air_parked_done(cmd, 0, issue_flags);
}

/* air_uring_wake() - @ch's sequence has moved; caller holds @ch->bell */
void air_uring_wake(struct air_channel *ch)
{
	struct air_parked *parked, *next;

	list_for_each_entry_safe(parked, next, &ch->uring, node) {
		if (!air_parked_ready(parked))
			continue;
		air_unpark(parked);
		io_uring_cmd_complete_in_task(air_parked_cmd(parked),
					      air_parked_work);
	}
}

static int air_uring_cancel(struct io_uring_cmd *cmd, unsigned int issue_flags)
{
	struct air_parked *parked = air_parked(cmd);
	bool was_parked;

	spin_lock(&parked->ch->bell);
	was_parked = parked->node.next && !list_empty(&parked->node);
	if (was_parked)
		air_unpark(parked);
	else
		parked->node.next = NULL;
	spin_unlock(&parked->ch->bell);
	if (was_parked)
		air_parked_done(cmd, -ECANCELED, issue_flags);
	return 0;
}

/* air_uring_cmd() - io_uring hands us a command, or wants it back */
int air_uring_cmd(struct io_uring_cmd *cmd, unsigned int issue_flags)
{
	struct air_parked *parked = air_parked(cmd);
	const struct airunner_uring_wait *arg;
	struct air_file *file = cmd->file->private_data;
	int ret = 0;

	if (issue_flags & IO_URING_F_CANCEL)
		return air_uring_cancel(cmd, issue_flags);

	if (cmd->cmd_op != AIRUNNER_URING_WAIT)
		return -ENOTTY;
	if (air_file_worker(file))
		return -EPERM;
	/* In memory that the task can write: read once. */
	arg = io_uring_sqe_cmd(cmd->sqe);
	if (READ_ONCE(arg->resv))
		return -EINVAL;
	INIT_LIST_HEAD(&parked->node);
	parked->seq = READ_ONCE(arg->seq);
	parked->ch = air_channel_get_owned(file, READ_ONCE(arg->channel_id));
	if (!parked->ch)
		return -ENXIO;

	/* Before it can complete: what has completed must not be marked. */
	io_uring_cmd_mark_cancelable(cmd, issue_flags);
	spin_lock(&parked->ch->bell);
	if (!parked->node.next)
		ret = -ECANCELED;
	else if (!air_parked_ready(parked))
		ret = air_park(parked);
	spin_unlock(&parked->ch->bell);
	if (ret != -EIOCBQUEUED)
		air_parked_done(cmd, ret, issue_flags);
	return -EIOCBQUEUED;
}
