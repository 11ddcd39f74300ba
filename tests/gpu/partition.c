// SPDX-License-Identifier: MIT
/*
 * AIRUNNER_RESIDENT_PARTITION and AIRUNNER_RESIDENT_BLOCKS: how many blocks the
 * resident kernel has, as the capabilities say. For the driver of fake_cuda.h,
 * whose GPU has 132 multiprocessors.
 *
 *	AIRUNNER_LIBCUDA=.../libfake-cuda.so partition
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <airunner.h>

static void set(const char *name, const char *value)
{
	if (value)
		setenv(name, value, 1);
	else
		unsetenv(name);
}

static int blocks(void)
{
	struct air_device_options options = {
		.size = sizeof(options),
		.executors = "cuda",
	};
	struct air_backend_caps caps = { .size = sizeof(caps) };
	const char *comma;
	air_device *dev;
	int n = -1;

	if (air_open("inproc:", &options, &dev) != AIR_OK) {
		printf("%s\n", air_last_error());
		return -1;
	}
	if (air_backend_caps(dev, AIR_EXEC_CUDA_RESIDENT, &caps) == AIR_OK) {
		comma = strrchr(caps.name, ',');
		n = comma ? atoi(comma + 1) : -1;
	}
	air_close(dev);
	return n;
}

int main(void)
{
	static const struct {
		const char *partition, *blocks;
		int expected;
	} rows[] = {
		{ NULL, NULL, 123 },  { NULL, "8", 8 },	    { "8", NULL, 8 },
		{ "4", NULL, 4 },     { "12", NULL, 12 },   { "16", "4", 4 },
		{ "8", "100", 8 },    { "100", NULL, 123 }, { "-1", NULL, 123 },
		{ "200", NULL, 123 }, { "none", "16", 16 },
	};
	int bad = 0;

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		int n;

		set("AIRUNNER_RESIDENT_PARTITION", rows[i].partition);
		set("AIRUNNER_RESIDENT_BLOCKS", rows[i].blocks);
		n = blocks();
		if (n == rows[i].expected)
			continue;
		printf("FAIL partition %s, blocks %s: %d blocks, expected %d\n",
		       rows[i].partition ? rows[i].partition : "-",
		       rows[i].blocks ? rows[i].blocks : "-", n,
		       rows[i].expected);
		bad = 1;
	}
	if (!bad)
		puts("ok partition");
	return bad;
}
