/* SPDX-License-Identifier: MIT */
/*
 * Enough of CUDA for the resident kernel to run on a CPU: every block is a
 * thread, every CUDA thread a fibre in it that runs until it waits for others
 * (a barrier, a vote, a shuffle, a spin). Votes and shuffles need all 32 lanes,
 * as the kernel's do. What is not emulated is the weakness of a GPU's memory:
 * this finds errors of logic, not of ordering.
 */
#ifndef AIR_TEST_EMULATE_H
#define AIR_TEST_EMULATE_H

#include <math.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sched.h>
#include <ucontext.h>

#define __device__
#define __global__
#define __host__
#define __grid_constant__
#define __forceinline__ inline
#define __shared__	thread_local
#define __align__(n)	__attribute__((aligned(n)))
#define __launch_bounds__(...)
#define __noinline__ __attribute__((noinline))
#define __constant__

struct emu_dim {
	uint32_t x;
};

#define EMU_THREADS 320
#define EMU_STACK   (64 << 10)

struct emu_block {
	jmp_buf scheduler;
	jmp_buf fibre[EMU_THREADS];
	ucontext_t start[EMU_THREADS], back;
	char *stack[EMU_THREADS];
	bool begun[EMU_THREADS], ended[EMU_THREADS];
	uint32_t index, current;
	/* barriers: 0 of the block, 1 of its first 256 threads, 2: air_go() */
	uint32_t arrived[3], phase[3];
	/* of each warp */
	uint32_t lanes[10], turn[10];
	uint64_t box[10][32];
	void (*entry)(void *);
	void *arg;
};

extern thread_local emu_block *emu;

#define threadIdx (emu_dim{ emu->current })
#define blockIdx  (emu_dim{ emu->index })

inline void emu_yield(void)
{
	if (!_setjmp(emu->fibre[emu->current]))
		_longjmp(emu->scheduler, 1);
}

/* Run a block to its end on the calling thread. */
void emu_run(uint32_t index, void (*entry)(void *), void *arg);

inline void emu_barrier(int which, uint32_t n)
{
	uint32_t phase = emu->phase[which];

	if (++emu->arrived[which] == n) {
		emu->arrived[which] = 0;
		emu->phase[which]++;
		return;
	}
	while (emu->phase[which] == phase)
		emu_yield();
}

/* All lanes put a value down; all see all of them. */
inline const uint64_t *emu_exchange(uint64_t mine, uint64_t out[32])
{
	uint32_t w = emu->current / 32, lane = emu->current % 32;

	for (int round = 0; round < 2; round++) {
		uint32_t turn = emu->turn[w];

		if (round == 0)
			emu->box[w][lane] = mine;
		else
			memcpy(out, emu->box[w], 32 * sizeof(*out));
		if (++emu->lanes[w] == 32) {
			emu->lanes[w] = 0;
			emu->turn[w]++;
		} else {
			while (emu->turn[w] == turn)
				emu_yield();
		}
	}
	return out;
}

inline void __syncthreads(void)
{
	emu_barrier(0, EMU_THREADS);
}
inline void __syncwarp(void)
{
	uint64_t all[32];

	emu_exchange(0, all);
}
inline uint32_t __ballot_sync(uint32_t, bool x)
{
	uint64_t all[32];
	uint32_t r = 0;

	emu_exchange(x, all);
	for (int i = 0; i < 32; i++)
		r |= (uint32_t)all[i] << i;
	return r;
}
inline bool __all_sync(uint32_t m, bool x)
{
	return __ballot_sync(m, x) == ~0u;
}
inline bool __any_sync(uint32_t m, bool x)
{
	return __ballot_sync(m, x) != 0;
}
template <class T> inline T __shfl_sync(uint32_t, T x, uint32_t lane)
{
	uint64_t all[32];

	return (T)emu_exchange((uint64_t)x, all)[lane % 32];
}
template <class T> inline T __shfl_xor_sync(uint32_t, T x, uint32_t o)
{
	uint64_t all[32];

	return (T)emu_exchange((uint64_t)x, all)[emu->current % 32 ^ o];
}
inline int __ffs(uint32_t x)
{
	return __builtin_ffs((int)x);
}
inline void __threadfence(void)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}
inline void fence_block(void)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}
inline void __nanosleep(uint32_t)
{
	emu_yield();
}
template <class T> inline T atomicAdd(T *p, T v)
{
	return __atomic_fetch_add(p, v, __ATOMIC_SEQ_CST);
}
inline uint32_t atomicAdd(uint32_t *p, int v)
{
	return __atomic_fetch_add(p, (uint32_t)v, __ATOMIC_SEQ_CST);
}
inline uint32_t atomicSub(uint32_t *p, uint32_t v)
{
	return __atomic_fetch_sub(p, v, __ATOMIC_SEQ_CST);
}
inline uint32_t atomicExch(uint32_t *p, uint32_t v)
{
	return __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST);
}
inline uint32_t atomicCAS(uint32_t *p, uint32_t was, uint32_t v)
{
	__atomic_compare_exchange_n(p, &was, v, false, __ATOMIC_SEQ_CST,
				    __ATOMIC_SEQ_CST);
	return was;
}
inline void atomicMin(unsigned long long *p, unsigned long long v)
{
	unsigned long long was = __atomic_load_n(p, __ATOMIC_SEQ_CST);

	while (v < was &&
	       !__atomic_compare_exchange_n(p, &was, v, false, __ATOMIC_SEQ_CST,
					    __ATOMIC_SEQ_CST))
		;
}

