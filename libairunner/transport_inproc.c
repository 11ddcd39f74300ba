// SPDX-License-Identifier: MIT
/*
 * "inproc:": the worker is a thread of this process. Memory needs no handing
 * over, doorbells are function calls, and waiters sleep on the futex in the
 * region.
 */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <airunner.h>

#include "libairunner/channel.h"
#include "libairunner/clock.h"
#include "libairunner/error.h"
#include "ops/worker/worker.h"

/**
 * struct inproc_channel - what the transport adds to a channel
 * @wch: the worker's side
 * @notify: eventfd for air_channel_fd(); -1 before that is asked for
 * @gone: bit a handle: the worker has let go of its memory
 * @lock: for @removed
 */
struct inproc_channel {
	struct air_channel *ch;
	struct air_wchannel *wch;
	int notify;
	uint64_t gone[(AIRUNNER_HANDLE_NONE + 1) / 64];
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool removed;
	bool dead;
};

static air_status explain(air_status status, const struct air_error *e)
{
	return air_error_set(status, "%s",
			     e->text[0] ? e->text : air_status_string(status));
}

/* ----------------------------------------------- on the worker's thread */

static void on_wake(void *owner, struct air_wchannel *wch)
{
	struct inproc_channel *ic = owner;
	int fd = air_load(&ic->notify, ACQUIRE);
	uint64_t one = 1;

	air_wchannel_wake_futex(wch);
	/* A counter that is full is readable, which is all that is wanted. */
	if (fd >= 0 && write(fd, &one, sizeof(one)) < 0)
		errno = 0;
}

static void on_buffer_gone(void *owner, uint32_t handle, void *host,
			   uint64_t size)
{
	struct inproc_channel *ic = owner;

	__atomic_fetch_or(&ic->gone[handle / 64], UINT64_C(1) << handle % 64,
			  __ATOMIC_RELEASE);
}

static void on_dead(void *owner, struct air_wchannel *wch, const char *sentence)
{
	struct inproc_channel *ic = owner;

	air_store(&ic->dead, true, RELEASE);
	on_wake(owner, wch);
}

static void on_removed(void *owner)
{
	struct inproc_channel *ic = owner;

	pthread_mutex_lock(&ic->lock);
	ic->removed = true;
	pthread_cond_signal(&ic->cond);
	pthread_mutex_unlock(&ic->lock);
}

static const struct air_wchannel_ops wchannel_ops = {
	.wake = on_wake,
	.buffer_gone = on_buffer_gone,
	.dead = on_dead,
	.removed = on_removed,
};

/* -------------------------------------------------------------- device */

static air_status inproc_open(struct air_device *dev, const char *where,
			      const struct air_device_options *options)
{
	struct air_worker_config config = {
		.threads = options->threads,
		.spin_ns = options->spin_ns,
		.executors = options->executors,
		.park_ns = options->park_ns,
		.large_bytes = options->large_bytes,
		.large_alone = options->large_alone,
	};
	struct air_error e = { .text = "" };
	struct air_worker *w;
	air_status status;

	status = air_worker_create(&config, &w, &e);
	if (status != AIR_OK)
		return explain(status, &e);
	status = air_worker_start(w, &e);
	if (status != AIR_OK) {
		air_worker_destroy(w);
		return explain(status, &e);
	}
	dev->priv = w;
	return AIR_OK;
}

static void inproc_close(struct air_device *dev)
{
	air_worker_stop(dev->priv);
	air_worker_destroy(dev->priv);
}

static air_status inproc_caps(struct air_device *dev, air_executor executor,
			      struct air_backend_caps *caps)
{
	air_status status = air_worker_caps(dev->priv, executor, caps);

	if (status != AIR_OK)
		return air_error_set(status, "capabilities: %s",
				     air_status_string(status));
	return AIR_OK;
}

static air_status inproc_quiet(struct air_device *dev, bool on)
{
	return on ? air_worker_quiet_begin(dev->priv) :
		    air_worker_quiet_end(dev->priv);
}

/* ------------------------------------------------------------- channel */

static air_status inproc_channel_build(struct air_channel *ch,
				       const struct air_channel_options *o)
{
	struct air_wchannel_config config = {
		.region = ch->region.addr,
		.size = ch->region.size,
		.order = ch->ring.order,
		.executor = o->executor,
		.ops = &wchannel_ops,
	};
	struct inproc_channel *ic = calloc(1, sizeof(*ic));
	struct air_error e = { .text = "" };
	air_status status;

	if (!ic)
		return air_error_static(AIR_NO_MEMORY,
					"no memory for a channel");
	ic->ch = ch;
	ic->notify = -1;
	pthread_mutex_init(&ic->lock, NULL);
	pthread_cond_init(&ic->cond, NULL);
	config.owner = ic;
	status = air_worker_add_channel(ch->dev->priv, &config, &ic->wch, &e);
	if (status != AIR_OK) {
		pthread_cond_destroy(&ic->cond);
		pthread_mutex_destroy(&ic->lock);
		free(ic);
		return explain(status, &e);
	}
	ch->priv = ic;
	return AIR_OK;
}

static void inproc_channel_destroy(struct air_channel *ch)
{
	struct inproc_channel *ic = ch->priv;

	air_worker_remove_channel(ic->wch, AIR_REMOVE_DRAIN);
	pthread_mutex_lock(&ic->lock);
	while (!ic->removed)
		pthread_cond_wait(&ic->cond, &ic->lock);
	pthread_mutex_unlock(&ic->lock);
	if (ic->notify >= 0)
		close(ic->notify);
	pthread_cond_destroy(&ic->cond);
	pthread_mutex_destroy(&ic->lock);
	free(ic);
}

