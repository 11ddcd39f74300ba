/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * airunner: what the kernel module, the client library, the worker and GPU
 * code agree on: the layout of a channel's region, the form of a submission
 * and of a completion, and the ioctls of /dev/airunner.
 *
 * This header is self-contained and compiles as C11, C++17, CUDA C++ and
 * kernel C. It holds layout and pure functions only; how words are loaded
 * and stored (atomics, barriers) is the business of each side.
 */
#ifndef _UAPI_AIRUNNER_H
#define _UAPI_AIRUNNER_H

#include <linux/types.h>
#include <linux/ioctl.h>

/* Both numbers are the ABI's: major changes break, minor ones add. */
#define AIRUNNER_ABI_MAJOR	1
#define AIRUNNER_ABI_MINOR	0

#ifdef __CUDACC__
#define AIRUNNER_FN static __host__ __device__ __inline__
#else
#define AIRUNNER_FN static __inline__ __attribute__((unused))
#endif

#ifdef __cplusplus
#define AIRUNNER_ASSERT(cond, why) static_assert(cond, why)
#else
#define AIRUNNER_ASSERT(cond, why) _Static_assert(cond, why)
#endif

/*
 * ---------------------------------------------------------------------------
 * Words
 *
 * The region's rings consist of 64-bit little-endian words. Each carries the
 * lap of its ring index in the top 8 bits and 56 bits of payload:
 *
 *	63    56 55                                                    0
 *	+-------+-------------------------------------------------------+
 *	|  lap  |                       payload                         |
 *	+-------+-------------------------------------------------------+
 *
 * Index i of a ring with 2^order entries lives in slot i mod 2^order, and its
 * lap is (i / 2^order + 1) mod 256. A zeroed ring is therefore empty: no slot
 * carries lap 1 yet. An entry is valid when every word of it carries the lap
 * that is expected next, so nothing wider than an aligned 64-bit access has to
 * be atomic, and reading an entry and learning that it is there are one read.
 * ---------------------------------------------------------------------------
 */
#define AIRUNNER_LAP_SHIFT	56
#define AIRUNNER_PAYLOAD_MASK	((1ULL << AIRUNNER_LAP_SHIFT) - 1)

/** airunner_lap() - the lap of ring index @index in a ring of 2^@order. */
AIRUNNER_FN __u8 airunner_lap(__u64 index, __u32 order)
{
	return (__u8)((index >> order) + 1);
}

/** airunner_word() - @payload (its low 56 bits) tagged with @lap. */
AIRUNNER_FN __u64 airunner_word(__u64 payload, __u8 lap)
{
	return (payload & AIRUNNER_PAYLOAD_MASK) |
	       ((__u64)lap << AIRUNNER_LAP_SHIFT);
}

AIRUNNER_FN __u8 airunner_word_lap(__u64 word)
{
	return (__u8)(word >> AIRUNNER_LAP_SHIFT);
}

AIRUNNER_FN __u64 airunner_payload(__u64 word)
{
	return word & AIRUNNER_PAYLOAD_MASK;
}

/*
 * ---------------------------------------------------------------------------
 * Region
 *
 *	0			struct airunner_ctrl	(0x400 bytes)
 *	AIRUNNER_SQ_OFFSET	submission ring		entries * 64
 *	airunner_cq_offset()	completion ring		entries * 16
 *	airunner_arena_offset()	arena: descriptors and whatever data the
 *				client wants there, up to the region's end
 *
 * Everything in it can be written by the client at any time. The worker and
 * the module take nothing from it on trust; the number of entries is told at
 * BUILD_CHANNEL and kept where the client cannot reach it.
 *
 * Room: submission i may be reserved once completion i - entries has been
 * collected by the client. A completion is thus the credit for its slot, both
 * rings have the same number of entries, and neither can overflow.
 * ---------------------------------------------------------------------------
 */
#define AIRUNNER_MIN_ORDER	1
#define AIRUNNER_MAX_ORDER	16
#define AIRUNNER_SQE_SIZE	64
#define AIRUNNER_SQE_WORDS	8
#define AIRUNNER_CQE_SIZE	16
#define AIRUNNER_CQE_WORDS	2

/**
 * struct airunner_ctrl - the shared words that are not ring entries
 * @sq_tail: next index to reserve. Written by producers (compare-and-swap);
 *	no worker reads it.
 * @cq_head: oldest index whose completion has not been collected. Written by
 *	the client; no worker reads it.
 * @client_flags: AIRUNNER_CLIENT_*, written once by the client before
 *	BUILD_CHANNEL.
 * @sq_flags: AIRUNNER_SQ_*, written by the worker, and by the module once the
 *	worker is gone; read by producers after publishing.
 * @sq_bell: for a futex as the doorbell; the library's transports use none.
 * @sq_epoch: counts the workers that have taken the ring over: a worker adds
 *	one before it serves the first submission. A client that sees it change
 *	knows that the worker has none of its descriptors and makes them again.
 * @cq_flags: AIRUNNER_CQ_*, set by a client that is about to sleep. Whoever
 *	wakes it clears NEED_WAKEUP, and nothing else.
 * @cq_bell: counts completion wake-ups where a futex carries them (inproc).
 *
 * Words with different writers are 128 bytes apart: adjacent-line prefetch
 * makes two neighbouring 64-byte lines travel together.
 */
struct airunner_ctrl {
	__u64 sq_tail;
	__u64 resv0[15];
	__u64 cq_head;
	__u32 client_flags;
	__u32 resv1[29];
	__u32 sq_flags;
	__u32 sq_bell;
	__u32 sq_epoch;
	__u32 resv5;
	__u64 resv2[14];
	__u32 cq_flags;
	__u32 cq_bell;
	__u64 resv3[15];
	__u64 resv4[64];
};

