/* SPDX-License-Identifier: MIT */
/*
 * What a way of reaching a worker has to provide. The rings themselves are the
 * same everywhere; a transport gets the region and the buffers to the other
 * side and carries wake-ups.
 */
#ifndef AIR_TRANSPORT_H
#define AIR_TRANSPORT_H

#include <stdbool.h>
#include <stdint.h>

#include <airunner.h>

#include "libairunner/mapping.h"

/**
 * struct air_transport_ops - one transport
 * @kind: for air_device_transport()
 * @mapping: what regions and host buffers are made of
 * @keep_fd: their files are needed for as long as they live
 * @imports: takes memory the caller owns
 * @open: reach the worker; sets dev->priv
 * @close: the last call for a device; has no channels any more
 * @caps: what the worker's @executor can do
 * @quiet: as air_quiet_begin() and air_quiet_end(). NULL: the worker's device
 *	is not this process's alone
 * @channel_build: hand over ch->region; sets ch->priv
 * @channel_destroy: take it back: returns when the worker no longer touches it
 * @buffer_register: make buf->mapping known as buf->handle
 * @buffer_unregister: after BUFFER_RELEASE has completed. May be NULL
 * @buffer_released: after BUFFER_RELEASE has completed: whether the worker
 *	lets the memory go already. NULL: always
 * @doorbell: wake the worker; @watch: see AIRUNNER_BELL_WATCH.
 *	AIR_WORKER_DIED, AIR_CHANNEL_DEAD or AIR_RESET: it can't be, and the
 *	channel was cut (air_channel_cut())
 * @sleep_begin: the wake-up sequence, before NEED_WAKEUP is set
 * @sleep: return when the sequence is no longer @seq, when @deadline has
 *	passed, or for no reason. Errors as for @doorbell
 * @check: whether the other side still is there, for those who only ever poll;
 *	errors as for @doorbell. NULL: it always is
 * @handover: be ready for @stream_wait. NULL: the worker's device is not this
 *	process's
 * @stream_wait: as air_stream_wait(), for a ring index. AIR_BUSY: not now.
 *	AIR_FULL: too many streams wait; nothing was enqueued
 * @served: whether somebody drains the channel
 * @notify_fd: the descriptor for air_channel_fd()
 * @notify_clear: make it unreadable until the next completion
 * @revive: the worker is gone, or did not answer @caps, @channel_build or
 *	@buffer_register: reach another one and give it all channels. AIR_OK
 *	also when another thread has. NULL: somebody else does that, or nobody
 *	can
 */
struct air_transport_ops {
	air_transport kind;
	enum air_mapping_kind mapping;
	bool keep_fd;
	bool imports;
	air_status (*open)(struct air_device *dev, const char *where,
			   const struct air_device_options *options);
	void (*close)(struct air_device *dev);
	air_status (*caps)(struct air_device *dev, air_executor executor,
			   struct air_backend_caps *caps);
	air_status (*quiet)(struct air_device *dev, bool on);
	air_status (*channel_build)(struct air_channel *ch,
				    const struct air_channel_options *options);
	void (*channel_destroy)(struct air_channel *ch);
	air_status (*buffer_register)(struct air_channel *ch,
				      struct air_buffer *buf);
	void (*buffer_unregister)(struct air_channel *ch,
				  struct air_buffer *buf);
	bool (*buffer_released)(struct air_channel *ch, struct air_buffer *buf);
	air_status (*doorbell)(struct air_channel *ch, bool watch);
	uint64_t (*sleep_begin)(struct air_channel *ch);
	air_status (*sleep)(struct air_channel *ch, uint64_t seq,
			    uint64_t deadline);
	air_status (*check)(struct air_channel *ch);
	air_status (*handover)(struct air_channel *ch);
	air_status (*stream_wait)(struct air_channel *ch, uint64_t index,
				  void *stream);
	bool (*served)(struct air_channel *ch);
	air_status (*notify_fd)(struct air_channel *ch, int *fd);
	void (*notify_clear)(struct air_channel *ch);
	air_status (*revive)(struct air_device *dev);
};

extern const struct air_transport_ops air_transport_inproc;
extern const struct air_transport_ops air_transport_unix;
extern const struct air_transport_ops air_transport_kernel;

#endif /* AIR_TRANSPORT_H */
