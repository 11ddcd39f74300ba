/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * airunner: what the files of the module share.
 *
 * Lock order, outermost first:
 *
 *	mmap_lock		(held by the mm around our ->mmap)
 *	air_control		mutex: workers, who holds a channel, file lists
 *	air_channel.mem		mutex: the pages of a channel and its buffers
 *	air_users		mutex: quotas
 *	air_limbo.lock		spinlock: arbiter state of unassigned channels
 *	air_worker.queue.lock	spinlock: arbiter state of a worker's channels
 *	air_channel.bell	spinlock: who is told of completions
 *	air_spans		spinlock: which file ranges are regions
 *
 * User memory is never touched under one of them: a fault takes mmap_lock.
 * Pinning and unpinning, which may take seconds, happen under none of them.
 *
 * A channel has two holders: its owner (the file that built it) until that
 * closes or destroys it, and a worker from the moment it has been told of the
 * channel until it detaches or dies. The pages are let go when the second
 * one has let go (air_channel_finish()); the struct lives on for as long as
 * somebody has a reference.
 */
#ifndef AIRUNNER_INTERNAL_H
#define AIRUNNER_INTERNAL_H

#include <linux/atomic.h>
#include <linux/fs.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/printk.h>
#include <linux/ratelimit.h>
#include <linux/rbtree.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/uidgid.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "air-compat-config.h"
#include "airunner.h"

#undef pr_fmt
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

struct air_channel;
struct air_worker;
struct cred;
struct eventfd_ctx;
struct poll_table_struct;
struct seq_file;

/*
 * One line per event of interest; bounded, as users can cause them. What they
 * can cause by trying alone does not take the place of what happened.
 */