AIRUNNER_ASSERT(sizeof(struct airunner_ctrl) == 0x400, "ctrl is 1 KiB");

/*
 * The client registered for membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED): its
 * producers read sq_flags after publishing without a fence, and a worker that
 * goes to sleep pays for the ordering with membarrier(2) between setting
 * NEED_WAKEUP and its last look. That barrier may pass a processor over (see
 * docs/abi.md), so it looks again a while later. Without this bit producers
 * fence.
 */
#define AIRUNNER_CLIENT_ASYM	(1U << 0)

/* The worker sleeps (or is about to): ring the doorbell after publishing. */
#define AIRUNNER_SQ_NEED_WAKEUP	(1U << 0)
/*
 * Completions are written by a device that cannot wake anybody: a client that
 * is about to sleep on a completion rings the doorbell once, and the worker
 * then watches the completion ring on its behalf.
 */
#define AIRUNNER_SQ_WATCH	(1U << 1)
/*
 * The worker registered for membarrier likewise: it looks at cq_flags after
 * completing without a fence, and a client that goes to sleep pays, and looks
 * again a while later.
 */
#define AIRUNNER_SQ_ASYM	(1U << 2)

/* A client sleeps (or is about to): wake it after completing. */
#define AIRUNNER_CQ_NEED_WAKEUP	(1U << 0)
/*
 * Set once by a client that sleeps where it does not look again after a while
 * (on an eventfd, in poll(2), in WAIT or URING_WAIT without a time-out): the
 * worker fences between completing and looking at these flags, whatever it
 * said of AIRUNNER_SQ_ASYM. In force once it has been set for as long as a
 * store may take.
 */
#define AIRUNNER_CQ_FENCE	(1U << 1)

#define AIRUNNER_SQ_OFFSET	0x400

AIRUNNER_FN __u64 airunner_cq_offset(__u32 order)
{
	return AIRUNNER_SQ_OFFSET + ((__u64)AIRUNNER_SQE_SIZE << order);
}

AIRUNNER_FN __u64 airunner_arena_offset(__u32 order)
{
	return airunner_cq_offset(order) + ((__u64)AIRUNNER_CQE_SIZE << order);
}

/*
 * ---------------------------------------------------------------------------
 * Submission (SQE): eight words; all numbers below are payload bits.
 *
 *	word 0	[7:0] opcode  [15:8] flags  [31:16] timeout_ms  [55:32] id
 *	word 1..5	operands (references), in the order of the operator
 *	word 6	workspace (reference)
 *	word 7	argument, opcode-specific
 *
 * Words that an opcode does not use must be zero.
 *
 * timeout_ms: 0 is none; else the submission fails with AIRUNNER_S_TIMEOUT if
 * it has not been started that many milliseconds after the worker took it.
 *
 * A reference is [55:40] buffer handle, [39:0] byte offset. Handle 0 is the
 * channel's own region; AIRUNNER_REF_NONE stands for an operand left out.
 * ---------------------------------------------------------------------------
 */
enum airunner_opcode {
	/* 0 is refused: a slot nobody filled in must not look like work. */
	AIRUNNER_OP_NOP = 1,
	/* Run descriptor @id on the operands. */
	AIRUNNER_OP_EXEC = 2,
	/* Make descriptor @id from a struct airunner_desc_record at word 1. */
	AIRUNNER_OP_DESC_CREATE = 3,
	AIRUNNER_OP_DESC_DESTROY = 4,
	/* Forget buffer handle @id (word 0) once what uses it has completed. */
	AIRUNNER_OP_BUFFER_RELEASE = 5,
	/* Give handle @id device memory of word 7 bytes. */
	AIRUNNER_OP_BUFFER_ALLOC = 6,
	/*
	 * Load device code (cubin, PTX or fatbin): bytes at word 1, length in
	 * word 7, module @id. Word 2: a reference to 176 bytes that take a
	 * sentence when it fails, or AIRUNNER_REF_NONE.
	 */
	AIRUNNER_OP_MODULE_LOAD = 7,
	AIRUNNER_OP_MODULE_UNLOAD = 8,
	/* Look up a function: struct airunner_function_record at word 1. */
	AIRUNNER_OP_FUNCTION_GET = 9,
	/*
	 * Launch function @id: struct airunner_launch_record and what follows
	 * it at word 1, length in word 7.
	 */
	AIRUNNER_OP_LAUNCH = 10,
	/*
	 * What a client turns word 0 of a submission into (compare-and-swap,
	 * same lap) to cancel it. The worker reads a slot once: either it has
	 * the original already, or it answers AIRUNNER_S_CANCELED.
	 */
	AIRUNNER_OP_CANCELED = 255,
};

/* May overlap what was submitted before it. */
#define AIRUNNER_SQE_UNORDERED	(1U << 0)
/* Starts only when everything submitted before it has completed. */
#define AIRUNNER_SQE_BARRIER	(1U << 1)
#define AIRUNNER_SQE_FLAGS	(AIRUNNER_SQE_UNORDERED | AIRUNNER_SQE_BARRIER)

#define AIRUNNER_MAX_TENSORS	5
#define AIRUNNER_WORD_OPERAND	1
#define AIRUNNER_WORD_WORKSPACE	6
#define AIRUNNER_WORD_ARG	7

#define AIRUNNER_ID_BITS	24
#define AIRUNNER_ID_MASK	((1U << AIRUNNER_ID_BITS) - 1)
#define AIRUNNER_HANDLE_BITS	16
#define AIRUNNER_OFFSET_BITS	40
#define AIRUNNER_OFFSET_MASK	((1ULL << AIRUNNER_OFFSET_BITS) - 1)
#define AIRUNNER_HANDLE_REGION	0
#define AIRUNNER_HANDLE_NONE	0xffff
#define AIRUNNER_REF_NONE \
	((__u64)AIRUNNER_HANDLE_NONE << AIRUNNER_OFFSET_BITS)

