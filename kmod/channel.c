// SPDX-License-Identifier: GPL-2.0-only
/*
 * airunner: channels: built, looked up, ended, let go of.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/eventfd.h>
#include <linux/ratelimit.h>
#include <linux/slab.h>

#include "compat.h"
#include "internal.h"
#include "trace.h"

/* Workers, who holds a channel, file lists. */
DEFINE_MUTEX(air_control);

static DEFINE_XARRAY_ALLOC1(air_channels);
static u32 air_next_id;
atomic_t air_nr_channels;

/* Ids need to fit an mmap offset together with a handle. */
#define AIR_ID_LIMIT	XA_LIMIT(1, INT_MAX)

static void air_channel_release(struct kref *ref)
{
	struct air_channel *ch = container_of(ref, struct air_channel, ref);

	WARN_ON_ONCE(ch->region.file);
	if (ch->eventfd)
		eventfd_ctx_put(ch->eventfd);
	put_pid(ch->pid);
	air_file_put(ch->owner);
	xa_destroy(&ch->buffers);
	mutex_destroy(&ch->mem);
	kfree_rcu(ch, rcu);
}

void air_channel_put(struct air_channel *ch)
{
	kref_put(&ch->ref, air_channel_release);
}

/* air_channel_get() - a reference to channel @id, or NULL */
struct air_channel *air_channel_get(u32 id)
{
	struct air_channel *ch;

	rcu_read_lock();
	ch = xa_load(&air_channels, id);
	if (ch && !kref_get_unless_zero(&ch->ref))
		ch = NULL;
	rcu_read_unlock();
	return ch;
}

/* air_channel_get_owned() - the same, if @file built it */
struct air_channel *air_channel_get_owned(struct air_file *file, u32 id)
{
	struct air_channel *ch = air_channel_get(id);

	if (ch && ch->owner != file) {
		air_channel_put(ch);
		ch = NULL;
	}
	return ch;
}

/* air_channel_next() - a reference to the first channel from *@id on */
struct air_channel *air_channel_next(u32 *id)
{
	unsigned long index = *id;
	struct air_channel *ch;

	rcu_read_lock();
	ch = xa_find(&air_channels, &index, INT_MAX, XA_PRESENT);
	while (ch && !kref_get_unless_zero(&ch->ref))
		ch = xa_find_after(&air_channels, &index, INT_MAX, XA_PRESENT);
	rcu_read_unlock();
	*id = index;
	return ch;
}

/* Is there nothing more that its owner could want to see? */
static bool air_channel_over(const struct air_channel *ch)
{
	return test_bit(AIR_CH_FINISHED, &ch->flags) ||
	       (test_bit(AIR_CH_ENDED, &ch->flags) &&
		test_bit(AIR_CH_OWNER_GONE, &ch->flags));
}

/* air_channel_saw() - what comes from here on is news to the owner */
void air_channel_saw(struct air_channel *ch)
{
	spin_lock(&ch->bell);
	if (test_and_clear_bit(AIR_CH_UNSEEN, &ch->flags))
		atomic_dec(&ch->owner->unseen);
	spin_unlock(&ch->bell);
}

/*
 * air_channel_completed() - there are completions: tell whoever waits
 *
 * A waiter's last look at @ch->seq comes after it has queued itself, and ours
 * at the queue after the count, so that no wake-up is lost.
 */
void air_channel_completed(struct air_channel *ch)
{
	u64 seq = atomic64_inc_return(&ch->seq);

	trace_air_channel_completed(ch->id, seq);
	wake_up_all(&ch->wq);

	spin_lock(&ch->bell);
	air_uring_wake(ch);
	if (!air_channel_over(ch) &&
	    !test_and_set_bit(AIR_CH_UNSEEN, &ch->flags))
		atomic_inc(&ch->owner->unseen);
	if (ch->eventfd)
		air_eventfd_signal(ch->eventfd);
	spin_unlock(&ch->bell);
	wake_up_all(&ch->owner->wq);
}

/* No more submissions: neither turns nor tidings but the one of the end. */
static bool air_channel_stop(struct air_channel *ch)
{
	struct air_queue *queue;

	lockdep_assert_held(&air_control);
	if (test_and_set_bit(AIR_CH_ENDING, &ch->flags))
		return false;
	trace_air_channel_stop(ch->id);
	if (air_worker_withhold(ch))
		air_worker_unassign(ch);
	queue = air_queue_lock(ch);
	air_turn_remove(ch);
	ch->rung = false;
	ch->watch = false;
	if (ch->announced)
		air_queue_tell(ch, AIR_TELL_RESET);
	spin_unlock(&queue->lock);
	return true;
}

