// SPDX-License-Identifier: GPL-2.0-only
/*
 * airunner: workers: attached, given channels, told of events, dead.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/moduleparam.h>
#include <linux/ratelimit.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "compat.h"
#include "internal.h"
#include "trace.h"

static unsigned int air_worker_gid = -1;
module_param_named(worker_gid, air_worker_gid, uint, 0644);
MODULE_PARM_DESC(worker_gid,
		 "group whose members may attach workers; -1: CAP_SYS_ADMIN only");

/* Under air_control. */
static LIST_HEAD(air_workers);
static LIST_HEAD(air_unassigned);
static u32 air_next_worker;
unsigned int air_nr_workers;

static void air_worker_release(struct kref *ref)
{
	struct air_worker *worker = container_of(ref, struct air_worker, ref);

	air_queue_destroy(&worker->queue);
	if (worker->page)
		__free_page(worker->page);
	if (worker->quota) {
		air_user_uncharge_worker(worker->quota);
		air_user_put(worker->quota);
	}
	air_file_put(worker->file);
	put_pid(worker->pid);
	kfree_rcu(worker, rcu);
}

void air_worker_put(struct air_worker *worker)
{
	kref_put(&worker->ref, air_worker_release);
}

/* Would @worker serve channels of @uid? */
static bool air_worker_is_for(const struct air_worker *worker, kuid_t uid)
{
	return !(worker->flags & AIRUNNER_WORKER_OWN) ||
	       uid_eq(worker->uid, uid);
}

/*
 * air_worker_caps() - what workers that would serve the caller can do
 * @nr: out: how many there are
 */
u64 air_worker_caps(u32 *nr)
{
	struct air_worker *worker;
	u64 caps = 0;

	*nr = 0;
	mutex_lock(&air_control);
	list_for_each_entry(worker, &air_workers, node) {
		if (!air_worker_is_for(worker, current_uid()))
			continue;
		caps |= worker->caps;
		(*nr)++;
	}
	mutex_unlock(&air_control);
	return caps;
}

/* air_worker_of() - whom @ch has been given to; caller holds air_control */
struct air_worker *air_worker_of(struct air_channel *ch)
{
	if (ch->queue == &air_limbo)
		return NULL;
	return container_of(ch->queue, struct air_worker, queue);
}

/* air_worker_serves() - has @worker been told of @ch, and not let go? */
bool air_worker_serves(struct air_worker *worker, struct air_channel *ch)
{
	bool ret;

	spin_lock(&worker->queue.lock);
	ret = READ_ONCE(ch->queue) == &worker->queue && ch->announced;
	spin_unlock(&worker->queue.lock);
	return ret;
}

static bool air_worker_fits(const struct air_worker *worker,
			    const struct air_channel *ch)
{
	if (ch->want_worker && ch->want_worker != worker->id)
		return false;
	return air_worker_is_for(worker, ch->uid) &&
	       (ch->need_caps & worker->caps) == ch->need_caps &&
	       ch->left != worker->id;
}

/*
 * air_worker_assign() - give @ch, which nobody has, to the least loaded worker
 *	that fits. Caller holds air_control.
 *
 * Without one it waits for the next that attaches.
 */
void air_worker_assign(struct air_channel *ch)
{
	struct air_worker *worker, *best = NULL;

	lockdep_assert_held(&air_control);
	if (test_bit(AIR_CH_ENDING, &ch->flags) || ch->orphan ||
	    ch->queue != &air_limbo || list_empty(&ch->queue_node))
		return;
	list_for_each_entry(worker, &air_workers, node) {
		if (air_worker_fits(worker, ch) &&
		    (!best || worker->load < best->load))
			best = worker;
	}
	if (!best)
		return;

	list_move_tail(&ch->queue_node, &best->channels);
	best->load += ch->weight;
	spin_lock(&air_limbo.lock);
	spin_lock(&best->queue.lock);
	air_turn_move(ch, &best->queue);
	air_queue_tell(ch, AIR_TELL_NEW);
	spin_unlock(&best->queue.lock);
	spin_unlock(&air_limbo.lock);
	trace_air_channel_assign(ch->id, best->id);
}

/* air_worker_adopt() - a new channel; caller holds air_control */
void air_worker_adopt(struct air_channel *ch)
{
	list_add_tail(&ch->queue_node, &air_unassigned);
	air_worker_assign(ch);
}

/*
 * air_worker_unassign() - take @ch from whoever has it; caller holds
 *	air_control
 */
