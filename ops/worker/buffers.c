// SPDX-License-Identifier: MIT
/*
 * A channel's memory: handles, and where each executor finds what they name.
 */
#include <stdlib.h>
#include <string.h>

#include "ops/worker/internal.h"

bool air_table_set(struct air_table *t, uint32_t id, void *object)
{
	if (id >= t->size) {
		uint32_t size = t->size ? t->size : 16;
		void **slot;

		if (!object)
			return true;
		while (size <= id)
			size *= 2;
		slot = realloc(t->slot, size * sizeof(*slot));
		if (!slot)
			return false;
		memset(slot + t->size, 0, (size - t->size) * sizeof(*slot));
		t->slot = slot;
		t->size = size;
	}
	t->slot[id] = object;
	return true;
}

void air_table_free(struct air_table *t)
{
	free(t->slot);
	t->slot = NULL;
	t->size = 0;
}

struct air_wbuf *air_buffer_get(struct air_wchannel *ch, uint32_t handle)
{
	struct air_wbuf *buf = air_table_get(&ch->bufs, handle);

	if (air_likely(buf != NULL) || !ch->ops->buffer_find ||
	    handle == AIRUNNER_HANDLE_NONE || ch->removing)
		return buf;
	if (ch->ops->buffer_find(ch->owner, ch, handle))
		return NULL;
	return air_table_get(&ch->bufs, handle);
}

bool air_buffer_find(void *arg, uint32_t handle, struct air_span *span)
{
	struct air_wchannel *ch = arg;
	const struct air_wbuf *buf = air_buffer_get(ch, handle);

	if (!buf || !buf->b.addr[ch->bind_executor])
		return false;
	span->addr = buf->b.addr[ch->bind_executor];
	span->size = buf->b.size;
	return true;
}

/* Make a buffer reachable for an executor that the channel uses. */
static void map(struct air_wchannel *ch, uint32_t handle, struct air_wbuf *buf,
		uint32_t id)
{
	struct air_wexec *x = &ch->w->exec[id];
	air_status st;

	if (!x->ops->buffer_map) {
		buf->b.addr[id] = (uintptr_t)buf->b.host;
	} else if (!buf->owner && !(buf->mapped & (1U << id))) {
		st = x->ops->buffer_map(x->ex, &buf->b);
		if (st) {
			buf->b.addr[id] = 0;
			air_log(AIR_LOG_WARNING,
				"%s: buffer %u of %llu bytes is out of reach of %s: %s",
				air_wchannel_label(ch), handle,
				(unsigned long long)buf->b.size, x->ops->name,
				air_status_string(st));
			return;
		}
		buf->mapped |= 1U << id;
	}
	if (buf->b.addr[id] && x->ops->buffer_set &&
	    x->ops->buffer_set(x->ex, ch->ex_priv[id], handle, &buf->b))
		buf->b.addr[id] = 0;
}

void air_buffers_map(struct air_wchannel *ch, uint32_t executor)
{
	for (uint32_t handle = 0; handle < ch->bufs.size; handle++)
		if (ch->bufs.slot[handle])
			map(ch, handle, ch->bufs.slot[handle], executor);
}

static void map_all(struct air_wchannel *ch, uint32_t handle,
		    struct air_wbuf *buf)
{
	for (uint32_t id = 1; ch->opened >> id; id++)
		if (ch->opened & (1U << id))
			map(ch, handle, buf, id);
}

air_status air_buffer_add(struct air_wchannel *ch, uint32_t handle,
			  const struct air_wbuffer_config *config)
{
	struct air_wbuf *buf;

	if (handle >= AIRUNNER_HANDLE_NONE || air_table_get(&ch->bufs, handle))
		return AIR_BAD_HANDLE;
	if (config->memory == AIR_DEVICE ? !config->device || config->host :
	    config->memory == AIR_HOST	 ? !config->host :
					   true)
		return AIR_BAD_ARGUMENT;
	buf = calloc(1, sizeof(*buf));
	if (!buf || !air_table_set(&ch->bufs, handle, buf)) {
		free(buf);
		return AIR_NO_MEMORY;
	}
	buf->b.size = config->size;
	buf->b.memory = config->memory;
	buf->b.host = config->host;
	if (config->memory == AIR_DEVICE) {
		buf->b.addr[AIRUNNER_EXEC_CUDA_LAUNCH] = config->device;
		buf->b.addr[AIRUNNER_EXEC_CUDA_RESIDENT] = config->device;
	}
	map_all(ch, handle, buf);
	return AIR_OK;
}

air_status air_buffer_alloc_device(struct air_wchannel *ch, uint32_t handle,
				   uint64_t bytes)
{
	struct air_worker *w = ch->w;
	struct air_wexec *x = NULL;
	struct air_wbuf *buf;
	struct air_error e;
	air_status st;

	if (!handle || handle >= AIRUNNER_HANDLE_NONE ||
	    air_table_get(&ch->bufs, handle))
		return AIR_BAD_HANDLE;
	for (const uint32_t *id = w->prefer; *id && !x; id++)
		if (w->exec[*id].ops->buffer_alloc)
			x = &w->exec[*id];
	if (!x)
		return AIR_UNSUPPORTED;
	st = air_wchannel_use(ch, x->ops->id, &e);
	if (st)
		return st;
	buf = calloc(1, sizeof(*buf));
	if (!buf)
		return AIR_NO_MEMORY;
	buf->b.size = bytes;
	buf->b.memory = AIR_DEVICE;
	buf->owner = x->ops->id;
	st = x->ops->buffer_alloc(x->ex, &buf->b);
	if (st)
		goto fail;
	if (!air_table_set(&ch->bufs, handle, buf)) {
		x->ops->buffer_free(x->ex, &buf->b);
		st = AIR_NO_MEMORY;
		goto fail;
	}
	map_all(ch, handle, buf);
	return AIR_OK;
fail:
	free(buf);
	return st;
}

/* The executors are asked only while they are there to be asked. */
void air_wbuf_free(struct air_wchannel *ch, uint32_t handle,
		   struct air_wbuf *buf)
{
	struct air_wexec *x;

	for (uint32_t id = 1; buf->mapped >> id; id++) {
		x = &ch->w->exec[id];
		if ((buf->mapped & (1U << id)) && x->ops)
			x->ops->buffer_unmap(x->ex, &buf->b);
	}
	x = &ch->w->exec[buf->owner];
	if (buf->owner && x->ops)
		x->ops->buffer_free(x->ex, &buf->b);
	if (handle && !buf->owner && ch->ops->buffer_gone)
		ch->ops->buffer_gone(ch->owner, handle, buf->b.host,
				     buf->b.size);
	free(buf);
}
