// SPDX-License-Identifier: MIT
/*
 * "unix:PATH": airunnerd behind a socket, no module needed. wire.h has the
 * protocol.
 *
 * Sleeping: of the threads that wait on one channel one, the leader, polls the
 * bell; the others wait for the leader. A byte on the bell is thus read by one
 * thread and wakes them all, and none is lost.
 *
 * When the daemon dies, sockets say so: the thread that notices cuts its
 * channel, and what was outstanding is answered by the library. The next
 * submission reaches for a restarted daemon, which gets every channel of the
 * device, with its buffers; descriptors follow by ctrl.sq_epoch.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <airunner.h>

#include "libairunner/channel.h"
#include "libairunner/clock.h"
#include "libairunner/error.h"
#include "libairunner/wire.h"

/* A daemon that does not answer a request for so long is as good as dead. */
#define ANSWER_MS 30000

/* How long the old daemon may take to let go of the channels. */
#define LET_GO_MS 2000

/**
 * struct unix_device - the control connection
 * @lock: one request at a time; protects all
 * @addr: where airunnerd listens
 * @addr_len: of it that count: the name of an abstract socket has no end mark
 * @path: the same, for sentences
 * @fd: -1 while there is none
 * @lost: it did not answer: it is another one that will, if any
 * @seq: of the last request
 * @last_channel: number of the newest channel
 */
struct unix_device {
	pthread_mutex_t lock;
	struct sockaddr_un addr;
	socklen_t addr_len;
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	int fd;
	bool lost;
	uint32_t seq;
	uint32_t last_channel;
};

/**
 * struct unix_channel - what the transport adds to a channel
 * @number: names it on the wire
 * @bell: our end; stays the same descriptor for the channel's life
 * @connection: counts the daemons that have had it; protected by answer_lock
 * @lock: protects the rest
 * @leader: somebody polls the bell
 * @wakes: counts what came over it
 * @notify: our end of the pair that tells air_channel_fd(), -1 before
 * @epoll: of @notify: what air_channel_fd() gives, as its file stays the same
 *	with another daemon; -1 before
 */
struct unix_channel {
	uint32_t number;
	int bell;
	uint32_t connection;
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool leader;
	uint64_t wakes;
	int notify;
	int epoll;
};

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* ------------------------------------------------------------- messages */

static bool send_message(int fd, const struct air_wire_msg *msg, const int *fds,
			 unsigned int n)
{
	struct iovec iov = {
		.iov_base = (void *)(uintptr_t)msg,
		.iov_len = sizeof(*msg),
	};
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(AIR_WIRE_MAX_FDS * sizeof(int))];
	} control;
	struct msghdr hdr = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t r;

	if (n) {
		struct cmsghdr *c;

		memset(&control, 0, sizeof(control));
		hdr.msg_control = control.buf;
		hdr.msg_controllen = CMSG_SPACE(n * sizeof(int));
		c = CMSG_FIRSTHDR(&hdr);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(c), fds, n * sizeof(int));
	}
	do {
		r = sendmsg(fd, &hdr, MSG_NOSIGNAL);
	} while (r < 0 && errno == EINTR);
	return r == (ssize_t)sizeof(*msg);
}

static bool receive_answer(int fd, uint32_t seq, struct air_wire_msg *msg)
{
	uint64_t deadline = air_now() + ANSWER_MS * UINT64_C(1000000);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	ssize_t r;
	int n;

	do {
		int64_t left = air_remaining(deadline);

		n = poll(&p, 1, (int)(left / 1000000 + 1));
		if (n == 0 || !left)
			return false;
	} while (n < 0 && errno == EINTR);
	do {
		r = recv(fd, msg, sizeof(*msg), 0);
	} while (r < 0 && errno == EINTR);
	return r == (ssize_t)sizeof(*msg) && msg->magic == AIR_WIRE_MAGIC &&
	       msg->seq == seq;
}

