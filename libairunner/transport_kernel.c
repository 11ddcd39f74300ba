// SPDX-License-Identifier: MIT
/*
 * "/dev/airunner": airunnerd behind the module.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <airunner.h>

#include "libairunner/channel.h"
#include "libairunner/clock.h"
#include "libairunner/error.h"
#include "libairunner/uring.h"
#include "ops/op.h"

/**
 * struct kernel_device - an open /dev/airunner
 * @fd: the file
 * @info: what it said at open
 * @path: for sentences
 */
struct kernel_device {
	int fd;
	struct airunner_info info;
	char path[64];
};

/**
 * struct kernel_channel - what the transport adds to a channel
 * @id: the module's number
 * @seq: completion sequence last seen by anybody: where a wait begins
 * @uring: waits through io_uring; NULL where that is not offered
 * @notify: eventfd for air_channel_fd(), -1 before
 */
struct kernel_channel {
	uint32_t id;
	uint64_t seq;
	struct air_uring *uring;
	int notify;
};

static int fd_of(const struct air_channel *ch)
{
	return ((struct kernel_device *)ch->dev->priv)->fd;
}

/* --------------------------------------------------------------- errors */

static bool may_lock_any(void)
{
	struct __user_cap_header_struct hdr = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct data[2] = { { 0 } };

	return syscall(SYS_capget, &hdr, data) == 0 &&
	       data[CAP_IPC_LOCK / 32].effective >> CAP_IPC_LOCK % 32 & 1;
}

/* The module says ENOMEM for memory and for the limit alike. */
static air_status no_memory(const char *what, uint64_t bytes)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_MEMLOCK, &limit) ||
	    limit.rlim_cur == RLIM_INFINITY || may_lock_any())
		return air_error_set(AIR_NO_MEMORY,
				     "%s of %llu bytes: out of memory", what,
				     (unsigned long long)bytes);
	return air_error_set(
		AIR_MEMLOCK,
		"%s of %llu bytes: a user's locked memory is limited to %llu "
		"bytes (RLIMIT_MEMLOCK); raise it with `ulimit -l`, memlock in "
		"/etc/security/limits.conf, or LimitMEMLOCK= of the systemd "
		"unit",
		what, (unsigned long long)bytes,
		(unsigned long long)limit.rlim_cur);
}

static air_status refused(const char *what, uint64_t bytes)
{
	int error = errno;

	switch (error) {
	case ENOMEM:
		return no_memory(what, bytes);
	case EDQUOT:
		return air_error_set(AIR_QUOTA,
				     "%s of %llu bytes: the user's quota is "
				     "reached (module parameters quota_*)",
				     what, (unsigned long long)bytes);
	case EPERM:
		return air_error_set(
			AIR_PERMISSION,
			"%s: a priority above normal needs CAP_SYS_NICE", what);
	case EACCES:
		return air_error_set(AIR_PERMISSION, "%s: %s", what,
				     strerror(error));
	case ENXIO:
	case ESHUTDOWN:
		return air_error_set(AIR_CHANNEL_DEAD,
				     "%s: the channel has ended", what);
	case E2BIG:
		return air_error_set(
			AIR_ABI,
			"%s: the module is older than this library and does "
			"not know all of the request",
			what);
	default:
		return air_error_set(AIR_SYSTEM, "%s of %llu bytes: %s", what,
				     (unsigned long long)bytes,
				     strerror(error));
	}
}

/* --------------------------------------------------------------- device */

static air_status open_error(const char *path)
{
	switch (errno) {
	case ENOENT:
	case ENODEV:
	case ENXIO:
		return air_error_set(
			AIR_NO_DEVICE,
			"%s: %s (is the module loaded? `modprobe airunner`)",
			path, strerror(errno));
	case EACCES:
	case EPERM:
		return air_error_set(AIR_PERMISSION,
				     "%s: %s (is the user in group airunner?)",
				     path, strerror(errno));
	default:
		return air_error_set(AIR_SYSTEM, "%s: %s", path,
				     strerror(errno));
	}
}

