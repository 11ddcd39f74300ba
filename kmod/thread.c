// SPDX-License-Identifier: GPL-2.0-only
/*
 * airunner: accelerator threads: confined to the cores in ai_cpus.
 *
 * A marked thread is put on those cores and gets PF_NO_SETAFFINITY, as the
 * kernel's own bound threads have it: sched_setaffinity(2) and moving to
 * another cpuset are then refused. What it was allowed before is remembered,
 * and restored when the mark is taken off.
 *
 * Who may open the device may use those cores, whatever cpuset it is in: that
 * is what configuring them means, and what a cpuset allows is not for modules
 * to ask (cpuset_cpus_allowed() is not exported). Without ai_cpus nobody gets
 * anywhere.
 *
 * Both can be undone from elsewhere (a cpuset's cores change, a core goes
 * offline, exec), so marked threads are looked at once a second and put back.
 * That costs nothing while there are none.
 */
#include <linux/capability.h>
#include <linux/cpumask.h>
#include <linux/cred.h>
#include <linux/moduleparam.h>
#include <linux/pid.h>
#include <linux/proc_fs.h>
#include <linux/sched/task.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "compat.h"
#include "internal.h"
#include "trace.h"

/**
 * struct air_thread - a marked thread
 * @node: in air_threads
 * @task: the thread, referenced
 * @before: where it was allowed to run
 */
struct air_thread {
	struct list_head node;
	struct task_struct *task;
	cpumask_var_t before;
};

static DEFINE_MUTEX(air_threads_lock);
static LIST_HEAD(air_threads);
static struct cpumask air_ai_cpus;

static void air_threads_check(struct work_struct *work);
static DECLARE_DELAYED_WORK(air_threads_work, air_threads_check);

/*
 * Only a thread itself changes its flags, and without atomics. Compare and
 * exchange cannot lose what it changes; it may lose what we do: for the mark
 * the periodic look repairs that, for its end air_task_unbind().
 */
static void air_task_bind(struct task_struct *task, bool bind)
{
	unsigned int old = READ_ONCE(task->flags), new;

	do {
		new = bind ? old | PF_NO_SETAFFINITY :
			     old & ~PF_NO_SETAFFINITY;
	} while (!try_cmpxchg(&task->flags, &old, new));
}

/*
 * Nobody looks again later, so see that it stays: a change of its own flags
 * that the thread was in the middle of has ended when every processor has
 * gone through the scheduler.
 */
static void air_task_unbind(struct task_struct *task)
{
	air_task_bind(task, false);
	/* Nobody is in the middle of changing our own. */
	if (task == current)
		return;
	synchronize_rcu();
	while (READ_ONCE(task->flags) & PF_NO_SETAFFINITY) {
		air_task_bind(task, false);
		synchronize_rcu();
	}
}

static bool air_task_dead(struct task_struct *task)
{
	return READ_ONCE(task->flags) & PF_EXITING;
}

static struct air_thread *air_thread_find(struct task_struct *task)
{
	struct air_thread *thread;

	lockdep_assert_held(&air_threads_lock);
	list_for_each_entry(thread, &air_threads, node) {
		if (thread->task == task)
			return thread;
	}
	return NULL;
}

static int air_thread_confine(struct air_thread *thread)
{
	int ret;

	ret = set_cpus_allowed_ptr(thread->task, &air_ai_cpus);
	/* None of them is online. */
	if (ret)
		return -ENODEV;
	air_task_bind(thread->task, true);
	return 0;
}

static void air_thread_free(struct air_thread *thread)
{
	put_task_struct(thread->task);
	free_cpumask_var(thread->before);
	kfree(thread);
}

/* Its flag has been taken off. */
static void air_thread_release(struct air_thread *thread)
{
	list_del(&thread->node);
	/* If none of those is left, the scheduler has found others. */
	if (!air_task_dead(thread->task) &&
	    set_cpus_allowed_ptr(thread->task, thread->before))
		set_cpus_allowed_ptr(thread->task, cpu_possible_mask);
	air_thread_free(thread);
}

static void air_thread_forget(struct air_thread *thread)
{
	if (!air_task_dead(thread->task))
		air_task_unbind(thread->task);
	air_thread_release(thread);
}

