// SPDX-License-Identifier: MIT
/*
 * airunnerd: the worker as a program.
 */
#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "ops/worker/daemon/daemon.h"

/* The C library's argp looks it up, so it must not be hidden. */
__attribute__((visibility("default"))) const char *argp_program_version =
	"airunnerd 0.1.0";

static const char doc[] =
	"Serve the channels of /dev/airunner, of a Unix socket, or of both."
	"\vWithout --device and --listen it serves /dev/airunner. It ends on "
	"SIGTERM and SIGINT, after what had been submitted has been run and "
	"answered.";

enum {
	KEY_SPIN = 0x100,
	KEY_PARK,
	KEY_LARGE,
	KEY_ALONE,
	KEY_DRAIN,
	KEY_OWN,
	KEY_CORES,
	KEY_MODE,
	KEY_GROUP,
};

static const struct argp_option options[] = {
	{ "device", 'd', "PATH", 0, "serve this device of the module", 0 },
	{ "listen", 'l', "PATH", 0,
	  "listen on a Unix socket; @NAME for an abstract one", 0 },
	{ "mode", KEY_MODE, "OCTAL", 0, "of the socket's file (0660)", 0 },
	{ "group", KEY_GROUP, "NAME", 0, "of the socket's file", 0 },
	{ "own", KEY_OWN, NULL, 0,
	  "serve only channels of the same user; needs no privilege", 0 },
	{ "name", 'n', "NAME", 0, "what the worker is called (airunnerd)", 1 },
	{ "executors", 'e', "LIST", 0,
	  "cpu, cuda, cuda-launch, cuda-resident; all that work here", 1 },
	{ "threads", 't', "N", 0, "of the CPU executor; one a core", 1 },
	{ "ai-cores", KEY_CORES, NULL, 0,
	  "run on the cores that the module sets aside", 1 },
	{ "spin-us", KEY_SPIN, "N", 0,
	  "poll an empty ring for so long before sleeping (20)", 2 },
	{ "park-us", KEY_PARK, "N", 0,
	  "idle time after which the GPU is let go (1000)", 2 },
	{ "large-kib", KEY_LARGE, "N", 0,
	  "the resident kernel leaves before launches that touch more (8192)",
	  2 },
	{ "large-alone", KEY_ALONE, NULL, 0,
	  "and stays away until they have completed", 2 },
	{ "drain-ms", KEY_DRAIN, "N", 0,
	  "wait so long for running operators at the end (5000)", 2 },
	{ "quiet", 'q', NULL, 0, "log only warnings and errors", 3 },
	{ "verbose", 'v', NULL, 0, "log what is of interest in debugging", 3 },
	{ 0 },
};

struct arguments {
	const char *device;
	struct air_unix_config listen;
	struct air_worker_config worker;
	bool own;
	bool ai_cores;
};

static enum air_log_level log_level = AIR_LOG_INFO;

/* One line an event, with the time: nobody else may be adding it. */
static void log_line(enum air_log_level level, const char *text)
{
	static const char *const names[] = { "error", "warning", "info",
					     "debug" };
	struct timespec ts;

	if (level > log_level)
		return;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	fprintf(stderr, "[%5lld.%06ld] %s: %s\n", (long long)ts.tv_sec,
		ts.tv_nsec / 1000, names[level], text);
}

static uint64_t number(struct argp_state *state, const char *arg,
		       unsigned int base, uint64_t max)
{
	char *end;
	unsigned long long n;

	errno = 0;
	n = strtoull(arg, &end, (int)base);
	if (errno || end == arg || *end || *arg == '-' || n > max)
		argp_error(state, "\"%s\": a number up to %llu is expected",
			   arg, (unsigned long long)max);
	return n;
}