/* ... and nothing is outstanding any more: waiters return. */
static void air_channel_end(struct air_channel *ch)
{
	lockdep_assert_held(&air_control);
	set_bit(AIR_CH_ENDED, &ch->flags);
	if (!test_bit(AIR_CH_OWNER_GONE, &ch->flags))
		atomic_inc(&ch->owner->ended);
	air_channel_completed(ch);
}

/*
 * air_channel_die() - @ch cannot go on: @why. Caller holds air_control.
 */
void air_channel_die(struct air_channel *ch, const char *why)
{
	if (!air_channel_stop(ch))
		return;
	air_log("channel %u: dead: %s\n", ch->id, why);
	air_channel_end(ch);
}

/* air_channel_reset() - end channel @id now, whatever its worker does */
int air_channel_reset(u32 id)
{
	struct air_channel *ch;
	bool stopped;
	int answered;

	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	ch = air_channel_get(id);
	if (!ch)
		return -ENXIO;

	mutex_lock(&air_control);
	stopped = air_channel_stop(ch);
	mutex_unlock(&air_control);
	if (stopped) {
		answered = air_ring_answer(ch, AIRUNNER_S_RESET, false);
		air_log("channel %u: reset by pid=%d, answered=%d\n", ch->id,
			task_tgid_nr(current), max(answered, 0));
		mutex_lock(&air_control);
		air_channel_end(ch);
		mutex_unlock(&air_control);
	}
	air_channel_put(ch);
	return 0;
}

/*
 * air_channel_unlink() - make @ch unfindable if nobody holds it any more;
 *	caller holds air_control
 *
 * Return: whether it is the caller's to air_channel_finish().
 */
bool air_channel_unlink(struct air_channel *ch)
{
	lockdep_assert_held(&air_control);
	if (!test_bit(AIR_CH_OWNER_GONE, &ch->flags) || ch->orphan ||
	    READ_ONCE(ch->announced) || list_empty(&ch->queue_node))
		return false;
	air_worker_unassign(ch);
	list_del_init(&ch->queue_node);
	xa_erase(&air_channels, ch->id);
	return true;
}

/*
 * air_channel_finish() - the last holder has let go: unpin, uncharge, free
 *
 * Called once, by whoever air_channel_unlink() said so to.
 */
void air_channel_finish(struct air_channel *ch)
{
	unsigned long pages = ch->region.nr_pages;
	struct air_user *user = ch->region.quota;
	struct air_region region;
	LIST_HEAD(buffers);

	/*
	 * A submission that slipped in after the worker's last look, or that
	 * never had a worker, is still owed its answer.
	 */
	if (!test_bit(AIR_CH_CLOSED, &ch->flags) &&
	    !test_bit(AIR_CH_ENDING, &ch->flags))
		air_ring_answer(ch, AIRUNNER_S_NO_WORKER, false);

	mutex_lock(&ch->mem);
	air_buffers_take(ch, &buffers);
	air_region_take(&region, &ch->region);
	mutex_unlock(&ch->mem);
	air_buffers_free(&buffers);
	air_region_unpin(&region);
	air_user_uncharge_channel(user, 1UL << ch->order);
	air_user_put(user);
	atomic_dec(&air_nr_channels);
	trace_air_channel_release(ch->id);
	air_log("channel %u: released, pages=%lu\n", ch->id, pages);

	set_bit(AIR_CH_FINISHED, &ch->flags);
	air_channel_saw(ch);
	air_channel_completed(ch);
	air_channel_put(ch);
}

/*
 * air_channel_owner_gone() - the owner lets go of @ch
 * @closed: because its file is closed: nobody is left to read answers
 */
void air_channel_owner_gone(struct air_channel *ch, bool closed)
{
	struct air_queue *queue;
	bool finish;

	mutex_lock(&air_control);
	if (closed)
		set_bit(AIR_CH_CLOSED, &ch->flags);
	if (test_and_set_bit(AIR_CH_OWNER_GONE, &ch->flags)) {
		mutex_unlock(&air_control);
		return;
	}
	trace_air_channel_owner_gone(ch->id);
	list_del_init(&ch->owner_node);
	if (test_bit(AIR_CH_ENDED, &ch->flags)) {
		atomic_dec(&ch->owner->ended);
		air_channel_saw(ch);
	}
	if (!air_worker_withhold(ch) && !test_bit(AIR_CH_ENDING, &ch->flags)) {
		queue = air_queue_lock(ch);
		air_queue_tell(ch, AIR_TELL_GONE);
		spin_unlock(&queue->lock);
	}
	finish = air_channel_unlink(ch);
	mutex_unlock(&air_control);
	if (finish)
		air_channel_finish(ch);
}

