/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * airunner: the only place that knows what differs between kernels.
 *
 * AIR_HAVE_* are found by compiling compat/<name>.c against the kernel that
 * is built for (compat/probe.sh), not by its version: distributions backport.
 */
#ifndef AIRUNNER_COMPAT_H
#define AIRUNNER_COMPAT_H

#include <linux/eventfd.h>
#include <linux/mm.h>
#include <linux/sched.h>

#include "air-compat-config.h"

/* The array of VMAs went away in 6.5. */
static inline long air_pin_user_pages(unsigned long start, unsigned long nr,
				      unsigned int gup_flags,
				      struct page **pages)
{
#ifdef AIR_HAVE_PIN_USER_PAGES_VMAS
	return pin_user_pages(start, nr, gup_flags, pages, NULL);
#else
	return pin_user_pages(start, nr, gup_flags, pages);
#endif
}

/* vm_flags became read-only, with setters, in 6.3. */
static inline void air_vm_flags_set(struct vm_area_struct *vma,
				    unsigned long flags)
{
#ifdef AIR_HAVE_VM_FLAGS_SET
	vm_flags_set(vma, flags);
#else
	vma->vm_flags |= flags;
#endif
}

static inline void air_vm_flags_clear(struct vm_area_struct *vma,
				      unsigned long flags)
{
#ifdef AIR_HAVE_VM_FLAGS_SET
	vm_flags_clear(vma, flags);
#else
	vma->vm_flags &= ~flags;
#endif
}

/*
 * Is it a thread that the kernel made for itself, or for io_uring, vhost, ...?
 * The latter had one flag only before 6.4.
 */
static inline bool air_task_of_kernel(const struct task_struct *task)
{
	unsigned int flags = PF_KTHREAD | PF_IO_WORKER;

#ifdef PF_USER_WORKER
	flags |= PF_USER_WORKER;
#endif
	return READ_ONCE(task->flags) & flags;
}

/* The count, always 1, went away in 6.8. */
static inline void air_eventfd_signal(struct eventfd_ctx *ctx)
{
#ifdef AIR_HAVE_EVENTFD_SIGNAL_COUNT
	eventfd_signal(ctx, 1);
#else
	eventfd_signal(ctx);
#endif
}

/* mm->get_unmapped_area became a flag in 6.10. */
static inline unsigned long air_get_unmapped_area(struct file *file,
						  unsigned long addr,
						  unsigned long len,
						  unsigned long pgoff,
						  unsigned long flags)
{
#ifdef AIR_HAVE_MM_GET_UNMAPPED_AREA
	return mm_get_unmapped_area(current->mm, file, addr, len, pgoff,
				    flags);
#else
	return current->mm->get_unmapped_area(file, addr, len, pgoff, flags);
#endif
}

#endif
