// SPDX-License-Identifier: MIT
/*
 * airunner: look at a device, and try it.
 */
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libairunner/cli/cli.h"

/* The C library's argp looks it up, so it must not be hidden. */
__attribute__((visibility("default"))) const char *argp_program_version =
	"airunner 0.1.0";

static const char doc[] =
	"Look at an airunner device, and try it."
	"\vCommands:\n"
	"  info      executors of the device, and what the module says\n"
	"  selftest  run operators through the ring and check the results\n"
	"\n"
	"Without --device it is the one named by the environment variable "
	"AIRUNNER, else /dev/airunner if that can be opened, else a worker in "
	"this process. Exit status: 0 all is well, 1 something is wrong, 2 the "
	"device cannot be opened, 64 wrong usage.";

static const struct argp_option options[] = {
	{ "device", 'd', "WHERE", 0,
	  "inproc:, unix:PATH, or the path of a device", 0 },
	{ "json", 'j', NULL, 0, "print JSON", 0 },
	{ 0 },
};

static const struct {
	const char *name;
	int (*run)(struct cli *cli, int argc, char **argv);
} commands[] = {
	{ "info", cli_info },
	{ "selftest", cli_selftest },
};

struct arguments {
	struct cli cli;
	int command; /* index in argv */
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct arguments *a = state->input;

	switch (key) {
	case 'd':
		a->cli.device = arg;
		return 0;
	case 'j':
		a->cli.json = true;
		return 0;
	case ARGP_KEY_ARG:
		/* The rest is the command's. */
		a->command = state->next - 1;
		state->next = state->argc;
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_usage(state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = { options, parse, "COMMAND [OPTION...]",
				  doc,	   NULL,  NULL,
				  NULL };

air_device *cli_open(const struct cli *cli)
{
	air_device *dev;

	if (air_open(cli->device, NULL, &dev) == AIR_OK)
		return dev;
	fprintf(stderr, "airunner: %s\n", air_last_error());
	return NULL;
}

const char *cli_transport(const air_device *dev)
{
	switch (air_device_transport(dev)) {
	case AIR_INPROC:
		return "a worker in this process";
	case AIR_UNIX:
		return "airunnerd behind a socket";
	case AIR_KERNEL:
		return "airunnerd behind the module";
	default:
		return "unknown";
	}
}

const char *cli_executor(air_executor executor)
{
	switch (executor) {
	case AIR_EXEC_CPU:
		return "cpu";
	case AIR_EXEC_CUDA_LAUNCH:
		return "cuda-launch";
	case AIR_EXEC_CUDA_RESIDENT:
		return "cuda-resident";
	default:
		return "any";
	}
}

void cli_json_string(const char *s)
{
	putchar('"');
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			printf("\\%c", *s);
		else if ((unsigned char)*s < 0x20)
			printf("\\u%04x", (unsigned char)*s);
		else
			putchar(*s);
	}
	putchar('"');
}

int main(int argc, char **argv)
{
	struct arguments a = { .command = 0 };

	argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &a);
	for (unsigned int i = 0; i < sizeof(commands) / sizeof(commands[0]);
	     i++)
		if (!strcmp(argv[a.command], commands[i].name))
			return commands[i].run(&a.cli, argc - a.command,
					       argv + a.command);
	fprintf(stderr, "airunner: no such command: %s (try --help)\n",
		argv[a.command]);
	return 64;
}
