// SPDX-License-Identifier: GPL-2.0-only
/*
 * airunner: quotas of a user, over all of the user's files.
 *
 * Ring entries bound outstanding work: a submission needs an entry until its
 * completion has been collected.
 */
#include <linux/moduleparam.h>
#include <linux/slab.h>

#include "internal.h"

unsigned int air_max_channels = 4096;
module_param_named(max_channels, air_max_channels, uint, 0644);
MODULE_PARM_DESC(max_channels, "channels one user may have");

static unsigned long air_max_entries = 1UL << 22;
module_param_named(max_entries, air_max_entries, ulong, 0644);
MODULE_PARM_DESC(max_entries,
		 "ring entries (outstanding submissions) one user may have");

static unsigned long air_max_pinned_mb;
module_param_named(max_pinned_mb, air_max_pinned_mb, ulong, 0644);
MODULE_PARM_DESC(max_pinned_mb,
		 "MiB one user may have pinned, beside RLIMIT_MEMLOCK; 0: any");

static unsigned int air_max_workers = 64;
module_param_named(max_workers, air_max_workers, uint, 0644);
MODULE_PARM_DESC(max_workers, "workers one user may attach");

static DEFINE_MUTEX(air_users);
static DEFINE_XARRAY(air_users_by_id);

/*
 * air_user_get() - the quota record of @uid, made when it is the first time
 *
 * Return: NULL without memory.
 */
struct air_user *air_user_get(kuid_t uid)
{
	struct air_user *user;

	mutex_lock(&air_users);
	user = xa_load(&air_users_by_id, __kuid_val(uid));
	if (!user) {
		user = kzalloc(sizeof(*user), GFP_KERNEL_ACCOUNT);
		if (!user)
			goto out;
		user->uid = uid;
		if (xa_err(xa_store(&air_users_by_id, __kuid_val(uid), user,
				    GFP_KERNEL_ACCOUNT))) {
			kfree(user);
			user = NULL;
			goto out;
		}
	}
	user->refs++;
out:
	mutex_unlock(&air_users);
	return user;
}

void air_user_put(struct air_user *user)
{
	mutex_lock(&air_users);
	if (!--user->refs) {
		WARN_ON_ONCE(user->channels || user->entries || user->pages ||
			     user->workers);
		xa_erase(&air_users_by_id, __kuid_val(user->uid));
		kfree(user);
	}
	mutex_unlock(&air_users);
}

int air_user_charge_channel(struct air_user *user, unsigned long entries)
{
	int ret = -EDQUOT;

	mutex_lock(&air_users);
	if (user->channels < READ_ONCE(air_max_channels) &&
	    entries <= READ_ONCE(air_max_entries) &&
	    user->entries <= READ_ONCE(air_max_entries) - entries) {
		user->channels++;
		user->entries += entries;
		ret = 0;
	}
	mutex_unlock(&air_users);
	return ret;
}

void air_user_uncharge_channel(struct air_user *user, unsigned long entries)
{
	mutex_lock(&air_users);
	user->channels--;
	user->entries -= entries;
	mutex_unlock(&air_users);
}

int air_user_charge_pages(struct air_user *user, unsigned long pages)
{
	unsigned long mb = READ_ONCE(air_max_pinned_mb);
	int ret = 0;

	mutex_lock(&air_users);
	if (mb && (user->pages + pages) >> (20 - PAGE_SHIFT) >= mb &&
	    user->pages + pages > mb << (20 - PAGE_SHIFT))
		ret = -EDQUOT;
	else
		user->pages += pages;
	mutex_unlock(&air_users);
	return ret;
}

void air_user_uncharge_pages(struct air_user *user, unsigned long pages)
{
	mutex_lock(&air_users);
	user->pages -= pages;
	mutex_unlock(&air_users);
}

int air_user_charge_worker(struct air_user *user)
{
	int ret = -EDQUOT;

	mutex_lock(&air_users);
	if (user->workers < READ_ONCE(air_max_workers)) {
		user->workers++;
		ret = 0;
	}
	mutex_unlock(&air_users);
	return ret;
}

void air_user_uncharge_worker(struct air_user *user)
{
	mutex_lock(&air_users);
	user->workers--;
	mutex_unlock(&air_users);
}
