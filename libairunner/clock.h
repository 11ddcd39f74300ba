/* SPDX-License-Identifier: MIT */
#ifndef AIR_CLOCK_H
#define AIR_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Nanoseconds of CLOCK_MONOTONIC. */
static inline uint64_t air_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* A deadline: the time until which to wait; UINT64_MAX is for ever. */
static inline uint64_t air_deadline(int64_t timeout_ns)
{
	uint64_t now;

	if (timeout_ns < 0)
		return UINT64_MAX;
	now = air_now();
	if ((uint64_t)timeout_ns >= UINT64_MAX - now)
		return UINT64_MAX;
	return now + (uint64_t)timeout_ns;
}

/* What is left until @deadline; -1 for ever, 0 when it is over. */
static inline int64_t air_remaining(uint64_t deadline)
{
	uint64_t now;

	if (deadline == UINT64_MAX)
		return -1;
	now = air_now();
	return now >= deadline ? 0 : (int64_t)(deadline - now);
}

/* Tell the core that this is a spin loop. */
static inline void air_relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

#endif /* AIR_CLOCK_H */
