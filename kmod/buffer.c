// SPDX-License-Identifier: GPL-2.0-only
/*
 * airunner: buffers: memory beside the region that a channel may address.
 *
 * Like a channel, a buffer has two holders: the client from REGISTER to
 * UNREGISTER, and the worker from BUFFER_INFO to its UNREGISTER, or until it
 * lets go of the channel. The pages go with the second.
 *
 * All of it is protected by the channel's mem mutex, but for being queued to
 * be told of, which the worker's queue lock protects.
 */
#include <linux/cred.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "internal.h"
#include "trace.h"

/*
 * air_buffer_dequeue() - @buffer is not to be told of any more; @queue, which
 *	its channel is on, is locked
 */
void air_buffer_dequeue(struct air_queue *queue, struct air_buffer *buffer)
{
	struct air_channel *ch = buffer->ch;

	if (list_empty(&buffer->tell_node))
		return;
	list_del_init(&buffer->tell_node);
	ch->nr_gone--;
	/* Left behind by a worker that is gone, it is on no queue. */
	if (list_empty(&ch->gone_node))
		return;
	queue->nr_told--;
	if (!ch->nr_gone)
		list_del_init(&ch->gone_node);
	air_queue_changed(queue);
}

static void air_buffer_untell(struct air_buffer *buffer)
{
	struct air_queue *queue = air_queue_lock(buffer->ch);

	air_buffer_dequeue(queue, buffer);
	spin_unlock(&queue->lock);
}

static void air_buffer_tell(struct air_buffer *buffer)
{
	struct air_channel *ch = buffer->ch;
	struct air_queue *queue = air_queue_lock(ch);

	/* None is left of an earlier worker: it was let go of before this. */
	if (ch->announced && list_empty(&buffer->tell_node)) {
		list_add_tail(&buffer->tell_node, &ch->gone_buffers);
		if (!ch->nr_gone++)
			list_add_tail(&ch->gone_node, &queue->buffers);
		queue->nr_told++;
		air_queue_changed(queue);
	}
	spin_unlock(&queue->lock);
}

/*
 * Nobody holds @buffer any more: nobody finds it from here on, and it is put
 * on @list, for air_buffers_free() to let go of what it has.
 */
static void air_buffer_take(struct air_buffer *buffer, struct list_head *list)
{
	struct air_channel *ch = buffer->ch;

	lockdep_assert_held(&ch->mem);
	trace_air_buffer_release(ch->id, buffer->handle,
				 buffer->region.nr_pages);
	air_buffer_untell(buffer);
	xa_erase(&ch->buffers, buffer->handle);
	WRITE_ONCE(ch->nr_buffers, ch->nr_buffers - 1);
	list_add_tail(&buffer->tell_node, list);
}

/*
 * air_buffers_free() - let go of the buffers on @list; the caller holds no
 *	lock, as that may take seconds
 */
void air_buffers_free(struct list_head *list)
{
	struct air_buffer *buffer, *next;

	list_for_each_entry_safe(buffer, next, list, tell_node) {
		air_region_unpin(&buffer->region);
		air_user_put(buffer->user);
		kfree(buffer);
		cond_resched();
	}
}

/* The buffer @handle if the client has it and it is complete. */
static struct air_buffer *air_buffer_find(struct air_channel *ch, u32 handle)
{
	struct air_buffer *buffer = xa_load(&ch->buffers, handle);

	lockdep_assert_held(&ch->mem);
	return buffer && buffer->region.file ? buffer : NULL;
}

static struct air_buffer *air_buffer_alloc(struct air_channel *ch, u32 handle)
{
	struct air_buffer *buffer = kzalloc(sizeof(*buffer),
					    GFP_KERNEL_ACCOUNT);

	if (!buffer)
		return NULL;
	/* Of who pins it, who may have been passed the file. */
	buffer->user = air_user_get(current_uid());
	if (!buffer->user) {
		kfree(buffer);
		return NULL;
	}
	buffer->ch = ch;
	buffer->handle = handle;
	INIT_LIST_HEAD(&buffer->tell_node);
	return buffer;
}

