// SPDX-License-Identifier: MIT
/*
 * The executor cuda-resident: rings are drained by a kernel that stays on the
 * GPU (resident.h). What it is not given a ring for (all leaders taken, the
 * kernel parked while code is loaded) runs by launches, through a cuda-launch
 * of its own: the same descriptors, the same results.
 */
#include "ops/worker/resident/resident_exec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/conv2d/params.h"
#include "ops/matmul/params.h"
#include "ops/worker/cuda/launch.h"
#include "ops/worker/resident/form.h"
#include "ops/worker/resident/kernel.h"

/*
 * What is better done here than by a launch. A launch takes about 5 us; in
 * that time the blocks here, with fewer threads than a launch's, move this
 * much. Measured on an H200: docs/benchmarks/.
 */
#define MAX_BYTES	(4u << 20)
/* Matrices that are read once, by all blocks, at the memory's speed. */
#define MAX_SWEEP_BYTES	(96u << 20)
/*
 * Multiplications that tiles without a library's finesse may cost: 2^24 of them
 * (256 x 256 x 256) took 26 us here and 15 us launched.
 */
#define MAX_MACS	(1u << 22)
/* One block does as much about as fast as it takes to call others. */
#define ALONE_BYTES	(64u << 10)
#define SHARE_BYTES	(8u << 10)

#define MAX_PLANS	(1u << 20)
/* A submission that takes longer is reported, once. */
#define HUNG_NS		5000000000ull
#define LOOK_NS		100000000ull

struct plan {
	struct plan *next, **back;
	void *launch;			/* cuda-launch's */
	uint64_t dev;			/* struct air_res_plan */
	struct air_res_plan res;	/* what is there */
};

struct channel {
	struct channel *next;
	struct air_wchannel *wch;
	void *launch;			/* cuda-launch's */
	struct air_ring *ring;		/* while attached */
	uint32_t place;
	int leader;			/* -1: not attached */
	bool dirty;
	/* the tables, and what the GPU has of them */
	struct plan **plans;
	struct air_wbuffer **buffers;
	uint32_t n_plans, n_buffers;
	uint64_t dev_plans, dev_buffers;
	uint32_t room_plans, room_buffers;
	/* since it was attached */
	uint64_t from;
	uint64_t watched, moved_at;
	bool hung;
};

struct air_exec {
	struct air_cuda *cuda;
	const struct air_worker_services *services;
	struct air_exec *launch;
	struct air_res_kernel kernel;
	struct channel *channels;
	struct channel *leader[AIR_RES_LEADERS];
	struct plan *plans;
	uint64_t park_ns;
	uint64_t looked;
	uint32_t attached;
	bool usable;
	uint64_t large_bytes;
	bool large_alone;
	bool held;		/* between quiet_begin and quiet_end */
};

static const struct air_worker_services *services;

void air_resident_set_services(const struct air_worker_services *s)
{
	services = s;
}

/* ----------------------------------------------------------- open and close */

static void make_way(void *arg)
{
	struct air_exec *ex = arg;

	if (ex->usable && !air_res_kernel_stop(&ex->kernel) &&
	    !ex->cuda->lost)
		ex->services->log("cuda-resident: the kernel does not end");
}

static void quiet_begin(void *arg)
{
	struct air_exec *ex = arg;

	ex->held = true;
	make_way(ex);
}

/* Rings that no leader had taken yet are served by the next kernel. */
static void start_if_wanted(struct air_exec *ex)
{
	if (!ex->usable || ex->held || ex->cuda->lost)
		return;
	for (uint32_t l = 0; l < AIR_RES_LEADERS; l++) {
		if (!ex->leader[l] || !air_res_kernel_wanted(&ex->kernel, l))
			continue;
		air_cuda_is_fatal(ex->cuda, air_res_kernel_start(&ex->kernel));
		return;
	}
}

static void quiet_end(void *arg)
{
	struct air_exec *ex = arg;

	ex->held = false;
	start_if_wanted(ex);
}

/*
 * The context is lost with rings attached. What was published and has no
 * answer may have been under way: all of it gets one, up to the first index
 * that is not published.
 */
