// SPDX-License-Identifier: MIT
/*
 * How fast cuda-resident answers, without library and worker in between, and
 * beside it in the same run what launches and graphs of the same kernel take.
 *
 *	resident PLUGIN [JSON]
 *	resident PLUGIN --stress SUBMISSIONS [SECONDS]
 *
 * Times are microseconds an operator, medians. vector_add is y = a + b of 1024
 * f32 on device memory everywhere.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ops/tensor.h"
#include "tests/gpu/drive.h"
#include "tests/gpu/vadd_ptx.h"

#define N	 1024
#define MANY	 4000
#define LIMIT_NS 10000000000ull

/*
 * What a ring on a GPU can do at best: one block that polls the slots and
 * answers, with nothing to decide. y = 0: a NOP; else 256
 * threads add 1024 numbers before. It ends after n, or when nothing came for
 * two seconds.
 */
static const char bare_ptx[] =
	".version 7.8\n.target sm_80\n.address_size 64\n"
	".visible .entry bare(.param .u64 sq, .param .u64 cq, .param .u32 n,\n"
	"	.param .u64 y, .param .u64 a, .param .u64 b)\n"
	"{\n"
	".reg .pred %p, %q, %work; .reg .b32 %i, %n, %me, %t, %lap, %quit;\n"
	".reg .b64 %sq, %cq, %y, %a, %b, %w, %at, %t0, %t1, %tag, %l;\n"
	".reg .f32 %f<8>; .shared .u32 over;\n"
	"mov.u32 %me, %tid.x; ld.param.u32 %n, [n];\n"
	"ld.param.u64 %sq, [sq]; ld.param.u64 %cq, [cq];\n"
	"ld.param.u64 %y, [y]; ld.param.u64 %a, [a]; ld.param.u64 %b, [b];\n"
	"setp.ne.u64 %work, %y, 0;\n"
	"mul.wide.u32 %l, %me, 16;\n"
	"add.u64 %y, %y, %l; add.u64 %a, %a, %l; add.u64 %b, %b, %l;\n"
	"mov.u32 %quit, 0; st.shared.u32 [over], %quit; mov.u32 %i, 0;\n"
	"bar.sync 0;\n"
	"NEXT: setp.ge.u32 %p, %i, %n; @%p bra DONE;\n"
	"shr.u32 %lap, %i, 10; add.u32 %lap, %lap, 1;\n"
	"and.b32 %lap, %lap, 255;\n"
	"setp.ge.u32 %p, %me, 32; @%p bra GOT;\n"
	"and.b32 %t, %i, 1023; mad.wide.u32 %at, %t, 64, %sq;\n"
	"and.b32 %t, %me, 7; mad.wide.u32 %at, %t, 8, %at;\n"
	"mov.u64 %t0, %globaltimer;\n"
	"POLL: ld.relaxed.sys.global.u64 %w, [%at];\n"
	"shr.u64 %w, %w, 56; cvt.u32.u64 %t, %w;\n"
	"setp.eq.u32 %p, %t, %lap; vote.sync.all.pred %q, %p, 0xffffffff;\n"
	"@%q bra GOT;\n"
	"mov.u64 %t1, %globaltimer; sub.u64 %t1, %t1, %t0;\n"
	"setp.lt.u64 %p, %t1, 2000000000; @%p bra POLL;\n"
	"mov.u32 %quit, 1; st.shared.u32 [over], %quit;\n"
	"GOT: bar.sync 0; ld.shared.u32 %quit, [over];\n"
	"setp.ne.u32 %p, %quit, 0; @%p bra DONE;\n"
	"@!%work bra ANSWER;\n"
	"ld.global.L1::no_allocate.v4.f32 {%f0, %f1, %f2, %f3}, [%a];\n"
	"ld.global.L1::no_allocate.v4.f32 {%f4, %f5, %f6, %f7}, [%b];\n"
	"add.f32 %f0, %f0, %f4; add.f32 %f1, %f1, %f5;\n"
	"add.f32 %f2, %f2, %f6; add.f32 %f3, %f3, %f7;\n"
	"st.global.v4.f32 [%y], {%f0, %f1, %f2, %f3};\n"
	"ANSWER: bar.sync 0;\n"
	"setp.ne.u32 %p, %me, 0; @%p bra AGAIN;\n"
	"cvt.u64.u32 %tag, %lap; shl.b64 %tag, %tag, 56;\n"
	"and.b32 %t, %i, 1023; mad.wide.u32 %at, %t, 16, %cq;\n"
	"@!%work st.relaxed.sys.global.v2.u64 [%at], {%tag, %tag};\n"
	"@%work st.relaxed.sys.global.u64 [%at+8], %tag;\n"
	"@%work st.release.sys.global.u64 [%at], %tag;\n"
	"AGAIN: add.u32 %i, %i, 1; bra NEXT;\n"
	"DONE: ret;\n}\n";

