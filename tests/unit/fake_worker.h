/* SPDX-License-Identifier: MIT */
/*
 * A transport whose worker is the test: nothing is run or answered but by
 * fake_serve(), so that every state of a channel can be held still and looked
 * at.
 */
#ifndef FAKE_WORKER_H
#define FAKE_WORKER_H

#include <stdbool.h>
#include <stdint.h>

#include <airunner.h>

#include "libairunner/channel.h"

/**
 * struct fake - the other side
 * @dev: the device
 * @ch: the channel, one at a time
 * @next: ring index the worker looks at next
 * @last: the submission served last
 * @bells: doorbells for work
 * @watches: doorbells that ask for completions to be watched
 * @sleeps: how often a waiter slept
 * @on_sleep: what happens while a waiter sleeps; NULL: nothing, until the
 *	deadline
 * @unserved: say that nobody drains the channel
 * @dead: doorbells and sleeps find the worker gone
 * @refuse_buffers: buffer_register() fails with this
 * @held: buffer_released() says no
 * @registered: buffers known now
 * @unregistered: how often a buffer was given back
 * @can_revive: a submission brings the worker back
 * @revived: how often that happened
 */
struct fake {
	air_device *dev;
	air_channel *ch;
	uint64_t next;
	struct air_sqe last;
	unsigned int bells;
	unsigned int watches;
	unsigned int sleeps;
	void (*on_sleep)(struct fake *f);
	bool unserved;
	bool dead;
	air_status refuse_buffers;
	bool held;
	int registered;
	unsigned int unregistered;
	bool can_revive;
	unsigned int revived;
};

/* A device with a channel of 2^@order entries. */
void fake_start(struct fake *f, uint32_t order);
/* The same, and the channel has @flags (AIR_CHANNEL_*). */
void fake_start_with(struct fake *f, uint32_t order, uint32_t flags);
/* Answers what is outstanding, then takes it all down. */
void fake_stop(struct fake *f);

/* Serve one submission with @status; false: there is none. */
bool fake_serve(struct fake *f, air_status status);
/* The same with operand number @detail. */
bool fake_serve_detail(struct fake *f, air_status status, uint16_t detail);
/* Serve all there are, each AIR_OK; how many. */
unsigned int fake_serve_all(struct fake *f);
/* For on_sleep: serve one, AIR_OK. */
void fake_serve_one(struct fake *f);

/* Answer submission @index, out of order. */
void fake_answer(struct fake *f, uint64_t index, air_status status);

/* As if everything before @index had been submitted and collected. */
void fake_jump(struct fake *f, uint64_t index);

/* Submit a nop with @flags; its token. Must find room. */
air_token fake_nop(struct fake *f, uint32_t flags);

#endif /* FAKE_WORKER_H */