/* Those that have exited hold nothing but memory. */
static void air_threads_prune(void)
{
	struct air_thread *thread, *next;

	list_for_each_entry_safe(thread, next, &air_threads, node) {
		if (air_task_dead(thread->task))
			air_thread_forget(thread);
	}
}

static int air_thread_mark(struct task_struct *task)
{
	struct air_thread *thread;
	int ret;

	if (cpumask_empty(&air_ai_cpus))
		return -ENODEV;
	if (air_task_dead(task))
		return -ESRCH;
	if (air_thread_find(task))
		return 0;
	/* Somebody else has bound it, for reasons of their own. */
	if (READ_ONCE(task->flags) & PF_NO_SETAFFINITY)
		return -EPERM;
	thread = kzalloc(sizeof(*thread), GFP_KERNEL_ACCOUNT);
	if (!thread)
		return -ENOMEM;
	if (!alloc_cpumask_var(&thread->before, GFP_KERNEL_ACCOUNT)) {
		kfree(thread);
		return -ENOMEM;
	}
	thread->task = get_task_struct(task);
	cpumask_copy(thread->before, &task->cpus_mask);
	ret = air_thread_confine(thread);
	if (ret) {
		air_thread_free(thread);
		return ret;
	}
	list_add_tail(&thread->node, &air_threads);
	schedule_delayed_work(&air_threads_work, HZ);
	return 0;
}

static void air_threads_check(struct work_struct *work)
{
	struct air_thread *thread;

	mutex_lock(&air_threads_lock);
	air_threads_prune();
	list_for_each_entry(thread, &air_threads, node) {
		if (!(READ_ONCE(thread->task->flags) & PF_NO_SETAFFINITY) ||
		    !cpumask_equal(&thread->task->cpus_mask, &air_ai_cpus))
			air_thread_confine(thread);
	}
	if (!list_empty(&air_threads))
		schedule_delayed_work(&air_threads_work, HZ);
	mutex_unlock(&air_threads_lock);
}

/*
 * As sched_setaffinity(2) decides it, for the caller, or for who opened @filp:
 * a privileged program may be made to write to any file.
 */
static bool air_thread_permitted(struct task_struct *task, struct file *filp)
{
	const struct cred *cred = filp ? filp->f_cred : current_cred();
	const struct cred *theirs;
	bool ret;

	if (air_task_of_kernel(task))
		return false;
	rcu_read_lock();
	theirs = __task_cred(task);
	ret = uid_eq(cred->euid, theirs->euid) ||
	      uid_eq(cred->euid, theirs->uid) ||
	      (filp ? file_ns_capable(filp, theirs->user_ns, CAP_SYS_NICE) :
		      ns_capable(theirs->user_ns, CAP_SYS_NICE));
	rcu_read_unlock();
	return ret;
}

static struct task_struct *air_task_get(pid_t tid)
{
	struct task_struct *task = current;

	rcu_read_lock();
	if (tid)
		task = pid_task(find_vpid(tid), PIDTYPE_PID);
	if (task)
		get_task_struct(task);
	rcu_read_unlock();
	return task;
}

/*
 * air_thread_set_class() - mark or unmark thread @tid; 0 is the caller
 * @filp: whose opener has to be permitted to; NULL for the caller
 */
int air_thread_set_class(pid_t tid, u32 class, struct file *filp)
{
	struct task_struct *task;
	struct air_thread *thread;
	int ret = 0;

	if (tid < 0 || class > AIRUNNER_THREAD_AI)
		return -EINVAL;
	task = air_task_get(tid);
	if (!task)
		return -ESRCH;
	if (!air_thread_permitted(task, filp)) {
		ret = -EPERM;
		goto out;
	}
	mutex_lock(&air_threads_lock);
	if (class == AIRUNNER_THREAD_AI) {
		ret = air_thread_mark(task);
	} else {
		thread = air_thread_find(task);
		if (thread)
			air_thread_forget(thread);
	}
	mutex_unlock(&air_threads_lock);
	if (!ret)
		trace_air_thread_class(task_pid_nr(task), class);
out:
	put_task_struct(task);
	return ret;
}

/* /proc/airunner_thread ------------------------------------------------- */

