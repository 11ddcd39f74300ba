/* SPDX-License-Identifier: MIT */
/*
 * The worker: takes submissions off channels' rings, runs them on executors,
 * answers them. It knows nothing of how a region came to be mapped here: that
 * is the transport's business (libairunner's inproc, and in the daemon
 * serve_kernel.c and serve_unix.c), which adds channels and buffers to it.
 *
 *	struct air_worker *w;
 *	air_worker_create(&config, &w, &e);
 *	air_worker_start(w, &e);		// or air_worker_run(w, &e)
 *	air_worker_add_channel(w, &channel_config, &ch, &e);
 *	air_worker_add_buffer(ch, handle, &buffer, &e);
 *	... the client publishes, and calls air_worker_doorbell(ch) when
 *	    air_ring_must_wake() says so ...
 *	air_worker_remove_channel(ch, AIR_REMOVE_DRAIN); // -> ops->removed()
 *	air_worker_stop(w);
 *	air_worker_destroy(w);
 *
 * Threads: a worker is one thread, its own (start) or the caller's (run), plus
 * what its executors have. Every function here may be called from any thread
 * unless it says otherwise: a call from another thread is handed to the
 * worker's and waits for it. Callbacks (struct air_wchannel_ops, struct
 * air_source_ops) run on the worker's thread, must not block, and may call
 * the functions here, which then act at once.
 */
#ifndef AIR_WORKER_H
#define AIR_WORKER_H

#include <stdbool.h>
#include <stdint.h>

#include <airunner.h>

#include "include/uapi/airunner.h"
#include "ops/op.h"

struct air_worker;
struct air_wchannel;
struct air_source;

/**
 * struct air_worker_config - what a worker is made with
 * @name: thread name and log prefix; NULL for "airunner"
 * @threads: threads of the CPU executor, the worker's among them; 0 for one a
 *	core
 * @spin_ns: how long an empty ring is polled before the worker sleeps; 0 for
 *	the default (20 microseconds), ~0 to poll for ever
 * @async_spin_ns: how long a device that was given work is polled before the
 *	worker sleeps until it has done some: to be woken takes some ten
 *	microseconds more; 0 for the default (10 milliseconds, of which that
 *	is less than a hundredth)
 * @park_ns: idle time after which a resident executor leaves the GPU; 0 for
 *	the default (1 millisecond), ~0 for never
 * @large_bytes: launched operators that touch more than this, and users'
 *	kernels of more than 16384 threads, make a resident executor leave the
 *	GPU first; 0 for the default (8 MiB), ~0 for never
 * @large_alone: and it stays away until they have completed
 * @drain_ns: how long air_worker_stop() waits for asynchronous work; 0 for the
 *	default (5 seconds). What is still out then is answered
 *	AIR_WORKER_DIED
 * @executors: comma-separated list ("cpu", "cuda"), NULL for the environment
 *	variable AIRUNNER_EXECUTORS, else all that work here. One that is named
 *	and does not work is an error; without a list it is only logged
 *
 * Strings are copied.
 */
struct air_worker_config {
	const char *name;
	uint32_t threads;
	uint64_t spin_ns;
	uint64_t async_spin_ns;
	uint64_t park_ns;
	uint64_t large_bytes;
	bool large_alone;
	uint64_t drain_ns;
	const char *executors;
};

air_status air_worker_create(const struct air_worker_config *config,
			     struct air_worker **out, struct air_error *e);

/*
 * Start the worker's thread with all signals blocked, open the executors on
 * it, and return when it serves. On failure the thread has ended, and the
 * worker can only be destroyed.
 */
air_status air_worker_start(struct air_worker *w, struct air_error *e);

/*
 * The same on the calling thread: returns AIR_OK after air_worker_stop(), or
 * what kept it from starting.
 */
air_status air_worker_run(struct air_worker *w, struct air_error *e);

/*
 * Stop: nothing new is accepted, what has been published so far is run and
 * answered, all channels are removed (ops->removed() is called for each), the
 * executors are closed, the thread ends. Waits for that when the worker has a
 * thread of its own; else returns at once, and air_worker_run() returns when
 * it is done.
 */
void air_worker_stop(struct air_worker *w);

/*
 * The same without waiting and without locks: may be called from a signal
 * handler.
 */
void air_worker_stop_async(struct air_worker *w);

/* A worker that is not running. NULL does nothing. */
void air_worker_destroy(struct air_worker *w);

/*
 * What an executor of this worker can do. AIR_BAD_ARGUMENT for an unknown one;
 * for one that is not loaded present is 0 and name says why. The answer does
 * not change while the worker runs.
 */
air_status air_worker_caps(struct air_worker *w, air_executor executor,
			   struct air_backend_caps *caps);

/*
 * As air_quiet_begin() and air_quiet_end(). The second never waits; AIR_BUSY
 * of the first: the worker does not run.
 */
air_status air_worker_quiet_begin(struct air_worker *w);
air_status air_worker_quiet_end(struct air_worker *w);

