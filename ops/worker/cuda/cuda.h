/* SPDX-License-Identifier: MIT */
/*
 * One GPU as both CUDA executors use it: context, code, memory. Each worker
 * that has CUDA executors has one of these, used on that worker's thread only
 * and shared by its cuda-launch and cuda-resident.
 *
 * The context is the device's primary one, so that pointers of other CUDA
 * users of the process (PyTorch, say) are valid here and ours there.
 *
 * Beside a resident kernel some calls of CUDA do not return until it ends:
 * freeing and unregistering memory, and loading code. They are made between
 * air_cuda_quiet_begin() and air_cuda_quiet_end(), which take the resident
 * kernel off the GPU for that moment, and never on the data path. They wait for
 * streams, too, so they are made only where services->block_begin() allows it:
 * the worker sees to that for what its clients ask for, and here it is asked
 * where it comes of itself.
 */
#ifndef AIR_CUDA_H
#define AIR_CUDA_H

#include <stdbool.h>
#include <stdint.h>

#include "ops/cuda/cuda_op.h"
#include "ops/matmul/params.h"
#include "ops/worker/cuda/driver.h"
#include "ops/worker/executor.h"

struct air_cublaslt;
struct air_handover_page;
struct air_host_range;
struct air_dev_block;

/* Told to whoever keeps something of the context. */
struct air_cuda_client {
	/* leave the GPU, wait until that is done; and come back */
	void (*quiet_begin)(void *arg);
	void (*quiet_end)(void *arg);
	/* leave the GPU, come back with the next poll() that has reason to */
	void (*make_way)(void *arg);
	/* the context is about to go with all that is in it; is there again */
	void (*lost)(void *arg);
	void (*restored)(void *arg);
	void *arg;
};

#define AIR_CUDA_CLIENTS 4

/*
 * What is larger fills the GPU for longer than a resident kernel takes to
 * leave it: the default of struct air_executor_config.large_bytes.
 */
#define AIR_CUDA_LARGE (8ull << 20)

/* A function of an operator's module; see air_cuda_function(). */
struct air_cuda_function {
	struct air_cuda_function *next;
	const struct air_cuda_op *op;
	char name[48];
	uint32_t shared;
	uint32_t generation;
	CUfunction fn;
};

/**
 * struct air_cuda
 * @generation: counts contexts; what was made under another number is gone
 * @epoch: process-wide count of resets at the time of this generation
 * @lost: CUDA has reported an error that the context does not survive
 */
struct air_cuda {
	uint32_t users;
	const struct air_worker_services *services;
	CUdevice dev;
	CUcontext ctx;
	struct air_cuda_device info;
	uint64_t total_memory;
	char device_name[64];
	bool write_value;

	uint32_t generation;
	uint32_t epoch;
	CUresult lost;
	bool dead;		/* and there is no other for this process */
	struct air_cuda_client client[AIR_CUDA_CLIENTS];
	uint32_t n_clients;
	uint32_t quiet;
	uint32_t held;

	CUmodule module[AIR_OP_COUNT];
	struct air_cuda_function *functions;

	struct air_host_range *ranges;		/* hostmem.c, by address */
	struct air_host_range *stale;		/* to be unregistered */
	struct air_dev_block *blocks;		/* devmem.c */
	struct air_dev_block *cached;
	struct air_map *maps;			/* buffers that were mapped */
	struct air_handover_page *pages;	/* handover.c */
	uint32_t max_waiting;			/* waiting.c */
	CUstream service;			/* control path */

	struct air_cublaslt *lt;
	bool lt_tried;
};

/* ------------------------------------------------------------- context.c */

/*
 * The worker's GPU: the first call of a thread opens it, later ones share it.
 * AIRUNNER_CUDA_DEVICE says which; default 0.
 */
air_status air_cuda_get(const struct air_worker_services *services,
			struct air_cuda **out, struct air_error *e);
void air_cuda_put(struct air_cuda *c);

void air_cuda_add_client(struct air_cuda *c,
			 const struct air_cuda_client *client);
void air_cuda_remove_client(struct air_cuda *c, void *arg);

void air_cuda_quiet_begin(struct air_cuda *c);
void air_cuda_quiet_end(struct air_cuda *c);

/*
 * The same for longer, while work comes and goes: nothing that waits for the
 * GPU is done at the end. Nests, also with the pair above.
 */
void air_cuda_hold(struct air_cuda *c);
void air_cuda_release(struct air_cuda *c);

/* Have the resident kernel leave the GPU to what is about to be enqueued. */
void air_cuda_make_way(struct air_cuda *c);

/*
 * Whether @r means that a context is lost. Any thread.
 */
bool air_cuda_loses(CUresult r);

/*
 * Whether @r means that the context is lost; remembers it in c->lost. What is
 * outstanding will never complete and is the executor's to answer, before
 * air_cuda_restore() is called.
 */
bool air_cuda_is_fatal(struct air_cuda *c, CUresult r);

/*
 * A new context in place of the lost one. Device memory is there again, with
 * zeros in it and at other addresses; host memory is registered anew.
 */
air_status air_cuda_restore(struct air_cuda *c, struct air_error *e);

/*
 * The function @name of @op's module, able to use @shared bytes of dynamic
 * shared memory; loaded, so that its first launch does not wait. The pointer
 * stays valid; use ->fn while ->generation is the context's, else ask again.
 */
air_status air_cuda_function(struct air_cuda *c, const struct air_cuda_op *op,
			     const char *name, uint32_t shared,
			     struct air_cuda_function **out,
			     struct air_error *e);

/* Load now what CUDA would load at the first launch. */
CUresult air_cuda_load_now(CUfunction fn);

/* The status for an error that is not fatal. */
air_status air_cuda_status(CUresult r);

