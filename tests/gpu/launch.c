// SPDX-License-Identifier: MIT
/*
 * Users' kernels through the ring, on a GPU: code as cubin, PTX and fatbin,
 * from memory and from a file; arguments that are references; kernels that
 * reach outside their memory, with others outstanding.
 *
 *	launch DIRECTORY [WHERE]
 *
 * DIRECTORY has user.cubin, user.ptx and user.fatbin. WHERE is what air_open()
 * takes; "inproc:" if not given. After a fault the worker must take work again.
 * Only a process that drivers give no other context to (580 does not) cannot: a
 * daemon ends then and whoever started it starts another, which is to be seen
 * with served.sh; "inproc:" has no other process, and must say so.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <airunner/launch.h>
#include <airunner/ops/copy.h>
#include <airunner/ops/vector_add.h>

#define N	   10000
#define BYTES	   (N * sizeof(float))
#define NOWHERE	   0x100000000000ull /* no allocation is that low */
#define TIME_LIMIT INT64_C(60000000000)

static const char *directory, *where = "inproc:";
static bool spent; /* this process has no device any more */
static air_device *dev;
static air_channel *ch;
static air_module *module;
static air_buffer *host, *device, *gate_buf;

static void ok(air_status st)
{
	if (st)
		print_error("%s: %s\n", air_status_string(st),
			    air_last_error());
	assert_int_equal(st, AIR_OK);
}

static float *numbers(void)
{
	return air_buffer_data(host);
}

static air_function *function(air_module *m, const char *name)
{
	air_function *f;

	ok(air_function_get(m, name, &f));
	return f;
}

static int set_up(void **state)
{
	static const char *const names[] = { "gate", "open_gate", "stray",
					     "saxpy" };
	char path[4096];

	if (spent)
		return 0;
	ok(air_channel_create(dev, NULL, &ch));
	snprintf(path, sizeof(path), "%s/user.cubin", directory);
	ok(air_module_load_file(ch, path, &module));
	/* now: the driver does not load code beside a kernel that waits */
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		function(module, names[i]);
	ok(air_buffer_alloc(ch, 2 * BYTES, AIR_HOST, &host));
	ok(air_buffer_alloc(ch, 2 * BYTES, AIR_DEVICE, &device));
	ok(air_buffer_alloc(ch, 4096, AIR_HOST, &gate_buf));
	memset(air_buffer_data(gate_buf), 0, 4096);
	for (int i = 0; i < N; i++) {
		numbers()[i] = 1;
		numbers()[N + i] = (float)i;
	}
	return 0;
}

static int tear_down(void **state)
{
	if (!ch)
		return 0;
	air_module_unload(module);
	ok(air_channel_destroy(ch));
	ch = NULL;
	return 0;
}

static struct air_pointer pointer(air_buffer *buf, uint64_t at, uint64_t bytes,
				  uint32_t offset)
{
	return (struct air_pointer){ .ref = air_buffer_ref(buf, at),
				     .bytes = bytes,
				     .offset = offset };
}

static struct air_launch_config shape(uint32_t grid, uint32_t block)
{
	return (struct air_launch_config){ .size = sizeof(shape(0, 0)),
					   .grid = { grid, 1, 1 },
					   .block = { block, 1, 1 } };
}

static air_status ends(air_token token, uint32_t *detail)
{
	struct air_completion c = { 0 };
	air_status st = air_wait(ch, token, TIME_LIMIT, &c);

	assert_int_equal(c.token, token);
	if (detail)
		*detail = c.detail;
	return st;
}

/* ------------------------------------------------------------------ saxpy */

struct saxpy {
	uint64_t y, x;
	float a;
	uint32_t n;
};