static struct drive dr;
static struct air_wbuffer mem;
static FILE *json;
static const char *comma = "";
static double t[MANY];

static struct {
	CUresult (*begin)(CUstream, CUstreamCaptureMode);
	CUresult (*end)(CUstream, CUgraph *);
	CUresult (*instantiate)(CUgraphExec *, CUgraph, unsigned long long);
	CUresult (*launch)(CUgraphExec, CUstream);
} graph;

static CUresult (*host_alloc)(void **, size_t);

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void row(const char *name, unsigned int n)
{
	qsort(t, n, sizeof(*t), by_value);
	printf("%-44s %9.3f us  (p1 %.3f, p99 %.3f)\n", name, t[n / 2],
	       t[n / 100], t[n - 1 - n / 100]);
	if (!json)
		return;
	fprintf(json, "%s\n\t\"%s\": {\"us\": %.4f, \"p99\": %.4f}", comma,
		name, t[n / 2], t[n - 1 - n / 100]);
	comma = ",";
}

static double since(uint64_t begin)
{
	return (double)(drive_now() - begin) * 1e-3;
}

/* ----------------------------------------------------------------- the ring */

static struct {
	struct air_plan plan;
	void *priv;
} desc[64];
static uint32_t n_desc = 1;

static uint32_t make(struct airunner_desc *d)
{
	struct air_error e = { "" };
	uint64_t workspace = 0;
	uint32_t id = n_desc++;
	air_status st;

	d->size = sizeof(*d);
	st = air_plan_init(&desc[id].plan, d, &e);
	if (!st)
		st = dr.ops->plan(dr.ex, &desc[id].plan, &desc[id].priv,
				  &workspace, &e);
	if (st) {
		printf("%s: %d %s\n", air_op_find(d->op)->name, st, e.text);
		n_desc--;
		return 0;
	}
	printf("  %s: %s\n", air_op_find(d->op)->name, e.text);
	dr.ops->desc_set(dr.ex, dr.ch, id, desc[id].priv);
	return id;
}

static void tensor(struct airunner_tensor *x, uint32_t dtype, uint32_t ndim,
		   int64_t a, int64_t b, int64_t c)
{
	int64_t shape[] = { a, b, c }, run = 1;

	memset(x, 0, sizeof(*x));
	x->dtype = dtype;
	x->ndim = ndim;
	for (uint32_t i = ndim; i-- > 0;) {
		x->shape[i] = shape[i];
		x->stride[i] = run;
		run *= shape[i];
	}
}

static uint64_t ref(uint64_t offset)
{
	return airunner_ref(1, offset);
}

/* The worker's part: the ring must be with the GPU while we measure. */
static void lend(void)
{
	uint64_t limit = drive_now() + LIMIT_NS;

	while (!dr.lent && !drive_attach(&dr)) {
		dr.ops->poll(dr.ex);
		if (drive_now() > limit) {
			puts("the ring is not taken");
			_Exit(3);
		}
	}
}

static uint64_t send(const struct air_sqe *sqe)
{
	uint64_t index;

	while (!air_ring_reserve(&dr.ring, dr.collected, 1, &index))
		;
	air_ring_publish(&dr.ring, index, sqe);
	return index;
}

/* Wait for the completion of @index; its slot stays taken. */
static struct air_cqe look(uint64_t index)
{
	unsigned int spins = 0;
	uint64_t limit = 0;
	struct air_cqe cqe;

