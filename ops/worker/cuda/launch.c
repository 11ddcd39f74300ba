// SPDX-License-Identifier: MIT
/*
 * The executor cuda-launch: operators run as launches on CUDA streams.
 *
 * A channel has one stream for its ordered work and some for UNORDERED work.
 * Ordered work that follows unordered work waits for it on the GPU, by events;
 * unordered work waits for nothing. The word that each stream writes when it
 * has come through (stream.h) is all that poll() looks at.
 */
#include "ops/worker/cuda/launch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "ops/worker/cuda/module.h"
#include "ops/worker/cuda/replay.h"
#include "ops/worker/cuda/stream.h"

#define SIDES 3
#define STREAMS (1 + SIDES)
#define WORD_GAP 64

/*
 * Products of so many multiplications take the GPU longer than they take
 * cuBLASLt on the CPU.
 */
#define REPLAY_MACS (1ull << 32)

/* How often a stream without progress is asked whether it has failed. */
#define ASK_NS 1000000ull
/* Likewise a user's kernel of more threads. */
#define LARGE_THREADS 16384u
/* How long a sleeping worker goes without asking. */
#define SLEEP_ASK_NS 10000000l

/* What plan() makes. */
struct plan {
	const struct air_cuda_op *op;
	struct air_cuda_function *fn[AIR_CUDA_STEPS];
	struct air_lt_plan *lt;
	struct air_wide *wide;
	struct air_replay *replay;	/* of small products */
	struct air_cuda_plan p;
	/* what does it while the library's code cannot be loaded */
	struct air_cuda_step own;
	struct air_cuda_function *own_fn;
};

/* A channel's streams: [0] for ordered work. */
struct channel {
	struct channel *next;
	struct air_stream stream[STREAMS];
	uint64_t *words;
	uint32_t generation;
	uint32_t turn;		/* the side stream that is next */
	bool mixed;		/* a side stream may be ahead of stream[0] */
};

struct air_exec {
	struct air_cuda *cuda;
	const struct air_worker_services *services;
	struct channel *channels;
	struct air_stream *active;
	unsigned int outstanding;
	struct air_work *finished, *lost;	/* by launch_lost() */
	struct air_work *suspect;
	uint64_t large_bytes;
	bool large_alone;
	uint64_t asked;
	int event_fd, timer_fd, wait_fd;
	bool armed;
};

/* --------------------------------------------------------- open and close */

static int watch(int ep, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN };

	return epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev);
}

static void launch_close(struct air_exec *ex)
{
	if (ex->cuda) {
		air_cuda_remove_client(ex->cuda, ex);
		air_cuda_put(ex->cuda);
	}
	if (ex->wait_fd >= 0)
		close(ex->wait_fd);
	if (ex->timer_fd >= 0)
		close(ex->timer_fd);
	if (ex->event_fd >= 0)
		close(ex->event_fd);
	free(ex);
}

static void launch_lost(void *arg);

static const struct air_worker_services *services;

void air_launch_set_services(const struct air_worker_services *s)
{
	services = s;
}

static air_status launch_open(const struct air_executor_config *config,
			      struct air_exec **out, struct air_error *e)
{
	struct air_exec *ex = calloc(1, sizeof(*ex));
	air_status st;

	if (!ex)
		return air_fail(e, AIR_NO_MEMORY, "cuda-launch: out of memory");
	ex->services = services;
	ex->large_bytes = config->large_bytes ? config->large_bytes :
						AIR_CUDA_LARGE;
	ex->large_alone = config->large_alone;
	ex->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	ex->timer_fd = timerfd_create(CLOCK_MONOTONIC,
				      TFD_NONBLOCK | TFD_CLOEXEC);
	ex->wait_fd = epoll_create1(EPOLL_CLOEXEC);
	if (ex->event_fd < 0 || ex->timer_fd < 0 || ex->wait_fd < 0 ||
	    watch(ex->wait_fd, ex->event_fd) ||
	    watch(ex->wait_fd, ex->timer_fd)) {
		st = air_fail(e, AIR_SYSTEM, "cuda-launch: no descriptors: %s",
			      strerror(errno));
		goto fail;
	}
	st = air_cuda_get(ex->services, &ex->cuda, e);
	if (st)
		goto fail;
	air_cuda_add_client(ex->cuda, &(struct air_cuda_client){
		.lost = launch_lost,
		.arg = ex,
	});
	*out = ex;
	return AIR_OK;
fail:
	launch_close(ex);
	return st;
}

