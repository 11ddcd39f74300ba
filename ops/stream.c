// SPDX-License-Identifier: MIT
#include "ops/stream.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>

/* Where the system does not say. */
#define CACHE_BYTES (32ull << 20)

/*
 * The last cache, as far as one core has it. What sysconf() says is computed
 * from numbers that are the host's in a virtual machine.
 */
static uint64_t cache_bytes(void)
{
	FILE *f = fopen("/sys/devices/system/cpu/cpu0/cache/index3/size", "re");
	unsigned long long kib = 0;

	if (f) {
		if (fscanf(f, "%lluK", &kib) != 1)
			kib = 0;
		fclose(f);
	}
	return kib ? kib << 10 : CACHE_BYTES;
}

bool air_stream_pays(uint64_t bytes)
{
	static _Atomic uint64_t cache;
	uint64_t size = atomic_load_explicit(&cache, memory_order_relaxed);

	if (!size) {
		size = cache_bytes();
		atomic_store_explicit(&cache, size, memory_order_relaxed);
	}
	return bytes > size;
}

void air_stream_store(float *to, const float *from, uint64_t n)
{
	/* whole lines: half of one costs as much as all of it */
	uint64_t head = -(uintptr_t)to % 64 / sizeof(float), i;

	if (head > n)
		head = n;
	memcpy(to, from, head * sizeof(float));
	for (i = head; i + 16 <= n; i += 16) {
		__m128 a = _mm_loadu_ps(&from[i]);
		__m128 b = _mm_loadu_ps(&from[i + 4]);
		__m128 c = _mm_loadu_ps(&from[i + 8]);
		__m128 d = _mm_loadu_ps(&from[i + 12]);

		_mm_stream_ps(&to[i], a);
		_mm_stream_ps(&to[i + 4], b);
		_mm_stream_ps(&to[i + 8], c);
		_mm_stream_ps(&to[i + 12], d);
	}
	memcpy(&to[i], &from[i], (n - i) * sizeof(float));
}

void air_stream_end(void)
{
	_mm_sfence();
}

#else

bool air_stream_pays(uint64_t bytes)
{
	return false;
}

void air_stream_store(float *to, const float *from, uint64_t n)
{
	memcpy(to, from, n * sizeof(float));
}

void air_stream_end(void)
{
}

#endif
