/* SPDX-License-Identifier: MIT */
/*
 * The resident kernel. resident.h says what it is; here is how a block works.
 *
 * Each block has three kinds of warps:
 *  - the fetching warp reads submissions, several at a time, checks them and
 *    turns references into addresses, ahead of time;
 *  - the working warps (256 threads) run operators, one after the other, with
 *    nothing but a block barrier between two of them;
 *  - the publishing warp writes completions behind the working warps' back.
 *
 * They hand entries on through a ring in shared memory with a counter each:
 * fetched, executed, published, every one written by one kind of warp.
 *
 * Ordering:
 *  - A slot's words are read relaxed; the eight laps make them one. What its
 *    operands hold was written before: by earlier operators of this block (the
 *    barrier orders them), by other blocks (acquired with the counter they
 *    release), by other kernels (before the ring was attached: acquired then),
 *    or by the host: only that owes a system fence, and only when an operand
 *    is host memory.
 *  - Completions of what wrote nothing are not released: all before them were.
 *  - Completions are released to the system by the publishing warp. It has
 *    seen `executed`, which a working thread wrote after the block barrier, so
 *    the release covers what all of them wrote. While it waits for the bus,
 *    operators go on, and what they complete meanwhile shares the next release.
 */
#include "ops/worker/resident/body.cuh"
#include "ops/worker/resident/memory.cuh"
#include "ops/worker/resident/resident.h"

#define DEPTH		32	/* entries in a block's ring; a power of two */
#define FEW		4	/* slots the fetching warp polls */
#define BATCH		16	/* ... and once there were that many */
#define CACHED_PLANS	8	/* descriptors kept in shared memory */
#define CACHED_BUFFERS	32	/* buffers, likewise: the lowest handles */
#define RUN_LENGTH	8	/* UNORDERED in a row that make a run */
#define RUN_IDLE_NS	20000	/* a run ends when nothing came for so long */
#define ASK_EVERY	8	/* rounds between looks at the mailbox */

/* Why serve() came back, beyond enum air_res_reason. */
enum { SERVED_COUNT = 16, SERVED_RUN = 17, SERVED_END = 18 };

/* ------------------------------------------------------------------ a block */

/* struct entry.how */
#define SHARED	1	/* the helpers take part */
#define TIMED	2	/* there is a time-out */

struct entry {
	uint64_t plan;		/* 0: answer @status, run nothing */
	uint32_t op;
	uint32_t how;
	air_operands ops;
	uint64_t fetched;	/* GPU's clock; if TIMED */
	uint32_t status;
	uint32_t detail;
	uint32_t timeout_ms;
	uint32_t resv;
};

/*
 * Descriptors near at hand: one read of device memory takes as long as a small
 * operator, and there would be several, each needing the one before.
 */
struct plan_cache {
	air_res_plan plan[CACHED_PLANS];
	uint64_t home[CACHED_PLANS];	/* in device memory */
	uint32_t id[CACHED_PLANS];
	uint32_t used[CACHED_PLANS];	/* by entries below this one */
};

#define NO_ID	(~0u)

struct block {
	entry ring[DEPTH];
	plan_cache cache;
	air_res_buffer buffers[CACHED_BUFFERS];
	volatile uint32_t fetched;
	volatile uint32_t executed;
	volatile uint32_t published;
	volatile uint32_t halted;	/* nothing will be fetched any more */
	volatile uint32_t reason;
	uint64_t busy;
	uint32_t shares;
	/* what the block was told to do, by its thread 0 */
	uint64_t word[4];
	air_res_job job;
	air_res_channel channel;
};

/*
 * Not handed on by reference: accesses through one do not know that it is
 * shared memory, and take longer.
 */
static __shared__ block self;

/* What serve() serves. */
struct service {
	uint64_t first;
	uint64_t stride;
	uint64_t count;		/* at most so many */
	air_res_job *run;	/* one of many blocks in a run; else NULL */
	const air_res_mailbox *mailbox;	/* of the leader; NULL in helpers */
	uint32_t tag;
};

struct world {
	const air_res_params &p;
	air_res_host *host;
	air_res_job *job;
	air_res_state *state;
	uint64_t *next;
};

/* -------------------------------------------------------------- fetching */

