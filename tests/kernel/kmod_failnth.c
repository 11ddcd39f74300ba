// SPDX-License-Identifier: MIT
/*
 * kmod_failnth: each allocation and each copy of each call fails once.
 *
 * Needs a kernel with CONFIG_FAULT_INJECTION (failslab, fail_page_alloc,
 * fail_usercopy) and its /proc/thread-self/fail-nth; skipped elsewhere. For
 * n = 1, 2, ... the n-th possible failure within one call is made to happen,
 * until the call has fewer. A failed call says so with an error that makes
 * sense, and leaves nothing behind; one that must not fail does not. See
 * kmod_test.h for how it is run.
 */
#include "kmod_test.h"

#define PAGE 4096UL
#define FAIL "/proc/thread-self/fail-nth"
#define FAULTS "/sys/kernel/debug/"

static int fail_fd = -1;

static bool armed, hit;

static void arm(int n)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", n);
	check(pwrite(fail_fd, text, strlen(text), 0) == (ssize_t)strlen(text));
	armed = true;
	hit = false;
}

/*
 * The call is over: did it get to its n-th failure? If not, that may hit our
 * own reading and writing here; then it did not hit the call.
 */
static void disarm(void)
{
	int error = errno, tries;
	char text[16] = "";

	if (!armed)
		return;
	armed = false;
	hit = pread(fail_fd, text, sizeof(text) - 1, 0) > 0 && !atoi(text);
	for (tries = 0; pwrite(fail_fd, "0", 1, 0) != 1; tries++)
		check(tries < 3);
	errno = error;
}

/* What the calls work on: set up whole for each n. */
struct world {
	int fd;			/* a client's file */
	struct region r;	/* its channel */
	struct region fresh;	/* memory that is no region yet */
	void *memory;		/* and none that it will be: a buffer */
	struct worker w;
	int spare;		/* a file that is nothing yet */
	int efd;
	uint64_t seq;
};

#define HAS_CHANNEL	1
#define HAS_WORKER	2	/* attached, and told of the channel */
#define HAS_BUFFER	4	/* registered, and held by the worker */
#define MUST_NOT_FAIL	8

static int buffer(int fd, unsigned long cmd, struct world *x, uint32_t handle)
{
	struct airunner_buffer arg = {
		.size = sizeof(arg), .channel_id = x->r.id, .handle = handle,
		.user_va = (uintptr_t)x->memory, .length = 3 * PAGE,
	};

	if (cmd != AIRUNNER_IOC_REGISTER_BUFFER) {
		arg.user_va = 0;
		arg.length = 0;
	}
	return ioctl(fd, cmd, &arg);
}

static void world_make(struct world *x, int has)
{
	memset(x, 0, sizeof(*x));
	x->fd = device_open();
	region_make(&x->fresh, 4, REGION_SIZE);
	x->memory = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	x->efd = eventfd(0, 0);
	x->spare = device_open();
	x->w.fd = -1;
	/* What is touched for the first time is allocated then. */
	memset(x->fresh.va, 0, REGION_SIZE);
	memset(x->memory, 0, 3 * PAGE);
	if (has & HAS_CHANNEL) {
		channel_make(x->fd, &x->r);
		submit(&x->r, AIRUNNER_OP_NOP);
	}
	if (has & HAS_WORKER) {
		attach(&x->w);
		expect_event(x->w.fd, AIRUNNER_EV_CHANNEL_NEW, x->r.id);
	}
	if (has & HAS_BUFFER) {
		check(!buffer(x->fd, AIRUNNER_IOC_REGISTER_BUFFER, x, 9));
		check(!buffer(x->w.fd, AIRUNNER_IOC_BUFFER_INFO, x, 9));
	}
}

static void world_end(struct world *x)
{
	if (x->fd >= 0)
		close(x->fd);
	if (x->w.fd >= 0)
		close(x->w.fd);
	if (x->r.va) {
		munmap(x->r.va, x->r.size);
		close(x->r.memfd);
	}
	munmap(x->fresh.va, x->fresh.size);
	close(x->fresh.memfd);
	munmap(x->memory, 3 * PAGE);
	close(x->efd);
	close(x->spare);
	/* close() may leave the work to somebody else. */
	eventually(nothing_left());
}

/* ------------------------------------------------------- the calls */

static int do_open(struct world *x)
{
	int fd = open(AIRUNNER_DEVICE, O_RDWR);

	if (fd >= 0)
		close(fd);
	return fd < 0 ? -1 : 0;
}

static int do_info(struct world *x)
{
	struct airunner_info arg = { .size = sizeof(arg) };

	return ioctl(x->fd, AIRUNNER_IOC_GET_INFO, &arg);
}

