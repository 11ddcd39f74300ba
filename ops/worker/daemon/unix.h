/* SPDX-License-Identifier: MIT */
/*
 * What serve_unix.c (the socket and its descriptors) and unix_client.c (one
 * client's requests) share. All of it on the worker's thread.
 */
#ifndef AIR_DAEMON_UNIX_H
#define AIR_DAEMON_UNIX_H

#include <sys/types.h>

#include "libairunner/wire.h"
#include "ops/worker/daemon/daemon.h"

/* What one connection may have. */
#define AIR_UNIX_CHANNELS	256
#define AIR_UNIX_BUFFERS	4096
#define AIR_UNIX_CLIENTS	1024
/*
 * Regions and buffers of all clients: each is a mapping, of which a process has
 * vm.max_map_count (65530 unless changed). Threads, libraries and the heap need
 * some, too, and nobody's requests may take the last ones from them.
 */
#define AIR_UNIX_MAPPINGS	32000

struct air_unix;

/**
 * struct air_watch - a descriptor in the epoll set
 * @fn: called with what epoll says
 */
struct air_watch {
	void (*fn)(struct air_watch *watch, uint32_t events);
	int fd;
	bool on;
};

/* @events 0 takes it out; a descriptor must be out before it is closed. */
bool air_unix_watch(struct air_unix *u, struct air_watch *watch,
		    uint32_t events);

/**
 * struct air_unix_client - a connection
 * @watch: first member; its descriptor is the connection
 * @channels: what it has built
 * @n_channels: how many, also those on their way out
 * @n_buffers: of all its channels, also those on their way out
 * @greeted: HELLO was answered
 * @closing: the connection has ended; freed with the last channel
 * @held: DESTROY_CHANNEL that is not answered yet: nothing is read until then
 * @held_channel: and the channel it is about
 */
struct air_unix_client {
	struct air_watch watch;
	struct air_unix_client *next;
	struct air_unix *u;
	struct air_list channels;
	uint32_t n_channels;
	uint32_t n_buffers;
	bool greeted;
	bool closing;
	bool holding;
	struct air_wire_msg held;
	uint32_t held_channel;
	pid_t pid;
	uid_t uid;
};

/* serve_unix.c */
struct air_worker *air_unix_worker(const struct air_unix *u);
void air_unix_forget(struct air_unix *u, struct air_unix_client *client);
/* One more of AIR_UNIX_MAPPINGS; false: there are so many. */
bool air_unix_take_mapping(struct air_unix *u);
void air_unix_put_mapping(struct air_unix *u);

/* unix_client.c */
struct air_unix_client *air_unix_client_new(struct air_unix *u, int fd);
/* End the connection and, in time, everything of it. */
void air_unix_client_close(struct air_unix_client *client);

#endif /* AIR_DAEMON_UNIX_H */
