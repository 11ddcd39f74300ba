/* SPDX-License-Identifier: MIT */
/*
 * What a client and airunnerd say to each other over "unix:PATH".
 *
 * The control connection is a SOCK_SEQPACKET socket. Every message is one
 * struct air_wire_msg, file descriptors travel beside it (SCM_RIGHTS). The
 * client asks, the daemon answers each request once, in order, with the
 * request's @type and @seq; it never speaks unasked. A message of the wrong
 * size, with an unknown type, a non-zero reserved field or the wrong number of
 * descriptors is answered AIR_BAD_ARGUMENT (of the wrong size: the connection
 * is closed); descriptors that nobody asked for are closed.
 *
 * A channel further has a bell: a SOCK_STREAM socket pair that the client
 * makes, keeping one end. Bytes are doorbells, in both directions. A socket
 * and not an eventfd, because MSG_DONTWAIT holds for one call: whatever the
 * other side does to the flags or the queue of a file that both share, neither
 * waits for bytes or for room. EAGAIN on sending is success: the other side has
 * bells to read already. The client's end also tells it at once when the
 * daemon is gone, which a futex would not.
 *
 * What MSG_DONTWAIT does not cover: receiving takes a lock of the socket, also
 * with it, and holds it while bytes are copied out. A client that keeps a
 * duplicate of the daemon's end and receives from it into memory whose faults
 * it delays (userfaultfd, FUSE) makes the daemon wait for that lock, and with
 * it all clients. Against a client that means harm the socket's mode and group
 * are the protection: who may connect is trusted not to do this.
 *
 * The end of the control connection is the end of all its channels: the daemon
 * drops what it has not begun and forgets them. The end of a bell alone has no
 * meaning but silence.
 *
 * Neither side trusts the other's lengths: the daemon checks that a memfd is
 * one (F_GET_SEALS), carries AIR_WIRE_SEALS, so that it can neither shrink
 * nor grow under the mapping, and has exactly the length that was told.
 */
#ifndef AIR_WIRE_H
#define AIR_WIRE_H

#include <fcntl.h>
#include <stdint.h>

#include <airunner.h>

#define AIR_WIRE_MAGIC 0x61697277 /* "airw" */
#define AIR_WIRE_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
/* Descriptors that travel with one message, at most. */
#define AIR_WIRE_MAX_FDS 2

enum air_wire_type {
	/*
	 * First message. @abi_major and @abi_minor of the client; the answer
	 * has the daemon's, and AIR_ABI when the majors differ.
	 */
	AIR_WIRE_HELLO = 1,
	/* What @executor can do: answered in @caps. */
	AIR_WIRE_CAPS = 2,
	/*
	 * A channel numbered @channel (chosen by the client, not 0, not in
	 * use: AIR_BUSY) with rings of 2^@order entries in the first file's
	 * @length bytes; the second is the daemon's end of the bell. The ring
	 * may have been used with an earlier daemon: the daemon takes it over
	 * with air_ring_recover(), and counts ctrl.sq_epoch up before it
	 * serves the first submission.
	 */
	AIR_WIRE_BUILD_CHANNEL = 3,
	/* Answered once the daemon has let go of the region. */
	AIR_WIRE_DESTROY_CHANNEL = 4,
	/*
	 * Handle @handle (1..65534, not in use: AIR_BUSY) of @channel is the
	 * file's @length bytes. Let go by AIRUNNER_OP_BUFFER_RELEASE in the
	 * ring, which keeps the order with what uses it.
	 */
	AIR_WIRE_REGISTER_BUFFER = 5,
	/*
	 * The file is a further socket that gets a byte whenever the bell of
	 * @channel gets one from the daemon. One a channel: AIR_BUSY.
	 */
	AIR_WIRE_ADD_NOTIFY = 6,
};

/* Files that must come with a request of this type. */
static inline unsigned int air_wire_fds(uint32_t type)
{
	switch (type) {
	case AIR_WIRE_BUILD_CHANNEL:
		return 2;
	case AIR_WIRE_REGISTER_BUFFER:
	case AIR_WIRE_ADD_NOTIFY:
		return 1;
	default:
		return 0;
	}
}

/* Bytes on a bell. From the client: */
#define AIR_WIRE_BELL_WORK  'w' /* there are submissions */
#define AIR_WIRE_BELL_WATCH 'c' /* AIRUNNER_BELL_WATCH */
/* From the daemon: there are completions, AIRUNNER_CQ_NEED_WAKEUP was set. */
#define AIR_WIRE_BELL_DONE 'd'

/**
 * struct air_wire_msg - every message of the control connection
 * @magic: AIR_WIRE_MAGIC
 * @type: enum air_wire_type
 * @seq: of the request, echoed
 * @status: answer: air_status; request: 0
 * @channel: of the client's choosing
 * @handle: REGISTER_BUFFER
 * @order: BUILD_CHANNEL
 * @executor: CAPS
 * @length: bytes of the file
 * @abi_major: HELLO
 * @abi_minor: HELLO
 * @pid: HELLO's answer: the daemon's process id, for humans
 * @resv: zero
 * @caps: CAPS's answer
 * @text: failed answer: the sentence, NUL-terminated; else zero
 *
 * What a type does not use is zero.
 */
struct air_wire_msg {
	uint32_t magic;
	uint32_t type;
	uint32_t seq;
	uint32_t status;
	uint32_t channel;
	uint32_t handle;
	uint32_t order;
	uint32_t executor;
	uint64_t length;
	uint32_t abi_major;
	uint32_t abi_minor;
	uint32_t pid;
	uint32_t resv;
	union {
		struct air_backend_caps caps;
		char text[192];
	};
};

_Static_assert(sizeof(struct air_backend_caps) == 168, "air_backend_caps");
_Static_assert(sizeof(struct air_wire_msg) == 248, "air_wire_msg");

#endif /* AIR_WIRE_H */