static int do_build(struct world *x)
{
	int ret = build(x->fd, &x->fresh), error = errno;
	int want = ret ? 0 : 17;

	disarm();
	check_eq(read_number(SYSFS "pinned_pages"), want);
	check_eq(read_number(SYSFS "channels"), !!want);
	errno = error;
	return ret;
}

static int do_destroy(struct world *x)
{
	return destroy(&x->r);
}

static int do_register(struct world *x)
{
	return buffer(x->fd, AIRUNNER_IOC_REGISTER_BUFFER, x, 1);
}

static int do_buffer_info(struct world *x)
{
	return buffer(x->w.fd, AIRUNNER_IOC_BUFFER_INFO, x, 9);
}

static int do_unregister(struct world *x)
{
	return buffer(x->fd, AIRUNNER_IOC_UNREGISTER_BUFFER, x, 9);
}

static int do_attach(struct world *x)
{
	struct worker w;

	return attach_with(&w, x->spare, 1, 0);
}

static int do_map(struct world *x)
{
	void *va = mmap(NULL, x->r.mapped_size, PROT_READ | PROT_WRITE,
			MAP_SHARED, x->w.fd, x->r.mmap_offset);

	if (va == MAP_FAILED)
		return -1;
	disarm();
	munmap(va, x->r.mapped_size);
	return 0;
}

static int do_map_page(struct world *x)
{
	void *va = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, x->w.fd,
			x->w.page_offset);

	if (va == MAP_FAILED)
		return -1;
	disarm();
	munmap(va, PAGE);
	return 0;
}

static int do_doorbell(struct world *x)
{
	return doorbell(x->fd, x->r.id);
}

static int do_worker_doorbell(struct world *x)
{
	return doorbell(x->w.fd, x->r.id);
}

static int do_client_wait(struct world *x)
{
	x->seq = 0;
	if (!client_wait(x->fd, x->r.id, &x->seq, 1000) || errno == ETIME)
		return 0;
	return -1;
}

static int do_worker_wait(struct world *x)
{
	struct airunner_report r = {
		.channel_id = x->r.id, .flags = AIRUNNER_REPORT_MORE,
	};
	struct airunner_event event = {};
	int ret = worker_wait(x->w.fd, &r, 1, &event, 1, SECOND), error = errno;

	disarm();
	/* Nothing is lost: it is here, or still to come. */
	if (ret == 1 || event.type)
		check_eq(event.type, AIRUNNER_EV_READY);
	else
		expect_event(x->w.fd, AIRUNNER_EV_READY, x->r.id);
	errno = error;
	return ret == 1 ? 0 : -1;
}

static int do_priority(struct world *x)
{
	struct airunner_set_priority arg = {
		.size = sizeof(arg), .channel_id = x->r.id, .weight = 7,
		.priority = AIRUNNER_PRIO_HIGH,
	};

	return ioctl(x->fd, AIRUNNER_IOC_SET_PRIORITY, &arg);
}

static int do_eventfd(struct world *x)
{
	struct airunner_set_eventfd arg = {
		.size = sizeof(arg), .channel_id = x->r.id, .fd = x->efd,
	};

	return ioctl(x->fd, AIRUNNER_IOC_SET_EVENTFD, &arg);
}

static int do_thread_class(struct world *x)
{
	struct airunner_set_thread_class arg = {
		.size = sizeof(arg), .thread_class = AIRUNNER_THREAD_AI,
	};
	int ret = ioctl(x->fd, AIRUNNER_IOC_SET_THREAD_CLASS, &arg);
	int error = errno;

	disarm();
	arg.thread_class = AIRUNNER_THREAD_NORMAL;
	check(!ioctl(x->fd, AIRUNNER_IOC_SET_THREAD_CLASS, &arg));
	errno = error;
	return ret;
}

static int do_reset(struct world *x)
{
	return channel_call(x->fd, AIRUNNER_IOC_RESET_CHANNEL, x->r.id);
}

static int do_detach(struct world *x)
{
	return detach(x->w.fd, x->r.id);
}

static int do_close_client(struct world *x)
{
	close(x->fd);
	x->fd = -1;
	return 0;
}

static int do_close_worker(struct world *x)
{
	close(x->w.fd);
	x->w.fd = -1;
	disarm();
	eventually(!read_number(SYSFS "workers"));
	check_eq(answer_of(&x->r, 0), AIRUNNER_S_WORKER_DIED);
	return 0;
}

static int read_all(const char *path)
{
	char buf[4096];
	int fd = open(path, O_RDONLY), error;
	ssize_t n;

	if (fd < 0)
		return -1;
	while ((n = read(fd, buf, sizeof(buf))) > 0)
		;
	error = errno;
	close(fd);
	errno = error;
	return n;
}

static int do_fdinfo(struct world *x)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", x->fd);
	return read_all(path);
}