/* ------------------------------------------------------------- buffers */

static air_status inproc_buffer_register(struct air_channel *ch,
					 struct air_buffer *buf)
{
	struct inproc_channel *ic = ch->priv;
	struct air_wbuffer_config config = {
		.host = buf->mapping.addr,
		.size = buf->mapping.size,
		.memory = buf->memory,
		.device = buf->device,
	};
	struct air_error e = { .text = "" };
	air_status status;

	__atomic_fetch_and(&ic->gone[buf->handle / 64],
			   ~(UINT64_C(1) << buf->handle % 64),
			   __ATOMIC_RELAXED);
	status = air_worker_add_buffer(ic->wch, buf->handle, &config, &e);
	return status == AIR_OK ? AIR_OK : explain(status, &e);
}

static bool inproc_buffer_released(struct air_channel *ch,
				   struct air_buffer *buf)
{
	struct inproc_channel *ic = ch->priv;

	/* Device memory the worker allocated is its own business. */
	if (buf->memory == AIR_DEVICE && !buf->imported)
		return true;
	return air_load(&ic->gone[buf->handle / 64], ACQUIRE) >>
		       buf->handle % 64 &
	       1;
}

/* ------------------------------------------------------------- streams */

static air_status inproc_handover(struct air_channel *ch)
{
	struct inproc_channel *ic = ch->priv;
	air_status status = air_worker_handover(ic->wch);

	if (status == AIR_UNSUPPORTED)
		return air_error_static(AIR_UNSUPPORTED,
					"air_stream_wait: the worker has no "
					"CUDA executor");
	if (status != AIR_OK)
		return air_error_set(status, "air_stream_wait: %s",
				     air_status_string(status));
	return AIR_OK;
}

static air_status inproc_stream_wait(struct air_channel *ch, uint64_t index,
				     void *stream)
{
	struct inproc_channel *ic = ch->priv;
	struct air_error e = { .text = "" };
	air_status status =
		air_worker_stream_wait(ic->wch, index, stream, &e);

	switch (status) {
	case AIR_OK:
	case AIR_BUSY:
	case AIR_FULL:
		return status;
	default:
		return explain(status, &e);
	}
}

/* ------------------------------------------------------------ wake-ups */

static air_status state(struct inproc_channel *ic)
{
	if (!air_load(&ic->dead, ACQUIRE))
		return AIR_OK;
	pthread_mutex_lock(&ic->ch->answer_lock);
	air_channel_cut(ic->ch, AIR_CHANNEL_DEAD);
	pthread_mutex_unlock(&ic->ch->answer_lock);
	return AIR_CHANNEL_DEAD;
}

static air_status inproc_doorbell(struct air_channel *ch, bool watch)
{
	struct inproc_channel *ic = ch->priv;

	/* The worker is here: it sees a sleeper that wants to be watched. */
	air_worker_doorbell(ic->wch);
	return state(ic);
}

static uint64_t inproc_sleep_begin(struct air_channel *ch)
{
	return air_load(&ch->ring.ctrl->cq_bell, ACQUIRE);
}

static air_status inproc_sleep(struct air_channel *ch, uint64_t seq,
			       uint64_t deadline)
{
	struct inproc_channel *ic = ch->priv;
	struct timespec ts, *until = NULL;
	air_status status = state(ic);

	if (status != AIR_OK)
		return status;
	if (deadline != UINT64_MAX) {
		ts.tv_sec = (time_t)(deadline / 1000000000u);
		ts.tv_nsec = (long)(deadline % 1000000000u);
		until = &ts;
	}
	syscall(SYS_futex, &ch->ring.ctrl->cq_bell, FUTEX_WAIT_BITSET,
		(uint32_t)seq, until, NULL, FUTEX_BITSET_MATCH_ANY);
	return state(ic);
}

static air_status inproc_check(struct air_channel *ch)
{
	return state(ch->priv);
}

static bool inproc_served(struct air_channel *ch)
{
	return true;
}

static air_status inproc_notify_fd(struct air_channel *ch, int *fd)
{
	struct inproc_channel *ic = ch->priv;
	air_status status = AIR_OK;

	pthread_mutex_lock(&ic->lock);
	if (ic->notify < 0) {
		int new = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

		if (new < 0)
			status = air_error_set(AIR_SYSTEM, "eventfd: %s",
					       strerror(errno));
		else
			air_store(&ic->notify, new, RELEASE);
	}
	if (status == AIR_OK)
		*fd = ic->notify;
	pthread_mutex_unlock(&ic->lock);
	return status;
}

static void inproc_notify_clear(struct air_channel *ch)
{
	struct inproc_channel *ic = ch->priv;
	int fd = air_load(&ic->notify, ACQUIRE);
	uint64_t n;

	if (fd >= 0 && read(fd, &n, sizeof(n)) < 0)
		errno = 0;
}

const struct air_transport_ops air_transport_inproc = {
	.kind = AIR_INPROC,
	.mapping = AIR_MAPPING_ANONYMOUS,
	.imports = true,
	.open = inproc_open,
	.close = inproc_close,
	.caps = inproc_caps,
	.quiet = inproc_quiet,
	.channel_build = inproc_channel_build,
	.channel_destroy = inproc_channel_destroy,
	.buffer_register = inproc_buffer_register,
	.buffer_released = inproc_buffer_released,
	.doorbell = inproc_doorbell,
	.sleep_begin = inproc_sleep_begin,
	.sleep = inproc_sleep,
	.check = inproc_check,
	.handover = inproc_handover,
	.stream_wait = inproc_stream_wait,
	.served = inproc_served,
	.notify_fd = inproc_notify_fd,
	.notify_clear = inproc_notify_clear,
};