struct fetched_slot {
	bool valid;		/* all eight words are there */
	bool ours;		/* an entry can be made of it */
	bool unordered;
	bool cached;
	uint64_t plan;
	uint32_t op, how, id;
	uint64_t addr;		/* of this lane's operand */
	uint32_t status, detail, timeout_ms;
	bool host_memory;
};

/*
 * Where the descriptors of these lanes' slots are, into s.plan: 0 where there
 * is none. Those not in the cache come in, unless what is in their place is
 * still wanted by an entry or by another of these slots.
 */
__device__ void find_plans(fetched_slot &s, bool wanted)
{
	uint32_t lane = threadIdx.x % 32, place = s.id % CACHED_PLANS;
	plan_cache &c = self.cache;
	uint32_t missing;

	s.cached = wanted && c.id[place] == s.id;
	missing = __ballot_sync(~0u, wanted && !s.cached);
	while (missing) {
		uint32_t id = __shfl_sync(~0u, s.id, __ffs(missing) - 1);
		uint32_t at = id % CACHED_PLANS;
		bool mine = wanted && s.id == id;
		bool kept = lane == 0 &&
			    (int32_t)(c.used[at] - self.executed) > 0;
		uint64_t home = load_gpu((const uint64_t *)self.channel.plans +
					 id);

		kept |= s.cached && place == at;
		if (home && !__any_sync(~0u, kept)) {
			uint64_t *to = (uint64_t *)&c.plan[at];
			const uint64_t *from = (const uint64_t *)home;

#pragma unroll 4
			for (uint32_t k = lane; k < sizeof(*c.plan) / 8;
			     k += 32)
				to[k] = load_gpu(from + k);
			if (lane == 0) {
				c.id[at] = id;
				c.home[at] = home;
			}
			__syncwarp();
			s.cached |= mine;
		}
		if (mine)
			s.plan = home;
		missing &= ~__ballot_sync(~0u, mine);
	}
	if (s.cached)
		s.plan = (uint64_t)&c.plan[place];
}

/*
 * Eight lanes a slot: each checks the word it has read. Checks are those of
 * air_plan_bind(), in its order; what cannot be told here is not ours.
 */
