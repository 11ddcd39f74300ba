// SPDX-License-Identifier: GPL-2.0-only
/*
 * airunner: user memory that stays: checked, charged, pinned, mapped.
 *
 * A region is a part of a shmem or hugetlb file that the caller has mapped
 * shared and writable. The pages are pinned for as long as the region lives,
 * and the file is held, so that a worker can map the same pages whatever the
 * caller does to its mapping.
 *
 * A pin keeps pages, not their place in the file: truncating or punching a
 * hole gives later users of the file other pages. Nobody can be kept from
 * that, so air_region_page() looks before the module touches a page.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/fs.h>
#include <linux/hugetlb.h>
#include <linux/mman.h>
#include <linux/module.h>
#include <linux/mount.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/user.h>
#include <linux/shmem_fs.h>
#include <linux/slab.h>

#include "compat.h"
#include "internal.h"

/* Pages pinned under one hold of mmap_lock: 2 MiB. */
#define AIR_PIN_BATCH	512

atomic_long_t air_pinned_pages;

/*
 * Spans: regions do not overlap, so ordering them by file and first page and
 * looking at neighbours is enough.
 */
static DEFINE_SPINLOCK(air_spans);
static struct rb_root air_span_tree = RB_ROOT;

/* <0: @a is before @b; 0: they overlap; >0: after. */
static int air_span_cmp(const struct air_span *a, const struct air_span *b)
{
	if (a->inode != b->inode)
		return a->inode < b->inode ? -1 : 1;
	if (a->last < b->first)
		return -1;
	return a->first > b->last;
}

/*
 * air_span_claim() - check that @span is free, and take it if @insert
 *
 * Return: -EEXIST if it overlaps a region.
 */
static int air_span_claim(struct air_span *span, bool insert)
{
	struct rb_node **link = &air_span_tree.rb_node, *parent = NULL;
	int order, ret = 0;

	spin_lock(&air_spans);
	while (*link) {
		parent = *link;
		order = air_span_cmp(span, rb_entry(parent, struct air_span,
						    node));
		if (!order) {
			ret = -EEXIST;
			goto out;
		}
		link = order < 0 ? &parent->rb_left : &parent->rb_right;
	}
	if (insert) {
		rb_link_node(&span->node, parent, link);
		rb_insert_color(&span->node, &air_span_tree);
	}
out:
	spin_unlock(&air_spans);
	return ret;
}

static void air_span_release(struct air_span *span)
{
	spin_lock(&air_spans);
	rb_erase(&span->node, &air_span_tree);
	spin_unlock(&air_spans);
}

/* The record of a range has moved. */
static void air_span_replace(struct air_span *old, struct air_span *new)
{
	spin_lock(&air_spans);
	rb_replace_node(&old->node, &new->node, &air_span_tree);
	spin_unlock(&air_spans);
}

/* Not by way of air_log(): it is not to be lost among others' lines. */
static void air_region_refused(unsigned long pages, unsigned long used,
			       unsigned long limit)
{
	const unsigned int kib = PAGE_SHIFT - 10;

	pr_info_ratelimited("pid=%d: pinning %lu KiB would exceed RLIMIT_MEMLOCK (%lu of %lu KiB used): raise it (ulimit -l, limits.conf, LimitMEMLOCK=) or give CAP_IPC_LOCK\n",
			    task_tgid_nr(current), pages << kib, used << kib,
			    limit << kib);
}

/*
 * Charge as io_uring does: against the user's locked memory, which is what
 * RLIMIT_MEMLOCK limits, and visibly (VmPin) against the process. Both are
 * held, as the region may outlive them; the user by way of the credentials,
 * because older kernels do not let modules drop a user itself (free_uid()).
 */
static int air_region_charge(struct air_region *region)
{
	unsigned long limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	unsigned long pages = region->nr_pages;
	struct user_struct *user = current_user();
	long old;
	int ret;

	ret = air_user_charge_pages(region->quota, pages);
	if (ret)
		return ret;

	if (!capable(CAP_IPC_LOCK)) {
		old = atomic_long_read(&user->locked_vm);
		do {
			if (old + pages > limit) {
				air_user_uncharge_pages(region->quota, pages);
				air_region_refused(pages, old, limit);
				return -ENOMEM;
			}
		} while (!atomic_long_try_cmpxchg(&user->locked_vm, &old,
						  old + pages));
		region->cred = get_current_cred();
	}
	mmgrab(current->mm);
	region->mm = current->mm;
	atomic64_add(pages, &region->mm->pinned_vm);
	atomic_long_add(pages, &air_pinned_pages);
	return 0;
}