void air_worker_unassign(struct air_channel *ch)
{
	struct air_worker *worker = air_worker_of(ch);

	lockdep_assert_held(&air_control);
	if (!worker)
		return;
	list_move_tail(&ch->queue_node, &air_unassigned);
	worker->load -= ch->weight;
	spin_lock(&air_limbo.lock);
	spin_lock(&worker->queue.lock);
	air_turn_move(ch, &air_limbo);
	ch->announced = false;
	spin_unlock(&worker->queue.lock);
	spin_unlock(&air_limbo.lock);
	ch->moving = false;
	trace_air_channel_unassign(ch->id, worker->id);
}

/*
 * air_worker_withhold() - keep the worker that @ch has been given to from
 *	being told of it; caller holds air_control
 *
 * Return: false when it has been told, and holds the channel.
 */
bool air_worker_withhold(struct air_channel *ch)
{
	struct air_queue *queue = air_queue_lock(ch);
	bool untold = !ch->announced;

	/* Without AIR_TELL_NEW it cannot be from here on, either. */
	if (untold)
		air_queue_untell(ch, ch->tell);
	spin_unlock(&queue->lock);
	return untold;
}

/*
 * A worker has come: even out by giving it channels that have not been used.
 * One that has may have descriptors and device memory with its worker. One
 * that the other worker knows of is asked back, and moves when that lets go.
 * Returns the weight that is on its way.
 */
static unsigned long air_worker_take_from(struct air_worker *from,
					  struct air_worker *to,
					  unsigned long to_load)
{
	unsigned long from_load = from->load, moving = 0;
	struct air_channel *ch, *next;

	list_for_each_entry_safe(ch, next, &from->channels, queue_node) {
		if (from_load < to_load + 2 * ch->weight)
			continue;
		if (test_bit(AIR_CH_SERVED, &ch->flags) || ch->moving ||
		    test_bit(AIR_CH_ENDING, &ch->flags) ||
		    test_bit(AIR_CH_OWNER_GONE, &ch->flags) ||
		    !air_worker_fits(to, ch))
			continue;
		from_load -= ch->weight;
		to_load += ch->weight;
		moving += ch->weight;
		if (air_worker_withhold(ch)) {
			air_worker_unassign(ch);
			air_worker_assign(ch);
			moving -= ch->weight;
			continue;
		}
		ch->moving = true;
		spin_lock(&from->queue.lock);
		air_queue_tell(ch, AIR_TELL_GONE);
		spin_unlock(&from->queue.lock);
	}
	return moving;
}

static void air_worker_balance(struct air_worker *to)
{
	struct air_worker *from;
	unsigned long moving = 0;

	lockdep_assert_held(&air_control);
	list_for_each_entry(from, &air_workers, node) {
		if (from != to)
			moving += air_worker_take_from(from, to,
						       to->load + moving);
	}
}

/*
 * A channel has lost its worker, and is marked as an orphan so that nobody
 * else touches its place meanwhile: answer for the worker if it died, let go
 * of what it held, and find another.
 */
static void air_worker_bury(struct air_channel *ch, u32 worker_id, bool died)
{
	bool finish, alive;
	int ret = 0;

	alive = !test_bit(AIR_CH_CLOSED, &ch->flags) &&
		!test_bit(AIR_CH_ENDING, &ch->flags);
	if (alive && died) {
		ret = air_ring_answer(ch, AIRUNNER_S_WORKER_DIED, true);
	} else if (alive) {
		mutex_lock(&ch->mem);
		ret = air_ring_sleep(ch);
		mutex_unlock(&ch->mem);
	}
	if (died)
		air_log("channel %u: worker %u died, answered=%d\n", ch->id,
			worker_id, max(ret, 0));
	/*
	 * Whoever sleeps sees the answers, or asks the next one to watch. If
	 * there is to be no next one, the end wakes them.
	 */
	if (!test_bit(AIR_CH_OWNER_GONE, &ch->flags))
		air_channel_completed(ch);
	air_buffers_worker_gone(ch);

	mutex_lock(&air_control);
	ch->orphan = false;
	if (ret == -EIO)
		air_channel_die(ch, "its region was truncated");
	else if (ret == -EUCLEAN)
		air_channel_die(ch, "its ring makes no sense");
	/* The next one has a look at what has been submitted meanwhile. */
	spin_lock(&air_limbo.lock);
	ch->rung = !test_bit(AIR_CH_ENDING, &ch->flags);
	spin_unlock(&air_limbo.lock);
	finish = air_channel_unlink(ch);
	if (!finish && !test_bit(AIR_CH_OWNER_GONE, &ch->flags))
		air_worker_assign(ch);
	mutex_unlock(&air_control);
	if (finish)
		air_channel_finish(ch);
}