static int air_thread_show(struct seq_file *m, void *unused)
{
	struct air_thread *thread;

	mutex_lock(&air_threads_lock);
	list_for_each_entry(thread, &air_threads, node) {
		pid_t tid = task_pid_vnr(thread->task);

		if (tid && !air_task_dead(thread->task))
			seq_printf(m, "%d ai\n", tid);
	}
	mutex_unlock(&air_threads_lock);
	return 0;
}

static int air_thread_open(struct inode *inode, struct file *filp)
{
	return single_open(filp, air_thread_show, NULL);
}

/* "TID" or "TID ai" marks, "TID normal" unmarks. */
static ssize_t air_thread_write(struct file *filp, const char __user *ubuf,
				size_t len, loff_t *pos)
{
	char buf[32], *class = buf, *tid;
	int ret, nr;

	if (len >= sizeof(buf))
		return -EINVAL;
	if (copy_from_user(buf, ubuf, len))
		return -EFAULT;
	buf[len] = '\0';
	class = strim(buf);
	tid = strsep(&class, " \t");
	ret = kstrtoint(tid, 10, &nr);
	if (ret)
		return ret;
	if (!class || !strcmp(skip_spaces(class), "ai"))
		ret = air_thread_set_class(nr, AIRUNNER_THREAD_AI, filp);
	else if (!strcmp(skip_spaces(class), "normal"))
		ret = air_thread_set_class(nr, AIRUNNER_THREAD_NORMAL, filp);
	else
		ret = -EINVAL;
	return ret ?: len;
}

static const struct proc_ops air_thread_ops = {
	.proc_open = air_thread_open,
	.proc_read = seq_read,
	.proc_lseek = seq_lseek,
	.proc_release = single_release,
	.proc_write = air_thread_write,
};

/* ai_cpus --------------------------------------------------------------- */

static int air_ai_cpus_set(const char *val, const struct kernel_param *kp)
{
	struct air_thread *thread;
	cpumask_var_t cpus;
	int ret;

	if (!zalloc_cpumask_var(&cpus, GFP_KERNEL))
		return -ENOMEM;
	ret = cpulist_parse(val, cpus);
	if (ret)
		goto out;
	if (!cpumask_subset(cpus, cpu_possible_mask)) {
		ret = -EINVAL;
		goto out;
	}
	mutex_lock(&air_threads_lock);
	air_threads_prune();
	if (cpumask_empty(cpus) && !list_empty(&air_threads)) {
		ret = -EBUSY;
	} else {
		cpumask_copy(&air_ai_cpus, cpus);
		list_for_each_entry(thread, &air_threads, node)
			air_thread_confine(thread);
	}
	mutex_unlock(&air_threads_lock);
out:
	free_cpumask_var(cpus);
	return ret;
}

static int air_ai_cpus_get(char *buf, const struct kernel_param *kp)
{
	return cpumap_print_to_pagebuf(true, buf, &air_ai_cpus);
}

static const struct kernel_param_ops air_ai_cpus_ops = {
	.set = air_ai_cpus_set,
	.get = air_ai_cpus_get,
};

module_param_cb(ai_cpus, &air_ai_cpus_ops, NULL, 0644);
MODULE_PARM_DESC(ai_cpus, "cores of accelerator threads, as a list (2-3,7)");

int air_thread_init(void)
{
	return proc_create("airunner_thread", 0660, NULL, &air_thread_ops) ?
		0 : -ENOMEM;
}

void air_thread_exit(void)
{
	struct air_thread *thread, *next;
	bool bound;

	remove_proc_entry("airunner_thread", NULL);
	mutex_lock(&air_threads_lock);
	/* As air_task_unbind(), but all of them in one go. */
	list_for_each_entry(thread, &air_threads, node)
		air_task_bind(thread->task, false);
	do {
		bound = false;
		synchronize_rcu();
		list_for_each_entry(thread, &air_threads, node) {
			if (!(READ_ONCE(thread->task->flags) &
			      PF_NO_SETAFFINITY) ||
			    air_task_dead(thread->task))
				continue;
			air_task_bind(thread->task, false);
			bound = true;
		}
	} while (bound);
	list_for_each_entry_safe(thread, next, &air_threads, node)
		air_thread_release(thread);
	mutex_unlock(&air_threads_lock);
	cancel_delayed_work_sync(&air_threads_work);
}