static uint64_t answer_lost(struct channel *ch)
{
	struct air_cqe cqe = { .status = AIRUNNER_S_DEVICE_LOST };
	uint64_t index = ch->from;
	struct air_sqe sqe;

	for (; air_ring_fetch(ch->ring, index, &sqe); index++)
		if (!air_ring_answered(ch->ring, index))
			air_ring_complete(ch->ring, index, &cqe);
	return index;
}

static void give_back(struct air_exec *ex, struct channel *ch,
		      const struct air_ring_return *ret)
{
	ex->leader[ch->leader] = NULL;
	ch->leader = -1;
	ch->ring = NULL;
	ex->attached--;
	ex->services->ring_returned(ch->wch, ret);
}

static void lost(void *arg)
{
	struct air_exec *ex = arg;

	for (struct channel *ch = ex->channels; ch; ch = ch->next) {
		struct air_ring_return ret = { 0 };

		ch->dev_plans = ch->dev_buffers = 0;
		ch->room_plans = ch->room_buffers = 0;
		ch->dirty = true;
		if (ch->leader < 0)
			continue;
		ret.index = answer_lost(ch);
		ret.completed = ret.index - ch->from;
		give_back(ex, ch, &ret);
	}
	for (struct plan *p = ex->plans; p; p = p->next)
		p->dev = 0;
	air_res_kernel_close(&ex->kernel, true);
	ex->usable = false;
}

static air_status upload_plan(struct air_exec *ex, struct plan *p,
			      struct air_error *e)
{
	air_status st = air_devmem_alloc(ex->cuda, sizeof(p->res), &p->dev, e);
	CUresult r;

	if (st)
		return st;
	r = air_res_upload(ex->cuda, p->dev, &p->res, sizeof(p->res));
	if (r == CUDA_SUCCESS)
		return AIR_OK;
	return air_fail(e, air_cuda_is_fatal(ex->cuda, r) ? AIR_DEVICE_LOST :
							    AIR_SYSTEM,
			"cuda-resident: plan: %s", air_cuda_error_name(r));
}

static void restored(void *arg)
{
	struct air_exec *ex = arg;
	struct air_error e = { "" };
	air_status st;

	st = air_res_kernel_open(&ex->kernel, ex->cuda, ex->park_ns, &e);
	for (struct plan *p = ex->plans; p && !st; p = p->next)
		st = upload_plan(ex, p, &e);
	ex->usable = !st;
	if (st)
		ex->services->log("%s; work is launched instead", e.text);
}

static void resident_close(struct air_exec *ex)
{
	if (ex->usable) {
		bool ended = air_res_kernel_stop(&ex->kernel);

		air_res_kernel_close(&ex->kernel, !ended || ex->cuda->lost);
	}
	if (ex->launch)
		air_cuda_launch_ops.close(ex->launch);
	if (ex->cuda) {
		air_cuda_remove_client(ex->cuda, ex);
		air_cuda_put(ex->cuda);
	}
	free(ex);
}

static air_status refuse(struct air_error *e)
{
	const char *off = getenv("AIRUNNER_RESIDENT");
	const char *blocking = getenv("CUDA_LAUNCH_BLOCKING");

	if (off && !strcmp(off, "0"))
		return air_fail(e, AIR_NO_DEVICE,
				"cuda-resident: switched off by AIRUNNER_RESIDENT=0");
	if (blocking && !strcmp(blocking, "1"))
		return air_fail(e, AIR_NO_DEVICE,
				"cuda-resident: CUDA_LAUNCH_BLOCKING=1 would wait for a kernel that stays");
	return AIR_OK;
}

static air_status resident_open(const struct air_executor_config *config,
				struct air_exec **out, struct air_error *e)
{
	struct air_exec *ex;
	air_status st = refuse(e);