AIRUNNER_FN __u64 airunner_ref(__u32 handle, __u64 offset)
{
	return ((__u64)(handle & 0xffff) << AIRUNNER_OFFSET_BITS) |
	       (offset & AIRUNNER_OFFSET_MASK);
}

AIRUNNER_FN __u32 airunner_ref_handle(__u64 payload)
{
	return (__u32)(payload >> AIRUNNER_OFFSET_BITS) & 0xffff;
}

AIRUNNER_FN __u64 airunner_ref_offset(__u64 payload)
{
	return payload & AIRUNNER_OFFSET_MASK;
}

/** airunner_sqe_head() - the payload of word 0. */
AIRUNNER_FN __u64 airunner_sqe_head(__u8 opcode, __u8 flags, __u16 timeout_ms,
				    __u32 id)
{
	return (__u64)opcode | (__u64)flags << 8 | (__u64)timeout_ms << 16 |
	       (__u64)(id & AIRUNNER_ID_MASK) << 32;
}

AIRUNNER_FN __u8 airunner_sqe_opcode(__u64 w0)
{
	return (__u8)w0;
}

AIRUNNER_FN __u8 airunner_sqe_flags(__u64 w0)
{
	return (__u8)(w0 >> 8);
}

AIRUNNER_FN __u16 airunner_sqe_timeout_ms(__u64 w0)
{
	return (__u16)(w0 >> 16);
}

AIRUNNER_FN __u32 airunner_sqe_id(__u64 w0)
{
	return (__u32)(w0 >> 32) & AIRUNNER_ID_MASK;
}

/*
 * ---------------------------------------------------------------------------
 * Completion (CQE): two words. Completion slot i answers submission i.
 *
 *	word 0	[7:0] status  [23:8] detail  [55:24] duration, low 32 bits
 *	word 1	[47:0] start  [55:48] duration, high 8 bits
 *
 * start is the executor's start in nanoseconds of CLOCK_MONOTONIC modulo 2^48
 * (3.2 days; the reader adds what its own clock says); duration is in
 * nanoseconds and saturates at 2^40 - 1 (18 minutes). detail: for a refused
 * operand its number (word) in [3:0]; else zero unless the opcode says so.
 *
 * Word 1 is stored before word 0; word 0's store is the release.
 * ---------------------------------------------------------------------------
 */
#define AIRUNNER_START_BITS	48
#define AIRUNNER_START_MASK	((1ULL << AIRUNNER_START_BITS) - 1)
#define AIRUNNER_DURATION_MAX	((1ULL << 40) - 1)

AIRUNNER_FN __u64 airunner_cqe_word0(__u8 status, __u16 detail, __u64 duration)
{
	if (duration > AIRUNNER_DURATION_MAX)
		duration = AIRUNNER_DURATION_MAX;
	return (__u64)status | (__u64)detail << 8 |
	       (duration & 0xffffffffULL) << 24;
}

AIRUNNER_FN __u64 airunner_cqe_word1(__u64 start, __u64 duration)
{
	if (duration > AIRUNNER_DURATION_MAX)
		duration = AIRUNNER_DURATION_MAX;
	return (start & AIRUNNER_START_MASK) | (duration >> 32) << 48;
}

AIRUNNER_FN __u8 airunner_cqe_status(__u64 w0)
{
	return (__u8)w0;
}

AIRUNNER_FN __u16 airunner_cqe_detail(__u64 w0)
{
	return (__u16)(w0 >> 8);
}

AIRUNNER_FN __u64 airunner_cqe_duration(__u64 w0, __u64 w1)
{
	return ((w0 >> 24) & 0xffffffffULL) | ((w1 >> 48) & 0xff) << 32;
}

AIRUNNER_FN __u64 airunner_cqe_start(__u64 w1)
{
	return w1 & AIRUNNER_START_MASK;
}

/*
 * Status of a submission, and of the library's calls. Numbers are ABI: they
 * are only ever added. air_status_string() has a sentence for each.
 */
enum airunner_status {
	AIRUNNER_S_OK = 0,
	/* Not yet, or not now. */
	AIRUNNER_S_PENDING = 1,		/* not completed yet */
	AIRUNNER_S_FULL = 2,		/* no room in the ring */
	AIRUNNER_S_TIMEOUT = 3,
	AIRUNNER_S_CANCELED = 4,
	AIRUNNER_S_BUSY = 5,
	/* The submission is malformed. */
	AIRUNNER_S_BAD_OPCODE = 16,
	AIRUNNER_S_BAD_FLAGS = 17,
	AIRUNNER_S_BAD_ID = 18,		/* no such descriptor, module, ... */
	AIRUNNER_S_BAD_HANDLE = 19,	/* no such buffer */
	AIRUNNER_S_BAD_RANGE = 20,	/* operand reaches outside its buffer */
	AIRUNNER_S_BAD_ALIGN = 21,
	AIRUNNER_S_BAD_RESERVED = 22,	/* a must-be-zero word is not */
	AIRUNNER_S_BAD_TOKEN = 23,	/* unknown or already collected */
	AIRUNNER_S_BAD_ARGUMENT = 24,
	/* The operator cannot be what was asked for. */
	AIRUNNER_S_BAD_OPERATOR = 32,
	AIRUNNER_S_BAD_DTYPE = 33,
	AIRUNNER_S_BAD_SHAPE = 34,
	AIRUNNER_S_BAD_STRIDES = 35,
	AIRUNNER_S_BAD_ATTRIBUTE = 36,
	AIRUNNER_S_ALIASING = 37,	/* output overlaps an input */
	AIRUNNER_S_WORKSPACE = 38,	/* workspace missing or too small */
	AIRUNNER_S_UNSUPPORTED = 39,	/* valid, but no executor does it */
	/* The surroundings failed. */
	AIRUNNER_S_NO_MEMORY = 48,
	AIRUNNER_S_NO_DEVICE = 49,
	AIRUNNER_S_DEVICE_FAULT = 50,	/* this one broke the device context */
	AIRUNNER_S_DEVICE_LOST = 51,	/* was outstanding when another did */
	AIRUNNER_S_NO_WORKER = 52,	/* nobody drains the channel */
	AIRUNNER_S_WORKER_DIED = 53,	/* was outstanding when it died */
	AIRUNNER_S_CHANNEL_DEAD = 54,	/* region gone or scribbled over */
	AIRUNNER_S_RESET = 55,		/* an administrator reset the channel */
	AIRUNNER_S_PERMISSION = 56,
	AIRUNNER_S_MEMLOCK = 57,	/* RLIMIT_MEMLOCK */
	AIRUNNER_S_QUOTA = 58,
	AIRUNNER_S_SYSTEM = 59,		/* see errno / air_last_error() */
	AIRUNNER_S_FORKED = 60,		/* used in a child of its creator */
	AIRUNNER_S_ABI = 61,		/* other side is too old or too new */
};

