/* SPDX-License-Identifier: MIT */
/*
 * What the kmod_* programs share: cases, and both sides of a channel by hand.
 *
 * The programs are static and know only the UAPI header, so that they test the
 * module and nothing else. Each is run in a guest, as root, with the module
 * loaded and nobody else using it:
 *
 *	kmod_NAME [CASE...]
 *
 * A case runs in a process of its own, which is killed when it takes too
 * long; "ok NAME", "not ok NAME: why" or "skip NAME: why" says how it ended,
 * and after each one nothing may be left in the module: no channel, no worker,
 * no pinned page.
 */
#ifndef KMOD_TEST_H
#define KMOD_TEST_H

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "uapi/airunner.h"

#define UNUSED __attribute__((unused))

#define SYSFS "/sys/class/misc/airunner/"

/* A loaded machine that emulates is slow, but little takes a minute. */
#ifndef CASE_SECONDS
#define CASE_SECONDS 60
#endif
#define SECOND 1000000000LL

struct test_case {
	const char *name;
	void (*run)(void);
};

/* ------------------------------------------------------------- failing */

static void __attribute__((format(printf, 3, 4), noreturn))
fail_at(const char *file, int line, const char *fmt, ...)
{
	va_list args;

	printf("# %s:%d: ", file, line);
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	printf("\n");
	fflush(stdout);
	_exit(1);
}

#define fail(...) fail_at(__FILE__, __LINE__, __VA_ARGS__)

#define check(cond)							\
	do {								\
		if (!(cond))						\
			fail("not so: %s (errno %d, %s)", #cond, errno,	\
			     strerror(errno));				\
	} while (0)

#define check_eq(got, want)						\
	do {								\
		long long g_ = (long long)(got), w_ = (long long)(want);\
		if (g_ != w_)						\
			fail("%s is %lld (0x%llx), expected %lld "	\
			     "(errno %d, %s)", #got, g_, g_, w_, errno,	\
			     strerror(errno));				\
	} while (0)

/* @call fails, with @error. */
#define check_errno(call, error)					\
	do {								\
		errno = 0;						\
		long long r_ = (long long)(call);			\
		int e_ = errno;						\
		if (r_ != -1 || e_ != (error))				\
			fail("%s returned %lld, %s; expected -1, %s",	\
			     #call, r_, strerror(e_),			\
			     strerror(error));				\
	} while (0)

/* ------------------------------------------------------------- waiting */

static UNUSED int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * SECOND + ts.tv_nsec;
}

static UNUSED void nap(void)
{
	struct timespec ts = { .tv_nsec = 2000000 };

	nanosleep(&ts, NULL);
}

/* Poll @cond until it holds, for at most 30 seconds. */
#define eventually(cond)						\
	do {								\
		int64_t end_ = now_ns() + 30 * SECOND;			\
		while (!(cond)) {					\
			if (now_ns() > end_)				\
				fail("never: %s", #cond);		\
			nap();						\
		}							\
	} while (0)

static UNUSED long read_number(const char *path)
{
	char text[64] = "";
	int fd = open(path, O_RDONLY);

	if (fd < 0)
		return -1;
	if (read(fd, text, sizeof(text) - 1) < 0)
		text[0] = 0;
	close(fd);
	return strtol(text, NULL, 0);
}

static UNUSED bool write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);
	ssize_t n;

	if (fd < 0)
		return false;
	n = write(fd, text, strlen(text));
	close(fd);
	return n == (ssize_t)strlen(text);
}

/* The number after @key in /proc/self/status, kB. */
static UNUSED long status_kb(const char *key)
{
	char line[256];
	FILE *f = fopen("/proc/self/status", "r");
	long value = -1;

	while (f && fgets(line, sizeof(line), f)) {
		if (!strncmp(line, key, strlen(key)))
			value = strtol(line + strlen(key) + 1, NULL, 0);
	}
	if (f)
		fclose(f);
	return value;
}

/* How is process @pid: R, S, D, T, Z? */
static UNUSED char process_state(pid_t pid)
{
	char path[64], text[512] = "", *p;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY);
	if (fd < 0)
		return '?';
	if (read(fd, text, sizeof(text) - 1) < 0)
		text[0] = 0;
	close(fd);
	p = strrchr(text, ')');
	return p ? p[2] : '?';
}

