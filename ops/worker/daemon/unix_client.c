// SPDX-License-Identifier: MIT
/*
 * One client of the socket: its requests, checked and answered one by one, and
 * its channels with their bells. Nothing that comes from it is believed: not
 * lengths, not that a file is a memfd, not that a bell is a socket.
 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ops/worker/daemon/unix.h"

struct buffer {
	struct buffer *next;
	void *host;
	struct air_guard *guard;
};

/**
 * struct channel - a channel of a client
 * @watch: first member; the daemon's end of the bell
 * @notify: ADD_NOTIFY's socket, or -1
 * @answer_destroy: DESTROY_CHANNEL awaits that it is gone
 */
struct channel {
	struct air_watch watch;
	struct air_list on;
	struct air_unix_client *client;
	struct air_wchannel *ch;
	struct air_guard *guard;
	struct buffer *buffers;
	void *region;
	uint64_t size;
	uint32_t number;
	int notify;
	bool leaving;
};

/* --------------------------------------------------------------- answering */

/*
 * A client that does not read its answers has them back up in its socket; it
 * is then let go, as nothing here may block.
 */
static void answer_msg(struct air_unix_client *client,
		       const struct air_wire_msg *msg)
{
	if (client->closing)
		return;
	if (send(client->watch.fd, msg, sizeof(*msg),
		 MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof(*msg))
		return;
	/* Closed when it is next looked at: shutdown makes it readable. */
	shutdown(client->watch.fd, SHUT_RDWR);
}

static void answer(struct air_unix_client *client,
		   const struct air_wire_msg *request, air_status status,
		   const struct air_error *e)
{
	struct air_wire_msg msg = {
		.magic = AIR_WIRE_MAGIC,
		.type = request->type,
		.seq = request->seq,
		.status = (uint32_t)status,
	};

	if (status)
		snprintf(msg.text, sizeof(msg.text), "%s",
			 e && e->text[0] ? e->text : air_status_string(status));
	answer_msg(client, &msg);
}

/* ---------------------------------------------------------------- channels */

static struct channel *find(struct air_unix_client *client, uint32_t number)
{
	struct air_list *pos, *n;

	air_list_each(pos, n, &client->channels) {
		struct channel *c = air_list_entry(pos, struct channel, on);

		if (c->number == number && !c->leaving)
			return c;
	}
	return NULL;
}

static void ring_bell(int fd)
{
	static const char bell = AIR_WIRE_BELL_DONE;

	/* EAGAIN: there are bells to be read already. Gone: nobody sleeps. */
	send(fd, &bell, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void on_wake(void *owner, struct air_wchannel *ch)
{
	struct channel *c = owner;

	ring_bell(c->watch.fd);
	if (c->notify >= 0)
		ring_bell(c->notify);
}

static void on_bell(struct air_watch *watch, uint32_t events)
{
	struct channel *c = (struct channel *)watch;
	char bell[64];
	ssize_t n = recv(watch->fd, bell, sizeof(bell), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR) &&
	    !(events & (EPOLLHUP | EPOLLERR)))
		return;
	if (n <= 0) {
		/* It stays readable now; its silence is all it can mean. */
		air_unix_watch(c->client->u, watch, 0);
		return;
	}
	if (c->leaving)
		return;
	if (memchr(bell, AIR_WIRE_BELL_WORK, (size_t)n))
		air_worker_doorbell(c->ch);
	if (memchr(bell, AIR_WIRE_BELL_WATCH, (size_t)n))
		air_wchannel_watch(c->ch);
}

static void unmap(struct air_unix_client *client, void *at, uint64_t length,
		  struct air_guard *guard)
{
	air_guard_remove(guard);
	munmap(at, length);
	air_unix_put_mapping(client->u);
}

static void on_buffer_gone(void *owner, uint32_t handle, void *host,
			   uint64_t size)
{
	struct channel *c = owner;
	struct buffer **at = &c->buffers, *b;

	/* By address: a handle may be in use again before it is gone here. */
	while ((*at)->host != host)
		at = &(*at)->next;
	b = *at;
	*at = b->next;
	c->client->n_buffers--;
	unmap(c->client, host, size, b->guard);
	free(b);
}

static void free_channel(struct channel *c)
{
	air_unix_watch(c->client->u, &c->watch, 0);
	if (c->region)
		unmap(c->client, c->region, c->size, c->guard);
	close(c->watch.fd);
	if (c->notify >= 0)
		close(c->notify);
	air_list_remove(&c->on);
	c->client->n_channels--;
	free(c);
}

static void go_on(struct air_unix_client *client);

static void on_removed(void *owner)
{
	struct channel *c = owner;
	struct air_unix_client *client = c->client;
	bool awaited = client->holding && client->held_channel == c->number;

	free_channel(c);
	if (awaited) {
		client->holding = false;
		answer(client, &client->held, AIR_OK, NULL);
	}
	go_on(client);
}

static const struct air_wchannel_ops channel_ops = {
	.wake = on_wake,
	.buffer_gone = on_buffer_gone,
	.removed = on_removed,
};

/* ---------------------------------------------------------------- requests */

/* A file that can be mapped and will stay as long as it is. */
static air_status check_memfd(int fd, uint64_t length, struct air_error *e)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;

	if (seals < 0)
		return air_fail(e, AIR_BAD_ARGUMENT, "the file is not a memfd");
	if ((seals & AIR_WIRE_SEALS) != AIR_WIRE_SEALS)
		return air_fail(e, AIR_BAD_ARGUMENT,
				"the memfd's seals are 0x%x; 0x%x are needed",
				(unsigned int)seals, AIR_WIRE_SEALS);
	if (fstat(fd, &st) || st.st_size < 0 ||
	    (uint64_t)st.st_size != length)
		return air_fail(e, AIR_BAD_ARGUMENT,
				"the memfd has %lld bytes; %llu were told",
				(long long)st.st_size,
				(unsigned long long)length);
	if (!length || length > AIRUNNER_OFFSET_MASK)
		return air_fail(e, AIR_BAD_ARGUMENT,
				"%llu bytes; there can be 1 to %llu",
				(unsigned long long)length,
				(unsigned long long)AIRUNNER_OFFSET_MASK);
	return AIR_OK;
}

static air_status map(struct air_unix_client *client, int fd, uint64_t length,
		      void **at, struct air_guard **guard, struct air_error *e)
{
	air_status st = check_memfd(fd, length, e);
	void *mapped;

	if (st)
		return st;
	if (!air_unix_take_mapping(client->u))
		return air_fail(e, AIR_QUOTA,
				"all clients have %u channels and buffers",
				AIR_UNIX_MAPPINGS);
	mapped = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (mapped == MAP_FAILED) {
		air_unix_put_mapping(client->u);
		return air_fail(e, AIR_NO_MEMORY, "mmap of %llu bytes: %s",
				(unsigned long long)length, strerror(errno));
	}
	*guard = air_guard_add(mapped, length);
	if (!*guard) {
		unmap(client, mapped, length, NULL);
		return air_fail(e, AIR_NO_MEMORY, "no memory");
	}
	*at = mapped;
	return AIR_OK;
}

static air_status check_bell(int fd, struct air_error *e)
{
	int type = 0, domain = 0;
	socklen_t len = sizeof(int);

	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) ||
	    getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) ||
	    type != SOCK_STREAM || domain != AF_UNIX)
		return air_fail(e, AIR_BAD_ARGUMENT,
				"the bell is not a Unix stream socket");
	return AIR_OK;
}

