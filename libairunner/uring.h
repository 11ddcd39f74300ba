/* SPDX-License-Identifier: MIT */
/*
 * Waiting at the module through io_uring (AIRUNNER_URING_WAIT). liburing is
 * loaded when a channel first sleeps; where it is missing, where a seccomp
 * filter refuses io_uring, or where another thread waits through this channel's
 * ring already, callers fall back to the WAIT ioctl.
 */
#ifndef AIR_URING_H
#define AIR_URING_H

#include <stdbool.h>
#include <stdint.h>

struct air_uring;

/* NULL: not to be had. air_uring_wait() and _destroy() take that. */
struct air_uring *air_uring_create(void);
void air_uring_destroy(struct air_uring *u);

/*
 * Wait until the completion sequence of channel @id of file @fd is no longer
 * @seq, or until @deadline. False: it can't be done this way. *@error is 0 or
 * an errno as of WAIT.
 */
bool air_uring_wait(struct air_uring *u, int fd, uint32_t id, uint64_t seq,
		    uint64_t deadline, int *error);

#endif /* AIR_URING_H */
