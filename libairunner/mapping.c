// SPDX-License-Identifier: MIT
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libairunner/error.h"
#include "libairunner/mapping.h"

/* Of x86-64, and of AArch64 with small pages of 4 KiB. */
#define HUGE_PAGE (UINT64_C(2) << 20)

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

/*
 * Memory of this process only. A large buffer is private, as that is what huge
 * pages are given to without being asked for as root: page tables of small ones
 * cost operators that stream through their operands a quarter of their speed.
 */
static void *map_anonymous(size_t size, enum air_mapping_kind kind)
{
	int prot = PROT_READ | PROT_WRITE;
	char *addr, *first;
	size_t before;

	if (size < HUGE_PAGE || kind != AIR_MAPPING_BUFFER)
		return mmap(NULL, size, prot, MAP_SHARED | MAP_ANONYMOUS, -1,
			    0);
	/* from a multiple of a huge page on: map more, cut off both ends */
	if (size > SIZE_MAX - HUGE_PAGE) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	addr = mmap(NULL, size + HUGE_PAGE, prot, MAP_PRIVATE | MAP_ANONYMOUS,
		    -1, 0);
	if (addr == MAP_FAILED)
		return MAP_FAILED;
	before = -(uintptr_t)addr % HUGE_PAGE;
	first = addr + before;
	if (before)
		munmap(addr, before);
	if (before < HUGE_PAGE)
		munmap(first + size, HUGE_PAGE - before);
	madvise(first, size, MADV_DONTFORK);
	/* where there are none, small pages do */
	madvise(first, size, MADV_HUGEPAGE);
	return first;
}

air_status air_mapping_create(struct air_mapping *m, enum air_mapping_kind kind,
			      size_t bytes, const char *name)
{
	air_status status;

	m->fd = -1;
	m->addr = NULL;
	m->size = air_page_round(bytes);
	if (!m->size || m->size > INT64_MAX)
		return air_error_set(AIR_NO_MEMORY,
				     "%zu bytes are more than there can be",
				     bytes);
	if (kind != AIR_MAPPING_SEALED) {
		m->addr = map_anonymous(m->size, kind);
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
		m->addr = mmap(NULL, m->size, PROT_READ | PROT_WRITE,
			       MAP_SHARED, m->fd, 0);
	}
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