/* What memory.cuh has for a GPU. */
#define AIR_RES_MEMORY_CUH
typedef unsigned long long ull;

inline uint64_t load_sys(const uint64_t *p)
{
	return __atomic_load_n(p, __ATOMIC_SEQ_CST);
}
inline void store_sys(uint64_t *p, uint64_t v)
{
	__atomic_store_n(p, v, __ATOMIC_SEQ_CST);
}
inline void store_release_sys(uint64_t *p, uint64_t v)
{
	__atomic_store_n(p, v, __ATOMIC_SEQ_CST);
}
inline void store_pair_sys(uint64_t *p, uint64_t v0, uint64_t v1)
{
	store_sys(p + 1, v1);
	store_sys(p, v0);
}
inline void store_pair_release_sys(uint64_t *p, uint64_t v0, uint64_t v1)
{
	store_pair_sys(p, v0, v1);
}
inline uint64_t load_acquire(const uint64_t *p)
{
	return __atomic_load_n(p, __ATOMIC_SEQ_CST);
}
inline uint32_t load_acquire(const uint32_t *p)
{
	return __atomic_load_n(p, __ATOMIC_SEQ_CST);
}
inline uint64_t load_gpu(const uint64_t *p)
{
	return __atomic_load_n(p, __ATOMIC_SEQ_CST);
}
inline void store_gpu(uint64_t *p, uint64_t v)
{
	__atomic_store_n(p, v, __ATOMIC_SEQ_CST);
}
inline void store_release(uint64_t *p, uint64_t v)
{
	__atomic_store_n(p, v, __ATOMIC_SEQ_CST);
}
inline void store_release(uint32_t *p, uint32_t v)
{
	__atomic_store_n(p, v, __ATOMIC_SEQ_CST);
}
inline bool take_acquire(uint32_t *p)
{
	return !atomicCAS(p, 0, 1);
}
inline void add_release(uint32_t *p, uint32_t v)
{
	__atomic_fetch_add(p, v, __ATOMIC_SEQ_CST);
}
inline void fence_sys(void)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}
inline void gate_init(uint64_t *g)
{
	__atomic_store_n(g, 0, __ATOMIC_SEQ_CST);
}
inline void gate_end(uint64_t *)
{
}
inline void gate_open(uint64_t *g)
{
	__atomic_fetch_add(g, 1, __ATOMIC_SEQ_CST);
}
inline bool gate_passed(uint64_t *g, uint32_t turn)
{
	return (__atomic_load_n(g, __ATOMIC_SEQ_CST) & 1) != (turn & 1);
}
inline void emu_yield(void);
inline bool gate_await(uint64_t *g, uint32_t turn)
{
	if (gate_passed(g, turn))
		return true;
	emu_yield();
	return false;
}
inline void renew_cache(const uint32_t *)
{
}
inline uint64_t gpu_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}
inline uint64_t gpu_ticks(void)
{
	return gpu_now();
}
inline void spin(void)
{
	emu_yield();
}

/* What device.cuh has. */
#define AIR_DEVICE_CUH
#include <airunner/ops.h>

#include "ops/cuda/abi.h"

struct air_part {
	uint32_t block, blocks, thread, threads;
	void *shared;
};
template <int OP> struct air_body;

inline void air_sync(const air_part &)
{
	emu_barrier(1, 256);
}

inline void air_go(void)
{
	emu_barrier(2, 288);
}

/*
 * In place of gemv.cuh: a row of numbers of 64 bits times a matrix. What may be
 * read ahead, is.
 */
#define AIR_RES_GEMV_CUH
#include "ops/matmul/params.h"
#include "ops/worker/resident/resident.h"

#define EMU_GEMV_K 4

static thread_local volatile uint32_t air_gemv_going;
static uint64_t emu_gemv_ahead; /* shares that were called before their turn */

inline void air_gemv_bring(const air_res_plan *, const air_operands *, uint32_t,
			   uint32_t, uint64_t, uint32_t *)
{
}
inline void air_gemv(const air_res_plan *plan, const air_operands *ops,
		     uint32_t block, uint32_t blocks, void *, bool ahead)
{
	const air_matmul_params *p = (const air_matmul_params *)plan->params;
	const uint64_t *x = (const uint64_t *)ops->addr[1];
	uint64_t c = block * AIR_RES_WORKERS + threadIdx.x;
	uint64_t b[EMU_GEMV_K] = {}, sum = 0;

	if (c < p->n)
		memcpy(b, (const uint64_t *)ops->addr[2] + c * EMU_GEMV_K,
		       sizeof(b));
	if (ahead && block) {
		if (threadIdx.x == 0)
			__atomic_fetch_add(&emu_gemv_ahead, 1,
					   __ATOMIC_RELAXED);
		air_go();
	}
	for (int k = 0; k < EMU_GEMV_K; k++)
		sum += x[k] * b[k];
	/* it takes its time, so that what follows is there when it ends */
	for (int i = 0; i < 500; i++)
		emu_yield();
	if (c < p->n)
		((uint64_t *)ops->addr[0])[c] = sum;
}

#endif /* AIR_TEST_EMULATE_H */
