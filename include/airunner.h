/* SPDX-License-Identifier: MIT */
/*
 * airunner: submit operators to an accelerator by writing one 64-byte slot.
 *
 *	air_device *dev;
 *	air_channel *ch;
 *
 *	air_open("inproc:", NULL, &dev);
 *	air_channel_create(dev, NULL, &ch);
 *	... air_buffer_alloc(), air_create_relu_descriptor() ...
 *	air_execute_relu(relu, AIR_NO_REF, y, x, &token);
 *	air_wait(ch, token, AIR_FOREVER, NULL);
 *
 * Objects, from the outside in: a device is a way to reach a worker; a channel
 * is a pair of rings to it, in which operators run in the order submitted; a
 * buffer is memory that a channel's operators may address; a descriptor is an
 * operator that was checked once for given shapes and can be executed many
 * times (include/airunner/ops.h and the headers beside it).
 *
 * Conventions
 *  - Functions return AIR_OK (0) or another enum air_status. Out parameters
 *    are written only on success unless said otherwise. air_status_string()
 *    turns a status into a sentence; air_last_error() is the sentence about
 *    the last call of this thread that failed, with names and numbers.
 *  - Sizes and offsets are bytes, shapes and strides elements, times
 *    nanoseconds of CLOCK_MONOTONIC.
 *  - Whatever a create, alloc, open or import function returns belongs to the
 *    caller and goes back through the matching destroy, free or close.
 *    Destroying a NULL object does nothing.
 *  - Thread-safety: a channel may be used from any number of threads at once,
 *    and so may everything that belongs to it; what is being destroyed may
 *    not be in use by another thread's call. Who does not need that saves what
 *    it costs: AIR_CHANNEL_SINGLE_CALLER.
 *  - fork: a child must not use objects of its parent (AIR_FORKED), nor the
 *    memory of its buffers, which it may not have; it opens its own.
 */
#ifndef AIRUNNER_H
#define AIRUNNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define AIR_VERSION_MAJOR 0
#define AIR_VERSION_MINOR 1
#define AIR_VERSION_PATCH 0

#define AIR_API __attribute__((visibility("default")))

typedef struct air_device air_device;
typedef struct air_channel air_channel;
typedef struct air_buffer air_buffer;
typedef struct air_descriptor air_descriptor;

/*
 * Statuses. The numbers are those of enum airunner_status in
 * include/uapi/airunner.h, where a completion carries them.
 */
typedef enum air_status {
	AIR_OK = 0,
	AIR_PENDING = 1,
	AIR_FULL = 2,
	AIR_TIMEOUT = 3,
	AIR_CANCELED = 4,
	AIR_BUSY = 5,
	AIR_BAD_OPCODE = 16,
	AIR_BAD_FLAGS = 17,
	AIR_BAD_ID = 18,
	AIR_BAD_HANDLE = 19,
	AIR_BAD_RANGE = 20,
	AIR_BAD_ALIGN = 21,
	AIR_BAD_RESERVED = 22,
	AIR_BAD_TOKEN = 23,
	AIR_BAD_ARGUMENT = 24,
	AIR_BAD_OPERATOR = 32,
	AIR_BAD_DTYPE = 33,
	AIR_BAD_SHAPE = 34,
	AIR_BAD_STRIDES = 35,
	AIR_BAD_ATTRIBUTE = 36,
	AIR_ALIASING = 37,
	AIR_WORKSPACE = 38,
	AIR_UNSUPPORTED = 39,
	AIR_NO_MEMORY = 48,
	AIR_NO_DEVICE = 49,
	AIR_DEVICE_FAULT = 50,
	AIR_DEVICE_LOST = 51,
	AIR_NO_WORKER = 52,
	AIR_WORKER_DIED = 53,
	AIR_CHANNEL_DEAD = 54,
	AIR_RESET = 55,
	AIR_PERMISSION = 56,
	AIR_MEMLOCK = 57,
	AIR_QUOTA = 58,
	AIR_SYSTEM = 59,
	AIR_FORKED = 60,
	AIR_ABI = 61,
} air_status;

/* A static sentence for a status; never NULL. */
AIR_API const char *air_status_string(air_status status);