static UNUSED int reap(pid_t pid)
{
	int status;

	check(waitpid(pid, &status, 0) == pid);
	return status;
}

/* A child that runs @fn and exits 0, unless that fails or is killed. */
static UNUSED pid_t spawn(void (*fn)(void *), void *arg)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	check(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		fn(arg);
		fflush(stdout);
		_exit(0);
	}
	return pid;
}

/* ------------------------------------------------------------- a channel */

struct region {
	int memfd;
	void *va;
	size_t size;
	uint32_t order;
	struct airunner_ctrl *ctrl;
	uint64_t tail;
	/* Once built. */
	int fd;
	uint32_t id;
	uint64_t mmap_offset;
	uint64_t mapped_size;
};

static UNUSED int device_open(void)
{
	int fd = open(AIRUNNER_DEVICE, O_RDWR | O_CLOEXEC);

	check(fd >= 0);
	return fd;
}

static UNUSED void region_map(struct region *r, int memfd, uint32_t order,
			      size_t size)
{
	memset(r, 0, sizeof(*r));
	r->memfd = memfd;
	r->order = order;
	r->size = size;
	r->va = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
	check(r->va != MAP_FAILED);
	r->ctrl = r->va;
}

static UNUSED void region_make(struct region *r, uint32_t order, size_t size)
{
	int memfd = memfd_create("region", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	check(memfd >= 0);
	check(!ftruncate(memfd, size));
	region_map(r, memfd, order, size);
}

static UNUSED struct airunner_build_channel build_arg(const struct region *r)
{
	return (struct airunner_build_channel){
		.size = sizeof(struct airunner_build_channel),
		.user_va = (uintptr_t)r->va,
		.region_size = r->size,
		.channels = AIRUNNER_CHANNELS,
		.order = r->order,
		.priority = AIRUNNER_PRIO_NORMAL,
	};
}

static UNUSED int build_with(int fd, struct region *r,
			     struct airunner_build_channel *arg)
{
	int ret = ioctl(fd, AIRUNNER_IOC_BUILD_CHANNEL, arg);

	if (!ret) {
		r->fd = fd;
		r->id = arg->channel_id;
		r->mmap_offset = arg->mmap_offset;
		r->mapped_size = arg->mapped_size;
	}
	return ret;
}

static UNUSED int build(int fd, struct region *r)
{
	struct airunner_build_channel arg = build_arg(r);

	return build_with(fd, r, &arg);
}

/* What k3_test uses: 0x10400 bytes, which is 17 pages. */
#define REGION_SIZE 0x10400

static UNUSED void channel_make(int fd, struct region *r)
{
	region_make(r, 4, REGION_SIZE);
	check(!build(fd, r));
}

static UNUSED int channel_call(int fd, unsigned long cmd, uint32_t id)
{
	struct airunner_channel_ref arg = {
		.size = sizeof(arg), .channel_id = id,
	};

	return ioctl(fd, cmd, &arg);
}

static UNUSED int destroy(const struct region *r)
{
	return channel_call(r->fd, AIRUNNER_IOC_DESTROY_CHANNEL, r->id);
}

static UNUSED int doorbell(int fd, uint32_t id)
{
	struct airunner_doorbell arg = {
		.size = sizeof(arg), .channel_id = id,
	};

	return ioctl(fd, AIRUNNER_IOC_DOORBELL, &arg);
}

static UNUSED int client_wait(int fd, uint32_t id, uint64_t *seq,
			      int64_t timeout_ns)
{
	struct airunner_wait arg = {
		.size = sizeof(arg), .channel_id = id, .seq = *seq,
		.timeout_ns = timeout_ns,
	};
	int ret = ioctl(fd, AIRUNNER_IOC_WAIT, &arg);

	*seq = arg.seq;
	return ret;
}

static UNUSED _Atomic uint64_t *sq_slot(void *va, uint32_t order, uint64_t i)
{
	return (_Atomic uint64_t *)((char *)va + AIRUNNER_SQ_OFFSET +
		(i & ((1ULL << order) - 1)) * AIRUNNER_SQE_SIZE);
}

static UNUSED _Atomic uint64_t *cq_slot(void *va, uint32_t order, uint64_t i)
{
	return (_Atomic uint64_t *)((char *)va + airunner_cq_offset(order) +
		(i & ((1ULL << order) - 1)) * AIRUNNER_CQE_SIZE);
}

/* Publish submission @r->tail; rings the doorbell if asked to. */
static UNUSED void submit(struct region *r, uint8_t opcode)
{
	_Atomic uint64_t *slot = sq_slot(r->va, r->order, r->tail);
	uint8_t lap = airunner_lap(r->tail, r->order);
	int i;

	for (i = AIRUNNER_SQE_WORDS - 1; i > 0; i--)
		atomic_store(&slot[i], airunner_word(0, lap));
	atomic_store(&slot[0],
		     airunner_word(airunner_sqe_head(opcode, 0, 0, 0), lap));
	r->tail++;
	if (atomic_load((_Atomic uint32_t *)&r->ctrl->sq_flags) &
	    AIRUNNER_SQ_NEED_WAKEUP)
		check(!doorbell(r->fd, r->id));
}

/* The status of submission @i, or -1 while it is outstanding. */
static UNUSED int answer_of(const struct region *r, uint64_t i)
{
	_Atomic uint64_t *slot = cq_slot(r->va, r->order, i);
	uint8_t lap = airunner_lap(i, r->order);
	uint64_t w0 = atomic_load(&slot[0]);

	if (airunner_word_lap(w0) != lap)
		return -1;
	check_eq(airunner_word_lap(atomic_load(&slot[1])), lap);
	return airunner_cqe_status(airunner_payload(w0));
}

/* ------------------------------------------------------------- a worker */

struct worker {
	int fd;
	uint32_t id;
	uint64_t page_offset;
};

static UNUSED int attach_with(struct worker *w, int fd, uint64_t caps,
			      uint32_t flags)
{
	struct airunner_attach_worker arg = {
		.size = sizeof(arg), .caps = caps, .flags = flags,
		.name = "test",
	};
	int ret = ioctl(fd, AIRUNNER_IOC_ATTACH_WORKER, &arg);

	if (!ret) {
		w->fd = fd;
		w->id = arg.worker_id;
		w->page_offset = arg.page_offset;
	}
	return ret;
}

static UNUSED void attach(struct worker *w)
{
	check(!attach_with(w, device_open(), AIRUNNER_CAP_CPU, 0));
}

/* WAIT of a worker; returns events stored, or -1. */
static UNUSED int worker_wait(int fd, const struct airunner_report *reports,
			      uint32_t nr_reports,
			      struct airunner_event *events, uint32_t room,
			      int64_t timeout_ns)
{
	struct airunner_wait arg = {
		.size = sizeof(arg), .timeout_ns = timeout_ns,
		.reports = (uintptr_t)reports, .nr_reports = nr_reports,
		.events = (uintptr_t)events, .nr_events = room,
	};

	if (ioctl(fd, AIRUNNER_IOC_WAIT, &arg))
		return -1;
	return arg.nr_events;
}

/* The next event, which must be @type and, unless 0, for channel @id. */
static UNUSED struct airunner_event expect_event(int fd, uint32_t type,
						 uint32_t id)
{
	struct airunner_event event;

	check_eq(worker_wait(fd, NULL, 0, &event, 1, 30 * SECOND), 1);
	check_eq(event.type, type);
	if (id)
		check_eq(event.channel_id, id);
	return event;
}

static UNUSED void expect_no_event(int fd)
{
	struct airunner_event event;

	errno = 0;
	if (worker_wait(fd, NULL, 0, &event, 1, 0) >= 0)
		fail("unexpected event %u of channel %u", event.type,
		     event.channel_id);
	check_eq(errno, ETIME);
}

static UNUSED void report(int fd, uint32_t id, uint32_t flags,
			  uint64_t device_ns)
{
	struct airunner_report r = {
		.channel_id = id, .flags = flags, .device_ns = device_ns,
	};

	check_eq(worker_wait(fd, &r, 1, NULL, 0, 0), 0);
}

static UNUSED void *worker_map(int fd, const struct airunner_event *new)
{
	void *va = mmap(NULL, new->region_size, PROT_READ | PROT_WRITE,
			MAP_SHARED, fd, new->mmap_offset);

	check(va != MAP_FAILED);
	return va;
}

static UNUSED int detach(int fd, uint32_t id)
{
	return channel_call(fd, AIRUNNER_IOC_DETACH_CHANNEL, id);
}

/* Answer submission @i in the ring at @va. */
static UNUSED void answer(void *va, uint32_t order, uint64_t i,
			  uint8_t status)
{
	_Atomic uint64_t *slot = cq_slot(va, order, i);
	uint8_t lap = airunner_lap(i, order);

	atomic_store(&slot[1], airunner_word(airunner_cqe_word1(now_ns(), 0),
					     lap));
	atomic_store(&slot[0], airunner_word(airunner_cqe_word0(status, 0, 0),
					     lap));
}

/* Is there a whole submission @i? */
static UNUSED bool submitted(void *va, uint32_t order, uint64_t i)
{
	_Atomic uint64_t *slot = sq_slot(va, order, i);
	uint8_t lap = airunner_lap(i, order);
	int w;

	for (w = 0; w < AIRUNNER_SQE_WORDS; w++) {
		if (airunner_word_lap(atomic_load(&slot[w])) != lap)
			return false;
	}
	return true;
}

/* ------------------------------------------------------------- users */

#define ALICE 1000
#define BOB 1001
#define GROUP_AIRUNNER 200

/* Become an ordinary user who may open the device. */
static UNUSED void become(uid_t uid)
{
	gid_t group = GROUP_AIRUNNER;

	check(!setgroups(1, &group));
	check(!setresgid(uid, uid, uid));
	check(!setresuid(uid, uid, uid));
	prctl(PR_SET_DUMPABLE, 1);
}

static UNUSED void limit_memlock(rlim_t bytes)
{
	struct rlimit lim = { bytes, bytes };

	check(!setrlimit(RLIMIT_MEMLOCK, &lim));
}

/* ------------------------------------------------------------- main */

static bool nothing_left(void)
{
	return !read_number(SYSFS "channels") && !read_number(SYSFS "workers") &&
	       !read_number(SYSFS "pinned_pages");
}

static bool run_case(const struct test_case *t)
{
	int64_t end = now_ns() + CASE_SECONDS * SECOND;
	int status = 0;
	pid_t pid, got;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		/* Its own group, so that its children go with it. */
		setpgid(0, 0);
		t->run();
		fflush(stdout);
		_exit(0);
	}
	while (!(got = waitpid(pid, &status, WNOHANG)) && now_ns() < end)
		nap();
	kill(-pid, SIGKILL);
	if (!got) {
		kill(pid, SIGKILL);
		end = now_ns() + 20 * SECOND;
		while (!waitpid(pid, &status, WNOHANG)) {
			if (now_ns() > end) {
				printf("not ok %s: cannot even be killed\n",
				       t->name);
				exit(1);
			}
			nap();
		}
		printf("not ok %s: took longer than %d s\n", t->name,
		       CASE_SECONDS);
		return false;
	}
	if (WIFSIGNALED(status)) {
		printf("not ok %s: %s\n", t->name,
		       strsignal(WTERMSIG(status)));
		return false;
	}
	if (WEXITSTATUS(status) == 77) {
		printf("skip %s: see above\n", t->name);
		return true;
	}
	if (status) {
		printf("not ok %s: failed, see above\n", t->name);
		return false;
	}
	/* Its children may still be dying. */
	end = now_ns() + 20 * SECOND;
	while (!nothing_left() && now_ns() < end)
		nap();
	if (!nothing_left()) {
		printf("not ok %s: left %ld channels, %ld workers, %ld pages\n",
		       t->name, read_number(SYSFS "channels"),
		       read_number(SYSFS "workers"),
		       read_number(SYSFS "pinned_pages"));
		return false;
	}
	printf("ok %s\n", t->name);
	return true;
}

static UNUSED void __attribute__((noreturn)) skip(const char *why)
{
	printf("# %s\n", why);
	fflush(stdout);
	_exit(77);
}

static UNUSED int run_cases(const struct test_case *cases, size_t nr,
			    int argc, char **argv)
{
	bool good = true;
	size_t i;
	int a;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!nothing_left()) {
		printf("not ok start: the module is in use or not loaded\n");
		return 1;
	}
	for (i = 0; i < nr; i++) {
		bool wanted = argc < 2;

		for (a = 1; a < argc; a++)
			wanted |= !strcmp(argv[a], cases[i].name);
		if (wanted && !run_case(&cases[i]))
			good = false;
	}
	return !good;
}

#define RUN_CASES(cases, argc, argv)					\
	run_cases(cases, sizeof(cases) / sizeof((cases)[0]), argc, argv)

#endif