	if (st)
		return st;
	ex = calloc(1, sizeof(*ex));
	if (!ex)
		return air_fail(e, AIR_NO_MEMORY,
				"cuda-resident: out of memory");
	ex->services = services;
	ex->park_ns = config->park_ns ? config->park_ns : 1000000;
	ex->large_bytes = config->large_bytes ? config->large_bytes :
						AIR_CUDA_LARGE;
	ex->large_alone = config->large_alone;
	st = air_cuda_get(services, &ex->cuda, e);
	if (!st)
		st = air_cuda_launch_ops.open(config, &ex->launch, e);
	if (!st)
		st = air_res_kernel_open(&ex->kernel, ex->cuda, ex->park_ns, e);
	if (st) {
		resident_close(ex);
		return st;
	}
	ex->usable = true;
	air_cuda_add_client(ex->cuda, &(struct air_cuda_client){
		.quiet_begin = quiet_begin,
		.quiet_end = quiet_end,
		.make_way = make_way,
		.lost = lost,
		.restored = restored,
		.arg = ex,
	});
	*out = ex;
	return AIR_OK;
}

static void resident_caps(struct air_exec *ex, struct air_backend_caps *caps)
{
	struct air_cuda *c = ex->cuda;

	air_cuda_launch_ops.caps(ex->launch, caps);
	caps->executor = AIR_EXEC_CUDA_RESIDENT;
	caps->user_kernels = 0;
	caps->park_ns = ex->park_ns;
	caps->large_bytes = ex->large_bytes;
	caps->large_alone = ex->large_alone;
	snprintf(caps->name, sizeof(caps->name),
		 "cuda-resident: %.48s, %u blocks", c->device_name,
		 ex->kernel.blocks);
}

/* --------------------------------------------------------------- channels */

static air_status resident_channel_open(struct air_exec *ex,
					struct air_wchannel *wch, void **priv)
{
	bool taken[AIR_RES_PLACES] = { false };
	struct channel *ch;
	uint32_t place = 0;
	air_status st;

	for (ch = ex->channels; ch; ch = ch->next)
		if (ch->place < AIR_RES_PLACES)
			taken[ch->place] = true;
	/* one without a place is never attached: launches serve it */
	while (place < AIR_RES_PLACES && taken[place])
		place++;
	ch = calloc(1, sizeof(*ch));
	if (!ch)
		return AIR_NO_MEMORY;
	st = air_cuda_launch_ops.channel_open(ex->launch, wch, &ch->launch);
	if (st) {
		free(ch);
		return st;
	}
	ch->wch = wch;
	ch->place = place;
	ch->leader = -1;
	ch->dirty = true;
	ch->next = ex->channels;
	ex->channels = ch;
	*priv = ch;
	return AIR_OK;
}

static void resident_channel_close(struct air_exec *ex, void *priv)
{
	struct channel *ch = priv, **where = &ex->channels;

	while (*where != ch)
		where = &(*where)->next;
	*where = ch->next;
	air_cuda_launch_ops.channel_close(ex->launch, ch->launch);
	if (ch->dev_plans)
		air_devmem_free(ex->cuda, ch->dev_plans);
	if (ch->dev_buffers)
		air_devmem_free(ex->cuda, ch->dev_buffers);
	free(ch->plans);
	free(ch->buffers);
	free(ch);
}

/* Room for entry @i in a table of pointers. */
static bool grow(void ***table, uint32_t *n, uint32_t i)
{
	uint32_t want = *n ? *n : 64;
	void **bigger;

	if (i < *n)
		return true;
	while (want <= i)
		want *= 2;
	bigger = realloc(*table, want * sizeof(**table));
	if (!bigger)
		return false;
	memset(bigger + *n, 0, (want - *n) * sizeof(**table));
	*table = bigger;
	*n = want;
	return true;
}

static air_status resident_desc_set(struct air_exec *ex, void *priv,
				    uint32_t id, void *plan)
{
	struct channel *ch = priv;

	if (!plan && id >= ch->n_plans)
		return AIR_OK;
	if (id >= MAX_PLANS || !grow((void ***)&ch->plans, &ch->n_plans, id))
		return AIR_NO_MEMORY;
	ch->plans[id] = plan;
	ch->dirty = true;
	return AIR_OK;
}

static air_status resident_buffer_set(struct air_exec *ex, void *priv,
				      uint32_t handle, struct air_wbuffer *buf)
{
	struct channel *ch = priv;

	if (!buf && handle >= ch->n_buffers)
		return AIR_OK;
	if (!grow((void ***)&ch->buffers, &ch->n_buffers, handle))
		return AIR_NO_MEMORY;
	ch->buffers[handle] = buf;
	ch->dirty = true;
	return AIR_OK;
}