static int group_of(struct argp_state *state, const char *name)
{
	struct group *group = getgrnam(name);

	if (!group)
		argp_error(state, "there is no group \"%s\"", name);
	return group ? (int)group->gr_gid : -1;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct arguments *a = state->input;

	switch (key) {
	case 'd':
		a->device = arg;
		break;
	case 'l':
		a->listen.path = arg;
		break;
	case KEY_MODE:
		a->listen.mode = (unsigned int)number(state, arg, 8, 07777);
		break;
	case KEY_GROUP:
		a->listen.group = group_of(state, arg);
		break;
	case KEY_OWN:
		a->own = true;
		break;
	case 'n':
		a->worker.name = arg;
		break;
	case 'e':
		a->worker.executors = arg;
		break;
	case 't':
		a->worker.threads = (uint32_t)number(state, arg, 10, 4096);
		break;
	case KEY_CORES:
		a->ai_cores = true;
		break;
	case KEY_SPIN:
		a->worker.spin_ns = number(state, arg, 10, 1000000000) * 1000;
		/* 0 is the default of the worker, and not what was asked for */
		if (!a->worker.spin_ns)
			a->worker.spin_ns = 1;
		break;
	case KEY_PARK:
		a->worker.park_ns =
			number(state, arg, 10, 1000000000000) * 1000;
		if (!a->worker.park_ns)
			a->worker.park_ns = 1;
		break;
	case KEY_LARGE:
		a->worker.large_bytes =
			number(state, arg, 10, UINT64_MAX >> 10) << 10;
		if (!a->worker.large_bytes)
			a->worker.large_bytes = 1;
		break;
	case KEY_ALONE:
		a->worker.large_alone = true;
		break;
	case KEY_DRAIN:
		a->worker.drain_ns = number(state, arg, 10, 1000000) * 1000000;
		break;
	case 'q':
		log_level = AIR_LOG_WARNING;
		break;
	case 'v':
		log_level = AIR_LOG_DEBUG;
		break;
	case ARGP_KEY_ARG:
		argp_error(state, "unexpected argument \"%s\"", arg);
		break;
	case ARGP_KEY_END:
		if (!a->device && !a->listen.path)
			a->device = AIRUNNER_DEVICE;
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static struct air_worker *signalled;
static unsigned int last_call;
static bool spent;

/*
 * An operator that does not come to an end on the CPU has the worker's thread
 * for itself, and nothing there could see that the time is up.
 */
static void on_alarm(int sig)
{
	static const char text[] =
		"airunnerd: an operator did not end in time; giving up\n";
	ssize_t n = write(STDERR_FILENO, text, sizeof(text) - 1);

	(void)n;
	_exit(EXIT_FAILURE);
}

static void on_signal(int sig)
{
	int saved = errno;

	air_worker_stop_async(signalled);
	alarm(last_call);
	errno = saved;
}

/* What is outstanding is answered; whoever started this starts another. */
static void on_spent(void)
{
	air_log(AIR_LOG_ERROR,
		"a device is lost to this process: ending, to be started again");
	air_store(&spent, true, RELEASE);
	air_worker_stop_async(signalled);
}

static void catch_signals(struct air_worker *w, uint64_t drain_ns)
{
	struct sigaction stop = { .sa_handler = on_signal };
	struct sigaction late = { .sa_handler = on_alarm };

	signalled = w;
	last_call = (unsigned int)(drain_ns / 1000000000) + 3;
	sigaction(SIGALRM, &late, NULL);
	sigaction(SIGTERM, &stop, NULL);
	sigaction(SIGINT, &stop, NULL);
	signal(SIGPIPE, SIG_IGN);
	air_worker_set_spent(on_spent);
}

/*
 * Before the executors are opened: the threads that they start inherit where
 * this one may run.
 */
static bool go_to_ai_cores(const char *device)
{
	struct airunner_set_thread_class set = {
		.size = sizeof(set),
		.thread_class = AIRUNNER_THREAD_AI,
	};
	int fd = open(device, O_RDWR | O_CLOEXEC);
	bool ok = fd >= 0 && !ioctl(fd, AIRUNNER_IOC_SET_THREAD_CLASS, &set);

	if (!ok)
		air_log(AIR_LOG_ERROR, "%s: SET_THREAD_CLASS: %s", device,
			errno == ENODEV ?
				"the module has no accelerator cores (parameter ai_cpus)" :
				strerror(errno));
	if (fd >= 0)
		close(fd);
	return ok;
}

static int serve(const struct arguments *a)
{
	struct air_kernel_config kernel = {
		.device = a->device,
		.name = a->worker.name,
		.own = a->own,
	};
	struct air_source *device = NULL, *sock = NULL;
	struct air_error e = { "" };
	struct air_worker *w = NULL;
	int ret = EXIT_FAILURE;

	if (air_worker_create(&a->worker, &w, &e))
		goto out;
	if (a->device) {
		device = air_kernel_create(&kernel, &e);
		if (!device)
			goto out;
		air_worker_add_source(w, device);
	}
	if (a->listen.path) {
		sock = air_unix_create(&a->listen, &e);
		if (!sock)
			goto out;
		air_worker_add_source(w, sock);
	}
	if (!air_guard_init()) {
		air_fail(&e, AIR_SYSTEM, "sigaction: %s", strerror(errno));
		goto out;
	}
	catch_signals(w, a->worker.drain_ns);
	if (air_worker_run(w, &e))
		goto out;
	if (air_load(&spent, ACQUIRE)) {
		air_fail(&e, AIR_DEVICE_LOST, "ended, to be started again");
		goto out;
	}
	air_log(AIR_LOG_INFO, "done");
	ret = EXIT_SUCCESS;
out:
	if (ret)
		air_log(AIR_LOG_ERROR, "%s", e.text);
	air_unix_destroy(sock);
	air_kernel_destroy(device);
	air_worker_destroy(w);
	return ret;
}

int main(int argc, char **argv)
{
	static const struct argp argp = { options, parse, NULL, doc,
					  NULL,	   NULL,  NULL };
	struct arguments a = {
		.listen = { .mode = 0660, .group = -1 },
		.worker = { .name = "airunnerd", .drain_ns = 5000000000 },
	};

	air_worker_set_log(log_line);
	argp_parse(&argp, argc, argv, 0, NULL, &a);
	if (a.ai_cores &&
	    !go_to_ai_cores(a.device ? a.device : AIRUNNER_DEVICE))
		return EXIT_FAILURE;
	return serve(&a);
}