static void launch_caps(struct air_exec *ex, struct air_backend_caps *caps)
{
	struct air_cuda *c = ex->cuda;

	caps->executor = AIR_EXEC_CUDA_LAUNCH;
	caps->present = 1;
	caps->threads = c->info.sms;
	caps->host_buffers = 1;
	caps->device_buffers = 1;
	caps->user_kernels = 1;
	caps->memory = c->total_memory;
	caps->ops = 0;
	for (uint32_t i = 1; i < AIR_OP_COUNT; i++)
		caps->ops |= (uint64_t)!!air_cuda_op_find(i) << i;
	snprintf(caps->name, sizeof(caps->name),
		 "cuda-launch: %.48s, compute capability %u.%u", c->device_name,
		 c->info.cc / 10, c->info.cc % 10);
}

/* --------------------------------------------------------------- channels */

static air_status open_streams(struct air_exec *ex, struct channel *ch)
{
	CUresult r = cu.MemAllocHost((void **)&ch->words, STREAMS * WORD_GAP);

	for (uint32_t i = 0; i < STREAMS && r == CUDA_SUCCESS; i++)
		r = air_stream_open(&ch->stream[i],
				    ch->words + i * (WORD_GAP / 8));
	if (r == CUDA_SUCCESS) {
		ch->generation = ex->cuda->generation;
		ch->mixed = false;
		return AIR_OK;
	}
	ex->services->log("cuda-launch: no streams: %s",
			  air_cuda_error_name(r));
	return air_cuda_is_fatal(ex->cuda, r) ? AIR_DEVICE_LOST :
						air_cuda_status(r);
}

static void close_streams(struct air_exec *ex, struct channel *ch)
{
	if (ch->generation != ex->cuda->generation) {
		/* they went with their context */
		memset(ch->stream, 0, sizeof(ch->stream));
		ch->words = NULL;
		return;
	}
	for (uint32_t i = 0; i < STREAMS; i++)
		air_stream_close(ex->cuda, &ch->stream[i]);
	if (ch->words) {
		air_cuda_quiet_begin(ex->cuda);
		cu.MemFreeHost(ch->words);
		air_cuda_quiet_end(ex->cuda);
	}
	ch->words = NULL;
}

static air_status launch_channel_open(struct air_exec *ex,
				      struct air_wchannel *wch, void **priv)
{
	struct channel *ch = calloc(1, sizeof(*ch));
	air_status st;

	if (!ch)
		return AIR_NO_MEMORY;
	ch->generation = ex->cuda->generation;
	st = open_streams(ex, ch);
	if (st) {
		close_streams(ex, ch);
		free(ch);
		return st;
	}
	ch->next = ex->channels;
	ex->channels = ch;
	*priv = ch;
	return AIR_OK;
}

static void launch_channel_close(struct air_exec *ex, void *priv)
{
	struct channel *ch = priv, **where = &ex->channels;

	while (*where != ch)
		where = &(*where)->next;
	*where = ch->next;
	close_streams(ex, ch);
	free(ch);
}

/* ------------------------------------------------------------------ plans */

static void launch_unplan(struct air_exec *ex, void *priv)
{
	struct plan *p = priv;

	if (p->lt)
		air_lt_unplan(p->lt);
	if (p->wide)
		air_wide_unplan(p->wide);
	air_replay_close(ex->cuda, p->replay);
	free(p);
}

static CUlaunchConfig config_of(const struct air_cuda_step *s, CUstream stream,
				CUlaunchAttribute *cluster)
{
	*cluster = (CUlaunchAttribute){
		.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
		.value.clusterDim = { s->cluster, 1, 1 },
	};
	return (CUlaunchConfig){
		.gridDimX = s->grid[0],
		.gridDimY = s->grid[1],
		.gridDimZ = s->grid[2],
		.blockDimX = s->block,
		.blockDimY = 1,
		.blockDimZ = 1,
		.sharedMemBytes = s->shared,
		.hStream = stream,
		.attrs = cluster,
		.numAttrs = s->cluster > 1,
	};
}