/* Descriptors that are kept are taken out of @fds. */
static air_status build_channel(struct air_unix_client *client,
				const struct air_wire_msg *msg, int *fds,
				struct air_error *e)
{
	struct air_wchannel_config config = {
		.size = msg->length,
		.order = msg->order,
		.ops = &channel_ops,
	};
	struct channel *c;
	char label[64];
	air_status st;

	if (!msg->channel)
		return air_fail(e, AIR_BAD_ARGUMENT, "channel 0");
	if (find(client, msg->channel))
		return air_fail(e, AIR_BUSY, "channel %u exists", msg->channel);
	if (client->n_channels >= AIR_UNIX_CHANNELS)
		return air_fail(e, AIR_QUOTA, "a client has %u channels",
				AIR_UNIX_CHANNELS);
	st = check_bell(fds[1], e);
	if (st)
		return st;
	c = calloc(1, sizeof(*c));
	if (!c)
		return air_fail(e, AIR_NO_MEMORY, "no memory");
	c->client = client;
	c->number = msg->channel;
	c->size = msg->length;
	c->notify = -1;
	c->watch.fn = on_bell;
	c->watch.fd = fds[1];
	fds[1] = -1;
	air_list_init(&c->on);
	air_list_append(&client->channels, &c->on);
	client->n_channels++;