	while (!air_ring_completed(&dr.ring, index, &cqe)) {
		if (++spins % 1024)
			continue;
		/* clocks cost as much as operators do: only now */
		if (!limit)
			limit = drive_now() + LIMIT_NS;
		/* it may have come back: idle, or not for the GPU */
		dr.ops->poll(dr.ex);
		if (!dr.lent)
			lend();
		if (drive_now() > limit) {
			printf("no completion of %llu\n",
			       (unsigned long long)index);
			fflush(stdout);
			_Exit(3);
		}
	}
	return cqe;
}

static struct air_cqe await(uint64_t index)
{
	struct air_cqe cqe = look(index);

	air_ring_collect(&dr.ring, dr.collected, index);
	return cqe;
}

static struct air_sqe exec(uint32_t id, uint32_t flags, uint64_t y, uint64_t a,
			   uint64_t b)
{
	struct air_sqe s = { { 0 } };

	s.word[0] = airunner_sqe_head(AIRUNNER_OP_EXEC, (uint8_t)flags, 0, id);
	s.word[1] = ref(y);
	s.word[2] = ref(a);
	s.word[3] = b == ~0ull ? 0 : ref(b);
	return s;
}

static void round_trips(const char *name, const struct air_sqe *sqe,
			unsigned int n)
{
	lend();
	for (unsigned int i = 0; i < 100; i++)
		await(send(sqe));
	for (unsigned int i = 0; i < n; i++) {
		uint64_t begin = drive_now();

		await(send(sqe));
		t[i] = since(begin);
	}
	row(name, n);
}

/* @n operators at a time, of @kinds in turns; time of each. */
static void bursts(const char *name, const struct air_sqe *sqe,
		   unsigned int kinds, unsigned int n, unsigned int rounds)
{
	lend();
	for (unsigned int r = 0; r < rounds; r++) {
		uint64_t begin = drive_now(), first = 0, seen = 0;

		for (unsigned int i = 0; i < n; i++) {
			uint64_t index = send(&sqe[i % kinds]);

			if (!i)
				first = index;
			/* half a ring behind */
			if (i >= 512) {
				await(first + seen);
				seen++;
			}
		}
		for (; seen < n; seen++)
			await(first + seen);
		t[r] = since(begin) / n;
	}
	row(name, rounds);
}

static uint32_t vector_add(void)
{
	struct airunner_desc d = { .op = AIR_OP_vector_add, .n_tensors = 3 };

	for (uint32_t i = 0; i < 3; i++)
		tensor(&d.tensor[i], AIRUNNER_F32, 1, N, 0, 0);
	return make(&d);
}

static uint32_t softmax(uint32_t dtype, int64_t rows, int64_t n)
{
	struct airunner_desc d = { .op = AIR_OP_softmax, .n_tensors = 2 };

	tensor(&d.tensor[0], dtype, 2, rows, n, 0);
	d.tensor[1] = d.tensor[0];
	d.attr[0] = 1;
	return make(&d);
}

static uint32_t matmul(int64_t m, int64_t n, int64_t k)
{
	struct airunner_desc d = { .op = AIR_OP_matmul, .n_tensors = 3 };
	double one = 1;

	tensor(&d.tensor[0], AIRUNNER_BF16, 2, m, n, 0);
	tensor(&d.tensor[1], AIRUNNER_BF16, 2, m, k, 0);
	tensor(&d.tensor[2], AIRUNNER_BF16, 2, n, k, 0);
	d.attr[1] = 1;
	memcpy(&d.attr[2], &one, 8);
	return make(&d);
}

static uint32_t unary(uint32_t op, int64_t n)
{
	struct airunner_desc d = { .op = op, .n_tensors = 2 };

	tensor(&d.tensor[0], AIRUNNER_BF16, 2, 1, n, 0);
	d.tensor[1] = d.tensor[0];
	if (op == AIR_OP_rms_norm) {
		double eps = 1e-5;

		d.n_tensors = 3;
		tensor(&d.tensor[2], AIRUNNER_BF16, 1, n, 0, 0);
		memcpy(&d.attr[0], &eps, 8);
	}
	return make(&d);
}

static uint32_t add(int64_t n)
{
	struct airunner_desc d = { .op = AIR_OP_add, .n_tensors = 3 };

	for (uint32_t i = 0; i < 3; i++)
		tensor(&d.tensor[i], AIRUNNER_BF16, 2, 1, n, 0);
	return make(&d);
}