/*
 * ---------------------------------------------------------------------------
 * Descriptors: what DESC_CREATE reads from the arena.
 * ---------------------------------------------------------------------------
 */
#define AIRUNNER_MAX_DIMS	8

enum airunner_dtype {
	AIRUNNER_F32 = 1,
	AIRUNNER_F16 = 2,
	AIRUNNER_BF16 = 3,
	AIRUNNER_I32 = 4,
	AIRUNNER_I8 = 5,
	AIRUNNER_I64 = 6,
};

/**
 * struct airunner_tensor - shape of one operand
 * @dtype: enum airunner_dtype; 0 for an operand that is left out
 * @ndim: 0 (a scalar) to AIRUNNER_MAX_DIMS
 * @shape: elements in each dimension, outermost first; 0 is allowed
 * @stride: elements from one index to the next; 0 repeats (inputs only),
 *	negative runs backwards
 *
 * Entries from @ndim on must be zero.
 */
struct airunner_tensor {
	__u32 dtype;
	__u32 ndim;
	__s64 shape[AIRUNNER_MAX_DIMS];
	__s64 stride[AIRUNNER_MAX_DIMS];
};

AIRUNNER_ASSERT(sizeof(struct airunner_tensor) == 136, "tensor");

/* Which executor a descriptor asks for; 0 leaves it to the worker. */
enum airunner_executor {
	AIRUNNER_EXEC_ANY = 0,
	AIRUNNER_EXEC_CPU = 1,
	AIRUNNER_EXEC_CUDA_LAUNCH = 2,
	AIRUNNER_EXEC_CUDA_RESIDENT = 3,
};

#define AIRUNNER_MAX_ATTRS	12

/**
 * struct airunner_desc - an operator and the tensors it is for
 * @size: sizeof(struct airunner_desc) as the writer knows it
 * @op: enum air_op_id (include/airunner/ops.h)
 * @n_tensors: how many of @tensor are given
 * @executor: enum airunner_executor
 * @attr: the operator's attributes, as its header documents them; floating
 *	point ones are the bits of a double
 * @tensor: operands in submission order, outputs first
 * @resv: must be zero
 */
struct airunner_desc {
	__u32 size;
	__u32 op;
	__u32 n_tensors;
	__u32 executor;
	__u64 attr[AIRUNNER_MAX_ATTRS];
	struct airunner_tensor tensor[AIRUNNER_MAX_TENSORS];
	__u64 resv[5];
};

AIRUNNER_ASSERT(sizeof(struct airunner_desc) == 832, "desc");

/**
 * struct airunner_desc_reply - what the worker says of a new descriptor
 * @workspace: bytes of workspace each execution needs
 * @executor: enum airunner_executor that will run it
 * @resv: zero
 * @why: one NUL-terminated sentence: why that executor, or what is wrong
 */
struct airunner_desc_reply {
	__u64 workspace;
	__u32 executor;
	__u32 resv;
	char why[176];
};

AIRUNNER_ASSERT(sizeof(struct airunner_desc_reply) == 192, "reply");

/** struct airunner_desc_record - DESC_CREATE's word 1 refers to one of these */
struct airunner_desc_record {
	struct airunner_desc desc;
	struct airunner_desc_reply reply;
};

AIRUNNER_ASSERT(sizeof(struct airunner_desc_record) == 1024, "record");

/*
 * ---------------------------------------------------------------------------
 * Device code: what FUNCTION_GET and LAUNCH read from the arena. MODULE_LOAD
 * reads nothing but the image.
 * ---------------------------------------------------------------------------
 */
#define AIRUNNER_MAX_PARAMS	64
#define AIRUNNER_MAX_PARAM_BYTES	4096
#define AIRUNNER_FUNCTION_NAME	512
#define AIRUNNER_MAX_LAUNCH	8192

/** struct airunner_param - where a kernel parameter lies in the arguments */
struct airunner_param {
	__u32 offset;
	__u32 size;
};

/**
 * struct airunner_function_record - FUNCTION_GET: function @id from a module
 * @size: sizeof(struct airunner_function_record)
 * @module: id of a module loaded with MODULE_LOAD
 * @name: the function's (mangled) name, NUL-terminated
 * @n_params: out: entries of @param; 0 when the image does not tell
 * @param_bytes: out: size of the argument block; 0 when the image does not
 *	tell
 * @max_threads: out: most threads a block of this function may have
 * @static_shared: out: bytes of shared memory it has without asking
 * @param: out
 * @why: out: one NUL-terminated sentence: what is wrong
 *
 * The function lives until its module is unloaded.
 */
