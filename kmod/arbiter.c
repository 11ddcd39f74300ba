// SPDX-License-Identifier: GPL-2.0-only
/*
 * airunner: who is served next.
 *
 * Channels ask for a turn with DOORBELL; a worker is given turns by WAIT and
 * ends them with a report. Per worker:
 *
 * - Classes are strict: nobody of a class gets a turn while a better class
 *   has a channel that awaits or has one.
 * - Within a class the channel with the least virtual time goes first. Virtual
 *   time is device time as reported, times DEFAULT / weight. A channel that is
 *   ahead of the one furthest behind by more than a turn is withheld even if
 *   the worker has room, or a worker that takes all it can get would make all
 *   shares equal. One that was idle enters no more than a turn behind the
 *   others: it does not save up for later. There is a virtual time for each
 *   class, so that one that leaves a class finds there what it owed when it
 *   comes back.
 * - Nobody starves: a channel that has waited for starve_ms is due, and every
 *   AIR_RESCUE_EVERY-th turn goes to the longest-waiting one that is due, of
 *   whatever class; at once if there is nobody else to serve. With n channels
 *   ready a channel waits no longer than starve_ms plus n * AIR_RESCUE_EVERY
 *   turns. Between two turns the worker is told no more of other things than
 *   there is to tell after the first, or a few (air_event_next()).
 *
 * Cost of everything is O(log n) in the ready channels of one worker; idle
 * channels are in none of the structures.
 *
 * The arbiter's fields of a channel are protected by the lock of the queue
 * that it is on. Channels of no worker are on air_limbo, so that there always
 * is one. A channel moves under the locks of both.
 */
#include <linux/eventfd.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/moduleparam.h>

#include "compat.h"
#include "internal.h"

#define AIR_RESCUE_EVERY	8

/* A report of more than 18 minutes is not believed. */
#define AIR_MAX_REPORT_NS	BIT_ULL(40)

/*
 * How far ahead of the others a channel can be, in virtual time, when it moves
 * to another queue: four seconds. Anybody can have a worker that serves only
 * their own channels and reports what it likes, and the channels of others
 * would be put back by as much once this one is alone in its class for a
 * moment.
 */
#define AIR_MAX_LEAD_MOVED	BIT_ULL(32)

/*
 * The same for a new weight on the same queue, in virtual time times weight,
 * which is device time times the default weight: so much that nothing is
 * forgiven, 78 hours of device time at any weight, and little enough to
 * calculate with.
 */
#define AIR_MAX_LEAD_WEIGHED	(BIT_ULL(48) * AIRUNNER_WEIGHT_DEFAULT)

static unsigned int air_quantum_us = 1000;
module_param_named(quantum_us, air_quantum_us, uint, 0644);
MODULE_PARM_DESC(quantum_us, "how long a turn is, microseconds");

static unsigned int air_starve_ms = 200;
module_param_named(starve_ms, air_starve_ms, uint, 0644);
MODULE_PARM_DESC(starve_ms,
		 "after how long a waiting channel is served out of turn");

/* For lockdep: limbo's lock is the outer one when a channel moves. */
static struct lock_class_key air_limbo_key;

struct air_queue air_limbo;

/* air_quantum_ns() - how long a turn is */
u64 air_quantum_ns(void)
{
	return (u64)clamp(READ_ONCE(air_quantum_us), 1U, 10000000U) *
	       NSEC_PER_USEC;
}

static u64 air_starve_ns(void)
{
	return (u64)READ_ONCE(air_starve_ms) * NSEC_PER_MSEC;
}

static void air_queue_starving(struct work_struct *work)
{
	struct air_queue *queue = container_of(to_delayed_work(work),
					       struct air_queue, starving);

	spin_lock(&queue->lock);
	air_queue_changed(queue);
	spin_unlock(&queue->lock);
}

void air_queue_init(struct air_queue *queue)
{
	unsigned int i;

	spin_lock_init(&queue->lock);
	if (queue == &air_limbo)
		lockdep_set_class(&queue->lock, &air_limbo_key);
	INIT_LIST_HEAD(&queue->events);
	INIT_LIST_HEAD(&queue->buffers);
	INIT_LIST_HEAD(&queue->waiting);
	for (i = 0; i < ARRAY_SIZE(queue->class); i++) {
		queue->class[i].ready = RB_ROOT_CACHED;
		queue->class[i].serving = RB_ROOT_CACHED;
	}
	INIT_DELAYED_WORK(&queue->starving, air_queue_starving);
}

void air_queue_destroy(struct air_queue *queue)
{
	cancel_delayed_work_sync(&queue->starving);
	if (queue->eventfd)
		eventfd_ctx_put(queue->eventfd);
}