static air_token saxpy(air_module *m, air_buffer *buf)
{
	struct air_pointer p[] = {
		pointer(buf, 0, BYTES, offsetof(struct saxpy, y)),
		pointer(buf, BYTES, BYTES, offsetof(struct saxpy, x)),
	};
	struct air_launch_config config = shape((N + 255) / 256, 256);
	struct saxpy args = { .a = 2, .n = N };
	air_token token;

	ok(air_launch(function(m, "saxpy"), &config, &args, sizeof(args), p, 2,
		      &token));
	return token;
}

static void copy(air_buffer *to, air_buffer *from)
{
	int64_t n = 2 * N;
	air_tensor_desc t;
	air_descriptor *d;
	air_token token;

	ok(air_tensor_desc_init(&t, AIR_F32, 1, &n, NULL));
	ok(air_create_copy_descriptor(ch, &d, &t, &t));
	ok(air_execute_copy(d, AIR_NO_REF, air_buffer_ref(to, 0),
			    air_buffer_ref(from, 0), &token));
	ok(ends(token, NULL));
	ok(air_destroy_copy_descriptor(d));
}

static void check_saxpy(float times)
{
	for (int i = 0; i < N; i++)
		assert_float_equal(numbers()[i], 1 + times * 2 * (float)i, 0);
}

/* ------------------------------------------------------------- the image */

static void *read_file(const char *name, size_t *bytes)
{
	char path[4096];
	char *p;
	FILE *f;
	long n;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	f = fopen(path, "rb");
	assert_non_null(f);
	fseek(f, 0, SEEK_END);
	n = ftell(f);
	rewind(f);
	p = calloc(1, (size_t)n + 1);
	assert_int_equal(fread(p, 1, (size_t)n, f), n);
	fclose(f);
	*bytes = (size_t)n;
	return p;
}

static void test_images(void **state)
{
	static const char *const names[] = { "user.cubin", "user.ptx",
					     "user.fatbin" };
	char path[4096];
	air_module *m;
	size_t bytes;
	void *image;

	for (int i = 0; i < 6; i++) {
		const char *name = names[i % 3];

		if (i < 3) {
			image = read_file(name, &bytes);
			/* the NUL that PTX ends with */
			bytes += i == 1;
			ok(air_module_load(ch, image, bytes, &m));
			free(image);
		} else {
			snprintf(path, sizeof(path), "%s/%s", directory, name);
			ok(air_module_load_file(ch, path, &m));
		}
		ok(ends(saxpy(m, host), NULL));
		check_saxpy((float)i + 1);
		ok(air_module_unload(m));
	}
}

static void test_what_is_no_image(void **state)
{
	static const char nonsense[64] = "this is neither code nor PTX";
	air_function *f;
	air_module *m;

	assert_int_equal(air_module_load(ch, nonsense, sizeof(nonsense), &m),
			 AIR_BAD_ARGUMENT);
	assert_true(air_last_error()[0]);
	assert_int_equal(air_module_load_file(ch, "/no/such/file", &m),
			 AIR_SYSTEM);
	assert_int_not_equal(air_function_get(module, "nobody", &f), AIR_OK);
	assert_non_null(strstr(air_last_error(), "nobody"));
}

static void test_what_the_image_tells(void **state)
{
	struct air_function_info info = { .size = sizeof(info) };

	ok(air_function_info(function(module, "saxpy"), &info));
	assert_int_equal(info.n_params, 4);
	assert_int_equal(info.param_bytes, sizeof(struct saxpy));
	assert_int_equal(info.param[1].offset, offsetof(struct saxpy, x));
	assert_int_equal(info.param[2].offset, offsetof(struct saxpy, a));
	assert_int_equal(info.param[2].size, sizeof(float));
	assert_true(info.max_threads >= 256);
}

/* -------------------------------------------------------------- arguments */

static void test_host_and_device(void **state)
{
	ok(ends(saxpy(module, host), NULL));
	check_saxpy(1);
	copy(device, host);
	ok(ends(saxpy(module, device), NULL));
	copy(host, device);
	check_saxpy(2);
}

