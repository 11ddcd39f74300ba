/* SPDX-License-Identifier: MIT */
/*
 * What the files of the worker's core share; worker.h is what others see.
 *
 *	worker.c	the loop: who is served next, when to sleep
 *	mailbox.c	doorbells and calls from other threads, sleeping
 *	wchannel.c	a channel's life: added, idle, served, dead, removed
 *	dispatch.c	a submission is decoded, checked and run
 *	control.c	descriptors and buffers through the ring
 *	launch.c	users' kernels through the ring
 *	answer.c	completions, and what waits for earlier work
 *	buffers.c	a channel's memory
 *	executors.c	which executors there are, and which a descriptor gets
 *	plugin.c	where executors come from that are not built in
 *	quiet.c		executors stay off their devices for a while
 *	handover.c	streams of the caller's that wait for submissions
 *	exec_cpu.c	the CPU executor
 *	log.c		the log
 *
 * Everything here is used on the worker's thread only, except what is marked.
 */
#ifndef AIR_WORKER_INTERNAL_H
#define AIR_WORKER_INTERNAL_H

#include <pthread.h>

#include "libairunner/clock.h"
#include "libairunner/list.h"
#include "libairunner/membarrier.h"
#include "libairunner/ring.h"
#include "ops/worker/executor.h"
#include "ops/worker/worker.h"

#define air_likely(x)	__builtin_expect(!!(x), 1)
#define air_unlikely(x)	__builtin_expect(!!(x), 0)

/*
 * A channel may have this many descriptors, modules or functions: ids are
 * below it. A client could otherwise have the worker allocate without end.
 */
#define AIR_MAX_IDS	65536
#define AIR_MAX_IMAGE	(256u << 20)

/* How long one channel is served before the next, and in how many pieces. */
#define AIR_SLICE_NS	50000
#define AIR_SLICE_OPS	256
#define AIR_MAX_QUANTUM_NS	1000000000000ull
/* How often a busy worker asks a source that only its descriptor tells of. */
#define AIR_SOURCE_NS	20000

/* ----------------------------------------------------------------- tables */

/* id -> object, grown as ids are used. */
struct air_table {
	void **slot;
	uint32_t size;
};

static inline void *air_table_get(const struct air_table *t, uint32_t id)
{
	return air_likely(id < t->size) ? t->slot[id] : NULL;
}

/* False: no memory. NULL takes an object out and always succeeds. */
bool air_table_set(struct air_table *t, uint32_t id, void *object);
void air_table_free(struct air_table *t);

/* -------------------------------------------------------------- executors */

/**
 * struct air_wexec - an executor of this worker
 * @ops: NULL when absent
 * @ex: its state
 * @caps: what it said; for an absent one present is 0 and name says why
 */
struct air_wexec {
	const struct air_executor_ops *ops;
	struct air_exec *ex;
	struct air_backend_caps caps;
};

extern const struct air_executor_ops air_executor_cpu;
extern const struct air_worker_services air_services;

/* Open what config and environment ask for. */
air_status air_executors_open(struct air_worker *w, struct air_error *e);
void air_executors_close(struct air_worker *w);
/* Let executors report. True when one did. */
bool air_executors_poll(struct air_worker *w);
void air_executors_flush(struct air_worker *w);

/* quiet.c: let executors back when nobody wants them away any more. */
bool air_quiet_is_over(const struct air_worker *w);
void air_quiet_lift(struct air_worker *w);

/* ------------------------------------------------------------- handover.c */

/**
 * struct air_whandover - how far a channel has come, for streams
 * @wanted: how many submissions somebody waits for; atomic, others' threads
 *	raise it
 * @done: so many have completed in a row, and streams were told
 */
struct air_whandover {
	struct air_handover h;
	struct air_wchannel *ch;
	uint64_t wanted, done;
	uint32_t executor;
	struct air_list on_handovers;
};

/* Tell streams that wait of what has completed. */
void air_handover_pass(struct air_wchannel *ch);
/* The channel ends, or its executor does: let all pass. */
void air_handover_end(struct air_wchannel *ch);
void air_handovers_end(struct air_worker *w);
/*
 * Before a call of an executor that may wait for all streams of its device;
 * false: one of them waits for completions, so it is to be put off. The worker
 * makes another turn when none does any more. Pairs may be nested.
 */
bool air_block_begin(struct air_worker *w);
void air_block_end(struct air_worker *w);
/* worker.c: the same for the worker whose thread this is. */
bool air_block_here_begin(void);
void air_block_here_end(void);
/*
 * As air_worker_call(), again and again while @fn says AIR_PENDING, because it
 * was to be put off: a stream waits for what completes by itself.
 */
