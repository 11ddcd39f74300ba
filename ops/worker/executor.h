/* SPDX-License-Identifier: MIT */
/*
 * The interface between the worker and what runs operators. The worker takes
 * submissions off the rings, keeps each channel's order, translates operands
 * and answers; an executor turns (plan, addresses) into finished work.
 *
 * All calls on an executor come from the worker's thread, from open() to
 * close(); stream_wait() comes from any. An executor that works asynchronously
 * calls services->work_done() from within its poll().
 *
 * Order. What the worker guarantees: run() is called in the order of
 * submission within a channel; AIRUNNER_SQE_BARRIER work only when nothing of
 * the channel is outstanding on any executor; work without
 * AIRUNNER_SQE_UNORDERED only when nothing of the channel is outstanding on
 * another executor. What the executor guarantees: work without UNORDERED takes
 * effect after all work of the channel that was given to it before, UNORDERED
 * work included; UNORDERED work may overlap anything given to it before.
 * BARRIER needs nothing from it.
 */
#ifndef AIR_EXECUTOR_H
#define AIR_EXECUTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "libairunner/ring.h"
#include "ops/plan.h"

struct air_exec;
struct air_wchannel;

#define AIR_EXECUTOR_ABI 3
#define AIR_EXECUTORS 4		/* length of arrays by enum airunner_executor */

/**
 * struct air_wbuffer - a buffer in the worker's per-channel table
 * @size: bytes
 * @memory: AIR_HOST or AIR_DEVICE
 * @host: where the worker's process maps it; NULL for device memory
 * @addr: by enum airunner_executor: its address for that executor; 0 when
 *	that executor cannot reach it
 * @priv: by enum airunner_executor: the executor's own (its registration)
 */
struct air_wbuffer {
	uint64_t size;
	air_memory memory;
	void *host;
	uint64_t addr[AIR_EXECUTORS];
	void *priv[AIR_EXECUTORS];
};

/**
 * struct air_launch - a launch of a user's kernel, already checked
 * @function: what the executor's function_get() returned
 * @grid: blocks
 * @block: threads
 * @shared_bytes: dynamic shared memory
 * @arg_bytes: length of @args
 * @args: argument bytes, with the addresses of buffers (in the executor's
 *	space, bounds-checked by the worker) in place
 *
 * Need not outlive the call of run().
 */
struct air_launch {
	void *function;
	uint32_t grid[3];
	uint32_t block[3];
	uint32_t shared_bytes;
	uint32_t arg_bytes;
	const void *args;
};

/**
 * struct air_work - one accepted submission on its way through an executor
 * @ch: its channel
 * @ch_priv: what the executor's channel_open() returned for the channel
 * @index: its ring index
 * @plan: what to run; stays valid until work_done(). NULL: @launch is
 * @launch: a user's kernel to launch, when @plan is NULL
 * @plan_priv: what the executor's plan() returned for it
 * @addr: operands and workspace in the executor's address space
 * @flags: AIRUNNER_SQE_*
 * @start: CLOCK_MONOTONIC ns. The worker sets the time at which it calls
 *	run(); an executor that knows better overwrites it before it reports
 * @end: ns; set by the executor before it reports. A synchronous one reads the
 *	clock once, here: the worker takes it as the start of what follows
 * @deadline: ns; an executor that can still stop the work and has not started
 *	it by then reports AIR_TIMEOUT. 0 for none
 * @next: for the executor's own lists
 * @priv, @alone: for the executor
 * @prev_out, @next_out, @executor: the worker's
 */
struct air_work {
	struct air_wchannel *ch;
	void *ch_priv;
	uint64_t index;
	const struct air_plan *plan;
	const struct air_launch *launch;
	void *plan_priv;
	uint64_t addr[AIRUNNER_MAX_TENSORS + 1];
	uint32_t flags;
	uint64_t start;
	uint64_t end;
	uint64_t deadline;
	struct air_work *next;
	void *priv;
	bool alone;
	struct air_work *prev_out, *next_out;
	uint32_t executor;
};

/**
 * struct air_handover - how far a channel has come, for a device's streams to
 *	wait on
 * @word: in host memory that the device reads; the worker stores @base + n
 *	there when the channel's first n submissions have completed
 * @base: the executor's; words are used again without being set back
 * @priv: the executor's own
 */
struct air_handover {
	uint64_t *word;
	uint64_t base;
	void *priv;
};