int air_channel_destroy(struct air_file *file, u32 id)
{
	struct air_channel *ch = air_channel_get_owned(file, id);
	int ret = 0;

	if (!ch)
		return -ENXIO;
	if (test_bit(AIR_CH_OWNER_GONE, &ch->flags))
		ret = -ESHUTDOWN;
	else
		air_channel_owner_gone(ch, false);
	air_channel_put(ch);
	return ret;
}

/* To have less than the others is anybody's choice; to have more is not. */
static int air_check_priority(unsigned int priority, unsigned int weight)
{
	if (priority >= AIRUNNER_PRIO_CLASSES || weight > AIRUNNER_WEIGHT_MAX)
		return -EINVAL;
	if ((priority < AIRUNNER_PRIO_NORMAL ||
	     weight > AIRUNNER_WEIGHT_DEFAULT) && !capable(CAP_SYS_NICE))
		return -EPERM;
	return 0;
}

int air_channel_set_priority(struct air_file *file,
			     const struct airunner_set_priority *arg)
{
	struct air_channel *ch;
	struct air_queue *queue;
	struct air_worker *worker;
	unsigned int weight;
	int ret;

	if (arg->resv)
		return -EINVAL;
	ret = air_check_priority(arg->priority, arg->weight);
	if (ret)
		return ret;
	ch = air_channel_get_owned(file, arg->channel_id);
	if (!ch)
		return -ENXIO;

	mutex_lock(&air_control);
	worker = air_worker_of(ch);
	weight = arg->weight ?: ch->weight;
	if (worker)
		worker->load = worker->load - ch->weight + weight;
	queue = air_queue_lock(ch);
	air_turn_weigh(ch, arg->priority, weight);
	spin_unlock(&queue->lock);
	mutex_unlock(&air_control);
	air_channel_put(ch);
	return 0;
}

static int air_check_build(const struct airunner_build_channel *arg)
{
	if (arg->flags || arg->resv || arg->channels != AIRUNNER_CHANNELS)
		return -EINVAL;
	if (arg->order < AIRUNNER_MIN_ORDER || arg->order > AIRUNNER_MAX_ORDER)
		return -EINVAL;
	if (arg->region_size < airunner_arena_offset(arg->order))
		return -EINVAL;
	return air_check_priority(arg->priority, arg->weight);
}

static struct air_channel *
air_channel_alloc(struct air_file *file,
		  const struct airunner_build_channel *arg)
{
	struct air_channel *ch = kzalloc(sizeof(*ch), GFP_KERNEL_ACCOUNT);

	if (!ch)
		return NULL;
	kref_init(&ch->ref);
	ch->order = arg->order;
	ch->need_caps = arg->need_caps;
	ch->want_worker = arg->worker_id;
	ch->owner = air_file_get(file);
	INIT_LIST_HEAD(&ch->owner_node);
	ch->uid = current_uid();
	ch->pid = get_pid(task_tgid(current));
	get_task_comm(ch->comm, current);
	mutex_init(&ch->mem);
	xa_init(&ch->buffers);
	ch->queue = &air_limbo;
	INIT_LIST_HEAD(&ch->queue_node);
	INIT_LIST_HEAD(&ch->orphan_node);
	ch->priority = arg->priority;
	ch->weight = arg->weight ?: AIRUNNER_WEIGHT_DEFAULT;
	INIT_LIST_HEAD(&ch->tell_node);
	INIT_LIST_HEAD(&ch->gone_buffers);
	INIT_LIST_HEAD(&ch->gone_node);
	INIT_LIST_HEAD(&ch->wait_node);
	init_waitqueue_head(&ch->wq);
	spin_lock_init(&ch->bell);
	INIT_LIST_HEAD(&ch->uring);
	return ch;
}

/* Charge, pin, and ask producers to ring; all of it can be undone. */
static int air_channel_pin(struct air_channel *ch,
			   const struct airunner_build_channel *arg)
{
	struct air_user *user = air_user_get(ch->uid);
	int ret;

	if (!user)
		return -ENOMEM;
	ret = air_user_charge_channel(user, 1UL << ch->order);
	if (ret)
		goto err_user;
	ret = air_region_pin(&ch->region, user, arg->user_va,
			     arg->region_size, true);
	if (ret)
		goto err_charge;
	mutex_lock(&ch->mem);
	ret = air_ring_sleep(ch) ? -EFAULT : 0;
	mutex_unlock(&ch->mem);
	if (ret)
		goto err_pin;
	return 0;

err_pin:
	air_region_unpin(&ch->region);
err_charge:
	air_user_uncharge_channel(user, 1UL << ch->order);
err_user:
	air_user_put(user);
	return ret;
}