/* --------------------------------------------------------------- channels */

/**
 * struct air_wchannel_ops - what a channel needs from its transport
 * @wake: completions were written and the client sleeps (its NEED_WAKEUP has
 *	been cleared). NULL: the worker counts cq_bell up and wakes the futex
 *	there, which works for threads and processes that share the region. One
 *	that adds to it calls air_wchannel_wake_futex() itself
 * @buffer_find: @handle is used and not known: the transport may call
 *	air_worker_add_buffer() now and return AIR_OK. NULL: never
 * @buffer_gone: the worker and its executors no longer touch the memory that
 *	was added as @handle. May be NULL. Called for every buffer, before
 *	@removed at the latest
 * @turn_over: the channel is served in turns: air_wchannel_ready() begins one,
 *	this call ends it. @flags: AIRUNNER_REPORT_IDLE (the ring is empty and
 *	NEED_WAKEUP is set in it), AIRUNNER_REPORT_MORE (the quantum is over
 *	and there is more; or, without a turn, something came that nobody rang
 *	for), 0 (time to account, the turn goes on). @device_ns and @completed
 *	since the last call. NULL: the worker serves the channel whenever it
 *	has work, fairly among its likes
 * @dead: the region makes no sense (or was reported by
 *	air_wchannel_kill()): what could be answered was answered
 *	AIR_CHANNEL_DEAD, and the channel is served no more. The transport
 *	tells the client, and removes the channel when it likes (not from
 *	within this call). May be NULL
 * @removed: the last call for a channel: nothing here refers to it or to the
 *	region any more, @ch is gone. Must be set
 */
struct air_wchannel_ops {
	void (*wake)(void *owner, struct air_wchannel *ch);
	air_status (*buffer_find)(void *owner, struct air_wchannel *ch,
				  uint32_t handle);
	void (*buffer_gone)(void *owner, uint32_t handle, void *host,
			    uint64_t size);
	void (*turn_over)(void *owner, struct air_wchannel *ch, uint32_t flags,
			  uint64_t device_ns, uint64_t completed);
	void (*dead)(void *owner, struct air_wchannel *ch,
		     const char *sentence);
	void (*removed)(void *owner);
};

/**
 * struct air_wchannel_config - a channel as the transport has it
 * @region: where it is mapped, page-aligned; stays the transport's
 * @size: bytes mapped, at least airunner_arena_offset(@order)
 * @order: log2 of the ring entries, from a source the client cannot write
 * @executor: what its descriptors use when they say AIR_EXEC_ANY
 * @ops: static
 * @owner: handed to @ops
 * @label: for the log: "pid 17 uid 1000"; NULL for none. Copied
 * @priority: enum airunner_priority; used with @best_prio only
 * @best_prio: a word in which an arbiter shows the best priority class that
 *	waits for this worker: a turn ends early when it is better (smaller)
 *	than the channel's. NULL for none
 *
 * The region may have been in use before: submissions that a former worker
 * left unanswered are answered AIR_WORKER_DIED when the channel is added.
 */
struct air_wchannel_config {
	void *region;
	uint64_t size;
	uint32_t order;
	air_executor executor;
	const struct air_wchannel_ops *ops;
	void *owner;
	const char *label;
	uint32_t priority;
	const uint32_t *best_prio;
};

/*
 * Take up a channel. It begins idle with NEED_WAKEUP set, and its ring is
 * looked at once. AIR_BAD_ARGUMENT, AIR_NO_MEMORY, AIR_CHANNEL_DEAD (the laps
 * in it make no sense), AIR_BUSY (the worker is stopping). On failure
 * ops->removed() is not called.
 */
air_status air_worker_add_channel(struct air_worker *w,
				  const struct air_wchannel_config *config,
				  struct air_wchannel **out,
				  struct air_error *e);

enum air_remove {
	/* Run and answer what has been published (at most one ring full). */
	AIR_REMOVE_DRAIN,
	/*
	 * Answer nothing more. What executors have begun ends, its result is
	 * dropped.
	 */
	AIR_REMOVE_DROP,
};

/*
 * Begin to remove a channel: ops->removed() follows, perhaps before this
 * returns. No other call for @ch may be made or be in progress, except
 * AIR_REMOVE_DROP after AIR_REMOVE_DRAIN from the worker's thread.
 */
void air_worker_remove_channel(struct air_wchannel *ch, enum air_remove how);

/*
 * There is work. Lock-free; makes a system call only if the worker sleeps. Not
 * for channels that are served in turns.
 */
void air_worker_doorbell(struct air_wchannel *ch);

/*
 * Begin a turn of up to @quantum_ns of a channel with ops->turn_over, of
 * priority @priority. From the worker's thread only.
 */
void air_wchannel_ready(struct air_wchannel *ch, uint64_t quantum_ns,
			uint32_t priority);

/*
 * A client that sleeps wants completions watched that a device writes
 * (AIRUNNER_SQ_WATCH). From the worker's thread only.
 */