struct airunner_function_record {
	__u32 size;
	__u32 module;
	char name[AIRUNNER_FUNCTION_NAME];
	__u32 n_params;
	__u32 param_bytes;
	__u32 max_threads;
	__u32 static_shared;
	struct airunner_param param[AIRUNNER_MAX_PARAMS];
	char why[176];
};

AIRUNNER_ASSERT(sizeof(struct airunner_function_record) == 1224, "function");

/**
 * struct airunner_launch_ref - an argument that is the address of memory
 * @ref: reference to the first byte
 * @bytes: how many bytes from there the kernel may touch: bounds-checked
 * @offset: where in the argument bytes its 64-bit address goes
 * @resv: must be zero
 */
struct airunner_launch_ref {
	__u64 ref;
	__u64 bytes;
	__u32 offset;
	__u32 resv;
};

/**
 * struct airunner_launch_record - LAUNCH
 * @size: sizeof(struct airunner_launch_record)
 * @n_refs: entries of struct airunner_launch_ref that follow this struct
 * @grid: blocks in each dimension, at least 1
 * @block: threads in each dimension, at least 1
 * @shared_bytes: dynamic shared memory
 * @arg_bytes: length of the argument bytes that follow the references
 * @resv: must be zero
 *
 * Record, references and argument bytes lie one after the other in the arena;
 * word 7 of the submission is their length, at most AIRUNNER_MAX_LAUNCH.
 */
struct airunner_launch_record {
	__u32 size;
	__u32 n_refs;
	__u32 grid[3];
	__u32 block[3];
	__u32 shared_bytes;
	__u32 arg_bytes;
	__u64 resv[3];
};

AIRUNNER_ASSERT(sizeof(struct airunner_launch_ref) == 24, "launch_ref");
AIRUNNER_ASSERT(sizeof(struct airunner_launch_record) == 64, "launch_record");

/*
 * ---------------------------------------------------------------------------
 * /dev/airunner
 *
 * Every argument struct begins with @size, the size the caller was compiled
 * with, so that structs can grow: the module takes what it knows, refuses
 * non-zero bytes that it does not know (E2BIG) and fills no more than @size.
 * Reserved fields and unknown flags must be zero (EINVAL otherwise). The size
 * bits of the ioctl number are those of ABI 1.0 and are not compared.
 *
 * An open file is a client until ATTACH_WORKER makes it a worker, for good.
 * A channel belongs to the file that built it: threads of one process and
 * whoever was passed the file may use it alike.
 * ---------------------------------------------------------------------------
 */
#define AIRUNNER_DEVICE		"/dev/airunner"
#define AIRUNNER_IOC_MAGIC	0xA1

/* struct airunner_info.features */
#define AIRUNNER_FEAT_BUFFERS	(1ULL << 0)	/* REGISTER_BUFFER */
#define AIRUNNER_FEAT_HUGETLB	(1ULL << 1)	/* hugetlb regions */
#define AIRUNNER_FEAT_EVENTFD	(1ULL << 2)	/* SET_EVENTFD */
#define AIRUNNER_FEAT_URING	(1ULL << 3)	/* AIRUNNER_URING_WAIT */
#define AIRUNNER_FEAT_THREADS	(1ULL << 4)	/* SET_THREAD_CLASS */

/**
 * struct airunner_info - GET_INFO
 * @size: sizeof(struct airunner_info)
 * @abi_major: AIRUNNER_ABI_MAJOR of the module
 * @abi_minor: AIRUNNER_ABI_MINOR of the module
 * @workers: workers attached now that would serve the caller's channels: not
 *	other users' AIRUNNER_WORKER_OWN
 * @features: AIRUNNER_FEAT_*
 * @max_order: largest ring order
 * @page_size: bytes; what regions are rounded up to
 * @max_region: largest region, bytes
 * @max_channels: channels one user may have
 * @max_buffers: buffers one channel may have
 * @worker_caps: AIRUNNER_CAP_* that some of those workers have
 */
struct airunner_info {
	__u32 size;
	__u32 abi_major;
	__u32 abi_minor;
	__u32 workers;
	__u64 features;
	__u32 max_order;
	__u32 page_size;
	__u64 max_region;
	__u32 max_channels;
	__u32 max_buffers;
	__u64 worker_caps;
};

/* What a worker can do, and what a channel needs done. */
#define AIRUNNER_CAP_CPU	(1ULL << 0)
#define AIRUNNER_CAP_CUDA	(1ULL << 1)
#define AIRUNNER_CAP_RESIDENT	(1ULL << 2)

/* The rings of a region: one submission ring, one completion ring. */
#define AIRUNNER_CHANNELS	2

/* Strict classes: a lower one is served only when the higher are idle. */
enum airunner_priority {
	AIRUNNER_PRIO_REALTIME = 0,
	AIRUNNER_PRIO_HIGH = 1,
	AIRUNNER_PRIO_NORMAL = 2,
	AIRUNNER_PRIO_IDLE = 3,
};
#define AIRUNNER_PRIO_CLASSES	4
#define AIRUNNER_WEIGHT_DEFAULT	100
#define AIRUNNER_WEIGHT_MAX	10000

