// SPDX-License-Identifier: MIT
/*
 * Buffers of channels as the GPU sees them. Both CUDA executors use the same
 * addresses. Every buffer that has one is remembered, so that it can be given
 * another after the context was lost.
 */
#include "ops/worker/cuda/cuda.h"

#include <stdlib.h>

struct air_map {
	struct air_map *next;
	struct air_wbuffer *buf;
	enum {
		HOST_MAPPED,	/* registered here */
		HOST_PINNED,	/* of CUDA's own */
		DEVICE_OURS,	/* from devmem.c */
		DEVICE_THEIRS,	/* a pointer of the client's */
	} kind;
	uint32_t users;		/* executors that mapped it */
};

static struct air_map *find(struct air_cuda *c, const struct air_wbuffer *buf)
{
	struct air_map *m = c->maps;

	while (m && m->buf != buf)
		m = m->next;
	return m;
}

static void set_addr(struct air_wbuffer *buf, uint64_t addr)
{
	buf->addr[AIRUNNER_EXEC_CUDA_LAUNCH] = addr;
	buf->addr[AIRUNNER_EXEC_CUDA_RESIDENT] = addr;
}

static void drop(struct air_cuda *c, struct air_map *m)
{
	struct air_map **where = &c->maps;

	while (*where != m)
		where = &(*where)->next;
	*where = m->next;
	free(m);
}

air_status air_cuda_buffer_map(struct air_cuda *c, struct air_wbuffer *buf,
			       enum airunner_executor id)
{
	struct air_map *m = find(c, buf);
	struct air_error e;
	uint64_t addr = 0;
	air_status st;

	/* nothing will run on it; other executors may have the buffer */
	if (c->dead)
		return AIR_OK;
	if (m) {
		m->users++;
		return AIR_OK;
	}
	m = calloc(1, sizeof(*m));
	if (!m)
		return AIR_NO_MEMORY;
	m->buf = buf;
	m->users = 1;
	if (buf->memory == AIR_DEVICE) {
		m->kind = DEVICE_THEIRS;
		addr = buf->addr[id];
	} else {
		m->kind = HOST_MAPPED;
		st = air_hostmem_map(c, buf->host, buf->size, &addr, &e);
		if (st && air_hostmem_pinned(c, buf->host, buf->size, &addr)) {
			m->kind = HOST_PINNED;
		} else if (st) {
			c->services->log("%s", e.text);
			free(m);
			return st;
		}
	}
	set_addr(buf, addr);
	m->next = c->maps;
	c->maps = m;
	return AIR_OK;
}

void air_cuda_buffer_unmap(struct air_cuda *c, struct air_wbuffer *buf,
			   enum airunner_executor id)
{
	struct air_map *m = find(c, buf);

	if (!m || m->kind == DEVICE_OURS || --m->users)
		return;
	if (m->kind == HOST_MAPPED)
		air_hostmem_unmap(c, buf->host, buf->size);
	set_addr(buf, 0);
	drop(c, m);
}

air_status air_cuda_buffer_alloc(struct air_cuda *c, struct air_wbuffer *buf)
{
	struct air_map *m = calloc(1, sizeof(*m));
	struct air_error e;
	uint64_t addr;
	air_status st;

	if (!m)
		return AIR_NO_MEMORY;
	if (c->dead) {
		free(m);
		return AIR_DEVICE_LOST;
	}
	st = air_devmem_alloc(c, buf->size, &addr, &e);
	if (st) {
		c->services->log("%s", e.text);
		free(m);
		return st;
	}
	m->buf = buf;
	m->kind = DEVICE_OURS;
	set_addr(buf, addr);
	m->next = c->maps;
	c->maps = m;
	return AIR_OK;
}

void air_cuda_buffer_free(struct air_cuda *c, struct air_wbuffer *buf)
{
	struct air_map *m = find(c, buf);

	if (!m)
		return;
	air_devmem_free(c, buf->addr[AIRUNNER_EXEC_CUDA_LAUNCH]);
	set_addr(buf, 0);
	drop(c, m);
}

void air_cuda_buffers_restore(struct air_cuda *c)
{
	for (struct air_map *m = c->maps; m; m = m->next) {
		uint64_t addr = 0;

		switch (m->kind) {
		case HOST_MAPPED:
			/* registered again: this only asks for the address */
			if (!air_hostmem_map(c, m->buf->host, m->buf->size,
					     &addr, NULL))
				air_hostmem_unmap(c, m->buf->host,
						  m->buf->size);
			break;
		case DEVICE_OURS:
			/* without it operators do not find the buffer */
			air_devmem_alloc(c, m->buf->size, &addr, NULL);
			break;
		case HOST_PINNED:
		case DEVICE_THEIRS:
			/* it went with the old context */
			break;
		}
		set_addr(m->buf, addr);
	}
}
