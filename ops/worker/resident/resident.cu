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
 * They hand entries on through a ring in shared memory. Each place has two
 * gates: one the fetching warp opens, one the working warps do. A counter says
 * what has been published. The last entry says that nothing more comes.
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
 *    come through a gate that a working thread opened after the block barrier,
 *    so the release covers what all of them wrote. While it waits for the bus,
 *    operators go on, and what they complete meanwhile shares the next release.
 *  - What the host or a copy wrote before it submitted may be in the
 *    first-level cache as it was: that is emptied for what is fetched.
 *  - An operator that is shared is posted to the helpers before those in front
 *    of it have ended, if it is known by then. Until a word says that they have
 *    (released behind them, acquired by a warp that waits for it), a helper
 *    reads nothing but the plan and a matrix that none of them writes.
 *
 * What runs once for an operator is kept out of functions that need many
 * registers: those are saved and restored in local memory, which goes the way
 * of the first-level cache.
 */
#include "ops/worker/resident/body.cuh"
#include "ops/worker/resident/gemv.cuh"
#include "ops/worker/resident/memory.cuh"
#include "ops/worker/resident/resident.h"

#define DEPTH	       32     /* entries in a block's ring; a power of two */
#define FEW	       4      /* slots the fetching warp polls */
#define BATCH	       16     /* ... and once there were that many */
#define CACHED_PLANS   8      /* descriptors kept in shared memory */
#define CACHED_BUFFERS 32     /* buffers, likewise: the lowest handles */
#define RUN_LENGTH     8      /* UNORDERED in a row that make a run */
#define RUN_IDLE_NS    100000 /* a run ends when nothing came for so long */
#define RUN_SLOTS      16     /* of the ring, at least, for a block of a run */
#define ASK_EVERY      8      /* rounds between looks at what the host says */
#define LOOK_EVERY     64     /* likewise, where others look as well */
#define CLOCK_TICKS    (1u << 20) /* between looks at both clocks */
#define PAUSE_TICKS    6000	  /* how long the fetching warp holds back */
#define LOOK_AHEAD     8	  /* entries, for one to be shared */
#define MOST	       (1u << 30) /* entries that are counted at a time */

/* Why serve() came back, beyond enum air_res_reason. */
enum { SERVED_COUNT = 16, SERVED_RUN = 17, SERVED_END = 18 };

/* ------------------------------------------------------------------ a block */

/* struct entry.how */
#define SHARED 1 /* the helpers take part */
#define TIMED  2 /* there is a time-out */
#define HALT   4 /* nothing: there will be no more */
#define HOST   8 /* an operand is host memory */

typedef void (*air_res_body)(const air_res_plan *, const air_operands *,
			     uint32_t, uint32_t, void *);

/* As words, so that eight lanes can copy one. */
struct entry {
	uint64_t plan; /* 0: answer @status, run nothing */
	air_res_body run;
	uint32_t block; /* run()'s; if SHARED: 1 + place in the cache */
	uint32_t blocks;
	uint32_t how;
	uint32_t timeout_ms;
	air_operands ops;
	uint32_t status;
	uint32_t detail;
	uint64_t fetched; /* GPU's clock; if TIMED */
};

#define ENTRY_WORDS 11 /* without @fetched */

/*
 * Descriptors near at hand: one read of device memory takes as long as a small
 * operator, and there would be several, each needing the one before.
 */
struct plan_cache {
	air_res_plan plan[CACHED_PLANS];
	uint64_t home[CACHED_PLANS]; /* in device memory */
	air_res_body run[CACHED_PLANS];
	/* the slot that was last made an entry of, and the entry */
	uint64_t slot[CACHED_PLANS][AIRUNNER_SQE_WORDS];
	uint64_t made[CACHED_PLANS][2 * AIRUNNER_SQE_WORDS];
	uint32_t id[CACHED_PLANS];
	uint32_t used[CACHED_PLANS]; /* by entries below this one */
};

#define NO_ID (~0u)

struct block {
	plan_cache cache;
	entry ring[DEPTH];
	uint64_t fetched[DEPTH]; /* gates: it is there, it has been run */
	uint64_t executed[DEPTH];
	air_res_buffer buffers[CACHED_BUFFERS];
	volatile uint32_t published;
	uint32_t rate;	     /* nanoseconds a tick, times 2^24 */
	uint64_t tick, time; /* of the same moment */
	uint32_t served;     /* when nothing will be fetched any more */
	uint32_t reason;
	uint64_t busy;
	/* of a leader: whether the helpers are its own, and what it knows then
	 */
	bool owner;
	uint32_t helpers, seq, done;
	uint32_t shares;
	uint32_t ahead; /* the entry that was posted ahead; or NO_ID */
	uint32_t at;	/* the entry that is shared */
	bool in_run;
	uint32_t seen; /* of a helper: number of the job */
	/* what the block was told to do */
	uint64_t word[4];
	uint64_t job[AIR_RES_JOB_WORDS];
	air_res_plan plan;
	air_res_channel channel;
};

/*
 * Not handed on by reference: accesses through one do not know that it is
 * shared memory, and take longer.
 */
static __shared__ __align__(16) block self;

/*
 * What serve() serves: @first and the three behind it, then the four from
 * @first + 4 * @stride on, and so forth. So the blocks of a run read lines that
 * are neighbours, and publish four at a time.
 */
struct service {
	uint64_t first;
	uint64_t stride;
	uint64_t count;	  /* at most so many */
	air_res_job *run; /* one of many blocks in a run; else NULL */
	uint32_t leader;  /* or NOBODY: a helper */
	uint32_t tag;
};

#define NOBODY (~0u)

__device__ __forceinline__ uint64_t index_of(const service &sv, uint32_t m)
{
	return sv.first + (m & ~3u) * sv.stride + (m & 3);
}

/* What the kernel was launched with, and where things are. */
struct world {
	air_res_params p;
	air_res_host *host;
	air_res_job *job;
	air_res_state *state;
	uint64_t *next;
};

/*
 * In shared memory, as what a thread keeps in local memory is forgotten with
 * the first-level cache and has a long way then.
 */
static __shared__ world g;

/* Scratch of operators. */
static __shared__ __align__(16) unsigned char scratch[AIR_RES_SHARED];

/* -------------------------------------------------------------- fetching */