void air_wchannel_watch(struct air_wchannel *ch);

/* The default of ops->wake: count cq_bell up, wake its futex. */
void air_wchannel_wake_futex(struct air_wchannel *ch);

/*
 * The region or a buffer of the channel cannot be relied on (its file was
 * truncated under us): the operator that runs now, and everything after, ends
 * with AIR_CHANNEL_DEAD. Async-signal-safe, any thread; @sentence is static.
 */
void air_wchannel_kill(struct air_wchannel *ch, const char *sentence);

/*
 * Make ready for air_worker_stream_wait(); later calls for the channel cost
 * nothing. AIR_UNSUPPORTED: no executor has streams.
 */
air_status air_worker_handover(struct air_wchannel *ch);

/*
 * As air_stream_wait(), for ring index @index. For channels that began with
 * index 0. AIR_BUSY, and nothing enqueued: the worker is in a call that waits
 * for streams. AIR_FULL, likewise: with one more that waits the device could do
 * nothing else.
 */
air_status air_worker_stream_wait(struct air_wchannel *ch, uint64_t index,
				  void *stream, struct air_error *e);

/* ---------------------------------------------------------------- buffers */

/**
 * struct air_wbuffer_config - memory that a channel's operands may lie in
 * @host: where it is mapped here; NULL for device memory
 * @size: bytes
 * @memory: AIR_HOST or AIR_DEVICE
 * @device: AIR_DEVICE: its address on the device
 */
struct air_wbuffer_config {
	void *host;
	uint64_t size;
	air_memory memory;
	uint64_t device;
};

/*
 * Make memory known as @handle (1..0xfffe). It stays the transport's, and must
 * stay mapped until ops->buffer_gone(). AIR_BAD_HANDLE (out of range or
 * taken), AIR_BAD_ARGUMENT, AIR_NO_MEMORY. That an executor cannot reach it is
 * not an error here: its operators then do not find the buffer.
 */
air_status air_worker_add_buffer(struct air_wchannel *ch, uint32_t handle,
				 const struct air_wbuffer_config *config,
				 struct air_error *e);

/*
 * Forget @handle: submissions taken from now on do not find it;
 * ops->buffer_gone() is called once those that use it have completed. A client
 * asks for the same through the ring (AIRUNNER_OP_BUFFER_RELEASE).
 * AIR_BAD_HANDLE: no such buffer.
 */
air_status air_worker_drop_buffer(struct air_wchannel *ch, uint32_t handle);

/* ---------------------------------------------------------------- sources */

/**
 * struct air_source_ops - a transport that lives on the worker's thread
 * @begin: the executors are open, serving begins
 * @fd: a descriptor that is readable when @serve has something to do, and not
 *	when it has not
 * @serve: do what there is to do without blocking
 * @quiesce: the worker stops: accept nothing new. The worker removes the
 *	channels itself
 * @end: all channels are gone. May be NULL
 */
struct air_source_ops {
	air_status (*begin)(struct air_source *s, struct air_worker *w,
			    struct air_error *e);
	int (*fd)(struct air_source *s);
	void (*serve)(struct air_source *s);
	void (*quiesce)(struct air_source *s);
	void (*end)(struct air_source *s);
};

/**
 * struct air_source - embed it in the transport's own struct
 * @ops: set by the transport
 * @pending: non-zero when @serve may have something to do: a busy worker calls
 *	it when this changes, and every 20 microseconds or so while it does
 *	not. NULL when only @fd tells: then by time alone
 * @due: set by the transport, on the worker's thread: call @serve soon, before
 *	the worker sleeps. Cleared by the worker before it does
 * @seen, @next: the worker's
 */
struct air_source {
	const struct air_source_ops *ops;
	const uint32_t *pending;
	bool due;
	uint32_t seen;
	struct air_source *next;
};

/* Before air_worker_start() or air_worker_run() only. */
void air_worker_add_source(struct air_worker *w, struct air_source *s);

/*
 * Run fn(arg) on the worker's thread, wait, and return what it returned.
 * AIR_BUSY without running it when the worker does not run.
 */
air_status air_worker_call(struct air_worker *w, air_status (*fn)(void *arg),
			   void *arg);

/* ---------------------------------------------------------------- logging */

enum air_log_level {
	AIR_LOG_ERROR,
	AIR_LOG_WARNING,
	AIR_LOG_INFO,
	AIR_LOG_DEBUG,
};

/*
 * Where the workers of this process log: events of a channel's or executor's
 * life, never one per operator. NULL (the default) drops it. @fn may be called
 * from any thread.
 */
void air_worker_set_log(void (*fn)(enum air_log_level level,
				   const char *text));

/*
 * What to do when a device is lost to this process for good and a new process
 * could have it (process_spent in executor.h). NULL (the default): nothing. @fn
 * may be called from any thread.
 */
void air_worker_set_spent(void (*fn)(void));

#endif /* AIR_WORKER_H */