/*
 * Ask on @fd and wait for the answer, which *@msg becomes. The caller holds
 * the device's lock. AIR_WORKER_DIED: there was none.
 */
static air_status ask_on(struct unix_device *ud, int fd,
			 struct air_wire_msg *msg, const int *fds,
			 unsigned int n)
{
	uint32_t seq = ++ud->seq;

	msg->magic = AIR_WIRE_MAGIC;
	msg->seq = seq;
	if (fd < 0 || !send_message(fd, msg, fds, n) ||
	    !receive_answer(fd, seq, msg)) {
		/*
		 * An answer that comes late must not be taken for that to the
		 * next request; and the daemon is to see that it lost us.
		 */
		if (fd >= 0)
			shutdown(fd, SHUT_RDWR);
		ud->lost |= fd == ud->fd;
		return air_error_set(AIR_WORKER_DIED,
				     "the daemon behind %s does not answer",
				     ud->path);
	}
	if (msg->status == AIR_OK)
		return AIR_OK;
	msg->text[sizeof(msg->text) - 1] = '\0';
	return air_error_set(
		(air_status)msg->status, "%s",
		msg->text[0] ? msg->text
			     : air_status_string((air_status)msg->status));
}

static air_status ask(struct unix_device *ud, struct air_wire_msg *msg,
		      const int *fds, unsigned int n)
{
	air_status status;

	pthread_mutex_lock(&ud->lock);
	status = ask_on(ud, ud->fd, msg, fds, n);
	pthread_mutex_unlock(&ud->lock);
	return status;
}

/* --------------------------------------------------------------- device */

static air_status connect_error(struct unix_device *ud)
{
	const char *path = ud->path;

	switch (errno) {
	case EACCES:
	case EPERM:
		return air_error_set(
			AIR_PERMISSION,
			"%s: %s (is the user in the socket's group?)", path,
			strerror(errno));
	case ENOENT:
	case ECONNREFUSED:
		return air_error_set(AIR_NO_DEVICE,
				     "%s: %s (is airunnerd running?)", path,
				     strerror(errno));
	case EPROTOTYPE:
		return air_error_set(AIR_NO_DEVICE,
				     "%s: not airunnerd's socket", path);
	default:
		return air_error_set(AIR_SYSTEM, "%s: %s", path,
				     strerror(errno));
	}
}

/* A new connection with hello said: *@out is its descriptor. */
static air_status reach(struct unix_device *ud, int *out)
{
	struct air_wire_msg msg = {
		.type = AIR_WIRE_HELLO,
		.abi_major = AIRUNNER_ABI_MAJOR,
		.abi_minor = AIRUNNER_ABI_MINOR,
	};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	air_status status;

	if (fd < 0)
		return air_error_set(AIR_SYSTEM, "socket: %s", strerror(errno));
	if (connect(fd, (struct sockaddr *)&ud->addr, ud->addr_len)) {
		status = connect_error(ud);
		goto fail;
	}
	status = ask_on(ud, fd, &msg, NULL, 0);
	if (status != AIR_OK)
		goto fail;
	if (msg.abi_major != AIRUNNER_ABI_MAJOR) {
		status = air_error_set(
			AIR_ABI,
			"%s: the daemon's ABI is %u.%u, this library's %u.%u",
			ud->path, msg.abi_major, msg.abi_minor,
			AIRUNNER_ABI_MAJOR, AIRUNNER_ABI_MINOR);
		goto fail;
	}
	*out = fd;
	return AIR_OK;
fail:
	close(fd);
	return status;
}

/* "@NAME" is a socket without a file: its name begins with a zero byte. */
static void set_address(struct unix_device *ud, const char *where)
{
	ud->addr.sun_family = AF_UNIX;
	strcpy(ud->path, where);
	strcpy(ud->addr.sun_path, where);
	ud->addr_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) +
				   strlen(where) + 1);
	if (*where == '@') {
		ud->addr.sun_path[0] = '\0';
		ud->addr_len--;
	}
}