/*
 * air_worker_death() - @worker is gone, with or without notice
 *
 * What was outstanding on its channels is answered, and they are given to
 * whoever fits, now or when such a worker attaches.
 */
void air_worker_death(struct air_worker *worker)
{
	struct air_channel *ch, *next;
	LIST_HEAD(orphans);
	bool asym = false;

	mutex_lock(&air_control);
	if (worker->dead) {
		mutex_unlock(&air_control);
		return;
	}
	WRITE_ONCE(worker->dead, true);
	list_del(&worker->node);
	air_nr_workers--;
	list_for_each_entry_safe(ch, next, &worker->channels, queue_node) {
		/* One that it was never told of is as new for the next. */
		ch->orphan = !air_worker_withhold(ch);
		air_worker_unassign(ch);
		if (!ch->orphan) {
			air_worker_assign(ch);
			continue;
		}
		/* Nobody else has it before it is buried, or its node. */
		kref_get(&ch->ref);
		list_add_tail(&ch->orphan_node, &orphans);
	}
	mutex_unlock(&air_control);
	wake_up_all(worker->queue.wq);
	trace_air_worker_death(worker->id, pid_nr(worker->pid), worker->caps);
	air_log("worker %u (%*pE): detached\n", worker->id,
		(int)strlen(worker->name), worker->name);

	/* One barrier for all: every processor is interrupted for it. */
	list_for_each_entry(ch, &orphans, orphan_node) {
		asym |= air_ring_arm(ch);
		cond_resched();
	}
	if (asym)
		air_rings_fence();
	list_for_each_entry_safe(ch, next, &orphans, orphan_node) {
		list_del(&ch->orphan_node);
		air_worker_bury(ch, worker->id, true);
		air_channel_put(ch);
	}
}

/* air_worker_detach() - DETACH_CHANNEL: @worker is done with channel @id */
int air_worker_detach(struct air_worker *worker, u32 id)
{
	struct air_channel *ch = air_channel_get(id);
	bool served;

	if (!ch)
		return -ENXIO;
	mutex_lock(&air_control);
	served = air_worker_serves(worker, ch);
	if (served) {
		/* One that gives it up by itself does not get it again. */
		if (!ch->moving)
			ch->left = worker->id;
		ch->orphan = true;
		air_worker_unassign(ch);
	}
	mutex_unlock(&air_control);
	if (served)
		air_worker_bury(ch, worker->id, false);
	air_channel_put(ch);
	return served ? 0 : -ENXIO;
}

static bool air_worker_may_attach(u32 flags)
{
	kgid_t gid;

	if (flags & AIRUNNER_WORKER_OWN || capable(CAP_SYS_ADMIN))
		return true;
	gid = make_kgid(&init_user_ns, READ_ONCE(air_worker_gid));
	return gid_valid(gid) && in_group_p(gid);
}

static int air_worker_charge(struct air_worker *worker)
{
	struct air_user *user = air_user_get(worker->uid);
	int ret;

	if (!user)
		return -ENOMEM;
	ret = air_user_charge_worker(user);
	if (ret)
		air_user_put(user);
	else
		worker->quota = user;
	return ret;
}

/* air_worker_attach() - ATTACH_WORKER */
int air_worker_attach(struct air_file *file,
		      struct airunner_attach_worker *arg,
		      struct airunner_attach_worker __user *uarg, u32 usize)
{
	struct air_worker *worker;
	struct air_channel *ch, *next;
	int ret;

	if (arg->flags & ~AIRUNNER_WORKER_OWN || arg->resv ||
	    strnlen(arg->name, sizeof(arg->name)) == sizeof(arg->name))
		return -EINVAL;
	if (!air_worker_may_attach(arg->flags))
		return -EPERM;

