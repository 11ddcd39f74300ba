// SPDX-License-Identifier: MIT
/*
 * The worker's side of /dev/airunner. The module says which channel is served
 * next and for how long (READY); what was used is reported with the next WAIT.
 * The worker page shows without a system call whether WAIT has anything.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ops/worker/daemon/daemon.h"

#define BUCKETS		256
#define MAX_REPORTS	64
#define MAX_EVENTS	64
/* WAITs in a row before the channels get their turn. */
#define MAX_ROUNDS	4

struct buffer {
	struct buffer *next;
	void *host;
	struct air_guard *guard;
};

/* A channel of the module that this worker has. */
struct channel {
	struct channel *next;
	struct kernel *k;
	struct air_wchannel *ch;
	struct air_guard *guard;
	struct buffer *buffers;
	void *region;
	uint64_t size;
	uint32_t id;
};

struct kernel {
	struct air_source s;
	struct air_worker *w;
	struct air_kernel_config config;
	int fd;
	const struct airunner_worker_page *page;
	struct channel *bucket[BUCKETS];
	uint32_t n_reports;
	struct airunner_report report[MAX_REPORTS];
};

static struct channel **find(struct kernel *k, uint32_t id)
{
	struct channel **at = &k->bucket[id % BUCKETS];

	while (*at && (*at)->id != id)
		at = &(*at)->next;
	return at;
}

/* What is not remembered is not released twice; the module knows the rest. */
static void detach(struct kernel *k, uint32_t id)
{
	struct airunner_channel_ref ref = {
		.size = sizeof(ref),
		.channel_id = id,
	};

	if (ioctl(k->fd, AIRUNNER_IOC_DETACH_CHANNEL, &ref) && errno != ENXIO)
		air_log(AIR_LOG_WARNING, "channel %u: DETACH_CHANNEL: %s", id,
			strerror(errno));
}

/* ------------------------------------------------------------ channel ops */

static void on_wake(void *owner, struct air_wchannel *ch)
{
	struct channel *c = owner;
	struct airunner_doorbell bell = {
		.size = sizeof(bell),
		.channel_id = c->id,
	};

	/* A channel that has ended has nobody to wake. */
	ioctl(c->k->fd, AIRUNNER_IOC_DOORBELL, &bell);
}

static void unmap_buffer(struct kernel *k, uint32_t id, uint32_t handle,
			 void *host, uint64_t size)
{
	struct airunner_buffer info = {
		.size = sizeof(info),
		.channel_id = id,
		.handle = handle,
	};

	if (host)
		munmap(host, size);
	ioctl(k->fd, AIRUNNER_IOC_UNREGISTER_BUFFER, &info);
}

static air_status on_buffer_find(void *owner, struct air_wchannel *ch,
				 uint32_t handle)
{
	struct channel *c = owner;
	struct airunner_buffer info = {
		.size = sizeof(info),
		.channel_id = c->id,
		.handle = handle,
	};
	struct air_wbuffer_config config = { .memory = AIR_HOST };
	struct buffer *b;
	air_status st;

	if (ioctl(c->k->fd, AIRUNNER_IOC_BUFFER_INFO, &info))
		return AIR_BAD_HANDLE;
	b = calloc(1, sizeof(*b));
	if (!b) {
		unmap_buffer(c->k, c->id, handle, NULL, 0);
		return AIR_NO_MEMORY;
	}
	config.size = info.length;
	config.host = mmap(NULL, info.length, PROT_READ | PROT_WRITE,
			   MAP_SHARED, c->k->fd, (off_t)info.mmap_offset);
	if (config.host == MAP_FAILED) {
		unmap_buffer(c->k, c->id, handle, NULL, 0);
		free(b);
		return AIR_BAD_HANDLE;
	}
	b->host = config.host;
	b->guard = air_guard_add(config.host, config.size);
	if (b->guard)
		air_guard_channel(b->guard, ch);
	b->next = c->buffers;
	c->buffers = b;
	st = air_worker_add_buffer(ch, handle, &config, NULL);
	if (!st)
		return AIR_OK;
	c->buffers = b->next;
	air_guard_remove(b->guard);
	unmap_buffer(c->k, c->id, handle, config.host, config.size);
	free(b);
	return st;
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
	air_guard_remove(b->guard);
	free(b);
	unmap_buffer(c->k, c->id, handle, host, size);
}

static void on_turn_over(void *owner, struct air_wchannel *ch, uint32_t flags,
			 uint64_t device_ns, uint64_t completed);

static void on_removed(void *owner)
{
	struct channel *c = owner, **at = find(c->k, c->id);

	*at = c->next;
	air_guard_remove(c->guard);
	munmap(c->region, c->size);
	detach(c->k, c->id);
	air_log(AIR_LOG_INFO, "channel %u: let go", c->id);
	free(c);
}

static const struct air_wchannel_ops channel_ops = {
	.wake = on_wake,
	.buffer_find = on_buffer_find,
	.buffer_gone = on_buffer_gone,
	.turn_over = on_turn_over,
	.removed = on_removed,
};