/* No more clusters than find room: the others would begin when these end. */
static void fit(struct air_cuda_step *s, CUfunction fn)
{
	CUlaunchAttribute cluster;
	CUlaunchConfig config = config_of(s, NULL, &cluster);
	int n = 0;

	if (cu.OccupancyMaxActiveClusters(&n, fn, &config) == CUDA_SUCCESS &&
	    n > 0 && s->grid[0] > (uint32_t)n * s->cluster)
		s->grid[0] = (uint32_t)n * s->cluster;
}

static air_status find_functions(struct air_exec *ex, struct plan *p,
				 struct air_error *e)
{
	for (uint32_t i = 0; i < p->p.n_steps; i++) {
		struct air_cuda_step *s = &p->p.step[i];
		air_status st = air_cuda_function(ex->cuda, p->op, s->kernel,
						  s->shared, &p->fn[i], e);

		if (st)
			return st;
		if (s->stays)
			fit(s, p->fn[i]->fn);
	}
	if (!p->own.kernel)
		return AIR_OK;
	return air_cuda_function(ex->cuda, p->op, p->own.kernel, p->own.shared,
				 &p->own_fn, e);
}

static air_status launch_plan(struct air_exec *ex, const struct air_plan *plan,
			      void **priv, uint64_t *workspace,
			      struct air_error *why)
{
	const struct air_cuda_op *op = air_cuda_op_find(plan->desc.op);
	struct plan *p;
	air_status st;

	if (!op)
		return air_fail(why, AIR_UNSUPPORTED,
				"cuda-launch: no kernels for %s",
				plan->op->name);
	if (ex->cuda->dead)
		return air_fail(why, AIR_DEVICE_LOST,
				"cuda-launch: %s is lost to this process",
				ex->cuda->device_name);
	p = calloc(1, sizeof(*p));
	if (!p)
		return air_fail(why, AIR_NO_MEMORY,
				"cuda-launch: out of memory");
	p->op = op;
	st = op->plan(&plan->desc, &ex->cuda->info, &p->p, why);
	if (st)
		goto fail;
	if (p->p.library) {
		const struct air_matmul_params *params =
			(const struct air_matmul_params *)p->p.params;

		st = p->p.piece ? air_wide_plan(ex->cuda, &plan->desc, params,
						p->p.piece, &p->wide, why) :
				  air_lt_plan(ex->cuda, &plan->desc, params,
					      &p->lt, why);
		if (st == AIR_UNSUPPORTED)
			p->p.library = false;
		else if (st)
			goto fail;
	}
	if (p->p.library) {
		const struct air_matmul_params *m =
			(const struct air_matmul_params *)p->p.params;

		if (p->lt && m->m * m->n * m->k * m->batch < REPLAY_MACS)
			p->replay = air_replay_open();
		/* what follows the library takes the steps' place */
		p->own = p->p.step[0];
		p->p.step[0] = p->p.after;
		p->p.n_steps = p->p.after.kernel != NULL;
	}
	st = find_functions(ex, p, why);
	if (st)
		goto fail;
	air_fail(why, AIR_OK, "cuda-launch: %s on %s",
		 p->p.library ? "cuBLASLt" : p->p.n_steps ?
					     p->p.step[0].kernel : "nothing",
		 ex->cuda->device_name);
	*priv = p;
	return AIR_OK;
fail:
	launch_unplan(ex, p);
	return st;
}

/* -------------------------------------------------------------------- run */

/* @memory of a stream is made when something first needs it. */
static bool have(struct air_exec *ex, uint64_t *memory, uint64_t size)
{
	return *memory || !air_devmem_alloc(ex->cuda, size, memory, NULL);
}

static bool have_scratch(struct air_exec *ex, struct air_stream *s)
{
	return have(ex, &s->scratch, AIR_CUDA_SCRATCH);
}

static CUresult launch_step(struct plan *p, const struct air_cuda_step *s,
			    CUfunction fn, struct air_operands *ops,
			    CUstream stream)
{
	void *args[] = { p->p.params, ops };
	CUlaunchAttribute cluster;
	CUlaunchConfig config = config_of(s, stream, &cluster);

	return cu.LaunchKernelEx(&config, fn, args, NULL);
}