	worker = kzalloc(sizeof(*worker), GFP_KERNEL_ACCOUNT);
	if (!worker)
		return -ENOMEM;
	kref_init(&worker->ref);
	worker->caps = arg->caps;
	worker->flags = arg->flags;
	worker->uid = current_uid();
	worker->pid = get_pid(task_tgid(current));
	strscpy(worker->name, arg->name, sizeof(worker->name));
	INIT_LIST_HEAD(&worker->channels);
	worker->file = air_file_get(file);
	air_queue_init(&worker->queue);
	worker->queue.wq = &file->wq;
	ret = air_worker_charge(worker);
	if (ret)
		goto err;
	worker->page = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
	if (!worker->page) {
		ret = -ENOMEM;
		goto err;
	}
	worker->queue.page = page_address(worker->page);
	worker->queue.page->best_prio = AIRUNNER_PRIO_CLASSES;

	mutex_lock(&air_control);
	if (!++air_next_worker)
		air_next_worker++;
	worker->id = air_next_worker;
	mutex_unlock(&air_control);

	arg->worker_id = worker->id;
	arg->page_offset = (u64)AIR_WORKER_PAGE_PGOFF << PAGE_SHIFT;
	ret = -EFAULT;
	if (copy_to_user(uarg, arg, usize))
		goto err;

	mutex_lock(&air_control);
	ret = -EBUSY;
	if (file->worker || file->building || !list_empty(&file->channels)) {
		mutex_unlock(&air_control);
		goto err;
	}
	air_log("worker %u (%*pE): attached, pid=%d caps=0x%llx\n",
		worker->id, (int)strlen(worker->name), worker->name,
		task_tgid_nr(current), worker->caps);
	list_add_tail(&worker->node, &air_workers);
	air_nr_workers++;
	list_for_each_entry_safe(ch, next, &air_unassigned, queue_node)
		air_worker_assign(ch);
	air_worker_balance(worker);
	trace_air_worker_attach(worker->id, pid_nr(worker->pid),
				worker->caps);
	/* Pairs with air_file_worker(): complete before it is seen. */
	smp_store_release(&file->worker, worker);
	mutex_unlock(&air_control);
	/* Who polls the file already has seen no worker's events. */
	wake_up_all(&file->wq);
	return 0;

err:
	air_worker_put(worker);
	return ret;
}

/* air_worker_mmap_page() - what it may see without asking */
int air_worker_mmap_page(struct air_worker *worker,
			 struct vm_area_struct *vma)
{
	if (vma_pages(vma) != 1 || vma->vm_flags & VM_WRITE)
		return -EINVAL;
	air_vm_flags_set(vma, VM_DONTEXPAND);
	air_vm_flags_clear(vma, VM_MAYWRITE);
	return vm_insert_page(vma, vma->vm_start, worker->page);
}

static void air_event_new(struct air_channel *ch, struct airunner_event *event)
{
	event->order = ch->order;
	event->region_size = (u64)ch->region.nr_pages << PAGE_SHIFT;
	event->mmap_offset = air_mmap_offset(ch, AIRUNNER_HANDLE_REGION);
	event->owner_uid = from_kuid_munged(current_user_ns(), ch->uid);
	event->owner_pid = pid_vnr(ch->pid);
	event->priority = ch->priority;
	event->weight = ch->weight;
}

/* What is told of @ch first; lock held. */
static void air_event_tell(struct air_channel *ch,
			   struct airunner_event *event)
{
	unsigned int what = ch->tell & -ch->tell;

	air_queue_untell(ch, what);
	switch (what) {
	case AIR_TELL_NEW:
		event->type = AIRUNNER_EV_CHANNEL_NEW;
		air_event_new(ch, event);
		ch->announced = true;
		trace_air_channel_announce(ch->id, air_worker_id(ch->queue));
		if (ch->rung) {
			ch->rung = false;
			air_turn_request(ch);
		}
		if (ch->watch) {
			ch->watch = false;
			air_queue_tell(ch, AIR_TELL_WATCH);
		}
		break;
	case AIR_TELL_RESET:
		event->type = AIRUNNER_EV_CHANNEL_RESET;
		break;
	case AIR_TELL_GONE:
		event->type = AIRUNNER_EV_CHANNEL_GONE;
		break;
	case AIR_TELL_WATCH:
		event->type = AIRUNNER_EV_WATCH;
		break;
	}
}

/* A buffer that the client has let go of; lock held. */
static struct air_channel *air_event_buffer(struct air_queue *queue,
					    struct airunner_event *event)
{
	struct air_buffer *buffer;
	struct air_channel *ch;