	st = map(client, fds[0], msg->length, &c->region, &c->guard, e);
	if (st)
		goto fail;
	if (!air_unix_watch(client->u, &c->watch, EPOLLIN)) {
		st = air_fail(e, AIR_SYSTEM, "epoll: %s", strerror(errno));
		goto fail;
	}
	snprintf(label, sizeof(label), "pid %d uid %u (channel %u)",
		 client->pid, client->uid, c->number);
	config.region = c->region;
	config.owner = c;
	config.label = label;
	st = air_worker_add_channel(air_unix_worker(client->u), &config, &c->ch,
				    e);
	if (st)
		goto fail;
	air_guard_channel(c->guard, c->ch);
	air_log(AIR_LOG_INFO, "pid %d, uid %u: channel %u: %llu bytes, %u slots",
		client->pid, client->uid, c->number,
		(unsigned long long)c->size, 1u << msg->order);
	return AIR_OK;
fail:
	free_channel(c);
	return st;
}

static air_status destroy_channel(struct air_unix_client *client,
				  const struct air_wire_msg *msg,
				  struct air_error *e)
{
	struct channel *c = find(client, msg->channel);

	if (!c)
		return air_fail(e, AIR_BAD_ID, "there is no channel %u",
				msg->channel);
	client->holding = true;
	client->held = *msg;
	client->held_channel = c->number;
	c->leaving = true;
	air_worker_remove_channel(c->ch, AIR_REMOVE_DRAIN);
	return AIR_PENDING;
}

static air_status register_buffer(struct air_unix_client *client,
				  const struct air_wire_msg *msg, int *fds,
				  struct air_error *e)
{
	struct air_wbuffer_config config = {
		.size = msg->length,
		.memory = AIR_HOST,
	};
	struct channel *c = find(client, msg->channel);
	struct buffer *b;
	air_status st;

	if (!c)
		return air_fail(e, AIR_BAD_ID, "there is no channel %u",
				msg->channel);
	if (!msg->handle || msg->handle >= AIRUNNER_HANDLE_NONE)
		return air_fail(e, AIR_BAD_HANDLE,
				"handle %u; there can be 1 to %u", msg->handle,
				AIRUNNER_HANDLE_NONE - 1);
	if (air_table_get(&c->ch->bufs, msg->handle))
		return air_fail(e, AIR_BUSY, "handle %u is in use",
				msg->handle);
	if (client->n_buffers >= AIR_UNIX_BUFFERS)
		return air_fail(e, AIR_QUOTA, "a client has %u buffers",
				AIR_UNIX_BUFFERS);
	b = calloc(1, sizeof(*b));
	if (!b)
		return air_fail(e, AIR_NO_MEMORY, "no memory");
	st = map(client, fds[0], msg->length, &b->host, &b->guard, e);
	if (st)
		goto fail;
	air_guard_channel(b->guard, c->ch);
	config.host = b->host;
	b->next = c->buffers;
	c->buffers = b;
	client->n_buffers++;
	st = air_worker_add_buffer(c->ch, msg->handle, &config, e);
	if (!st)
		return AIR_OK;
	c->buffers = b->next;
	client->n_buffers--;
	unmap(client, b->host, msg->length, b->guard);
fail:
	free(b);
	return st;
}

static air_status add_notify(struct air_unix_client *client,
			     const struct air_wire_msg *msg, int *fds,
			     struct air_error *e)
{
	struct channel *c = find(client, msg->channel);
	air_status st;

	if (!c)
		return air_fail(e, AIR_BAD_ID, "there is no channel %u",
				msg->channel);
	if (c->notify >= 0)
		return air_fail(e, AIR_BUSY,
				"channel %u has a notification socket",
				msg->channel);
	st = check_bell(fds[0], e);
	if (st)
		return st;
	c->notify = fds[0];
	fds[0] = -1;
	return AIR_OK;
}