static uint32_t rope(int64_t heads, int64_t n)
{
	struct airunner_desc d = { .op = AIR_OP_rope, .n_tensors = 5 };

	tensor(&d.tensor[0], AIRUNNER_BF16, 3, 1, heads, n);
	d.tensor[1] = d.tensor[0];
	tensor(&d.tensor[2], AIRUNNER_BF16, 2, 1, n / 2, 0);
	d.tensor[3] = d.tensor[2];
	return make(&d);
}

#define STEP	 100
#define LAYER	 10
#define STEPS	 60
#define MATRIX	 (32u << 20)
#define MATRICES (STEP / LAYER * 3)

/*
 * A token through the layers of a small model, as tests/bench/gpu_decode.c has
 * it: 100 operators in order, matrices of their own. What the step takes, and
 * what each place of a layer does, by the completions.
 */
static void decode(void)
{
	static const char *const names[LAYER] = {
		"rms_norm 4096",  "matmul 1x4096x4096", "rope 32x128",
		"softmax 32x128", "matmul 1x4096x4096", "add 4096",
		"rms_norm 4096",  "matmul 1x4096x4096", "silu 4096",
		"add 4096",
	};
	static double took[LAYER][STEPS * STEP / LAYER], all[STEPS];
	const uint64_t x = 0, h = 1 << 20, q = 2 << 20, v = 3 << 20;
	const uint64_t gain = 4 << 20, table = 5 << 20, w = 6 << 20;
	uint32_t norm = unary(AIR_OP_rms_norm, 4096);
	uint32_t mm = matmul(1, 4096, 4096), act = unary(AIR_OP_silu, 4096);
	uint32_t sm = softmax(AIRUNNER_BF16, 32, 128), sum = add(4096);
	uint32_t turn = rope(32, 128);
	unsigned int n = 0, matrix = 0;
	struct air_sqe step[STEP];
	char name[64];

	if (!norm || !mm || !act || !sm || !sum || !turn)
		return;
	for (unsigned int i = 0; i < STEP; i += LAYER) {
		struct air_sqe *s = &step[i];

#define NEXT (w + (uint64_t)matrix++ * MATRIX)
		s[0] = exec(norm, 0, h, x, gain);
		s[1] = exec(mm, 0, q, h, NEXT);
		s[2] = exec(turn, 0, v, q, table);
		s[2].word[4] = ref(table);
		s[3] = exec(sm, 0, h, v, ~0ull);
		s[4] = exec(mm, 0, v, h, NEXT);
		s[5] = exec(sum, 0, x, x, v);
		s[6] = exec(norm, 0, h, x, gain);
		s[7] = exec(mm, 0, q, h, NEXT);
		s[8] = exec(act, 0, v, q, ~0ull);
		s[9] = exec(sum, 0, x, x, v);
#undef NEXT
	}
	lend();
	for (unsigned int k = 0; k < STEPS; k++) {
		uint64_t begin = drive_now(), first = send(&step[0]);

		for (unsigned int i = 1; i < STEP; i++)
			send(&step[i]);
		for (unsigned int i = 0; i < STEP; i++)
			took[i % LAYER][n + i / LAYER] =
				(double)await(first + i).duration * 1e-3;
		all[k] = since(begin);
		n += STEP / LAYER;
	}
	memcpy(t, all, sizeof(all));
	row("decode step of 100", STEPS);
	for (unsigned int k = 0; k < LAYER; k++) {
		memcpy(t, took[k], sizeof(took[k]));
		snprintf(name, sizeof(name), "  place %u, %s", k, names[k]);
		row(name, n);
	}
	round_trips("matmul bf16 1x4096x4096, round trip", &step[1], 500);
	round_trips("rms_norm bf16 4096, round trip", &step[0], 500);
}

static void waking(const struct air_sqe *sqe)
{
	for (unsigned int i = 0; i < 50; i++) {
		uint64_t begin, limit = drive_now() + LIMIT_NS;

		/* until it is idle, comes back, and the kernel has ended */
		while (dr.lent && drive_now() < limit)
			dr.ops->poll(dr.ex);
		usleep(20000);
		begin = drive_now();
		uint64_t index = send(sqe);

		lend();
		await(index);
		t[i] = since(begin);
	}
	row("vector_add 1024, from parked", 50);
}

/* -------------------------------------------------------------------- peers */

