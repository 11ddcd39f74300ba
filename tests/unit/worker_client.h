/* SPDX-License-Identifier: MIT */
/*
 * For the worker's tests: a client that is nothing but a ring, so that they do
 * not depend on the library's, and executors that do as they are told.
 */
#ifndef TESTS_WORKER_CLIENT_H
#define TESTS_WORKER_CLIENT_H

#include <stddef.h>
#include <stdint.h>

#include "ops/worker/internal.h"

/* Longer than anything takes on a loaded machine. */
#define PATIENCE_NS 30000000000ull

/**
 * struct client - one channel
 * @region, @size: its memory
 * @collected: for the producer's side of the ring
 * @gone: buffers that were reported gone, in all
 * @gone_handle: the last of them
 * @removed, @died: what the channel's ops reported
 * @wakes: calls of ops->wake
 * @turns: turn_over calls with a flag; @turn_flags: the last one's
 */
struct client {
	struct air_worker *w;
	struct air_wchannel *ch;
	struct air_ring ring;
	void *region;
	size_t size;
	uint64_t arena;
	uint32_t order;
	uint8_t *collected;
	uint32_t gone, gone_handle;
	uint32_t removed, died;
	uint32_t turns, turn_flags;
	uint64_t device_ns, completed;
	bool asym;
};

struct client_options {
	uint32_t order;		/* 0: 6 */
	size_t arena;		/* 0: 64 KiB */
	bool asym;
	bool turns;
	const uint32_t *best_prio;
	uint32_t priority;
	void *region;		/* NULL: a fresh one */
};

struct air_worker *worker_start(const struct air_worker_config *config,
				const struct air_executor_ops *const *extra);
void worker_end(struct air_worker *w);

void *region_new(uint32_t order, size_t arena, size_t *size);
/* Out parameters as for air_worker_add_channel(); the client is zeroed. */
air_status client_add(struct client *c, struct air_worker *w,
		      const struct client_options *o);
void client_open(struct client *c, struct air_worker *w,
		 const struct client_options *o);
/* Remove the channel, wait, unmap. */
void client_close(struct client *c, enum air_remove how);
void client_unmap(struct client *c);

/* Publish; ring if asked to. Fails the test if the ring is full for long. */
uint64_t client_submit(struct client *c, const struct air_sqe *sqe);
bool client_try_submit(struct client *c, const struct air_sqe *sqe,
		       uint64_t *index);
/* Look, without collecting. */
bool client_done(struct client *c, uint64_t index, struct air_cqe *cqe);
/* Wait, collect. */
struct air_cqe client_wait(struct client *c, uint64_t index);
/* The same, asleep on the futex instead of polling. */
struct air_cqe client_sleep(struct client *c, uint64_t index);
air_status client_run(struct client *c, const struct air_sqe *sqe);

struct air_sqe sqe_head(uint8_t opcode, uint32_t id);
struct air_sqe sqe_nop(void);
/* relu of @n floats at offsets @y and @x of buffer @handle */
struct air_sqe sqe_relu(uint32_t id, uint32_t handle, uint64_t y, uint64_t x);

struct airunner_desc desc_relu(int64_t n, uint32_t executor);
/* Through the ring; *@reply may be NULL. The record goes to the arena's end. */
air_status client_desc(struct client *c, uint32_t id,
		       const struct airunner_desc *desc,
		       struct airunner_desc_reply *reply);

/* Wait until *@word is at least @value. */
void await(const uint32_t *word, uint32_t value);

/*
 * Two executors without a device, on the ids of the CUDA ones. They keep what
 * they are given until told to let go of it.
 */
#define FAKES 2

struct fake_run {
	uint64_t index;
	uint32_t fake;
	uint32_t flags;
	uint32_t beside[FAKES];	/* outstanding on each when it was started */
};

struct fake {
	uint32_t allow;		/* works that may end; atomic */
	uint32_t started;	/* atomic */
	uint32_t ended;		/* atomic */
	uint32_t room;		/* then AIR_BUSY; 0: no end */
	air_status status;	/* how they end */
	uint32_t detail;
	bool newest_first;
	bool refuse_plans;
	uint64_t hold_ns;	/* end by themselves after that long */
	int fd;			/* eventfd to wait on; -1: none */
	uint32_t buffers;	/* mapped now */
	uint32_t plans;		/* made now */
	uint32_t channels;
	uint32_t modules;
	struct air_launch launch;
	unsigned char args[AIRUNNER_MAX_PARAM_BYTES];
	uint32_t n_works;
	struct air_work *works[4096];
};

extern struct fake fakes[FAKES];
extern struct fake_run fake_runs[65536];
extern uint32_t fake_n_runs;
extern const struct air_executor_ops *const fake_executors[];

void fakes_reset(void);
/* Let @n more works of a fake end. */
void fake_let(unsigned int fake, uint32_t n);

#endif /* TESTS_WORKER_CLIENT_H */