__device__ __forceinline__ fetched_slot check_slot(uint64_t word,
						   uint8_t lap)
{
	const air_res_channel &ch = self.channel;
	uint32_t lane = threadIdx.x % 32, w = lane % 8, group = lane & ~7u;
	uint32_t mine = 0xffu << group;
	fetched_slot s = {};
	uint32_t status = AIRUNNER_S_OK;
	bool foreign = false;
	air_res_extent x = { 0, 0, 0, 0 };

	s.valid = (__ballot_sync(~0u, airunner_word_lap(word) == lap) & mine) ==
		  mine;

	uint64_t payload = airunner_payload(word);
	uint64_t head = __shfl_sync(~0u, payload, group);
	uint32_t opcode = airunner_sqe_opcode(head);
	uint32_t flags = airunner_sqe_flags(head);
	uint32_t id = airunner_sqe_id(head);
	bool nop = opcode == AIRUNNER_OP_NOP;

	s.unordered = (flags & AIRUNNER_SQE_UNORDERED) &&
		      !(flags & AIRUNNER_SQE_BARRIER);
	s.timeout_ms = airunner_sqe_timeout_ms(head);
	if (flags & ~AIRUNNER_SQE_FLAGS)
		foreign = true;
	if (nop) {
		foreign |= w == 0 ? id != 0 : payload != 0;
	} else if (opcode != AIRUNNER_OP_EXEC || id >= ch.n_plans) {
		foreign = true;
	}
	s.id = id;
	find_plans(s, s.valid && !nop && !foreign);
	foreign |= s.valid && !nop && !s.plan;
	if (s.timeout_ms)
		s.how = TIMED;
	if (s.plan) {
		s.op = ((const air_res_plan *)s.plan)->op;
		/* one block does all of what is in a run */
		if (((const air_res_plan *)s.plan)->tiles > 1) {
			s.unordered = false;
			s.how |= SHARED;
		}
	}
	if (s.plan && w >= 1 && w <= AIRUNNER_MAX_TENSORS) {
		const air_res_plan *plan = (const air_res_plan *)s.plan;
		uint32_t handle = airunner_ref_handle(payload);
		uint64_t offset = airunner_ref_offset(payload);

		x = plan->extent[w - 1];
		if (x.above == AIR_RES_ABSENT) {
			x.above = 0;
			if (payload && payload != AIRUNNER_REF_NONE)
				status = AIRUNNER_S_BAD_RESERVED;
		} else if (payload == AIRUNNER_REF_NONE) {
			if (x.above)
				status = AIRUNNER_S_BAD_HANDLE;
		} else if (handle >= ch.n_buffers) {
			foreign = true;
		} else {
			uint64_t base, size;

			if (handle < CACHED_BUFFERS) {
				base = self.buffers[handle].addr;
				size = self.buffers[handle].size;
			} else {
				const uint64_t *p = (const uint64_t *)
							    ch.buffers +
						    2 * handle;

				base = load_gpu(p);
				size = load_gpu(p + 1);
			}
			s.host_memory = size & AIR_RES_HOST_MEMORY;
			size &= ~AIR_RES_HOST_MEMORY;
			if (!size)
				foreign = true;
			else if (offset > size || x.below > offset ||
				 x.above > size - offset)
				status = AIRUNNER_S_BAD_RANGE;
			else if ((base + offset) & x.align_mask)
				status = AIRUNNER_S_BAD_ALIGN;
			else
				s.addr = base + offset;
		}
	}
	if (s.plan && w == AIRUNNER_WORD_ARG && payload)
		status = AIRUNNER_S_BAD_RESERVED;

	uint64_t y = __shfl_sync(~0u, s.addr, group + 1);
	uint64_t below = __shfl_sync(~0u, x.below, group + 1);
	uint64_t above = __shfl_sync(~0u, x.above, group + 1);

	if (w >= 2 && w <= AIRUNNER_MAX_TENSORS && x.above && above &&
	    status == AIRUNNER_S_OK && !foreign &&
	    !(s.addr - x.below >= y + above || y - below >= s.addr + x.above) &&
	    !(s.addr == y && x.in_place))
		foreign = true;

	uint32_t bad = __ballot_sync(~0u, status != AIRUNNER_S_OK || foreign) &
		       mine;
	uint32_t at = bad ? __ffs(bad) - 1 : lane;

	s.status = __shfl_sync(~0u, status, at);
	s.ours = !__shfl_sync(~0u, (int)foreign, at);
	s.detail = s.status == AIRUNNER_S_OK ? 0 : at % 8;
	if (s.status != AIRUNNER_S_OK)
		s.plan = 0;
	/* helpers do not see this block's shared memory */
	else if (s.cached && s.how & SHARED)
		s.plan = self.cache.home[id % CACHED_PLANS];
	return s;
}

/* Begin to read what may end the service, a word a lane. */
__device__ __forceinline__ uint64_t ask_host(const world &g, const service &sv)
{
	uint32_t lane = threadIdx.x % 32;

	if (!sv.mailbox || lane > 1)
		return 0;
	return load_sys(lane ? &g.host->stop : &sv.mailbox->recall);
}

__device__ __forceinline__ bool called_back(const service &sv, uint64_t said)
{
	uint64_t recall = __shfl_sync(~0u, said, 0);
	uint64_t stop = __shfl_sync(~0u, said, 1);

	return stop || (sv.mailbox && airunner_word_lap(recall) == sv.tag &&
			airunner_payload(recall));
}

/*
 * Wait for a slot, up to a time when there is something else to look at; p is
 * this lane's word of this slot and the next ones. One read at a time: a second
 * one, half a round trip behind, does not help, as both count on the same
 * scoreboard and the first is not looked at before the second is there.
 */
__device__ __forceinline__ uint64_t await_slot(const uint64_t *p, uint8_t lap)
{
	uint64_t word;

#pragma unroll 1
	for (uint32_t k = 0; k < ASK_EVERY; k++) {
		word = load_sys(p);
		if ((__ballot_sync(~0u, airunner_word_lap(word) == lap) &
		     0xff) == 0xff)
			break;
	}
	return word;
}

/*
 * By value, and with the channel's fields in variables: behind every access
 * that is volatile to the compiler, memory would be read again.
 */
