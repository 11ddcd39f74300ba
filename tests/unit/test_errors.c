// SPDX-License-Identifier: MIT
/*
 * Statuses and sentences, versions of options, opening.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <airunner/cuda.h>

#include "libairunner/error.h"

#define assert_sentence(part) assert_non_null(strstr(air_last_error(), part))

static const air_status statuses[] = {
	AIR_OK,		  AIR_PENDING,	    AIR_FULL,	      AIR_TIMEOUT,
	AIR_CANCELED,	  AIR_BUSY,	    AIR_BAD_OPCODE,   AIR_BAD_FLAGS,
	AIR_BAD_ID,	  AIR_BAD_HANDLE,   AIR_BAD_RANGE,    AIR_BAD_ALIGN,
	AIR_BAD_RESERVED, AIR_BAD_TOKEN,    AIR_BAD_ARGUMENT, AIR_BAD_OPERATOR,
	AIR_BAD_DTYPE,	  AIR_BAD_SHAPE,    AIR_BAD_STRIDES,  AIR_BAD_ATTRIBUTE,
	AIR_ALIASING,	  AIR_WORKSPACE,    AIR_UNSUPPORTED,  AIR_NO_MEMORY,
	AIR_NO_DEVICE,	  AIR_DEVICE_FAULT, AIR_DEVICE_LOST,  AIR_NO_WORKER,
	AIR_WORKER_DIED,  AIR_CHANNEL_DEAD, AIR_RESET,	      AIR_PERMISSION,
	AIR_MEMLOCK,	  AIR_QUOTA,	    AIR_SYSTEM,	      AIR_FORKED,
	AIR_ABI,
};

#define N (sizeof(statuses) / sizeof(statuses[0]))

static void test_each_status_has_its_sentence(void **state)
{
	for (unsigned int i = 0; i < N; i++) {
		const char *s = air_status_string(statuses[i]);

		assert_non_null(s);
		assert_true(strlen(s) > 5);
		assert_string_not_equal(s, "unknown status");
		for (unsigned int j = 0; j < i; j++)
			assert_string_not_equal(s,
						air_status_string(statuses[j]));
	}
}

static void test_unknown_status(void **state)
{
	static const int unknown[] = { -1, 6, 15, 62, 255, 256, 1 << 30 };

	for (unsigned int i = 0; i < sizeof(unknown) / sizeof(int); i++)
		assert_string_equal(air_status_string((air_status)unknown[i]),
				    "unknown status");
}

static void *other_thread(void *arg)
{
	if (strcmp(air_last_error(), ""))
		return "there was an error already";
	air_error_set(AIR_BUSY, "theirs");
	return strcmp(air_last_error(), "theirs") ? "not theirs" : NULL;
}

static void test_last_error_is_the_threads(void **state)
{
	pthread_t thread;
	void *wrong;

	assert_int_equal(air_error_set(AIR_BUSY, "mine %d", 1), AIR_BUSY);
	assert_int_equal(pthread_create(&thread, NULL, other_thread, NULL), 0);
	pthread_join(thread, &wrong);
	if (wrong)
		fail_msg("%s", (char *)wrong);
	assert_string_equal(air_last_error(), "mine 1");
}

static void test_sentence_may_quote_the_last(void **state)
{
	air_error_set(AIR_BUSY, "inner");
	air_error_set(AIR_BUSY, "outer: %s", air_last_error());
	assert_string_equal(air_last_error(), "outer: inner");
}

static void test_long_sentence_is_cut(void **state)
{
	char text[1000];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	air_error_set(AIR_BUSY, "%s", text);
	assert_true(strlen(air_last_error()) < sizeof(text));
	assert_true(strlen(air_last_error()) > 200);
}

static void test_version(void **state)
{
	char want[32];

	snprintf(want, sizeof(want), "%d.%d.%d", AIR_VERSION_MAJOR,
		 AIR_VERSION_MINOR, AIR_VERSION_PATCH);
	assert_string_equal(air_version(), want);
}

static void test_open_refuses(void **state)
{
	struct air_device_options o = { .size = sizeof(o) };
	char path[300];
	air_device *dev = NULL;

	assert_int_equal(air_open("inproc:", NULL, NULL), AIR_BAD_ARGUMENT);
	assert_int_equal(air_open("tcp:host", NULL, &dev), AIR_BAD_ARGUMENT);
	assert_sentence("\"tcp:host\"");
	assert_sentence("inproc:");
	assert_int_equal(air_open("inproc:extra", NULL, &dev),
			 AIR_BAD_ARGUMENT);
	assert_int_equal(air_open("unix:", NULL, &dev), AIR_BAD_ARGUMENT);
	snprintf(path, sizeof(path), "unix:%0200d", 0);
	assert_int_equal(air_open(path, NULL, &dev), AIR_BAD_ARGUMENT);
	assert_sentence("107 characters");
	assert_int_equal(air_open("unix:/nonexistent/socket", NULL, &dev),
			 AIR_NO_DEVICE);
	assert_sentence("airunnerd");
	assert_int_equal(air_open("/dev/nonexistent", NULL, &dev),
			 AIR_NO_DEVICE);
	assert_sentence("modprobe");
	assert_int_equal(air_open("/dev/null", NULL, &dev), AIR_NO_DEVICE);
	assert_sentence("not an airunner device");
	assert_int_equal(air_open("/", NULL, &dev), AIR_SYSTEM);
	assert_sentence("Is a directory");
	snprintf(path, sizeof(path), "/dev/%0200d", 0);
	assert_int_equal(air_open(path, NULL, &dev), AIR_BAD_ARGUMENT);
	o.size = 0;
	assert_int_equal(air_open("inproc:", &o, &dev), AIR_BAD_ARGUMENT);
	assert_sentence("sizeof");
	o.size = sizeof(o);
	o.large_alone = 2;
	assert_int_equal(air_open("inproc:", &o, &dev), AIR_BAD_ARGUMENT);
	assert_sentence("large_alone is 2");
	o.large_alone = 1;
	o.reserved = 7;
	assert_int_equal(air_open("inproc:", &o, &dev), AIR_BAD_ARGUMENT);
	assert_sentence("reserved is 7");
	o.reserved = 0;
	o.executors = "abacus";
	assert_int_not_equal(air_open("inproc:", &o, &dev), AIR_OK);
	assert_sentence("abacus");
	assert_null(dev);
	assert_int_equal(air_close(NULL), AIR_OK);
}

static void test_environment_names_the_device(void **state)
{
	air_device *dev;

	setenv("AIRUNNER", "nonsense", 1);
	assert_int_equal(air_open(NULL, NULL, &dev), AIR_BAD_ARGUMENT);
	setenv("AIRUNNER", "inproc:", 1);
	assert_int_equal(air_open(NULL, NULL, &dev), AIR_OK);
	assert_int_equal(air_device_transport(dev), AIR_INPROC);
	assert_int_equal(air_close(dev), AIR_OK);
	unsetenv("AIRUNNER");
}

static void test_caps(void **state)
{
	struct air_backend_caps caps = { .size = sizeof(caps) };
	struct air_device_options o = { .size = sizeof(o),
					.threads = 1,
					.executors = "cpu" };
	air_device *dev;

	assert_int_equal(air_open("inproc:", &o, &dev), AIR_OK);
	assert_int_equal(air_backend_caps(NULL, AIR_EXEC_CPU, &caps),
			 AIR_BAD_ARGUMENT);
	assert_int_equal(air_backend_caps(dev, AIR_EXEC_CPU, NULL),
			 AIR_BAD_ARGUMENT);
	assert_int_equal(air_backend_caps(dev, AIR_EXEC_ANY, &caps),
			 AIR_BAD_ARGUMENT);
	assert_int_equal(air_backend_caps(dev, (air_executor)7, &caps),
			 AIR_BAD_ARGUMENT);
	assert_sentence("executor 7");
	assert_int_equal(air_backend_caps(dev, AIR_EXEC_CPU, &caps), AIR_OK);
	assert_int_equal(caps.executor, AIR_EXEC_CPU);
	assert_int_equal(caps.present, 1);
	assert_int_equal(caps.threads, 1);
	assert_int_equal(caps.host_buffers, 1);
	assert_true(caps.ops & 1u << 1);
	assert_true(strlen(caps.name) > 0);
	assert_int_equal(air_backend_caps(dev, AIR_EXEC_CUDA_LAUNCH, &caps),
			 AIR_OK);
	assert_int_equal(caps.present, 0);
	/* A caller of an older version gets no more than it has room for. */
	memset(&caps, 0x5a, sizeof(caps));
	caps.size = offsetof(struct air_backend_caps, threads);
	assert_int_equal(air_backend_caps(dev, AIR_EXEC_CPU, &caps), AIR_OK);
	assert_int_equal(caps.present, 1);
	assert_int_equal(caps.threads, 0x5a5a5a5a);
	caps.size = 1;
	assert_int_equal(air_backend_caps(dev, AIR_EXEC_CPU, &caps),
			 AIR_BAD_ARGUMENT);
	assert_int_equal(air_close(dev), AIR_OK);
}