/*
 * air_queue_lock() - lock the queue that @ch is on
 *
 * A queue that it has left meanwhile may be on its way to being freed, but not
 * within this section; one that it is on stays for as long as it is locked.
 */
struct air_queue *air_queue_lock(struct air_channel *ch)
	__acquires(&ch->queue->lock)
{
	struct air_queue *queue;

	rcu_read_lock();
	for (;;) {
		queue = READ_ONCE(ch->queue);
		spin_lock(&queue->lock);
		if (likely(queue == ch->queue))
			break;
		spin_unlock(&queue->lock);
	}
	rcu_read_unlock();
	return queue;
}

/* Virtual time, which wraps: is @a before @b? */
static bool air_before(u64 a, u64 b)
{
	return (s64)(a - b) < 0;
}

/* Where @ch stands in the class that it is in. */
static u64 air_vtime(const struct air_channel *ch)
{
	return ch->vtime[ch->priority];
}

static bool air_vnode_less(struct rb_node *a, const struct rb_node *b)
{
	return air_before(air_vtime(rb_entry(a, struct air_channel, vnode)),
			  air_vtime(rb_entry(b, struct air_channel, vnode)));
}

static struct air_channel *air_first(const struct rb_root_cached *root)
{
	return rb_entry_safe(rb_first_cached(root), struct air_channel, vnode);
}

static struct air_class *air_class_of(struct air_channel *ch)
{
	return &ch->queue->class[ch->priority];
}

/* The tree that @ch is in, NULL while it neither has nor awaits a turn. */
static struct rb_root_cached *air_tree_of(struct air_channel *ch)
{
	switch (ch->turn) {
	case AIR_TURN_READY:
		return &air_class_of(ch)->ready;
	case AIR_TURN_SERVING:
		return &air_class_of(ch)->serving;
	default:
		return NULL;
	}
}

/* The virtual time of the one furthest behind, or where that last was. */
static u64 air_class_floor(struct air_class *class)
{
	struct air_channel *ready = air_first(&class->ready);
	struct air_channel *serving = air_first(&class->serving);
	u64 least;

	if (ready || serving) {
		if (!serving ||
		    (ready && air_before(air_vtime(ready), air_vtime(serving))))
			least = air_vtime(ready);
		else
			least = air_vtime(serving);
		if (air_before(class->floor, least))
			class->floor = least;
	}
	return class->floor;
}

/* How far @vtime is ahead of @floor, within @max; negative: behind. */
static s64 air_lead(u64 vtime, u64 floor, u64 max)
{
	return clamp_t(s64, vtime - floor, -(s64)max, (s64)max);
}

/* What a whole turn adds to @ch's virtual time. */
static u64 air_turn_vtime(const struct air_channel *ch)
{
	return div_u64(air_quantum_ns() * AIRUNNER_WEIGHT_DEFAULT, ch->weight);
}

/* The next channel by class and virtual time, or NULL: all are withheld. */
static struct air_channel *air_queue_best(struct air_queue *queue)
{
	struct air_channel *ch;
	struct air_class *class;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(queue->class); i++) {
		class = &queue->class[i];
		ch = air_first(&class->ready);
		if (ch) {
			u64 limit = air_class_floor(class) +
				    air_turn_vtime(ch);

			return air_before(limit, air_vtime(ch)) ? NULL : ch;
		}
		if (air_first(&class->serving))
			return NULL;
	}
	return NULL;
}

/* The channel that has waited longest, if that is too long. */
static struct air_channel *air_queue_due(struct air_queue *queue, u64 now)
{
	struct air_channel *ch = list_first_entry_or_null(&queue->waiting,
							  struct air_channel,
							  wait_node);

	return ch && now - ch->since >= air_starve_ns() ? ch : NULL;
}

/* Of the due and the best one, who gets the next turn? */
static struct air_channel *air_queue_pick(struct air_queue *queue, u64 now)
{
	struct air_channel *best = air_queue_best(queue);

	if (!best || queue->picks + 1 >= AIR_RESCUE_EVERY)
		return air_queue_due(queue, now) ?: best;
	return best;
}

/* air_queue_has_event() - whether WAIT would return something */
bool air_queue_has_event(struct air_queue *queue)
{
	bool ret;

	spin_lock(&queue->lock);
	ret = queue->nr_told || air_queue_pick(queue, ktime_get_ns());
	spin_unlock(&queue->lock);
	return ret;
}

/*
 * air_queue_changed() - @queue's lock is held and what is on it has changed:
 *	show that to the worker, and wake it if it has something to do
 */