__device__ void fetch_loop(const world &g, const service sv)
{
	uint32_t lane = threadIdx.x % 32, w = lane % 8, slot = lane / 8;
	const uint64_t *sq = (const uint64_t *)self.channel.sq;
	uint32_t order = self.channel.order;
	uint64_t mask = (1ull << order) - 1;
	uint64_t active = gpu_now();
	uint32_t n = 0, polls = 0, streak = 0, reason = 0, want = FEW;
	bool fresh = false, idle = false;

#define READ(j)                                                             \
	load_sys(sq + ((sv.first + (n + 4 * (j) + slot) * sv.stride) & mask) * \
			      AIRUNNER_SQE_WORDS + w)

	while (!reason) {
		uint64_t word[BATCH / 4], end = ~0ull, said = 0;
		uint32_t got = 0;
		bool ask = idle || ++polls % ASK_EVERY == 0;
		bool wait = !sv.run && want == FEW;

		if (n >= sv.count) {
			reason = SERVED_COUNT;
			break;
		}
		while (n + want - self.published > DEPTH)
			spin();
		if (sv.run)
			end = load_gpu((const uint64_t *)&sv.run->end);
		/* in the same round trip of the bus as the slots */
		if (ask)
			said = ask_host(g, sv);
		if (wait) {
			uint64_t i = sv.first + (n + slot) * sv.stride;

			word[0] = await_slot(
				sq + (i & mask) * AIRUNNER_SQE_WORDS + w,
				airunner_lap(i, order));
		} else {
#pragma unroll
			for (uint32_t j = 0; j < BATCH / 4; j++)
				if (4 * j < want)
					word[j] = READ(j);
		}
		end = __shfl_sync(~0u, end, 0);
		if (sv.first + n * sv.stride >= end) {
			reason = SERVED_END;
			break;
		}
		/* not unrolled: one copy of the checks is enough */
#pragma unroll 1
		for (uint32_t j = 0; 4 * j < want; j++) {
			uint64_t i = sv.first + (n + slot) * sv.stride;
			uint64_t mine = j == 0 ? word[0] : j == 1 ? word[1] :
					j == 2 ? word[2] : word[3];
			fetched_slot s;
			uint32_t good, here;
			bool take;

			/* only whole groups go on to the next */
			if (reason || got != 4 * j)
				break;
			s = check_slot(mine, airunner_lap(i, order));
			if (__all_sync(~0u, s.valid && s.unordered && s.ours))
				streak += 4;
			else
				streak = 0;
			/* from here on all blocks take their share */
			if (!sv.run && sv.count == ~0ull &&
			    streak >= RUN_LENGTH) {
				reason = SERVED_RUN;
				break;
			}
			take = s.valid && s.ours && i < end &&
			       (!sv.run || s.unordered) &&
			       n + slot < sv.count;
			/* slots in front of the first that is not taken */
			good = __ballot_sync(~0u, !take);
			here = good ? (__ffs(good) - 1) / 8 : 4;
			if (__any_sync(~0u, slot < here && s.host_memory))
				fence_sys();
			if (slot < here) {
				entry &e = self.ring[(n + slot) % DEPTH];

				if (w >= 1 && w <= AIRUNNER_MAX_TENSORS + 1)
					e.ops.addr[w - 1] =
						s.addr;
				if (w == 0) {
					e.plan = s.plan;
					e.op = s.op;
					e.how = s.how;
					if (s.how & TIMED)
						e.fetched = gpu_now();
					if (s.cached)
						self.cache.used[s.id %
							     CACHED_PLANS] =
							n + 4;
					e.status = s.status;
					e.detail = s.detail;
					e.timeout_ms = s.timeout_ms;
				}
			}
			/* why it was not taken, if it is there at all */
			uint32_t there = __ballot_sync(~0u, s.valid);
			uint32_t ours = __ballot_sync(~0u, s.ours);

			if (here < 4 && (there >> (here * 8) & 1)) {
				uint64_t at = sv.first + (n + here) * sv.stride;

				if (sv.run) {
					if (lane == 0)
						atomicMin(&sv.run->end,
							  (ull)at);
					reason = SERVED_END;
				} else if (!(ours >> (here * 8) & 1)) {
					reason = AIR_RES_FOREIGN;
				}
			}
			got += here;
			n += here;
			if (here) {
				fence_block();
				__syncwarp();
				if (lane == 0)
					self.fetched = n;
			}
		}
		want = got == want ? BATCH : FEW;
		fresh |= got != 0;
		idle = wait && !got;
		if (reason || !ask)
			continue;

		uint64_t now = __shfl_sync(~0u, gpu_now(), 0);
		bool back = called_back(sv, said);

		if (fresh)
			active = now;
		fresh = false;

		uint64_t quiet = now - active;

		if (sv.run && (back || quiet > RUN_IDLE_NS)) {
			if (lane == 0)
				atomicMin(&sv.run->end,
					  (ull)(sv.first + n * sv.stride));
			reason = SERVED_END;
		} else if (back) {
			reason = AIR_RES_RECALLED;
		} else if (!sv.run && quiet > g.p.idle_ns) {
			reason = AIR_RES_IDLE;
		}
	}
#undef READ
	__syncwarp();
	if (lane == 0) {
		self.reason = reason;
		fence_block();
		self.halted = 1;
	}
}