static void air_region_uncharge(struct air_region *region)
{
	unsigned long pages = region->nr_pages;

	atomic_long_sub(pages, &air_pinned_pages);
	atomic64_sub(pages, &region->mm->pinned_vm);
	mmdrop(region->mm);
	region->mm = NULL;
	if (region->cred) {
		atomic_long_sub(pages, &region->cred->user->locked_vm);
		put_cred(region->cred);
		region->cred = NULL;
	}
	air_user_uncharge_pages(region->quota, pages);
}

/*
 * A window: what a worker's mapping is of. It is a file of its own on the
 * region's memory that can do nothing but be mapped already. Were it the
 * region's file itself, remap_file_pages(2) would map any other part of that.
 * It holds the region's file, and this module.
 */
static int air_window_release(struct inode *inode, struct file *filp)
{
	fput(filp->private_data);
	return 0;
}

/*
 * Where the mapping may be moved to. The region's file is asked, and given
 * itself: unlike ->mmap, shmem's insists on a file with shmem's operations.
 */
static unsigned long air_window_area(struct file *filp, unsigned long addr,
				     unsigned long len, unsigned long pgoff,
				     unsigned long flags)
{
	struct file *file = filp->private_data;

	if (!file->f_op->get_unmapped_area)
		return air_get_unmapped_area(file, addr, len, pgoff, flags);
	return file->f_op->get_unmapped_area(file, addr, len, pgoff, flags);
}

static const struct file_operations air_window_fops = {
	.owner = THIS_MODULE,
	.release = air_window_release,
	.get_unmapped_area = air_window_area,
	.fsync = noop_fsync,
};

static struct file *air_window_open(struct file *of)
{
	struct inode *inode = file_inode(of);
	struct file *file;

	ihold(inode);
	file = alloc_file_pseudo(inode, of->f_path.mnt, "airunner-region",
				 O_RDWR, &air_window_fops);
	if (IS_ERR(file)) {
		iput(inode);
		return file;
	}
	__module_get(THIS_MODULE);
	/*
	 * Who watches the client's file is not to see each unmap close it.
	 * (Of a file without a name, a memfd's, older kernels take the end of
	 * any dentry for that of the inode, and end the watch.)
	 */
	file->f_mode |= FMODE_NONOTIFY;
	file->private_data = get_file(of);
	return file;
}

/* The file that @vma, which may be of a window, is of. */
static struct file *air_vma_file(const struct vm_area_struct *vma)
{
	if (vma->vm_file->f_op == &air_window_fops)
		return vma->vm_file->private_data;
	return vma->vm_file;
}

static unsigned int air_file_seals(struct file *file, bool huge)
{
#ifdef CONFIG_HUGETLBFS
	if (huge)
		return READ_ONCE(HUGETLBFS_I(file_inode(file))->seals);
#endif
	return READ_ONCE(SHMEM_I(file_inode(file))->seals);
}

/*
 * air_vma_at() - the mapping that covers @va to @va + @size, if it can be one
 *	of a region
 *
 * Caller holds mmap_lock.
 */
static struct vm_area_struct *air_vma_at(u64 va, u64 size)
{
	struct vm_area_struct *vma = find_vma(current->mm, va);

	if (!vma || vma->vm_start > va || vma->vm_end - va < size)
		return ERR_PTR(-EFAULT);
	if ((vma->vm_flags & (VM_SHARED | VM_WRITE)) != (VM_SHARED | VM_WRITE))
		return ERR_PTR(-EACCES);
	if (!vma->vm_file ||
	    (!shmem_file(vma->vm_file) && !is_vm_hugetlb_page(vma)))
		return ERR_PTR(-EOPNOTSUPP);
	return vma;
}

static pgoff_t air_vma_pgoff(const struct vm_area_struct *vma, u64 va)
{
	return vma->vm_pgoff + ((va - vma->vm_start) >> PAGE_SHIFT);
}

/*
 * Can a window on @file be made? It takes the inode, and the mount that the
 * file was opened by. Of a file of overlayfs before 6.7 the former is the
 * lower file system's and the latter the overlay's, which do not go together.
 */