static CUresult launch_steps(struct air_exec *ex, struct plan *p,
			     const uint64_t *addr, struct air_stream *stream)
{
	struct air_operands ops;

	memcpy(ops.addr, addr, sizeof(ops.addr));
	if (p->p.scratch) {
		if (!have_scratch(ex, stream))
			return CUDA_ERROR_OUT_OF_MEMORY;
		ops.addr[AIR_WORKSPACE_ADDR] = stream->scratch;
	} else if (p->p.counter) {
		if (!have(ex, &stream->counter, sizeof(uint32_t)))
			return CUDA_ERROR_OUT_OF_MEMORY;
		ops.addr[AIR_WORKSPACE_ADDR] = stream->counter;
	}
	for (uint32_t i = 0; i < p->p.n_steps; i++) {
		CUresult r = launch_step(p, &p->p.step[i], p->fn[i]->fn, &ops,
					 stream->stream);

		if (r != CUDA_SUCCESS)
			return r;
	}
	return CUDA_SUCCESS;
}

/*
 * Its functions are those of a context that was lost, and could not be loaded
 * into the new one.
 */
static bool is_stale(const struct air_exec *ex, const struct plan *p)
{
	const struct air_cuda_function *f = p->own_fn;

	if (!f && p->p.n_steps)
		f = p->fn[0];
	return f && f->generation != ex->cuda->generation;
}

static CUresult run_wide(struct air_exec *ex, struct plan *p,
			 const uint64_t *addr, struct air_stream *s)
{
	if (!have(ex, &s->wide, AIR_CUDA_WIDE))
		return CUDA_ERROR_OUT_OF_MEMORY;
	return air_wide_run(ex->cuda, p->wide, &(struct air_wide_run){
		.addr = addr,
		.params = (const struct air_matmul_params *)p->p.params,
		.scratch = s->scratch,
		.wide = s->wide,
		.step = &p->p.step[0],
		.finish = p->fn[0]->fn,
		.stream = s->stream,
	});
}

/* What run_plan() is about. */
struct execution {
	struct air_exec *ex;
	struct plan *p;
	const uint64_t *addr;
	struct air_stream *stream;
};

static CUresult enqueue(void *arg)
{
	struct execution *e = arg;
	CUresult r = CUDA_SUCCESS;

	if (e->p->wide)
		return run_wide(e->ex, e->p, e->addr, e->stream);
	if (e->p->lt)
		r = air_lt_run(e->ex->cuda, e->p->lt, e->addr,
			       e->stream->scratch, e->stream->stream);
	return r == CUDA_SUCCESS ?
		       launch_steps(e->ex, e->p, e->addr, e->stream) :
		       r;
}

static bool is_cold(const struct air_exec *ex, const struct plan *p,
		    const uint64_t *addr)
{
	if (p->wide)
		return !air_wide_warm(
			ex->cuda, p->wide,
			(const struct air_matmul_params *)p->p.params, addr);
	return p->lt && !air_lt_warm(ex->cuda, p->lt, addr);
}

/*
 * The library's first run of a plan loads code. That cannot be beside a
 * resident kernel, nor while a stream waits, perhaps for this very operator: it
 * is then done by the kernel that does it where there is no library.
 */
static CUresult run_cold(struct execution *e)
{
	struct air_exec *ex = e->ex;
	struct air_operands ops;
	CUresult r;

	if (!ex->services->block_begin()) {
		memcpy(ops.addr, e->addr, sizeof(ops.addr));
		return launch_step(e->p, &e->p->own, e->p->own_fn->fn, &ops,
				   e->stream->stream);
	}
	air_cuda_quiet_begin(ex->cuda);
	r = enqueue(e);
	air_cuda_quiet_end(ex->cuda);
	ex->services->block_end();
	return r;
}

static CUresult run_plan(struct air_exec *ex, struct plan *p,
			 const uint64_t *addr, struct air_stream *s)
{
	struct execution e = { ex, p, addr, s };

	if ((p->lt || p->wide) && !have_scratch(ex, s))
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (is_cold(ex, p, addr))
		return run_cold(&e);
	return air_replay_run(ex->cuda, p->replay, &(struct air_replay_run){
		.addr = addr,
		.workspace = s->scratch,
		.stream = s->stream,
		.enqueue = enqueue,
		.arg = &e,
	});
}

/* The stream for @work, and what it has to wait for. */
static CUresult choose_stream(struct channel *ch, const struct air_work *work,
			      struct air_stream **out)
{
	struct air_stream *main = &ch->stream[0];
	CUresult r = CUDA_SUCCESS;