/* A table of the channel in device memory, with room for @n entries. */
static air_status table(struct air_exec *ex, uint64_t *dev, uint32_t *room,
			uint32_t n, uint32_t size, const void *from)
{
	struct air_error e = { "" };
	air_status st = AIR_OK;

	if (*room < n) {
		if (*dev)
			air_devmem_free(ex->cuda, *dev);
		*dev = 0;
		*room = 0;
		st = air_devmem_alloc(ex->cuda, (uint64_t)n * size, dev, &e);
		if (st)
			return st;
		*room = n;
	}
	if (n && air_cuda_is_fatal(ex->cuda,
				   air_res_upload(ex->cuda, *dev, from,
						  (uint64_t)n * size)))
		st = AIR_DEVICE_LOST;
	return st;
}

/* Bring the GPU's tables up to date. Only while the ring is the host's. */
static air_status upload_channel(struct air_exec *ex, struct channel *ch,
				 const struct air_ring *ring)
{
	uint64_t *plans = calloc(ch->n_plans + 1, sizeof(*plans));
	struct air_res_buffer *buffers = calloc(ch->n_buffers + 1,
						sizeof(*buffers));
	struct air_res_channel c = {
		.n_plans = ch->n_plans,
		.n_buffers = ch->n_buffers,
		.order = ring->order,
	};
	air_status st = AIR_NO_MEMORY;

	if (!plans || !buffers)
		goto out;
	for (uint32_t i = 0; i < ch->n_plans; i++)
		plans[i] = ch->plans[i] ? ch->plans[i]->dev : 0;
	for (uint32_t i = 0; i < ch->n_buffers; i++) {
		const struct air_wbuffer *b = ch->buffers[i];

		if (!b || !b->addr[AIRUNNER_EXEC_CUDA_RESIDENT])
			continue;
		buffers[i].addr = b->addr[AIRUNNER_EXEC_CUDA_RESIDENT];
		buffers[i].size = b->size;
		if (b->memory == AIR_HOST)
			buffers[i].size |= AIR_RES_HOST_MEMORY;
	}
	/* the region itself is handle 0 */
	st = AIR_BAD_HANDLE;
	if (!ch->n_buffers || !buffers[0].addr)
		goto out;
	c.sq = buffers[0].addr + AIRUNNER_SQ_OFFSET;
	c.cq = buffers[0].addr + airunner_cq_offset(ring->order);
	st = table(ex, &ch->dev_plans, &ch->room_plans, ch->n_plans,
		   sizeof(*plans), plans);
	if (!st)
		st = table(ex, &ch->dev_buffers, &ch->room_buffers,
			   ch->n_buffers, sizeof(*buffers), buffers);
	c.plans = ch->dev_plans;
	c.buffers = ch->dev_buffers;
	if (!st && air_cuda_is_fatal(ex->cuda,
				     air_res_upload(ex->cuda,
						    ex->kernel.channels +
							    ch->place *
								    sizeof(c),
						    &c, sizeof(c))))
		st = AIR_DEVICE_LOST;
	ch->dirty = st != AIR_OK;
out:
	free(plans);
	free(buffers);
	return st;
}

static air_status resident_ring_attach(struct air_exec *ex, void *priv,
				       struct air_ring *ring, uint64_t index)
{
	struct channel *ch = priv;
	uint32_t l = 0;
	air_status st;

	if (!ex->usable || ex->held || ex->cuda->lost ||
	    ch->place >= AIR_RES_PLACES)
		return AIR_BUSY;
	while (l < ex->kernel.params.leaders && ex->leader[l])
		l++;
	if (l == ex->kernel.params.leaders)
		return AIR_BUSY;
	if (ch->dirty) {
		st = upload_channel(ex, ch, ring);
		if (st)
			return st;
	}
	air_res_kernel_attach(&ex->kernel, l, ch->place, index);
	if (air_cuda_is_fatal(ex->cuda, air_res_kernel_start(&ex->kernel)))
		return AIR_BUSY;
	ex->leader[l] = ch;
	ex->attached++;
	ch->leader = (int)l;
	ch->ring = ring;
	ch->from = ch->watched = index;
	ch->moved_at = ex->services->now();
	ch->hung = false;
	return AIR_OK;
}

