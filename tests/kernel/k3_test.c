// SPDX-License-Identifier: MIT
/*
 * k3_test: a channel's region stays alive for as long as anybody needs it, and
 * not a page longer.
 *
 * It speaks to /dev/airunner with nothing but the ioctls of
 * include/uapi/airunner.h, so it is also the shortest complete example of
 * them: a client that builds a channel (build_channel()), and a worker that
 * is given it and maps it (worker()). Run it as root with airunner.ko loaded.
 * It asks for its own worker, so airunnerd may be running or not.
 *
 *	1. A client builds a channel, drops the memfd behind it and still reads
 *	   what it wrote.
 *	2. The client closes the device and unmaps the region: the worker still
 *	   reads it.
 *	3. The client is killed: the worker still reads it.
 *	4. Once both sides have let go, pinned pages and locked memory are back
 *	   where they were: by the system's count, by the process's, and by a
 *	   user's whose RLIMIT_MEMLOCK has room for one region and no more.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "uapi/airunner.h"

#define MARKER "ovchannel"
#define ORDER 8
/* Not a whole number of pages, so that the rounding shows: 0x11000. */
#define REGION_SIZE 0x10400
#define REGION_MAPPED 0x11000
#define REGION_PAGES 17
/* The arena is whatever the rings leave of the region. */
#define MARKER_OFFSET airunner_arena_offset(ORDER)
/* Any user that is not root and may open the device by its group. */
#define SOME_UID 1000
/* Emulated and busy machines are slow; this bounds hangs only. */
#define PATIENCE_S 60

static int failures;
/* The worker that this program's channels are for. */
static __u32 worker_id;

/* One line a check, in the form that tests/run.sh counts. */
static bool __attribute__((format(printf, 2, 3))) check(bool good,
							const char *fmt, ...)
{
	int err = errno;
	va_list ap;

	printf("%s", good ? "ok k3: " : "not ok k3: ");
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	if (!good) {
		printf(" (errno %d: %s)", err, strerror(err));
		failures++;
	}
	printf("\n");
	fflush(stdout);
	return good;
}

static void __attribute__((noreturn)) give_up(const char *what)
{
	printf("not ok k3: %s: %s\n", what, strerror(errno));
	fflush(stdout);
	_exit(1);
}

/* ------------------------------------------------- looking at the kernel */

/* A reader of the kernel log that starts at its present end. */
static int log_open(void)
{
	int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK);

	if (fd < 0 || lseek(fd, 0, SEEK_END) < 0)
		give_up("/dev/kmsg");
	return fd;
}

/* The next log line that has all of the given words, or NULL. */
static const char *log_find(int fd, const char *const words[])
{
	static char record[4096];
	ssize_t n;

	/* EPIPE: the log has wrapped and the reader is moved forward. */
	while ((n = read(fd, record, sizeof(record) - 1)) > 0 ||
	       (n < 0 && errno == EPIPE)) {
		char *text;
		int i;

		if (n < 0)
			continue;
		record[n] = 0;
		text = strchr(record, ';');
		if (!text)
			continue;
		text[strcspn(text, "\n")] = 0;
		for (i = 0; words[i] && strstr(text, words[i]); i++)
			;
		if (!words[i])
			return text + 1;
	}
	return NULL;
}

/* A number from a `name value` or `name: value` line of a /proc file. */
static long proc_number(const char *path, const char *name)
{
	char line[256];
	long value = -1;
	FILE *f = fopen(path, "r");

	if (!f)
		give_up(path);
	while (fgets(line, sizeof(line), f)) {
		size_t n = strlen(name);

		if (!strncmp(line, name, n) && strchr(": \t", line[n])) {
			value = strtol(line + n + 1, NULL, 10);
			break;
		}
	}
	fclose(f);
	return value;
}

/* Pages pinned in the whole system now. */
static long pinned_pages(void)
{
	/* Each CPU has a remainder of its own until somebody asks. */
	int fd = open("/proc/sys/vm/stat_refresh", O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, "1", 1) != 1)
		give_up("/proc/sys/vm/stat_refresh");
	close(fd);
	return proc_number("/proc/vmstat", "nr_foll_pin_acquired") -
	       proc_number("/proc/vmstat", "nr_foll_pin_released");
}

static long pinned_kib(void)
{
	return proc_number("/proc/self/status", "VmPin");
}

