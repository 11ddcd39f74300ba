// SPDX-License-Identifier: GPL-2.0-only
/*
 * airunner: how people wait.
 */
#include <linux/eventfd.h>
#include <linux/hrtimer.h>
#include <linux/poll.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>

#include "compat.h"
#include "internal.h"

/*
 * air_wait_time() - sleep until @ready, a signal, or the end of *@timeout_ns
 * @timeout_ns: negative is for ever, 0 does not wait; what is left on return
 *
 * Return: 0, -ETIME or -ERESTARTSYS.
 */
int air_wait_time(struct wait_queue_head *wq, bool (*ready)(void *),
		  void *data, s64 *timeout_ns)
{
	ktime_t end;
	int ret;

	if (*timeout_ns < 0)
		return wait_event_interruptible(*wq, ready(data));
	if (!*timeout_ns)
		return ready(data) ? 0 : -ETIME;
	end = ktime_add_safe(ktime_get(), ns_to_ktime(*timeout_ns));
	ret = wait_event_interruptible_hrtimeout(*wq, ready(data),
						 ns_to_ktime(*timeout_ns));
	/* Never 0 by itself: a call that goes on has to find the end. */
	*timeout_ns = max_t(s64, ktime_to_ns(ktime_sub(end, ktime_get())), 1);
	return ret;
}

struct air_seen {
	struct air_channel *ch;
	u64 seq;
};

static bool air_client_ready(void *data)
{
	struct air_seen *seen = data;

	return atomic64_read(&seen->ch->seq) != seen->seq ||
	       air_channel_ended(seen->ch);
}

/* air_client_wait() - WAIT of a client */
int air_client_wait(struct air_file *file, struct airunner_wait *arg,
		    struct airunner_wait __user *uarg)
{
	struct air_seen seen = { .seq = arg->seq };
	s64 timeout = arg->timeout_ns;
	int ret;

	if (arg->nr_reports || arg->nr_events || arg->reports || arg->events)
		return -EINVAL;
	seen.ch = air_channel_get_owned(file, arg->channel_id);
	if (!seen.ch)
		return -ENXIO;

	ret = air_wait_time(&seen.ch->wq, air_client_ready, &seen, &timeout);
	if (ret == -ERESTARTSYS) {
		arg->timeout_ns = timeout;
	} else {
		air_channel_saw(seen.ch);
		if (air_channel_ended(seen.ch))
			ret = -ESHUTDOWN;
		arg->seq = atomic64_read(&seen.ch->seq);
	}
	air_channel_put(seen.ch);
	if (copy_to_user(uarg, arg, sizeof(*arg)))
		return -EFAULT;
	return ret;
}

static int air_client_eventfd(struct air_file *file, u32 id,
			      struct eventfd_ctx **ctx)
{
	struct air_channel *ch = air_channel_get_owned(file, id);

	if (!ch)
		return -ENXIO;
	spin_lock(&ch->bell);
	swap(ch->eventfd, *ctx);
	spin_unlock(&ch->bell);
	air_channel_put(ch);
	return 0;
}

/* air_set_eventfd() - SET_EVENTFD, from either side */
int air_set_eventfd(struct air_file *file,
		    const struct airunner_set_eventfd *arg)
{
	struct air_worker *worker = air_file_worker(file);
	struct eventfd_ctx *ctx = NULL;
	int ret = 0;

	if (arg->flags || arg->fd < -1 || (worker && arg->channel_id))
		return -EINVAL;
	if (arg->fd >= 0) {
		ctx = eventfd_ctx_fdget(arg->fd);
		if (IS_ERR(ctx))
			return PTR_ERR(ctx);
	}
	if (worker) {
		spin_lock(&worker->queue.lock);
		swap(worker->queue.eventfd, ctx);
		/* For what is there already. */
		air_queue_changed(&worker->queue);
		spin_unlock(&worker->queue.lock);
	} else {
		ret = air_client_eventfd(file, arg->channel_id, &ctx);
	}
	/* The one that was there before, or that found no place. */
	if (ctx)
		eventfd_ctx_put(ctx);
	return ret;
}

/*
 * air_poll() - a worker: events are queued; a client: a channel's completion
 *	sequence has moved since the last WAIT on it, or a channel has ended
 */
__poll_t air_poll(struct file *filp, struct poll_table_struct *table)
{
	struct air_file *file = filp->private_data;
	struct air_worker *worker;
	__poll_t mask = 0;

	/* Before the look at what it is: ATTACH_WORKER wakes those who wait. */
	poll_wait(filp, &file->wq, table);
	worker = air_file_worker(file);
	if (worker) {
		if (air_queue_has_event(&worker->queue))
			mask |= EPOLLIN | EPOLLRDNORM;
		if (READ_ONCE(worker->dead))
			mask |= EPOLLHUP | EPOLLERR;
		return mask;
	}
	if (atomic_read(&file->unseen))
		mask |= EPOLLIN | EPOLLRDNORM;
	if (atomic_read(&file->ended))
		mask |= EPOLLHUP | EPOLLERR;
	return mask;
}