struct air_executor_config {
	uint32_t threads;	/* cpu: 0 for one a core */
	uint64_t spin_ns;	/* how long the worker polls before it sleeps */
	uint64_t park_ns;	/* resident: idle time until it parks */
	uint64_t large_bytes;	/* as in struct air_worker_config, 0 too */
	bool large_alone;
};

/**
 * struct air_executor_ops - what an executor implements
 * @abi: AIR_EXECUTOR_ABI
 * @id: which it is
 * @open: AIR_NO_DEVICE with a sentence when this machine cannot
 * @caps: fill in all but size
 * @channel_open: a channel's first descriptor, module or device buffer on this
 *	executor; *@priv is handed back in channel_close and as ch_priv. May be
 *	NULL
 * @buffer_map: make a host buffer reachable: set addr[id] and priv[id]. Called
 *	when a buffer is added to a channel that has been opened, and for all
 *	its buffers when it is. After an error operators of this executor do
 *	not find the buffer (AIR_BAD_HANDLE).
 *	NULL when addr[id] is the host address. @buf stays where it is until
 *	buffer_unmap() or buffer_free(): an executor that had to start its
 *	device afresh changes addr[] and priv[] in place. A client's device
 *	memory (AIR_DEVICE with addr[] already set) is announced likewise
 * @buffer_alloc: device memory of buf->size: set addr[id] (and those of
 *	executors that share it). NULL: has none
 * @plan: take a checked plan. May raise *@workspace, which begins as the
 *	plan's own. AIR_UNSUPPORTED with a sentence sends it to another
 *	executor. @why gets one sentence: why this executor, or why not
 * @unplan: no work with that plan is outstanding
 * @run: start the work. AIR_OK or an error: finished now (end is set);
 *	AIR_PENDING: work_done() follows. AIR_BUSY: no room now, called again
 *	after a poll() that reported something
 * @poll: report what has finished; number reported. NULL: never AIR_PENDING
 * @flush: run() calls of a burst are over. May be NULL
 * @outstanding: work whose work_done() is still to come. NULL: none ever
 * @wait_fd: a descriptor that becomes readable when poll() has something, so
 *	that the worker can sleep; -1: the worker must keep polling. Called
 *	before each sleep, as it may have to arm the descriptor; the worker
 *	calls poll() once more between that and sleeping. NULL: as -1
 *
 * Users' kernels; all NULL when the executor has no such thing
 * @module_load: take a copy of a cubin, PTX or fatbin
 * @module_unload: after the last work that uses it; its functions go with it
 * @function_get: look @record->name up and fill in what @record returns
 *
 * Executors that drain the ring themselves (cuda-resident); else all NULL.
 * A ring belongs to the worker or to the executor, never to both.
 * @desc_set: the channel's descriptor @id is @plan (a plan() result of this
 *	executor), NULL: is none of this executor's any more
 * @buffer_set: the channel's handle is @buf, NULL: is gone. Handle 0 is told
 *	like any other
 * @ring_attach: from ring index @index on the executor takes, runs and answers
 *	submissions itself. Only with nothing outstanding in the channel. The
 *	executor gives the ring back by services->ring_returned() from within
 *	poll(): when it meets a submission that is not for it, when the ring
 *	has been idle for a while, when it is recalled, or after a fault
 *	While a ring is lent the worker polls the executor, and wakes clients
 *	that sleep for completions the device has written. A submission given
 *	back untouched right after ring_attach() goes to run()
 * @ring_wanted: false: ring_attach() would refuse, so the channel need not be
 *	empty for asking it; run() serves meanwhile. NULL: ask ring_attach()
 * @ring_recall: give the ring back soon: a turn is over, something is to be
 *	let go, the channel is being removed or dead
 * @quiet: true: leave the device, wait until that is done, and stay away: rings
 *	come back with the next poll() and are refused (AIR_BUSY). AIR_TIMEOUT:
 *	it cannot leave, and has not been told to stay away. false: come back.
 *	Once each, in turns. NULL: there is nothing that stays on a device
 *
 * Streams of the caller's that wait for submissions; all NULL when the executor
 * has no such thing
 * @handover_open: fill in what a channel needs for it
 * @handover_close: nobody stores any more: let pass whoever waits
 * @stream_wait: what is enqueued in @stream from now on begins when the word
 *	has reached base + @n. From any thread, also while others call it.
 *	AIR_FULL: so many wait that the device could do nothing beside one more
 */