static void peers(void)
{
	uint64_t base = mem.addr[AIRUNNER_EXEC_CUDA_LAUNCH];
	uint64_t y = base, a = base + 4096, b = base + 8192;
	void *args[] = { &y, &a, &b };
	CUgraphExec ge = NULL;
	CUgraph g = NULL;
	CUmodule mod;
	CUfunction fn;
	CUstream s;

	if (drive_cuda.stream_create(&s, 1) ||
	    drive_cuda.module_load(&mod, vadd_ptx) ||
	    drive_cuda.module_function(&fn, mod, "vadd")) {
		puts("no peers: the PTX does not load");
		return;
	}
#define LAUNCH() drive_cuda.launch(fn, 4, 1, 1, 256, 1, 1, 0, s, args, NULL)
	for (int i = 0; i < 100; i++)
		LAUNCH();
	drive_cuda.stream_sync(s);
	for (int i = 0; i < 2000; i++) {
		uint64_t begin = drive_now();

		LAUNCH();
		drive_cuda.stream_sync(s);
		t[i] = since(begin);
	}
	row("peer: launch and synchronize", 2000);
	for (int r = 0; r < 50; r++) {
		uint64_t begin = drive_now();

		for (int i = 0; i < 1000; i++)
			LAUNCH();
		drive_cuda.stream_sync(s);
		t[r] = since(begin) / 1000;
	}
	row("peer: launches back to back", 50);
	for (int nodes = 1; nodes <= 128; nodes += 127) {
		char name[48];

		if (graph.begin(s, CU_STREAM_CAPTURE_MODE_RELAXED))
			return;
		for (int i = 0; i < nodes; i++)
			LAUNCH();
		if (graph.end(s, &g) || graph.instantiate(&ge, g, 0))
			return;
		for (int r = -5; r < 500; r++) {
			uint64_t begin = drive_now();

			graph.launch(ge, s);
			drive_cuda.stream_sync(s);
			if (r >= 0)
				t[r] = since(begin) / nodes;
		}
		snprintf(name, sizeof(name), "peer: graph of %d, each", nodes);
		row(name, 500);
	}
}

/* ------------------------------------------------------------ the bare loop */

static void bare(const char *name, CUfunction fn, CUstream s, void *region,
		 uint64_t y)
{
	uint64_t size = airunner_arena_offset(DRIVE_ORDER);
	uint64_t a = y + 4096, b = y + 8192;
	struct air_sqe sqe = { { 0 } };
	unsigned int n = MANY + 100;
	struct air_ring ring;
	void *args[] = { &ring.sq, &ring.cq, &n, &y, &a, &b };

	memset(region, 0, size);
	air_ring_init(&ring, region, DRIVE_ORDER);
	drive_cuda.launch(fn, 1, 1, 1, 256, 1, 1, 0, s, args, NULL);
	for (unsigned int i = 0; i < n; i++) {
		uint64_t begin = drive_now();
		struct air_cqe cqe;

		air_ring_publish(&ring, i, &sqe);
		for (uint64_t spins = 0; !air_ring_completed(&ring, i, &cqe);) {
			if (++spins % 65536)
				continue;
			if (since(begin) > 5e6) {
				printf("%s: no answer\n", name);
				return;
			}
		}
		if (i >= 100)
			t[i - 100] = since(begin);
	}
	drive_cuda.stream_sync(s);
	row(name, MANY);
}

static void bare_loops(void)
{
	void *region = NULL;
	CUmodule mod;
	CUfunction fn;
	CUstream s;

	if (drive_cuda.stream_create(&s, 1) ||
	    drive_cuda.module_load(&mod, bare_ptx) ||
	    drive_cuda.module_function(&fn, mod, "bare") ||
	    host_alloc(&region, airunner_arena_offset(DRIVE_ORDER))) {
		puts("no bare loop: the PTX does not load");
		return;
	}
	bare("bare loop: nop, round trip", fn, s, region, 0);
	bare("bare loop: vector_add 1024, round trip", fn, s, region,
	     mem.addr[AIRUNNER_EXEC_CUDA_LAUNCH]);
}

/* ------------------------------------------------------------------- stress */

