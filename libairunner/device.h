/* SPDX-License-Identifier: MIT */
#ifndef AIR_DEVICE_H
#define AIR_DEVICE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <airunner.h>

#include "libairunner/cache.h"
#include "libairunner/fork.h"
#include "libairunner/list.h"
#include "libairunner/transport.h"

/**
 * struct air_device - a way to reach a worker
 * @ops: the transport
 * @priv: the transport's
 * @fork_generation: it was opened in
 * @asym: this process is registered for membarrier
 * @spin_ns: how long waiters poll before they sleep; 0: not at all
 * @max_handle: largest buffer handle
 * @lock: protects @channels and @cache, and is taken before a channel's lock
 */
struct air_device {
	const struct air_transport_ops *ops;
	void *priv;
	uint32_t fork_generation;
	bool asym;
	uint64_t spin_ns;
	uint32_t max_handle;
	pthread_mutex_t lock;
	struct air_list channels;
	struct air_cache cache;
};

/* A device by way of @ops; @where is the transport's part of the name. */
air_status air_device_open(const struct air_transport_ops *ops,
			   const char *where,
			   const struct air_device_options *options,
			   air_device **out);

/*
 * *@status is that of a request to the worker: whether it got no answer, and
 * another worker has the device now, so that it may be made again. If there is
 * none, *@status becomes what it is that failed. Takes @lock and channels'
 * locks.
 */
bool air_device_revived(struct air_device *dev, air_status *status);

/* AIR_OK, or AIR_FORKED with its sentence. */
air_status air_device_usable(const struct air_device *dev);

/*
 * Copy options the caller was compiled with into @to, which knows @known
 * bytes: shorter ones are filled up with zeros, longer ones must be zero
 * beyond. @from may be NULL.
 */
air_status air_options_take(void *to, uint32_t known, const void *from,
			    const char *name);

#endif /* AIR_DEVICE_H */