static air_status unix_open(struct air_device *dev, const char *where,
			    const struct air_device_options *options)
{
	struct unix_device *ud;
	air_status status;

	if (!*where || strlen(where) >= sizeof(ud->path))
		return air_error_set(
			AIR_BAD_ARGUMENT,
			"\"unix:%s\": the path must have 1 to %zu characters",
			where, sizeof(ud->path) - 1);
	ud = calloc(1, sizeof(*ud));
	if (!ud)
		return air_error_static(AIR_NO_MEMORY,
					"no memory for a device");
	pthread_mutex_init(&ud->lock, NULL);
	set_address(ud, where);
	status = reach(ud, &ud->fd);
	if (status != AIR_OK) {
		pthread_mutex_destroy(&ud->lock);
		free(ud);
		/* To an opener there is no difference. */
		return status == AIR_WORKER_DIED ? AIR_NO_DEVICE : status;
	}
	dev->priv = ud;
	return AIR_OK;
}

static void unix_close(struct air_device *dev)
{
	struct unix_device *ud = dev->priv;

	close_fd(&ud->fd);
	pthread_mutex_destroy(&ud->lock);
	free(ud);
}

static air_status unix_caps(struct air_device *dev, air_executor executor,
			    struct air_backend_caps *caps)
{
	struct air_wire_msg msg = {
		.type = AIR_WIRE_CAPS,
		.executor = executor,
	};
	air_status status = ask(dev->priv, &msg, NULL, 0);

	if (status != AIR_OK)
		return status;
	*caps = msg.caps;
	caps->size = sizeof(*caps);
	caps->name[sizeof(caps->name) - 1] = '\0';
	return AIR_OK;
}

/* -------------------------------------------------------------- channel */

/*
 * Hand the channel to whoever is at the other end of @fd. The bell keeps its
 * number, so that a thread that still polls the old one does not find itself
 * with somebody else's file.
 */
static air_status hand_over(struct unix_device *ud, int fd,
			    struct air_channel *ch)
{
	struct unix_channel *uc = ch->priv;
	struct air_wire_msg msg = {
		.type = AIR_WIRE_BUILD_CHANNEL,
		.channel = uc->number,
		.order = ch->ring.order,
		.length = ch->region.size,
	};
	int pair[2], fds[2];
	air_status status;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return air_error_set(AIR_SYSTEM, "socketpair: %s",
				     strerror(errno));
	fds[0] = ch->region.fd;
	fds[1] = pair[1];
	status = ask_on(ud, fd, &msg, fds, 2);
	close_fd(&pair[1]);
	if (status == AIR_OK && uc->bell < 0) {
		uc->bell = pair[0];
		return AIR_OK;
	}
	if (status == AIR_OK && dup3(pair[0], uc->bell, O_CLOEXEC) < 0)
		status = air_error_set(AIR_SYSTEM, "dup3: %s", strerror(errno));
	close_fd(&pair[0]);
	return status;
}

static air_status unix_channel_build(struct air_channel *ch,
				     const struct air_channel_options *o)
{
	struct unix_device *ud = ch->dev->priv;
	struct unix_channel *uc = calloc(1, sizeof(*uc));
	pthread_condattr_t attr;
	air_status status;

	if (!uc)
		return air_error_static(AIR_NO_MEMORY,
					"no memory for a channel");
	uc->bell = -1;
	uc->notify = -1;
	uc->epoll = -1;
	pthread_mutex_init(&uc->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&uc->cond, &attr);
	pthread_condattr_destroy(&attr);
	ch->priv = uc;

	pthread_mutex_lock(&ud->lock);
	uc->number = ++ud->last_channel;
	status = hand_over(ud, ud->fd, ch);
	pthread_mutex_unlock(&ud->lock);
	if (status != AIR_OK) {
		pthread_cond_destroy(&uc->cond);
		pthread_mutex_destroy(&uc->lock);
		free(uc);
	}
	return status;
}