#define PHASE	65536u
#define APART	(1u << DRIVE_ORDER)
#define WIDE	16u	/* phases side by side for one that is a chain */
#define GROUP	64u	/* at most so many are reserved at once */
#define CHAIN	0ull
#define ONE	4096ull
#define OUTPUTS 8192ull
#define TELL_NS 10000000000ull

static uint32_t rnd(void)
{
	static uint32_t x = 2463534242u;

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	return x;
}

static void fill(uint64_t offset, float v, unsigned int n)
{
	uint64_t count = (uint64_t)n * N;
	float *x = malloc(count * sizeof(*x));

	for (uint64_t i = 0; i < count; i++)
		x[i] = v;
	drive_cuda.memcpy_htod(mem.addr[AIRUNNER_EXEC_CUDA_LAUNCH] + offset, x,
			       count * sizeof(*x));
	/* a copy from pageable memory may still be on its way */
	drive_cuda.stream_sync(NULL);
	free(x);
}

static void expect(const char *what, uint64_t offset, float v, unsigned int n,
		   uint64_t at)
{
	uint64_t count = (uint64_t)n * N;
	float *x = malloc(count * sizeof(*x));

	drive_cuda.memcpy_dtoh(x, mem.addr[AIRUNNER_EXEC_CUDA_LAUNCH] + offset,
			       count * sizeof(*x));
	for (uint64_t i = 0; i < count; i++) {
		if (x[i] == v)
			continue;
		printf("FAIL stress: %s %llu, element %llu is %g, expected %g, before submission %llu\n",
		       what, (unsigned long long)(i / N),
		       (unsigned long long)(i % N), (double)x[i], (double)v,
		       (unsigned long long)at);
		_Exit(1);
	}
	free(x);
}

/* Collect @n completions from @index on; each status is looked at. */
static void collect(uint64_t index, unsigned int n)
{
	struct air_cqe cqe;

	for (unsigned int i = 0; i < n; i++) {
		cqe = look(index + i);
		if (cqe.status != AIRUNNER_S_OK) {
			printf("FAIL stress: submission %llu has status %d\n",
			       (unsigned long long)(index + i),
			       (int)cqe.status);
			_Exit(1);
		}
		air_ring_mark(&dr.ring, dr.collected, index + i);
	}
	air_ring_advance(&dr.ring, dr.collected);
}

/* PHASE submissions of @kinds by turns, up to a ring full of them in flight. */
static void phase(const struct air_sqe *sqe, unsigned int kinds)
{
	uint64_t index, first = 0, sent = 0, seen = 0;

	while (seen < PHASE) {
		unsigned int n = 1 + rnd() % GROUP;

		if (n > PHASE - sent)
			n = (unsigned int)(PHASE - sent);
		if (n && air_ring_reserve(&dr.ring, dr.collected, n, &index)) {
			if (!sent)
				first = index;
			for (unsigned int i = 0; i < n; i++, sent++)
				air_ring_publish(&dr.ring, index + i,
						 &sqe[sent % kinds]);
			continue;
		}
		/* it is full, or that was all */
		n = GROUP;
		if (n > sent - seen)
			n = (unsigned int)(sent - seen);
		collect(first + seen, n);
		seen += n;
	}
}

/*
 * Sums that tell how often each was added to: one by a chain in order, and one
 * for each slot of the ring by UNORDERED operators on all blocks, each of which
 * is submitted when the last one of its sum has completed, and must see what
 * that one, on another block, has written. Over and over, through all laps.
 */
