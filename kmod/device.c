// SPDX-License-Identifier: GPL-2.0-only
/*
 * airunner: /dev/airunner: open files and the table of ioctls.
 */
#include <linux/file.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/nospec.h>
#include <linux/sched/signal.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "compat.h"
#include "internal.h"

struct air_file *air_file_get(struct air_file *file)
{
	kref_get(&file->ref);
	return file;
}

static void air_file_release(struct kref *ref)
{
	kfree(container_of(ref, struct air_file, ref));
}

void air_file_put(struct air_file *file)
{
	kref_put(&file->ref, air_file_release);
}

/*
 * The core holds a mutex of all misc devices here: nothing that waits.
 */
static int air_open(struct inode *inode, struct file *filp)
{
	struct air_file *file = kzalloc(sizeof(*file), GFP_KERNEL_ACCOUNT);

	if (!file)
		return -ENOMEM;
	kref_init(&file->ref);
	INIT_LIST_HEAD(&file->channels);
	init_waitqueue_head(&file->wq);
	filp->private_data = file;
	return nonseekable_open(inode, filp);
}

/* The last one who had the file is gone, and no call on it is under way. */
static int air_release(struct inode *inode, struct file *filp)
{
	struct air_file *file = filp->private_data;
	struct air_channel *ch, *next;

	/* Nobody builds any more, so nothing is added behind our back. */
	list_for_each_entry_safe(ch, next, &file->channels, owner_node)
		air_channel_owner_gone(ch, true);
	if (file->worker) {
		air_worker_death(file->worker);
		air_worker_put(file->worker);
	}
	air_file_put(file);
	return 0;
}

/*
 * A worker that dies leaves its channels even if a child of it, which never
 * served anything, still has the file open. It dies with its last thread: one
 * that ends, or that has a table of files of its own, is not it.
 */
static int air_flush(struct file *filp, fl_owner_t id)
{
	struct air_file *file = filp->private_data;
	struct air_worker *worker = air_file_worker(file);

	if (worker && worker->pid == task_tgid(current) &&
	    !atomic_read(&current->signal->live))
		air_worker_death(worker);
	return 0;
}

/*
 * air_file_begin_build() - @file becomes (or is) a client's for as long as it
 *	takes to build a channel
 */
int air_file_begin_build(struct air_file *file)
{
	int ret = 0;

	mutex_lock(&air_control);
	if (file->worker)
		ret = -EPERM;
	else
		file->building++;
	mutex_unlock(&air_control);
	return ret;
}

void air_file_end_build(struct air_file *file)
{
	mutex_lock(&air_control);
	file->building--;
	mutex_unlock(&air_control);
}

/* What a page offset names: a channel, referenced, and one of its buffers. */
static struct air_channel *air_mmap_channel(unsigned long pgoff, u32 *handle)
{
	*handle = pgoff & ((1UL << AIR_HANDLE_SHIFT) - 1);
	pgoff >>= AIR_HANDLE_SHIFT;
	return pgoff <= INT_MAX ? air_channel_get(pgoff) : NULL;
}

static int air_mmap(struct file *filp, struct vm_area_struct *vma)
{
	struct air_worker *worker = air_file_worker(filp->private_data);
	struct air_region *region;
	struct air_channel *ch;
	u32 handle;
	int ret;

	if (!worker)
		return -EPERM;
	if (vma->vm_pgoff == AIR_WORKER_PAGE_PGOFF)
		return air_worker_mmap_page(worker, vma);
	ch = air_mmap_channel(vma->vm_pgoff, &handle);
	if (!ch)
		return -ENXIO;
	mutex_lock(&ch->mem);
	region = air_buffer_region(ch, handle);
	if (!air_worker_serves(worker, ch))
		ret = -EACCES;
	else if (!region)
		ret = -ENXIO;
	else
		ret = air_region_mmap(region, vma);
	mutex_unlock(&ch->mem);
	air_channel_put(ch);
	return ret;
}

/*
 * The ioctls. An argument is copied as a whole, checked for what we do not
 * know, and handed on; what a call returns it copies itself, so that it can
 * undo what it did if that fails.
 */
union air_arg {
	u32 size;
	struct airunner_info info;
	struct airunner_build_channel build;
	struct airunner_channel_ref ref;
	struct airunner_buffer buffer;
	struct airunner_doorbell doorbell;
	struct airunner_wait wait;
	struct airunner_set_priority priority;
	struct airunner_set_eventfd eventfd;
	struct airunner_set_thread_class thread;
	struct airunner_attach_worker attach;
};

#define AIR_FEATURES (AIRUNNER_FEAT_BUFFERS | AIRUNNER_FEAT_EVENTFD |	\
		      AIRUNNER_FEAT_THREADS | AIR_FEAT_HUGETLB |	\
		      AIR_FEAT_URING)
#define AIR_FEAT_HUGETLB (IS_ENABLED(CONFIG_HUGETLBFS) ?		\
			  AIRUNNER_FEAT_HUGETLB : 0)