/* --------------------------------------------------------------- working */

__device__ void run_body(uint32_t op, const air_res_plan *plan,
			 const air_operands *ops, uint32_t block,
			 uint32_t blocks, void *shared)
{
	switch (op) {
#define CASE(name)                                                 \
	case AIR_OP_##name:                                        \
		air_run_##name(plan, ops, block, blocks, shared); \
		break;
		AIR_OPS(CASE)
#undef CASE
	}
}

/* Barrier 1 is theirs: see air_sync(). */
__device__ __forceinline__ void sync_workers(void)
{
	air_sync(air_part{ 0, 1, threadIdx.x, AIR_RES_WORKERS, NULL });
}

/* One leader at a time has the helpers. */
__device__ void lock_job(air_res_job *job)
{
	while (atomicCAS(&job->lock, 0, 1))
		__nanosleep(100);
	__threadfence();
}

__device__ void unlock_job(air_res_job *job)
{
	__threadfence();
	atomicExch(&job->lock, 0);
}

/* By thread 0, with the lock: everything but seq is in place. */
__device__ void post_job(air_res_job *job, uint32_t kind, uint32_t blocks)
{
	job->kind = kind;
	job->blocks = blocks;
	job->done = 0;
	store_release(&job->seq, load_gpu(&job->seq) + 1);
}

__device__ void await_helpers(air_res_job *job, uint32_t n)
{
	while (load_acquire(&job->done) != n)
		spin();
}

/* An operator too large for one block: the helpers take shares of it. */
__device__ void share(const world &g, const air_res_plan *plan,
		      const air_operands *ops, void *shared)
{
	if (threadIdx.x == 0) {
		uint32_t there = load_acquire(&g.state->helpers) + 1;

		lock_job(g.job);
		g.job->plan = (uint64_t)plan;
		g.job->operands = *ops;
		self.shares = plan->tiles < there ? plan->tiles : there;
		post_job(g.job, AIR_RES_SHARE, self.shares);
	}
	sync_workers();
	run_body(plan->op, plan, ops, 0, self.shares, shared);
	sync_workers();
	if (threadIdx.x == 0) {
		await_helpers(g.job, self.shares - 1);
		unlock_job(g.job);
	}
	sync_workers();
}

__device__ void work_loop(const world &g, void *shared)
{
	uint32_t i = 0;

	for (;;) {
		while (self.fetched == i) {
			if (self.halted && self.fetched == i)
				return;
			spin();
		}
		fence_block();

		entry &e = self.ring[i % DEPTH];
		const air_res_plan *plan = (const air_res_plan *)e.plan;
		uint32_t op = e.op, how = e.how;

		if (how & TIMED) {
			/* one thread looks at the clock for all */
			if (threadIdx.x == 0 &&
			    gpu_now() - e.fetched > e.timeout_ms * 1000000ull) {
				e.status = AIRUNNER_S_TIMEOUT;
				e.plan = 0;
			}
			sync_workers();
			plan = (const air_res_plan *)e.plan;
		}
		if (plan) {
			if (how & SHARED)
				share(g, plan, &e.ops, shared);
			else
				run_body(op, plan, &e.ops, 0, 1, shared);
		}
		sync_workers();
		i++;
		if (threadIdx.x == 0) {
			fence_block();
			self.executed = i;
		}
	}
}