struct air_executor_ops {
	uint32_t abi;
	enum airunner_executor id;
	const char *name;
	air_status (*open)(const struct air_executor_config *config,
			   struct air_exec **out, struct air_error *e);
	void (*close)(struct air_exec *ex);
	void (*caps)(struct air_exec *ex, struct air_backend_caps *caps);
	air_status (*channel_open)(struct air_exec *ex,
				   struct air_wchannel *ch, void **priv);
	void (*channel_close)(struct air_exec *ex, void *priv);
	air_status (*buffer_map)(struct air_exec *ex,
				 struct air_wbuffer *buf);
	void (*buffer_unmap)(struct air_exec *ex, struct air_wbuffer *buf);
	air_status (*buffer_alloc)(struct air_exec *ex,
				   struct air_wbuffer *buf);
	void (*buffer_free)(struct air_exec *ex, struct air_wbuffer *buf);
	air_status (*plan)(struct air_exec *ex, const struct air_plan *plan,
			   void **priv, uint64_t *workspace,
			   struct air_error *why);
	void (*unplan)(struct air_exec *ex, void *priv);
	air_status (*run)(struct air_exec *ex, struct air_work *work);
	unsigned int (*poll)(struct air_exec *ex);
	void (*flush)(struct air_exec *ex);
	unsigned int (*outstanding)(struct air_exec *ex);
	int (*wait_fd)(struct air_exec *ex);

	air_status (*module_load)(struct air_exec *ex, const void *image,
				  uint64_t size, void **module,
				  struct air_error *e);
	void (*module_unload)(struct air_exec *ex, void *module);
	air_status (*function_get)(struct air_exec *ex, void *module,
				   struct airunner_function_record *record,
				   void **function, struct air_error *e);

	air_status (*desc_set)(struct air_exec *ex, void *ch_priv, uint32_t id,
			       void *plan);
	air_status (*buffer_set)(struct air_exec *ex, void *ch_priv,
				 uint32_t handle, struct air_wbuffer *buf);
	air_status (*ring_attach)(struct air_exec *ex, void *ch_priv,
				  struct air_ring *ring, uint64_t index);
	bool (*ring_wanted)(struct air_exec *ex);
	void (*ring_recall)(struct air_exec *ex, void *ch_priv);
	air_status (*quiet)(struct air_exec *ex, bool on);

	air_status (*handover_open)(struct air_exec *ex,
				    struct air_handover *h);
	void (*handover_close)(struct air_exec *ex, struct air_handover *h);
	air_status (*stream_wait)(struct air_exec *ex,
				  const struct air_handover *h, uint64_t n,
				  void *stream, struct air_error *e);
};

/**
 * struct air_ring_return - a ring on its way back to the worker
 * @index: the next submission to take; everything before it is answered,
 *	except what was outstanding at a fault, which the executor answers too
 * @completed: submissions answered since ring_attach()
 * @device_ns: time the device spent on them
 * @idle: given back because nothing came
 */
struct air_ring_return {
	uint64_t index;
	uint64_t completed;
	uint64_t device_ns;
	bool idle;
};

/**
 * struct air_worker_services - what an executor may ask of the worker
 * @work_done: the end of work that run() answered with AIR_PENDING. @detail:
 *	0, or the number of the operand at fault. The work is the worker's
 *	again. Only from within poll() or close()
 * @ring_returned: see ring_attach. Only from within poll() or close()
 * @block_begin: before a call that may return only when all streams of the
 *	device have come through. False: not now, as one of them waits for what
 *	this thread has yet to do. Such pairs may be nested
 * @block_end: after it, unless @block_begin said false
 * @now: CLOCK_MONOTONIC, ns. Any thread
 * @log: an event of the executor's life; never one per operator. Any thread
 * @process_spent: this process cannot have the device any more, whatever it
 *	does: work for it ends with AIR_DEVICE_LOST. A daemon ends, so as to be
 *	started again. Any thread
 *
 * A plug-in (libairunner-cuda.so) exports a function "air_executors" of type
 * air_executors_fn: it returns a NULL-terminated list in order of preference.
 * It links against nothing of libairunner: what it needs back comes in this
 * table, which lives as long as the process.
 */
struct air_worker_services {
	void (*work_done)(struct air_work *work, air_status status,
			  uint32_t detail);
	void (*ring_returned)(struct air_wchannel *ch,
			      const struct air_ring_return *ret);
	bool (*block_begin)(void);
	void (*block_end)(void);
	uint64_t (*now)(void);
	void (*log)(const char *fmt, ...)
		__attribute__((format(printf, 1, 2)));
	void (*process_spent)(void);
};

typedef const struct air_executor_ops *const *(*air_executors_fn)(
	const struct air_worker_services *services);

#endif /* AIR_EXECUTOR_H */