/* What is let go may take the kernel a moment. */
static bool pinned_pages_become(long want)
{
	time_t end = time(NULL) + PATIENCE_S / 2;

	while (pinned_pages() != want) {
		if (time(NULL) > end)
			return false;
		usleep(20000);
	}
	return true;
}

/* ------------------------------------------------------------ the client */

struct client {
	int dev;
	int memfd;
	char *va;
	struct airunner_build_channel built;
};

/* 0, or -1 with errno; then nothing is left open or mapped. */
static int build_channel(struct client *c)
{
	int err;

	c->dev = open(AIRUNNER_DEVICE, O_RDWR | O_CLOEXEC);
	if (c->dev < 0)
		return -1;
	c->memfd = memfd_create("k3", MFD_CLOEXEC);
	if (c->memfd < 0 || ftruncate(c->memfd, REGION_MAPPED))
		give_up("memfd");
	c->va = mmap(NULL, REGION_MAPPED, PROT_READ | PROT_WRITE, MAP_SHARED,
		     c->memfd, 0);
	if (c->va == MAP_FAILED)
		give_up("mmap");
	/* A fresh memfd is zeroed, and a zeroed region is an empty ring. */
	c->built = (struct airunner_build_channel){
		.size = sizeof(c->built),
		.user_va = (uintptr_t)c->va,
		.region_size = REGION_SIZE,
		.channels = AIRUNNER_CHANNELS,
		.order = ORDER,
		.worker_id = worker_id,
		.priority = AIRUNNER_PRIO_NORMAL,
	};
	if (!ioctl(c->dev, AIRUNNER_IOC_BUILD_CHANNEL, &c->built))
		return 0;
	err = errno;
	munmap(c->va, REGION_MAPPED);
	close(c->memfd);
	close(c->dev);
	errno = err;
	return -1;
}

/* ------------------------------------------------------------ the worker */

/* The next event of @type, whatever else comes in between. */
static struct airunner_event next_event(int dev, __u32 type)
{
	struct airunner_event event;
	struct airunner_wait wait;

	do {
		wait = (struct airunner_wait){
			.size = sizeof(wait),
			.timeout_ns = PATIENCE_S * 1000000000LL,
			.events = (uintptr_t)&event,
			.nr_events = 1,
		};
		if (ioctl(dev, AIRUNNER_IOC_WAIT, &wait))
			give_up("worker: WAIT");
	} while (wait.nr_events != 1 || event.type != type);
	return event;
}

/*
 * The worker's life: attach, be given a channel, map it, and look into it only
 * once its owner has let go. Tells the parent (one byte to @out) at each of
 * these points; waits for a byte from @in before it lets go as well.
 */
static void __attribute__((noreturn)) worker(int in, int out)
{
	struct airunner_attach_worker attach = {
		.size = sizeof(attach),
		.caps = AIRUNNER_CAP_CPU,
		.name = "k3_test",
	};
	struct airunner_channel_ref ref = { .size = sizeof(ref) };
	struct airunner_event event;
	bool whole;
	char *map;
	char c = 0;
	int dev;

	alarm(2 * PATIENCE_S);
	dev = open(AIRUNNER_DEVICE, O_RDWR | O_CLOEXEC);
	if (dev < 0)
		give_up("worker: open " AIRUNNER_DEVICE);
	if (ioctl(dev, AIRUNNER_IOC_ATTACH_WORKER, &attach))
		give_up("worker: ATTACH_WORKER");
	if (write(out, "a", 1) != 1 ||
	    write(out, &attach.worker_id, sizeof(__u32)) != sizeof(__u32))
		give_up("worker: pipe");

	event = next_event(dev, AIRUNNER_EV_CHANNEL_NEW);
	map = mmap(NULL, event.region_size, PROT_READ | PROT_WRITE, MAP_SHARED,
		   dev, event.mmap_offset);
	if (map == MAP_FAILED)
		give_up("worker: mmap");
	if (write(out, event.region_size == REGION_MAPPED ? "m" : "?", 1) != 1)
		give_up("worker: pipe");

	ref.channel_id = event.channel_id;
	event = next_event(dev, AIRUNNER_EV_CHANNEL_GONE);
	whole = event.channel_id == ref.channel_id &&
		!strcmp(map + MARKER_OFFSET, MARKER);
	if (write(out, whole ? "r" : "?", 1) != 1)
		give_up("worker: pipe");

	if (read(in, &c, 1) != 1)
		give_up("worker: pipe");
	if (munmap(map, REGION_MAPPED) ||
	    ioctl(dev, AIRUNNER_IOC_DETACH_CHANNEL, &ref))
		give_up("worker: DETACH_CHANNEL");
	if (write(out, "d", 1) != 1)
		give_up("worker: pipe");
	/* The next round has a new worker: this one stays until told to go. */
	if (read(in, &c, 1) != 1)
		give_up("worker: pipe");
	_exit(0);
}