static air_status hello(struct air_unix_client *client,
			const struct air_wire_msg *msg, struct air_error *e)
{
	struct air_wire_msg reply = {
		.magic = AIR_WIRE_MAGIC,
		.type = msg->type,
		.seq = msg->seq,
		.abi_major = AIRUNNER_ABI_MAJOR,
		.abi_minor = AIRUNNER_ABI_MINOR,
		.pid = (uint32_t)getpid(),
	};

	if (msg->abi_major != AIRUNNER_ABI_MAJOR) {
		reply.status = AIR_ABI;
		snprintf(reply.text, sizeof(reply.text),
			 "the client's ABI is %u.%u, the daemon's %u.%u",
			 msg->abi_major, msg->abi_minor, AIRUNNER_ABI_MAJOR,
			 AIRUNNER_ABI_MINOR);
	} else {
		client->greeted = true;
	}
	answer_msg(client, &reply);
	return AIR_PENDING;
}

static air_status caps(struct air_unix_client *client,
		       const struct air_wire_msg *msg, struct air_error *e)
{
	struct air_wire_msg reply = {
		.magic = AIR_WIRE_MAGIC,
		.type = msg->type,
		.seq = msg->seq,
	};
	air_status st;

	reply.caps.size = sizeof(reply.caps);
	st = air_worker_caps(air_unix_worker(client->u),
			     (air_executor)msg->executor, &reply.caps);
	if (st)
		return air_fail(e, st, "there is no executor %u",
				msg->executor);
	answer_msg(client, &reply);
	return AIR_PENDING;
}

/* Whether all that the request's type does not use is zero. */
static bool unused_is_zero(const struct air_wire_msg *msg)
{
	static const struct air_wire_msg none;
	struct air_wire_msg rest = *msg;

	rest.magic = rest.type = rest.seq = 0;
	switch (msg->type) {
	case AIR_WIRE_HELLO:
		rest.abi_major = rest.abi_minor = 0;
		break;
	case AIR_WIRE_CAPS:
		rest.executor = 0;
		break;
	case AIR_WIRE_BUILD_CHANNEL:
		rest.order = 0;
		rest.channel = 0;
		rest.length = 0;
		break;
	case AIR_WIRE_REGISTER_BUFFER:
		rest.handle = 0;
		rest.channel = 0;
		rest.length = 0;
		break;
	case AIR_WIRE_DESTROY_CHANNEL:
	case AIR_WIRE_ADD_NOTIFY:
		rest.channel = 0;
		break;
	}
	return !memcmp(&rest, &none, sizeof(rest));
}

/* AIR_PENDING: the answer was given, or comes later. */
static air_status request(struct air_unix_client *client,
			  const struct air_wire_msg *msg, int *fds,
			  unsigned int n_fds, struct air_error *e)
{
	if (msg->magic != AIR_WIRE_MAGIC || !unused_is_zero(msg))
		return air_fail(e, AIR_BAD_ARGUMENT,
				"message of type %u: magic, or a field that must be zero",
				msg->type);
	if (n_fds != air_wire_fds(msg->type))
		return air_fail(e, AIR_BAD_ARGUMENT,
				"message of type %u: %u files; %u belong to it",
				msg->type, n_fds, air_wire_fds(msg->type));
	if (!client->greeted && msg->type != AIR_WIRE_HELLO)
		return air_fail(e, AIR_BAD_ARGUMENT, "HELLO comes first");
	switch (msg->type) {
	case AIR_WIRE_HELLO:
		return hello(client, msg, e);
	case AIR_WIRE_CAPS:
		return caps(client, msg, e);
	case AIR_WIRE_BUILD_CHANNEL:
		return build_channel(client, msg, fds, e);
	case AIR_WIRE_DESTROY_CHANNEL:
		return destroy_channel(client, msg, e);
	case AIR_WIRE_REGISTER_BUFFER:
		return register_buffer(client, msg, fds, e);
	case AIR_WIRE_ADD_NOTIFY:
		return add_notify(client, msg, fds, e);
	default:
		return air_fail(e, AIR_BAD_ARGUMENT,
				"there are no messages of type %u", msg->type);
	}
}