	if (work->flags & AIRUNNER_SQE_UNORDERED) {
		*out = &ch->stream[1 + ch->turn++ % SIDES];
		ch->mixed = true;
		return r;
	}
	*out = main;
	for (uint32_t i = 1; ch->mixed && i < STREAMS && r == CUDA_SUCCESS;
	     i++) {
		struct air_stream *side = &ch->stream[i];

		if (!side->first)
			continue;
		r = cu.EventRecord(side->event, side->stream);
		if (r == CUDA_SUCCESS)
			r = cu.StreamWaitEvent(main->stream, side->event, 0);
	}
	ch->mixed = false;
	return r;
}

/*
 * A user's kernel may fault. To know which of the outstanding did, the stream
 * tells of everything before each of them; what follows is told apart by the
 * next one or by the burst's end.
 */
static CUresult launch_user(struct air_exec *ex, struct air_stream *s,
			    const struct air_launch *l)
{
	CUresult r = air_stream_tell(s);

	if (r != CUDA_SUCCESS || !air_module_is_stale(l))
		return r != CUDA_SUCCESS ? r : air_module_launch(l, s->stream);
	/* gone with its context; nothing is loaded while a stream waits */
	if (!ex->services->block_begin())
		return CUDA_ERROR_NOT_READY;
	r = air_module_launch(l, s->stream);
	ex->services->block_end();
	return r;
}

/* Start the work's clock, put it on the stream's list. */
static void push(struct air_exec *ex, struct air_stream *s,
		 struct air_work *work)
{
	air_stream_push(s, work);
	ex->outstanding++;
	if (!s->active) {
		s->active = true;
		s->next = ex->active;
		ex->active = s;
	}
}

/*
 * A resident kernel holds registers everywhere: what wants the whole GPU, or
 * large blocks, would wait for it or run on what is left.
 */
static bool wants_all(const struct air_exec *ex, const struct air_work *work,
		      const struct plan *p)
{
	const struct air_launch *l = work->launch;

	if (!l)
		return p->p.bytes > ex->large_bytes;
	return ex->large_bytes != UINT64_MAX &&
	       (uint64_t)l->grid[0] * l->grid[1] * l->grid[2] * l->block[0] *
			       l->block[1] * l->block[2] > LARGE_THREADS;
}

static void make_way(struct air_exec *ex, struct air_work *work)
{
	work->alone = ex->large_alone;
	if (work->alone)
		air_cuda_hold(ex->cuda);
	else
		air_cuda_make_way(ex->cuda);
}

/* The work has ended: the GPU is no longer its own. */
static void share_again(struct air_exec *ex, struct air_work *work)
{
	if (work->alone)
		air_cuda_release(ex->cuda);
	work->alone = false;
}

static air_status launch_run(struct air_exec *ex, struct air_work *work)
{
	struct channel *ch = work->ch_priv;
	struct plan *p = work->plan_priv;
	struct air_stream *s = &ch->stream[0];
	struct air_error e = { "" };
	CUresult r = CUDA_SUCCESS;
	air_status st;

	work->alone = false;
	/* no other context, or not yet: streams of the last one are gone */
	if (ex->cuda->dead ||
	    (ex->cuda->lost && ch->generation != ex->cuda->generation)) {
		st = AIR_DEVICE_LOST;
		goto now;
	}
	/* answered, as all outstanding work, by the next poll() */
	if (ex->cuda->lost)
		goto out;
	if (ch->generation != ex->cuda->generation) {
		close_streams(ex, ch);
		st = open_streams(ex, ch);
		if (st)
			goto now;
	}
	if (!work->launch && is_stale(ex, p)) {
		st = AIR_DEVICE_LOST;
		if (!ex->services->block_begin())
			goto now;
		st = find_functions(ex, p, &e);
		ex->services->block_end();
		if (st)
			goto now;
	}
	if (wants_all(ex, work, p))
		make_way(ex, work);
	r = choose_stream(ch, work, &s);
	if (r == CUDA_SUCCESS) {
		if (work->launch)
			r = launch_user(ex, s, work->launch);
		else
			r = run_plan(ex, p, work->addr, s);
	}
	if (r != CUDA_SUCCESS && !air_cuda_is_fatal(ex->cuda, r)) {
		st = r == CUDA_ERROR_NOT_READY ? AIR_DEVICE_LOST :
						 air_cuda_status(r);
		ex->services->log("cuda-launch: launch refused: %s",
				  air_cuda_error_name(r));
		goto now;
	}
out:
	push(ex, s, work);
	if (s->given - s->told >= AIR_STREAM_BURST && !ex->cuda->lost)
		air_cuda_is_fatal(ex->cuda, air_stream_tell(s));
	return AIR_PENDING;
now:
	share_again(ex, work);
	work->end = ex->services->now();
	return st;
}