	ch = list_first_entry_or_null(&queue->buffers, struct air_channel,
				      gone_node);
	if (!ch)
		return NULL;
	buffer = list_first_entry(&ch->gone_buffers, struct air_buffer,
				  tell_node);
	event->type = AIRUNNER_EV_BUFFER_GONE;
	event->handle = buffer->handle;
	/* One with many does not keep the others from being told of. */
	list_move_tail(&ch->gone_node, &queue->buffers);
	air_buffer_dequeue(queue, buffer);
	return ch;
}

/* Whose turn it is; lock held. */
static struct air_channel *air_event_ready(struct air_queue *queue,
					   struct airunner_event *event)
{
	struct air_channel *ch = air_turn_next(queue);

	if (!ch)
		return NULL;
	trace_air_channel_turn(ch->id, air_worker_id(queue));
	event->type = AIRUNNER_EV_READY;
	event->quantum_ns = air_quantum_ns();
	event->priority = ch->priority;
	event->weight = ch->weight;
	return ch;
}

/* How much is told before a turn at least, if there is so much. */
#define AIR_MIN_TIDINGS	8U

/* What there is to tell; lock held. */
static struct air_channel *air_event_tidings(struct air_queue *queue,
					     struct airunner_event *event)
{
	struct air_channel *ch;

	ch = list_first_entry_or_null(&queue->events, struct air_channel,
				      tell_node);
	if (!ch)
		return air_event_buffer(queue, event);
	air_event_tell(ch, event);
	return ch;
}

/*
 * The next event; lock held. What is to be told goes before a turn, but only
 * as much as there is when the turn before has been given, or a few: clients
 * can ring to be watched as fast as that is told, and nobody would be served.
 */
static struct air_channel *air_event_next(struct air_queue *queue,
					  struct airunner_event *event)
{
	struct air_channel *ch = NULL;

	if (!queue->telling)
		queue->tidings = max(queue->nr_told, AIR_MIN_TIDINGS);
	queue->telling = queue->tidings && queue->nr_told;
	if (!queue->telling)
		ch = air_event_ready(queue, event);
	if (!ch && queue->nr_told) {
		/* Without anybody to serve it is not counted. */
		queue->tidings -= queue->telling;
		ch = air_event_tidings(queue, event);
	}
	return ch;
}

/* Take the next event off the queue; a reference to its channel. */
static struct air_channel *air_event_take(struct air_queue *queue,
					  struct airunner_event *event)
{
	struct air_channel *ch;

	memset(event, 0, sizeof(*event));
	spin_lock(&queue->lock);
	ch = air_event_next(queue, event);
	if (ch) {
		event->channel_id = ch->id;
		kref_get(&ch->ref);
		air_queue_changed(queue);
	}
	spin_unlock(&queue->lock);
	return ch;
}

/* The worker could not be given @event: put it back. */
static void air_event_untake(struct air_queue *queue, struct air_channel *ch,
			     const struct airunner_event *event)
{
	if (event->type == AIRUNNER_EV_BUFFER_GONE) {
		air_buffer_retell(ch, event->handle);
		return;
	}
	spin_lock(&queue->lock);
	if (READ_ONCE(ch->queue) != queue || !ch->announced)
		goto out;
	switch (event->type) {
	case AIRUNNER_EV_CHANNEL_NEW:
		air_queue_tell(ch, AIR_TELL_NEW);
		break;
	case AIRUNNER_EV_CHANNEL_RESET:
		air_queue_tell(ch, AIR_TELL_RESET);
		break;
	case AIRUNNER_EV_CHANNEL_GONE:
		air_queue_tell(ch, AIR_TELL_GONE);
		break;
	case AIRUNNER_EV_WATCH:
		air_queue_tell(ch, AIR_TELL_WATCH);
		break;
	case AIRUNNER_EV_READY:
		air_turn_report(ch, 0, AIRUNNER_REPORT_MORE);
		break;
	}
out:
	spin_unlock(&queue->lock);
}

/*
 * Return: events stored, -EFAULT if not even the first could be, or -EINTR:
 * the caller is being killed, and what it has been told is told the next one.
 */
static int air_worker_events(struct air_worker *worker,
			     struct airunner_event __user *to, u32 room)
{
	struct airunner_event event;
	struct air_channel *ch;
	u32 nr = 0;

	while (nr < room) {
		ch = air_event_take(&worker->queue, &event);
		if (!ch)
			break;
		if (copy_to_user(&to[nr], &event, sizeof(event))) {
			air_event_untake(&worker->queue, ch, &event);
			air_channel_put(ch);
			return nr ?: -EFAULT;
		}
		air_channel_put(ch);
		nr++;
		/* Clients may make events as fast as they are taken. */
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
	}
	return nr;
}