/*
 * The sentence of the last failed call of the calling thread: operator,
 * operand, value and what was expected. Valid until the thread's next failing
 * call; "" when none has failed.
 */
AIR_API const char *air_last_error(void);

/* "0.1.0" */
AIR_API const char *air_version(void);

/* ------------------------------------------------------------ devices */

/**
 * struct air_device_options - what air_open() may be told
 * @size: sizeof(struct air_device_options); lets the struct grow
 * @threads: inproc: worker threads that share an operator; 0 for one a core
 * @spin_ns: how long worker (inproc) and waiters poll before they sleep;
 *	0 for the default (20 microseconds), ~0 never sleeps
 * @executors: inproc: comma-separated list of executors to load ("cpu",
 *	"cuda"); NULL for what the environment variable AIRUNNER_EXECUTORS
 *	says, else for all that work on this machine
 * @park_ns: inproc: how long the resident kernel stays on an idle GPU; 0 for
 *	the default (1 millisecond), ~0 for ever
 * @large_bytes: inproc: before an operator that is launched and touches more
 *	bytes than this the resident kernel leaves the GPU, and before a user's
 *	kernel of more than 16384 threads; 0 for the default (8 MiB), ~0: for
 *	neither
 * @large_alone: inproc: 1: and it stays away until they have completed, small
 *	operators being launched meanwhile; 0: it comes back with the next
 *	small operator of any channel
 * @reserved: 0
 *
 * See also air_quiet_begin() in <airunner/cuda.h>. airunnerd has the same as
 * options of its command line.
 */
struct air_device_options {
	uint32_t size;
	uint32_t threads;
	uint64_t spin_ns;
	const char *executors;
	uint64_t park_ns;
	uint64_t large_bytes;
	uint32_t large_alone;
	uint32_t reserved;
};

/**
 * air_open() - reach a worker
 * @where: "inproc:" (a worker thread in this process), "unix:PATH" (airunnerd
 *	behind a socket), "/dev/airunner" (airunnerd behind the module); NULL
 *	for the environment variable AIRUNNER, else /dev/airunner if it can be
 *	opened, else "inproc:"
 * @options: NULL for defaults
 *
 * AIR_BAD_ARGUMENT (unknown form of @where), AIR_PERMISSION, AIR_NO_DEVICE,
 * AIR_ABI, AIR_SYSTEM.
 */
AIR_API air_status air_open(const char *where,
			    const struct air_device_options *options,
			    air_device **out);

/* Close a device. Its channels must have been destroyed: AIR_BUSY. */
AIR_API air_status air_close(air_device *dev);

typedef enum air_transport {
	AIR_INPROC = 1,
	AIR_UNIX = 2,
	AIR_KERNEL = 3,
} air_transport;

AIR_API air_transport air_device_transport(const air_device *dev);

/* Executors, and the bit each has in masks. */
typedef enum air_executor {
	AIR_EXEC_ANY = 0,
	AIR_EXEC_CPU = 1,
	AIR_EXEC_CUDA_LAUNCH = 2,
	AIR_EXEC_CUDA_RESIDENT = 3,
} air_executor;

/**
 * struct air_backend_caps - what an executor can do
 * @size: sizeof(struct air_backend_caps), set by the caller
 * @executor: which one
 * @present: whether the device's worker has it
 * @threads: cpu: threads; cuda: multiprocessors
 * @host_buffers: executes on host buffers
 * @device_buffers: has memory of its own
 * @user_kernels: takes air_launch()
 * @memory: bytes of device memory; 0 for cpu
 * @name: "cpu: AMD EPYC, 2 threads, OpenBLAS 0.3.21", for humans
 * @ops: bit air_op_id of each operator it executes
 * @park_ns, @large_bytes: cuda-resident: what holds of struct
 *	air_device_options; 0 for others, and where it is not told (the module)
 * @large_alone: likewise
 * @reserved2: 0
 */
