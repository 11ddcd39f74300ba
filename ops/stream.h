/* SPDX-License-Identifier: MIT */
/*
 * Results too large for any cache, written past the caches: the memory they
 * replace is not read first, which of three operands saves a quarter of the
 * traffic.
 */
#ifndef AIR_STREAM_H
#define AIR_STREAM_H

#include <stdbool.h>
#include <stdint.h>

/* Whether that pays, for an operator that touches @bytes once. */
bool air_stream_pays(uint64_t bytes);

/* to[0, n) = from[0, n), past the caches. @to is aligned to 4 bytes. */
void air_stream_store(float *to, const float *from, uint64_t n);

/*
 * What this thread stored so happens-before what it does next, for whoever
 * synchronises with that.
 */
void air_stream_end(void);

#endif /* AIR_STREAM_H */
