// SPDX-License-Identifier: MIT
/*
 * Users' kernels, the client's side: what goes to the worker, what comes back,
 * and what happens when there is another worker. The worker is the test.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include <airunner/launch.h>

#include "libairunner/module.h"
#include "tests/unit/fake_worker.h"

#define assert_sentence(part) assert_non_null(strstr(air_last_error(), part))
#define assert_ok(call)	      assert_int_equal(call, AIR_OK)

static struct fake f;

static struct {
	unsigned int loads;
	unsigned int lookups;
	unsigned int unloads;
	air_status load_status;
	air_status lookup_status;
	const char *text;
	char image[32];
	size_t bytes;
	char name[64];
	uint32_t module;
	uint32_t param_bytes;
} w;

/* What a reference of the library's points to. */
static void *follow(uint64_t ref)
{
	struct air_buffer *buf =
		air_buffer_by_handle(f.ch, airunner_ref_handle(ref));

	assert_non_null(buf);
	return (char *)buf->mapping.addr + airunner_ref_offset(ref);
}

static void serve_module(struct fake *fake)
{
	struct airunner_function_record *record;
	struct air_sqe sqe;
	air_status status = AIR_OK;

	if (!air_ring_fetch(&fake->ch->ring, fake->next, &sqe))
		return;
	switch (airunner_sqe_opcode(sqe.word[0])) {
	case AIRUNNER_OP_MODULE_LOAD:
		w.loads++;
		w.bytes = sqe.word[7];
		w.module = airunner_sqe_id(sqe.word[0]);
		memcpy(w.image, follow(sqe.word[1]),
		       w.bytes < sizeof(w.image) ? w.bytes : sizeof(w.image));
		if (w.text)
			strcpy(follow(sqe.word[2]), w.text);
		status = w.load_status;
		break;
	case AIRUNNER_OP_FUNCTION_GET:
		w.lookups++;
		record = follow(sqe.word[1]);
		assert_int_equal(record->size, sizeof(*record));
		assert_int_equal(record->module, w.module);
		strcpy(w.name, record->name);
		record->n_params = 2;
		record->param_bytes = w.param_bytes;
		record->max_threads = 1024;
		record->static_shared = 48;
		record->param[1].offset = 8;
		record->param[1].size = 4;
		if (w.text)
			strcpy(record->why, w.text);
		status = w.lookup_status;
		break;
	case AIRUNNER_OP_MODULE_UNLOAD:
		w.unloads++;
		break;
	}
	fake_serve(fake, status);
}

static int start(void **state)
{
	memset(&w, 0, sizeof(w));
	fake_start(&f, 2);
	f.on_sleep = serve_module;
	return 0;
}

static int stop(void **state)
{
	fake_stop(&f);
	return 0;
}

static air_module *load(void)
{
	air_module *m;

	assert_ok(air_module_load(f.ch, "an image", 9, &m));
	return m;
}

static air_function *get(air_module *m, const char *name)
{
	air_function *fn;

	assert_ok(air_function_get(m, name, &fn));
	return fn;
}

/* ----------------------------------------------------- modules, functions */

static void test_load(void **state)
{
	air_module *m = load();

	assert_int_equal(w.loads, 1);
	assert_int_equal(w.bytes, 9);
	assert_string_equal(w.image, "an image");
	assert_ok(air_module_unload(m));
	serve_module(&f);
	assert_int_equal(w.unloads, 1);
	assert_ok(air_module_unload(NULL));
}

static void test_load_refused(void **state)
{
	air_module *m = NULL;

	assert_int_equal(air_module_load(NULL, "x", 1, &m), AIR_BAD_ARGUMENT);
	assert_int_equal(air_module_load(f.ch, NULL, 1, &m), AIR_BAD_ARGUMENT);
	assert_int_equal(air_module_load(f.ch, "x", 0, &m), AIR_BAD_ARGUMENT);
	assert_int_equal(air_module_load(f.ch, "x", 1, NULL), AIR_BAD_ARGUMENT);
	assert_int_equal(air_module_load(f.ch, "x", SIZE_MAX, &m),
			 AIR_BAD_ARGUMENT);
	w.load_status = AIR_BAD_ARGUMENT;
	w.text = "line 3: what is this?";
	assert_int_equal(air_module_load(f.ch, "x", 1, &m), AIR_BAD_ARGUMENT);
	assert_string_equal(air_last_error(), "module: line 3: what is this?");
	w.text = NULL;
	assert_int_equal(air_module_load(f.ch, "x", 1, &m), AIR_BAD_ARGUMENT);
	assert_sentence(air_status_string(AIR_BAD_ARGUMENT));
	assert_null(m);
}

