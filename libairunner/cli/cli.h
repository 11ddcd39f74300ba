/* SPDX-License-Identifier: MIT */
/*
 * The airunner command: one file a subcommand.
 */
#ifndef AIR_CLI_H
#define AIR_CLI_H

#include <stdbool.h>

#include <airunner.h>

/**
 * struct cli - what all subcommands take
 * @device: for air_open(); NULL for its default
 * @json: for programs instead of humans
 */
struct cli {
	const char *device;
	bool json;
};

/* Exit statuses; a check that failed and one that could not be made differ. */
enum { CLI_OK = 0, CLI_FAILED = 1, CLI_NO_DEVICE = 2 };

/* Each parses the rest of the command line; argv[0] is its name. */
int cli_info(struct cli *cli, int argc, char **argv);
int cli_selftest(struct cli *cli, int argc, char **argv);

/* Open cli->device, or say why not. NULL then. */
air_device *cli_open(const struct cli *cli);

const char *cli_transport(const air_device *dev);
/* "cpu" */
const char *cli_executor(air_executor executor);

/* Print @s as a JSON string. */
void cli_json_string(const char *s);

#endif /* AIR_CLI_H */