__device__ air_res_body body_of(uint32_t op)
{
	switch (op) {
#define CASE(name)                                                             \
	case AIR_OP_##name:                                                    \
		return air_run_##name;
		AIR_OPS(CASE)
#undef CASE
	}
	return NULL;
}

__device__ air_res_body small_of(uint32_t op)
{
	switch (op) {
#define CASE(name)                                                             \
	case AIR_OP_##name:                                                    \
		return air_small_##name;
		AIR_OPS(CASE)
#undef CASE
	}
	return NULL;
}

/* As a lane sees it; only all eight of them know about the whole. */
struct fetched_slot {
	bool valid; /* the word is there */
	bool ours;  /* an entry can be made of it */
	bool unordered;
	bool cached;
	uint64_t plan;
	air_res_body run;
	uint32_t block, blocks;
	uint32_t how, id;
	uint64_t addr; /* of this lane's operand */
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
		bool kept =
			lane == 0 && (int32_t)(c.used[at] - self.published) > 0;
		uint64_t home =
			load_gpu((const uint64_t *)self.channel.plans + id);

		kept |= s.cached && place == at;
		if (home && !__any_sync(~0u, kept)) {
			uint64_t *to = (uint64_t *)&c.plan[at];
			const uint64_t *from = (const uint64_t *)home;

#pragma unroll 4
			for (uint32_t k = lane; k < sizeof(*c.plan) / 8;
			     k += 32)
				to[k] = load_gpu(from + k);
			__syncwarp();
			if (lane == 0) {
				c.id[at] = id;
				c.home[at] = home;
				c.run[at] = c.plan[at].vectors
						    ? small_of(c.plan[at].op)
						    : body_of(c.plan[at].op);
				c.slot[at][0] = ~0ull;
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
 * What nearly all slots are: a NOP, or a descriptor and buffers at hand with
 * nothing wrong about them. All that it takes is read at once, so that one trip
 * to shared memory is waited for and not one after the other. What is not ours
 * here is left to check_slot().
 */
__device__ __forceinline__ fetched_slot quick_slot(uint64_t word, uint8_t lap)
{
	uint32_t lane = threadIdx.x % 32, w = lane % 8, group = lane & ~7u;
	uint64_t payload = airunner_payload(word);
	uint64_t head = __shfl_sync(~0u, payload, group);
	uint64_t first = __shfl_sync(~0u, payload, group + 1);
	uint32_t flags = airunner_sqe_flags(head), id = airunner_sqe_id(head);
	uint32_t handle = airunner_ref_handle(payload);
	uint32_t operand = w - 1 < AIRUNNER_MAX_TENSORS ? w - 1 : 0;
	uint32_t place = id % CACHED_PLANS;
	const air_res_plan &plan = self.cache.plan[place];
	const air_res_buffer buf = self.buffers[handle % CACHED_BUFFERS];
	const uint64_t y_base =
		self.buffers[airunner_ref_handle(first) % CACHED_BUFFERS].addr;
	const air_res_extent x = plan.extent[operand];
	const uint64_t y_below = plan.extent[0].below;
	const uint64_t y_above = plan.extent[0].above;
	bool known = self.cache.id[place] == id, many = plan.tiles > 1;
	uint32_t vectors = plan.vectors, variant = plan.variant;
	uint64_t home = self.cache.home[place];
	fetched_slot s = {};

	uint64_t size = buf.size & ~AIR_RES_HOST_MEMORY;
	uint64_t offset = airunner_ref_offset(payload);
	uint64_t at = buf.addr + offset,
		 y = y_base + airunner_ref_offset(first);
	bool nop = airunner_sqe_opcode(head) == AIRUNNER_OP_NOP;
	bool absent = x.above == AIR_RES_ABSENT;
	bool none = payload == AIRUNNER_REF_NONE;
	bool is_operand = w >= 1 && w <= AIRUNNER_MAX_TENSORS && !nop;
	bool there = is_operand && !absent && !none;
	uint64_t mask = vectors ? 15 : x.align_mask;
	bool inside = handle < CACHED_BUFFERS && size && offset <= size &&
		      x.below <= offset && x.above <= size - offset &&
		      !(at & mask);
	bool apart = w == 1 || !x.above || !y_above ||
		     y_above == AIR_RES_ABSENT || at - x.below >= y + y_above ||
		     y - y_below >= at + x.above || (at == y && x.in_place);

	s.valid = airunner_word_lap(word) == lap;
	if (w == 0)
		s.ours = !(flags & ~AIRUNNER_SQE_FLAGS) &&
			 !airunner_sqe_timeout_ms(head) &&
			 (nop ? !id
			      : airunner_sqe_opcode(head) == AIRUNNER_OP_EXEC &&
					  known);
	else if (there)
		s.ours = inside && apart;
	else if (is_operand)
		s.ours = absent ? none || !payload : !x.above;
	else
		s.ours = !payload || (w == AIRUNNER_WORD_WORKSPACE && !nop);
	s.unordered = (flags & AIRUNNER_SQE_UNORDERED) &&
		      !(flags & AIRUNNER_SQE_BARRIER) && (nop || !many);
	s.cached = !nop;
	s.id = id;
	s.how = !nop && many ? SHARED : 0;
	/* helpers do not see this block's shared memory */
	s.plan = nop ? 0 : many ? home : (uint64_t)&plan;
	s.run = self.cache.run[place];
	s.block = many ? place + 1 : vectors;
	s.blocks = vectors ? variant : 1;
	s.addr = there ? at : 0;
	s.host_memory = there && buf.size & AIR_RES_HOST_MEMORY;
	return s;
}

/*
 * Eight lanes a slot: each checks the word it has read. Checks are those of
 * air_plan_bind(), in its order; what cannot be told here is not ours.
 */
__device__ __noinline__ fetched_slot check_slot(uint64_t word, uint8_t lap)
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
		s.run = body_of(((const air_res_plan *)s.plan)->op);
		s.blocks = 1;
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
				const uint64_t *p =
					(const uint64_t *)ch.buffers +
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

	uint32_t bad =
		__ballot_sync(~0u, status != AIRUNNER_S_OK || foreign) & mine;
	uint32_t at = bad ? __ffs(bad) - 1 : lane;

	s.status = __shfl_sync(~0u, status, at);
	s.ours = !__shfl_sync(~0u, (int)foreign, at);
	s.detail = s.status == AIRUNNER_S_OK ? 0 : at % 8;
	if (s.status != AIRUNNER_S_OK)
		s.plan = 0;
	/* helpers do not see this block's shared memory */
	else if (s.cached && s.how & SHARED) {
		s.plan = self.cache.home[id % CACHED_PLANS];
		s.block = 1 + id % CACHED_PLANS;
	}
	return s;
}

/*
 * Entries of slots that are word for word what was made an entry of before:
 * most of what a program submits again and again. Returns how many of the four
 * slots were: all that are there, or none.
 */
__device__ __forceinline__ uint32_t same_slots(uint64_t word, uint8_t lap,
					       uint32_t n)
{
	uint32_t lane = threadIdx.x % 32, w = lane % 8, slot = lane / 8;
	uint64_t payload = airunner_payload(word);
	uint32_t place =
		__shfl_sync(~0u, (uint32_t)(payload >> 32), lane & ~7u) %
		CACHED_PLANS;
	const uint64_t *made = self.cache.made[place];
	uint64_t was = self.cache.slot[place][w], m0 = made[w];
	uint64_t m1 = made[w + AIRUNNER_SQE_WORDS];
	bool valid = airunner_word_lap(word) == lap;
	uint32_t there = __ballot_sync(~0u, valid);
	uint32_t same = __ballot_sync(~0u, valid && was == payload);
	uint32_t here = ~there ? (__ffs(~there) - 1) / 8 : 4;

	if (!here || (here < 4 ? same & ((1u << 8 * here) - 1) : same) !=
			     (here < 4 ? (1u << 8 * here) - 1 : ~0u))
		return 0;
	if (slot < here) {
		uint64_t *e = (uint64_t *)&self.ring[(n + slot) % DEPTH];

		e[w] = m0;
		if (w + AIRUNNER_SQE_WORDS < ENTRY_WORDS)
			e[w + AIRUNNER_SQE_WORDS] = m1;
		if (w == 0)
			self.cache.used[place] = n + 4;
	}
	return here;
}

/*
 * Begin to read what the host says, a word a lane: what may end the service,
 * and, above ASK_ATTACH, which rings other leaders are to take.
 */
#define ASK_ATTACH 8

__device__ __forceinline__ uint64_t ask_host(const service &sv)
{
	uint32_t lane = threadIdx.x % 32;
	const uint64_t *p = lane == 0	? &g.host->stop
			    : lane == 1 ? &g.host->recall[sv.leader]
					: &g.host->attach[lane - ASK_ATTACH];

	if (sv.leader == NOBODY || lane >= ASK_ATTACH + AIR_RES_LEADERS ||
	    (lane > 1 && lane < ASK_ATTACH))
		return 0;
	return load_sys(p);
}

__device__ __forceinline__ bool called_back(const service &sv, uint64_t said)
{
	uint64_t stop = __shfl_sync(~0u, said, 0);
	uint64_t recall = __shfl_sync(~0u, said, 1);

	return stop || (airunner_word_lap(recall) == sv.tag &&
			airunner_payload(recall));
}

/* Pass on what is new to leaders that wait. @known: what this lane passed on */
__device__ __forceinline__ void pass_on(uint64_t said, uint64_t &known)
{
	uint32_t lane = threadIdx.x % 32;

	if (!__any_sync(~0u, lane >= ASK_ATTACH && said != known))
		return;
	fence_sys();
	if (lane >= ASK_ATTACH && lane < ASK_ATTACH + AIR_RES_LEADERS)
		store_release(&g.state->attach[lane - ASK_ATTACH], said);
	known = said;
}

/* Entry @n was made of slot 0 of this round. */
__device__ __forceinline__ void remember(uint64_t word, uint32_t place,
					 uint32_t n)
{
	uint32_t w = threadIdx.x % 32;
	const uint64_t *e = (const uint64_t *)&self.ring[n % DEPTH];

	place = __shfl_sync(~0u, place, 0);
	if (w < AIRUNNER_SQE_WORDS) {
		self.cache.slot[place][w] = airunner_payload(word);
		self.cache.made[place][w] = e[w];
		if (w + AIRUNNER_SQE_WORDS < ENTRY_WORDS)
			self.cache.made[place][w + AIRUNNER_SQE_WORDS] =
				e[w + AIRUNNER_SQE_WORDS];
	}
	__syncwarp();
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
__device__ void fetch_loop(const service sv)
{
	uint32_t lane = threadIdx.x % 32, w = lane % 8, slot = lane / 8;
	const uint64_t *sq = (const uint64_t *)self.channel.sq;
	uint32_t order = self.channel.order;
	uint64_t mask = (1ull << order) - 1;
	uint64_t active = gpu_ticks();
	uint64_t known = 0;
	uint32_t n = 0, polls = 0, streak = 0, reason = 0, want = FEW;
	bool fresh = false, idle = false, alone = false;

#define READ(j)                                                                \
	load_sys(sq +                                                          \
		 (index_of(sv, n + 4 * (j) + slot) & mask) *                   \
			 AIRUNNER_SQE_WORDS +                                  \
		 w)

	while (!reason) {
		uint64_t word[BATCH / 4], end = ~0ull, said = 0;
		uint32_t got = 0;
		bool ask = idle || ++polls % ASK_EVERY == 0;
		bool wait = !sv.run && want == FEW;

		if (n >= sv.count) {
			reason = SERVED_COUNT;
			break;
		}
		if (n >= MOST) {
			if (sv.run && lane == 0)
				atomicMin(&sv.run->end, (ull)index_of(sv, n));
			reason = sv.run ? SERVED_END : SERVED_COUNT;
			break;
		}
		while (n + want - self.published > DEPTH)
			spin();
		if (sv.run)
			end = load_gpu((const uint64_t *)&sv.run->end);
		/* in the same round trip of the bus as the slots */
		if (ask)
			said = ask_host(sv);
		if (wait) {
			uint64_t i = index_of(sv, n + slot);

			word[0] = await_slot(
				sq + (i & mask) * AIRUNNER_SQE_WORDS + w,
				airunner_lap(i, order));
		} else if (alone && slot) {
			/*
			 * All blocks of a run wait for a slot each: no more
			 * than these may be on the bus, or it is full.
			 */
			word[0] = airunner_word(
				0, airunner_lap(index_of(sv, n + slot), order) -
					   1);
		} else {
#pragma unroll
			for (uint32_t j = 0; j < BATCH / 4; j++)
				if (4 * j < want)
					word[j] = READ(j);
		}
		if (sv.run) {
			end = __shfl_sync(~0u, end, 0);
			if (index_of(sv, n) >= end) {
				reason = SERVED_END;
				break;
			}
			/* now that one is there: how many are? */
			if (alone &&
			    (uint8_t)__ballot_sync(
				    ~0u, airunner_word_lap(word[0]) ==
						 airunner_lap(index_of(sv, n),
							      order)) == 0xff) {
				alone = false;
				continue;
			}
		}
		/* not unrolled: one copy of the checks is enough */
#pragma unroll 1
		for (uint32_t j = 0; 4 * j < want; j++) {
			uint64_t i = index_of(sv, n + slot);
			uint64_t mine = j == 0	 ? word[0]
					: j == 1 ? word[1]
					: j == 2 ? word[2]
						 : word[3];
			bool open = i < end && n + slot < sv.count;
			fetched_slot s;
			uint32_t there, ours, good, here;
			bool quick;

			/* only whole groups go on to the next */
			if (reason || got != 4 * j)
				break;
			if (!sv.run && sv.count == ~0ull) {
				here = same_slots(mine, airunner_lap(i, order),
						  n);
				if (here) {
					if (j == 0)
						renew_cache(&self.served);
					__syncwarp();
					if (slot < here && w == 0)
						gate_open(&self.fetched[(n +
									 slot) %
									DEPTH]);
					streak = 0;
					got += here;
					n += here;
					continue;
				}
			}
			s = quick_slot(mine, airunner_lap(i, order));
#define LOOK()                                                                 \
	there = __ballot_sync(~0u, s.valid);                                   \
	ours = __ballot_sync(~0u, s.ours);                                     \
	good = there & ours &                                                  \
	       __ballot_sync(~0u, open && (!sv.run || s.unordered));           \
	/* slots in front of the first that is not taken */                    \
	here = ~good ? (__ffs(~good) - 1) / 8 : 4;
			LOOK()
			quick = !(here < 4 &&
				  (there >> (here * 8) & 0xff) == 0xff);
			if (!quick) {
				s = check_slot(mine, airunner_lap(i, order));
				LOOK()
			}
#undef LOOK
			if (!sv.run && sv.count == ~0ull) {
				if (__all_sync(~0u, s.valid && s.ours &&
							    s.unordered))
					streak += 4;
				else
					streak = 0;
				/* from here on all blocks take their share */
				if (streak >= RUN_LENGTH) {
					reason = SERVED_RUN;
					break;
				}
			}
			uint32_t hosts = __ballot_sync(
				~0u, slot < here && s.host_memory);

			if (hosts)
				fence_sys();
			if (slot < here) {
				entry &e = self.ring[(n + slot) % DEPTH];

				if (w >= 1 && w <= AIRUNNER_MAX_TENSORS + 1)
					e.ops.addr[w - 1] = s.addr;
				if (w == 0) {
					e.plan = s.plan;
					e.run = s.run;
					e.block = s.block;
					e.blocks = s.blocks;
					e.how = s.how |
						(hosts >> slot * 8 & 0xff ? HOST
									  : 0);
					e.status = s.status;
					e.detail = s.detail;
				}
				if (w == 0 && s.how & TIMED) {
					e.timeout_ms = s.timeout_ms;
					e.fetched = gpu_now();
				}
				if (w == 0 && s.cached)
					self.cache.used[s.id % CACHED_PLANS] =
						n + 4;
			}
			if (j == 0 && here)
				renew_cache(&self.served);
			__syncwarp();
			if (quick && here &&
			    !__any_sync(~0u, slot == 0 && (s.unordered ||
							   s.host_memory)))
				remember(mine, s.id % CACHED_PLANS, n);
			if (slot < here && w == 0)
				gate_open(&self.fetched[(n + slot) % DEPTH]);
			/* why it was not taken, if it is there at all */
			if (here < 4 && (there >> (here * 8) & 0xff) == 0xff) {
				uint64_t at = index_of(sv, n + here);

				if (sv.run) {
					if (lane == 0)
						atomicMin(&sv.run->end,
							  (ull)at);
					reason = SERVED_END;
				} else if ((ours >> (here * 8) & 0xff) !=
					   0xff) {
					reason = AIR_RES_FOREIGN;
				}
			}
			got += here;
			n += here;
		}
		/*
		 * A release waits for what this multiprocessor reads over the
		 * bus meanwhile. Whoever waits for the answer sends nothing
		 * before it: let it go first, unless it takes long.
		 */
		if (got && got != want) {
			uint64_t since = gpu_ticks();

			while (self.published != n &&
			       gpu_ticks() - since < PAUSE_TICKS)
				spin();
		}
		want = got == want ? BATCH : FEW;
		alone = sv.run && !got;
		fresh |= got != 0;
		idle = wait && !got;
		if (reason || !ask)
			continue;

		uint64_t now = __shfl_sync(~0u, gpu_ticks(), 0);
		bool back = called_back(sv, said);

		pass_on(said, known);
		/* another leader wants the helpers: it shall not wait for ever
		 */
		if (sv.run && sv.leader != NOBODY &&
		    __any_sync(~0u, load_acquire(&g.job->waiting)))
			back = true;

		if (fresh)
			active = now;
		fresh = false;

		uint64_t quiet = (now - active) * 1000 / g.p.mhz;

		if (sv.run && (back || quiet > RUN_IDLE_NS)) {
			if (lane == 0)
				atomicMin(&sv.run->end, (ull)index_of(sv, n));
			reason = SERVED_END;
		} else if (back) {
			reason = AIR_RES_RECALLED;
		} else if (!sv.run && quiet > g.p.idle_ns) {
			reason = AIR_RES_IDLE;
		}
	}
#undef READ
	while (n + 1 - self.published > DEPTH)
		spin();
	__syncwarp();
	if (lane == 0) {
		entry &e = self.ring[n % DEPTH];

		e.plan = 0;
		e.how = HALT;
		self.reason = reason;
		self.served = n;
		gate_open(&self.fetched[n % DEPTH]);
	}
}

/* --------------------------------------------------------------- working */

/* Barrier 1 is theirs: see air_sync(). */
__device__ __forceinline__ void sync_workers(void)
{
	air_sync(air_part{ 0, 1, threadIdx.x, AIR_RES_WORKERS, NULL });
}

/*
 * One leader at a time has the helpers. It keeps them while it has more to do,
 * until another one asks for them. By thread 0.
 */
__device__ void take_helpers(void)
{
	air_res_job *job = g.job;

	if (self.owner)
		return;
	if (!take_acquire(&job->lock)) {
		atomicAdd(&job->waiting, 1);
		while (!take_acquire(&job->lock))
			__nanosleep(100);
		atomicSub(&job->waiting, 1u);
	}
	self.owner = true;

	/* two words each, read at once */
	uint64_t helpers = load_gpu((const uint64_t *)&g.state->helpers);
	uint64_t lock_seq = load_gpu((const uint64_t *)&job->lock);
	uint64_t done = load_gpu((const uint64_t *)&job->done);

	self.helpers = (uint32_t)helpers;
	self.seq = (uint32_t)(lock_seq >> 32);
	self.done = (uint32_t)done;
}

__device__ void leave_helpers(void)
{
	if (!self.owner)
		return;
	self.owner = false;
	g.job->seq = self.seq;
	store_release(&g.job->lock, 0u);
}

#define JOB_PAYLOAD ((1ull << AIR_RES_JOB_BITS) - 1)

/* Of the job with the number self.seq. */
__device__ __forceinline__ uint64_t job_word(uint64_t payload)
{
	return (uint64_t)self.seq << AIR_RES_JOB_BITS | (payload & JOB_PAYLOAD);
}

__device__ __forceinline__ uint32_t blocks_of(uint64_t what)
{
	return (uint32_t)(what >> 8) & 0xffff;
}

/*
 * By the first warp: give the helpers a job. Everything the block has written
 * before is visible to who sees the words, unless it is posted ahead. Each lane
 * has one of them.
 */
__device__ void post_job(uint64_t payload, bool ahead)
{
	uint32_t lane = threadIdx.x % 32;

	if (lane == 0)
		self.seq++;
	__syncwarp();
	if (lane == AIR_RES_JOB_KIND)
		payload |= (uint64_t)(self.seq >> 16) << 24 |
			   (ahead ? AIR_RES_JOB_AHEAD : 0);
	if (lane >= AIR_RES_JOB_WORDS)
		return;
	if (ahead)
		store_gpu(&g.job->word[lane], job_word(payload));
	else
		store_release(&g.job->word[lane], job_word(payload));
}

/* By thread 0: @n helpers have done their shares. */
__device__ void await_helpers(uint32_t n)
{
	uint64_t both;

	self.done += n;
	do
		both = load_acquire((const uint64_t *)&g.job->done);
	while ((uint32_t)both != self.done);
	if (both >> 32)
		leave_helpers();
}

__device__ __forceinline__ bool is_gemv(const air_res_plan *plan,
					const air_operands *ops)
{
	return plan->gemv && !((ops->addr[1] | ops->addr[2]) % 16);
}

/*
 * By all working threads: share @block of @blocks. @ahead: operators before it
 * have not all ended.
 */
__device__ __forceinline__ void run_share(const air_res_plan *plan,
					  const air_operands *ops,
					  uint32_t block, uint32_t blocks,
					  bool ahead)
{
	if (is_gemv(plan, ops)) {
		air_gemv(plan, ops, block, blocks, scratch, ahead);
		return;
	}
	if (ahead && block)
		air_go();
	body_of(plan->op)(plan, ops, block, blocks, scratch);
}

__device__ __forceinline__ const air_res_plan *plan_of(const entry &e)
{
	return e.how & SHARED && e.block ? &self.cache.plan[e.block - 1]
					 : (const air_res_plan *)e.plan;
}

__device__ __forceinline__ uint32_t shares_of(const air_res_plan *plan)
{
	return plan->tiles < self.helpers + 1 ? plan->tiles : self.helpers + 1;
}

/* What the first warp posts of an operator that is shared. */
__device__ __forceinline__ uint64_t share_word(const entry &e, uint32_t shares)
{
	uint32_t lane = threadIdx.x % 32;

	if (lane == AIR_RES_JOB_KIND)
		return AIR_RES_SHARE | shares << 8;
	if (lane == AIR_RES_JOB_PLAN)
		return e.plan;
	return lane < AIR_RES_JOB_WORDS
		       ? e.ops.addr[lane - AIR_RES_JOB_OPERANDS]
		       : 0;
}

/*
 * By the first warp, at entry @i, which is shared: the next one that is, if it
 * is known, with all in front of it, and can be posted ahead: a matrix that is
 * read early is of none of the operators between, nor of this one. Else NO_ID.
 * Helpers that have no share of this one do not know what others have written.
 */
__device__ uint32_t find_ahead(uint32_t i)
{
	uint32_t lane = threadIdx.x % 32, k = i + 1 + lane;
	const entry &mine = self.ring[k % DEPTH];
	bool there = lane < LOOK_AHEAD &&
		     gate_passed(&self.fetched[k % DEPTH], k / DEPTH);
	bool shared = there && mine.how & SHARED && mine.plan;
	bool fit = shared && mine.how == SHARED && mine.block;
	uint32_t known = __ballot_sync(~0u, there);
	uint32_t found = __ballot_sync(~0u, shared);
	uint32_t fits = __ballot_sync(~0u, fit);
	uint32_t first = found & -found;

	/* helpers that wait for one cannot do another before it */
	if (!(first & fits) || (known & (first - 1)) != first - 1)
		return NO_ID;

	const uint32_t next = i + __ffs(found);
	const entry &e = self.ring[next % DEPTH];
	const air_res_plan *plan = plan_of(e);

	if (shares_of(plan) > self.shares)
		return NO_ID;
	if (!plan->gemv)
		return next;

	const air_matmul_params &p = *(const air_matmul_params *)plan->params;
	const uint32_t operand = p.swapped ? 1 : 2;
	const entry &before = self.ring[(i + lane) % DEPTH];
	bool writes = false;

	if (i + lane < next && before.plan) {
		const air_res_extent &y = plan_of(before)->extent[0];
		const air_res_extent &b = plan->extent[operand];
		uint64_t y_at = before.ops.addr[0], b_at = e.ops.addr[operand];

		writes = y_at - y.below < b_at + b.above &&
			 b_at - b.below < y_at + y.above;
	}
	return __any_sync(~0u, writes) ? NO_ID : next;
}

/*
 * An operator too large for one block, entry @i: the helpers take shares of it.
 * While they end, the next one of its kind is looked for: it is posted ahead,
 * so that they are ready for it and the memory is not idle while small
 * operators run between.
 */
__device__ void share(uint32_t i)
{
	const entry &e = self.ring[i % DEPTH];
	const air_res_plan *plan = plan_of(e);
	bool ahead = self.ahead == i;

	if (threadIdx.x == 0)
		self.at = i;
	if (ahead) {
		if (threadIdx.x == 0)
			store_release(&g.job->go, self.seq);
	} else {
		if (threadIdx.x == 0) {
			take_helpers();
			self.shares = shares_of(plan);
		}
		sync_workers();
		if (threadIdx.x < 32)
			post_job(share_word(e, self.shares), false);
	}
	run_share(plan, &e.ops, 0, self.shares, ahead);
	sync_workers();
	if (threadIdx.x < 32) {
		uint32_t next = find_ahead(self.at), shares = 0;
		uint64_t word = 0;

		if (next != NO_ID) {
			const entry &n = self.ring[next % DEPTH];

			shares = shares_of(plan_of(n));
			word = share_word(n, shares);
		}
		__syncwarp();
		if (threadIdx.x == 0)
			await_helpers(self.shares - 1);
		__syncwarp();
		if (!self.owner)
			next = NO_ID;
		if (next != NO_ID)
			post_job(word, true);
		if (threadIdx.x == 0) {
			self.ahead = next;
			self.shares = shares;
		}
	}
	sync_workers();
}

__device__ void work_loop(void)
{
	for (uint32_t i = 0;; i++) {
		entry &e = self.ring[i % DEPTH];

		/* nothing to do, or another leader wants them for long */
		if (threadIdx.x == 0 && self.owner && !self.in_run &&
		    self.ahead == NO_ID &&
		    (!gate_passed(&self.fetched[i % DEPTH], i / DEPTH) ||
		     (i % LOOK_EVERY == 0 && load_acquire(&g.job->waiting))))
			leave_helpers();
		while (!gate_await(&self.fetched[i % DEPTH], i / DEPTH))
			;

		const air_res_plan *plan = (const air_res_plan *)e.plan;
		air_res_body run = e.run;
		uint32_t how = e.how;

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
			if (__builtin_expect(how & SHARED, 0)) {
				share(i);
				/* registers are short there: see struct world
				 */
				i = self.at;
				how = self.ring[i % DEPTH].how;
			} else {
				run(plan, &e.ops, e.block, e.blocks, scratch);
			}
		}
		/* also keeps everybody within a round of the ring */
		sync_workers();
		if (threadIdx.x == 0)
			gate_open(&self.executed[i % DEPTH]);
		if (how & HALT)
			return;
	}
}

/* ------------------------------------------------------------- publishing */

/*
 * Times are this warp's: an operator begins when it is fetched and those before
 * it have ended; those that end between two looks share the time evenly. They
 * are counted in ticks, as to read the nanoseconds takes as long as a small
 * operator, and converted: a look at both clocks now and then tells how.
 */
__device__ __forceinline__ void set_clock(uint32_t rate)
{
	uint64_t time = gpu_now(), tick = gpu_ticks();

	if (!rate) {
		uint64_t took = tick - self.tick;

		rate = (uint32_t)(((time - self.time) << 24) / (took | 1));
	}
	__syncwarp();
	self.rate = rate;
	self.time = time;
	self.tick = tick;
	__syncwarp();
}

__device__ __forceinline__ uint64_t in_ns(uint64_t ticks)
{
	return (ticks * self.rate) >> 24;
}

__device__ __forceinline__ uint64_t time_of(uint64_t tick)
{
	return self.time + in_ns(tick - self.tick);
}

/* Until there is something to wait for; a good time to look at the clocks. */
__device__ void await_fetched(uint32_t n)
{
	for (;;) {
		bool there = gate_await(&self.fetched[n % DEPTH], n / DEPTH);

		if (__any_sync(~0u, there))
			break;
		if (__any_sync(~0u, gpu_ticks() - self.tick > CLOCK_TICKS))
			set_clock(0);
	}
	/* all lanes have to have seen it */
	while (!gate_passed(&self.fetched[n % DEPTH], n / DEPTH))
		spin();
}

__device__ void publish_loop(const service sv)
{
	uint64_t *cq = (uint64_t *)self.channel.cq;
	uint32_t order = self.channel.order;
	uint64_t mask = (1ull << order) - 1, start = gpu_ticks(), busy = 0;
	uint64_t start_ns;
	int64_t clock = g.p.clock;
	uint32_t lane = threadIdx.x % 32, n = 0;
	bool halt = false;

	set_clock((1000u << 24) / g.p.mhz);
	start_ns = time_of(start) + clock;
	while (!halt) {
		uint32_t k = n + lane;
		const entry &e = self.ring[k % DEPTH];
		uint64_t i = index_of(sv, k);
		uint64_t *cqe = cq + (i & mask) * AIRUNNER_CQE_WORDS;
		uint64_t tag = airunner_word(0, airunner_lap(i, order));

		if (!__all_sync(~0u, gate_passed(&self.fetched[n % DEPTH],
						 n / DEPTH))) {
			await_fetched(n);
			start = gpu_ticks();
			start_ns = time_of(start) + clock;
		}
		while (!gate_await(&self.executed[n % DEPTH], n / DEPTH))
			;

		bool mine = gate_passed(&self.executed[k % DEPTH], k / DEPTH);
		uint64_t now = gpu_ticks();
		uint32_t not_yet = ~__ballot_sync(~0u, mine);
		uint32_t done = not_yet ? __ffs(not_yet) - 1 : 32;

		mine = lane < done;
		halt = __any_sync(~0u, mine && e.how & HALT);
		mine &= !(e.how & HALT);
		/* what did nothing has nothing to make visible */
		bool release = __any_sync(~0u, mine && e.plan);
		uint64_t each = in_ns(now - start), from = start_ns;

		if (done > 1) {
			each /= done;
			from += lane * each;
		}
		if (mine) {
			uint64_t w0 =
				tag | airunner_cqe_word0((uint8_t)e.status,
							 (uint16_t)e.detail,
							 each);
			uint64_t w1 = tag | airunner_cqe_word1(from, each);

			busy += each;
			if (release)
				store_pair_release_sys(cqe, w0, w1);
			else
				store_pair_sys(cqe, w0, w1);
		}
		__syncwarp();
		n += done;
		if (lane == 0)
			self.published = n;
		start = now;
		start_ns = time_of(start) + clock;
		if (__any_sync(~0u, now - self.tick > 4 * CLOCK_TICKS))
			set_clock(0);
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

	if (threadIdx.x < 2 * CACHED_BUFFERS)
		((uint64_t *)self.buffers)[threadIdx.x] =
			threadIdx.x < 2 * n ? load_gpu(from + threadIdx.x) : 0;
	if (threadIdx.x < CACHED_PLANS) {
		self.cache.id[threadIdx.x] = NO_ID;
		self.cache.slot[threadIdx.x][0] = ~0ull;
	}
}

/* By all threads. Returns how many submissions were served; self.reason why. */
__device__ __noinline__ uint64_t serve(const service &sv)
{
	__syncthreads();
	if (threadIdx.x == 0) {
		self.published = 0;
		self.ahead = NO_ID;
		self.in_run = sv.run;
	}
	if (threadIdx.x < CACHED_PLANS)
		self.cache.used[threadIdx.x] = 0;
	if (threadIdx.x < DEPTH) {
		gate_init(&self.fetched[threadIdx.x]);
		gate_init(&self.executed[threadIdx.x]);
	}
	__syncthreads();
	if (threadIdx.x < AIR_RES_WORKERS)
		work_loop();
	else if (threadIdx.x < AIR_RES_WORKERS + 32)
		fetch_loop(sv);
	else
		publish_loop(sv);
	__syncthreads();
	if (threadIdx.x < DEPTH) {
		gate_end(&self.fetched[threadIdx.x]);
		gate_end(&self.executed[threadIdx.x]);
	}
	return self.served;
}

/*
 * A run of UNORDERED submissions from @first on: block k of n takes every n-th
 * four, beginning with the k-th. Returns the first index that is not part of
 * it;
 * *@skip: below this one some behind it have been served already.
 */
__device__ uint64_t lead_run(uint32_t me, uint32_t tag, uint64_t channel,
			     uint64_t first, uint64_t *skip,
			     uint64_t *completed)
{
	if (threadIdx.x == 0) {
		uint32_t most = (1u << self.channel.order) / RUN_SLOTS;

		take_helpers();
		self.shares = self.helpers + 1;
		if (self.shares > most)
			self.shares = most ? most : 1;
		store_sys((uint64_t *)&g.job->end, ~0ull);
	}
	__syncthreads();
	if (threadIdx.x < 32) {
		uint32_t lane = threadIdx.x;

		post_job(lane == AIR_RES_JOB_KIND
				 ? AIR_RES_RUN | self.shares << 8
			 : lane == AIR_RES_JOB_CHANNEL ? channel
			 : lane == AIR_RES_JOB_FIRST   ? first
						       : first >> 32,
			 false);
	}

	uint32_t blocks = self.shares;
	service sv = { first, blocks, ~0ull, g.job, me, tag };
	uint64_t n = serve(sv);

	if (threadIdx.x == 0) {
		uint64_t last = 0;

		g.next[0] = index_of(sv, (uint32_t)n);
		await_helpers(blocks - 1);
		for (uint32_t k = 0; k < blocks; k++) {
			uint64_t x = load_gpu(&g.next[k]);

			uint64_t past = x - first - 4 * k;

			if (k)
				n += past / (4 * blocks) * 4 +
				     past % (4 * blocks);
			/* who has served nothing is not ahead of anybody */
			last = past && x > last ? x : last;
		}
		self.word[0] = load_gpu((const uint64_t *)&g.job->end);
		self.word[1] = last;
		self.word[2] = n;
		leave_helpers();
	}
	__syncthreads();
	*skip = self.word[1];
	*completed += self.word[2];
	return self.word[0];
}

/* Thread 0 of leader 0, when no ring is attached: whether the kernel ends. */
__device__ bool may_end(uint64_t since)
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
	/* helpers look at this, too */
	atomicExch(&st->quit, AIR_RES_GO);
	return true;
}

/*
 * Thread 0: wait for a ring. False: the kernel ends. self.word[0], [1] are the
 * channel's place and the index to begin at.
 */
__device__ bool await_ring(uint32_t me, uint32_t tag)
{
	uint64_t since = gpu_now();

	for (uint32_t n = 0;; n++) {
		/*
		 * A leader that has a ring looks for all. Now and then this
		 * one does itself: that one may be busy for long.
		 */
		bool others = load_acquire(&g.state->attached);
		uint64_t attach = others && n % LOOK_EVERY
					  ? load_acquire(&g.state->attach[me])
					  : load_sys(&g.host->attach[me]);

		if (others)
			since = gpu_now();
		/* what was passed on may be as old as all tags */
		if (airunner_word_lap(attach) == tag)
			attach = load_sys(&g.host->attach[me]);
		if (airunner_word_lap(attach) == tag) {
			atomicAdd(&g.state->attached, 1);
			__threadfence();
			if (load_acquire(&g.state->quit) == AIR_RES_STAY) {
				/* also for what other kernels have written */
				fence_sys();
				self.word[0] = airunner_payload(attach);
				self.word[1] = airunner_payload(
					load_sys(&g.host->index[me]));
				return true;
			}
			atomicSub(&g.state->attached, 1);
		}
		if (load_acquire(&g.state->quit) == AIR_RES_GO ||
		    (me == 0 && may_end(since)))
			return false;
		__nanosleep(others ? 1000 : 200);
	}
}

/* Serve one attachment. */
__device__ void lead_ring(uint32_t me, uint32_t tag)
{
	air_res_mailbox *box = &g.host->mailbox[me];
	uint64_t channel = self.word[0], index = self.word[1];
	uint64_t completed = 0, skip = 0, run = 0, blocks = 1;
	uint32_t reason;

	do {
		service sv = { index, 1, ~0ull, NULL, me, tag };

		/* below skip, some were served in the run */
		if (index < skip) {
			if (index <
			    load_gpu(&g.next[(index - run) / 4 % blocks])) {
				index++;
				reason = SERVED_COUNT;
				continue;
			}
			sv.count = 1;
		}

		uint64_t n = serve(sv);

		completed += n;
		index += n;
		reason = self.reason;
		if (reason == SERVED_RUN) {
			run = index;
			index = lead_run(me, tag, channel, run, &skip,
					 &completed);
			blocks = self.shares;
		}
	} while (reason >= SERVED_COUNT);

	if (threadIdx.x == 0) {
		leave_helpers();
		store_sys(&box->stopped, airunner_word(index, tag));
		store_sys(&box->completed, airunner_word(completed, tag));
		store_sys(&box->busy_ns, airunner_word(self.busy, tag));
		store_release_sys(&box->reason, airunner_word(reason, tag));
		atomicSub(&g.state->attached, 1);
	}
}

__device__ void lead(uint32_t me)
{
	uint32_t tag = g.p.tag[me];

	self.owner = false;
	for (;; tag = air_res_next_tag(tag)) {
		if (threadIdx.x == 0) {
			self.word[3] = await_ring(me, tag);
			self.busy = 0;
			if (self.word[3])
				self.channel =
					((const air_res_channel *)
						 g.p.channels)[self.word[0]];
		}
		__syncthreads();
		if (!self.word[3])
			return;
		begin_channel();
		lead_ring(me, tag);
		__syncthreads();
	}
}

/* ------------------------------------------------------------------ helping */

/*
 * By the first warp: wait for a job that has a share for helper @rank, into
 * self.job and self.plan. @seen: number of the last one looked at. Who has a
 * share is waited for; who has none may be late, and see the words of two jobs
 * or never see one.
 */
__device__ uint32_t await_job(uint32_t rank, uint32_t seen)
{
	uint32_t lane = threadIdx.x;
	const uint64_t *mine = lane < AIR_RES_JOB_WORDS
				       ? &g.job->word[lane]
				       : (const uint64_t *)g.state;

	for (;; __nanosleep(20)) {
		uint64_t word = load_acquire(mine);
		uint32_t number = (uint32_t)(word >> AIR_RES_JOB_BITS);
		uint32_t first = __shfl_sync(~0u, number, 0);

		/* attached and quit are one word */
		if (__any_sync(~0u, lane == AIR_RES_JOB_WORDS &&
					    word >> 32 == AIR_RES_GO)) {
			if (lane == 0)
				self.job[AIR_RES_JOB_KIND] = AIR_RES_QUIT;
			return seen;
		}
		if (first == seen ||
		    !__all_sync(~0u,
				lane >= AIR_RES_JOB_WORDS || number == first))
			continue;
		seen = first;

		word &= JOB_PAYLOAD;

		uint64_t what = __shfl_sync(~0u, word, 0);
		uint64_t plan = __shfl_sync(~0u, word, AIR_RES_JOB_PLAN);

		if (rank + 1 >= blocks_of(what))
			continue;
		if (lane < AIR_RES_JOB_WORDS)
			self.job[lane] = word;
		if ((what & 0xff) == AIR_RES_SHARE)
#pragma unroll
			for (uint32_t k = 0; k < sizeof(self.plan) / 8; k += 32)
				if (k + lane < sizeof(self.plan) / 8)
					((uint64_t *)&self.plan)[k + lane] =
						load_gpu(
							(const uint64_t *)plan +
							k + lane);
		return seen;
	}
}

/*
 * By the warp that has nothing else to do in a share: until the job @what,
 * which was posted ahead, may go on.
 */
__device__ void await_go(uint64_t what, uint32_t seen, uint32_t rank)
{
	const air_operands *ops =
		(const air_operands *)&self.job[AIR_RES_JOB_OPERANDS];
	const bool gemv = is_gemv(&self.plan, ops) && threadIdx.x % 32 == 0;
	const uint64_t since = gpu_ticks();
	uint32_t n = 0;
	uint32_t number = (uint32_t)(what >> 24) << 16 | (seen & 0xffff);

	while (load_acquire(&g.job->go) != number)
		if (gemv)
			air_gemv_bring(&self.plan, ops, rank + 1,
				       blocks_of(what), since, &n);
	if (threadIdx.x % 32 == 0)
		air_gemv_going = 1;
	air_go();
}

__device__ void help(void)
{
	uint32_t seen = 0, rank = 0;

	self.owner = false;
	if (threadIdx.x < 32) {
		/* what was posted before is not for this helper */
		if (threadIdx.x == 0)
			seen = (uint32_t)(load_acquire(g.job->word) >>
					  AIR_RES_JOB_BITS);
		seen = __shfl_sync(~0u, seen, 0);
		if (threadIdx.x == 0)
			self.shares = atomicAdd(&g.state->helpers, 1);
	}
	__syncthreads();
	rank = self.shares;
	for (;;) {
		if (threadIdx.x < 32)
			seen = await_job(rank, seen);
		if (threadIdx.x == 0) {
			self.seen = seen;
			air_gemv_going = 0;
		}
		__syncthreads();

		uint64_t what = self.job[AIR_RES_JOB_KIND];
		uint32_t kind = what & 0xff, blocks = blocks_of(what);

		if (kind == AIR_RES_QUIT)
			return;
		if (kind == AIR_RES_RUN) {
			uint64_t first = (uint32_t)self.job[AIR_RES_JOB_FIRST] |
					 self.job[AIR_RES_JOB_FIRST + 1] << 32;
			service sv = { first + 4 * (rank + 1),
				       blocks,
				       ~0ull,
				       g.job,
				       NOBODY,
				       0 };

			if (threadIdx.x == 0)
				self.channel =
					((const air_res_channel *)g.p.channels)
						[self.job[AIR_RES_JOB_CHANNEL]];
			__syncthreads();
			begin_channel();

			uint64_t n = serve(sv);

			if (threadIdx.x == 0)
				g.next[rank + 1] = index_of(sv, (uint32_t)n);
		} else {
			bool ahead = what & AIR_RES_JOB_AHEAD;

			if (threadIdx.x < AIR_RES_WORKERS)
				run_share(&self.plan,
					  (const air_operands *)&self
						  .job[AIR_RES_JOB_OPERANDS],
					  rank + 1, blocks, ahead);
			else if (threadIdx.x < AIR_RES_WORKERS + 32 && ahead)
				await_go(what, self.seen, rank);
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
	if (threadIdx.x == 0)
		g = { p, (air_res_host *)p.host, (air_res_job *)p.job,
		      (air_res_state *)p.state, (uint64_t *)p.next };
	__syncthreads();
	if (blockIdx.x < p.leaders)
		lead(blockIdx.x);
	else
		help();
}

/* Lets the host compare its clock with the GPU's. */
extern "C" __global__ void air_resident_clock(uint64_t *out)
{
	store_release_sys(out, gpu_now());
}
