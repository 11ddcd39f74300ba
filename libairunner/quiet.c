// SPDX-License-Identifier: MIT
/*
 * The resident kernel leaves the GPU to the caller for a while.
 */
#include <airunner/cuda.h>

#include "libairunner/device.h"
#include "libairunner/error.h"

static air_status check(air_device *dev, const char *name)
{
	air_status status;

	if (!dev)
		return air_error_set(AIR_BAD_ARGUMENT, "%s: device is NULL",
				     name);
	status = air_device_usable(dev);
	if (status != AIR_OK)
		return status;
	if (dev->ops->quiet)
		return AIR_OK;
	return air_error_set(AIR_UNSUPPORTED,
			     "%s: the worker is another process, and its GPU "
			     "not this one's alone: see airunnerd --help",
			     name);
}

air_status air_quiet_begin(air_device *dev)
{
	air_status status = check(dev, "air_quiet_begin");

	if (status != AIR_OK)
		return status;
	status = dev->ops->quiet(dev, true);
	if (status == AIR_TIMEOUT)
		return air_error_static(AIR_TIMEOUT,
					"air_quiet_begin: an operator does not "
					"end, so the resident kernel cannot "
					"leave");
	if (status != AIR_OK)
		return air_error_set(status, "air_quiet_begin: %s",
				     air_status_string(status));
	return AIR_OK;
}

air_status air_quiet_end(air_device *dev)
{
	air_status status = check(dev, "air_quiet_end");

	if (status == AIR_OK && dev->ops->quiet(dev, false) != AIR_OK)
		status = air_error_static(AIR_BAD_ARGUMENT,
					  "air_quiet_end: nothing has begun");
	return status;
}