static air_status get_info(struct kernel_device *kd)
{
	memset(&kd->info, 0, sizeof(kd->info));
	kd->info.size = sizeof(kd->info);
	if (ioctl(kd->fd, AIRUNNER_IOC_GET_INFO, &kd->info)) {
		if (errno == ENOTTY)
			return air_error_set(AIR_NO_DEVICE,
					     "%s is not an airunner device",
					     kd->path);
		return air_error_set(AIR_SYSTEM, "%s: GET_INFO: %s", kd->path,
				     strerror(errno));
	}
	if (kd->info.abi_major != AIRUNNER_ABI_MAJOR)
		return air_error_set(
			AIR_ABI,
			"%s: the module's ABI is %u.%u, this library's %u.%u",
			kd->path, kd->info.abi_major, kd->info.abi_minor,
			AIRUNNER_ABI_MAJOR, AIRUNNER_ABI_MINOR);
	return AIR_OK;
}

static air_status kernel_open(struct air_device *dev, const char *where,
			      const struct air_device_options *options)
{
	struct kernel_device *kd;
	air_status status;

	if (strlen(where) >= sizeof(kd->path))
		return air_error_set(
			AIR_BAD_ARGUMENT,
			"\"%s\": a device's path has at most %zu characters",
			where, sizeof(kd->path) - 1);
	kd = calloc(1, sizeof(*kd));
	if (!kd)
		return air_error_static(AIR_NO_MEMORY,
					"no memory for a device");
	strcpy(kd->path, where);
	kd->fd = open(where, O_RDWR | O_CLOEXEC);
	if (kd->fd < 0) {
		status = open_error(where);
		goto fail;
	}
	status = get_info(kd);
	if (status != AIR_OK)
		goto fail_close;
	if (kd->info.max_buffers && kd->info.max_buffers < dev->max_handle)
		dev->max_handle = kd->info.max_buffers;
	dev->priv = kd;
	return AIR_OK;
fail_close:
	close(kd->fd);
fail:
	free(kd);
	return status;
}

static void kernel_close(struct air_device *dev)
{
	struct kernel_device *kd = dev->priv;

	close(kd->fd);
	free(kd);
}

/*
 * The module knows of its workers only which executors they have. What
 * operators there are is this library's own list; whether one can run as asked
 * for is what creating its descriptor says.
 */
static air_status kernel_caps(struct air_device *dev, air_executor executor,
			      struct air_backend_caps *caps)
{
	static const struct {
		uint64_t cap;
		const char *name;
	} known[] = {
		[AIR_EXEC_CPU] = { AIRUNNER_CAP_CPU, "cpu" },
		[AIR_EXEC_CUDA_LAUNCH] = { AIRUNNER_CAP_CUDA, "cuda-launch" },
		[AIR_EXEC_CUDA_RESIDENT] = { AIRUNNER_CAP_RESIDENT,
					     "cuda-resident" },
	};
	struct kernel_device *kd = dev->priv;
	air_status status = get_info(kd);

	if (status != AIR_OK)
		return status;
	snprintf(caps->name, sizeof(caps->name), "%s: %s", known[executor].name,
		 kd->info.worker_caps & known[executor].cap ?
			 "of a worker behind the module" :
			 "no worker behind the module has it");
	if (!(kd->info.worker_caps & known[executor].cap))
		return AIR_OK;
	caps->present = 1;
	caps->host_buffers = 1;
	caps->device_buffers = executor != AIR_EXEC_CPU;
	caps->user_kernels = executor == AIR_EXEC_CUDA_LAUNCH;
	for (uint32_t id = 1; id < AIR_OP_COUNT; id++)
		if (air_op_find(id))
			caps->ops |= UINT64_C(1) << id;
	return AIR_OK;
}

/* -------------------------------------------------------------- channel */