static bool air_window_possible(const struct file *file)
{
	const struct inode *inode = file_inode(file);

	if (!inode->i_fop->mmap) {
		pr_info_ratelimited("pid=%d: memory of a file of %s, which this module cannot map: use memfd_create(2)\n",
				    task_tgid_nr(current),
				    inode->i_sb->s_type->name);
		return false;
	}
	if (file->f_path.mnt->mnt_sb != inode->i_sb) {
		pr_info_ratelimited("pid=%d: memory of a file that %s stacks on %s, which cannot be mapped by a worker: use a file of %s itself or memfd_create(2)\n",
				    task_tgid_nr(current),
				    file->f_path.mnt->mnt_sb->s_type->name,
				    inode->i_sb->s_type->name,
				    inode->i_sb->s_type->name);
		return false;
	}
	return true;
}

/* Find what backs the range: sets file, pgoff, nr_pages and huge. */
static int air_region_resolve(struct air_region *region, u64 va, u64 *size)
{
	struct vm_area_struct *vma;
	unsigned long huge;
	unsigned int seals;
	int ret = 0;

	if (mmap_read_lock_killable(current->mm))
		return -EINTR;
	vma = air_vma_at(va, *size);
	if (IS_ERR(vma)) {
		ret = PTR_ERR(vma);
		goto out;
	}
	region->huge = is_vm_hugetlb_page(vma);
	if (region->huge) {
		/* A worker cannot map part of a huge page. */
		huge = huge_page_size(hstate_vma(vma));
		if (va & (huge - 1)) {
			ret = -EINVAL;
			goto out;
		}
		*size = ALIGN(*size, huge);
	}
	seals = air_file_seals(vma->vm_file, region->huge);
	if (seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)) {
		ret = -EACCES;
		goto out;
	}
	if (!air_window_possible(air_vma_file(vma))) {
		ret = -EOPNOTSUPP;
		goto out;
	}
	region->file = get_file(air_vma_file(vma));
	region->pgoff = air_vma_pgoff(vma, va);
	region->nr_pages = *size >> PAGE_SHIFT;
out:
	mmap_read_unlock(current->mm);
	return ret;
}

/* Pin what is still to be pinned of one batch. */
static long air_region_pin_batch(struct air_region *region, u64 va,
				 unsigned long done, unsigned long batch)
{
	struct vm_area_struct *vma;
	long got;

	va += (u64)done << PAGE_SHIFT;
	if (mmap_read_lock_killable(current->mm))
		return -EINTR;
	/* Another thread may have mapped something else there meanwhile. */
	vma = air_vma_at(va, (u64)batch << PAGE_SHIFT);
	if (IS_ERR(vma))
		got = PTR_ERR(vma);
	else if (file_inode(vma->vm_file) != file_inode(region->file) ||
		 air_vma_pgoff(vma, va) != region->pgoff + done)
		got = -EFAULT;
	else
		got = air_pin_user_pages(va, batch, FOLL_WRITE | FOLL_LONGTERM,
					 region->pages + done);
	mmap_read_unlock(current->mm);
	return got ?: -EFAULT;
}

static int air_region_pin_pages(struct air_region *region, u64 va)
{
	unsigned long done = 0;
	long got;

	while (done < region->nr_pages) {
		got = fatal_signal_pending(current) ? -EINTR :
			air_region_pin_batch(region, va, done,
					     min(region->nr_pages - done,
						 (unsigned long)AIR_PIN_BATCH));
		if (got < 0) {
			unpin_user_pages_dirty_lock(region->pages, done,
						    false);
			return fatal_signal_pending(current) ? -EINTR : got;
		}
		done += got;
		cond_resched();
	}
	return 0;
}

/*
 * air_region_pin() - make @region of the caller's memory
 * @region: zeroed
 * @quota: whose quota it counts against; referenced by the caller
 * @va: where it begins, page-aligned
 * @size: bytes, rounded up to pages
 * @exclusive: it becomes a range that no later region may overlap
 *
 * Sleeps, possibly for seconds; a fatal signal ends it.
 *
 * Return: 0, or an error as in struct airunner_build_channel; then @region is
 * as before.
 */