air_status air_call_patiently(struct air_worker *w, air_status (*fn)(void *arg),
			      void *arg);
/* What was put off may be done now. */
void air_put_off_resume(struct air_worker *w);

/* Find and load libairunner-<name>.so; NULL, with a sentence, without it. */
const struct air_executor_ops *const *air_plugin_load(const char *name,
						      struct air_error *e);

/* ------------------------------------------------------- a channel's things */

/**
 * struct air_wdesc - a descriptor
 * @plan: the checked plan
 * @priv: the executor's plan
 * @executor: which
 */
struct air_wdesc {
	struct air_plan plan;
	void *priv;
	uint32_t executor;
};

/**
 * struct air_wbuf - a buffer
 * @b: as executors see it
 * @mapped: bit by executor: buffer_map() succeeded
 * @owner: executor that allocated it; 0: the transport's memory
 */
struct air_wbuf {
	struct air_wbuffer b;
	uint32_t mapped;
	uint32_t owner;
};

struct air_wmodule {
	void *module;
	uint32_t executor;
};

struct air_wfunction {
	void *function;
	struct air_wmodule *module;
	uint32_t param_bytes;
};

/* What waits until all work taken before it has ended. */
enum air_late_kind {
	AIR_LATE_ANSWER,	/* a NOP: nothing but the answer */
	AIR_LATE_DESC,
	AIR_LATE_BUFFER,
	AIR_LATE_MODULE,
};

/**
 * struct air_late - one such thing
 * @index: work before this ring index is waited for
 * @answer: and then the submission of that index is answered
 * @object: to be let go
 */
struct air_late {
	struct air_late *next;
	enum air_late_kind kind;
	bool answer;
	uint32_t id;
	uint64_t index;
	uint64_t start;
	void *object;
};

/* --------------------------------------------------------------- channels */

enum air_wstate {
	AIR_CH_IDLE,	/* NEED_WAKEUP is set (or, in turns, nobody's turn) */
	AIR_CH_ACTIVE,	/* on the worker's active list */
	AIR_CH_LENT,	/* an executor drains the ring */
	AIR_CH_DEAD,
};

/**
 * struct air_wchannel - the worker's side of a channel
 *
 * None of it lies where the client can write.
 *
 * @next: ring index to take next
 * @skip: so many indices from there on may have been answered by a former
 *	worker; the ring is not lent before they are passed
 * @outstanding: works on executors; @out_ex: by executor
 * @out_first, @out_last: the same, in the order taken
 * @held, @held_index, @held_deadline: a submission that was taken and may not
 *	start yet
 * @holding: there is one
 * @late_first, @late_last: see struct air_late
 * @last_end: when the latest work ended: overlapping work is not counted twice
 * @device_ns, @completed: since the last report
 * @turn_end: when the turn is over at the latest; 0: it is not its turn; ~0
 *	without turns
 * @turn_left: what it may still use in this turn, ns
 * @idle_since: when the ring was first found empty; 0: it was not
 * @armed_at: when NEED_WAKEUP was set, of one on the worker's timed list
 * @killed: sentence of air_wchannel_kill(); atomic
 * @rung: on the mailbox's list; atomic
 * @touched: completions written, the client not looked at yet
 * @asym_client: producers do not fence
 * @no_lend: ring index that an executor gave back untouched
 * @handover: what streams wait on; NULL before the first does; atomic
 */
struct air_wchannel {
	struct air_ring ring;
	uint64_t next;
	uint64_t skip;
	struct air_worker *w;
	enum air_wstate state;
	uint32_t outstanding;
	bool holding;
	bool mute;
	bool touched;
	bool asym_client;
	bool removing;
	uint32_t bind_executor;
	struct air_table descs, bufs;

	uint64_t device_ns, completed, last_end;
	uint64_t turn_end, idle_since, armed_at;
	int64_t turn_left;
	uint32_t priority;
	const uint32_t *best_prio;
	struct air_list on;		/* worker's active, timed or lent */
	struct air_wchannel *next_touched;

	const struct air_wchannel_ops *ops;
	void *owner;
	const char *killed;

	uint32_t out_ex[AIR_EXECUTORS];
	struct air_work *out_first, *out_last;
	struct air_late *late_first, *late_last;
	struct air_sqe held;
	uint64_t held_index, held_deadline;
	uint64_t drain_left;

	uint32_t lent_to;
	bool recalled;
	uint64_t no_lend, watch_index;
	struct air_whandover *handover;

	struct air_table modules, functions;
	uint32_t opened;		/* bit by executor: channel_open() */
	void *ex_priv[AIR_EXECUTORS];
	uint32_t wants;			/* executor of AIR_EXEC_ANY */
	void *region;
	uint64_t size;
	char label[48];