#ifdef AIR_HAVE_URING_CANCEL
#define AIR_FEAT_URING AIRUNNER_FEAT_URING
#else
#define AIR_FEAT_URING 0
#endif

static long air_get_info(struct air_file *file, union air_arg *arg,
			 void __user *uarg, u32 usize)
{
	struct airunner_info *info = &arg->info;
	u32 workers;
	u64 caps = air_worker_caps(&workers);

	*info = (struct airunner_info) {
		.size = sizeof(*info),
		.abi_major = AIRUNNER_ABI_MAJOR,
		.abi_minor = AIRUNNER_ABI_MINOR,
		.workers = workers,
		.features = AIR_FEATURES,
		.max_order = AIRUNNER_MAX_ORDER,
		.page_size = PAGE_SIZE,
		.max_region = AIR_MAX_REGION,
		.max_channels = READ_ONCE(air_max_channels),
		.max_buffers = AIR_MAX_BUFFERS,
		.worker_caps = caps,
	};
	return copy_to_user(uarg, info, usize) ? -EFAULT : 0;
}

static long air_build(struct air_file *file, union air_arg *arg,
		      void __user *uarg, u32 usize)
{
	return air_channel_build(file, &arg->build, uarg, usize);
}

static bool air_ref_bad(const struct airunner_channel_ref *ref)
{
	return ref->flags || ref->resv;
}

static long air_destroy(struct air_file *file, union air_arg *arg,
			void __user *uarg, u32 usize)
{
	if (air_ref_bad(&arg->ref))
		return -EINVAL;
	return air_channel_destroy(file, arg->ref.channel_id);
}

static long air_reset(struct air_file *file, union air_arg *arg,
		      void __user *uarg, u32 usize)
{
	if (air_ref_bad(&arg->ref))
		return -EINVAL;
	return air_channel_reset(arg->ref.channel_id);
}

static long air_detach(struct air_file *file, union air_arg *arg,
		       void __user *uarg, u32 usize)
{
	if (air_ref_bad(&arg->ref))
		return -EINVAL;
	return air_worker_detach(file->worker, arg->ref.channel_id);
}

static long air_doorbell(struct air_file *file, union air_arg *arg,
			 void __user *uarg, u32 usize)
{
	const struct airunner_doorbell *bell = &arg->doorbell;

	if (bell->flags & ~AIRUNNER_BELL_WATCH || bell->resv)
		return -EINVAL;
	return air_channel_doorbell(file, bell->channel_id, bell->flags);
}

static long air_wait(struct air_file *file, union air_arg *arg,
		     void __user *uarg, u32 usize)
{
	struct air_worker *worker = air_file_worker(file);

	if (arg->wait.flags || arg->wait.resv)
		return -EINVAL;
	return worker ? air_worker_wait(worker, &arg->wait, uarg) :
			air_client_wait(file, &arg->wait, uarg);
}

static long air_priority(struct air_file *file, union air_arg *arg,
			 void __user *uarg, u32 usize)
{
	return air_channel_set_priority(file, &arg->priority);
}

static long air_attach(struct air_file *file, union air_arg *arg,
		       void __user *uarg, u32 usize)
{
	return air_worker_attach(file, &arg->attach, uarg, usize);
}

static long air_register_buffer(struct air_file *file, union air_arg *arg,
				void __user *uarg, u32 usize)
{
	return air_buffer_register(file, &arg->buffer, uarg, usize);
}

static long air_unregister_buffer(struct air_file *file, union air_arg *arg,
				  void __user *uarg, u32 usize)
{
	return air_buffer_unregister(file, &arg->buffer);
}

static long air_info_buffer(struct air_file *file, union air_arg *arg,
			    void __user *uarg, u32 usize)
{
	return air_buffer_info(file->worker, &arg->buffer, uarg, usize);
}

static long air_eventfd(struct air_file *file, union air_arg *arg,
			void __user *uarg, u32 usize)
{
	return air_set_eventfd(file, &arg->eventfd);
}

static long air_thread_class(struct air_file *file, union air_arg *arg,
			     void __user *uarg, u32 usize)
{
	if (arg->thread.flags)
		return -EINVAL;
	return air_thread_set_class(arg->thread.tid, arg->thread.thread_class,
				    NULL);
}

/* Who may call. */
#define AIR_CLIENT	BIT(0)
#define AIR_WORKER	BIT(1)
#define AIR_ANY		(AIR_CLIENT | AIR_WORKER)