/* Nobody else has seen it yet. */
static void air_channel_unpin(struct air_channel *ch)
{
	struct air_user *user = ch->region.quota;

	air_region_unpin(&ch->region);
	air_user_uncharge_channel(user, 1UL << ch->order);
	air_user_put(user);
}

/* Let the world see it, and a worker have it. */
static int air_channel_publish(struct air_channel *ch)
{
	int ret;

	mutex_lock(&air_control);
	/* The id is reserved, so this needs no memory. */
	ret = xa_err(xa_store(&air_channels, ch->id, ch, GFP_KERNEL_ACCOUNT));
	if (!ret) {
		atomic_inc(&air_nr_channels);
		list_add_tail(&ch->owner_node, &ch->owner->channels);
		air_worker_adopt(ch);
	}
	mutex_unlock(&air_control);
	return ret;
}

/*
 * air_channel_build() - BUILD_CHANNEL
 */
int air_channel_build(struct air_file *file,
		      struct airunner_build_channel *arg,
		      struct airunner_build_channel __user *uarg, u32 usize)
{
	struct air_channel *ch;
	int ret;

	air_log_try("BUILD_CHANNEL: pid=%d va=0x%llx size=0x%llx channels=%u\n",
		    task_tgid_nr(current), arg->user_va, arg->region_size,
		    arg->channels);
	ret = air_check_build(arg);
	if (ret)
		return ret;
	ret = air_file_begin_build(file);
	if (ret)
		return ret;
	ch = air_channel_alloc(file, arg);
	if (!ch) {
		ret = -ENOMEM;
		goto out;
	}
	ret = air_channel_pin(ch, arg);
	if (ret)
		goto err_put;
	ret = xa_alloc_cyclic(&air_channels, &ch->id, NULL, AIR_ID_LIMIT,
			      &air_next_id, GFP_KERNEL_ACCOUNT);
	if (ret < 0)
		goto err_unpin;

	/* Told before it exists: after that nothing can fail any more. */
	arg->channel_id = ch->id;
	arg->mmap_offset = air_mmap_offset(ch, AIRUNNER_HANDLE_REGION);
	arg->mapped_size = (u64)ch->region.nr_pages << PAGE_SHIFT;
	if (copy_to_user(uarg, arg, usize)) {
		ret = -EFAULT;
		goto err_id;
	}
	air_log("channel %u: registered, pid=%d va=0x%llx size=0x%llx, pages=%lu\n",
		ch->id, task_tgid_nr(current), arg->user_va, arg->mapped_size,
		ch->region.nr_pages);
	trace_air_channel_build(ch->id, task_tgid_nr(current), ch->order,
				ch->region.nr_pages, ch->priority, ch->weight);
	ret = air_channel_publish(ch);
	if (ret)
		goto err_id;
	goto out;

err_id:
	xa_erase(&air_channels, ch->id);
err_unpin:
	air_channel_unpin(ch);
err_put:
	air_channel_put(ch);
out:
	air_file_end_build(file);
	return ret;
}

/* Its worker, or the one that it will have, is to watch for completions. */
static void air_channel_watch(struct air_channel *ch)
{
	if (ch->announced)
		air_queue_tell(ch, AIR_TELL_WATCH);
	else
		ch->watch = true;
}

/*
 * air_channel_doorbell() - DOORBELL: the hot path
 *
 * Takes the channel's spinlocks only, and allocates nothing.
 */
int air_channel_doorbell(struct air_file *file, u32 id, u32 flags)
{
	struct air_worker *worker = air_file_worker(file);
	struct air_channel *ch = air_channel_get(id);
	struct air_queue *queue;
	int ret = 0;

	if (!ch)
		return -ENXIO;
	if (worker ? !air_worker_serves(worker, ch) : ch->owner != file) {
		ret = -ENXIO;
	} else if (worker) {
		air_channel_completed(ch);
	} else if (test_bit(AIR_CH_ENDING, &ch->flags) ||
		   test_bit(AIR_CH_OWNER_GONE, &ch->flags)) {
		ret = -ESHUTDOWN;
	} else {
		trace_air_channel_doorbell(id);
		if (!test_bit(AIR_CH_SERVED, &ch->flags))
			set_bit(AIR_CH_SERVED, &ch->flags);
		queue = air_queue_lock(ch);
		ch->doorbells++;
		if (!test_bit(AIR_CH_ENDING, &ch->flags)) {
			air_turn_request(ch);
			if (flags & AIRUNNER_BELL_WATCH)
				air_channel_watch(ch);
		}
		spin_unlock(&queue->lock);
	}
	air_channel_put(ch);
	return ret;
}
