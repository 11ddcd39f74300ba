/* SPDX-License-Identifier: MIT */
/*
 * The asymmetric barrier (membarrier(2)): a process that registers lets its
 * hot path do without a fence; whoever is about to sleep calls air_membarrier()
 * instead, which acts as one on every processor that runs a thread of a
 * registered process. Client and worker use the same two calls.
 *
 * Nearly every: the kernel passes over a processor whose run queue has not
 * taken note of the registration, and it takes note when it switches from one
 * process to another. Where a thread ran before its process registered, and
 * nothing but the idle task since, the next thread of the same process is none
 * (seen on 6.18; the code is the same since 5.5). Such a processor runs on
 * without the barrier, and a wake-up can be lost, once in a million sleeps or
 * so. So whoever relies on the barrier looks twice: it sleeps for no longer
 * than AIR_LOOK_AGAIN_NS at first, and for good only if there is still nothing
 * then. No processor holds a store back for nearly as long. Who cannot look
 * twice asks the other side for fences (AIRUNNER_CQ_FENCE).
 */
#ifndef AIR_MEMBARRIER_H
#define AIR_MEMBARRIER_H

#include <stdbool.h>

#define AIR_LOOK_AGAIN_NS 1000000

/* True when this process is registered. Refused by some seccomp filters. */
bool air_membarrier_register(void);

/*
 * False when the call is not to be had. The second look then finds what the
 * first has missed, more often.
 */
bool air_membarrier(void);

#endif /* AIR_MEMBARRIER_H */