/* Nothing stays on a CPU: the pair is there and has nothing to do. */
static void test_quiet(void **state)
{
	struct air_device_options o = { .size = sizeof(o),
					.threads = 1,
					.executors = "cpu" };
	air_device *dev;

	assert_int_equal(air_quiet_begin(NULL), AIR_BAD_ARGUMENT);
	assert_sentence("device is NULL");
	assert_int_equal(air_quiet_end(NULL), AIR_BAD_ARGUMENT);
	assert_int_equal(air_open("inproc:", &o, &dev), AIR_OK);
	assert_int_equal(air_quiet_end(dev), AIR_BAD_ARGUMENT);
	assert_sentence("nothing has begun");
	assert_int_equal(air_quiet_begin(dev), AIR_OK);
	assert_int_equal(air_quiet_begin(dev), AIR_OK);
	assert_int_equal(air_quiet_end(dev), AIR_OK);
	assert_int_equal(air_quiet_end(dev), AIR_OK);
	assert_int_equal(air_quiet_end(dev), AIR_BAD_ARGUMENT);
	assert_int_equal(air_close(dev), AIR_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_status_has_its_sentence),
		cmocka_unit_test(test_unknown_status),
		cmocka_unit_test(test_last_error_is_the_threads),
		cmocka_unit_test(test_sentence_may_quote_the_last),
		cmocka_unit_test(test_long_sentence_is_cut),
		cmocka_unit_test(test_version),
		cmocka_unit_test(test_open_refuses),
		cmocka_unit_test(test_environment_names_the_device),
		cmocka_unit_test(test_caps),
		cmocka_unit_test(test_quiet),
	};

	return cmocka_run_group_tests_name("errors", tests, NULL, NULL);
}
