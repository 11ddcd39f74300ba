// SPDX-License-Identifier: MIT
/*
 * airunner info
 */
#include <argp.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <airunner.h>
#include <airunner/ops.h>

#include "include/uapi/airunner.h"
#include "libairunner/cli/cli.h"

static const char doc[] = "Show the executors of a device.";

static const struct argp_option options[] = {
	{ "device", 'd', "WHERE", 0,
	  "inproc:, unix:PATH, or the path of a device", 0 },
	{ "json", 'j', NULL, 0, "print JSON", 0 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct cli *cli = state->input;

	switch (key) {
	case 'd':
		cli->device = arg;
		return 0;
	case 'j':
		cli->json = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = { options, parse, NULL, doc, NULL, NULL, NULL };

static const char *const op_names[] = {
#define NAME(name) [AIR_OP_##name] = #name,
	AIR_OPS(NAME)
#undef NAME
};

static void print_ops(uint64_t ops, const char *quote, const char *between)
{
	bool first = true;

	for (unsigned int id = 1; id < AIR_OP_COUNT; id++) {
		if (!(ops >> id & 1))
			continue;
		printf("%s%s%s%s", first ? "" : between, quote, op_names[id],
		       quote);
		first = false;
	}
}

static void show_executor(const struct air_backend_caps *c)
{
	printf("  %-14s", cli_executor((air_executor)c->executor));
	if (!c->present) {
		printf("absent%s%s\n", c->name[0] ? ": " : "", c->name);
		return;
	}
	printf("%s\n", c->name);
	if (c->threads)
		printf("%16s%u %s\n", "", c->threads,
		       c->executor == AIR_EXEC_CPU ? "threads" :
						     "multiprocessors");
	if (c->memory)
		printf("%16s%.1f GiB of its own memory\n", "",
		       (double)c->memory / (1 << 30));
	printf("%16s", "");
	print_ops(c->ops, "", " ");
	printf("\n");
	if (c->user_kernels)
		printf("%16slaunches kernels of the user's own\n", "");
	if (c->park_ns == UINT64_MAX)
		printf("%16snever leaves an idle GPU\n", "");
	else if (c->park_ns)
		printf("%16sleaves an idle GPU after %.3f ms\n", "",
		       (double)c->park_ns / 1e6);
}

static void show_executor_json(const struct air_backend_caps *c, bool first)
{
	printf("%s\n    {\"executor\": \"%s\", \"present\": %s, \"threads\": "
	       "%u, "
	       "\"memory\": %llu, \"user_kernels\": %s, \"park_ns\": %llu, "
	       "\"large_bytes\": %llu, \"large_alone\": %s, \"name\": ",
	       first ? "" : ",", cli_executor((air_executor)c->executor),
	       c->present ? "true" : "false", c->threads,
	       (unsigned long long)c->memory,
	       c->user_kernels ? "true" : "false",
	       (unsigned long long)c->park_ns,
	       (unsigned long long)c->large_bytes,
	       c->large_alone ? "true" : "false");
	cli_json_string(c->name);
	printf(", \"ops\": [");
	print_ops(c->ops, "\"", ", ");
	printf("]}");
}

/* What only the module can tell. False: it does not. */
static bool module_info(const struct cli *cli, struct airunner_info *info)
{
	const char *path = cli->device ? cli->device : AIRUNNER_DEVICE;
	int fd = open(path, O_RDWR | O_CLOEXEC);
	bool ok;

	if (fd < 0)
		return false;
	*info = (struct airunner_info){ .size = sizeof(*info) };
	ok = ioctl(fd, AIRUNNER_IOC_GET_INFO, info) == 0;
	close(fd);
	return ok;
}

static void show_module(const struct airunner_info *i, bool json)
{
	static const char *const features[] = { "buffers", "hugetlb", "eventfd",
						"io_uring", "thread-classes" };
	bool first = true;

	if (json)
		printf("  \"module\": {\"abi\": \"%u.%u\", \"workers\": %u, "
		       "\"max_region\": %llu, \"max_channels\": %u, "
		       "\"max_buffers\": %u, \"features\": [",
		       i->abi_major, i->abi_minor, i->workers,
		       (unsigned long long)i->max_region, i->max_channels,
		       i->max_buffers);
	else
		printf("module: ABI %u.%u, workers attached: %u\n"
		       "        regions up to %llu bytes, %u channels a user, "
		       "%u buffers a channel\n"
		       "        ",
		       i->abi_major, i->abi_minor, i->workers,
		       (unsigned long long)i->max_region, i->max_channels,
		       i->max_buffers);
	for (unsigned int b = 0; b < 5; b++) {
		if (!(i->features >> b & 1))
			continue;
		printf(json ? "%s\"%s\"" : "%s%s", first ? "" : ", ",
		       features[b]);
		first = false;
	}
	printf(json ? "]},\n" : "\n");
}

int cli_info(struct cli *cli, int argc, char **argv)
{
	struct airunner_info info;
	int status = CLI_OK;
	air_device *dev;

	argp_parse(&argp, argc, argv, 0, NULL, cli);
	dev = cli_open(cli);
	if (!dev)
		return CLI_NO_DEVICE;
	printf(cli->json ? "{\"version\": \"%s\",\n  \"reached\": \"%s\",\n" :
			   "airunner %s: %s\n",
	       air_version(), cli_transport(dev));
	if (air_device_transport(dev) == AIR_KERNEL && module_info(cli, &info))
		show_module(&info, cli->json);
	printf(cli->json ? "  \"executors\": [" : "executors:\n");
	for (int e = AIR_EXEC_CPU; e <= AIR_EXEC_CUDA_RESIDENT; e++) {
		struct air_backend_caps caps = { .size = sizeof(caps) };

		if (air_backend_caps(dev, (air_executor)e, &caps) != AIR_OK) {
			fprintf(stderr, "airunner: %s\n", air_last_error());
			status = CLI_FAILED;
			break;
		}
		if (cli->json)
			show_executor_json(&caps, e == AIR_EXEC_CPU);
		else
			show_executor(&caps);
	}
	if (cli->json)
		printf("]}\n");
	air_close(dev);
	return status;
}
