// SPDX-License-Identifier: MIT
/*
 * air_stream_wait() and air_quiet_begin() on a GPU: kernels of a stream of the
 * program's own see what the ring's operators wrote, whoever runs those, and
 * nothing hangs of what could.
 *
 *	handover [cuda-launch|cuda-resident]
 *
 * One line a check: "ok ..." or "not ok ...", some with times in microseconds.
 * Whatever takes longer than it may ends the program with the check's name.
 */
#include <cuda.h>
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <airunner/cuda.h>
#include <airunner/launch.h>
#include <airunner/ops/matmul.h>
#include <airunner/ops/relu.h>

#define N	   1024 /* floats of a small operator */
#define SLOTS	   64
#define ROUNDS	   1024
#define LAPS	   20000 /* submissions to a ring of 4 */
#define STREAMS	   40
#define REPEATS	   6	/* until the product is a graph, and once more */
#define QUEUES	   8	/* of CUDA's, unless the environment says */
#define WIDE	   1024 /* of a matrix that cuBLASLt is for */
#define TIME_LIMIT INT64_C(10000000000)
#define CHECK_S	   20

static const char ptx[] =
	".version 7.0\n.target sm_80\n.address_size 64\n"
	/* count what is not @want */
	".visible .entry differ(.param .u64 y, .param .f32 want,\n"
	".param .u64 count)\n"
	"{\n"
	".reg .pred %p; .reg .b32 %r<4>; .reg .f32 %f<2>; .reg .b64 %d<4>;\n"
	"mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x;\n"
	"mad.lo.u32 %r3, %r0, %r1, %r2;\n"
	"ld.param.u64 %d0, [y]; ld.param.f32 %f0, [want];\n"
	"ld.param.u64 %d1, [count];\n"
	"mul.wide.u32 %d2, %r3, 4; add.u64 %d3, %d0, %d2;\n"
	"ld.global.f32 %f1, [%d3]; setp.neu.f32 %p, %f1, %f0;\n"
	"@%p red.global.add.u32 [%d1], 1;\n"
	"ret;\n}\n"
	/* until *open, eight seconds at most */
	".visible .entry gate(.param .u64 open)\n"
	"{\n"
	".reg .pred %p<2>; .reg .b32 %r; .reg .b64 %d<5>;\n"
	"ld.param.u64 %d0, [open]; mov.u64 %d1, %globaltimer;\n"
	"again:\n"
	"ld.volatile.global.u32 %r, [%d0]; setp.ne.u32 %p0, %r, 0;\n"
	"@%p0 bra done;\n"
	"mov.u64 %d2, %globaltimer; sub.u64 %d3, %d2, %d1;\n"
	"setp.lt.u64 %p1, %d3, 8000000000;\n"
	"@%p1 bra again;\n"
	"done:\n"
	"ret;\n}\n";

static struct {
	CUresult (*init)(unsigned int);
	CUresult (*retain)(CUcontext *, CUdevice);
	CUresult (*set_current)(CUcontext);
	CUresult (*module_load)(CUmodule *, const void *);
	CUresult (*module_function)(CUfunction *, CUmodule, const char *);
	CUresult (*launch)(CUfunction, unsigned int, unsigned int, unsigned int,
			   unsigned int, unsigned int, unsigned int,
			   unsigned int, CUstream, void **, void **);
	CUresult (*mem_alloc)(CUdeviceptr *, size_t);
	CUresult (*host_alloc)(void **, size_t);
	CUresult (*host_register)(void *, size_t, unsigned int);
	CUresult (*synchronize)(void);
	CUresult (*memset_d8)(CUdeviceptr, unsigned char, size_t);
	CUresult (*dtoh)(void *, CUdeviceptr, size_t);
	CUresult (*stream_create)(CUstream *, unsigned int);
	CUresult (*stream_query)(CUstream);
	CUresult (*write_value)(CUstream, CUdeviceptr, cuuint64_t,
				unsigned int);
} cu;

static const char *check = "start", *executor = "cuda-resident";
static unsigned int failures;
static CUcontext ctx;
static CUfunction differ, gate;
static CUstream stream;
static CUdeviceptr out, count;
static volatile uint32_t *gate_word;
static volatile uint64_t *told;