int air_region_pin(struct air_region *region, struct air_user *quota, u64 va,
		   u64 size, bool exclusive)
{
	int ret;

	if (!size || size > AIR_MAX_REGION || !PAGE_ALIGNED(va))
		return -EINVAL;
	size = PAGE_ALIGN(size);
	if (va + size < va || va + size > TASK_SIZE)
		return -EFAULT;

	region->quota = quota;
	ret = air_region_resolve(region, va, &size);
	if (ret)
		return ret;

	region->span.inode = file_inode(region->file);
	region->span.first = region->pgoff;
	region->span.last = region->pgoff + region->nr_pages - 1;
	region->exclusive = exclusive;
	ret = air_span_claim(&region->span, exclusive);
	if (ret)
		goto err_file;

	/*
	 * Counts as a writable mapping for as long as the region lives, which
	 * keeps F_SEAL_WRITE off the file: a worker's mapping is not made by
	 * way of the checks that mmap() does for the file it is given.
	 */
	ret = mapping_map_writable(region->file->f_mapping);
	if (ret) {
		ret = -EACCES;
		goto err_span;
	}

	ret = air_region_charge(region);
	if (ret)
		goto err_writable;

	region->pages = kvmalloc_array(region->nr_pages,
				       sizeof(*region->pages),
				       GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!region->pages) {
		ret = -ENOMEM;
		goto err_charge;
	}
	ret = air_region_pin_pages(region, va);
	if (ret)
		goto err_pages;
	return 0;

err_pages:
	kvfree(region->pages);
err_charge:
	air_region_uncharge(region);
err_writable:
	mapping_unmap_writable(region->file->f_mapping);
err_span:
	if (exclusive)
		air_span_release(&region->span);
err_file:
	fput(region->file);
	memset(region, 0, sizeof(*region));
	return ret;
}

/*
 * air_region_unpin() - let go of everything air_region_pin() took
 *
 * Does nothing when that has happened already.
 */
void air_region_unpin(struct air_region *region)
{
	if (!region->file)
		return;
	unpin_user_pages_dirty_lock(region->pages, region->nr_pages, true);
	kvfree(region->pages);
	air_region_uncharge(region);
	mapping_unmap_writable(region->file->f_mapping);
	if (region->exclusive)
		air_span_release(&region->span);
	fput(region->file);
	memset(region, 0, sizeof(*region));
}

/*
 * air_region_take() - make @to what @from is, which is not there any more then
 *
 * So that letting go of it, which may take seconds, happens under no lock.
 */
void air_region_take(struct air_region *to, struct air_region *from)
{
	*to = *from;
	if (to->exclusive)
		air_span_replace(&from->span, &to->span);
	memset(from, 0, sizeof(*from));
}

/*
 * air_region_page() - page @index of @region, if the file still has it there
 *
 * Return: NULL when it has been truncated away or punched out: what the
 * module would write there nobody would see.
 */
struct page *air_region_page(struct air_region *region, unsigned long index)
{
	struct page *page;

	if (!region->file || index >= region->nr_pages)
		return NULL;
	page = region->pages[index];
	/*
	 * A page that left the page cache never comes back to it, so this is
	 * enough; that it may leave right after is no worse than before.
	 */
	if (READ_ONCE(page_folio(page)->mapping) != region->file->f_mapping)
		return NULL;
	return page;
}

/*
 * air_region_mmap() - turn @vma, of our device, into one of @region's file
 *
 * Not more than the region, nothing that could grow over it or be turned to
 * another part of the file, nothing that a child or a core dump gets.
 */
int air_region_mmap(struct air_region *region, struct vm_area_struct *vma)
{
	unsigned long pages = vma_pages(vma);
	struct file *window;

	if (!(vma->vm_flags & VM_SHARED) || pages > region->nr_pages)
		return -EINVAL;
#ifdef CONFIG_HUGETLB_PAGE
	if (region->huge) {
		unsigned long mask =
			~huge_page_mask(hstate_file(region->file));

		if ((vma->vm_start | vma->vm_end) & mask)
			return -EINVAL;
	}
#endif
	/* mmap() has looked at the seals of the file that it was given. */
	if (air_file_seals(region->file, region->huge) &
	    (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)) {
		if (vma->vm_flags & VM_WRITE)
			return -EPERM;
		air_vm_flags_clear(vma, VM_MAYWRITE);
	}
	window = air_window_open(region->file);
	if (IS_ERR(window))
		return PTR_ERR(window);
	vma->vm_pgoff = region->pgoff;
	vma_set_file(vma, window);
	fput(window);
	air_vm_flags_set(vma, VM_DONTEXPAND | VM_DONTCOPY | VM_DONTDUMP);
	/*
	 * Of the inode, not of the region's file: that of System V memory sets
	 * operations that look for their own data in vma->vm_file. Those of
	 * shmem and hugetlbfs know the inode only.
	 */
	return file_inode(window)->i_fop->mmap(window, vma);
}
