// SPDX-License-Identifier: MIT
/*
 * The daemon's end of libairunner/wire.h: a socket that clients connect to,
 * and one epoll descriptor for it, the connections and the channels' bells,
 * on which the worker sleeps.
 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "ops/worker/daemon/unix.h"

#define MAX_EVENTS 64

/**
 * struct air_unix - the source
 * @listen: watch of the listening socket
 * @reserve: a descriptor to give up when there are no others, so that a
 *	connection can be taken and refused instead of staying readable
 */
struct air_unix {
	struct air_source s;
	struct air_worker *w;
	struct air_watch listen;
	struct air_unix_client *clients;
	unsigned int n_clients;
	unsigned int n_mappings;
	int epoll;
	int reserve;
	bool quiesced;
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
};

bool air_unix_watch(struct air_unix *u, struct air_watch *watch,
		    uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.ptr = watch };
	int op = EPOLL_CTL_ADD;

	if (watch->on)
		op = events ? EPOLL_CTL_MOD : EPOLL_CTL_DEL;
	else if (!events)
		return true;
	if (epoll_ctl(u->epoll, op, watch->fd, &ev))
		return false;
	watch->on = events;
	return true;
}

struct air_worker *air_unix_worker(const struct air_unix *u)
{
	return u->w;
}

void air_unix_forget(struct air_unix *u, struct air_unix_client *client)
{
	struct air_unix_client **at = &u->clients;

	while (*at != client)
		at = &(*at)->next;
	*at = client->next;
	u->n_clients--;
}

bool air_unix_take_mapping(struct air_unix *u)
{
	if (u->n_mappings >= AIR_UNIX_MAPPINGS)
		return false;
	u->n_mappings++;
	return true;
}

void air_unix_put_mapping(struct air_unix *u)
{
	u->n_mappings--;
}

/* No descriptors left: take the connection only to end it. */
static void refuse(struct air_unix *u)
{
	int fd;

	air_log(AIR_LOG_WARNING, "%s: a client was turned away: %s", u->path,
		strerror(errno));
	close(u->reserve);
	fd = accept4(u->listen.fd, NULL, NULL, SOCK_CLOEXEC);
	if (fd >= 0)
		close(fd);
	u->reserve = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void on_listen(struct air_watch *watch, uint32_t events)
{
	struct air_unix *u =
		(struct air_unix *)((char *)watch -
				    offsetof(struct air_unix, listen));
	struct air_unix_client *client;
	int fd;

	fd = accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0) {
		if (errno == EMFILE || errno == ENFILE)
			refuse(u);
		return;
	}
	client = u->n_clients < AIR_UNIX_CLIENTS ? air_unix_client_new(u, fd) :
						   NULL;
	if (!client) {
		close(fd);
		return;
	}
	client->next = u->clients;
	u->clients = client;
	u->n_clients++;
}

static void unix_serve(struct air_source *s)
{
	struct air_unix *u = (struct air_unix *)s;
	struct epoll_event events[MAX_EVENTS];
	int n = epoll_wait(u->epoll, events, MAX_EVENTS, 0);

	/*
	 * What a call here takes out of the set it does not free before this
	 * loop is over: channels and clients go when the worker says so.
	 */
	for (int i = 0; i < n; i++) {
		struct air_watch *watch = events[i].data.ptr;

		if (watch->on)
			watch->fn(watch, events[i].events);
	}
}

static int unix_fd(struct air_source *s)
{
	return ((struct air_unix *)s)->epoll;
}

static air_status unix_begin(struct air_source *s, struct air_worker *w,
			     struct air_error *e)
{
	struct air_unix *u = (struct air_unix *)s;

	u->w = w;
	if (!air_unix_watch(u, &u->listen, EPOLLIN))
		return air_fail(e, AIR_SYSTEM, "%s: epoll: %s", u->path,
				strerror(errno));
	air_log(AIR_LOG_INFO, "listening on %s", u->path);
	return AIR_OK;
}

static void unix_quiesce(struct air_source *s)
{
	struct air_unix *u = (struct air_unix *)s;

	u->quiesced = true;
	air_unix_watch(u, &u->listen, 0);
}

static void unix_end(struct air_source *s)
{
	struct air_unix *u = (struct air_unix *)s;

	while (u->clients)
		air_unix_client_close(u->clients);
	air_unix_watch(u, &u->listen, 0);
}

static const struct air_source_ops unix_ops = {
	.begin = unix_begin,
	.fd = unix_fd,
	.serve = unix_serve,
	.quiesce = unix_quiesce,
	.end = unix_end,
};

/* Whether somebody answers at @addr: if not, its file is a leftover. */
static bool is_served(const struct sockaddr_un *addr, socklen_t len)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	bool served;

	if (fd < 0)
		return true;
	served = !connect(fd, (const struct sockaddr *)addr, len) ||
		 errno != ECONNREFUSED;
	close(fd);
	return served;
}

static int bind_socket(int fd, const struct air_unix_config *config)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) +
				    strlen(config->path) + 1);
	bool abstract = config->path[0] == '@';

	memcpy(addr.sun_path, config->path, strlen(config->path));
	if (abstract) {
		addr.sun_path[0] = '\0';
		len--;
	}
	if (bind(fd, (struct sockaddr *)&addr, len)) {
		if (errno != EADDRINUSE || abstract || is_served(&addr, len))
			return -1;
		if (unlink(config->path) ||
		    bind(fd, (struct sockaddr *)&addr, len))
			return -1;
	}
	if (!abstract &&
	    (chmod(config->path, config->mode) ||
	     (config->group >= 0 &&
	      chown(config->path, (uid_t)-1, (gid_t)config->group))))
		return -1;
	return listen(fd, 64);
}

struct air_source *air_unix_create(const struct air_unix_config *config,
				   struct air_error *e)
{
	struct air_unix *u = calloc(1, sizeof(*u));
	mode_t mask;
	int ret;

	if (!u) {
		air_fail(e, AIR_NO_MEMORY, "no memory");
		return NULL;
	}
	u->s.ops = &unix_ops;
	u->listen.fn = on_listen;
	u->listen.fd = -1;
	u->epoll = epoll_create1(EPOLL_CLOEXEC);
	u->reserve = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (!config->path[0] || strlen(config->path) >= sizeof(u->path)) {
		air_fail(e, AIR_BAD_ARGUMENT,
			 "\"%s\": a socket's path has 1 to %zu bytes",
			 config->path, sizeof(u->path) - 1);
		goto fail;
	}
	u->listen.fd = socket(AF_UNIX,
			      SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (u->listen.fd < 0 || u->epoll < 0 || u->reserve < 0) {
		air_fail(e, AIR_SYSTEM, "socket or epoll: %s", strerror(errno));
		goto fail;
	}
	/* Nobody gets in between bind and chmod. */
	mask = umask(0177);
	ret = bind_socket(u->listen.fd, config);
	umask(mask);
	if (ret) {
		air_fail(e, AIR_SYSTEM, "%s: %s", config->path,
			 strerror(errno));
		goto fail;
	}
	memcpy(u->path, config->path, strlen(config->path));
	return &u->s;
fail:
	air_unix_destroy(&u->s);
	return NULL;
}

void air_unix_destroy(struct air_source *s)
{
	struct air_unix *u = (struct air_unix *)s;

	if (!u)
		return;
	if (u->path[0] && u->path[0] != '@')
		unlink(u->path);
	if (u->listen.fd >= 0)
		close(u->listen.fd);
	if (u->epoll >= 0)
		close(u->epoll);
	if (u->reserve >= 0)
		close(u->reserve);
	free(u);
}
