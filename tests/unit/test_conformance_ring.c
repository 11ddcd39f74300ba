// SPDX-License-Identifier: MIT
/*
 * The operators through a channel, on any executor:
 *
 *	test_conformance_ring [--open WHERE] [--executor cpu|launch|resident]
 *		[--memory host|device] [OPERATOR]
 *
 * WHERE is what air_open() takes; "inproc:" if not given. CONF_SEED=N in the
 * environment repeats a run's random data.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/conformance.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LIGHT true
#else
#define LIGHT false
#endif

static void usage(void)
{
	fprintf(stderr,
		"usage: test_conformance_ring [--open WHERE] [--executor cpu|launch|resident] [--memory host|device] [OPERATOR]\n");
	exit(2);
}

static air_executor executor(const char *name)
{
	if (!strcmp(name, "cpu"))
		return AIR_EXEC_CPU;
	if (!strcmp(name, "launch"))
		return AIR_EXEC_CUDA_LAUNCH;
	if (!strcmp(name, "resident"))
		return AIR_EXEC_CUDA_RESIDENT;
	usage();
	return AIR_EXEC_ANY;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "open", required_argument, NULL, 'o' },
		{ "executor", required_argument, NULL, 'e' },
		{ "memory", required_argument, NULL, 'm' },
		{ 0 },
	};
	struct conf_options opt = { .light = LIGHT };
	struct conf_totals totals = { 0 };
	air_executor which = AIR_EXEC_CPU;
	air_memory memory = AIR_HOST;
	const char *where = "inproc:";
	struct conf_executor ex;
	struct conf_ring *c;
	int ch;

	setvbuf(stdout, NULL, _IOLBF, 0);
	while ((ch = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (ch == 'o')
			where = optarg;
		else if (ch == 'e')
			which = executor(optarg);
		else if (ch == 'm')
			memory = strcmp(optarg, "device") ? AIR_HOST
							  : AIR_DEVICE;
		else
			usage();
	}
	opt.op = argv[optind];
	opt.label = memory == AIR_DEVICE ? " (device memory, ring)" : " (ring)";
	opt.seed = conf_seed();
	c = conf_ring_open(where, which, memory, &ex);
	conf_run(&ex, &opt, &totals);
	conf_ring_close(c);
	printf("# %u passed, %u failed, %u unsupported\n", totals.passed,
	       totals.failed, totals.unsupported);
	return totals.failed || !totals.passed;
}