struct air_backend_caps {
	uint32_t size;
	uint32_t executor;
	uint32_t present;
	uint32_t threads;
	uint32_t host_buffers;
	uint32_t device_buffers;
	uint32_t user_kernels;
	uint32_t reserved;
	uint64_t memory;
	uint64_t ops;
	char name[96];
	uint64_t park_ns;
	uint64_t large_bytes;
	uint32_t large_alone;
	uint32_t reserved2;
};

/* AIR_BAD_ARGUMENT for an unknown executor; absent ones have present == 0. */
AIR_API air_status air_backend_caps(air_device *dev, air_executor executor,
				    struct air_backend_caps *caps);

/* ----------------------------------------------------------- channels */

/**
 * struct air_channel_options - what air_channel_create() may be told
 * @size: sizeof(struct air_channel_options)
 * @order: log2 of the ring entries, 1..16; 0 for the default (10: 1024)
 * @arena: bytes for descriptors in transit; 0 for the default (64 KiB).
 *	At least 1 KiB
 * @priority: 1 real time, 2 high, 3 normal, 4 idle (enum airunner_priority of
 *	<airunner/uapi.h>, plus one); 0 for normal (module only)
 * @weight: share within the class; 0 for the default, more than that (100)
 *	needs CAP_SYS_NICE (module only)
 * @executor: what executors its descriptors use unless they say otherwise
 * @flags: AIR_CHANNEL_*
 */
struct air_channel_options {
	uint32_t size;
	uint32_t order;
	uint64_t arena;
	uint32_t priority;
	uint32_t weight;
	air_executor executor;
	uint32_t flags;
};

/*
 * The caller sees to it that no two calls of the library on this channel, or on
 * what belongs to it, overlap: one thread at a time, and what one did
 * happens-before what the next does (the same thread, a mutex, a join). Calls
 * that only read what was fixed at creation (air_channel_entries(),
 * air_buffer_data(), _size(), _ref(), air_prepare_*()) may be made at any time.
 * Submitting and collecting then take no locked instruction.
 *
 * When the promise is broken, submissions get lost or mixed up and completions
 * are delivered twice or never; other channels, and the worker, are unharmed.
 * A library built for ThreadSanitizer shows who breaks it.
 *
 * When another channel's thread makes room in the device's cache of freed
 * buffers, this channel's share is given back with its own next submission or
 * allocation.
 */
#define AIR_CHANNEL_SINGLE_CALLER (1U << 0)

/*
 * AIR_BAD_ARGUMENT, AIR_NO_MEMORY, AIR_MEMLOCK (air_last_error() names the
 * limit and how to raise it), AIR_QUOTA, AIR_PERMISSION, AIR_SYSTEM.
 */
AIR_API air_status air_channel_create(air_device *dev,
				      const struct air_channel_options *options,
				      air_channel **out);

/*
 * Wait for what is outstanding (at most ten seconds: AIR_TIMEOUT, and the
 * channel stays), then give everything back. Buffers and descriptors of the
 * channel must not be used afterwards; what is left of them goes with it.
 */
AIR_API air_status air_channel_destroy(air_channel *ch);

AIR_API air_device *air_channel_device(const air_channel *ch);

/* Number of ring entries: how many submissions can be outstanding. */
AIR_API uint32_t air_channel_entries(const air_channel *ch);

/* -------------------------------------------------------- submissions */

/* A submission's identity, unique within its channel; never reused. */
typedef uint64_t air_token;

#define AIR_FOREVER INT64_C(-1)

/**
 * struct air_completion - how a submission ended
 * @token: which one
 * @user_data: what the call carried
 * @status: AIR_OK, or why not
 * @detail: the refused operand's number (1 is the first), or 0
 * @start: when the executor began, ns of CLOCK_MONOTONIC
 * @duration: how long it took on the executor, ns
 */
struct air_completion {
	air_token token;
	uint64_t user_data;
	air_status status;
	uint32_t detail;
	uint64_t start;
	uint64_t duration;
};

/**
 * struct air_call - one prepared submission: what goes into a slot
 * @word: payloads (include/uapi/airunner.h); filled in by air_prepare_*()
 * @user_data: handed back with the completion
 * @flags: AIR_CALL_*
 * @timeout_ms: give up with AIR_TIMEOUT if not started so long after the worker
 *	took it (time in the ring before that does not count); 0 for never
 *
 * Plain data, owned by the caller; may be submitted any number of times.
 */
