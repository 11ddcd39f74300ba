// SPDX-License-Identifier: MIT
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libairunner/error.h"
#include "libairunner/mapping.h"

size_t air_page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

size_t air_page_round(size_t bytes)
{
	size_t mask = air_page_size() - 1;

	return bytes > SIZE_MAX - mask ? 0 : (bytes + mask) & ~mask;
}

static air_status refused(const char *what, size_t size)
{
	return air_error_set(errno == ENOMEM || errno == EMFILE ||
					     errno == ENFILE || errno == EFBIG ?
				     AIR_NO_MEMORY :
				     AIR_SYSTEM,
			     "%s of %zu bytes of shared memory: %s", what, size,
			     strerror(errno));
}

air_status air_mapping_create(struct air_mapping *m, enum air_mapping_kind kind,
			      size_t bytes, const char *name)
{
	int flags = MAP_SHARED;
	air_status status;

	m->fd = -1;
	m->addr = NULL;
	m->size = air_page_round(bytes);
	if (!m->size || m->size > INT64_MAX)
		return air_error_set(AIR_NO_MEMORY,
				     "%zu bytes are more than there can be",
				     bytes);
	if (kind == AIR_MAPPING_ANONYMOUS) {
		flags |= MAP_ANONYMOUS;
	} else {
		m->fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
		if (m->fd < 0)
			return refused("memfd", m->size);
		if (ftruncate(m->fd, (off_t)m->size)) {
			status = refused("memfd", m->size);
			goto fail;
		}
		if (fcntl(m->fd, F_ADD_SEALS,
			  F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)) {
			status = refused("seals on a memfd", m->size);
			goto fail;
		}
	}
	m->addr = mmap(NULL, m->size, PROT_READ | PROT_WRITE, flags, m->fd, 0);
	if (m->addr == MAP_FAILED) {
		status = refused("mmap", m->size);
		m->addr = NULL;
		goto fail;
	}
	return AIR_OK;
fail:
	air_mapping_close_fd(m);
	return status;
}

void air_mapping_close_fd(struct air_mapping *m)
{
	if (m->fd >= 0)
		close(m->fd);
	m->fd = -1;
}

void air_mapping_destroy(struct air_mapping *m)
{
	if (m->addr)
		munmap(m->addr, m->size);
	m->addr = NULL;
	air_mapping_close_fd(m);
}
