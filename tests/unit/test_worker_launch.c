// SPDX-License-Identifier: MIT
/*
 * Users' kernels through the ring: modules, functions, and launches whose
 * pointer arguments are references that the worker checks and fills in.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/worker_client.h"

static struct air_worker *w;
static struct client c;

static int set_up(void **state)
{
	fakes_reset();
	w = worker_start(NULL, fake_executors);
	client_open(&c, w, NULL);
	return 0;
}

static int tear_down(void **state)
{
	fake_let(0, 10000);
	client_close(&c, AIR_REMOVE_DRAIN);
	assert_int_equal(fakes[0].modules, 0);
	assert_int_equal(fakes[0].buffers, 0);
	worker_end(w);
	return 0;
}

static char *at(uint64_t offset)
{
	return (char *)c.region + c.arena + offset;
}

static struct air_cqe run(const struct air_sqe *sqe)
{
	return client_wait(&c, client_submit(&c, sqe));
}

#define TEXT 1024

static air_status load(uint32_t id, const char *image)
{
	struct air_sqe sqe = sqe_head(AIRUNNER_OP_MODULE_LOAD, id);

	memcpy(at(0), image, strlen(image));
	sqe.word[1] = airunner_ref(0, c.arena);
	sqe.word[2] = airunner_ref(0, c.arena + TEXT);
	sqe.word[7] = strlen(image);
	return (air_status)run(&sqe).status;
}

static air_status get(uint32_t id, uint32_t module, const char *name)
{
	struct airunner_function_record *r = (void *)at(0);
	struct air_sqe sqe = sqe_head(AIRUNNER_OP_FUNCTION_GET, id);

	memset(r, 0xaa, sizeof(*r));
	r->size = sizeof(*r);
	r->module = module;
	strcpy(r->name, name);
	sqe.word[1] = airunner_ref(0, c.arena);
	return (air_status)run(&sqe).status;
}

static void test_modules(void **state)
{
	struct air_sqe sqe = sqe_head(AIRUNNER_OP_MODULE_UNLOAD, 1);

	assert_int_equal(load(1, "nonsense"), AIR_BAD_ARGUMENT);
	assert_string_equal(at(TEXT), "that is no code");
	assert_int_equal(load(1, "code: x"), AIR_OK);
	assert_int_equal(load(1, "code: x"), AIR_BAD_ID);
	assert_non_null(strstr(at(TEXT), "module 1"));
	assert_int_equal(load(AIR_MAX_IDS, "code: x"), AIR_QUOTA);
	assert_int_equal(fakes[0].modules, 1);
	assert_int_equal(run(&sqe).status, AIRUNNER_S_OK);
	assert_int_equal(fakes[0].modules, 0);
	assert_int_equal(run(&sqe).status, AIRUNNER_S_BAD_ID);

	sqe = sqe_head(AIRUNNER_OP_MODULE_LOAD, 2);
	sqe.word[1] = airunner_ref(0, c.size - 8);
	sqe.word[2] = AIRUNNER_REF_NONE;
	sqe.word[7] = 9;
	assert_int_equal(run(&sqe).status, AIRUNNER_S_BAD_RANGE);
	sqe.word[7] = 0;
	assert_int_equal(run(&sqe).status, AIRUNNER_S_BAD_ARGUMENT);
	sqe.word[7] = 1ull << 50;
	assert_int_equal(run(&sqe).status, AIRUNNER_S_BAD_ARGUMENT);
	sqe.word[7] = 8;
	sqe.word[2] = airunner_ref(0, c.size - 8);
	assert_int_equal(run(&sqe).detail, 2);
	sqe.word[2] = AIRUNNER_REF_NONE;
	sqe.word[4] = 1;
	assert_int_equal(run(&sqe).status, AIRUNNER_S_BAD_RESERVED);
}

static void test_functions(void **state)
{
	struct airunner_function_record *r = (void *)at(0);
	struct air_sqe sqe = sqe_head(AIRUNNER_OP_FUNCTION_GET, 1);

	assert_int_equal(load(1, "code: x"), AIR_OK);
	assert_int_equal(get(1, 2, "kernel"), AIR_BAD_ID);
	assert_non_null(strstr(r->why, "module 2"));
	assert_int_equal(get(1, 1, "kornel"), AIR_BAD_ARGUMENT);
	assert_string_equal(r->why, "no function kornel");
	assert_int_equal(get(1, 1, "kernel"), AIR_OK);
	assert_int_equal(r->n_params, 2);
	assert_int_equal(r->param_bytes, 24);
	assert_int_equal(r->max_threads, 1024);
	assert_int_equal(r->param[1].offset, 8);
	assert_int_equal(r->why[0], 0);
	assert_int_equal(get(1, 1, "kernel"), AIR_BAD_ID);
	assert_int_equal(get(AIR_MAX_IDS, 1, "kernel"), AIR_QUOTA);

	memset(r->name, 'x', sizeof(r->name));
	sqe.word[1] = airunner_ref(0, c.arena);
	sqe.word[0] = airunner_sqe_head(AIRUNNER_OP_FUNCTION_GET, 0, 0, 2);
	assert_int_equal(run(&sqe).status, AIRUNNER_S_BAD_ARGUMENT);
	r->size--;
	assert_int_equal(run(&sqe).status, AIRUNNER_S_ABI);
	sqe.word[1] = airunner_ref(0, c.size - 8);
	assert_int_equal(run(&sqe).status, AIRUNNER_S_BAD_RANGE);
}

struct parcel {
	struct airunner_launch_record record;
	struct airunner_launch_ref ref[2];
	unsigned char args[24];
};

static struct parcel *good_parcel(void)
{
	struct parcel *p = (void *)at(0);

	memset(p, 0, sizeof(*p));
	p->record.size = sizeof(p->record);
	p->record.n_refs = 2;
	p->record.arg_bytes = 24;
	p->record.shared_bytes = 512;
	for (int i = 0; i < 3; i++) {
		p->record.grid[i] = (uint32_t)i + 2;
		p->record.block[i] = (uint32_t)i + 8;
	}
	p->ref[0].ref = airunner_ref(0, c.arena + 2048);
	p->ref[0].bytes = 100;
	p->ref[0].offset = 0;
	p->ref[1].ref = airunner_ref(0, c.arena + 4096);
	p->ref[1].bytes = 1;
	p->ref[1].offset = 16;
	memset(p->args, 0x55, sizeof(p->args));
	return p;
}

static struct air_sqe launch_sqe(void)
{
	struct air_sqe sqe = sqe_head(AIRUNNER_OP_LAUNCH, 1);

	sqe.word[1] = airunner_ref(0, c.arena);
	sqe.word[7] = sizeof(struct parcel);
	return sqe;
}

static void test_launch(void **state)
{
	struct air_sqe sqe = launch_sqe();
	uint64_t addr, words[3];
	struct parcel *p;
	uint64_t a, b;

	assert_int_equal(load(1, "code: x"), AIR_OK);
	assert_int_equal(get(1, 1, "kernel"), AIR_OK);
	p = good_parcel();
	a = client_submit(&c, &sqe);
	await(&fakes[0].started, 1);
	/* The worker has its copy. */
	memset(p, 0xff, sizeof(*p));
	assert_false(client_done(&c, a, NULL));
	fake_let(0, 1);
	assert_int_equal(client_wait(&c, a).status, AIRUNNER_S_OK);
	assert_int_equal(fakes[0].launch.grid[2], 4);
	assert_int_equal(fakes[0].launch.block[0], 8);
	assert_int_equal(fakes[0].launch.shared_bytes, 512);
	assert_int_equal(fakes[0].launch.arg_bytes, 24);
	memcpy(words, fakes[0].args, sizeof(words));
	addr = (uintptr_t)c.region + 1000000 + c.arena;
	assert_true(words[0] == addr + 2048);
	assert_true(words[1] == 0x5555555555555555);
	assert_true(words[2] == addr + 4096);

	/* Left out is NULL. */
	p = good_parcel();
	p->ref[1].ref = AIRUNNER_REF_NONE;
	fake_let(0, 1);
	assert_int_equal(run(&sqe).status, AIRUNNER_S_OK);
	memcpy(words, fakes[0].args, sizeof(words));
	assert_true(words[2] == 0);

	/* Unloaded while one of its functions runs. */
	good_parcel();
	a = client_submit(&c, &sqe);
	await(&fakes[0].started, 3);
	{
		struct air_sqe unload =
			sqe_head(AIRUNNER_OP_MODULE_UNLOAD, 1);

		b = client_submit(&c, &unload);
	}
	assert_int_equal(run(&sqe).status, AIRUNNER_S_BAD_ID);
	assert_false(client_done(&c, b, NULL));
	assert_int_equal(air_load(&fakes[0].modules, ACQUIRE), 1);
	fake_let(0, 1);
	assert_int_equal(client_wait(&c, a).status, AIRUNNER_S_OK);
	assert_int_equal(client_wait(&c, b).status, AIRUNNER_S_OK);
	assert_int_equal(air_load(&fakes[0].modules, ACQUIRE), 0);
}