struct air_call {
	uint64_t word[8];
	uint64_t user_data;
	uint32_t flags;
	uint16_t timeout_ms;
	uint16_t reserved;
};

/* May overlap what was submitted before it (else: in order). */
#define AIR_CALL_UNORDERED (1U << 0)
/* Starts only after everything submitted before it has completed. */
#define AIR_CALL_BARRIER (1U << 1)
/*
 * Nobody will ask for the completion: the library collects it. A failure is
 * kept as the channel's error (air_channel_error()).
 */
#define AIR_CALL_DETACHED (1U << 2)

/**
 * air_submit() - submit prepared calls, all or none
 * @calls: @n calls, submitted in this order with consecutive tokens
 * @n: 1 to air_channel_entries()
 * @first: out, may be NULL: the first call's token
 *
 * Never blocks and makes no system call unless the worker sleeps. AIR_FULL:
 * no room; collect completions (air_poll(), air_wait()) and try again.
 */
AIR_API air_status air_submit(air_channel *ch, const struct air_call *calls,
			      uint32_t n, air_token *first);

/* Prepare a call that does nothing, for barriers and measurements. */
AIR_API void air_prepare_nop(struct air_call *call);

/**
 * air_poll() - collect a completion if it is there
 * @completion: out, may be NULL
 *
 * AIR_PENDING: not yet. Otherwise the completion's own status, once: the token
 * is then used up and AIR_BAD_TOKEN from then on. *@completion is written
 * whenever the submission has completed, also in error.
 */
AIR_API air_status air_poll(air_channel *ch, air_token token,
			    struct air_completion *completion);

/**
 * air_wait() - as air_poll(), but waits
 * @timeout_ns: AIR_FOREVER, or how long
 *
 * Polls for the device's spin time, then sleeps. AIR_TIMEOUT: still not
 * completed, the token stays valid (a submission that itself timed out has
 * completion->token == @token; on the waiter's own time-out *@completion is
 * not written). AIR_NO_WORKER: timed out, and nobody drains the channel.
 */
AIR_API air_status air_wait(air_channel *ch, air_token token,
			    int64_t timeout_ns,
			    struct air_completion *completion);

/**
 * air_poll_many() - collect completions of consecutive tokens
 * @first: the first of @n tokens of one air_submit(); those of several calls
 *	need not be consecutive
 * @completions: out, may be NULL: @n of them, of which *@done are written
 * @done: out, always written: how many tokens, from @first on, are used up
 *
 * Collects in this order what is there, for less than as many calls of
 * air_poll() cost. AIR_OK: all @n, and all of them went well. AIR_PENDING:
 * *@done did, the next one has not completed. AIR_BAD_TOKEN: it is @first +
 * *@done that is unknown or was collected before. Anything else is the status
 * of the last one collected, @first + *@done - 1, which failed: call again for
 * those behind it. But with *@done 0, or if that one went well, it is the
 * channel's: AIR_CHANNEL_DEAD, AIR_RESET, AIR_FORKED, AIR_BAD_ARGUMENT.
 */
AIR_API air_status air_poll_many(air_channel *ch, air_token first, uint32_t n,
				 struct air_completion *completions,
				 uint32_t *done);

/**
 * air_wait_many() - as air_poll_many(), but waits
 * @timeout_ns: AIR_FOREVER, or how long
 *
 * What is there already is collected as air_poll_many() does. If that is not
 * all, waits for the last of them first: one that fails meanwhile is told once
 * that has completed. AIR_PENDING: the time is up. AIR_NO_WORKER: likewise, and
 * nobody drains the channel.
 */
AIR_API air_status air_wait_many(air_channel *ch, air_token first, uint32_t n,
				 int64_t timeout_ns,
				 struct air_completion *completions,
				 uint32_t *done);

/*
 * Collect the oldest completion nobody has collected, if it is there:
 * AIR_PENDING when it is not, or when nothing is outstanding. Returns AIR_OK
 * with *@completion, whose status says how it ended.
 */