static bool resident_ring_wanted(struct air_exec *ex)
{
	return ex->usable && !ex->held && !ex->cuda->lost &&
	       ex->attached < ex->kernel.params.leaders;
}

static void resident_ring_recall(struct air_exec *ex, void *priv)
{
	struct channel *ch = priv;

	if (ch->leader >= 0)
		air_res_kernel_recall(&ex->kernel, (uint32_t)ch->leader);
}

/* ------------------------------------------------------------------ plans */

static uint64_t macs(uint32_t op, const struct air_cuda_plan *p)
{
	const struct air_matmul_params *m =
		(const struct air_matmul_params *)p->params;
	const struct air_conv2d_params *c =
		(const struct air_conv2d_params *)p->params;

	switch (op) {
	case AIR_OP_matmul:
		return m->m * m->n * m->k * m->batch;
	case AIR_OP_conv2d:
		return c->images * c->groups * c->pixels * c->outputs *
		       c->depth;
	default:
		return 0;
	}
}

static bool sweeps(uint32_t op, const struct air_cuda_plan *p)
{
	uint32_t how = (p->variant) % 8;

	return op == AIR_OP_matmul &&
	       (how == AIR_MATMUL_DOT || how == AIR_MATMUL_SWEEP);
}

static bool worth_it(uint32_t op, const struct air_cuda_plan *p,
		     struct air_error *why)
{
	uint64_t limit = sweeps(op, p) ? MAX_SWEEP_BYTES : MAX_BYTES;

	if (!p->variant || p->n_steps != 1 || p->scratch || p->counter) {
		air_fail(why, AIR_OK,
			 "cuda-resident: has no body for this form of the operator");
		return false;
	}
	if (p->bytes > limit ||
	    (!sweeps(op, p) && macs(op, p) > MAX_MACS)) {
		air_fail(why, AIR_OK,
			 "cuda-resident: %llu bytes, %llu multiplications: a launch is quicker",
			 (unsigned long long)p->bytes,
			 (unsigned long long)macs(op, p));
		return false;
	}
	return true;
}

/* Blocks worth sharing it among. */
static uint32_t tiles(const struct air_exec *ex, uint32_t op,
		      const struct air_cuda_plan *p)
{
	uint64_t n = p->bytes / SHARE_BYTES;

	/* 256 threads multiply and add some 2^17 times in the time of a call */
	if (macs(op, p) >> 17 > n)
		n = macs(op, p) >> 17;
	else if (p->bytes <= ALONE_BYTES)
		return 1;
	if (n > p->tiles)
		n = p->tiles;
	if (n > ex->kernel.blocks)
		n = ex->kernel.blocks;
	return n ? (uint32_t)n : 1;
}

static void fill_plan(const struct air_exec *ex, const struct air_plan *plan,
		      const struct air_cuda_plan *cp, struct air_res_plan *r)
{
	r->op = plan->desc.op;
	r->variant = cp->variant;
	r->tiles = tiles(ex, plan->desc.op, cp);
	r->vectors = r->tiles == 1 ? air_res_form_vectors(plan, cp) : 0;
	r->gemv = air_res_form_gemv(plan, cp);
	for (uint32_t i = 0; i < AIRUNNER_MAX_TENSORS; i++) {
		const struct air_extent *x = &plan->extent[i];

		r->extent[i] = (struct air_res_extent){
			.below = x->below,
			.above = x->present ? x->above : AIR_RES_ABSENT,
			.align_mask = x->align ? x->align - 1 : 0,
			.in_place = plan->op->in_place & plan->same_layout &
				    1u << i,
		};
	}
	memcpy(r->params, cp->params, cp->params_size);
}

static void resident_unplan(struct air_exec *ex, void *priv)
{
	struct plan *p = priv;

	if (p->launch)
		air_cuda_launch_ops.unplan(ex->launch, p->launch);
	if (p->dev)
		air_devmem_free(ex->cuda, p->dev);
	if (p->back) {
		*p->back = p->next;
		if (p->next)
			p->next->back = p->back;
	}
	free(p);
}