/* ----------------------------------------------------------------- events */

static void on_new(struct kernel *k, const struct airunner_event *ev)
{
	struct air_wchannel_config config = {
		.size = ev->region_size,
		.order = ev->order,
		.ops = &channel_ops,
		.priority = ev->priority,
		.best_prio = &k->page->best_prio,
	};
	struct air_error e = { "" };
	struct channel *c = calloc(1, sizeof(*c));
	char label[64];

	if (!c) {
		air_fail(&e, AIR_NO_MEMORY, "no memory");
		goto refuse;
	}
	snprintf(label, sizeof(label), "pid %d uid %u (channel %u)",
		 ev->owner_pid, ev->owner_uid, ev->channel_id);
	c->k = k;
	c->id = ev->channel_id;
	c->size = ev->region_size;
	c->region = mmap(NULL, c->size, PROT_READ | PROT_WRITE, MAP_SHARED,
			 k->fd, (off_t)ev->mmap_offset);
	if (c->region == MAP_FAILED) {
		air_fail(&e, AIR_SYSTEM, "mmap: %s", strerror(errno));
		goto refuse;
	}
	c->guard = air_guard_add(c->region, c->size);
	config.region = c->region;
	config.owner = c;
	config.label = label;
	if (!c->guard || air_worker_add_channel(k->w, &config, &c->ch, &e))
		goto unmap;
	air_guard_channel(c->guard, c->ch);
	c->next = k->bucket[c->id % BUCKETS];
	k->bucket[c->id % BUCKETS] = c;
	air_log(AIR_LOG_INFO, "channel %u: pid %d, uid %u, %llu bytes, %u slots",
		c->id, ev->owner_pid, ev->owner_uid,
		(unsigned long long)c->size, 1u << ev->order);
	return;
unmap:
	air_guard_remove(c->guard);
	munmap(c->region, c->size);
refuse:
	air_log(AIR_LOG_WARNING, "channel %u: refused: %s", ev->channel_id,
		e.text);
	free(c);
	detach(k, ev->channel_id);
}

static void on_buffer_event(struct kernel *k, struct channel *c,
			    const struct airunner_event *ev)
{
	/* One that was never used here is not held here. */
	if (air_worker_drop_buffer(c->ch, ev->handle) == AIR_BAD_HANDLE)
		unmap_buffer(k, c->id, ev->handle, NULL, 0);
}

static void on_event(struct kernel *k, const struct airunner_event *ev)
{
	struct channel *c = *find(k, ev->channel_id);

	if (ev->type == AIRUNNER_EV_CHANNEL_NEW) {
		if (!c)
			on_new(k, ev);
		return;
	}
	if (!c)
		return;
	switch (ev->type) {
	case AIRUNNER_EV_READY:
		air_wchannel_ready(c->ch, ev->quantum_ns, ev->priority);
		break;
	case AIRUNNER_EV_CHANNEL_GONE:
		air_worker_remove_channel(c->ch, AIR_REMOVE_DRAIN);
		break;
	case AIRUNNER_EV_CHANNEL_RESET:
		air_worker_remove_channel(c->ch, AIR_REMOVE_DROP);
		break;
	case AIRUNNER_EV_WATCH:
		air_wchannel_watch(c->ch);
		break;
	case AIRUNNER_EV_BUFFER_GONE:
		on_buffer_event(k, c, ev);
		break;
	}
}

/*
 * Hand in the reports, take up to @room events without waiting. Number of
 * events; 0 also when the device no longer talks to us.
 */
static unsigned int wait_events(struct kernel *k, struct airunner_event *events,
				uint32_t room)
{
	struct airunner_wait wait = {
		.size = sizeof(wait),
		.nr_reports = k->n_reports,
		.reports = (uintptr_t)k->report,
		.events = (uintptr_t)events,
		.nr_events = room,
	};

	k->n_reports = 0;
	if (!ioctl(k->fd, AIRUNNER_IOC_WAIT, &wait))
		return wait.nr_events;
	if (errno == ETIME || errno == EINTR)
		return 0;
	air_log(AIR_LOG_ERROR, "%s: WAIT: %s; stopping", k->config.device,
		strerror(errno));
	air_worker_stop_async(k->w);
	return 0;
}

static void on_turn_over(void *owner, struct air_wchannel *ch, uint32_t flags,
			 uint64_t device_ns, uint64_t completed)
{
	struct channel *c = owner;
	struct kernel *k = c->k;

	if (k->n_reports == MAX_REPORTS)
		wait_events(k, NULL, 0);
	k->report[k->n_reports++] = (struct airunner_report){
		.channel_id = c->id,
		.flags = flags,
		.device_ns = device_ns,
		.completed = completed,
	};
	k->s.due = true;
}

/* ----------------------------------------------------------------- source */