/* ------------------------------------------------------------- hostmem.c */

/*
 * Make [host, host + size) reachable for the GPU. Overlapping and repeated
 * requests share registrations; memory that another user of the process
 * registered is used as it is.
 */
air_status air_hostmem_map(struct air_cuda *c, void *host, uint64_t size,
			   uint64_t *addr, struct air_error *e);
/* Once for each successful map. Memory stays registered until it is asked for
 * again or the GPU is quiet. */
void air_hostmem_unmap(struct air_cuda *c, void *host, uint64_t size);
/*
 * Where [host, host + size) is for the GPU if CUDA itself allocated it, for
 * somebody of the process (cudaMallocHost()): that it refuses to register.
 */
bool air_hostmem_pinned(const struct air_cuda *c, void *host, uint64_t size,
			uint64_t *addr);
/* Unregister what nobody maps, unless a stream waits. Only while quiet. */
void air_hostmem_trim(struct air_cuda *c);
void air_hostmem_lost(struct air_cuda *c);
air_status air_hostmem_restore(struct air_cuda *c);

/* -------------------------------------------------------------- devmem.c */

/*
 * Zeroed device memory, from the cache if it can be. Freed memory goes to the
 * cache; it is given back to CUDA when CUDA has no more, or at close.
 */
air_status air_devmem_alloc(struct air_cuda *c, uint64_t size, uint64_t *addr,
			    struct air_error *e);
void air_devmem_free(struct air_cuda *c, uint64_t addr);
void air_devmem_trim(struct air_cuda *c);
/* Forget all blocks: they went with the context. */
void air_devmem_lost(struct air_cuda *c);

/* -------------------------------------------------------------- buffers.c */

/* buffer_map, buffer_unmap, buffer_alloc, buffer_free of both executors. */
air_status air_cuda_buffer_map(struct air_cuda *c, struct air_wbuffer *buf,
			       enum airunner_executor id);
void air_cuda_buffer_unmap(struct air_cuda *c, struct air_wbuffer *buf,
			   enum airunner_executor id);
air_status air_cuda_buffer_alloc(struct air_cuda *c, struct air_wbuffer *buf);
void air_cuda_buffer_free(struct air_cuda *c, struct air_wbuffer *buf);
/* After air_cuda_restore(): addresses in the buffers are right again. */
void air_cuda_buffers_restore(struct air_cuda *c);

/* ------------------------------------------------------------- handover.c */

/* handover_open, handover_close, stream_wait of both executors. */
air_status air_cuda_handover_open(struct air_cuda *c, struct air_handover *h);
void air_cuda_handover_close(struct air_cuda *c, struct air_handover *h);
air_status air_cuda_stream_wait(struct air_cuda *c,
				const struct air_handover *h, uint64_t n,
				void *stream, struct air_error *e);
/* Before the context goes; whoever still waits is let pass. */
void air_cuda_handovers_free(struct air_cuda *c);

/* -------------------------------------------------------------- waiting.c */

/* How many streams may wait at a time, as the environment has it. */
uint32_t air_waiting_limit(void);

/*
 * @stream is about to wait until *@word has reached @until. False: it must not,
 * as @limit others wait. A stream that waits for @word already is no other. Any
 * thread.
 */
bool air_waiting_add(CUstream stream, const uint64_t *word, uint64_t until,
		     uint32_t limit);
/* The word is about to go. */
void air_waiting_forget(const uint64_t *word);

/* ------------------------------------------------------------- cublaslt.c */

struct air_lt_plan;

/*
 * Whether cuBLASLt does this matmul but for its activation, and how.
 * AIR_UNSUPPORTED: not it; use own kernels.
 */
air_status air_lt_plan(struct air_cuda *c, const struct airunner_desc *d,
		       const struct air_matmul_params *p,
		       struct air_lt_plan **out, struct air_error *e);
void air_lt_unplan(struct air_lt_plan *p);
/*
 * Enqueue. @workspace: AIR_CUDA_SCRATCH bytes that no other stream uses. The
 * first run of a plan with operands of some alignment loads code: call it while
 * quiet (air_lt_warm()).
 */
CUresult air_lt_run(struct air_cuda *c, struct air_lt_plan *p,
		    const uint64_t *addr, uint64_t workspace, CUstream stream);
bool air_lt_warm(const struct air_cuda *c, const struct air_lt_plan *p,
		 const uint64_t *addr);
void air_lt_close(struct air_cuda *c);

/* ----------------------------------------------------------------- wide.c */

struct air_wide;

/**
 * struct air_wide_run - a product in pieces (struct air_cuda_plan.piece)
 * @addr: operands; @params: the operator's
 * @scratch, @wide: AIR_CUDA_SCRATCH and AIR_CUDA_WIDE bytes
 * @step, @finish: the kernel that makes the result of a piece
 */
struct air_wide_run {
	const uint64_t *addr;
	const struct air_matmul_params *params;
	uint64_t scratch, wide;
	const struct air_cuda_step *step;
	CUfunction finish;
	CUstream stream;
};

/* As air_lt_plan(), air_lt_unplan(), air_lt_warm() and air_lt_run(). */
air_status air_wide_plan(struct air_cuda *c, const struct airunner_desc *d,
			 const struct air_matmul_params *p, uint32_t rows,
			 struct air_wide **out, struct air_error *e);
void air_wide_unplan(struct air_wide *w);
bool air_wide_warm(const struct air_cuda *c, const struct air_wide *w,
		   const struct air_matmul_params *p, const uint64_t *addr);
CUresult air_wide_run(struct air_cuda *c, struct air_wide *w,
		      const struct air_wide_run *r);

#endif /* AIR_CUDA_H */