static void unix_channel_destroy(struct air_channel *ch)
{
	struct unix_channel *uc = ch->priv;
	struct air_wire_msg msg = {
		.type = AIR_WIRE_DESTROY_CHANNEL,
		.channel = uc->number,
	};

	/* A daemon that is gone has let go as well. */
	if (ch->cut == AIR_OK)
		ask(ch->dev->priv, &msg, NULL, 0);
	close_fd(&uc->bell);
	close_fd(&uc->notify);
	close_fd(&uc->epoll);
	pthread_cond_destroy(&uc->cond);
	pthread_mutex_destroy(&uc->lock);
	free(uc);
}

/* -------------------------------------------------------------- buffers */

static air_status register_on(struct unix_device *ud, int fd,
			      struct air_channel *ch, struct air_buffer *buf)
{
	struct unix_channel *uc = ch->priv;
	struct air_wire_msg msg = {
		.type = AIR_WIRE_REGISTER_BUFFER,
		.channel = uc->number,
		.handle = buf->handle,
		.length = buf->mapping.size,
	};

	return ask_on(ud, fd, &msg, &buf->mapping.fd, 1);
}

static air_status unix_buffer_register(struct air_channel *ch,
				       struct air_buffer *buf)
{
	struct unix_device *ud = ch->dev->priv;
	air_status status;

	pthread_mutex_lock(&ud->lock);
	status = register_on(ud, ud->fd, ch, buf);
	pthread_mutex_unlock(&ud->lock);
	return status;
}

/* ------------------------------------------------------------- wake-ups */

/*
 * The bell of connection number @connection is dead. If that is still the one
 * the channel uses, its worker is gone.
 */
static air_status bell_is_dead(struct air_channel *ch, uint32_t connection)
{
	struct unix_channel *uc = ch->priv;
	air_status status = AIR_OK;

	pthread_mutex_lock(&ch->answer_lock);
	if (uc->connection == connection) {
		air_channel_cut(ch, AIR_WORKER_DIED);
		status = AIR_WORKER_DIED;
	}
	pthread_mutex_unlock(&ch->answer_lock);
	return status;
}

static air_status unix_doorbell(struct air_channel *ch, bool watch)
{
	struct unix_channel *uc = ch->priv;
	char byte = watch ? AIR_WIRE_BELL_WATCH : AIR_WIRE_BELL_WORK;
	uint32_t connection;
	air_status status;

	/* A bell that died while the channel got another is no bell rung. */
	do {
		ssize_t r;

		connection = air_load(&uc->connection, ACQUIRE);
		do {
			r = send(uc->bell, &byte, 1,
				 MSG_DONTWAIT | MSG_NOSIGNAL);
		} while (r < 0 && errno == EINTR);
		/* A full socket: it has bells enough to wake up by. */
		if (r == 1 || errno == EAGAIN || errno == EWOULDBLOCK)
			return AIR_OK;
		status = bell_is_dead(ch, connection);
	} while (status == AIR_OK);
	return status;
}

static uint64_t unix_sleep_begin(struct air_channel *ch)
{
	struct unix_channel *uc = ch->priv;

	return air_load(&uc->wakes, ACQUIRE);
}

static void to_timespec(struct timespec *ts, uint64_t ns)
{
	ts->tv_sec = (time_t)(ns / 1000000000u);
	ts->tv_nsec = (long)(ns % 1000000000u);
}

/* Wait at the bell. *@rang: something came. False: it is dead. */
static bool listen_to(int bell, uint64_t deadline, bool *rang)
{
	struct pollfd p = { .fd = bell, .events = POLLIN };
	struct timespec ts, *left = NULL;
	char bytes[256];
	ssize_t r;

	*rang = false;
	if (deadline != UINT64_MAX) {
		to_timespec(&ts, (uint64_t)air_remaining(deadline));
		left = &ts;
	}
	if (ppoll(&p, 1, left, NULL) <= 0)
		return true;
	r = recv(bell, bytes, sizeof(bytes), MSG_DONTWAIT);
	if (r > 0)
		*rang = true;
	return r > 0 || (r < 0 && (errno == EAGAIN || errno == EWOULDBLOCK ||
				   errno == EINTR));
}

