/* SPDX-License-Identifier: MIT */
/*
 * A child of fork() shares its parent's regions but not its place in the
 * protocol. Objects remember the generation they were made in; a child lives
 * in a later one.
 */
#ifndef AIR_FORK_H
#define AIR_FORK_H

#include <stdbool.h>
#include <stdint.h>

extern uint32_t air_fork_generation;

/* Once a process, before the first object is made. */
bool air_fork_watch(void);

#endif /* AIR_FORK_H */
