// SPDX-License-Identifier: GPL-2.0-only
/*
 * airunner: loading and unloading.
 */
#include <linux/module.h>
#include <linux/ratelimit.h>

#include "internal.h"

DEFINE_RATELIMIT_STATE(air_log_limit, 5 * HZ, 100);
DEFINE_RATELIMIT_STATE(air_try_limit, 5 * HZ, 100);

static int __init air_init(void)
{
	int ret;

	/* What is left unsaid need not be said that it was. */
	ratelimit_set_flags(&air_log_limit, RATELIMIT_MSG_ON_RELEASE);
	ratelimit_set_flags(&air_try_limit, RATELIMIT_MSG_ON_RELEASE);
	air_queue_init(&air_limbo);
	ret = air_thread_init();
	if (ret)
		return ret;
	air_show_init();
	ret = air_device_register();
	if (ret)
		goto err;
	pr_info("loaded, ABI %u.%u\n", AIRUNNER_ABI_MAJOR,
		AIRUNNER_ABI_MINOR);
	return 0;

err:
	air_show_exit();
	air_thread_exit();
	return ret;
}

/* Every open file holds the module, and every channel is of one. */
static void __exit air_exit(void)
{
	air_device_unregister();
	air_show_exit();
	air_thread_exit();
	air_queue_destroy(&air_limbo);
	/* Channels and workers are freed by RCU callbacks of the core. */
	WARN_ON(atomic_read(&air_nr_channels));
	pr_info("unloaded\n");
}

module_init(air_init);
module_exit(air_exit);

MODULE_DESCRIPTION("Command channels between processes and accelerators");
MODULE_LICENSE("GPL");
MODULE_VERSION("1.0");