/**
 * struct airunner_build_channel - BUILD_CHANNEL
 * @size: sizeof(struct airunner_build_channel)
 * @flags: must be zero
 * @user_va: start of the region, page-aligned
 * @region_size: bytes, at least airunner_arena_offset(@order); rounded up to
 *	pages (reported in @mapped_size)
 * @channels: AIRUNNER_CHANNELS
 * @order: log2 of the ring entries
 * @need_caps: AIRUNNER_CAP_* a worker must have to be given the channel; 0
 *	for any worker
 * @worker_id: the only worker to serve it; 0 for any
 * @priority: enum airunner_priority. Classes above NORMAL need CAP_SYS_NICE
 * @weight: share within the class, 1..AIRUNNER_WEIGHT_MAX; 0 for the default.
 *	More than that needs CAP_SYS_NICE
 * @channel_id: out: the channel, unique until the module is unloaded
 * @mmap_offset: out: where a worker maps the region in /dev/airunner
 * @mapped_size: out: bytes pinned and mapped
 *
 * The range must lie in one writable MAP_SHARED mapping of shmem (memfd,
 * tmpfs, MAP_ANONYMOUS, System V) or hugetlb memory and must not overlap a
 * region that is registered already. It is pinned for the channel's life and
 * charged to RLIMIT_MEMLOCK of the caller unless that has CAP_IPC_LOCK.
 *
 * Errors: EINVAL (field), EFAULT (no such mapping, or not all of it), EACCES
 * (private or read-only mapping), EOPNOTSUPP (not shmem or hugetlb; before
 * Linux 6.7 also a tmpfs file by way of overlayfs), EEXIST (overlaps a
 * registered region), ENOMEM (RLIMIT_MEMLOCK or memory; the kernel log says
 * which), EDQUOT (user's quota), EPERM (priority or weight), EINTR (killed
 * while pinning). After an error nothing is pinned or charged.
 *
 * A worker maps it, or less of it from its start, by mmap() with MAP_SHARED.
 * Errors: EPERM (not a worker's file; writable although the memory has been
 * sealed since), ENXIO (no such channel or buffer), EACCES (another worker's
 * channel), EINVAL (too long, private, or part of a huge page), ENFILE (as
 * many open files as the system may have), ENOMEM.
 */
struct airunner_build_channel {
	__u32 size;
	__u32 flags;
	__u64 user_va;
	__u64 region_size;
	__u32 channels;
	__u32 order;
	__u64 need_caps;
	__u32 worker_id;
	__u16 priority;
	__u16 weight;
	__u32 channel_id;
	__u32 resv;
	__u64 mmap_offset;
	__u64 mapped_size;
};

/**
 * struct airunner_channel_ref - DESTROY_CHANNEL, DETACH_CHANNEL, RESET_CHANNEL
 * @size: sizeof(struct airunner_channel_ref)
 * @flags: must be zero
 * @channel_id: the channel
 * @resv: must be zero
 *
 * DESTROY_CHANNEL (owner): no further submission is taken; what is outstanding
 * is completed by the worker, and the region is let go when it detaches.
 * DETACH_CHANNEL (worker): the worker has unmapped the region and is done. One
 * that has not ended is thereby given back, and goes to another worker.
 * RESET_CHANNEL (CAP_SYS_ADMIN): ends a channel now: outstanding submissions
 * are answered AIRUNNER_S_RESET, waiters return, the worker is told.
 */
struct airunner_channel_ref {
	__u32 size;
	__u32 flags;
	__u32 channel_id;
	__u32 resv;
};

/**
 * struct airunner_buffer - REGISTER_BUFFER, UNREGISTER_BUFFER, BUFFER_INFO
 * @size: sizeof(struct airunner_buffer)
 * @channel_id: the channel it is for
 * @handle: 1..max_buffers, chosen by the client; REGISTER: EEXIST when taken
 * @flags: must be zero
 * @user_va: REGISTER: start, page-aligned
 * @length: REGISTER: bytes, same conditions and errors as a region;
 *	BUFFER_INFO: out
 * @mmap_offset: REGISTER, BUFFER_INFO: out: where a worker maps it
 *
 * UNREGISTER marks the buffer as let go by the client; it stays pinned until
 * the worker has released it as well (BUFFER_RELEASE in the ring, then
 * UNREGISTER_BUFFER on the worker's file). BUFFER_INFO is for workers.
 */
struct airunner_buffer {
	__u32 size;
	__u32 channel_id;
	__u32 handle;
	__u32 flags;
	__u64 user_va;
	__u64 length;
	__u64 mmap_offset;
};

/**
 * struct airunner_doorbell - DOORBELL
 * @size: sizeof(struct airunner_doorbell)
 * @flags: AIRUNNER_BELL_*
 * @channel_id: the channel
 * @resv: must be zero
 *
 * From a client: there is work; the channel is queued with the arbiter. From
 * a worker: there are completions; waiters on the channel wake.
 * ENXIO: no such channel; ESHUTDOWN: the channel has ended.
 */
struct airunner_doorbell {
	__u32 size;
	__u32 flags;
	__u32 channel_id;
	__u32 resv;
};

/* Client: watch the completion ring for me (AIRUNNER_SQ_WATCH). */
#define AIRUNNER_BELL_WATCH	(1U << 0)

/**
 * struct airunner_attach_worker - ATTACH_WORKER
 * @size: sizeof(struct airunner_attach_worker)
 * @flags: AIRUNNER_WORKER_*
 * @caps: AIRUNNER_CAP_* of this worker
 * @worker_id: out
 * @resv: must be zero
 * @page_offset: out: mmap offset of struct airunner_worker_page (read-only)
 * @name: for humans, NUL-terminated
 *
 * Needs CAP_SYS_ADMIN or membership of the group in the module parameter
 * worker_gid: a worker sees its channels' memory. With AIRUNNER_WORKER_OWN
 * anybody may attach, and is given only channels of its own user.
 *
 * A worker that dies while it has channels (its process ends or its file is
 * closed) leaves them to another one, or to itself when it comes back. The
 * module has then answered what was outstanding with AIRUNNER_S_WORKER_DIED:
 * the next worker finds its place in the ring by the completion laps, and
 * skips what is answered already, which need not be in order. READY follows.
 *
 * EPERM: see above; EBUSY: this file has channels, or is a worker already;
 * EDQUOT: the user has too many workers.
 */
struct airunner_attach_worker {
	__u32 size;
	__u32 flags;
	__u64 caps;
	__u32 worker_id;
	__u32 resv;
	__u64 page_offset;
	char name[32];
};

#define AIRUNNER_WORKER_OWN	(1U << 0)