static int air_worker_reports(struct air_worker *worker,
			      const struct airunner_report __user *from,
			      u32 nr)
{
	struct airunner_report report;
	struct air_channel *ch;
	u32 i;

	for (i = 0; i < nr; i++) {
		if (fatal_signal_pending(current))
			return -EINTR;
		if (copy_from_user(&report, &from[i], sizeof(report)))
			return -EFAULT;
		if (report.flags & ~(AIRUNNER_REPORT_IDLE |
				     AIRUNNER_REPORT_MORE) ||
		    report.flags == (AIRUNNER_REPORT_IDLE |
				     AIRUNNER_REPORT_MORE))
			return -EINVAL;
		cond_resched();
		/* One that it has not (any more) is not worth an error. */
		ch = air_channel_get(report.channel_id);
		if (!ch)
			continue;
		spin_lock(&worker->queue.lock);
		if (READ_ONCE(ch->queue) == &worker->queue && ch->announced) {
			trace_air_channel_report(ch->id, report.device_ns,
						 report.completed,
						 report.flags);
			ch->completed += report.completed;
			/* It may have found work that nobody rang for. */
			if (report.completed)
				set_bit(AIR_CH_SERVED, &ch->flags);
			air_turn_report(ch, report.device_ns, report.flags);
		}
		spin_unlock(&worker->queue.lock);
		air_channel_put(ch);
	}
	return 0;
}

static bool air_worker_has_event(void *data)
{
	struct air_worker *worker = data;

	return READ_ONCE(worker->dead) ||
	       air_queue_has_event(&worker->queue);
}

/* air_worker_wait() - WAIT of a worker */
int air_worker_wait(struct air_worker *worker, struct airunner_wait *arg,
		    struct airunner_wait __user *uarg)
{
	struct airunner_event __user *events = u64_to_user_ptr(arg->events);
	s64 timeout = arg->timeout_ns;
	int ret;

	if (arg->channel_id || arg->nr_reports > AIRUNNER_MAX_REPORTS)
		return -EINVAL;
	ret = air_worker_reports(worker, u64_to_user_ptr(arg->reports),
				 arg->nr_reports);
	if (ret)
		return ret;
	/*
	 * Not again if a signal has this called again; and no event is taken
	 * that could then not be told of.
	 */
	arg->nr_reports = 0;
	if (put_user(0, &uarg->nr_reports))
		return -EFAULT;

	while (arg->nr_events) {
		ret = READ_ONCE(worker->dead) ? -ESHUTDOWN :
			air_worker_events(worker, events, arg->nr_events);
		if (ret)
			break;
		ret = air_wait_time(worker->queue.wq, air_worker_has_event,
				    worker, &timeout);
		if (ret)
			break;
	}
	if (ret > 0) {
		arg->nr_events = ret;
		ret = 0;
	} else if (ret == -ERESTARTSYS) {
		arg->timeout_ns = timeout;
	} else if (ret) {
		arg->nr_events = 0;
	}
	if (copy_to_user(uarg, arg, sizeof(*arg)))
		return -EFAULT;
	return ret;
}

/* air_worker_print() - the line of @worker */
void air_worker_print(struct seq_file *m, struct air_worker *worker)
{
	struct air_queue *queue = &worker->queue;
	unsigned int told, ready;

	spin_lock(&queue->lock);
	told = queue->nr_told;
	ready = queue->nr_ready;
	spin_unlock(&queue->lock);
	seq_printf(m, "worker: %u name=", worker->id);
	air_show_name(m, worker->name);
	seq_printf(m, " pid=%d uid=%u caps=0x%llx flags=0x%x load=%lu told=%u ready=%u%s\n",
		   pid_vnr(worker->pid),
		   from_kuid_munged(seq_user_ns(m), worker->uid),
		   worker->caps, worker->flags, READ_ONCE(worker->load), told,
		   ready, READ_ONCE(worker->dead) ? " dead" : "");
}

/* air_workers_print() - the lines of all of them */
void air_workers_print(struct seq_file *m)
{
	struct air_worker *worker;

	mutex_lock(&air_control);
	list_for_each_entry(worker, &air_workers, node)
		air_worker_print(m, worker);
	mutex_unlock(&air_control);
}