static void test_bounds(void **state)
{
	struct air_pointer p[] = {
		pointer(host, 0, BYTES, offsetof(struct saxpy, y)),
		pointer(host, BYTES, BYTES + 4, offsetof(struct saxpy, x)),
	};
	struct air_launch_config config = shape((N + 255) / 256, 256);
	struct saxpy args = { .a = 2, .n = N };
	air_function *f = function(module, "saxpy");
	air_buffer *gone;
	air_token token;
	uint32_t detail;

	ok(air_launch(f, &config, &args, sizeof(args), p, 2, &token));
	/* buffers are whole pages: what is asked for is beyond those, too */
	p[1].bytes = air_buffer_size(host) - BYTES;
	ok(ends(token, NULL));
	p[1].bytes++;
	ok(air_launch(f, &config, &args, sizeof(args), p, 2, &token));
	assert_int_equal(ends(token, &detail), AIR_BAD_RANGE);
	assert_int_equal(detail, 2);

	ok(air_buffer_alloc(ch, BYTES, AIR_HOST, &gone));
	p[1] = pointer(gone, 0, BYTES, offsetof(struct saxpy, x));
	ok(air_buffer_free(gone));
	ok(air_launch(f, &config, &args, sizeof(args), p, 2, &token));
	assert_int_equal(ends(token, &detail), AIR_BAD_HANDLE);
	assert_int_equal(detail, 2);

	assert_int_equal(air_launch(f, &config, &args, sizeof(args) - 4, p, 2,
				    &token),
			 AIR_BAD_ARGUMENT);
	config.block[0] = 100000;
	p[1] = pointer(host, BYTES, BYTES, offsetof(struct saxpy, x));
	assert_int_equal(air_launch(f, &config, &args, sizeof(args), p, 2,
				    &token),
			 AIR_BAD_ARGUMENT);
	check_saxpy(1);
}

static void test_null(void **state)
{
	uint64_t args[2] = { 0 };
	struct air_pointer p[] = { pointer(host, 0, 4, 0),
				   { .ref = AIR_NO_REF, .offset = 8 } };
	struct air_launch_config config = shape(1, 1);
	int32_t *n = air_buffer_data(host);
	air_token token;

	n[1] = 77;
	ok(air_launch(function(module, "choose"), &config, args, sizeof(args),
		      p, 2, &token));
	ok(ends(token, NULL));
	assert_int_equal(n[0], -1);
	p[1] = pointer(host, 4, 4, 8);
	ok(air_launch(function(module, "choose"), &config, args, sizeof(args),
		      p, 2, &token));
	ok(ends(token, NULL));
	assert_int_equal(n[0], 77);
}

static void test_shared_memory(void **state)
{
	struct {
		uint64_t y, x;
		uint32_t n;
	} args = { .n = N };
	struct air_pointer p[] = { pointer(host, 0, BYTES, 0),
				   pointer(host, BYTES, BYTES, 8) };
	struct air_launch_config config = shape(1, 1024);
	air_token token;

	/* what every kernel has, then what has to be asked for */
	for (uint32_t bytes = 40000; bytes <= 96000; bytes += 28000) {
		config.shared_bytes = bytes;
		ok(air_launch(function(module, "reverse"), &config, &args, 20,
			      p, 2, &token));
		ok(ends(token, NULL));
		for (int i = 0; i < N; i++)
			assert_float_equal(numbers()[i], N - 1 - i, 0);
	}
	/* and more than there is */
	config.shared_bytes = 1 << 20;
	ok(air_launch(function(module, "reverse"), &config, &args, 20, p, 2,
		      &token));
	assert_int_equal(ends(token, NULL), AIR_BAD_ARGUMENT);
}