static void launch_flush(struct air_exec *ex)
{
	if (ex->cuda->lost)
		return;
	for (struct air_stream *s = ex->active; s; s = s->next)
		if (air_cuda_is_fatal(ex->cuda, air_stream_tell(s)))
			return;
}

/* ------------------------------------------------------------------- poll */

static unsigned int report(struct air_exec *ex, struct air_work *list,
			   air_status st)
{
	unsigned int n = 0;

	while (list) {
		struct air_work *w = list;

		list = w->next;
		ex->outstanding--;
		n++;
		share_again(ex, w);
		ex->services->work_done(w, st, 0);
	}
	return n;
}

static void append(struct air_work **list, struct air_work *more)
{
	while (*list)
		list = &(*list)->next;
	*list = more;
}

/*
 * The context is about to go: take stock. The work at the head of a stream was
 * running or next; if only one of those is a user's kernel, that one did it.
 */
static void launch_lost(void *arg)
{
	struct air_exec *ex = arg;
	uint64_t now = ex->services->now();
	unsigned int suspects = 0;
	struct air_stream *s;

	ex->suspect = NULL;
	for (s = ex->active; s; s = s->next) {
		/* what had completed before is not lost */
		append(&ex->finished, air_stream_pop(s, now));
		if (s->first && !s->first->plan) {
			ex->suspect = s->first;
			suspects++;
		}
	}
	if (suspects != 1)
		ex->suspect = NULL;
	while ((s = ex->active)) {
		struct air_work *list = air_stream_pop_all(s);

		ex->active = s->next;
		s->active = false;
		for (struct air_work *w = list; w; w = w->next)
			w->end = now;
		append(&ex->lost, list);
	}
}

static unsigned int report_lost(struct air_exec *ex)
{
	struct air_work *lost, *finished;
	struct air_error e = { "" };
	unsigned int n;

	/* both executors of the GPU are told, each reports its own */
	if (ex->cuda->lost && !ex->cuda->dead && air_cuda_restore(ex->cuda, &e))
		ex->services->log("cuda-launch: %s", e.text);
	finished = ex->finished;
	lost = ex->lost;
	ex->finished = ex->lost = NULL;
	n = report(ex, finished, AIR_OK);
	while (lost) {
		struct air_work *w = lost;

		lost = w->next;
		ex->outstanding--;
		n++;
		share_again(ex, w);
		ex->services->work_done(w, w == ex->suspect ?
						AIR_DEVICE_FAULT :
						AIR_DEVICE_LOST, 0);
	}
	return n;
}

/* A failed stream never writes its word: ask now and then. */
static void ask(struct air_exec *ex, uint64_t now)
{
	if (now - ex->asked < ASK_NS)
		return;
	ex->asked = now;
	for (struct air_stream *s = ex->active; s; s = s->next)
		if (air_cuda_is_fatal(ex->cuda, cu.StreamQuery(s->stream)))
			return;
}

static void drain_fds(struct air_exec *ex)
{
	uint64_t n;

	while (read(ex->event_fd, &n, sizeof(n)) > 0 ||
	       read(ex->timer_fd, &n, sizeof(n)) > 0)
		;
	ex->armed = false;
}

static unsigned int launch_poll(struct air_exec *ex)
{
	struct air_stream **where = &ex->active, *s;
	struct air_work *done = NULL, **tail = &done;
	uint64_t now;

	if (ex->armed)
		drain_fds(ex);
	if (ex->cuda->lost || ex->lost || ex->finished)
		return report_lost(ex);
	if (!ex->active)
		return 0;
	now = ex->services->now();
	while ((s = *where)) {
		*tail = air_stream_pop(s, now);
		while (*tail)
			tail = &(*tail)->next;
		if (s->first) {
			where = &s->next;
			continue;
		}
		*where = s->next;
		s->active = false;
	}
	if (done) {
		ex->asked = now;
		/* after the walk: a callback may run the next work */
		return report(ex, done, AIR_OK);
	}
	ask(ex, now);
	return ex->cuda->lost ? report_lost(ex) : 0;
}