/* ------------------------------------------------------------- publishing */

/*
 * Times are this warp's: an operator begins when it is fetched and those before
 * it have ended; those that end between two looks share the time evenly.
 */
__device__ void publish_loop(const world &g, const service sv)
{
	uint64_t *cq = (uint64_t *)self.channel.cq;
	uint32_t order = self.channel.order;
	uint64_t mask = (1ull << order) - 1, start = gpu_now(), busy = 0;
	int64_t clock = g.p.clock;
	uint32_t lane = threadIdx.x % 32, n = 0;

	for (;;) {
		uint64_t now = gpu_now();
		bool halted = self.halted;
		uint32_t done = self.executed, there = self.fetched;
		bool over = halted && done == there;

		/* one lane has looked, so that all of them see the same */
		done = __shfl_sync(~0u, done, 0);
		over = __shfl_sync(~0u, (int)over, 0);
		if (done == n) {
			if (over)
				break;
			if (there == n)
				start = now;
			spin();
			continue;
		}
		fence_block();

		uint32_t k = n + lane;
		const entry &e = self.ring[k % DEPTH];
		bool mine = lane < done - n;
		uint64_t span = now - start;
		uint64_t each = span >> 32 ? span / (done - n) :
					     (uint32_t)span / (done - n);
		/* what did nothing has nothing to make visible */
		bool release = __any_sync(~0u, mine && e.plan);

		if (mine) {
			uint64_t i = sv.first + k * sv.stride;
			uint8_t lap = airunner_lap(i, order);
			uint64_t *cqe = cq + (i & mask) * AIRUNNER_CQE_WORDS;
			uint64_t w0 = airunner_word(
				airunner_cqe_word0((uint8_t)e.status,
						   (uint16_t)e.detail, each),
				lap);
			uint64_t w1 = airunner_word(
				airunner_cqe_word1(start + lane * each +
							   clock, each),
				lap);

			busy += each;
			if (release)
				store_pair_release_sys(cqe, w0, w1);
			else
				store_pair_sys(cqe, w0, w1);
		}
		__syncwarp();
		start = now;
		n = done;
		if (lane == 0)
			self.published = n;
	}
	for (uint32_t o = 16; o; o /= 2)
		busy += __shfl_xor_sync(~0u, busy, o);
	if (lane == 0)
		self.busy += busy;
}

/* ------------------------------------------------------------------ serving */

/* By all threads, before a channel is served: what is kept of it at hand. */
__device__ void begin_channel(void)
{
	const uint64_t *from = (const uint64_t *)self.channel.buffers;
	uint32_t n = self.channel.n_buffers;

	if (n > CACHED_BUFFERS)
		n = CACHED_BUFFERS;
	if (threadIdx.x < 2 * n)
		((uint64_t *)self.buffers)[threadIdx.x] =
			load_gpu(from + threadIdx.x);
	if (threadIdx.x < CACHED_PLANS)
		self.cache.id[threadIdx.x] = NO_ID;
}

/* By all threads. Returns how many submissions were served; self.reason why. */
__device__ __noinline__ uint64_t serve(const world &g, const service &sv,
			  void *shared)
{
	__syncthreads();
	if (threadIdx.x == 0) {
		self.fetched = self.executed = self.published = 0;
		self.halted = self.reason = 0;
	}
	if (threadIdx.x < CACHED_PLANS)
		self.cache.used[threadIdx.x] = 0;
	__syncthreads();
	if (threadIdx.x < AIR_RES_WORKERS)
		work_loop(g, shared);
	else if (threadIdx.x < AIR_RES_WORKERS + 32)
		fetch_loop(g, sv);
	else
		publish_loop(g, sv);
	__syncthreads();
	return self.executed;
}

/*
 * A run of UNORDERED submissions from @first on: block k of n takes every n-th,
 * beginning with the k-th. Returns the first index that is not part of it;
 * *@skip: below this one some behind it have been served already.
 */