void air_queue_changed(struct air_queue *queue)
{
	struct air_channel *waiting, *pick;
	unsigned int i, best = AIRUNNER_PRIO_CLASSES;
	u64 now, age;

	if (!queue->page)
		return;
	for (i = 0; i < ARRAY_SIZE(queue->class); i++) {
		if (air_first(&queue->class[i].ready)) {
			best = i;
			break;
		}
	}
	now = ktime_get_ns();
	pick = air_queue_pick(queue, now);
	/* Those that are withheld are not worth a call. */
	WRITE_ONCE(queue->page->pending,
		   queue->nr_told + (pick ? queue->nr_ready : 0));
	WRITE_ONCE(queue->page->best_prio, best);

	if (queue->nr_told || pick) {
		wake_up(queue->wq);
		if (queue->eventfd)
			air_eventfd_signal(queue->eventfd);
		return;
	}
	/* Withheld: look again when the longest-waiting one is due. */
	waiting = list_first_entry_or_null(&queue->waiting, struct air_channel,
					   wait_node);
	if (waiting) {
		age = min(now - waiting->since, air_starve_ns());
		mod_delayed_work(system_wq, &queue->starving,
				 nsecs_to_jiffies(air_starve_ns() - age) + 1);
	}
}

/* air_queue_tell() - have the worker told @what of @ch; lock held */
void air_queue_tell(struct air_channel *ch, unsigned int what)
{
	if (!ch->tell) {
		list_add_tail(&ch->tell_node, &ch->queue->events);
		ch->queue->nr_told++;
	}
	ch->tell |= what;
	air_queue_changed(ch->queue);
}

/* air_queue_untell() - it need not be told @what any more; lock held */
void air_queue_untell(struct air_channel *ch, unsigned int what)
{
	if (!(ch->tell & what))
		return;
	ch->tell &= ~what;
	if (!ch->tell) {
		list_del_init(&ch->tell_node);
		ch->queue->nr_told--;
	}
	air_queue_changed(ch->queue);
}

static void air_ready(struct air_channel *ch)
{
	ch->turn = AIR_TURN_READY;
	ch->since = ktime_get_ns();
	rb_add_cached(&ch->vnode, &air_class_of(ch)->ready, air_vnode_less);
	list_add_tail(&ch->wait_node, &ch->queue->waiting);
	ch->queue->nr_ready++;
}

/*
 * @ch comes to its class, from idle or from another class: what it did not ask
 * for here meanwhile it does not get later.
 */
static void air_enter(struct air_channel *ch)
{
	u64 entry = air_class_floor(air_class_of(ch)) - air_turn_vtime(ch);

	if (air_before(air_vtime(ch), entry))
		ch->vtime[ch->priority] = entry;
}

static void air_unready(struct air_channel *ch)
{
	rb_erase_cached(&ch->vnode, &air_class_of(ch)->ready);
	list_del_init(&ch->wait_node);
	ch->queue->nr_ready--;
	ch->turn = AIR_TURN_NONE;
}

/*
 * air_turn_request() - @ch wants to be served; lock held
 *
 * While it is being served, or its worker has not been told of it yet, that
 * is remembered: a doorbell is never lost.
 */
void air_turn_request(struct air_channel *ch)
{
	if (!ch->announced || ch->turn == AIR_TURN_SERVING) {
		ch->rung = true;
		return;
	}
	if (ch->turn == AIR_TURN_READY)
		return;
	air_enter(ch);
	air_ready(ch);
	air_queue_changed(ch->queue);
}

/* Take @ch from the trees; what its turn was is the caller's to remember. */
static void air_take(struct air_channel *ch)
{
	switch (ch->turn) {
	case AIR_TURN_READY:
		air_unready(ch);
		break;
	case AIR_TURN_SERVING:
		rb_erase_cached(&ch->vnode, &air_class_of(ch)->serving);
		ch->turn = AIR_TURN_NONE;
		break;
	case AIR_TURN_NONE:
		break;
	}
}

static void air_serve(struct air_channel *ch)
{
	ch->turn = AIR_TURN_SERVING;
	rb_add_cached(&ch->vnode, &air_class_of(ch)->serving, air_vnode_less);
}

/* air_turn_remove() - @ch neither has nor wants a turn; lock held */
void air_turn_remove(struct air_channel *ch)
{
	if (ch->turn == AIR_TURN_NONE)
		return;
	air_take(ch);
	air_queue_changed(ch->queue);
}

/* air_turn_next() - give a turn to whoever is next; lock held */
struct air_channel *air_turn_next(struct air_queue *queue)
{
	u64 now = ktime_get_ns();
	struct air_channel *ch = air_queue_pick(queue, now);