/*
 * Take the handle, pin under no lock, and only then let anybody see it. A
 * channel that ends meanwhile has left the incomplete buffer to us.
 */
static int air_buffer_add(struct air_channel *ch,
			  const struct airunner_buffer *arg)
{
	struct air_region region = {};
	struct air_buffer *buffer;
	int ret;

	buffer = air_buffer_alloc(ch, arg->handle);
	if (!buffer)
		return -ENOMEM;
	mutex_lock(&ch->mem);
	ret = ch->region.file ? xa_insert(&ch->buffers, arg->handle, buffer,
					  GFP_KERNEL_ACCOUNT) : -ESHUTDOWN;
	if (!ret)
		WRITE_ONCE(ch->nr_buffers, ch->nr_buffers + 1);
	mutex_unlock(&ch->mem);
	if (ret) {
		/* xa_insert() says -EBUSY where we say -EEXIST. */
		ret = ret == -EBUSY ? -EEXIST : ret;
		goto err_free;
	}

	ret = air_region_pin(&region, buffer->user, arg->user_va, arg->length,
			     false);
	mutex_lock(&ch->mem);
	if (!ret && !ch->region.file)
		ret = -ESHUTDOWN;
	if (!ret) {
		air_region_take(&buffer->region, &region);
		trace_air_buffer_register(ch->id, arg->handle,
					  buffer->region.nr_pages);
	} else {
		xa_erase(&ch->buffers, arg->handle);
		WRITE_ONCE(ch->nr_buffers, ch->nr_buffers - 1);
	}
	mutex_unlock(&ch->mem);
	if (!ret)
		return 0;
	air_region_unpin(&region);
err_free:
	air_user_put(buffer->user);
	kfree(buffer);
	return ret;
}

static bool air_handle_valid(u32 handle)
{
	return handle != AIRUNNER_HANDLE_REGION && handle <= AIR_MAX_BUFFERS;
}

/* air_buffer_register() - REGISTER_BUFFER */
int air_buffer_register(struct air_file *file, struct airunner_buffer *arg,
			struct airunner_buffer __user *uarg, u32 usize)
{
	struct air_channel *ch;
	int ret;

	if (arg->flags || !air_handle_valid(arg->handle))
		return -EINVAL;
	ch = air_channel_get_owned(file, arg->channel_id);
	if (!ch)
		return -ENXIO;
	if (test_bit(AIR_CH_ENDING, &ch->flags) ||
	    test_bit(AIR_CH_OWNER_GONE, &ch->flags)) {
		ret = -ESHUTDOWN;
		goto out;
	}
	/* Known beforehand; nothing to undo if it cannot be told. */
	arg->mmap_offset = air_mmap_offset(ch, arg->handle);
	ret = -EFAULT;
	if (copy_to_user(uarg, arg, usize))
		goto out;
	ret = air_buffer_add(ch, arg);
out:
	air_channel_put(ch);
	return ret;
}

/* The client lets go. */
static int air_buffer_client_gone(struct air_channel *ch, u32 handle)
{
	struct air_buffer *buffer;
	LIST_HEAD(free);
	int ret = 0;

	mutex_lock(&ch->mem);
	buffer = air_buffer_find(ch, handle);
	if (!buffer || buffer->gone) {
		ret = -ENXIO;
	} else {
		buffer->gone = true;
		if (buffer->held)
			air_buffer_tell(buffer);
		else
			air_buffer_take(buffer, &free);
	}
	mutex_unlock(&ch->mem);
	air_buffers_free(&free);
	return ret;
}

/* The worker lets go, of one that it asked about. */
static int air_buffer_worker_gone(struct air_worker *worker,
				  struct air_channel *ch, u32 handle)
{
	struct air_buffer *buffer;
	LIST_HEAD(free);
	int ret = 0;