__device__ uint64_t lead_run(const world &g, void *shared,
			     const air_res_mailbox *box, uint32_t tag,
			     uint64_t channel, uint64_t first, uint64_t *skip,
			     uint64_t *completed)
{
	if (threadIdx.x == 0) {
		lock_job(g.job);
		self.shares = load_acquire(&g.state->helpers) + 1;
		g.job->channel = channel;
		g.job->first = first;
		g.job->end = ~0ull;
		post_job(g.job, AIR_RES_RUN, self.shares);
	}
	__syncthreads();

	uint32_t blocks = self.shares;
	service sv = { first, blocks, ~0ull, g.job, box, tag };
	uint64_t n = serve(g, sv, shared);

	if (threadIdx.x == 0) {
		uint64_t last = 0;

		g.next[0] = first + n * blocks;
		await_helpers(g.job, blocks - 1);
		for (uint32_t k = 0; k < blocks; k++) {
			uint64_t x = load_gpu(&g.next[k]);

			n += k ? (x - first - k) / blocks : 0;
			last = x > last ? x : last;
		}
		self.word[0] = load_gpu((const uint64_t *)&g.job->end);
		self.word[1] = last;
		self.word[2] = n;
		unlock_job(g.job);
	}
	__syncthreads();
	*skip = self.word[1];
	*completed += self.word[2];
	return self.word[0];
}

/* Thread 0 of leader 0, when no ring is attached: whether the kernel ends. */
__device__ bool may_end(const world &g, uint64_t since)
{
	air_res_state *st = g.state;

	if (load_acquire(&st->attached))
		return false;
	if (!load_sys(&g.host->stop) && gpu_now() - since < g.p.park_ns)
		return false;
	atomicExch(&st->quit, AIR_RES_MAYBE);
	__threadfence();
	if (load_acquire(&st->attached)) {
		atomicExch(&st->quit, AIR_RES_STAY);
		return false;
	}
	atomicExch(&st->quit, AIR_RES_GO);
	lock_job(g.job);
	post_job(g.job, AIR_RES_QUIT, 0);
	unlock_job(g.job);
	return true;
}

/*
 * Thread 0: wait for a ring. False: the kernel ends. self.word[0], [1] are the
 * channel's place and the index to begin at.
 */
__device__ bool await_ring(const world &g, uint32_t me, uint32_t tag)
{
	const air_res_mailbox *box = &g.host->mailbox[me];
	uint64_t since = gpu_now();

	for (;;) {
		uint64_t attach = load_sys(&box->attach);

		if (load_acquire(&g.state->attached))
			since = gpu_now();
		if (airunner_word_lap(attach) == tag) {
			atomicAdd(&g.state->attached, 1);
			__threadfence();
			if (load_acquire(&g.state->quit) == AIR_RES_STAY) {
				/* also for what other kernels have written */
				fence_sys();
				self.word[0] = airunner_payload(attach);
				self.word[1] = airunner_payload(
					load_sys(&box->index));
				return true;
			}
			atomicSub(&g.state->attached, 1);
		}
		if (load_acquire(&g.state->quit) == AIR_RES_GO ||
		    (me == 0 && may_end(g, since)))
			return false;
		__nanosleep(200);
	}
}

/* Serve one attachment. */
__device__ void lead_ring(const world &g, void *shared, uint32_t me,
			  uint32_t tag)
{
	air_res_mailbox *box = &g.host->mailbox[me];
	uint64_t channel = self.word[0], index = self.word[1];
	uint64_t completed = 0, skip = 0, run = 0, blocks = 1;
	uint32_t reason;

	do {
		service sv = { index, 1, ~0ull, NULL, box, tag };

		/* below skip, some were served in the run */
		if (index < skip) {
			if (index < load_gpu(&g.next[(index - run) % blocks])) {
				index++;
				reason = SERVED_COUNT;
				continue;
			}
			sv.count = 1;
		}

		uint64_t n = serve(g, sv, shared);

		completed += n;
		index += n;
		reason = self.reason;
		if (reason == SERVED_RUN) {
			run = index;
			index = lead_run(g, shared, box, tag, channel, run,
					 &skip, &completed);
			blocks = self.shares;
		}
	} while (reason >= SERVED_COUNT);

	if (threadIdx.x == 0) {
		store_sys(&box->stopped, airunner_word(index, tag));
		store_sys(&box->completed, airunner_word(completed, tag));
		store_sys(&box->busy_ns, airunner_word(self.busy, tag));
		store_release_sys(&box->reason, airunner_word(reason, tag));
		atomicSub(&g.state->attached, 1);
	}
}