static air_status kernel_channel_build(struct air_channel *ch,
				       const struct air_channel_options *o)
{
	struct kernel_device *kd = ch->dev->priv;
	struct airunner_build_channel build = {
		.size = sizeof(build),
		.user_va = (uint64_t)(uintptr_t)ch->region.addr,
		.region_size = ch->region.size,
		.channels = AIRUNNER_CHANNELS,
		.order = ch->ring.order,
		.priority = o->priority ? (uint16_t)(o->priority - 1) :
					  AIRUNNER_PRIO_NORMAL,
		.weight = (uint16_t)o->weight,
	};
	struct kernel_channel *kc;

	if (o->executor == AIR_EXEC_CPU)
		build.need_caps = AIRUNNER_CAP_CPU;
	else if (o->executor == AIR_EXEC_CUDA_LAUNCH)
		build.need_caps = AIRUNNER_CAP_CUDA;
	else if (o->executor == AIR_EXEC_CUDA_RESIDENT)
		build.need_caps = AIRUNNER_CAP_RESIDENT;
	kc = calloc(1, sizeof(*kc));
	if (!kc)
		return air_error_static(AIR_NO_MEMORY,
					"no memory for a channel");
	if (ioctl(kd->fd, AIRUNNER_IOC_BUILD_CHANNEL, &build)) {
		free(kc);
		return refused("a channel", ch->region.size);
	}
	kc->id = build.channel_id;
	kc->notify = -1;
	if (kd->info.features & AIRUNNER_FEAT_URING)
		kc->uring = air_uring_create();
	ch->priv = kc;
	return AIR_OK;
}

static void kernel_channel_destroy(struct air_channel *ch)
{
	struct kernel_channel *kc = ch->priv;
	struct airunner_channel_ref ref = {
		.size = sizeof(ref),
		.channel_id = kc->id,
	};

	/* The module keeps the pages until the worker has detached. */
	ioctl(fd_of(ch), AIRUNNER_IOC_DESTROY_CHANNEL, &ref);
	air_uring_destroy(kc->uring);
	if (kc->notify >= 0)
		close(kc->notify);
	free(kc);
}

/* -------------------------------------------------------------- buffers */

static air_status kernel_buffer_register(struct air_channel *ch,
					 struct air_buffer *buf)
{
	struct kernel_channel *kc = ch->priv;
	struct airunner_buffer arg = {
		.size = sizeof(arg),
		.channel_id = kc->id,
		.handle = buf->handle,
		.user_va = (uint64_t)(uintptr_t)buf->mapping.addr,
		.length = buf->mapping.size,
	};

	if (ioctl(fd_of(ch), AIRUNNER_IOC_REGISTER_BUFFER, &arg))
		return refused("a buffer", buf->mapping.size);
	return AIR_OK;
}

static void kernel_buffer_unregister(struct air_channel *ch,
				     struct air_buffer *buf)
{
	struct kernel_channel *kc = ch->priv;
	struct airunner_buffer arg = {
		.size = sizeof(arg),
		.channel_id = kc->id,
		.handle = buf->handle,
	};

	ioctl(fd_of(ch), AIRUNNER_IOC_UNREGISTER_BUFFER, &arg);
}

/* ------------------------------------------------------------- wake-ups */

/* The module has ended the channel and answered what was outstanding then. */
static air_status end(struct air_channel *ch)
{
	pthread_mutex_lock(&ch->answer_lock);
	air_channel_cut(ch, AIR_CHANNEL_DEAD);
	pthread_mutex_unlock(&ch->answer_lock);
	return AIR_CHANNEL_DEAD;
}

/* What @error of a call for the channel, or 0, means to it. */
static air_status outcome(struct air_channel *ch, int error)
{
	return error == ESHUTDOWN || error == ENXIO || error == ENODEV ?
		       end(ch) :
		       AIR_OK;
}

