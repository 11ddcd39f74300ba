/* SPDX-License-Identifier: MIT */
/*
 * A thread that is what the worker is to cuda-resident, and its client as well:
 * it has the kernel leave the GPU, stay there with little to do, or with as
 * much as it can, while another thread measures something beside it.
 */
#ifndef AIR_TEST_SERVER_H
#define AIR_TEST_SERVER_H

#include <stdbool.h>
#include <stdint.h>

/**
 * enum server_mode
 * @SERVER_PARKED: the kernel is not on the GPU
 * @SERVER_IDLE: it is, and polls a ring into which an operator comes 5000
 *	times a second, so that it does not park
 * @SERVER_BUSY: one vector_add(1024) after the other, each awaited
 * @SERVER_FLOOD: hundreds of UNORDERED ones in flight
 */
enum server_mode {
	SERVER_PARKED,
	SERVER_IDLE,
	SERVER_BUSY,
	SERVER_FLOOD,
	SERVER_QUIT,
};

/**
 * struct server_trips - what the client saw
 * @us: round trips of vector_add(1024), in microseconds
 * @n: how many; those that find no @room are not kept
 * @operators: of a flood
 * @flood_us: time those took
 * @lent: how often the ring was lent: more than once, and the kernel had left
 */
struct server_trips {
	double *us;
	unsigned int n, room;
	uint64_t operators;
	double flood_us;
	unsigned int lent;
};

/* Ends the process with a sentence when there is no GPU (77) or no plan (1). */
void server_start(const char *plugin);

/* Returns when it is so. Waits at most 20 seconds, then ends the process. */
void server_mode(enum server_mode mode);

/* Add what is seen from now on to @t; NULL: to nothing. */
void server_record(struct server_trips *t);

/**
 * struct server_way - a product through cuda-launch, which has the resident
 *	kernel make way for it
 * @trip: what is measured. False: the product, from before it is enqueued to
 *	its completion. True: the time until a vector_add(1024) that was sent
 *	once the ring had come back has its answer
 * @us: that
 */
struct server_way {
	bool trip;
	double us;
};

/* bf16 y = a b^T of n x n matrices, beside @mode. */
void server_product(enum server_mode mode, uint64_t n, uint64_t y, uint64_t a,
		    uint64_t b, struct server_way *way);

#endif /* AIR_TEST_SERVER_H */