static air_status unix_sleep(struct air_channel *ch, uint64_t seq,
			     uint64_t deadline)
{
	struct unix_channel *uc = ch->priv;
	uint32_t connection = air_load(&uc->connection, ACQUIRE);
	bool alive, rang;

	pthread_mutex_lock(&uc->lock);
	if (uc->leader || uc->wakes != seq) {
		struct timespec ts;

		if (uc->wakes == seq && deadline == UINT64_MAX) {
			pthread_cond_wait(&uc->cond, &uc->lock);
		} else if (uc->wakes == seq) {
			to_timespec(&ts, deadline);
			pthread_cond_timedwait(&uc->cond, &uc->lock, &ts);
		}
		pthread_mutex_unlock(&uc->lock);
		return air_load(&ch->cut, ACQUIRE);
	}
	uc->leader = true;
	pthread_mutex_unlock(&uc->lock);

	alive = listen_to(uc->bell, deadline, &rang);

	/* Cut before the others are woken: they look at that. */
	if (!alive)
		bell_is_dead(ch, connection);
	pthread_mutex_lock(&uc->lock);
	uc->leader = false;
	if (rang || !alive)
		air_store(&uc->wakes, uc->wakes + 1, RELEASE);
	/* Also after a time-out: one of them must lead now. */
	pthread_cond_broadcast(&uc->cond);
	pthread_mutex_unlock(&uc->lock);
	return air_load(&ch->cut, ACQUIRE);
}

/*
 * Of no event but the end of the bell, which is always told, whatever bytes
 * still lie in it. -1 and EINTR like poll().
 */
static int poll_end(int bell, int timeout_ms)
{
	struct pollfd p = { .fd = bell };

	return poll(&p, 1, timeout_ms);
}

/*
 * Whoever polls, or sleeps on air_channel_fd(), never reads the bell: that
 * there is something to read in it does not mean that anybody is behind it.
 */
static air_status unix_check(struct air_channel *ch)
{
	struct unix_channel *uc = ch->priv;
	uint32_t connection = air_load(&uc->connection, ACQUIRE);

	if (poll_end(uc->bell, 0) <= 0)
		return AIR_OK;
	return bell_is_dead(ch, connection);
}

static bool unix_served(struct air_channel *ch)
{
	return unix_check(ch) == AIR_OK &&
	       air_load(&ch->cut, ACQUIRE) == AIR_OK;
}

/* ------------------------------------------------- air_channel_fd() */

/* Whoever sleeps on the epoll sleeps on @end from now on. */
static air_status sleep_on(struct unix_channel *uc, int end)
{
	struct epoll_event ev = { .events = EPOLLIN };

	if (uc->notify >= 0) {
		/* By hand: a forked child may have the old one as well. */
		epoll_ctl(uc->epoll, EPOLL_CTL_DEL, uc->notify, NULL);
		end = dup3(end, uc->notify, O_CLOEXEC);
		if (end < 0)
			return air_error_set(AIR_SYSTEM, "dup3: %s",
					     strerror(errno));
	}
	if (epoll_ctl(uc->epoll, EPOLL_CTL_ADD, end, &ev))
		return air_error_set(AIR_SYSTEM, "epoll: %s", strerror(errno));
	return AIR_OK;
}

