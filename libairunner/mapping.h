/* SPDX-License-Identifier: MIT */
/*
 * Memory that two sides share: regions and host buffers.
 */
#ifndef AIR_MAPPING_H
#define AIR_MAPPING_H

#include <stddef.h>

#include <airunner.h>

struct air_mapping {
	void *addr;
	size_t size;
	int fd; /* -1 when the memory has no file of ours */
};

enum air_mapping_kind {
	/* For a worker in this process. */
	AIR_MAPPING_ANONYMOUS,
	/*
	 * Likewise, and of huge pages where it is large. Then it is no memory
	 * of children: to be copied when either writes would cost the huge
	 * pages, and part a GPU from the page that it was given.
	 */
	AIR_MAPPING_BUFFER,
	/*
	 * A memfd under seals that keep its size, so that neither side can
	 * take the memory away from under the other. @fd stays open.
	 */
	AIR_MAPPING_SEALED,
};

size_t air_page_size(void);

/* @bytes rounded up to pages; 0 when that overflows. */
size_t air_page_round(size_t bytes);

/* @name is shown in /proc/PID/maps where the kernel can. */
air_status air_mapping_create(struct air_mapping *m, enum air_mapping_kind kind,
			      size_t bytes, const char *name);
void air_mapping_destroy(struct air_mapping *m);
/* Close the file; the memory stays. */
void air_mapping_close_fd(struct air_mapping *m);

#endif /* AIR_MAPPING_H */