static air_status resident_plan(struct air_exec *ex,
				const struct air_plan *plan, void **priv,
				uint64_t *workspace, struct air_error *why)
{
	const struct air_cuda_op *op = air_cuda_op_find(plan->desc.op);
	struct air_cuda_device dev = ex->cuda->info;
	struct air_cuda_plan cp = { 0 };
	struct plan *p;
	air_status st;

	if (!op)
		return air_fail(why, AIR_UNSUPPORTED,
				"cuda-resident: no kernels for %s",
				plan->op->name);
	dev.block = AIR_RES_WORKERS;
	dev.sms = ex->kernel.blocks;
	st = op->plan(&plan->desc, &dev, &cp, why);
	if (st)
		return st;
	if (!ex->usable || !worth_it(plan->desc.op, &cp, why))
		return AIR_UNSUPPORTED;
	p = calloc(1, sizeof(*p));
	if (!p)
		return air_fail(why, AIR_NO_MEMORY,
				"cuda-resident: out of memory");
	fill_plan(ex, plan, &cp, &p->res);
	st = air_cuda_launch_ops.plan(ex->launch, plan, &p->launch, workspace,
				      why);
	if (!st)
		st = upload_plan(ex, p, why);
	if (st) {
		resident_unplan(ex, p);
		return st;
	}
	p->next = ex->plans;
	p->back = &ex->plans;
	if (p->next)
		p->next->back = &p->next;
	ex->plans = p;
	air_fail(why, AIR_OK,
		 "cuda-resident: %llu bytes, less than a launch costs; %u blocks",
		 (unsigned long long)cp.bytes, p->res.tiles);
	*priv = p;
	return AIR_OK;
}

/* ----------------------------------------------------------- run and poll */

static air_status resident_run(struct air_exec *ex, struct air_work *work)
{
	struct channel *ch = work->ch_priv;
	struct plan *p = work->plan_priv;

	work->ch_priv = ch->launch;
	work->plan_priv = p->launch;
	return air_cuda_launch_ops.run(ex->launch, work);
}

static void resident_flush(struct air_exec *ex)
{
	air_cuda_launch_ops.flush(ex->launch);
}

/* Say of an operator that does not end which one it is. */
static void look_for_hung(struct air_exec *ex, uint64_t now)
{
	if (now - ex->looked < LOOK_NS)
		return;
	ex->looked = now;
	for (struct channel *ch = ex->channels; ch; ch = ch->next) {
		struct air_sqe sqe;

		if (ch->leader < 0)
			continue;
		while (air_ring_answered(ch->ring, ch->watched)) {
			ch->watched++;
			ch->moved_at = now;
		}
		if (!air_ring_fetch(ch->ring, ch->watched, &sqe)) {
			ch->moved_at = now;
			continue;
		}
		if (now - ch->moved_at < HUNG_NS || ch->hung)
			continue;
		ch->hung = true;
		ex->services->log(
			"cuda-resident: submission %llu (descriptor %u) has not ended for %llu s",
			(unsigned long long)ch->watched,
			airunner_sqe_id(sqe.word[0]),
			(unsigned long long)(HUNG_NS / 1000000000ull));
	}
}

/* The kernel left, and stays away, before leaders took what they were given. */
static unsigned int take_back(struct air_exec *ex)
{
	unsigned int n = 0;

	for (uint32_t l = 0; l < AIR_RES_LEADERS; l++) {
		struct channel *ch = ex->leader[l];
		struct air_ring_return ret = { 0 };

		if (!ch || !air_res_kernel_withdraw(&ex->kernel, l))
			continue;
		ret.index = ch->from;
		give_back(ex, ch, &ret);
		n++;
	}
	return n;
}

