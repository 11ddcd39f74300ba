// SPDX-License-Identifier: MIT
/*
 * The ring on a GPU against launching directly. tests/bench/run.sh gpu runs
 * this; every wait has an end: the alarm is the last of them.
 */
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/bench/gpu.h"
#include "tests/bench/session.h"

#define LIMIT_S 480

const struct gpu_executor gpu_executors[2] = {
	{ "cuda-launch", AIR_EXEC_CUDA_LAUNCH },
	{ "cuda-resident", AIR_EXEC_CUDA_RESIDENT },
};

static void describe(struct bench *b)
{
	char name[128], versions[128];

	direct_describe(name, sizeof(name), versions, sizeof(versions));
	bench_machine(b, "gpu", name);
	bench_machine(b, "cuda", versions);
	printf("%s; %s\n", name, versions);
}

static air_device *open_device(void)
{
	struct air_device_options o = {
		.size = sizeof(o),
		.threads = 1,
		.spin_ns = SPIN_NS,
	};
	air_device *dev;

	bench_pin(bench_cpu(1));
	bench_check(air_open("inproc:", &o, &dev), "air_open");
	bench_pin(bench_cpu(0));
	return dev;
}

static void run_executor(struct bench *b, air_device *dev,
			 const struct gpu_executor *x)
{
	struct air_backend_caps caps = { .size = sizeof(caps) };

	if (air_backend_caps(dev, x->id, &caps) != AIR_OK || !caps.present) {
		bench_absent(b, x->name,
			     caps.name[0] ? caps.name : "not in this build");
		return;
	}
	printf("%s: %s\n", x->name, caps.name);
	bench_group(b, x->name);
	gpu_rows(b, dev, x->id);
	bench_group(b, NULL);
}

int main(int argc, char **argv)
{
	char self[4096], daemon[4200], why[256];
	struct bench *b;
	air_device *dev;

	/* A kernel that is loaded late waits for one that is resident. */
	setenv("CUDA_MODULE_LOADING", "EAGER", 1);
	alarm(LIMIT_S);
	snprintf(self, sizeof(self), "%s", argv[0]);
	snprintf(daemon, sizeof(daemon), "%s/airunnerd", dirname(self));
	b = bench_open(argc, argv);
	gpu_processes(b, daemon);
	bench_pin(bench_cpu(0));
	if (!direct_init(why, sizeof(why)))
		bench_fail("no GPU to measure on: %s", why);
	describe(b);
	dev = open_device();
	for (size_t i = 0; i < 2; i++)
		run_executor(b, dev, &gpu_executors[i]);
	bench_check(air_close(dev), "air_close");
	return bench_close(b);
}