/**
 * struct airunner_worker_page - one page the module writes and a worker reads
 * @pending: events (of whatever kind) queued for this worker
 * @best_prio: best priority class among ready channels, AIRUNNER_PRIO_CLASSES
 *	when none is ready
 *
 * Lets a busy worker see, without a system call, that it should call WAIT.
 */
struct airunner_worker_page {
	__u32 pending;
	__u32 best_prio;
};

enum airunner_event_type {
	/* A channel is the worker's: map it. Fields below are all valid. */
	AIRUNNER_EV_CHANNEL_NEW = 1,
	/* Serve @channel_id for up to @quantum_ns, then report. */
	AIRUNNER_EV_READY = 2,
	/* The owner has let go: finish, unmap, DETACH_CHANNEL. */
	AIRUNNER_EV_CHANNEL_GONE = 3,
	/* Reset: drop everything, unmap, DETACH_CHANNEL. */
	AIRUNNER_EV_CHANNEL_RESET = 4,
	/* A sleeping client wants its completions watched. */
	AIRUNNER_EV_WATCH = 5,
	/* The client let go of @handle. */
	AIRUNNER_EV_BUFFER_GONE = 6,
};

/**
 * struct airunner_event - what WAIT hands a worker
 * @type: enum airunner_event_type
 * @channel_id: the channel
 * @order: NEW: log2 of the ring entries
 * @handle: BUFFER_GONE: the buffer
 * @region_size: NEW: mapped bytes
 * @mmap_offset: NEW: where to map it
 * @quantum_ns: READY: how long to serve before reporting
 * @owner_uid: NEW: user that built it, in the worker's namespace
 * @owner_pid: NEW: process that built it, in the worker's namespace
 * @priority: NEW, READY: enum airunner_priority
 * @weight: NEW, READY: share within the class
 * @resv: zero
 */
struct airunner_event {
	__u32 type;
	__u32 channel_id;
	__u32 order;
	__u32 handle;
	__u64 region_size;
	__u64 mmap_offset;
	__u64 quantum_ns;
	__u32 owner_uid;
	__s32 owner_pid;
	__u16 priority;
	__u16 weight;
	__u32 resv;
};

/* The channel's ring is empty and NEED_WAKEUP is set in it. */
#define AIRUNNER_REPORT_IDLE	(1U << 0)
/*
 * The quantum is over and there is more: queue it again. Of a channel that has
 * no turn: something is in its ring that nobody rang for, as if it had.
 */
#define AIRUNNER_REPORT_MORE	(1U << 1)

/**
 * struct airunner_report - what a worker tells of a channel it served
 * @channel_id: the channel
 * @flags: AIRUNNER_REPORT_*: exactly one of IDLE and MORE ends the turn that
 *	READY began; 0 accounts time and goes on with it
 * @device_ns: executor time used since the last report: the fair share's
 *	currency
 * @completed: submissions completed since the last report
 */
struct airunner_report {
	__u32 channel_id;
	__u32 flags;
	__u64 device_ns;
	__u64 completed;
};

#define AIRUNNER_MAX_REPORTS	65536

/**
 * struct airunner_wait - WAIT
 * @size: sizeof(struct airunner_wait)
 * @flags: must be zero
 * @timeout_ns: relative; negative waits for ever, 0 does not wait
 * @channel_id: client: the channel; worker: must be zero
 * @nr_reports: worker: in: entries of @reports, at most AIRUNNER_MAX_REPORTS;
 *	out: 0 once they have been applied, whatever the call returns; client:
 *	must be zero
 * @seq: client: in: the completion sequence last seen; out: the one now
 * @reports: worker: address of struct airunner_report[@nr_reports]
 * @events: worker: address of struct airunner_event[@nr_events]
 * @nr_events: worker: in: room; out: events stored
 * @resv: must be zero
 *
 * Client: returns when the channel's completion sequence (which the worker's
 * doorbells count) differs from @seq. A client sets AIRUNNER_CQ_NEED_WAKEUP,
 * looks at its completion once more, and then waits: no wake-up is lost.
 * Worker: applies the reports, then returns the next events in the arbiter's
 * order. Others than READY go first, but what comes while they are taken does
 * not keep channels from being served: between two READY there are no more of
 * them than there were when the first of them was taken, or eight.
 * A signal handler with SA_RESTART, or being stopped and continued, does not
 * end a wait; what is left of @timeout_ns is then kept here.
 * ETIME: nothing within @timeout_ns; EINTR: signal; ESHUTDOWN: the channel
 * has ended (outstanding completions have been written).
 */
struct airunner_wait {
	__u32 size;
	__u32 flags;
	__s64 timeout_ns;
	__u32 channel_id;
	__u32 nr_reports;
	__u64 seq;
	__u64 reports;
	__u64 events;
	__u32 nr_events;
	__u32 resv;
};

/**
 * struct airunner_set_priority - SET_PRIORITY
 * @size: sizeof(struct airunner_set_priority)
 * @channel_id: a channel of this file
 * @priority: enum airunner_priority; above NORMAL needs CAP_SYS_NICE
 * @weight: 1..AIRUNNER_WEIGHT_MAX; 0 leaves it. More than
 *	AIRUNNER_WEIGHT_DEFAULT needs CAP_SYS_NICE
 * @resv: must be zero
 *
 * Device time that the channel has had more or less of than its share stays so
 * when its weight is changed; what it has had more of than its share of a class
 * counts again when it comes back to that class. Changing weight or class to
 * and fro gains nothing, and setting what is set already changes nothing. Who
 * leaves a class is not owed anything there any more: in a class it enters no
 * more than a turn behind the others.
 */
struct airunner_set_priority {
	__u32 size;
	__u32 channel_id;
	__u16 priority;
	__u16 weight;
	__u32 resv;
};