static air_device *dev;
static air_channel *ch;
static air_buffer *in_buf, *out_buf, *gate_buf;
static air_tensor x[SLOTS], y[SLOTS];
static air_descriptor *relu;
static air_module *module;
static air_function *ring_gate;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void on_alarm(int sig)
{
	printf("not ok %s: hangs\n", check);
	fflush(stdout);
	_exit(3);
}

static void begin(const char *name)
{
	check = name;
	alarm(CHECK_S);
}

__attribute__((format(printf, 2, 3))) static void result(int good,
							 const char *fmt, ...)
{
	va_list args;

	failures += !good;
	printf("%s %s %s: ", good ? "ok" : "not ok", executor, check);
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	printf("\n");
	fflush(stdout);
}

static void verdict(int good)
{
	failures += !good;
	printf("%s %s %s\n", good ? "ok" : "not ok", executor, check);
}

static void fail(const char *call, const char *why)
{
	printf("not ok %s %s: %s: %s\n", executor, check, call, why);
	fflush(stdout);
	_exit(1);
}

static void air_ok(air_status st, const char *call)
{
	if (st)
		fail(call, air_last_error());
}

static void cu_ok(CUresult r, const char *call)
{
	char number[16];

	snprintf(number, sizeof(number), "%d", (int)r);
	if (r)
		fail(call, number);
}

#define AIR(call) air_ok(call, #call)
#define CU(call)  cu_ok(call, #call)

static void find(void *lib, const char *name, void *where)
{
	*(void **)where = dlsym(lib, name);
	if (!*(void **)where) {
		printf("# %s\n", dlerror());
		exit(77);
	}
}

static void load_cuda(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW);
	CUmodule mod;

	if (!lib) {
		printf("# no driver: %s\n", dlerror());
		exit(77);
	}
	find(lib, "cuInit", &cu.init);
	find(lib, "cuDevicePrimaryCtxRetain", &cu.retain);
	find(lib, "cuCtxSetCurrent", &cu.set_current);
	find(lib, "cuModuleLoadData", &cu.module_load);
	find(lib, "cuModuleGetFunction", &cu.module_function);
	find(lib, "cuLaunchKernel", &cu.launch);
	find(lib, "cuMemAlloc_v2", &cu.mem_alloc);
	find(lib, "cuMemAllocHost_v2", &cu.host_alloc);
	find(lib, "cuMemHostRegister_v2", &cu.host_register);
	find(lib, "cuCtxSynchronize", &cu.synchronize);
	find(lib, "cuMemsetD8_v2", &cu.memset_d8);
	find(lib, "cuMemcpyDtoH_v2", &cu.dtoh);
	find(lib, "cuStreamCreate", &cu.stream_create);
	find(lib, "cuStreamQuery", &cu.stream_query);
	find(lib, "cuStreamWriteValue64_v2", &cu.write_value);
	CU(cu.init(0));
	CU(cu.retain(&ctx, 0));
	CU(cu.set_current(ctx));
	CU(cu.module_load(&mod, ptx));
	CU(cu.module_function(&differ, mod, "differ"));
	CU(cu.module_function(&gate, mod, "gate"));
	CU(cu.stream_create(&stream, CU_STREAM_NON_BLOCKING));
	CU(cu.mem_alloc(&out, SLOTS * N * 4));
	CU(cu.mem_alloc(&count, 4));
	CU(cu.host_alloc((void **)&told, 4096));
}

/* Within the check's time; a stream that does not come through is a failure. */
static int passes(CUstream s, double us)
{
	double end = now() + us;

	while (cu.stream_query(s) != CUDA_SUCCESS) {
		if (now() > end)
			return 0;
		sched_yield();
	}
	return 1;
}

static void launch_differ(CUstream s, CUdeviceptr at, float want)
{
	void *args[] = { &at, &want, &count };

	CU(cu.launch(differ, N / 256, 1, 1, 256, 1, 1, 0, s, args, NULL));
}