extern struct ratelimit_state air_log_limit, air_try_limit;
#define air_log_by(limit, fmt, ...)					\
	do {								\
		if (__ratelimit(limit))					\
			pr_info(fmt, ##__VA_ARGS__);			\
	} while (0)
#define air_log(...)		air_log_by(&air_log_limit, __VA_ARGS__)
#define air_log_try(...)	air_log_by(&air_try_limit, __VA_ARGS__)

extern struct mutex air_control;

/* user.c: quotas ------------------------------------------------------- */

/**
 * struct air_user - what one user has of the module
 * @uid: the user
 * @refs: channels, buffers and workers that are charged here
 * @channels: channels built
 * @entries: ring entries of those, which bounds outstanding submissions
 * @pages: pages pinned
 * @workers: workers attached
 */
struct air_user {
	kuid_t uid;
	unsigned long refs;
	unsigned long channels;
	unsigned long entries;
	unsigned long pages;
	unsigned int workers;
};

extern unsigned int air_max_channels;
struct air_user *air_user_get(kuid_t uid);
void air_user_put(struct air_user *user);
int air_user_charge_channel(struct air_user *user, unsigned long entries);
void air_user_uncharge_channel(struct air_user *user, unsigned long entries);
int air_user_charge_pages(struct air_user *user, unsigned long pages);
void air_user_uncharge_pages(struct air_user *user, unsigned long pages);
int air_user_charge_worker(struct air_user *user);
void air_user_uncharge_worker(struct air_user *user);

/* region.c: user memory, pinned and charged ---------------------------- */

#define AIR_MAX_REGION	BIT_ULL(36)

/**
 * struct air_span - a range of a file that is a region
 * @node: in the tree of all spans
 * @inode: the file
 * @first: first page
 * @last: last page
 */
struct air_span {
	struct rb_node node;
	struct inode *inode;
	pgoff_t first;
	pgoff_t last;
};

/**
 * struct air_region - pinned user memory
 * @file: what backs it; NULL when the region is not there (any more)
 * @pages: its pages, each pinned once
 * @nr_pages: how many
 * @pgoff: where in @file it begins
 * @span: keeps others from registering the same range
 * @exclusive: @span is in the tree
 * @huge: hugetlb memory
 * @quota: whose quota it counts against
 * @user: whose locked_vm it counts against; NULL if exempt
 * @mm: whose pinned_vm it counts against
 */
struct air_region {
	struct file *file;
	struct page **pages;
	unsigned long nr_pages;
	pgoff_t pgoff;
	struct air_span span;
	bool exclusive;
	bool huge;
	struct air_user *quota;
	const struct cred *cred;
	struct mm_struct *mm;
};

extern atomic_long_t air_pinned_pages;
int air_region_pin(struct air_region *region, struct air_user *quota, u64 va,
		   u64 size, bool exclusive);
void air_region_unpin(struct air_region *region);
void air_region_take(struct air_region *to, struct air_region *from);
int air_region_mmap(struct air_region *region, struct vm_area_struct *vma);
struct page *air_region_page(struct air_region *region, unsigned long index);

/* device.c: an open file ----------------------------------------------- */

/**
 * struct air_file - an open /dev/airunner
 * @ref: the file itself, each of its channels, and what it is as a worker
 * @channels: what it built (air_control)
 * @building: BUILD_CHANNELs under way (air_control)
 * @worker: what ATTACH_WORKER made it; set once, under air_control
 * @unseen: channels with completions that no WAIT has returned yet
 * @ended: channels that ended under their owner
 * @wq: pollers, and whoever sleeps in WAIT of @worker
 */
struct air_file {
	struct kref ref;
	struct list_head channels;
	unsigned int building;
	struct air_worker *worker;
	atomic_t unseen;
	atomic_t ended;
	wait_queue_head_t wq;
};

struct air_file *air_file_get(struct air_file *file);
void air_file_put(struct air_file *file);
int air_file_begin_build(struct air_file *file);
void air_file_end_build(struct air_file *file);
int air_device_register(void);
void air_device_unregister(void);

static inline struct air_worker *air_file_worker(struct air_file *file)
{
	/* Pairs with the release in air_worker_attach(). */
	return smp_load_acquire(&file->worker);
}

/* arbiter.c: which channel a worker serves next ------------------------ */

/**
 * struct air_class - the channels of one priority class on a queue
 * @ready: waiting for a turn, by virtual time
 * @serving: having one, by virtual time
 * @floor: virtual time below which nobody (re-)enters; never goes back
 */
struct air_class {
	struct rb_root_cached ready;
	struct rb_root_cached serving;
	u64 floor;
};

/**
 * struct air_queue - arbiter state of one worker, or of no worker
 * @lock: protects this and the arbiter fields of the channels on it
 * @events: channels with something other than READY to tell
 * @buffers: channels with buffers to tell of
 * @waiting: ready channels, the longest-waiting first
 * @class: the same by class and virtual time
 * @nr_told: entries of @events and @buffers
 * @tidings: how much may be told before the next turn, while @telling
 * @telling: some of that has been told
 * @nr_ready: entries of @waiting
 * @picks: turns given since the last rescue of a starving channel
 * @page: what the worker sees of this without asking
 * @eventfd: signalled when something is queued
 * @wq: sleeping workers: their file's, whose pollers may have come before it
 *	was a worker's
 * @starving: wakes them when a withheld channel has waited too long
 */
struct air_queue {
	spinlock_t lock;	/* this, and the arbiter fields of channels */
	struct list_head events;
	struct list_head buffers;
	struct list_head waiting;
	struct air_class class[AIRUNNER_PRIO_CLASSES];
	unsigned int nr_told;
	unsigned int tidings;
	bool telling;
	unsigned int nr_ready;
	unsigned int picks;
	struct airunner_worker_page *page;
	struct eventfd_ctx *eventfd;
	wait_queue_head_t *wq;
	struct delayed_work starving;
};

enum air_turn {
	AIR_TURN_NONE,
	AIR_TURN_READY,
	AIR_TURN_SERVING,
};

/* What a worker is to be told of a channel, in the order of telling. */
#define AIR_TELL_NEW	BIT(0)
#define AIR_TELL_RESET	BIT(1)
#define AIR_TELL_GONE	BIT(2)
#define AIR_TELL_WATCH	BIT(3)

extern struct air_queue air_limbo;

u64 air_quantum_ns(void);
void air_queue_init(struct air_queue *queue);
void air_queue_destroy(struct air_queue *queue);
bool air_queue_has_event(struct air_queue *queue);
void air_queue_changed(struct air_queue *queue);
struct air_queue *air_queue_lock(struct air_channel *ch)
	__acquires(&ch->queue->lock);
void air_queue_tell(struct air_channel *ch, unsigned int what);
void air_queue_untell(struct air_channel *ch, unsigned int what);
void air_turn_request(struct air_channel *ch);
void air_turn_remove(struct air_channel *ch);
void air_turn_report(struct air_channel *ch, u64 device_ns, u32 flags);
struct air_channel *air_turn_next(struct air_queue *queue);
void air_turn_move(struct air_channel *ch, struct air_queue *to);
void air_turn_weigh(struct air_channel *ch, unsigned int priority,
		    unsigned int weight);

/* channel.c ------------------------------------------------------------ */

/* air_channel.flags */
enum {
	AIR_CH_OWNER_GONE,	/* destroyed, or its file was closed */
	AIR_CH_CLOSED,		/* its file was closed: nobody reads answers */
	AIR_CH_ENDING,		/* no more submissions: reset or dead */
	AIR_CH_ENDED,		/* ... and all outstanding ones are answered */
	AIR_CH_FINISHED,	/* nobody holds it */
	AIR_CH_UNSEEN,		/* counted in air_file.unseen */
	AIR_CH_SERVED,		/* a doorbell has been rung: it has state */
};

/**
 * struct air_channel - a region with its rings, and who uses it
 * @ref: one for being findable, one per user of the moment
 * @rcu: the struct is found under RCU
 * @id: what user space calls it
 * @order: log2 of its ring entries
 * @need_caps: what a worker must be able to do
 * @want_worker: the only worker to serve it, or 0
 * @flags: AIR_CH_*
 * @owner: the file that built it
 * @owner_node: in @owner's list (air_control)
 * @uid: the user who built it
 * @pid: the process that built it
 * @comm: its name
 * @mem: protects @region's and the buffers' pages and the shared words
 * @region: its memory
 * @buffers: by handle (@mem)
 * @nr_buffers: how many; read by anybody
 * @queue: the worker's, or air_limbo; changes under both locks
 * @queue_node: in its worker's list of channels, or limbo's (air_control)
 * @orphan_node: in the list of channels that a dying worker leaves
 * @left: the worker that gave it back by itself, and does not get it again
 * @orphan: its worker died and its submissions are being answered
 * @priority: class (@queue->lock, like all from here to @serves)
 * @weight: share within the class
 * @turn: where it stands with the arbiter
 * @rung: asked for a turn while it could not be queued
 * @watch: asked for its completions to be watched before there was a worker
 * @announced: the worker has been told of it, and holds it
 * @moving: asked back from its worker, to be given to another
 * @tell: AIR_TELL_* not told yet
 * @tell_node: in @queue->events while @tell is not 0
 * @gone_buffers: buffers that the worker is to be told are gone
 * @nr_gone: how many
 * @gone_node: in @queue->buffers while there are any
 * @turn_priority: the class that it was in when it got its latest turn
 * @vtime: device time used, divided by weight; for each class
 * @vnode: in a tree of its class while it has or awaits a turn
 * @wait_node: in @queue->waiting while it awaits one
 * @since: when it began to wait, ns
 * @turns: turns given
 * @device_ns: device time used
 * @completed: submissions completed, as the worker reports
 * @doorbells: doorbells rung by clients
 * @answered: submissions the module answered itself
 * @seq: completion sequence
 * @wq: clients waiting for it to change
 * @bell: protects what follows
 * @eventfd: signalled with it
 * @uring: io_uring commands waiting for it
 * @nr_uring: how many
 */
struct air_channel {
	struct kref ref;
	struct rcu_head rcu;
	u32 id;
	u32 order;
	u64 need_caps;
	u32 want_worker;
	unsigned long flags;

	struct air_file *owner;
	struct list_head owner_node;
	kuid_t uid;
	struct pid *pid;
	char comm[TASK_COMM_LEN];

	struct mutex mem;	/* pages of the region and the buffers */
	struct air_region region;
	struct xarray buffers;
	unsigned int nr_buffers;

	struct air_queue *queue;
	struct list_head queue_node;
	struct list_head orphan_node;
	u32 left;
	bool orphan;

	u16 priority;
	u16 weight;
	enum air_turn turn;
	bool rung;
	bool watch;
	bool announced;
	bool moving;
	unsigned int tell;
	struct list_head tell_node;
	struct list_head gone_buffers;
	unsigned int nr_gone;
	struct list_head gone_node;
	u16 turn_priority;
	u64 vtime[AIRUNNER_PRIO_CLASSES];
	struct rb_node vnode;
	struct list_head wait_node;
	u64 since;
	u64 turns;
	u64 device_ns;
	u64 completed;
	u64 doorbells;
	u64 answered;

	atomic64_t seq;
	wait_queue_head_t wq;
	spinlock_t bell;	/* who is told of completions */
	struct eventfd_ctx *eventfd;
	struct list_head uring;
	unsigned int nr_uring;
};

/* A worker's mmap offset, in pages, names a channel and one of its buffers. */
#define AIR_HANDLE_SHIFT	AIRUNNER_HANDLE_BITS
#define AIR_MAX_BUFFERS		(AIRUNNER_HANDLE_NONE - 1)

static inline u64 air_mmap_offset(const struct air_channel *ch, u32 handle)
{
	return ((u64)ch->id << AIR_HANDLE_SHIFT | handle) << PAGE_SHIFT;
}

extern atomic_t air_nr_channels;
int air_channel_build(struct air_file *file,
		      struct airunner_build_channel *arg,
		      struct airunner_build_channel __user *uarg, u32 usize);
int air_channel_destroy(struct air_file *file, u32 id);
int air_channel_reset(u32 id);
int air_channel_doorbell(struct air_file *file, u32 id, u32 flags);
int air_channel_set_priority(struct air_file *file,
			     const struct airunner_set_priority *arg);
void air_channel_owner_gone(struct air_channel *ch, bool closed);
void air_channel_finish(struct air_channel *ch);
void air_channel_die(struct air_channel *ch, const char *why);
bool air_channel_unlink(struct air_channel *ch);
void air_channel_completed(struct air_channel *ch);
void air_channel_saw(struct air_channel *ch);
struct air_channel *air_channel_get(u32 id);
struct air_channel *air_channel_get_owned(struct air_file *file, u32 id);
void air_channel_put(struct air_channel *ch);
struct air_channel *air_channel_next(u32 *id);

static inline bool air_channel_ended(const struct air_channel *ch)
{
	return test_bit(AIR_CH_ENDED, &ch->flags) ||
	       test_bit(AIR_CH_FINISHED, &ch->flags);
}

/* ring.c: what the module itself does in a region ---------------------- */

int air_ring_sleep(struct air_channel *ch);
int air_ring_answer(struct air_channel *ch, enum airunner_status status,
		    bool fenced);
bool air_ring_arm(struct air_channel *ch);
void air_rings_fence(void);
int air_ring_heads(struct air_channel *ch, u64 *sq_tail, u64 *cq_head);

/* worker.c ------------------------------------------------------------- */

/**
 * struct air_worker - a file that serves channels
 * @ref: the file, and users of the moment
 * @rcu: @queue's lock is found under RCU
 * @id: what user space calls it
 * @caps: AIRUNNER_CAP_*
 * @flags: AIRUNNER_WORKER_*
 * @uid: the user who attached it
 * @file: what it was before; has the wait queue
 * @quota: whose quota it counts against
 * @pid: the process that attached it
 * @name: for humans
 * @node: in the list of workers (air_control, like the next three)
 * @channels: what it has been given
 * @load: sum of their weights
 * @dead: it is going away and gets nothing more
 * @queue: its side of the arbiter
 * @page: what it maps to see @queue's state
 */
struct air_worker {
	struct kref ref;
	struct rcu_head rcu;
	u32 id;
	u64 caps;
	u32 flags;
	kuid_t uid;
	struct air_file *file;
	struct air_user *quota;
	struct pid *pid;
	char name[32];
	struct list_head node;
	struct list_head channels;
	unsigned long load;
	bool dead;
	struct air_queue queue;
	struct page *page;
};

/* Where a worker maps its page: channel 0 does not exist. */
#define AIR_WORKER_PAGE_PGOFF	1

extern unsigned int air_nr_workers;
u64 air_worker_caps(u32 *nr);
int air_worker_attach(struct air_file *file,
		      struct airunner_attach_worker *arg,
		      struct airunner_attach_worker __user *uarg, u32 usize);
void air_worker_death(struct air_worker *worker);
void air_worker_put(struct air_worker *worker);
int air_worker_wait(struct air_worker *worker, struct airunner_wait *arg,
		    struct airunner_wait __user *uarg);
int air_worker_detach(struct air_worker *worker, u32 id);
int air_worker_mmap_page(struct air_worker *worker,
			 struct vm_area_struct *vma);
void air_worker_adopt(struct air_channel *ch);
void air_worker_assign(struct air_channel *ch);
void air_worker_unassign(struct air_channel *ch);
bool air_worker_withhold(struct air_channel *ch);
void air_worker_print(struct seq_file *m, struct air_worker *worker);
void air_workers_print(struct seq_file *m);
struct air_worker *air_worker_of(struct air_channel *ch);
bool air_worker_serves(struct air_worker *worker, struct air_channel *ch);

/* The worker of @queue as user space calls it, 0 for none. */
static inline u32 air_worker_id(const struct air_queue *queue)
{
	return queue == &air_limbo ? 0 :
		container_of(queue, struct air_worker, queue)->id;
}

/* buffer.c ------------------------------------------------------------- */

/**
 * struct air_buffer - memory beside the region
 * @ch: its channel
 * @handle: its number there
 * @region: the memory; not there while it is being pinned
 * @user: whose quota it counts against
 * @gone: the client has let go
 * @held: the worker has asked about it and not let go
 * @tell_node: in its channel's list of those to tell of; then, of those to free
 */
struct air_buffer {
	struct air_channel *ch;
	u32 handle;
	struct air_region region;
	struct air_user *user;
	bool gone;
	bool held;
	struct list_head tell_node;
};

int air_buffer_register(struct air_file *file, struct airunner_buffer *arg,
			struct airunner_buffer __user *uarg, u32 usize);
int air_buffer_unregister(struct air_file *file,
			  const struct airunner_buffer *arg);
int air_buffer_info(struct air_worker *worker, struct airunner_buffer *arg,
		    struct airunner_buffer __user *uarg, u32 usize);
struct air_region *air_buffer_region(struct air_channel *ch, u32 handle);
void air_buffer_retell(struct air_channel *ch, u32 handle);
void air_buffers_worker_gone(struct air_channel *ch);
void air_buffers_take(struct air_channel *ch, struct list_head *list);
void air_buffers_free(struct list_head *list);
void air_buffer_dequeue(struct air_queue *queue, struct air_buffer *buffer);

/* wait.c: how clients wait --------------------------------------------- */

int air_wait_time(struct wait_queue_head *wq, bool (*ready)(void *),
		  void *data, s64 *timeout_ns);
int air_client_wait(struct air_file *file, struct airunner_wait *arg,
		    struct airunner_wait __user *uarg);
__poll_t air_poll(struct file *file, struct poll_table_struct *table);

int air_set_eventfd(struct air_file *file,
		    const struct airunner_set_eventfd *arg);

/* uring.c: ... through io_uring, where it can cancel -------------------- */

struct io_uring_cmd;
#ifdef AIR_HAVE_URING_CANCEL
int air_uring_cmd(struct io_uring_cmd *cmd, unsigned int issue_flags);
void air_uring_wake(struct air_channel *ch);
#else
static inline void air_uring_wake(struct air_channel *ch)
{
}
#endif

/* thread.c: accelerator threads ----------------------------------------- */

int air_thread_set_class(pid_t tid, u32 class, struct file *filp);
int air_thread_init(void);
void air_thread_exit(void);

/* show.c: fdinfo and debugfs --------------------------------------------- */

void air_show_name(struct seq_file *m, const char *name);
void air_channel_show(struct seq_file *m, struct air_channel *ch);
void air_show_init(void);
void air_show_exit(void);

/* sysfs.c -------------------------------------------------------------- */

extern const struct attribute_group *air_groups[];

#endif