static air_status kernel_doorbell(struct air_channel *ch, bool watch)
{
	struct kernel_channel *kc = ch->priv;
	struct airunner_doorbell bell = {
		.size = sizeof(bell),
		.flags = watch ? AIRUNNER_BELL_WATCH : 0,
		.channel_id = kc->id,
	};

	return outcome(ch, ioctl(fd_of(ch), AIRUNNER_IOC_DOORBELL, &bell) ?
				   errno :
				   0);
}

static uint64_t kernel_sleep_begin(struct air_channel *ch)
{
	struct kernel_channel *kc = ch->priv;

	return air_load(&kc->seq, ACQUIRE);
}

static air_status kernel_sleep(struct air_channel *ch, uint64_t seq,
			       uint64_t deadline)
{
	struct kernel_channel *kc = ch->priv;
	struct airunner_wait wait = {
		.size = sizeof(wait),
		.timeout_ns = air_remaining(deadline),
		.channel_id = kc->id,
		.seq = seq,
	};
	int error = 0;

	/* io_uring does not tell the sequence; asking without waiting does. */
	if (air_uring_wait(kc->uring, fd_of(ch), kc->id, seq, deadline, &error))
		wait.timeout_ns = 0;
	if (!error && ioctl(fd_of(ch), AIRUNNER_IOC_WAIT, &wait))
		error = errno;
	if (!error)
		air_store(&kc->seq, wait.seq, RELEASE);
	return outcome(ch, error);
}

static air_status kernel_check(struct air_channel *ch)
{
	struct kernel_channel *kc = ch->priv;
	struct airunner_wait wait = {
		.size = sizeof(wait),
		.channel_id = kc->id,
	};

	return outcome(ch,
		       ioctl(fd_of(ch), AIRUNNER_IOC_WAIT, &wait) ? errno : 0);
}

static bool kernel_served(struct air_channel *ch)
{
	struct airunner_info info = { .size = sizeof(info) };

	return ioctl(fd_of(ch), AIRUNNER_IOC_GET_INFO, &info) == 0 &&
	       info.workers > 0;
}

static air_status kernel_notify_fd(struct air_channel *ch, int *fd)
{
	struct kernel_channel *kc = ch->priv;
	struct airunner_set_eventfd set = {
		.size = sizeof(set),
		.channel_id = kc->id,
	};
	air_status status = AIR_OK;

	pthread_mutex_lock(&ch->lock);
	if (kc->notify < 0) {
		set.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (set.fd < 0) {
			status = air_error_set(AIR_SYSTEM, "eventfd: %s",
					       strerror(errno));
		} else if (ioctl(fd_of(ch), AIRUNNER_IOC_SET_EVENTFD, &set)) {
			status = air_error_set(AIR_SYSTEM, "SET_EVENTFD: %s",
					       strerror(errno));
			close(set.fd);
		} else {
			air_store(&kc->notify, set.fd, RELEASE);
		}
	}
	if (status == AIR_OK)
		*fd = kc->notify;
	pthread_mutex_unlock(&ch->lock);
	return status;
}

static void kernel_notify_clear(struct air_channel *ch)
{
	struct kernel_channel *kc = ch->priv;
	int fd = air_load(&kc->notify, ACQUIRE);
	uint64_t n;

	if (fd >= 0 && read(fd, &n, sizeof(n)) < 0)
		errno = 0;
}

const struct air_transport_ops air_transport_kernel = {
	.kind = AIR_KERNEL,
	.mapping = AIR_MAPPING_SEALED,
	.open = kernel_open,
	.close = kernel_close,
	.caps = kernel_caps,
	.channel_build = kernel_channel_build,
	.channel_destroy = kernel_channel_destroy,
	.buffer_register = kernel_buffer_register,
	.buffer_unregister = kernel_buffer_unregister,
	.doorbell = kernel_doorbell,
	.sleep_begin = kernel_sleep_begin,
	.sleep = kernel_sleep,
	.check = kernel_check,
	.served = kernel_served,
	.notify_fd = kernel_notify_fd,
	.notify_clear = kernel_notify_clear,
};