static void launch_gate(CUstream s)
{
	CUdeviceptr at = (CUdeviceptr)gate_word;
	void *args[] = { &at };

	CU(cu.launch(gate, 1, 1, 1, 1, 1, 1, 0, s, args, NULL));
}

static uint32_t counted(void)
{
	uint32_t n = 0;

	CU(cu.dtoh(&n, count, 4));
	CU(cu.memset_d8(count, 0, 4));
	return n;
}

static void open_channel(air_channel **to, uint32_t order)
{
	struct air_channel_options o = { .size = sizeof(o), .order = order };

	if (!strcmp(executor, "cuda-launch"))
		o.executor = AIR_EXEC_CUDA_LAUNCH;
	AIR(air_channel_create(dev, &o, to));
}

static void set_up(void)
{
	const int64_t shape[] = { N };
	air_tensor_desc d;

	AIR(air_open("inproc:", NULL, &dev));
	open_channel(&ch, 8);
	AIR(air_tensor_desc_init(&d, AIR_F32, 1, shape, NULL));
	AIR(air_buffer_alloc(ch, SLOTS * N * 4, AIR_HOST, &in_buf));
	AIR(air_buffer_import(ch, (void *)out, SLOTS * N * 4, AIR_DEVICE,
			      &out_buf));
	AIR(air_buffer_alloc(ch, 4096, AIR_HOST, &gate_buf));
	gate_word = air_buffer_data(gate_buf);
	for (uint64_t i = 0; i < SLOTS; i++) {
		AIR(air_tensor_view(in_buf, i * N * 4, &d, &x[i]));
		AIR(air_tensor_view(out_buf, i * N * 4, &d, &y[i]));
	}
	AIR(air_create_relu_descriptor(ch, &relu, &d, &d));
	AIR(air_module_load(ch, ptx, sizeof(ptx), &module));
	AIR(air_function_get(module, "gate", &ring_gate));
	/* all is loaded before anything waits */
	*gate_word = 1;
	launch_gate(stream);
	launch_differ(stream, out, 0);
	if (!passes(stream, 5e6))
		on_alarm(0);
	counted();
}

static air_token submit(uint32_t slot, float value)
{
	float *in = (float *)air_tensor_data(&x[slot]);
	air_token token;

	for (int i = 0; i < N; i++)
		in[i] = value;
	AIR(air_execute_relu(relu, AIR_NO_REF, air_tensor_ref(&y[slot]),
			     air_tensor_ref(&x[slot]), &token));
	return token;
}

static air_token submit_gate(air_channel *to)
{
	struct air_launch_config c = { .size = sizeof(c),
				       .grid = { 1, 1, 1 },
				       .block = { 1, 1, 1 } };
	struct air_pointer p = { .ref = air_buffer_ref(gate_buf, 0),
				 .bytes = 4 };
	uint64_t args = 0;
	air_token token;

	*gate_word = 0;
	AIR(air_launch(ring_gate, &c, &args, sizeof(args), &p, 1, &token));
	return token;
}

static void collect(air_token token)
{
	AIR(air_wait(ch, token, TIME_LIMIT, NULL));
}

static pthread_t opener;

static void *open_later(void *arg)
{
	usleep(200000);
	*gate_word = 1;
	return NULL;
}

/*
 * The gate opens while the caller is in air_stream_wait(), should that wait
 * itself, and otherwise while the stream waits.
 */
static void open_soon(void)
{
	pthread_create(&opener, NULL, open_later, NULL);
}

static void opened(void)
{
	pthread_join(opener, NULL);
}

/* -------------------------------------------------------------------- checks
 */

static void check_values(const char *name, CUstream s)
{
	air_token token[SLOTS];
	double in_call = 0;
	int through = 1;

	begin(name);
	for (int i = 0; i < ROUNDS; i++) {
		uint32_t slot = (uint32_t)i % SLOTS;
		float value = (float)(i + 1);
		double t;

		token[slot] = submit(slot, value);
		t = now();
		AIR(air_stream_wait(ch, token[slot], s));
		in_call += now() - t;
		launch_differ(s, out + slot * N * 4, value);
		if (slot < SLOTS - 1)
			continue;
		through &= passes(s, 5e6);
		for (int k = 0; k < SLOTS; k++)
			collect(token[k]);
	}
	result(through && counted() == 0, "air_stream_wait() takes %.2f us",
	       in_call / ROUNDS);
}

