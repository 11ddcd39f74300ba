// SPDX-License-Identifier: MIT
/*
 * A kernel of a user's breaks the device, three times: it is told, and each
 * time later work runs, with what was made before. With the driver that runs
 * nothing (fake_cuda.c), which takes a kernel called "stray" for such a one:
 *
 *	afresh inproc:			the worker makes another context
 *	FAKE_CUDA_SPENT=1 served.sh airunnerd afresh
 *					there is none: another worker comes
 */
#include <err.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <airunner/launch.h>

#define TRY(call)                                   \
	do {                                        \
		if (call)                           \
			errx(1, "%s: %s", #call,    \
			     air_last_error());     \
	} while (0)

#define TIME_LIMIT INT64_C(30000000000)

static air_channel *ch;

static air_status launch(air_function *f)
{
	struct air_launch_config config = { .size = sizeof(config),
					    .grid = { 1, 1, 1 },
					    .block = { 1, 1, 1 } };
	uint64_t arg = 0;
	air_token token;
	air_status st =
		air_launch(f, &config, &arg, sizeof(arg), NULL, 0, &token);

	return st ? st : air_wait(ch, token, TIME_LIMIT, NULL);
}

int main(int argc, char **argv)
{
	static const char image[64] = "the driver that runs nothing takes it";
	air_function *good, *stray;
	air_module *module;
	air_device *dev;
	air_status st;

	if (argc < 2)
		errx(2, "usage: afresh WHERE");
	alarm(120);
	TRY(air_open(argv[1], NULL, &dev));
	TRY(air_channel_create(dev, NULL, &ch));
	TRY(air_module_load(ch, image, sizeof(image), &module));
	TRY(air_function_get(module, "good", &good));
	TRY(air_function_get(module, "stray", &stray));
	TRY(launch(good));
	for (int turn = 1; turn <= 3; turn++) {
		st = launch(stray);
		if (st != AIR_DEVICE_FAULT)
			errx(1, "not ok %d: the culprit ended with %d (%s)",
			     turn, st, air_status_string(st));
		st = launch(good);
		for (int i = 0; st && i < 3000; i++) {
			usleep(10000);
			st = launch(good);
		}
		if (st)
			errx(1, "not ok %d: nothing runs any more: %s", turn,
			     air_last_error());
	}
	TRY(air_module_unload(module));
	TRY(air_channel_destroy(ch));
	TRY(air_close(dev));
	printf("ok three faults, %s\n", argv[1]);
	return 0;
}