static unsigned int launch_outstanding(struct air_exec *ex)
{
	return ex->outstanding;
}

static void wake(void *arg)
{
	struct air_exec *ex = arg;
	uint64_t one = 1;

	/* full means that it is readable, which is all that is wanted */
	if (write(ex->event_fd, &one, sizeof(one)) < 0)
		return;
}

/*
 * Each stream that has work calls back when it has come through. A context
 * that is lost calls nobody: hence the timer.
 */
static int launch_wait_fd(struct air_exec *ex)
{
	struct itimerspec when = { .it_value.tv_nsec = SLEEP_ASK_NS };

	launch_flush(ex);
	for (struct air_stream *s = ex->active; s && !ex->cuda->lost;
	     s = s->next) {
		CUresult r;

		if (s->armed == s->given)
			continue;
		r = cu.LaunchHostFunc(s->stream, wake, ex);
		if (r == CUDA_SUCCESS)
			s->armed = s->given;
		else
			air_cuda_is_fatal(ex->cuda, r);
	}
	if (ex->cuda->lost && !ex->cuda->dead)
		return -1;
	if (ex->active && timerfd_settime(ex->timer_fd, 0, &when, NULL))
		return -1;
	ex->armed = true;
	return ex->wait_fd;
}

/* ---------------------------------------------------------------- buffers */

static air_status launch_buffer_map(struct air_exec *ex,
				    struct air_wbuffer *buf)
{
	return air_cuda_buffer_map(ex->cuda, buf, AIRUNNER_EXEC_CUDA_LAUNCH);
}

static void launch_buffer_unmap(struct air_exec *ex, struct air_wbuffer *buf)
{
	air_cuda_buffer_unmap(ex->cuda, buf, AIRUNNER_EXEC_CUDA_LAUNCH);
}

static air_status launch_buffer_alloc(struct air_exec *ex,
				      struct air_wbuffer *buf)
{
	return air_cuda_buffer_alloc(ex->cuda, buf);
}

static void launch_buffer_free(struct air_exec *ex, struct air_wbuffer *buf)
{
	air_cuda_buffer_free(ex->cuda, buf);
}

/* ---------------------------------------------------------- user's kernels */

static air_status launch_module_load(struct air_exec *ex, const void *image,
				     uint64_t size, void **module,
				     struct air_error *e)
{
	return air_module_load(ex->cuda, image, size,
			       (struct air_module **)module, e);
}

static void launch_module_unload(struct air_exec *ex, void *module)
{
	air_module_unload(ex->cuda, module);
}

static air_status launch_function_get(struct air_exec *ex, void *module,
				      struct airunner_function_record *record,
				      void **function, struct air_error *e)
{
	return air_module_function(ex->cuda, module, record,
				   (struct air_module_function **)function, e);
}

/* --------------------------------------------------------------- handover */

static air_status launch_handover_open(struct air_exec *ex,
				   struct air_handover *h)
{
	return air_cuda_handover_open(ex->cuda, h);
}

static void launch_handover_close(struct air_exec *ex, struct air_handover *h)
{
	air_cuda_handover_close(ex->cuda, h);
}

static air_status launch_stream_wait(struct air_exec *ex,
				 const struct air_handover *h, uint64_t n,
				 void *stream, struct air_error *e)
{
	return air_cuda_stream_wait(ex->cuda, h, n, stream, e);
}

const struct air_executor_ops air_cuda_launch_ops = {
	.abi = AIR_EXECUTOR_ABI,
	.id = AIRUNNER_EXEC_CUDA_LAUNCH,
	.name = "cuda-launch",
	.open = launch_open,
	.close = launch_close,
	.caps = launch_caps,
	.channel_open = launch_channel_open,
	.channel_close = launch_channel_close,
	.buffer_map = launch_buffer_map,
	.buffer_unmap = launch_buffer_unmap,
	.buffer_alloc = launch_buffer_alloc,
	.buffer_free = launch_buffer_free,
	.plan = launch_plan,
	.unplan = launch_unplan,
	.run = launch_run,
	.poll = launch_poll,
	.flush = launch_flush,
	.outstanding = launch_outstanding,
	.wait_fd = launch_wait_fd,
	.module_load = launch_module_load,
	.module_unload = launch_module_unload,
	.function_get = launch_function_get,
	.handover_open = launch_handover_open,
	.handover_close = launch_handover_close,
	.stream_wait = launch_stream_wait,
};