static const struct air_ioctl {
	long (*call)(struct air_file *file, union air_arg *arg,
		     void __user *uarg, u32 usize);
	u32 size;
	u32 who;
} air_ioctls[] = {
#define AIR_IOCTL(name, fn, type, by)					\
	[_IOC_NR(AIRUNNER_IOC_##name)] = {				\
		.call = fn, .size = sizeof(struct type), .who = by }
	AIR_IOCTL(GET_INFO, air_get_info, airunner_info, AIR_ANY),
	AIR_IOCTL(BUILD_CHANNEL, air_build, airunner_build_channel, AIR_CLIENT),
	AIR_IOCTL(DESTROY_CHANNEL, air_destroy, airunner_channel_ref,
		  AIR_CLIENT),
	AIR_IOCTL(REGISTER_BUFFER, air_register_buffer, airunner_buffer,
		  AIR_CLIENT),
	AIR_IOCTL(UNREGISTER_BUFFER, air_unregister_buffer, airunner_buffer,
		  AIR_ANY),
	AIR_IOCTL(DOORBELL, air_doorbell, airunner_doorbell, AIR_ANY),
	AIR_IOCTL(WAIT, air_wait, airunner_wait, AIR_ANY),
	AIR_IOCTL(SET_PRIORITY, air_priority, airunner_set_priority,
		  AIR_CLIENT),
	AIR_IOCTL(SET_EVENTFD, air_eventfd, airunner_set_eventfd, AIR_ANY),
	AIR_IOCTL(SET_THREAD_CLASS, air_thread_class,
		  airunner_set_thread_class, AIR_ANY),
	AIR_IOCTL(RESET_CHANNEL, air_reset, airunner_channel_ref, AIR_ANY),
	AIR_IOCTL(ATTACH_WORKER, air_attach, airunner_attach_worker, AIR_ANY),
	AIR_IOCTL(DETACH_CHANNEL, air_detach, airunner_channel_ref, AIR_WORKER),
	AIR_IOCTL(BUFFER_INFO, air_info_buffer, airunner_buffer, AIR_WORKER),
};

static long air_ioctl(struct file *filp, unsigned int cmd, unsigned long uptr)
{
	struct air_file *file = filp->private_data;
	void __user *uarg = (void __user *)uptr;
	const struct air_ioctl *ioctl;
	union air_arg arg;
	u32 usize;
	int ret;

	if (_IOC_TYPE(cmd) != AIRUNNER_IOC_MAGIC ||
	    _IOC_NR(cmd) >= ARRAY_SIZE(air_ioctls))
		return -ENOTTY;
	ioctl = &air_ioctls[array_index_nospec(_IOC_NR(cmd),
					       ARRAY_SIZE(air_ioctls))];
	if (!ioctl->call)
		return -ENOTTY;
	if (!(ioctl->who & (air_file_worker(file) ? AIR_WORKER : AIR_CLIENT)))
		return -EPERM;

	if (get_user(usize, (u32 __user *)uarg))
		return -EFAULT;
	/* What has grown since 1.0 would be optional; nothing has yet. */
	if (usize < ioctl->size)
		return -EINVAL;
	if (usize > PAGE_SIZE)
		return -E2BIG;
	memset(&arg, 0, sizeof(arg));
	ret = copy_struct_from_user(&arg, ioctl->size, uarg, usize);
	if (ret)
		return ret;
	return ioctl->call(file, &arg, uarg, ioctl->size);
}

/* Hugetlb memory needs a place that is aligned as its pages are. */
static unsigned long air_unmapped_area(struct file *filp, unsigned long addr,
				       unsigned long len, unsigned long pgoff,
				       unsigned long flags)
{
	struct file *huge = NULL;
	struct air_region *region;
	struct air_channel *ch;
	unsigned long ret;
	u32 handle;

	ch = air_mmap_channel(pgoff, &handle);
	if (ch) {
		mutex_lock(&ch->mem);
		region = air_buffer_region(ch, handle);
		if (region && region->huge)
			huge = get_file(region->file);
		mutex_unlock(&ch->mem);
		air_channel_put(ch);
	}
	if (!huge || !huge->f_op->get_unmapped_area)
		ret = air_get_unmapped_area(filp, addr, len, pgoff, flags);
	else
		ret = huge->f_op->get_unmapped_area(huge, addr, len, 0, flags);
	if (huge)
		fput(huge);
	return ret;
}

static void air_show_fdinfo(struct seq_file *m, struct file *filp)
{
	struct air_file *file = filp->private_data;
	struct air_worker *worker = air_file_worker(file);
	struct air_channel *ch;

	mutex_lock(&air_control);
	if (worker) {
		air_worker_print(m, worker);
		list_for_each_entry(ch, &worker->channels, queue_node)
			air_channel_show(m, ch);
	} else {
		list_for_each_entry(ch, &file->channels, owner_node)
			air_channel_show(m, ch);
	}
	mutex_unlock(&air_control);
}

static const struct file_operations air_fops = {
	.owner = THIS_MODULE,
	.open = air_open,
	.flush = air_flush,
	.release = air_release,
	.unlocked_ioctl = air_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.poll = air_poll,
	.mmap = air_mmap,
	.get_unmapped_area = air_unmapped_area,
	.show_fdinfo = air_show_fdinfo,
#ifdef AIR_HAVE_URING_CANCEL
	.uring_cmd = air_uring_cmd,
#endif
};

static struct miscdevice air_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "airunner",
	.fops = &air_fops,
	.mode = 0660,
	.groups = air_groups,
};

int air_device_register(void)
{
	return misc_register(&air_device);
}

void air_device_unregister(void)
{
	misc_deregister(&air_device);
}