static void test_dimensions(void **state)
{
	struct air_launch_config config = { .size = sizeof(config),
					    .grid = { 3, 5, 2 },
					    .block = { 4, 2, 8 } };
	struct air_pointer p = pointer(host, 0, 30 * 64 * 4, 0);
	uint32_t *n = air_buffer_data(host);
	uint64_t arg = 0;
	air_token token;

	ok(air_launch(function(module, "whereabouts"), &config, &arg,
		      sizeof(arg), &p, 1, &token));
	ok(ends(token, NULL));
	for (uint32_t i = 0; i < 30 * 64; i++)
		assert_int_equal(n[i], i / 64 << 16 | i % 64);
}

/* ------------------------------------------------------------------ order */

static air_descriptor *adder(void)
{
	int64_t n = N;
	air_descriptor *d;
	air_tensor_desc t;

	ok(air_tensor_desc_init(&t, AIR_F32, 1, &n, NULL));
	ok(air_create_vector_add_descriptor(ch, &d, &t, &t, &t));
	return d;
}

/* y += x, by the operator */
static air_token add(air_descriptor *d, air_buffer *buf)
{
	air_ref y = air_buffer_ref(buf, 0);
	air_token token;

	ok(air_execute_vector_add(d, AIR_NO_REF, y, y,
				  air_buffer_ref(buf, BYTES), &token));
	return token;
}

static void test_among_operators(void **state)
{
	air_descriptor *d = adder();
	air_token token[64];

	for (int i = 0; i < 64; i += 2) {
		token[i] = add(d, host);
		token[i + 1] = saxpy(module, host);
	}
	for (int i = 0; i < 64; i++)
		ok(ends(token[i], NULL));
	for (int i = 0; i < N; i++)
		assert_float_equal(numbers()[i], 1 + 96 * (float)i, 0);
	ok(air_destroy_vector_add_descriptor(d));
}

/* ----------------------------------------------------------------- faults */

static air_token launch_one(const char *name, uint64_t arg, air_buffer *buf,
			    uint32_t flags)
{
	struct air_launch_config config = shape(1, 1);
	struct air_pointer p = { .offset = 0 };
	air_token token;

	config.flags = flags;
	if (buf)
		p = pointer(buf, 0, 4, 0);
	ok(air_launch(function(module, name), &config, &arg, sizeof(arg), &p,
		      buf != NULL, &token));
	return token;
}

/* y += 2 x by a kernel, for as often as there is nobody who takes it. */
static air_status try_saxpy(void)
{
	struct air_pointer p[] = {
		pointer(host, 0, BYTES, offsetof(struct saxpy, y)),
		pointer(host, BYTES, BYTES, offsetof(struct saxpy, x)),
	};
	struct air_launch_config config = shape((N + 255) / 256, 256);
	struct saxpy args = { .a = 2, .n = N };
	air_status st = AIR_NO_WORKER;
	air_function *f;
	air_token token;

	for (int tries = 0; tries < 3000; tries++) {
		for (int i = 0; i < N; i++)
			numbers()[i] = 1;
		st = air_function_get(module, "saxpy", &f);
		if (!st)
			st = air_launch(f, &config, &args, sizeof(args), p, 2,
					&token);
		if (!st)
			st = air_wait(ch, token, TIME_LIMIT, NULL);
		if (!st || !strcmp(where, "inproc:"))
			break;
		usleep(10000);
	}
	return st;
}

/* After a fault: the device works, with what was made before. */
static void check_device(air_descriptor *d)
{
	air_status st = try_saxpy();

	if (st == AIR_DEVICE_LOST && !strcmp(where, "inproc:")) {
		print_message("this process has no device any more\n");
		spent = true;
		return;
	}
	ok(st);
	check_saxpy(1);
	/* A daemon may have been replaced: its device memory went with it. */
	if (strcmp(where, "inproc:")) {
		ok(air_buffer_free(device));
		ok(air_buffer_alloc(ch, 2 * BYTES, AIR_DEVICE, &device));
	}
	copy(device, host);
	ok(ends(add(d, device), NULL));
	copy(host, device);
	for (int i = 0; i < N; i++)
		assert_float_equal(numbers()[i], 1 + 3 * (float)i, 0);
}