/* -------------------------------------------------------------- connection */

union control {
	struct cmsghdr head;
	char bytes[CMSG_SPACE(AIR_WIRE_MAX_FDS * sizeof(int))];
};

/* Descriptors beside a message; more than there can be count as one more. */
static unsigned int take_fds(struct msghdr *hdr, int *fds)
{
	unsigned int n = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(hdr); c;
	     c = CMSG_NXTHDR(hdr, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n = (unsigned int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(fds, CMSG_DATA(c), n * sizeof(int));
	}
	return hdr->msg_flags & MSG_CTRUNC ? AIR_WIRE_MAX_FDS + 1 : n;
}

/* False: nothing there (any more), or the connection has ended. */
static bool one_message(struct air_unix_client *client)
{
	int fds[AIR_WIRE_MAX_FDS] = { -1, -1 };
	struct air_error e = { "" };
	struct air_wire_msg msg;
	union control control;
	struct iovec iov = { &msg, sizeof(msg) };
	struct msghdr hdr = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	unsigned int n_fds;
	air_status st;
	ssize_t n;

	n = recvmsg(client->watch.fd, &hdr, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	n_fds = n < 0 ? 0 : take_fds(&hdr, fds);
	if (n != sizeof(msg) || (hdr.msg_flags & MSG_TRUNC)) {
		if (n > 0)
			air_log(AIR_LOG_WARNING,
				"pid %d, uid %u: a message of the wrong size",
				client->pid, client->uid);
		client->closing = true;
	} else {
		st = request(client, &msg, fds, n_fds, &e);
		if (st != AIR_PENDING)
			answer(client, &msg, st, &e);
	}
	for (int i = 0; i < AIR_WIRE_MAX_FDS; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	return !client->closing;
}

static void on_client(struct air_watch *watch, uint32_t events)
{
	struct air_unix_client *client = (struct air_unix_client *)watch;

	if (!client->holding)
		one_message(client);
	if (client->closing ||
	    (client->holding && (events & (EPOLLHUP | EPOLLRDHUP))))
		air_unix_client_close(client);
	else if (client->holding)
		/* Nothing is read until then, but an end is noticed. */
		air_unix_watch(client->u, watch, EPOLLRDHUP);
}

static void free_client(struct air_unix_client *client)
{
	air_log(AIR_LOG_INFO, "pid %d, uid %u: gone", client->pid,
		client->uid);
	air_unix_forget(client->u, client);
	close(client->watch.fd);
	free(client);
}

/* A channel is gone: read on, or be gone with the last one. */
static void go_on(struct air_unix_client *client)
{
	if (!client->closing && !client->holding)
		air_unix_watch(client->u, &client->watch, EPOLLIN);
	else if (client->closing && air_list_empty(&client->channels))
		free_client(client);
}

void air_unix_client_close(struct air_unix_client *client)
{
	struct air_list *pos, *n;

	client->closing = true;
	client->holding = false;
	air_unix_watch(client->u, &client->watch, 0);
	if (air_list_empty(&client->channels)) {
		free_client(client);
		return;
	}
	air_list_each(pos, n, &client->channels) {
		struct channel *c = air_list_entry(pos, struct channel, on);

		c->leaving = true;
		air_worker_remove_channel(c->ch, AIR_REMOVE_DROP);
	}
}

struct air_unix_client *air_unix_client_new(struct air_unix *u, int fd)
{
	struct air_unix_client *client = calloc(1, sizeof(*client));
	struct ucred cred = { 0 };
	socklen_t len = sizeof(cred);

	if (!client)
		return NULL;
	getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len);
	client->u = u;
	client->pid = cred.pid;
	client->uid = cred.uid;
	client->watch.fn = on_client;
	client->watch.fd = fd;
	air_list_init(&client->channels);
	if (!air_unix_watch(u, &client->watch, EPOLLIN)) {
		free(client);
		return NULL;
	}
	air_log(AIR_LOG_INFO, "pid %d, uid %u: connected", client->pid,
		client->uid);
	return client;
}