__device__ void lead(const world &g, void *shared, uint32_t me)
{
	uint32_t tag = g.p.tag[me];

	for (;; tag = air_res_next_tag(tag)) {
		if (threadIdx.x == 0) {
			self.word[3] = await_ring(g, me, tag);
			self.busy = 0;
			if (self.word[3])
				self.channel =
					((const air_res_channel *)g.p.channels)
						[self.word[0]];
		}
		__syncthreads();
		if (!self.word[3])
			return;
		begin_channel();
		lead_ring(g, shared, me, tag);
		__syncthreads();
	}
}

/* ------------------------------------------------------------------ helping */

/* Thread 0: wait for a job that has a share for helper @rank. */
__device__ void await_job(const world &g, uint32_t rank,
			  uint64_t *seen)
{
	for (;;) {
		uint64_t seq = load_acquire(&g.job->seq);

		if (seq == *seen) {
			__nanosleep(20);
			continue;
		}
		*seen = seq;
		self.job.kind = g.job->kind;
		self.job.blocks = g.job->blocks;
		self.job.plan = g.job->plan;
		self.job.operands = g.job->operands;
		self.job.channel = g.job->channel;
		self.job.first = g.job->first;
		__threadfence();
		/*
		 * Who has a share is waited for. Who has none may be late and
		 * see the next job half written: it then looks again.
		 */
		if (load_acquire(&g.job->seq) != seq)
			continue;
		if (self.job.kind == AIR_RES_QUIT || rank + 1 < self.job.blocks)
			return;
	}
}

__device__ void help(const world &g, void *shared)
{
	uint64_t seen = 0;
	uint32_t rank = 0;

	if (threadIdx.x == 0) {
		/* what was posted before is not for this helper */
		seen = load_acquire(&g.job->seq);
		rank = atomicAdd(&g.state->helpers, 1);
		self.shares = rank;
	}
	__syncthreads();
	rank = self.shares;
	for (;;) {
		if (threadIdx.x == 0) {
			if (load_acquire(&g.state->quit) == AIR_RES_GO)
				self.job.kind = AIR_RES_QUIT;
			else
				await_job(g, rank, &seen);
			if (self.job.kind == AIR_RES_RUN)
				self.channel =
					((const air_res_channel *)g.p.channels)
						[self.job.channel];
		}
		__syncthreads();
		if (self.job.kind == AIR_RES_QUIT)
			return;
		if (self.job.kind == AIR_RES_RUN) {
			service sv = { self.job.first + rank + 1,
				       self.job.blocks,
				       ~0ull, g.job, NULL, 0 };

			begin_channel();

			uint64_t n = serve(g, sv, shared);

			if (threadIdx.x == 0)
				g.next[rank + 1] = sv.first + n * sv.stride;
		} else if (threadIdx.x < AIR_RES_WORKERS) {
			const air_res_plan *plan =
				(const air_res_plan *)self.job.plan;

			run_body(plan->op, plan, &self.job.operands, rank + 1,
				 self.job.blocks, shared);
		}
		__syncthreads();
		if (threadIdx.x == 0)
			add_release(&g.job->done, 1);
	}
}

/*
 * Built with at most 128 registers a thread (ops/cuda.mk), not with launch
 * bounds, which would allow more: what is left of a multiprocessor is for the
 * kernels of others.
 */
extern "C" __global__ void
	air_resident(const __grid_constant__ air_res_params p)
{
	__shared__ __align__(16) unsigned char shared[AIR_RES_SHARED];
	world g = { p, (air_res_host *)p.host, (air_res_job *)p.job,
		    (air_res_state *)p.state, (uint64_t *)p.next };

	if (blockIdx.x < p.leaders)
		lead(g, shared, blockIdx.x);
	else
		help(g, shared);
}

/* Lets the host compare its clock with the GPU's. */
extern "C" __global__ void air_resident_clock(uint64_t *out)
{
	store_release_sys(out, gpu_now());
}