	struct air_list on_all;
	struct air_wchannel *next_rung;	/* mailbox */
	uint32_t rung;
};

/* ----------------------------------------------------------------- worker */

struct air_mail {
	struct air_mail *next;
	air_status (*fn)(void *arg);
	void *arg;
	air_status status;
	uint32_t done;
};

/**
 * struct air_mailbox - what other threads write
 * @rung: channels whose doorbell was rung
 * @mail: calls; AIR_MAIL_CLOSED while the worker does not run
 * @sleep: enum air_sleep; a futex
 * @stop: a stop was asked for
 * @quiet: times that executors were asked to stay off their devices
 * @blocked: written by the worker: it is in a call that may wait for streams
 * @fd: eventfd for when the worker sleeps in poll
 */
struct air_mailbox {
	struct air_wchannel *rung;
	struct air_mail *mail;
	uint32_t sleep;
	uint32_t stop;
	uint32_t quiet;
	uint32_t blocked;
	int fd;
};

enum air_sleep {
	AIR_AWAKE,
	AIR_IN_FUTEX,
	AIR_IN_POLL,
};

#define AIR_MAX_SOURCES 4

struct air_worker {
	_Alignas(128) struct air_mailbox box;

	/* the worker's own from here on */
	_Alignas(128) uint64_t now;	/* the clock as last read */
	uint64_t device_at;		/* an executor was given or did work */
	struct air_list active;
	struct air_list lent;		/* rings that executors drain */
	struct air_list all;
	struct air_wchannel *touched;
	struct air_work sync_work;
	struct air_work *free_work;
	void *work_chunks;
	struct air_wexec exec[AIR_EXECUTORS];
	uint32_t prefer[AIR_EXECUTORS];	/* ids, best first, 0 ends */
	uint32_t async;			/* bit by executor: can be pending */
	uint32_t used;			/* bit: run() since the last flush */
	struct air_source *sources;
	uint64_t next_source;
	bool asym;			/* this process takes membarriers */
	bool can_barrier;		/* and may send them */
	struct air_list timed;		/* idle, to be looked at again */
	uint32_t n_removing;
	bool activated;			/* a channel, since they were served */
	bool quiet;			/* executors stay off their devices */
	bool put_off;			/* something, by air_block_begin() */
	uint32_t blocks;		/* air_block_begin()s without an end */
	struct air_list handovers;
	bool quiesced;
	uint64_t drain_end;

	struct air_worker_config config;
	char *name, *executors;
	const struct air_executor_ops *extra[AIR_EXECUTORS];
	pthread_t thread;
	bool has_thread;
	bool opened;
	air_status start_status;
	struct air_error start_error;
	uint32_t started;		/* futex */
};

/*
 * An executor that is part of the program: before start. For tests, and for
 * programs that bring their own. Preferred over those found elsewhere.
 */
void air_worker_add_executor(struct air_worker *w,
			     const struct air_executor_ops *ops);

/* Whether the calling thread is the worker's. */
bool air_worker_here(const struct air_worker *w);

/* mailbox.c */
air_status air_mailbox_init(struct air_mailbox *box);
void air_mailbox_fini(struct air_mailbox *box);
void air_mailbox_open(struct air_mailbox *box);
/* Calls from now on are answered AIR_BUSY, and so are those in the box. */
void air_mailbox_close(struct air_mailbox *box);
air_status air_mailbox_call(struct air_mailbox *box, struct air_mail *mail);
void air_mailbox_ring(struct air_mailbox *box, struct air_wchannel *ch);
void air_mailbox_wake(struct air_mailbox *box);
/* Take what is there. True when there was something. */
bool air_mailbox_take(struct air_worker *w);
bool air_mailbox_take_rung(struct air_worker *w);
bool air_mailbox_empty(const struct air_mailbox *box);
void air_futex_wait(uint32_t *word, uint32_t value, int64_t timeout_ns,
		    bool shared);
void air_futex_wake(uint32_t *word, bool shared);

/* wchannel.c */
void air_wchannel_activate(struct air_wchannel *ch);
/* Serve for one slice. True when something was done. */
bool air_wchannel_serve(struct air_wchannel *ch);
/* Account for executor time. */
void air_charge(struct air_wchannel *ch, uint64_t device_ns);
/* It has been idle for long enough. */
bool air_wchannel_may_rest(const struct air_wchannel *ch);
/* Set NEED_WAKEUP in all active channels that are idle and put them to rest. */
void air_wchannels_rest(struct air_worker *w);
/* Look at idle channels that cannot be relied on to ring. */
void air_wchannels_timed(struct air_worker *w);
/* When that is due next; there is one to be looked at. */
uint64_t air_wchannels_timed_next(const struct air_worker *w);
void air_wchannel_die(struct air_wchannel *ch, const char *sentence);
/* Go on with a removal. True when the channel is gone. */
bool air_wchannel_try_finish(struct air_wchannel *ch);
/* Executors are closed, nothing of the channel will ever end by itself. */
void air_wchannel_abandon(struct air_wchannel *ch);
bool air_wchannel_lend(struct air_wchannel *ch, uint32_t executor,
		       uint64_t index);