AIR_API air_status air_next(air_channel *ch, struct air_completion *completion);

/* Wait until everything submitted so far has completed; collects nothing. */
AIR_API air_status air_drain(air_channel *ch, int64_t timeout_ns);

/*
 * Ask that a submission not be run. Its completion comes in any case:
 * AIR_CANCELED if it had not been taken yet, else how it ended.
 */
AIR_API air_status air_cancel(air_channel *ch, air_token token);

/* First failure of a detached call since the last time this was asked. */
AIR_API air_status air_channel_error(air_channel *ch,
				     struct air_completion *completion);

/*
 * A file descriptor for poll/epoll/select: readable when completions may have
 * arrived. Arm it before each sleep: air_channel_arm() returns AIR_OK when it
 * is safe to sleep, AIR_BUSY when a completion is there already, AIR_NO_WORKER
 * when the worker is gone and all is collected (the next submission looks for
 * another one), AIR_CHANNEL_DEAD or AIR_RESET when the channel has ended. Owned
 * by the channel, and the same for all its life: a loop takes it in once,
 * whatever becomes of workers. It may be readable for nothing: at first, when a
 * worker took the place of another, and for as long as there is none.
 */
AIR_API air_status air_channel_fd(air_channel *ch, int *fd);
AIR_API air_status air_channel_arm(air_channel *ch);

/* ------------------------------------------------------------ buffers */

/* Where in a channel's buffers an operand lies: by value, cheap, unchecked
 * until it is executed. */
typedef struct air_ref {
	uint64_t bits;
} air_ref;

#define AIR_NO_REF ((air_ref){ (uint64_t)0xffff << 40 })

typedef enum air_memory {
	AIR_HOST = 1, /* seen by the caller, the worker and the GPU */
	AIR_DEVICE = 2, /* the executor's own; data pointer is NULL */
} air_memory;

/**
 * air_buffer_alloc() - memory that operators of @ch may address
 * @bytes: rounded up to pages; 0 is AIR_BAD_ARGUMENT
 * @memory: AIR_HOST works everywhere; AIR_DEVICE needs an executor that has
 *	its own (AIR_UNSUPPORTED otherwise)
 *
 * Zeroed when fresh; a freed buffer is kept pinned in a cache of the device
 * for the next allocation of about its size, and then holds what was left in
 * it. AIR_NO_MEMORY, AIR_MEMLOCK, AIR_QUOTA.
 */
AIR_API air_status air_buffer_alloc(air_channel *ch, size_t bytes,
				    air_memory memory, air_buffer **out);

/**
 * air_buffer_import() - let operators address memory the caller owns
 * @memory: AIR_HOST, or AIR_DEVICE for a CUDA pointer of this process
 *
 * "inproc:" only (AIR_UNSUPPORTED elsewhere). The memory must stay valid until
 * the buffer was freed and what uses it has completed.
 */
AIR_API air_status air_buffer_import(air_channel *ch, void *data, size_t bytes,
				     air_memory memory, air_buffer **out);

/*
 * Let go of a buffer. It lives until the last submission that uses it has
 * completed, whatever comes first.
 */
AIR_API air_status air_buffer_free(air_buffer *buf);

AIR_API void *air_buffer_data(const air_buffer *buf);
AIR_API size_t air_buffer_size(const air_buffer *buf);

/* The operand that begins @offset bytes into @buf. */
AIR_API air_ref air_buffer_ref(const air_buffer *buf, uint64_t offset);

/* ------------------------------------------------------------ tensors */

#define AIR_MAX_DIMS 8

typedef enum air_dtype {
	AIR_F32 = 1,
	AIR_F16 = 2,
	AIR_BF16 = 3,
	AIR_I32 = 4,
	AIR_I8 = 5,
	AIR_I64 = 6,
} air_dtype;

/* Bytes of one element; 0 for an unknown dtype. */
AIR_API size_t air_dtype_size(air_dtype dtype);
/* "f32", "f16", ... */
AIR_API const char *air_dtype_name(air_dtype dtype);

