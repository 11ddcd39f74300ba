// SPDX-License-Identifier: MIT
/*
 * Devices: which transport a name stands for, and opening it.
 */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <airunner.h>

#include "libairunner/device.h"
#include "libairunner/error.h"
#include "libairunner/membarrier.h"
#include "include/uapi/airunner.h"

#define DEFAULT_SPIN_NS 20000

air_status air_device_usable(const struct air_device *dev)
{
	if (dev->fork_generation == air_fork_generation)
		return AIR_OK;
	return air_error_static(AIR_FORKED,
				"the device belongs to this process's parent: "
				"open one of your own after fork()");
}

air_status air_options_take(void *to, uint32_t known, const void *from,
			    const char *name)
{
	uint32_t size;

	memset(to, 0, known);
	if (!from)
		return AIR_OK;
	memcpy(&size, from, sizeof(size));
	if (size < sizeof(size))
		return air_error_set(AIR_BAD_ARGUMENT,
				     "%s: size is %u; set it to sizeof()", name,
				     size);
	for (uint32_t i = known; i < size; i++)
		if (((const unsigned char *)from)[i])
			return air_error_set(
				AIR_ABI,
				"%s: of %u bytes this library knows %u, and "
				"there is something behind them",
				name, size, known);
	memcpy(to, from, size < known ? size : known);
	return AIR_OK;
}

/*
 * Polling is of use only while somebody else can run: with one processor it
 * just keeps the worker from it.
 */
static uint64_t choose_spin(uint64_t wanted)
{
	cpu_set_t cpus;

	if (wanted)
		return wanted;
	if (sched_getaffinity(0, sizeof(cpus), &cpus) == 0)
		return CPU_COUNT(&cpus) > 1 ? DEFAULT_SPIN_NS : 0;
	return sysconf(_SC_NPROCESSORS_ONLN) > 1 ? DEFAULT_SPIN_NS : 0;
}

static const struct air_transport_ops *choose(const char **where)
{
	const char *s = *where;

	if (!strcmp(s, "inproc:"))
		return &air_transport_inproc;
	if (!strncmp(s, "unix:", 5)) {
		*where = s + 5;
		return &air_transport_unix;
	}
	if (*s == '/')
		return &air_transport_kernel;
	return NULL;
}

air_status air_device_open(const struct air_transport_ops *ops,
			   const char *where,
			   const struct air_device_options *options,
			   air_device **out)
{
	struct air_device *dev = calloc(1, sizeof(*dev));
	air_status status;

	if (!dev)
		return air_error_static(AIR_NO_MEMORY,
					"no memory for a device");
	dev->ops = ops;
	dev->fork_generation = air_fork_generation;
	dev->asym = air_membarrier_register();
	dev->spin_ns = choose_spin(options->spin_ns);
	dev->max_handle = AIRUNNER_HANDLE_NONE - 2;
	pthread_mutex_init(&dev->lock, NULL);
	air_list_init(&dev->channels);
	air_cache_init(&dev->cache);
	status = ops->open(dev, where, options);
	if (status != AIR_OK) {
		pthread_mutex_destroy(&dev->lock);
		free(dev);
		return status;
	}
	*out = dev;
	return AIR_OK;
}

air_status air_open(const char *where, const struct air_device_options *options,
		    air_device **out)
{
	const struct air_transport_ops *ops;
	struct air_device_options o;
	air_status status;

	if (!out)
		return air_error_static(AIR_BAD_ARGUMENT,
					"air_open: out is NULL");
	status = air_options_take(&o, sizeof(o), options, "device options");
	if (status != AIR_OK)
		return status;
	if (o.reserved || o.large_alone > 1)
		return air_error_set(
			AIR_BAD_ARGUMENT,
			"device options: %s is %u; expected %s",
			o.reserved ? "reserved" : "large_alone",
			o.reserved ? o.reserved : o.large_alone,
			o.reserved ? "0" : "0 or 1");
	if (!air_fork_watch())
		return air_error_static(AIR_NO_MEMORY,
					"no memory for a fork handler");
	if (!where)
		where = getenv("AIRUNNER");
	if (!where || !*where) {
		if (air_device_open(&air_transport_kernel, AIRUNNER_DEVICE, &o,
				    out) == AIR_OK)
			return AIR_OK;
		where = "inproc:";
	}
	ops = choose(&where);
	if (!ops)
		return air_error_set(
			AIR_BAD_ARGUMENT,
			"air_open: \"%s\" is neither \"inproc:\" nor "
			"\"unix:PATH\" nor the path of a device",
			where);
	return air_device_open(ops, where, &o, out);
}

air_status air_close(air_device *dev)
{
	air_status status;

	if (!dev)
		return AIR_OK;
	status = air_device_usable(dev);
	if (status != AIR_OK)
		return status;
	if (!air_list_empty(&dev->channels))
		return air_error_static(
			AIR_BUSY,
			"the device still has channels: destroy them first");
	dev->ops->close(dev);
	pthread_mutex_destroy(&dev->lock);
	free(dev);
	return AIR_OK;
}

air_transport air_device_transport(const air_device *dev)
{
	return dev->ops->kind;
}

bool air_device_revived(struct air_device *dev, air_status *status)
{
	if (*status != AIR_WORKER_DIED || !dev->ops->revive)
		return false;
	*status = dev->ops->revive(dev);
	return *status == AIR_OK;
}

air_status air_backend_caps(air_device *dev, air_executor executor,
			    struct air_backend_caps *caps)
{
	struct air_backend_caps c;
	air_status status;
	uint32_t size;

	if (!dev || !caps)
		return air_error_set(AIR_BAD_ARGUMENT,
				     "air_backend_caps: %s is NULL",
				     dev ? "caps" : "device");
	status = air_device_usable(dev);
	if (status != AIR_OK)
		return status;
	size = caps->size;
	if (size < sizeof(size))
		return air_error_set(
			AIR_BAD_ARGUMENT,
			"air_backend_caps: size is %u; set it to sizeof(*caps)",
			size);
	if (executor < AIR_EXEC_CPU || executor > AIR_EXEC_CUDA_RESIDENT)
		return air_error_set(AIR_BAD_ARGUMENT,
				     "air_backend_caps: executor %u is unknown",
				     (unsigned int)executor);
	memset(&c, 0, sizeof(c));
	c.size = sizeof(c);
	c.executor = executor;
	status = dev->ops->caps(dev, executor, &c);
	if (air_device_revived(dev, &status))
		status = dev->ops->caps(dev, executor, &c);
	if (status != AIR_OK)
		return status;
	c.size = size < sizeof(c) ? size : (uint32_t)sizeof(c);
	memcpy(caps, &c, c.size);
	return AIR_OK;
}