void air_wchannels_watch(struct air_worker *w);
void air_wchannel_returned(struct air_wchannel *ch,
			   const struct air_ring_return *ret);
/* First use of an executor by the channel: open it there, map buffers. */
air_status air_wchannel_use(struct air_wchannel *ch, uint32_t executor,
			    struct air_error *e);

/* dispatch.c */
/*
 * Run a submission that was taken. False: it may not start yet, and nothing
 * has happened.
 */
bool air_dispatch(struct air_wchannel *ch, uint64_t index,
		  const struct air_sqe *sqe, uint64_t deadline);
/* Whether work of @executor may start now. */
bool air_may_start(const struct air_wchannel *ch, uint8_t flags,
		   uint32_t executor);
struct air_work *air_work_get(struct air_worker *w);
void air_work_put(struct air_worker *w, struct air_work *work);
/* Give work to its executor; it answers, or says so: false is AIR_BUSY. */
bool air_work_start(struct air_work *work);
/* Whether words @from to @to are zero; if not, the answer has been given. */
bool air_words_zero(struct air_wchannel *ch, uint64_t index,
		    const struct air_sqe *sqe, unsigned int from,
		    unsigned int to);
/* Answer what began at the clock as last read, and read it. */
void air_answer_now(struct air_wchannel *ch, uint64_t index, air_status status,
		    uint32_t detail);

/* answer.c */
void air_answer(struct air_wchannel *ch, uint64_t index, air_status status,
		uint32_t detail, uint64_t start, uint64_t end);
/* The end of outstanding work. */
void air_work_done(struct air_work *work, air_status status, uint32_t detail);
/* Let @late happen when everything before @late->index has ended. */
void air_late_add(struct air_wchannel *ch, struct air_late *late);
void air_late_run(struct air_wchannel *ch);
/* Completions were written: look whether the client sleeps, soon. */
void air_touch(struct air_wchannel *ch);
/* Wake clients that sleep for what has been completed. */
void air_wake_touched(struct air_worker *w);

/* control.c */
void air_control(struct air_wchannel *ch, uint64_t index,
		 const struct air_sqe *sqe);
air_status air_buffer_drop(struct air_wchannel *ch, uint32_t handle);
void air_wdesc_free(struct air_wchannel *ch, struct air_wdesc *wd);
/*
 * Copy bytes from and to memory that a client may be writing at the same time:
 * each byte is read once, and no compiler turns one read into two.
 */
void air_copy_in(void *to, const void *from, uint64_t bytes);
void air_copy_out(void *to, const void *from, uint64_t bytes);
/* The host address of @bytes at reference @ref, or NULL with a status. */
void *air_ref_host(struct air_wchannel *ch, uint64_t ref, uint64_t bytes,
		   uint32_t align, air_status *status);

/* launch.c */
void air_launch_control(struct air_wchannel *ch, uint64_t index,
			const struct air_sqe *sqe);
bool air_launch_begin(struct air_wchannel *ch, uint64_t index,
		const struct air_sqe *sqe, uint64_t deadline);
void air_wmodule_free(struct air_wchannel *ch, struct air_wmodule *m);

/* buffers.c */
struct air_wbuf *air_buffer_get(struct air_wchannel *ch, uint32_t handle);
/* For air_plan_bind(): @arg is the channel, for ch->bind_executor. */
bool air_buffer_find(void *arg, uint32_t handle, struct air_span *span);
air_status air_buffer_add(struct air_wchannel *ch, uint32_t handle,
			  const struct air_wbuffer_config *config);
air_status air_buffer_alloc_device(struct air_wchannel *ch, uint32_t handle,
				   uint64_t bytes);
void air_buffers_map(struct air_wchannel *ch, uint32_t executor);
void air_wbuf_free(struct air_wchannel *ch, uint32_t handle,
		   struct air_wbuf *buf);

/* executors.c: who runs a new descriptor. */
air_status air_executor_choose(struct air_wchannel *ch, struct air_wdesc *wd,
			       struct air_error *why);

/* log.c */
void air_log(enum air_log_level level, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
const char *air_wchannel_label(const struct air_wchannel *ch);

#endif /* AIR_WORKER_INTERNAL_H */
