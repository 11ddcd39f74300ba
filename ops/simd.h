/* SPDX-License-Identifier: MIT */
/*
 * One C function, compiled for several kinds of CPU.
 *
 * A kernel is written as an AIR_INLINE function in plain C whose loops the
 * compiler can vectorise; AIR_VERSIONS() makes a copy of it for each kind and
 * AIR_BEST() is the one for the CPU the program runs on. On other
 * architectures than x86-64 there is one copy, for what the compiler was told
 * to build for.
 */
#ifndef AIR_SIMD_H
#define AIR_SIMD_H

#include <stdint.h>

enum air_isa {
	AIR_ISA_BASE,
#if defined(__x86_64__) && defined(__GNUC__)
	AIR_ISA_AVX2,
	AIR_ISA_AVX512,
#endif
	AIR_ISA_COUNT
};

/*
 * The best kind this CPU is of. The environment variable AIRUNNER_ISA ("base",
 * "avx2", "avx512") lowers it, and so does air_isa_limit(), for tests; plans
 * made before keep what they have.
 */
enum air_isa air_isa(void);
void air_isa_limit(enum air_isa most);
const char *air_isa_name(enum air_isa isa);

#define AIR_INLINE static inline __attribute__((always_inline))

/* The loop's iterations do not depend on each other, in place or not. */
#if defined(__clang__)
#define AIR_IVDEP _Pragma("clang loop vectorize(assume_safety)")
#else
#define AIR_IVDEP _Pragma("GCC ivdep")
#endif

#if defined(__x86_64__) && defined(__GNUC__)
#define AIR_AVX2 __attribute__((target("avx2,fma,f16c,bmi,bmi2")))
#define AIR_AVX512_SET \
	"avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi,bmi2"
#if defined(__clang__)
#define AIR_AVX512 __attribute__((target(AIR_AVX512_SET)))
#else
#define AIR_AVX512 \
	__attribute__((target(AIR_AVX512_SET ",prefer-vector-width=512")))
#endif
#define AIR_VERSIONS(name, params, args)                              \
	static void name##_base params                                \
	{                                                             \
		name args;                                            \
	}                                                             \
	AIR_AVX2 static void name##_avx2 params                       \
	{                                                             \
		name args;                                            \
	}                                                             \
	AIR_AVX512 static void name##_avx512 params                   \
	{                                                             \
		name args;                                            \
	}                                                             \
	static void(*const name##_versions[AIR_ISA_COUNT]) params = { \
		name##_base,                                          \
		name##_avx2,                                          \
		name##_avx512,                                        \
	};
#else
#define AIR_VERSIONS(name, params, args)                              \
	static void name##_base params                                \
	{                                                             \
		name args;                                            \
	}                                                             \
	static void(*const name##_versions[AIR_ISA_COUNT]) params = { \
		name##_base,                                          \
	};
#endif

#define AIR_BEST(name) (name##_versions[air_isa()])

#endif /* AIR_SIMD_H */