/* From the doorbell to what the stream tells, and to what a poll tells. */
static void check_latency(void)
{
	double by_stream = 0, by_poll = 0;

	begin("latency");
	for (uint64_t i = 1; i <= ROUNDS; i++) {
		double t = now();
		air_token token = submit(0, 1);

		AIR(air_stream_wait(ch, token, stream));
		CU(cu.write_value(stream, (CUdeviceptr)told, i, 0));
		while (*told != i)
			;
		by_stream += now() - t;
		collect(token);
		t = now();
		token = submit(0, 1);
		while (air_poll(ch, token, NULL) == AIR_PENDING)
			;
		by_poll += now() - t;
	}
	result(1, "submit to stream's write %.2f us, to poll %.2f us",
	       by_stream / ROUNDS, by_poll / ROUNDS);
}

static void check_late(void)
{
	const int64_t shape[] = { N };
	air_descriptor *d;
	air_channel *small;
	air_tensor t;
	air_token token;

	begin("stream that comes late");
	open_channel(&small, 2);
	AIR(air_tensor_alloc(small, AIR_HOST, AIR_F32, 1, shape, &t));
	AIR(air_create_relu_descriptor(small, &d, &t.desc, &t.desc));
	*gate_word = 0;
	launch_gate(stream);
	for (int i = 0; i < LAPS; i++) {
		AIR(air_execute_relu(d, AIR_NO_REF, air_tensor_ref(&t),
				     air_tensor_ref(&t), &token));
		if (i % 1000 == 0)
			AIR(air_stream_wait(small, token, stream));
		AIR(air_wait(small, token, TIME_LIMIT, NULL));
	}
	*gate_word = 1;
	verdict(passes(stream, 5e6));
	AIR(air_channel_destroy(small));
}

static void check_failure(void)
{
	air_token held, bad;
	air_status st;

	begin("submission that fails");
	held = submit_gate(ch);
	AIR(air_execute_relu(relu, AIR_NO_REF, air_tensor_ref(&y[0]),
			     air_buffer_ref(in_buf, 1u << 30), &bad));
	open_soon();
	AIR(air_stream_wait(ch, bad, stream));
	st = passes(stream, 5e6) ? air_wait(ch, bad, TIME_LIMIT, NULL)
				 : AIR_TIMEOUT;
	result(st == AIR_BAD_RANGE, "%s", air_status_string(st));
	opened();
	collect(held);
}

/* Memory that is CUDA's own, which it need not register, is an operand. */
static void check_pinned(void)
{
	air_buffer *buf;
	air_tensor t;
	air_token token;
	float *memory;
	CUresult r;
	int good;

	begin("memory of cuMemAllocHost()");
	CU(cu.host_alloc((void **)&memory, N * 4));
	r = cu.host_register(memory, N * 4, 0);
	AIR(air_buffer_import(ch, memory, N * 4, AIR_HOST, &buf));
	AIR(air_tensor_view(buf, 0, &x[0].desc, &t));
	for (int i = 0; i < N; i++)
		memory[i] = (float)(i % 2 ? i : -i);
	AIR(air_execute_relu(relu, AIR_NO_REF, air_tensor_ref(&t),
			     air_tensor_ref(&t), &token));
	good = !air_wait(ch, token, TIME_LIMIT, NULL);
	for (int i = 0; i < N; i++)
		good &= memory[i] == (float)(i % 2 ? i : 0);
	result(good, "%p; to register it gives %d", (void *)memory, (int)r);
	AIR(air_buffer_free(buf));
}

static void make_wide(air_channel *to, air_tensor t[3], air_descriptor **d)
{
	const int64_t shape[] = { WIDE, WIDE };

	for (int i = 0; i < 3; i++)
		AIR(air_tensor_alloc(to, AIR_DEVICE, AIR_BF16, 2, shape,
				     &t[i]));
	AIR(air_create_matmul_descriptor(to, d, &t[0].desc, &t[1].desc,
					 &t[2].desc, NULL, NULL, false, false,
					 1, 0, AIR_ACT_NONE));
}