static air_status add_notify(struct unix_device *ud, int fd,
			     struct air_channel *ch)
{
	static const char byte = AIR_WIRE_BELL_DONE;
	struct unix_channel *uc = ch->priv;
	struct air_wire_msg msg = {
		.type = AIR_WIRE_ADD_NOTIFY,
		.channel = uc->number,
	};
	air_status status;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return air_error_set(AIR_SYSTEM, "socketpair: %s",
				     strerror(errno));
	status = sleep_on(uc, pair[0]);
	if (status == AIR_OK)
		status = ask_on(ud, fd, &msg, &pair[1], 1);
	/*
	 * The daemon may have completed something before it knew of this one.
	 * If it is another one than before, what the old one left was answered,
	 * and the end of the old socket is not to be seen any more. Somebody
	 * may sleep who has been told that it is safe to.
	 */
	if (status == AIR_OK)
		send(pair[1], &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	close_fd(&pair[1]);
	if (status == AIR_OK && uc->notify < 0) {
		air_store(&uc->notify, pair[0], RELEASE);
		return AIR_OK;
	}
	close_fd(&pair[0]);
	return status;
}

static air_status unix_notify_fd(struct air_channel *ch, int *fd)
{
	struct unix_device *ud = ch->dev->priv;
	struct unix_channel *uc = ch->priv;
	air_status status = AIR_OK;

	pthread_mutex_lock(&ud->lock);
	if (uc->epoll < 0) {
		uc->epoll = epoll_create1(EPOLL_CLOEXEC);
		if (uc->epoll < 0)
			status = air_error_set(AIR_SYSTEM, "epoll: %s",
					       strerror(errno));
		else
			status = add_notify(ud, ud->fd, ch);
		if (status != AIR_OK)
			close_fd(&uc->epoll);
	}
	if (status == AIR_OK)
		*fd = uc->epoll;
	pthread_mutex_unlock(&ud->lock);
	return status;
}

static void unix_notify_clear(struct air_channel *ch)
{
	struct unix_channel *uc = ch->priv;
	int fd = air_load(&uc->notify, ACQUIRE);
	char bytes[256];

	while (fd >= 0 && recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) ==
				  (ssize_t)sizeof(bytes))
		;
}

/* ------------------------------------------------------- another daemon */

/*
 * The daemon does not take this one channel. That is its end, not the device's:
 * trying again would take the others from a daemon that serves them.
 */
static bool is_refusal(air_status status)
{
	return status == AIR_CHANNEL_DEAD || status == AIR_QUOTA ||
	       status == AIR_NO_MEMORY;
}

/*
 * Give the channel to the new daemon. Everything that was outstanding with the
 * old one has its answer before that; from then on the library must not answer
 * any more.
 */
static air_status revive_channel(struct unix_device *ud, int fd,
				 struct air_channel *ch)
{
	struct unix_channel *uc = ch->priv;
	air_status status;

	pthread_mutex_lock(&ch->answer_lock);
	air_channel_cut(ch, AIR_WORKER_DIED);
	pthread_mutex_unlock(&ch->answer_lock);
	air_channel_answer(ch);
	if (air_load(&ch->broken, RELAXED))
		return AIR_OK;

	pthread_mutex_lock(&ch->answer_lock);
	status = hand_over(ud, fd, ch);
	if (status == AIR_OK) {
		air_store(&uc->connection, uc->connection + 1, RELEASE);
		air_channel_handed_over(ch);
		if (uc->notify >= 0)
			status = add_notify(ud, fd, ch);
	} else if (is_refusal(status)) {
		air_store(&ch->broken, true, RELAXED);
		status = AIR_OK;
	}
	pthread_mutex_unlock(&ch->answer_lock);
	return status;
}

typedef air_status (*channel_fn)(struct unix_device *ud, int fd,
				 struct air_channel *ch);

static air_status each_channel(struct air_device *dev, int fd, channel_fn fn)
{
	struct air_list *pos, *next;
	air_status status = AIR_OK;

	air_list_each(pos, next, &dev->channels) {
		status = fn(dev->priv, fd,
			    air_list_entry(pos, struct air_channel, node));
		if (status != AIR_OK)
			break;
	}
	return status;
}

/*
 * AIR_PENDING: one is cut, no need to look at the others. No daemon would help
 * one that is broken.
 */