static void kernel_serve(struct air_source *s)
{
	struct kernel *k = (struct kernel *)s;
	struct airunner_event events[MAX_EVENTS];
	unsigned int n;

	for (int round = 0; round < MAX_ROUNDS; round++) {
		n = wait_events(k, events, MAX_EVENTS);
		for (unsigned int i = 0; i < n; i++)
			on_event(k, &events[i]);
		if (n < MAX_EVENTS)
			break;
	}
}

static int kernel_fd(struct air_source *s)
{
	return ((struct kernel *)s)->fd;
}

static uint64_t worker_caps(struct air_worker *w)
{
	static const uint64_t bit[AIR_EXECUTORS] = {
		[AIRUNNER_EXEC_CPU] = AIRUNNER_CAP_CPU,
		[AIRUNNER_EXEC_CUDA_LAUNCH] = AIRUNNER_CAP_CUDA,
		[AIRUNNER_EXEC_CUDA_RESIDENT] = AIRUNNER_CAP_RESIDENT,
	};
	struct air_backend_caps caps = { .size = sizeof(caps) };
	uint64_t all = 0;

	for (uint32_t id = 1; id < AIR_EXECUTORS; id++)
		if (!air_worker_caps(w, (air_executor)id, &caps) &&
		    caps.present)
			all |= bit[id];
	return all;
}

static air_status kernel_begin(struct air_source *s, struct air_worker *w,
			       struct air_error *e)
{
	struct kernel *k = (struct kernel *)s;
	struct airunner_attach_worker attach = {
		.size = sizeof(attach),
		.flags = k->config.own ? AIRUNNER_WORKER_OWN : 0,
		.caps = worker_caps(w),
	};
	void *page;

	k->w = w;
	snprintf(attach.name, sizeof(attach.name), "%s", k->config.name);
	if (ioctl(k->fd, AIRUNNER_IOC_ATTACH_WORKER, &attach))
		return air_fail(e, errno == EPERM ? AIR_PERMISSION : AIR_SYSTEM,
				"%s: ATTACH_WORKER: %s%s", k->config.device,
				strerror(errno),
				errno == EPERM ?
					" (needs CAP_SYS_ADMIN or the group in worker_gid; or --own)" :
					"");
	page = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ, MAP_SHARED,
		    k->fd, (off_t)attach.page_offset);
	if (page == MAP_FAILED)
		return air_fail(e, AIR_SYSTEM, "%s: worker page: %s",
				k->config.device, strerror(errno));
	k->page = page;
	s->pending = &k->page->pending;
	s->due = true;
	air_log(AIR_LOG_INFO, "worker %u of %s, capabilities 0x%llx",
		attach.worker_id, k->config.device,
		(unsigned long long)attach.caps);
	return AIR_OK;
}

/* Channels that come all the same are refused by the worker, and detached. */
static void kernel_quiesce(struct air_source *s)
{
}

static void kernel_end(struct air_source *s)
{
	struct kernel *k = (struct kernel *)s;

	if (k->page)
		munmap((void *)k->page, (size_t)sysconf(_SC_PAGESIZE));
	k->page = NULL;
	s->pending = NULL;
}

static const struct air_source_ops kernel_ops = {
	.begin = kernel_begin,
	.fd = kernel_fd,
	.serve = kernel_serve,
	.quiesce = kernel_quiesce,
	.end = kernel_end,
};

static air_status check_abi(struct kernel *k, struct air_error *e)
{
	struct airunner_info info = { .size = sizeof(info) };

	if (ioctl(k->fd, AIRUNNER_IOC_GET_INFO, &info))
		return air_fail(e, AIR_SYSTEM, "%s: GET_INFO: %s",
				k->config.device, strerror(errno));
	if (info.abi_major != AIRUNNER_ABI_MAJOR)
		return air_fail(e, AIR_ABI,
				"%s: the module's ABI is %u.%u; this program knows %u",
				k->config.device, info.abi_major,
				info.abi_minor, AIRUNNER_ABI_MAJOR);
	return AIR_OK;
}

struct air_source *air_kernel_create(const struct air_kernel_config *config,
				     struct air_error *e)
{
	struct kernel *k = calloc(1, sizeof(*k));

	if (!k) {
		air_fail(e, AIR_NO_MEMORY, "no memory");
		return NULL;
	}
	k->s.ops = &kernel_ops;
	k->config = *config;
	k->fd = open(config->device, O_RDWR | O_CLOEXEC);
	if (k->fd < 0) {
		air_fail(e, AIR_NO_DEVICE, "%s: %s%s", config->device,
			 strerror(errno),
			 errno == ENOENT ? " (is the module loaded?)" : "");
		free(k);
		return NULL;
	}
	if (check_abi(k, e)) {
		air_kernel_destroy(&k->s);
		return NULL;
	}
	return &k->s;
}

void air_kernel_destroy(struct air_source *s)
{
	struct kernel *k = (struct kernel *)s;

	if (!k)
		return;
	close(k->fd);
	free(k);
}
