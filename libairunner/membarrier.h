/* SPDX-License-Identifier: MIT */
/*
 * The asymmetric barrier (membarrier(2)): a process that registers lets its
 * hot path do without a fence; whoever is about to sleep calls air_membarrier()
 * instead, which acts as one on every processor that runs a thread of a
 * registered process. Client and worker use the same two calls.
 */
#ifndef AIR_MEMBARRIER_H
#define AIR_MEMBARRIER_H

#include <stdbool.h>

/* True when this process is registered. Refused by some seccomp filters. */
bool air_membarrier_register(void);

/*
 * False when the call is not to be had: a sleeper whose other side relies on it
 * can then only sleep for short whiles and look again.
 */
bool air_membarrier(void);

#endif /* AIR_MEMBARRIER_H */