static int do_debugfs(struct world *x)
{
	return read_all("/sys/kernel/debug/airunner/channels");
}

static int do_poll(struct world *x)
{
	struct pollfd p = { .fd = x->fd, .events = POLLIN };

	return poll(&p, 1, 0) < 0 ? -1 : 0;
}

static const struct call {
	const char *name;
	int (*call)(struct world *x);
	int has;
} calls[] = {
	{ "open", do_open, 0 },
	{ "GET_INFO", do_info, 0 },
	{ "BUILD_CHANNEL", do_build, 0 },
	{ "DESTROY_CHANNEL", do_destroy, HAS_CHANNEL },
	{ "DESTROY_CHANNEL with a worker", do_destroy,
	  HAS_CHANNEL | HAS_WORKER | HAS_BUFFER },
	{ "REGISTER_BUFFER", do_register, HAS_CHANNEL },
	{ "BUFFER_INFO", do_buffer_info,
	  HAS_CHANNEL | HAS_WORKER | HAS_BUFFER },
	{ "UNREGISTER_BUFFER", do_unregister,
	  HAS_CHANNEL | HAS_WORKER | HAS_BUFFER },
	{ "ATTACH_WORKER", do_attach, 0 },
	{ "ATTACH_WORKER to a channel", do_attach, HAS_CHANNEL },
	{ "mmap of a region", do_map, HAS_CHANNEL | HAS_WORKER },
	{ "mmap of the page", do_map_page, HAS_CHANNEL | HAS_WORKER },
	{ "DOORBELL", do_doorbell, HAS_CHANNEL | HAS_WORKER },
	{ "DOORBELL of a worker", do_worker_doorbell,
	  HAS_CHANNEL | HAS_WORKER },
	{ "WAIT", do_client_wait, HAS_CHANNEL | HAS_WORKER },
	{ "WAIT of a worker", do_worker_wait, HAS_CHANNEL | HAS_WORKER },
	{ "SET_PRIORITY", do_priority, HAS_CHANNEL | HAS_WORKER },
	{ "SET_EVENTFD", do_eventfd, HAS_CHANNEL },
	{ "SET_THREAD_CLASS", do_thread_class, 0 },
	{ "RESET_CHANNEL", do_reset, HAS_CHANNEL | HAS_WORKER },
	{ "DETACH_CHANNEL", do_detach, HAS_CHANNEL | HAS_WORKER | HAS_BUFFER },
	{ "close of a client", do_close_client,
	  HAS_CHANNEL | HAS_WORKER | HAS_BUFFER | MUST_NOT_FAIL },
	{ "close of a worker", do_close_worker,
	  HAS_CHANNEL | HAS_WORKER | HAS_BUFFER | MUST_NOT_FAIL },
	{ "fdinfo", do_fdinfo, HAS_CHANNEL },
	{ "debugfs", do_debugfs, HAS_CHANNEL },
	{ "poll", do_poll, HAS_CHANNEL },
};

/* No more than this many failures are possible in one call. */
#define MAX_NTH 2000

static int nth(const struct call *c)
{
	int n, ret, error, failures = 0;
	struct world x;

	for (n = 1; n < MAX_NTH; n++) {
		world_make(&x, c->has);
		arm(n);
		errno = 0;
		ret = c->call(&x);
		error = errno;
		disarm();
		if (ret) {
			failures++;
			/* Nothing else can be the matter. */
			if (error != ENOMEM && error != EFAULT)
				fail("%s, failure %d: %s", c->name, n,
				     strerror(error));
			if (c->has & MUST_NOT_FAIL)
				fail("%s failed", c->name);
		}
		world_end(&x);
		if (!hit && !ret)
			break;
	}
	check(n < MAX_NTH);
	printf("# %s: %d possible failures, %d reported\n", c->name, n - 1,
	       failures);
	return n - 1;
}

static void all_calls(void)
{
	size_t i;
	int all = 0;

	fail_fd = open(FAIL, O_RDWR);
	if (fail_fd < 0)
		skip("no fault injection in this kernel");
	write_text(FAULTS "failslab/ignore-gfp-wait", "N");
	write_text(FAULTS "fail_page_alloc/ignore-gfp-wait", "N");
	write_text(FAULTS "fail_page_alloc/ignore-gfp-highmem", "N");
	write_text(FAULTS "fail_page_alloc/min-order", "0");
	write_text("/sys/module/airunner/parameters/ai_cpus", "0");
	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		all += nth(&calls[i]);
	/* A test that injects nothing would prove nothing. */
	check(all > 50);
}

static const struct test_case cases[] = {
	{ "every_failure_of_every_call", all_calls },
};

int main(int argc, char **argv)
{
	return RUN_CASES(cases, argc, argv);
}