/* A kernel that faults, with others before and behind it. */
static void test_faults(void **state)
{
	air_token before, gate, culprit, behind[2];
	air_descriptor *d;

	air_prefer_executor(AIR_EXEC_CUDA_LAUNCH);
	d = adder();
	for (int turn = 0; turn < 3 && !spent; turn++) {
		*(int *)air_buffer_data(gate_buf) = 0;
		for (int i = 0; i < N; i++)
			numbers()[i] = 1;
		before = add(d, host);
		/* opened behind them all: none ends before all have begun */
		gate = launch_one("gate", 0, gate_buf, 0);
		culprit = launch_one("stray", NOWHERE, NULL, 0);
		behind[0] = saxpy(module, device);
		behind[1] = add(d, device);
		launch_one("open_gate", 0, gate_buf, AIR_CALL_UNORDERED);

		ok(ends(before, NULL));
		for (int i = 0; i < N; i++)
			assert_float_equal(numbers()[i], 1 + (float)i, 0);
		ok(ends(gate, NULL));
		assert_int_equal(ends(culprit, NULL), AIR_DEVICE_FAULT);
		assert_int_equal(ends(behind[0], NULL), AIR_DEVICE_LOST);
		assert_int_equal(ends(behind[1], NULL), AIR_DEVICE_LOST);
		check_device(d);
	}
	if (!spent)
		ok(air_destroy_vector_add_descriptor(d));
	air_prefer_executor(AIR_EXEC_ANY);
}

/*
 * The other executor of the same GPU loses what it has, too. It gets what is
 * behind the launch when the launch has ended, on the new context.
 */
static void test_faults_beside_resident(void **state)
{
	struct air_backend_caps caps = { .size = sizeof(caps) };
	air_token before, culprit, behind;
	air_descriptor *d;

	if (spent)
		skip();
	ok(air_backend_caps(dev, AIR_EXEC_CUDA_RESIDENT, &caps));
	if (!caps.present)
		skip();
	air_prefer_executor(AIR_EXEC_CUDA_RESIDENT);
	d = adder();
	for (int turn = 0; turn < 3 && !spent; turn++) {
		for (int i = 0; i < N; i++)
			numbers()[i] = 1;
		before = add(d, host);
		culprit = launch_one("stray", NOWHERE, NULL, 0);
		behind = add(d, host);
		ok(ends(before, NULL));
		assert_int_equal(ends(culprit, NULL), AIR_DEVICE_FAULT);
		/* not begun: on a new context if there is one, else not */
		switch (ends(behind, NULL)) {
		case AIR_OK:
			for (int i = 0; i < N; i++)
				assert_float_equal(numbers()[i],
						   1 + 2 * (float)i, 0);
			break;
		case AIR_DEVICE_LOST:
		case AIR_WORKER_DIED:
			break;
		default:
			fail_msg("%s", air_last_error());
		}
		check_device(d);
	}
	if (!spent)
		ok(air_destroy_vector_add_descriptor(d));
	air_prefer_executor(AIR_EXEC_ANY);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		TEST(test_images),
		TEST(test_what_is_no_image),
		TEST(test_what_the_image_tells),
		TEST(test_host_and_device),
		TEST(test_bounds),
		TEST(test_null),
		TEST(test_shared_memory),
		TEST(test_dimensions),
		TEST(test_among_operators),
		TEST(test_faults),
		TEST(test_faults_beside_resident),
	};
	int failed;

	if (argc < 2) {
		puts("launch DIRECTORY [WHERE]");
		return 2;
	}
	directory = argv[1];
	if (argc > 2)
		where = argv[2];
	alarm(180);
	if (air_open(where, NULL, &dev)) {
		puts(air_last_error());
		return 1;
	}
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	air_close(dev);
	return failed;
}