struct peer {
	pid_t pid;
	int to;
	int from;
};

static struct peer spawn(void (*body)(int in, int out))
{
	int to[2], from[2];
	struct peer p;

	if (pipe2(to, O_CLOEXEC) || pipe2(from, O_CLOEXEC))
		give_up("pipe");
	fflush(stdout);
	p.pid = fork();
	if (p.pid < 0)
		give_up("fork");
	if (!p.pid) {
		close(to[1]);
		close(from[0]);
		body(to[0], from[1]);
		_exit(0);
	}
	close(to[0]);
	close(from[1]);
	p.to = to[1];
	p.from = from[0];
	return p;
}

/* The peer's next byte is @want, within the time there is. */
static bool hears(const struct peer *p, char want)
{
	struct pollfd pfd = { .fd = p->from, .events = POLLIN };
	char c = 0;

	return poll(&pfd, 1, PATIENCE_S * 1000) == 1 &&
	       read(p->from, &c, 1) == 1 && c == want;
}

/* A new worker is there, and its id is known from now on. */
static bool worker_attaches(const struct peer *w)
{
	return hears(w, 'a') &&
	       read(w->from, &worker_id, sizeof(worker_id)) ==
		       sizeof(worker_id) &&
	       worker_id;
}

static bool tell(const struct peer *p)
{
	return write(p->to, "g", 1) == 1;
}

/* The peer's exit status, or 128 + the signal that ended it. */
static int farewell(struct peer *p)
{
	int status = 0;

	close(p->to);
	close(p->from);
	if (waitpid(p->pid, &status, 0) != p->pid)
		return -1;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) :
				     WEXITSTATUS(status);
}

/* ------------------------------------------------------------- the tests */

