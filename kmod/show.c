// SPDX-License-Identifier: GPL-2.0-only
/*
 * airunner: seeing inside: a line per channel and per worker, in fdinfo (of
 * that file) and in debugfs (of all).
 *
 * What is printed is not a consistent picture: nobody waits for a reader.
 */
#include <linux/debugfs.h>
#include <linux/seq_file.h>
#include <linux/string_helpers.h>

#include "internal.h"

static struct dentry *air_debugfs;

static const char *air_state(const struct air_channel *ch)
{
	if (test_bit(AIR_CH_ENDING, &ch->flags))
		return "ended";
	if (test_bit(AIR_CH_OWNER_GONE, &ch->flags))
		return "closing";
	if (READ_ONCE(ch->queue) == &air_limbo)
		return "waiting";
	return READ_ONCE(ch->announced) ? "live" : "assigned";
}

static const char *air_turn_name(const struct air_channel *ch)
{
	switch (READ_ONCE(ch->turn)) {
	case AIR_TURN_READY:
		return "ready";
	case AIR_TURN_SERVING:
		return "serving";
	default:
		return "idle";
	}
}

/*
 * air_show_name() - what a user calls something, as one word that is no more
 *	than that to whoever parses or prints the line
 */
void air_show_name(struct seq_file *m, const char *name)
{
	seq_escape_mem(m, name, strlen(name),
		       ESCAPE_ANY | ESCAPE_NAP | ESCAPE_APPEND, " \\");
}

static void air_show_heads(struct seq_file *m, struct air_channel *ch)
{
	u64 sq_tail, cq_head;

	/* Held while a large ring is answered: rather no heads. */
	if (!mutex_trylock(&ch->mem)) {
		seq_puts(m, " sq_tail=busy cq_head=busy");
		return;
	}
	if (air_ring_heads(ch, &sq_tail, &cq_head))
		seq_puts(m, " sq_tail=gone cq_head=gone");
	else
		seq_printf(m, " sq_tail=%llu cq_head=%llu", sq_tail, cq_head);
	mutex_unlock(&ch->mem);
}

/*
 * air_channel_show() - the line of @ch
 */
void air_channel_show(struct seq_file *m, struct air_channel *ch)
{
	seq_printf(m, "channel: %u state=%s turn=%s pid=%d comm=",
		   ch->id, air_state(ch), air_turn_name(ch), pid_vnr(ch->pid));
	air_show_name(m, ch->comm);
	seq_printf(m, " uid=%u worker=%u order=%u pages=%lu buffers=%u priority=%u weight=%u",
		   from_kuid_munged(seq_user_ns(m), ch->uid),
		   air_worker_id(READ_ONCE(ch->queue)), ch->order,
		   ch->region.nr_pages, READ_ONCE(ch->nr_buffers),
		   READ_ONCE(ch->priority),
		   READ_ONCE(ch->weight));
	air_show_heads(m, ch);
	seq_printf(m, " seq=%llu doorbells=%llu turns=%llu completed=%llu device_ns=%llu answered=%llu\n",
		   (u64)atomic64_read(&ch->seq), READ_ONCE(ch->doorbells),
		   READ_ONCE(ch->turns), READ_ONCE(ch->completed),
		   READ_ONCE(ch->device_ns), READ_ONCE(ch->answered));
}

/* debugfs/channels: @pos is the id. */
static void *air_channels_start(struct seq_file *m, loff_t *pos)
{
	struct air_channel *ch;
	u32 id = *pos;

	if (*pos > INT_MAX)
		return NULL;
	ch = air_channel_next(&id);
	if (ch)
		*pos = id;
	return ch;
}

static void air_channels_stop(struct seq_file *m, void *v)
{
	if (v)
		air_channel_put(v);
}

static void *air_channels_next(struct seq_file *m, void *v, loff_t *pos)
{
	air_channels_stop(m, v);
	(*pos)++;
	return air_channels_start(m, pos);
}

static int air_channels_show(struct seq_file *m, void *v)
{
	air_channel_show(m, v);
	return 0;
}

static const struct seq_operations air_channels_sops = {
	.start = air_channels_start,
	.next = air_channels_next,
	.stop = air_channels_stop,
	.show = air_channels_show,
};
DEFINE_SEQ_ATTRIBUTE(air_channels);

static int air_workers_show(struct seq_file *m, void *v)
{
	air_workers_print(m);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(air_workers);

void air_show_init(void)
{
	air_debugfs = debugfs_create_dir("airunner", NULL);
	debugfs_create_file("channels", 0400, air_debugfs, NULL,
			    &air_channels_fops);
	debugfs_create_file("workers", 0400, air_debugfs, NULL,
			    &air_workers_fops);
}

void air_show_exit(void)
{
	debugfs_remove(air_debugfs);
}