/* Code is loaded and memory comes and goes while the stream waits. */
static void check_put_off(void)
{
	air_token held, token;
	air_descriptor *d;
	air_channel *other;
	air_tensor t[3];

	begin("requests while a stream waits");
	held = submit_gate(ch);
	token = submit(0, 3);
	open_soon();
	AIR(air_stream_wait(ch, token, stream));
	launch_differ(stream, out, 3);
	open_channel(&other, 4);
	make_wide(other, t, &d);
	AIR(air_channel_destroy(other));
	opened();
	verdict(passes(stream, 5e6) && counted() == 0);
	collect(held);
	collect(token);
}

/*
 * The library's first run, for which it loads code, comes before what the
 * stream waits for, and is held back until the stream does. Likewise later,
 * when it is to become a graph, and is one.
 */
static void check_cold(void)
{
	air_ref workspace = AIR_NO_REF;
	air_token held, wide, token;
	air_buffer *scratch = NULL;
	struct air_call call;
	air_descriptor *d;
	air_tensor t[3];
	size_t bytes;

	begin("first matrix product");
	make_wide(ch, t, &d);
	AIR(air_get_matmul_workspace_size(d, &bytes));
	if (bytes) {
		AIR(air_buffer_alloc(ch, bytes, AIR_DEVICE, &scratch));
		workspace = air_buffer_ref(scratch, 0);
	}
	AIR(air_prepare_matmul(d, &call, workspace, air_tensor_ref(&t[0]),
			       air_tensor_ref(&t[1]), air_tensor_ref(&t[2]),
			       AIR_NO_REF, AIR_NO_REF));
	call.flags = AIR_CALL_BARRIER;
	for (float value = 4; value < 4 + REPEATS; value++) {
		held = submit_gate(ch);
		AIR(air_submit(ch, &call, 1, &wide));
		token = submit(1, value);
		open_soon();
		AIR(air_stream_wait(ch, token, stream));
		launch_differ(stream, out + N * 4, value);
		opened();
		if (!passes(stream, 5e6))
			break;
		collect(held);
		collect(wide);
		collect(token);
		/* the second time nothing waits, and it is loaded */
		AIR(air_submit(ch, &call, 1, &wide));
		collect(wide);
	}
	verdict(passes(stream, 0) && counted() == 0);
	if (scratch)
		AIR(air_buffer_free(scratch));
	AIR(air_destroy_matmul_descriptor(d));
}

/* Streams that the library lets wait. */
static int may_wait(void)
{
	const char *queues = getenv("CUDA_DEVICE_MAX_CONNECTIONS");

	return (queues && *queues ? atoi(queues) : QUEUES) / 2;
}

/* Small operators of a channel of its own, in bursts. */
static void work_beside(air_channel *other, air_descriptor *d, air_tensor *t)
{
	for (int burst = 0; burst < 10; burst++) {
		/* longer than until the resident kernel parks */
		usleep(5000);
		for (int i = 0; i < 100; i++) {
			air_token mine;

			AIR(air_execute_relu(d, AIR_NO_REF, air_tensor_ref(t),
					     air_tensor_ref(t), &mine));
			AIR(air_wait(other, mine, TIME_LIMIT, NULL));
		}
	}
}

/*
 * The resident kernel has to be launched, and rings be served, beside as many
 * streams as may wait.
 */
static void check_beside(void)
{
	CUstream s[STREAMS];
	const int64_t shape[] = { N };
	air_token held, token;
	air_descriptor *d;
	air_channel *other;
	air_tensor t;
	int n = may_wait(), through = 0, waiting = 0;

	begin("work beside streams that wait");
	open_channel(&other, 6);
	AIR(air_tensor_alloc(other, AIR_HOST, AIR_F32, 1, shape, &t));
	AIR(air_create_relu_descriptor(other, &d, &t.desc, &t.desc));
	for (int i = 0; i < n; i++)
		CU(cu.stream_create(&s[i], CU_STREAM_NON_BLOCKING));
	held = submit_gate(ch);
	token = submit(2, 5);
	for (int i = 0; i < n; i++)
		AIR(air_stream_wait(ch, token, s[i]));
	work_beside(other, d, &t);
	for (int i = 0; i < n; i++)
		waiting += !passes(s[i], 0);
	*gate_word = 1;
	for (int i = 0; i < n; i++)
		through += passes(s[i], 5e6);
	result(through == n && waiting == n, "%d waited, %d came through",
	       waiting, through);
	collect(held);
	collect(token);
	AIR(air_channel_destroy(other));
}

