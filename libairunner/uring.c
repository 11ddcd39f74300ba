// SPDX-License-Identifier: MIT
#include "libairunner/uring.h"

#if __has_include(<liburing.h>)

#include <dlfcn.h>
#include <errno.h>
#include <liburing.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "include/uapi/airunner.h"
#include "libairunner/clock.h"

static struct {
	__typeof__(io_uring_queue_init) *queue_init;
	__typeof__(io_uring_queue_exit) *queue_exit;
	__typeof__(io_uring_submit) *submit;
	__typeof__(io_uring_wait_cqe_timeout) *wait_cqe_timeout;
	bool loaded;
} lib;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void load(void)
{
	void *so = dlopen("liburing.so.2", RTLD_NOW | RTLD_LOCAL);

	if (!so)
		return;
	lib.queue_init =
		(__typeof__(lib.queue_init))dlsym(so, "io_uring_queue_init");
	lib.queue_exit =
		(__typeof__(lib.queue_exit))dlsym(so, "io_uring_queue_exit");
	lib.submit = (__typeof__(lib.submit))dlsym(so, "io_uring_submit");
	lib.wait_cqe_timeout = (__typeof__(lib.wait_cqe_timeout))dlsym(
		so, "io_uring_wait_cqe_timeout");
	lib.loaded = lib.queue_init && lib.queue_exit && lib.submit &&
		     lib.wait_cqe_timeout;
}

/**
 * struct air_uring - a channel's ring
 * @lock: one thread at a time waits here
 * @state: whether it is set up yet, and whether that went well
 * @parked: a command was left waiting when a time-out struck
 */
struct air_uring {
	pthread_mutex_t lock;
	enum { UNTRIED, USABLE, UNUSABLE } state;
	bool parked;
	struct io_uring ring;
};

struct air_uring *air_uring_create(void)
{
	struct air_uring *u;

	pthread_once(&once, load);
	if (!lib.loaded)
		return NULL;
	u = calloc(1, sizeof(*u));
	if (u)
		pthread_mutex_init(&u->lock, NULL);
	return u;
}

void air_uring_destroy(struct air_uring *u)
{
	if (!u)
		return;
	/* Closing the ring takes a parked command back. */
	if (u->state == USABLE)
		lib.queue_exit(&u->ring);
	pthread_mutex_destroy(&u->lock);
	free(u);
}

static bool set_up(struct air_uring *u)
{
	if (u->state == UNTRIED)
		u->state = lib.queue_init(2, &u->ring, 0) ? UNUSABLE : USABLE;
	return u->state == USABLE;
}

static bool park(struct air_uring *u, int fd, uint32_t id, uint64_t seq)
{
	struct airunner_uring_wait arg = { .channel_id = id, .seq = seq };
	struct io_uring_sqe *sqe = io_uring_get_sqe(&u->ring);

	if (!sqe)
		return false;
	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = fd;
	sqe->cmd_op = AIRUNNER_URING_WAIT;
	/* The command area of a 64-byte entry: its last 16 bytes. */
	memcpy((char *)sqe + sizeof(*sqe) - sizeof(arg), &arg, sizeof(arg));
	u->parked = lib.submit(&u->ring) == 1;
	return u->parked;
}

static bool wait_parked(struct air_uring *u, uint64_t deadline, int *error)
{
	struct __kernel_timespec ts, *left = NULL;
	struct io_uring_cqe *cqe;
	int r;

	if (deadline != UINT64_MAX) {
		uint64_t ns = (uint64_t)air_remaining(deadline);

		ts.tv_sec = (long long)(ns / 1000000000u);
		ts.tv_nsec = (long long)(ns % 1000000000u);
		left = &ts;
	}
	r = lib.wait_cqe_timeout(&u->ring, &cqe, left);
	if (r < 0) {
		*error = -r;
		return true;
	}
	r = cqe->res;
	io_uring_cqe_seen(&u->ring, cqe);
	u->parked = false;
	/* A file or kernel that does not know the command. */
	if (r == -EOPNOTSUPP || r == -ENOTTY || r == -EINVAL) {
		lib.queue_exit(&u->ring);
		u->state = UNUSABLE;
		return false;
	}
	*error = r < 0 ? -r : 0;
	return true;
}

bool air_uring_wait(struct air_uring *u, int fd, uint32_t id, uint64_t seq,
		    uint64_t deadline, int *error)
{
	bool done = false;

	if (!u || pthread_mutex_trylock(&u->lock))
		return false;
	/* One that is parked has an older sequence: it returns early, at worst.
	 */
	if (set_up(u) && (u->parked || park(u, fd, id, seq)))
		done = wait_parked(u, deadline, error);
	pthread_mutex_unlock(&u->lock);
	return done;
}

#else

#include <stddef.h>

struct air_uring *air_uring_create(void)
{
	return NULL;
}

void air_uring_destroy(struct air_uring *u)
{
}

bool air_uring_wait(struct air_uring *u, int fd, uint32_t id, uint64_t seq,
		    uint64_t deadline, int *error)
{
	return false;
}

#endif