/* One change to a good parcel each, and what it is answered. */
static void test_bad_launches(void **state)
{
	struct air_sqe sqe = launch_sqe();
	struct air_cqe cqe;
	struct parcel *p;

	assert_int_equal(load(1, "code: x"), AIR_OK);
	assert_int_equal(get(1, 1, "kernel"), AIR_OK);

#define bad(change, want, want_detail)                                 \
	do {                                                           \
		p = good_parcel();                                     \
		sqe = launch_sqe();                                    \
		change;                                                \
		cqe = run(&sqe);                                       \
		if (cqe.status != AIRUNNER_S_##want ||                 \
		    cqe.detail != (want_detail))                       \
			fail_msg("%s: status %d, detail %u", #change,  \
				 cqe.status, cqe.detail);              \
	} while (0)

	bad(p->record.size--, ABI, 0);
	bad(p->record.resv[1] = 1, BAD_RESERVED, 0);
	bad(p->record.grid[1] = 0, BAD_ARGUMENT, 0);
	bad(p->record.block[2] = 0, BAD_ARGUMENT, 0);
	bad(p->record.n_refs = 3, BAD_ARGUMENT, 0);
	bad(p->record.n_refs = 0xffffffff, BAD_ARGUMENT, 0);
	bad(p->record.arg_bytes = 16, BAD_ARGUMENT, 0);
	bad(p->record.arg_bytes = 0xffffffe8, BAD_ARGUMENT, 0);
	bad(p->ref[0].resv = 1, BAD_RESERVED, 1);
	bad(p->ref[1].ref |= 1ull << 60, BAD_RESERVED, 2);
	bad(p->ref[1].offset = 17, BAD_ARGUMENT, 2);
	bad(p->ref[1].offset = 0xfffffff8, BAD_ARGUMENT, 2);
	bad(p->ref[0].ref = airunner_ref(3, 0), BAD_HANDLE, 1);
	bad(p->ref[0].bytes = c.size - c.arena - 2047, BAD_RANGE, 1);
	bad(p->ref[0].bytes = ~0ull, BAD_RANGE, 1);
	bad(p->ref[0].ref = airunner_ref(0, c.size + 1), BAD_RANGE, 1);
	bad(sqe.word[7]--, BAD_ARGUMENT, 0);
	bad(sqe.word[7] = 63, BAD_ARGUMENT, 7);
	bad(sqe.word[7] = AIRUNNER_MAX_LAUNCH + 1, BAD_ARGUMENT, 7);
	bad(sqe.word[1] = airunner_ref(0, c.size - 64), BAD_RANGE, 1);
	bad(sqe.word[1] += 4, BAD_ALIGN, 1);
	bad(sqe.word[1] = airunner_ref(4, 0), BAD_HANDLE, 1);
	bad(sqe.word[3] = 1, BAD_RESERVED, 3);
	bad(sqe.word[0] = airunner_sqe_head(AIRUNNER_OP_LAUNCH, 0, 0, 2),
	    BAD_ID, 0);
	assert_int_equal(fakes[0].started, 0);
}

#define both(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		both(test_modules),
		both(test_functions),
		both(test_launch),
		both(test_bad_launches),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