static int stress(uint32_t va, uint64_t n, double seconds)
{
	struct air_sqe chain = exec(va, 0, CHAIN, CHAIN, ONE), apart[APART];
	uint64_t begin = drive_now(), done = 0, told = begin;

	for (uint32_t i = 0; i < APART; i++) {
		uint64_t y = OUTPUTS + i * 4096ull;

		apart[i] = exec(va, AIRUNNER_SQE_UNORDERED, y, y, ONE);
	}
	fill(ONE, 1, 1);
	lend();
	for (unsigned int round = 0; done < n && since(begin) < seconds * 1e6;
	     round++) {
		float was = (float)(round % 100);

		fill(CHAIN, was, 1);
		phase(&chain, 1);
		done += PHASE;
		expect("chain", CHAIN, was + PHASE, 1, done);
		fill(OUTPUTS, was, APART);
		for (unsigned int k = 0; k < WIDE; k++)
			phase(apart, APART);
		done += WIDE * PHASE;
		expect("sum", OUTPUTS, was + (float)(WIDE * PHASE / APART),
		       APART, done);
		if (drive_now() - told < TELL_NS)
			continue;
		told = drive_now();
		printf("stress: %llu submissions, %llu laps, %.0f s\n",
		       (unsigned long long)done,
		       (unsigned long long)(done >> DRIVE_ORDER),
		       since(begin) * 1e-6);
	}
	printf("ok stress: %llu submissions, %llu laps of the ring (lap numbers from their beginning again %llu times), ring lent %u times, %.1f s, %.2f M/s\n",
	       (unsigned long long)done,
	       (unsigned long long)(done >> DRIVE_ORDER),
	       (unsigned long long)(done >> (DRIVE_ORDER + 8)), dr.attached,
	       since(begin) * 1e-6, (double)done / since(begin));
	return 0;
}

int main(int argc, char **argv)
{
	struct air_sqe nop = { { airunner_sqe_head(AIRUNNER_OP_NOP, 0, 0,
						   0) } };
	struct air_sqe sqe, apart[64];
	uint32_t va, sm;
	void *lib;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc < 2) {
		puts("resident PLUGIN [JSON | --stress SUBMISSIONS [SECONDS]]");
		return 2;
	}
	drive_open(&dr, argv[1], "cuda-resident");
	lib = dlopen("libcuda.so.1", RTLD_NOW);
	*(void **)&graph.begin = dlsym(lib, "cuStreamBeginCapture_v2");
	*(void **)&graph.end = dlsym(lib, "cuStreamEndCapture");
	*(void **)&graph.instantiate =
		dlsym(lib, "cuGraphInstantiateWithFlags");
	*(void **)&graph.launch = dlsym(lib, "cuGraphLaunch");
	*(void **)&host_alloc = dlsym(lib, "cuMemAllocHost_v2");
	if (drive_alloc(&dr, &mem, (6u << 20) + MATRICES * MATRIX)) {
		puts("no device memory");
		return 1;
	}
	dr.ops->buffer_set(dr.ex, dr.ch, 1, &mem);
	if (argc > 3 && !strcmp(argv[2], "--stress")) {
		va = vector_add();
		return !va || stress(va, strtoull(argv[3], NULL, 0),
				     argc > 4 ? atof(argv[4]) : 1e9);
	}
	if (argc > 2)
		json = fopen(argv[2], "w");
	if (json)
		fputs("{", json);
	peers();
	bare_loops();
	va = vector_add();
	sm = softmax(AIRUNNER_F32, 64, 1024);
	if (!va || !sm)
		return 1;
	sqe = exec(va, 0, 0, 4096, 8192);
	round_trips("nop, round trip", &nop, MANY);
	round_trips("vector_add 1024, round trip", &sqe, MANY);
	sqe = exec(sm, 0, 0, 1 << 20, ~0ull);
	round_trips("softmax 64x1024, round trip", &sqe, 1000);
	bursts("nop, in order", &nop, 1, 4096, 50);
	sqe = exec(va, 0, 0, 0, 8192);
	bursts("vector_add 1024, chain of 128", &sqe, 1, 128, 300);
	bursts("vector_add 1024, long chain", &sqe, 1, 8192, 30);
	for (uint32_t i = 0; i < 64; i++)
		apart[i] = exec(va, AIRUNNER_SQE_UNORDERED, i * 12288,
				i * 12288 + 4096, i * 12288 + 8192);
	bursts("vector_add 1024, independent", apart, 64, 100000, 20);
	decode();
	sqe = exec(va, 0, 0, 4096, 8192);
	waking(&sqe);
	printf("ring lent %u times\n", dr.attached);
	if (json) {
		fputs("\n}\n", json);
		fclose(json);
	}
	drive_recall(&dr);
	for (uint32_t i = 1; i < n_desc; i++) {
		dr.ops->desc_set(dr.ex, dr.ch, i, NULL);
		dr.ops->unplan(dr.ex, desc[i].priv);
	}
	dr.ops->buffer_set(dr.ex, dr.ch, 1, NULL);
	dr.ops->buffer_free(dr.ex, &mem);
	drive_close(&dr);
	return 0;
}