	mutex_lock(&ch->mem);
	buffer = air_buffer_find(ch, handle);
	if (!air_worker_serves(worker, ch) || !buffer || !buffer->held) {
		ret = -ENXIO;
	} else {
		buffer->held = false;
		if (buffer->gone)
			air_buffer_take(buffer, &free);
	}
	mutex_unlock(&ch->mem);
	air_buffers_free(&free);
	return ret;
}

/* air_buffer_unregister() - UNREGISTER_BUFFER, from either side */
int air_buffer_unregister(struct air_file *file,
			  const struct airunner_buffer *arg)
{
	struct air_worker *worker = air_file_worker(file);
	struct air_channel *ch;
	int ret;

	if (arg->flags || !air_handle_valid(arg->handle))
		return -EINVAL;
	ch = worker ? air_channel_get(arg->channel_id) :
		      air_channel_get_owned(file, arg->channel_id);
	if (!ch)
		return -ENXIO;
	ret = worker ? air_buffer_worker_gone(worker, ch, arg->handle) :
		       air_buffer_client_gone(ch, arg->handle);
	air_channel_put(ch);
	return ret;
}

/* air_buffer_info() - BUFFER_INFO: from here on the worker holds it */
int air_buffer_info(struct air_worker *worker, struct airunner_buffer *arg,
		    struct airunner_buffer __user *uarg, u32 usize)
{
	struct air_buffer *buffer;
	struct air_channel *ch;
	int ret = 0;

	if (arg->flags || !air_handle_valid(arg->handle))
		return -EINVAL;
	ch = air_channel_get(arg->channel_id);
	if (!ch)
		return -ENXIO;
	mutex_lock(&ch->mem);
	buffer = air_buffer_find(ch, arg->handle);
	if (!air_worker_serves(worker, ch) || !buffer || buffer->gone) {
		ret = -ENXIO;
	} else {
		buffer->held = true;
		arg->length = (u64)buffer->region.nr_pages << PAGE_SHIFT;
		arg->mmap_offset = air_mmap_offset(ch, arg->handle);
	}
	mutex_unlock(&ch->mem);
	air_channel_put(ch);
	if (!ret && copy_to_user(uarg, arg, usize))
		ret = -EFAULT;
	return ret;
}

/* air_buffer_region() - what a worker maps at @handle; caller holds mem */
struct air_region *air_buffer_region(struct air_channel *ch, u32 handle)
{
	struct air_buffer *buffer;

	if (handle == AIRUNNER_HANDLE_REGION)
		return ch->region.file ? &ch->region : NULL;
	buffer = air_buffer_find(ch, handle);
	return buffer && buffer->held ? &buffer->region : NULL;
}

/* air_buffer_retell() - the worker could not be told that @handle is gone */
void air_buffer_retell(struct air_channel *ch, u32 handle)
{
	struct air_buffer *buffer;

	mutex_lock(&ch->mem);
	buffer = air_buffer_find(ch, handle);
	if (buffer && buffer->gone && buffer->held)
		air_buffer_tell(buffer);
	mutex_unlock(&ch->mem);
}

/* air_buffers_worker_gone() - the channel's worker holds none any more */
void air_buffers_worker_gone(struct air_channel *ch)
{
	struct air_buffer *buffer;
	unsigned long handle;
	LIST_HEAD(free);

	mutex_lock(&ch->mem);
	xa_for_each(&ch->buffers, handle, buffer) {
		buffer->held = false;
		if (buffer->gone)
			air_buffer_take(buffer, &free);
	}
	mutex_unlock(&ch->mem);
	air_buffers_free(&free);
}

/*
 * air_buffers_take() - the channel is finished: put its buffers on @list, for
 *	air_buffers_free(). Caller holds mem.
 */
void air_buffers_take(struct air_channel *ch, struct list_head *list)
{
	struct air_buffer *buffer;
	unsigned long handle;

	xa_for_each(&ch->buffers, handle, buffer) {
		/* One that is being pinned is undone by who pins it. */
		if (buffer->region.file)
			air_buffer_take(buffer, list);
	}
}
