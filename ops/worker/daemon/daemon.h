/* SPDX-License-Identifier: MIT */
/*
 * airunnerd: what its files share.
 *
 *	airunnerd.c	arguments, signals, life
 *	serve_kernel.c	channels of /dev/airunner, as the module arbitrates them
 *	serve_unix.c	channels of clients that connect to a socket
 *	unix_client.c	one such client: its requests
 *	sigbus.c	memory that its owner takes away from under the worker
 */
#ifndef AIR_DAEMON_H
#define AIR_DAEMON_H

#include "ops/worker/internal.h"

/* ------------------------------------------------------------- sigbus.c */

struct air_guard;

/* Once, before any guard. False: no handler, errno says why. */
bool air_guard_init(void);

/*
 * Watch [@start, @start + @size), which is mapped memory of somebody else's
 * file, for faults. A fault maps zeroes there, is remembered, and kills the
 * channel once that is told (air_guard_channel()). NULL: no memory.
 */
struct air_guard *air_guard_add(void *start, uint64_t size);
void air_guard_channel(struct air_guard *guard, struct air_wchannel *ch);
/* NULL does nothing. Before the range is unmapped. */
void air_guard_remove(struct air_guard *guard);

/* ------------------------------------------------------- serve_kernel.c */

/**
 * struct air_kernel_config - a worker of /dev/airunner
 * @device: path
 * @name: of the worker, for the module
 * @own: AIRUNNER_WORKER_OWN
 */
struct air_kernel_config {
	const char *device;
	const char *name;
	bool own;
};

/*
 * Open the device; the worker attaches when it begins. NULL with a sentence.
 * The source belongs to the caller and outlives the worker.
 */
struct air_source *air_kernel_create(const struct air_kernel_config *config,
				     struct air_error *e);
void air_kernel_destroy(struct air_source *s);

/* --------------------------------------------------------- serve_unix.c */

/**
 * struct air_unix_config - a socket to listen on
 * @path: a path, or "@NAME" for an abstract one
 * @mode: of the socket file
 * @group: of the socket file; -1 leaves it
 */
struct air_unix_config {
	const char *path;
	unsigned int mode;
	int group;
};

struct air_source *air_unix_create(const struct air_unix_config *config,
				   struct air_error *e);
void air_unix_destroy(struct air_source *s);

#endif /* AIR_DAEMON_H */
