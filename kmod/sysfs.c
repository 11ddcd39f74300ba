// SPDX-License-Identifier: GPL-2.0-only
/*
 * airunner: /sys/class/misc/airunner: what there is of everything, one number
 * a file.
 */
#include <linux/device.h>
#include <linux/sysfs.h>

#include "internal.h"

static ssize_t abi_show(struct device *dev, struct device_attribute *attr,
			char *buf)
{
	return sysfs_emit(buf, "%u.%u\n", AIRUNNER_ABI_MAJOR,
			  AIRUNNER_ABI_MINOR);
}
static DEVICE_ATTR_RO(abi);

static ssize_t channels_show(struct device *dev, struct device_attribute *attr,
			     char *buf)
{
	return sysfs_emit(buf, "%d\n", atomic_read(&air_nr_channels));
}
static DEVICE_ATTR_RO(channels);

static ssize_t workers_show(struct device *dev, struct device_attribute *attr,
			    char *buf)
{
	return sysfs_emit(buf, "%u\n", READ_ONCE(air_nr_workers));
}
static DEVICE_ATTR_RO(workers);

static ssize_t pinned_pages_show(struct device *dev,
				 struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%ld\n", atomic_long_read(&air_pinned_pages));
}
static DEVICE_ATTR_RO(pinned_pages);

static struct attribute *air_attrs[] = {
	&dev_attr_abi.attr,
	&dev_attr_channels.attr,
	&dev_attr_workers.attr,
	&dev_attr_pinned_pages.attr,
	NULL,
};

static const struct attribute_group air_group = {
	.attrs = air_attrs,
};

const struct attribute_group *air_groups[] = {
	&air_group,
	NULL,
};