static unsigned int resident_poll(struct air_exec *ex)
{
	unsigned int n = 0;
	uint64_t now;

	for (uint32_t l = 0; ex->attached && l < AIR_RES_LEADERS; l++) {
		struct air_res_returned r;
		struct air_ring_return ret;

		if (!ex->leader[l] ||
		    !air_res_kernel_returned(&ex->kernel, l, &r))
			continue;
		ret = (struct air_ring_return){
			.index = r.index,
			.completed = r.completed,
			.device_ns = r.busy_ns,
			.idle = r.reason == AIR_RES_IDLE,
		};
		give_back(ex, ex->leader[l], &ret);
		n++;
	}
	if (ex->attached) {
		now = ex->services->now();
		look_for_hung(ex, now);
		/* it may have ended just as it was given a ring */
		if (!air_res_kernel_runs(&ex->kernel) && ex->held)
			n += take_back(ex);
		else if (!air_res_kernel_runs(&ex->kernel))
			start_if_wanted(ex);
		else if (ex->looked == now)
			air_cuda_is_fatal(ex->cuda,
					  cu.StreamQuery(ex->kernel.stream));
	}
	return n + air_cuda_launch_ops.poll(ex->launch);
}

static unsigned int resident_outstanding(struct air_exec *ex)
{
	return air_cuda_launch_ops.outstanding(ex->launch);
}

static int resident_wait_fd(struct air_exec *ex)
{
	return air_cuda_launch_ops.wait_fd(ex->launch);
}

/* ------------------------------------------------------------------ quiet */

static air_status resident_quiet(struct air_exec *ex, bool on)
{
	if (!on) {
		air_cuda_release(ex->cuda);
		return AIR_OK;
	}
	air_cuda_hold(ex->cuda);
	if (!ex->usable || ex->cuda->lost || !air_res_kernel_runs(&ex->kernel))
		return AIR_OK;
	air_cuda_release(ex->cuda);
	return AIR_TIMEOUT;
}

/* ---------------------------------------------------------------- buffers */

static air_status resident_buffer_map(struct air_exec *ex,
				      struct air_wbuffer *buf)
{
	return air_cuda_buffer_map(ex->cuda, buf, AIRUNNER_EXEC_CUDA_RESIDENT);
}

static void resident_buffer_unmap(struct air_exec *ex, struct air_wbuffer *buf)
{
	air_cuda_buffer_unmap(ex->cuda, buf, AIRUNNER_EXEC_CUDA_RESIDENT);
}

static air_status resident_buffer_alloc(struct air_exec *ex,
					struct air_wbuffer *buf)
{
	return air_cuda_buffer_alloc(ex->cuda, buf);
}

static void resident_buffer_free(struct air_exec *ex, struct air_wbuffer *buf)
{
	air_cuda_buffer_free(ex->cuda, buf);
}

/* --------------------------------------------------------------- handover */

static air_status resident_handover_open(struct air_exec *ex,
				   struct air_handover *h)
{
	return air_cuda_handover_open(ex->cuda, h);
}

static void resident_handover_close(struct air_exec *ex, struct air_handover *h)
{
	air_cuda_handover_close(ex->cuda, h);
}

static air_status resident_stream_wait(struct air_exec *ex,
				 const struct air_handover *h, uint64_t n,
				 void *stream, struct air_error *e)
{
	return air_cuda_stream_wait(ex->cuda, h, n, stream, e);
}

const struct air_executor_ops air_cuda_resident_ops = {
	.abi = AIR_EXECUTOR_ABI,
	.id = AIRUNNER_EXEC_CUDA_RESIDENT,
	.name = "cuda-resident",
	.open = resident_open,
	.close = resident_close,
	.caps = resident_caps,
	.channel_open = resident_channel_open,
	.channel_close = resident_channel_close,
	.buffer_map = resident_buffer_map,
	.buffer_unmap = resident_buffer_unmap,
	.buffer_alloc = resident_buffer_alloc,
	.buffer_free = resident_buffer_free,
	.plan = resident_plan,
	.unplan = resident_unplan,
	.run = resident_run,
	.poll = resident_poll,
	.flush = resident_flush,
	.outstanding = resident_outstanding,
	.wait_fd = resident_wait_fd,
	.desc_set = resident_desc_set,
	.buffer_set = resident_buffer_set,
	.ring_attach = resident_ring_attach,
	.ring_wanted = resident_ring_wanted,
	.ring_recall = resident_ring_recall,
	.quiet = resident_quiet,
	.handover_open = resident_handover_open,
	.handover_close = resident_handover_close,
	.stream_wait = resident_stream_wait,
};