static void test_load_file(void **state)
{
	char path[64];
	air_module *m;
	FILE *file;

	snprintf(path, sizeof(path), "/tmp/airunner-launch-%d", getpid());
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(".version 7", file);
	fclose(file);
	assert_ok(air_module_load_file(f.ch, path, &m));
	/* With the zero that text must end with. */
	assert_int_equal(w.bytes, 11);
	assert_string_equal(w.image, ".version 7");
	assert_ok(air_module_unload(m));
	serve_module(&f);
	unlink(path);
	assert_int_equal(air_module_load_file(f.ch, path, &m), AIR_SYSTEM);
	assert_sentence("No such file");
	assert_int_equal(air_module_load_file(f.ch, "/", &m), AIR_SYSTEM);
	assert_int_equal(air_module_load_file(f.ch, NULL, &m),
			 AIR_BAD_ARGUMENT);
}

static void test_functions(void **state)
{
	struct air_function_info info = { .size = sizeof(info) };
	air_module *m = load();
	air_function *a, *b;
	char name[600];

	a = get(m, "saxpy");
	assert_string_equal(w.name, "saxpy");
	assert_ptr_equal(get(m, "saxpy"), a);
	assert_int_equal(w.lookups, 1);
	b = get(m, "other");
	assert_int_not_equal(a->id, b->id);
	assert_ok(air_function_info(a, &info));
	assert_int_equal(info.n_params, 2);
	assert_int_equal(info.max_threads, 1024);
	assert_int_equal(info.static_shared, 48);
	assert_int_equal(info.param[1].offset, 8);
	assert_int_equal(info.param[1].size, 4);
	/* A caller that knows less gets less. */
	memset(&info, 0x5a, sizeof(info));
	info.size = 8;
	assert_ok(air_function_info(a, &info));
	assert_int_equal(info.n_params, 2);
	assert_int_equal(info.param_bytes, 0x5a5a5a5a);
	info.size = 0;
	assert_int_equal(air_function_info(a, &info), AIR_BAD_ARGUMENT);
	assert_int_equal(air_function_info(NULL, &info), AIR_BAD_ARGUMENT);

	assert_int_equal(air_function_get(NULL, "x", &a), AIR_BAD_ARGUMENT);
	assert_int_equal(air_function_get(m, NULL, &a), AIR_BAD_ARGUMENT);
	assert_int_equal(air_function_get(m, "", &a), AIR_BAD_ARGUMENT);
	assert_int_equal(air_function_get(m, "x", NULL), AIR_BAD_ARGUMENT);
	memset(name, 'x', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(air_function_get(m, name, &a), AIR_BAD_ARGUMENT);
	assert_sentence("599 characters");
	w.lookup_status = AIR_BAD_ARGUMENT;
	w.text = "no such function";
	assert_int_equal(air_function_get(m, "missing", &a), AIR_BAD_ARGUMENT);
	assert_string_equal(air_last_error(), "missing: no such function");
	assert_ok(air_module_unload(m));
}

/* ---------------------------------------------------------------- launches */

struct args {
	void *y;
	void *x;
	float alpha;
	uint32_t n;
};

static struct air_launch_config config(void)
{
	return (struct air_launch_config){ .size = sizeof(
						   struct air_launch_config),
					   .grid = { 4, 1, 1 },
					   .block = { 256, 1, 1 } };
}

static void test_launch(void **state)
{
	struct air_launch_config c = config();
	struct args args = { .alpha = 2.5f, .n = 1000 }, *got;
	struct airunner_launch_record *record;
	struct airunner_launch_ref *refs;
	struct air_pointer p[2];
	air_module *m = load();
	air_function *fn = get(m, "saxpy");
	struct air_completion done;
	air_buffer *buf;
	air_token token;

	assert_ok(air_buffer_alloc(f.ch, 4096, AIR_HOST, &buf));
	p[0] = (struct air_pointer){ air_buffer_ref(buf, 64), 400, 0 };
	p[1] = (struct air_pointer){ AIR_NO_REF, 0, 8 };
	c.shared_bytes = 512;
	c.user_data = 99;
	c.timeout_ms = 7;
	c.flags = AIR_CALL_UNORDERED;
	assert_ok(air_launch(fn, &c, &args, sizeof(args), p, 2, &token));
	assert_true(fake_serve_detail(&f, AIR_BAD_RANGE, 1));
	assert_int_equal(airunner_sqe_opcode(f.last.word[0]),
			 AIRUNNER_OP_LAUNCH);
	assert_int_equal(airunner_sqe_id(f.last.word[0]), fn->id);
	assert_int_equal(airunner_sqe_flags(f.last.word[0]),
			 AIRUNNER_SQE_UNORDERED);
	assert_int_equal(airunner_sqe_timeout_ms(f.last.word[0]), 7);
	assert_int_equal(f.last.word[7], 64 + 2 * 24 + sizeof(args));
	record = follow(f.last.word[1]);
	assert_int_equal((uintptr_t)record % 16, 0);
	assert_int_equal(record->size, 64);
	assert_int_equal(record->n_refs, 2);
	assert_int_equal(record->grid[0], 4);
	assert_int_equal(record->block[0], 256);
	assert_int_equal(record->shared_bytes, 512);
	assert_int_equal(record->arg_bytes, sizeof(args));
	refs = (struct airunner_launch_ref *)(record + 1);
	assert_int_equal(refs[0].ref, air_buffer_ref(buf, 64).bits);
	assert_int_equal(refs[0].bytes, 400);
	assert_int_equal(refs[1].ref, AIRUNNER_REF_NONE);
	assert_int_equal(refs[1].offset, 8);
	got = (struct args *)(refs + 2);
	assert_int_equal(got->n, 1000);
	assert_int_equal(air_wait(f.ch, token, 0, &done), AIR_BAD_RANGE);
	assert_int_equal(done.user_data, 99);
	assert_sentence("launch of saxpy: pointer 1");
	/* A freed buffer is no argument any more. */
	assert_ok(air_buffer_free(buf));
	assert_ok(air_launch(fn, &c, &args, sizeof(args), p, 2, NULL));
	assert_true(fake_serve(&f, AIR_OK));
	refs = (struct airunner_launch_ref *)((struct airunner_launch_record *)
						      follow(f.last.word[1]) +
					      1);
	assert_int_equal(airunner_ref_handle(refs[0].ref), AIR_HANDLE_FREED);
	assert_ok(air_module_unload(m));
}

static void test_launch_refused(void **state)
{
	struct air_launch_config c = config();
	struct args args = { .n = 1 };
	struct air_pointer p = { AIR_NO_REF, 0, 0 };
	air_module *m = load();
	air_function *fn;
	static char many[5000];

	w.param_bytes = sizeof(args);
	fn = get(m, "saxpy");
#define REFUSED(call, sentence)                                                \
	do {                                                                   \
		assert_int_equal(call, AIR_BAD_ARGUMENT);                      \
		assert_sentence(sentence);                                     \
	} while (0)
	REFUSED(air_launch(NULL, &c, &args, 24, &p, 1, NULL), "function");
	REFUSED(air_launch(fn, NULL, &args, 24, &p, 1, NULL), "config");
	REFUSED(air_launch(fn, &c, NULL, 24, &p, 1, NULL), "args is NULL");
	REFUSED(air_launch(fn, &c, &args, 24, NULL, 1, NULL),
		"pointers is NULL");
	REFUSED(air_launch(fn, &c, &args, 20, &p, 1, NULL),
		"20 bytes of arguments; it takes 24");
	REFUSED(air_launch(fn, &c, many, 5000, NULL, 0, NULL), "at most 4096");
	REFUSED(air_launch(fn, &c, &args, 24, &p, 600, NULL), "600 pointers");
	p.offset = 17;
	REFUSED(air_launch(fn, &c, &args, 24, &p, 1, NULL),
		"pointer 1 at offset 17");
	c.grid[1] = 0;
	REFUSED(air_launch(fn, &c, &args, 24, NULL, 0, NULL),
		"grid dimension 1 is 0");
	c = config();
	c.block[2] = 0;
	REFUSED(air_launch(fn, &c, &args, 24, NULL, 0, NULL),
		"block dimension 2 is 0");
	c.block[2] = 5;
	REFUSED(air_launch(fn, &c, &args, 24, NULL, 0, NULL), "1024 threads");
	c = config();
	c.timeout_ms = 65536;
	REFUSED(air_launch(fn, &c, &args, 24, NULL, 0, NULL), "timeout_ms");
	c = config();
	c.flags = 1u << 20;
	assert_int_equal(air_launch(fn, &c, &args, 24, NULL, 0, NULL),
			 AIR_BAD_FLAGS);
	/* None of them left the arguments locked or used up. */
	c = config();
	assert_ok(air_launch(fn, &c, &args, 24, NULL, 0, NULL));
	assert_int_equal(fake_serve_all(&f), 1);
	assert_ok(air_module_unload(m));
}

/* Round and round, each launch's bytes intact until it was served. */
static void test_arguments_go_round(void **state)
{
	struct air_launch_config c = config();
	static unsigned char bytes[4096];
	air_module *m = load();
	air_function *fn = get(m, "fill");
	unsigned int next = 0;

	for (unsigned int i = 0; i < 2000; i++) {
		uint32_t n = 1 + i * 37 % sizeof(bytes);
		unsigned int pending;

		memset(bytes, (int)(i & 0xff), n);
		assert_ok(air_launch(fn, &c, bytes, n, NULL, 0, NULL));
		for (pending = i + 1 - next; pending > i % 4; pending--) {
			uint32_t want = 1 + next * 37 % sizeof(bytes);
			unsigned char *got;

			assert_true(fake_serve(&f, AIR_OK));
			got = (unsigned char *)follow(f.last.word[1]) + 64;
			assert_int_equal(f.last.word[7], 64 + want);
			assert_int_equal(got[0], next & 0xff);
			assert_int_equal(got[want - 1], next & 0xff);
			next++;
		}
	}
	fake_serve_all(&f);
	assert_ok(air_module_unload(m));
}

static void test_full(void **state)
{
	struct air_launch_config c = config();
	air_module *m = load();
	air_function *fn = get(m, "fill");
	int n = 0;

	while (air_launch(fn, &c, NULL, 0, NULL, 0, NULL) == AIR_OK)
		n++;
	assert_int_equal(n, 4);
	assert_sentence("full");
	fake_serve_all(&f);
	assert_ok(air_launch(fn, &c, NULL, 0, NULL, 0, NULL));
	fake_serve_all(&f);
	assert_ok(air_module_unload(m));
}

static void test_no_room_for_arguments(void **state)
{
	struct air_launch_config c = config();
	static char bytes[4096];
	air_function *fn;
	air_module *m;
	int n = 0;

	fake_stop(&f);
	fake_start(&f, 8);
	f.on_sleep = serve_module;
	m = load();
	fn = get(m, "fill");
	while (air_launch(fn, &c, bytes, sizeof(bytes), NULL, 0, NULL) ==
	       AIR_OK)
		n++;
	assert_sentence("arguments of another launch");
	/* 256 KiB hold as many. */
	assert_int_equal(n, (256 << 10) / (4096 + 64));
	assert_true(fake_serve(&f, AIR_OK));
	assert_ok(air_launch(fn, &c, bytes, 1, NULL, 0, NULL));
	fake_serve_all(&f);
	assert_ok(air_module_unload(m));
}

static void test_another_worker_gets_them(void **state)
{
	struct air_launch_config c = config();
	air_module *m = load();
	air_function *fn = get(m, "saxpy");
	uint32_t id = fn->id;

	get(m, "other");
	f.ch->ring.ctrl->sq_epoch++;
	assert_ok(air_launch(fn, &c, NULL, 0, NULL, 0, NULL));
	assert_int_equal(w.loads, 2);
	assert_int_equal(w.lookups, 4);
	assert_string_equal(w.image, "an image");
	assert_int_equal(fn->id, id);
	fake_serve_all(&f);
	assert_ok(air_module_unload(m));
}

static void test_left_to_the_channel(void **state)
{
	air_module *m = load();

	get(m, "saxpy");
	m = load();
	get(m, "saxpy");
	for (int i = 0; i < 4; i++)
		fake_nop(&f, 0);
	/* One is still there, the other waits for room to be unloaded. */
	assert_ok(air_module_unload(m));
}

/* With a worker that is real, and has no use for device code. */
static void test_cpu_takes_none(void **state)
{
	struct air_device_options o = { .size = sizeof(o),
					.threads = 1,
					.executors = "cpu" };
	air_module *m;
	air_device *dev;
	air_channel *ch;

	assert_ok(air_open("inproc:", &o, &dev));
	assert_ok(air_channel_create(dev, NULL, &ch));
	assert_int_equal(air_module_load(ch, "x", 1, &m), AIR_UNSUPPORTED);
	assert_sentence("no executor");
	assert_ok(air_channel_destroy(ch));
	assert_ok(air_close(dev));
}

#define T(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_load),
		T(test_load_refused),
		T(test_load_file),
		T(test_functions),
		T(test_launch),
		T(test_launch_refused),
		T(test_arguments_go_round),
		T(test_full),
		T(test_no_room_for_arguments),
		T(test_another_worker_gets_them),
		T(test_left_to_the_channel),
		cmocka_unit_test(test_cpu_takes_none),
	};

	return cmocka_run_group_tests_name("launch", tests, NULL, NULL);
}