/**
 * struct airunner_set_eventfd - SET_EVENTFD
 * @size: sizeof(struct airunner_set_eventfd)
 * @channel_id: client: a channel of this file; worker: must be zero
 * @fd: an eventfd that is signalled at every completion doorbell (client) or
 *	queued event (worker); -1 takes it off
 * @flags: must be zero
 */
struct airunner_set_eventfd {
	__u32 size;
	__u32 channel_id;
	__s32 fd;
	__u32 flags;
};

enum airunner_thread_class {
	AIRUNNER_THREAD_NORMAL = 0,
	/* Confined to the accelerator cores (module parameter ai_cpus). */
	AIRUNNER_THREAD_AI = 1,
};

/**
 * struct airunner_set_thread_class - SET_THREAD_CLASS
 * @size: sizeof(struct airunner_set_thread_class)
 * @tid: thread id in the caller's pid namespace; 0 is the calling thread
 * @thread_class: enum airunner_thread_class
 * @flags: must be zero
 *
 * Who may open the device may use those cores, whatever cpuset the thread is
 * in: the kernel lets no module ask what that allows.
 *
 * ESRCH: no such thread; EPERM: a thread of another user without
 * CAP_SYS_NICE, or one that the kernel places itself (its own threads, those
 * of io_uring, and any that may not be moved already); ENODEV: no accelerator
 * cores are configured, or none of them is online.
 */
struct airunner_set_thread_class {
	__u32 size;
	__s32 tid;
	__u32 thread_class;
	__u32 flags;
};

/**
 * struct airunner_uring_wait - command area of an io_uring AIRUNNER_URING_WAIT
 * @channel_id: a channel of this file
 * @resv: must be zero
 * @seq: completion sequence last seen
 *
 * Completes with 0 as WAIT does. Only with AIRUNNER_FEAT_URING. A channel has
 * at most as many of them waiting as its ring has entries, and 64: EBUSY.
 */
struct airunner_uring_wait {
	__u32 channel_id;
	__u32 resv;
	__u64 seq;
};

/* Sizes are ABI. */
AIRUNNER_ASSERT(sizeof(struct airunner_info) == 56, "airunner_info");
AIRUNNER_ASSERT(sizeof(struct airunner_build_channel) == 72, "airunner_build_channel");
AIRUNNER_ASSERT(sizeof(struct airunner_channel_ref) == 16, "airunner_channel_ref");
AIRUNNER_ASSERT(sizeof(struct airunner_buffer) == 40, "airunner_buffer");
AIRUNNER_ASSERT(sizeof(struct airunner_doorbell) == 16, "airunner_doorbell");
AIRUNNER_ASSERT(sizeof(struct airunner_attach_worker) == 64, "airunner_attach_worker");
AIRUNNER_ASSERT(sizeof(struct airunner_event) == 56, "airunner_event");
AIRUNNER_ASSERT(sizeof(struct airunner_report) == 24, "airunner_report");
AIRUNNER_ASSERT(sizeof(struct airunner_wait) == 56, "airunner_wait");
AIRUNNER_ASSERT(sizeof(struct airunner_set_priority) == 16, "airunner_set_priority");
AIRUNNER_ASSERT(sizeof(struct airunner_set_eventfd) == 16, "airunner_set_eventfd");
AIRUNNER_ASSERT(sizeof(struct airunner_set_thread_class) == 16, "airunner_set_thread_class");
AIRUNNER_ASSERT(sizeof(struct airunner_uring_wait) == 16, "airunner_uring_wait");

#define AIRUNNER_URING_WAIT		1

#define AIRUNNER_IOC_GET_INFO		_IOWR(AIRUNNER_IOC_MAGIC, 0x00, struct airunner_info)
#define AIRUNNER_IOC_BUILD_CHANNEL	_IOWR(AIRUNNER_IOC_MAGIC, 0x01, struct airunner_build_channel)
#define AIRUNNER_IOC_DESTROY_CHANNEL	_IOW(AIRUNNER_IOC_MAGIC, 0x02, struct airunner_channel_ref)
#define AIRUNNER_IOC_REGISTER_BUFFER	_IOWR(AIRUNNER_IOC_MAGIC, 0x03, struct airunner_buffer)
#define AIRUNNER_IOC_UNREGISTER_BUFFER	_IOW(AIRUNNER_IOC_MAGIC, 0x04, struct airunner_buffer)
#define AIRUNNER_IOC_DOORBELL		_IOW(AIRUNNER_IOC_MAGIC, 0x05, struct airunner_doorbell)
#define AIRUNNER_IOC_WAIT		_IOWR(AIRUNNER_IOC_MAGIC, 0x06, struct airunner_wait)
#define AIRUNNER_IOC_SET_PRIORITY	_IOW(AIRUNNER_IOC_MAGIC, 0x07, struct airunner_set_priority)
#define AIRUNNER_IOC_SET_EVENTFD	_IOW(AIRUNNER_IOC_MAGIC, 0x08, struct airunner_set_eventfd)
#define AIRUNNER_IOC_SET_THREAD_CLASS	_IOW(AIRUNNER_IOC_MAGIC, 0x09, struct airunner_set_thread_class)
#define AIRUNNER_IOC_RESET_CHANNEL	_IOW(AIRUNNER_IOC_MAGIC, 0x0a, struct airunner_channel_ref)

#define AIRUNNER_IOC_ATTACH_WORKER	_IOWR(AIRUNNER_IOC_MAGIC, 0x20, struct airunner_attach_worker)
#define AIRUNNER_IOC_DETACH_CHANNEL	_IOW(AIRUNNER_IOC_MAGIC, 0x21, struct airunner_channel_ref)
#define AIRUNNER_IOC_BUFFER_INFO	_IOWR(AIRUNNER_IOC_MAGIC, 0x22, struct airunner_buffer)

#endif /* _UAPI_AIRUNNER_H */