/* More than may: for the others the caller waits. */
static void check_many(void)
{
	CUstream s[STREAMS];
	air_token held, token;
	int through = 0;

	begin("more streams than may wait");
	for (int i = 0; i < STREAMS; i++)
		CU(cu.stream_create(&s[i], CU_STREAM_NON_BLOCKING));
	held = submit_gate(ch);
	token = submit(2, 5);
	open_soon();
	for (int i = 0; i < STREAMS; i++) {
		AIR(air_stream_wait(ch, token, s[i]));
		launch_differ(s[i], out + 2 * N * 4, 5);
	}
	for (int i = 0; i < STREAMS; i++)
		through += passes(s[i], 5e6);
	opened();
	result(through == STREAMS && counted() == 0, "%d came through",
	       through);
	collect(held);
	collect(token);
}

static void *synchronize(void *arg)
{
	CU(cu.set_current(ctx));
	CU(cu.synchronize());
	return NULL;
}

/* Another thread waits for the device, and what is to be done is not launched.
 */
static void check_synchronize(void)
{
	air_token held, token;
	struct air_call call;
	pthread_t thread;

	begin("device waited for while a stream waits");
	held = submit_gate(ch);
	AIR(air_prepare_relu(relu, &call, AIR_NO_REF, air_tensor_ref(&y[3]),
			     air_tensor_ref(&x[3])));
	call.flags = AIR_CALL_BARRIER;
	AIR(air_submit(ch, &call, 1, &token));
	open_soon();
	AIR(air_stream_wait(ch, token, stream));
	pthread_create(&thread, NULL, synchronize, NULL);
	verdict(passes(stream, 5e6));
	pthread_join(thread, NULL);
	opened();
	collect(held);
	collect(token);
}

static double round_trip(void)
{
	double t = now();

	for (int i = 0; i < ROUNDS; i++) {
		air_token token = submit(0, 1);

		while (air_poll(ch, token, NULL) == AIR_PENDING)
			;
	}
	return (now() - t) / ROUNDS;
}

static void check_quiet(void)
{
	double live, quiet, after, leaves = 0;
	int rounds = 100;

	begin("quiet");
	round_trip();
	live = round_trip();
	for (int i = 0; i < rounds; i++) {
		double t;

		collect(submit(0, 1));
		t = now();
		AIR(air_quiet_begin(dev));
		leaves += now() - t;
		collect(submit(1, 2));
		AIR(air_quiet_end(dev));
	}
	AIR(air_quiet_begin(dev));
	quiet = round_trip();
	AIR(air_quiet_end(dev));
	after = round_trip();
	result(1,
	       "air_quiet_begin() %.1f us; round trip %.2f us, quiet %.2f, "
	       "afterwards %.2f",
	       leaves / rounds, live, quiet, after);
}

int main(int argc, char **argv)
{
	struct sigaction late = { .sa_handler = on_alarm };

	setvbuf(stdout, NULL, _IOLBF, 0);
	sigaction(SIGALRM, &late, NULL);
	if (argc > 1)
		executor = argv[1];
	begin("set-up");
	load_cuda();
	set_up();
	verdict(1);
	check_values("values", stream);
	check_values("values, default stream", NULL);
	check_latency();
	check_late();
	check_failure();
	check_pinned();
	check_put_off();
	check_cold();
	check_quiet();
	/* with one queue nothing runs beside the gate itself */
	if (may_wait())
		check_beside();
	check_many();
	check_synchronize();
	begin("end");
	AIR(air_channel_destroy(ch));
	AIR(air_close(dev));
	verdict(1);
	return failures != 0;
}
