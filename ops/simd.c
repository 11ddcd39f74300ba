// SPDX-License-Identifier: MIT
#include "ops/simd.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[AIR_ISA_COUNT] = {
	[AIR_ISA_BASE] = "base",
#if defined(__x86_64__) && defined(__GNUC__)
	[AIR_ISA_AVX2] = "avx2",
	[AIR_ISA_AVX512] = "avx512",
#endif
};

/* One more than the kind, so that 0 is "not looked yet". */
static atomic_int known;

static enum air_isa detect(void)
{
#if defined(__x86_64__) && defined(__GNUC__)
	__builtin_cpu_init();
	if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
		return AIR_ISA_BASE;
	if (__builtin_cpu_supports("avx512f") &&
	    __builtin_cpu_supports("avx512bw") &&
	    __builtin_cpu_supports("avx512dq") &&
	    __builtin_cpu_supports("avx512vl"))
		return AIR_ISA_AVX512;
	return AIR_ISA_AVX2;
#else
	return AIR_ISA_BASE;
#endif
}

enum air_isa air_isa(void)
{
	int isa = atomic_load_explicit(&known, memory_order_relaxed) - 1;
	const char *want;

	if (isa >= 0)
		return (enum air_isa)isa;
	isa = (int)detect();
	want = getenv("AIRUNNER_ISA");
	for (int i = 0; want && i < isa; i++)
		if (!strcmp(want, names[i]))
			isa = i;
	atomic_store_explicit(&known, isa + 1, memory_order_relaxed);
	return (enum air_isa)isa;
}

void air_isa_limit(enum air_isa most)
{
	enum air_isa best = detect();

	atomic_store_explicit(&known, (most < best ? most : best) + 1,
			      memory_order_relaxed);
}

const char *air_isa_name(enum air_isa isa)
{
	return names[isa];
}