static air_status is_cut(struct unix_device *ud, int fd, struct air_channel *ch)
{
	if (air_load(&ch->broken, RELAXED))
		return AIR_OK;
	return air_load(&ch->care, ACQUIRE) & AIR_CARE_CUT ? AIR_PENDING
							   : AIR_OK;
}

static air_status register_buffers(struct unix_device *ud, int fd,
				   struct air_channel *ch)
{
	air_status status;

	if (air_load(&ch->broken, RELAXED))
		return AIR_OK;
	pthread_mutex_lock(&ch->lock);
	status = air_buffer_register_all(ch);
	pthread_mutex_unlock(&ch->lock);
	if (is_refusal(status)) {
		air_store(&ch->broken, true, RELAXED);
		status = AIR_OK;
	}
	return status;
}

static air_status mend(struct unix_device *ud, int fd, struct air_channel *ch)
{
	if (!air_load(&ch->broken, RELAXED))
		air_channel_mend(ch);
	return AIR_OK;
}

/*
 * Whether the old daemon is done with all channels: it unmaps one before it
 * closes the bell. To cut a channel that it still works on would be to answer
 * beside it.
 */
static bool let_go(struct air_device *dev)
{
	uint64_t deadline = air_now() + LET_GO_MS * UINT64_C(1000000);
	struct air_list *pos, *next;

	air_list_each(pos, next, &dev->channels) {
		struct unix_channel *uc =
			air_list_entry(pos, struct air_channel, node)->priv;
		int n;

		do {
			n = poll_end(uc->bell,
				     (int)(air_remaining(deadline) / 1000000));
		} while (n < 0 && errno == EINTR);
		if (n <= 0)
			return false;
	}
	return true;
}

static air_status reach_again(struct air_device *dev)
{
	struct unix_device *ud = dev->priv;
	air_status status;
	int fd;

	status = reach(ud, &fd);
	if (status != AIR_OK)
		return air_error_set(AIR_NO_WORKER,
				     "the daemon is gone and not back yet: %s",
				     air_last_error());
	/* Not only closed: a forked child may have it as well. */
	shutdown(ud->fd, SHUT_RDWR);
	close_fd(&ud->fd);
	ud->lost = true;
	if (!let_go(dev)) {
		close(fd);
		return air_error_static(AIR_NO_WORKER,
					"the daemon has not let go of the "
					"device's channels yet: try again");
	}
	ud->fd = fd;
	ud->lost = false;
	return each_channel(dev, fd, revive_channel);
}

static air_status unix_revive(struct air_device *dev)
{
	struct unix_device *ud = dev->priv;
	air_status status = AIR_OK;

	pthread_mutex_lock(&dev->lock);
	pthread_mutex_lock(&ud->lock);
	if (!ud->lost && each_channel(dev, -1, is_cut) == AIR_OK) {
		pthread_mutex_unlock(&ud->lock);
		goto out;
	}
	status = reach_again(dev);
	pthread_mutex_unlock(&ud->lock);
	if (status == AIR_OK)
		status = each_channel(dev, -1, register_buffers);
	/* Until now every submitter came here to wait for it. */
	if (status == AIR_OK)
		status = each_channel(dev, -1, mend);
	if (status == AIR_WORKER_DIED)
		status = AIR_NO_WORKER;
out:
	pthread_mutex_unlock(&dev->lock);
	return status;
}

const struct air_transport_ops air_transport_unix = {
	.kind = AIR_UNIX,
	.mapping = AIR_MAPPING_SEALED,
	.keep_fd = true,
	.open = unix_open,
	.close = unix_close,
	.caps = unix_caps,
	.channel_build = unix_channel_build,
	.channel_destroy = unix_channel_destroy,
	.buffer_register = unix_buffer_register,
	.doorbell = unix_doorbell,
	.sleep_begin = unix_sleep_begin,
	.sleep = unix_sleep,
	.check = unix_check,
	.served = unix_served,
	.notify_fd = unix_notify_fd,
	.notify_clear = unix_notify_clear,
	.revive = unix_revive,
};