/**
 * struct air_tensor_desc - shape, strides and dtype of an operand
 * @dtype: air_dtype
 * @ndim: 0 (scalar) to AIR_MAX_DIMS
 * @shape: elements a dimension, outermost first; may be 0
 * @stride: elements from one index to the next; 0 repeats, negative runs
 *	backwards. Entries from @ndim on are zero in both.
 *
 * Plain data, copied by whatever takes it. The layout is that of struct
 * airunner_tensor.
 */
typedef struct air_tensor_desc {
	uint32_t dtype;
	uint32_t ndim;
	int64_t shape[AIR_MAX_DIMS];
	int64_t stride[AIR_MAX_DIMS];
} air_tensor_desc;

/*
 * Fill in a description. @strides NULL means contiguous, last dimension
 * fastest. AIR_BAD_DTYPE, AIR_BAD_SHAPE (negative, too many dimensions, or
 * more elements than 2^62), AIR_BAD_STRIDES (overflow).
 */
AIR_API air_status air_tensor_desc_init(air_tensor_desc *t, air_dtype dtype,
					uint32_t ndim, const int64_t *shape,
					const int64_t *strides);

AIR_API int64_t air_tensor_desc_elements(const air_tensor_desc *t);
AIR_API bool air_tensor_desc_contiguous(const air_tensor_desc *t);

/*
 * Bytes before (@below, for negative strides) and from (@above) the tensor's
 * first element that its elements occupy. Both 0 for an empty tensor.
 */
AIR_API void air_tensor_desc_extent(const air_tensor_desc *t, uint64_t *below,
				    uint64_t *above);

/**
 * struct air_tensor - a description and where its first element lies
 * @buf: the buffer; borrowed, the view does not keep it
 * @offset: bytes from the buffer's start to element (0, ..., 0)
 *
 * Plain data. Views share the buffer.
 */
typedef struct air_tensor {
	air_tensor_desc desc;
	air_buffer *buf;
	uint64_t offset;
} air_tensor;

/* A contiguous tensor in a new buffer; free with air_buffer_free(t->buf). */
AIR_API air_status air_tensor_alloc(air_channel *ch, air_memory memory,
				    air_dtype dtype, uint32_t ndim,
				    const int64_t *shape, air_tensor *out);
/* A tensor over existing memory; AIR_BAD_RANGE if it reaches outside. */
AIR_API air_status air_tensor_view(air_buffer *buf, uint64_t offset,
				   const air_tensor_desc *desc,
				   air_tensor *out);
/* Elements [start, start + n * step) of dimension @dim; @step may be < 0. */
AIR_API air_status air_tensor_slice(const air_tensor *t, uint32_t dim,
				    int64_t start, int64_t n, int64_t step,
				    air_tensor *out);
/* Dimensions in the order @perm (a permutation of 0..ndim-1). */
AIR_API air_status air_tensor_permute(const air_tensor *t,
				      const uint32_t *perm, air_tensor *out);
/* Same elements, new shape; AIR_BAD_STRIDES when that needs a copy. */
AIR_API air_status air_tensor_reshape(const air_tensor *t, uint32_t ndim,
				      const int64_t *shape, air_tensor *out);
/* Size-1 dimensions repeated to @shape, by stride 0. */
AIR_API air_status air_tensor_broadcast(const air_tensor *t, uint32_t ndim,
					const int64_t *shape, air_tensor *out);
AIR_API air_ref air_tensor_ref(const air_tensor *t);
/* First element in this process; NULL for device memory. */
AIR_API void *air_tensor_data(const air_tensor *t);

/* -------------------------------------------------------- descriptors */

/* What is common to all operators' descriptors; see airunner/ops.h. */

/* Which executor runs it, and one sentence why. @why may be NULL. */
AIR_API air_executor air_descriptor_executor(const air_descriptor *d,
					     const char **why);
/* "relu" */
AIR_API const char *air_descriptor_name(const air_descriptor *d);

/*
 * What later air_create_*_descriptor() calls of the calling thread ask for;
 * AIR_EXEC_ANY (the default) leaves it to the channel, then to the worker.
 */
AIR_API void air_prefer_executor(air_executor executor);

#ifdef __cplusplus
}
#endif

#endif /* AIRUNNER_H */