static void close_and_unmap(void)
{
	long pages = pinned_pages(), kib = pinned_kib();
	char pid[32], va[32], text[64];
	struct peer w = spawn(worker);
	struct client c;
	const char *line;
	int log;
	void *again;

	check(worker_attaches(&w), "a worker is attached");
	log = log_open();
	if (!check(!build_channel(&c), "BUILD_CHANNEL returns success"))
		exit(1);
	snprintf(pid, sizeof(pid), "pid=%d", getpid());
	snprintf(va, sizeof(va), "va=0x%lx", (unsigned long)c.va);

	line = log_find(log, (const char *const[]){ "BUILD_CHANNEL", pid, va,
						    "size=0x10400",
						    "channels=2", NULL });
	check(line, "kernel: %s",
	      line ? line : "no line BUILD_CHANNEL pid, va, size, channels");
	line = log_find(log, (const char *const[]){ "registered",
						    "size=0x11000", "pages=17",
						    NULL });
	check(line, "kernel: %s",
	      line ? line : "no line registered, size=0x11000, pages=17");
	close(log);
	check(c.built.channel_id && c.built.mapped_size == REGION_MAPPED,
	      "channel built, va=%p, size=0x%x", c.va, REGION_SIZE);
	check(pinned_pages() == pages + REGION_PAGES,
	      "%d more pages are pinned in the system", REGION_PAGES);
	check(pinned_kib() == kib + REGION_MAPPED / 1024,
	      "VmPin of this process is up by %d KiB", REGION_MAPPED / 1024);
	check(hears(&w, 'm'), "the worker was given the channel and mapped it");

	strcpy(c.va + MARKER_OFFSET, MARKER);
	check(true, "marker \"%s\" written at offset 0x%llx", MARKER,
	      (unsigned long long)MARKER_OFFSET);

	check(!close(c.memfd), "user-facing handle dropped");
	snprintf(text, sizeof(text), "%s", c.va + MARKER_OFFSET);
	check(!strcmp(text, MARKER), "readback after drop=\"%s\"", text);
	again = mmap(c.va, REGION_MAPPED, PROT_READ,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	check(again == MAP_FAILED && errno == EEXIST,
	      "MAP_FIXED_NOREPLACE at %p fails: the mapping still stands",
	      c.va);

	check(!close(c.dev) && !munmap(c.va, REGION_MAPPED),
	      "client has closed the device and unmapped the region");
	check(hears(&w, 'r'), "the worker still reads the marker");
	check(pinned_pages() == pages + REGION_PAGES,
	      "the pages are still pinned, for the worker");
	check(tell(&w) && hears(&w, 'd'), "the worker unmaps and detaches");
	check(pinned_pages_become(pages),
	      "pinned pages are back where they started (%ld)", pages);
	check(pinned_kib() == kib, "VmPin is back where it started (%ld KiB)",
	      kib);
	tell(&w);
	check(!farewell(&w), "the worker ends well");
}

/* A client that builds, writes its marker and then does nothing at all. */
static void __attribute__((noreturn)) idle_client(int in, int out)
{
	struct client c;

	alarm(2 * PATIENCE_S);
	if (build_channel(&c))
		give_up("client: BUILD_CHANNEL");
	strcpy(c.va + MARKER_OFFSET, MARKER);
	if (write(out, "b", 1) != 1)
		give_up("client: pipe");
	for (;;)
		pause();
}

static void kill_client(void)
{
	long pages = pinned_pages();
	struct peer w = spawn(worker), c;
	int status;

	check(worker_attaches(&w), "another worker is attached");
	c = spawn(idle_client);
	check(hears(&c, 'b') && hears(&w, 'm'),
	      "another client has built a channel; the worker has mapped it");
	kill(c.pid, SIGKILL);
	status = farewell(&c);
	check(status == 128 + SIGKILL, "the client is killed");
	check(hears(&w, 'r'), "the worker still reads the marker");
	check(pinned_pages() == pages + REGION_PAGES,
	      "the pages are still pinned, for the worker");
	check(tell(&w) && hears(&w, 'd'), "the worker unmaps and detaches");
	check(pinned_pages_become(pages),
	      "pinned pages are back where they started (%ld)", pages);
	tell(&w);
	check(!farewell(&w), "the worker ends well");
}

/* Builds one channel as an ordinary user with room for exactly one region. */
static void __attribute__((noreturn)) poor_client(int in, int out)
{
	struct rlimit limit = { REGION_MAPPED, REGION_MAPPED };
	struct client c, too_many;
	struct stat device;
	char verdict = 'b';
	char go;

	alarm(2 * PATIENCE_S);
	/* The device's group lets a user in. */
	if (stat(AIRUNNER_DEVICE, &device) ||
	    setgroups(1, &device.st_gid) ||
	    setrlimit(RLIMIT_MEMLOCK, &limit) || setuid(SOME_UID))
		give_up("client: becoming a user");
	if (build_channel(&c))
		verdict = errno == ENOMEM ? 'M' : '?';
	else if (!build_channel(&too_many) || errno != ENOMEM)
		verdict = '2';
	if (write(out, &verdict, 1) != 1 || read(in, &go, 1) != 1)
		give_up("client: pipe");
	_exit(0);
}

/*
 * The count that outlives a process is its user's. It cannot be read, but with
 * a limit of one region it can be asked: one page too many left behind, and
 * the next build is refused.
 */
static void user_accounting(void)
{
	long pages = pinned_pages();
	struct peer c;
	int round;

	worker_id = 0; /* any: nobody needs to serve these */
	for (round = 1; round <= 3; round++) {
		c = spawn(poor_client);
		check(hears(&c, 'b'),
		      "user %d, limit %d KiB: one channel and no second (round %d)",
		      SOME_UID, REGION_MAPPED / 1024, round);
		if (round == 2) {
			kill(c.pid, SIGKILL);
		} else {
			tell(&c);
		}
		farewell(&c);
		check(pinned_pages_become(pages), "it has %s; all is unpinned",
		      round == 2 ? "been killed" : "ended");
	}
}

int main(void)
{
	alarm(5 * PATIENCE_S);
	if (getuid()) {
		printf("skip k3: it reads the kernel log; run it as root\n");
		return 77;
	}
	if (access(AIRUNNER_DEVICE, R_OK | W_OK))
		give_up("open " AIRUNNER_DEVICE " (is airunner.ko loaded?)");
	signal(SIGPIPE, SIG_IGN);

	close_and_unmap();
	kill_client();
	user_accounting();
	printf("k3_test: %s\n", failures ? "FAILED" : "all good");
	return failures ? 1 : 0;
}