	if (!ch)
		return NULL;
	if (ch == air_queue_due(queue, now))
		queue->picks = 0;
	else
		queue->picks++;
	air_unready(ch);
	ch->rung = false;
	ch->turns++;
	ch->turn_priority = ch->priority;
	air_serve(ch);
	return ch;
}

/*
 * Charge @ch, which may be in a tree that is ordered by what it has used. Who
 * leaves a class during a turn pays for that turn there, too.
 */
static void air_charge(struct air_channel *ch, u64 device_ns)
{
	struct rb_root_cached *root = air_tree_of(ch);
	u64 used = div_u64(device_ns * AIRUNNER_WEIGHT_DEFAULT, ch->weight);

	if (root)
		rb_erase_cached(&ch->vnode, root);
	ch->device_ns += device_ns;
	ch->vtime[ch->priority] += used;
	if (ch->turn_priority != ch->priority)
		ch->vtime[ch->turn_priority] += used;
	if (root)
		rb_add_cached(&ch->vnode, root, air_vnode_less);
}

/*
 * air_turn_report() - account for @ch, and end its turn if @flags say so; lock
 *	held
 */
void air_turn_report(struct air_channel *ch, u64 device_ns, u32 flags)
{
	air_charge(ch, min_t(u64, device_ns, AIR_MAX_REPORT_NS));
	if (ch->turn == AIR_TURN_SERVING && flags) {
		air_take(ch);
		/* A doorbell meanwhile may be for what it has not seen. */
		if (flags & AIRUNNER_REPORT_MORE || ch->rung)
			air_ready(ch);
	} else if (flags & AIRUNNER_REPORT_MORE &&
		   !test_bit(AIR_CH_ENDING, &ch->flags)) {
		/* Its producer did not see that it should have rung. */
		air_turn_request(ch);
	}
	air_queue_changed(ch->queue);
}

/* What @vtime, @floor being that of its class, is at another weight. */
static u64 air_reweigh(u64 vtime, u64 floor, unsigned int from,
		       unsigned int to)
{
	u64 max = div_u64(AIR_MAX_LEAD_WEIGHED, from);
	s64 owed = air_lead(vtime, floor, max) * from;

	/* Rounded up, so that changing it to and fro gains nothing. */
	if (owed > 0)
		owed += to - 1;
	return floor + div_s64(owed, to);
}

/*
 * air_turn_weigh() - change @ch's class and weight; lock held
 *
 * What it owes or is owed in its class it keeps, as device time: the same lead
 * is more virtual time at a lower weight. What it owes in a class it owes when
 * it is there again, and nothing is carried from one class to another: its
 * lead over those of one is none of the other's business.
 */
void air_turn_weigh(struct air_channel *ch, unsigned int priority,
		    unsigned int weight)
{
	struct rb_root_cached *root = air_tree_of(ch);
	bool enters = priority != ch->priority;
	u64 vtime[AIRUNNER_PRIO_CLASSES];
	unsigned int i;

	if (!enters && weight == ch->weight)
		return;
	/* While it is in its tree: the floor may be where it stands itself. */
	for (i = 0; i < ARRAY_SIZE(vtime); i++)
		vtime[i] = air_reweigh(ch->vtime[i],
				       air_class_floor(&ch->queue->class[i]),
				       ch->weight, weight);
	if (root)
		rb_erase_cached(&ch->vnode, root);
	memcpy(ch->vtime, vtime, sizeof(vtime));
	ch->priority = priority;
	ch->weight = weight;
	/* How long it has waited stays as it was. */
	root = air_tree_of(ch);
	if (root) {
		if (enters)
			air_enter(ch);
		rb_add_cached(&ch->vnode, root, air_vnode_less);
	}
	air_queue_changed(ch->queue);
}

/*
 * air_turn_move() - put @ch on @to; both queues are locked
 *
 * It takes along how far ahead of the others it is, within limits, and nothing
 * else: turns, requests and tidings are between it and one worker.
 */
void air_turn_move(struct air_channel *ch, struct air_queue *to)
{
	struct air_queue *from = ch->queue;
	s64 lead[AIRUNNER_PRIO_CLASSES];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(lead); i++)
		lead[i] = air_lead(ch->vtime[i],
				   air_class_floor(&from->class[i]),
				   AIR_MAX_LEAD_MOVED);
	air_take(ch);
	air_queue_untell(ch, ch->tell);
	if (!list_empty(&ch->gone_node)) {
		list_del_init(&ch->gone_node);
		from->nr_told -= ch->nr_gone;
	}
	WRITE_ONCE(ch->queue, to);
	for (i = 0; i < ARRAY_SIZE(lead); i++)
		ch->vtime[i] = air_class_floor(&to->class[i]) + lead[i];
	ch->turn_priority = ch->priority;
	air_queue_changed(from);
}
