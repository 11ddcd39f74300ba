// SPDX-License-Identifier: MIT
/*
 * kmod_see: seeing inside: the kernel log, fdinfo, debugfs, sysfs, trace
 * events; also while what is looked at goes away. See kmod_test.h for how it
 * is run.
 */
#include "kmod_test.h"

#define TRACING "/sys/kernel/tracing/"
#define DEBUGFS "/sys/kernel/debug/airunner/"

static char text[1 << 18];

static const char *slurp(const char *path)
{
	size_t n = 0;
	ssize_t got;
	int fd = open(path, O_RDONLY);

	if (fd < 0)
		fail("%s: %s", path, strerror(errno));
	while ((got = read(fd, text + n, sizeof(text) - 1 - n)) > 0)
		n += got;
	text[n] = 0;
	close(fd);
	return text;
}

/* The line of @path that starts with @key, if it has all of @fields too. */
static void expect_line(const char *path, const char *key,
			const char *const *fields)
{
	char *line, *end;

	slurp(path);
	line = strncmp(text, key, strlen(key)) ? NULL : text;
	if (!line) {
		char want[64];

		snprintf(want, sizeof(want), "\n%s", key);
		line = strstr(text, want);
		if (!line)
			fail("%s has no line '%s':\n%s", path, key, text);
		line++;
	}
	end = strchr(line, '\n');
	if (end)
		*end = 0;
	for (; *fields; fields++) {
		if (!strstr(line, *fields))
			fail("%s: no '%s' in: %s", path, *fields, line);
	}
}

static const char *fdinfo(int fd)
{
	static char path[64];

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	return path;
}

static void lines(void)
{
	struct airunner_set_priority prio = {
		.size = sizeof(prio), .priority = AIRUNNER_PRIO_NORMAL,
		.weight = 7,
	};
	char key[32], pid[32], worker[32];
	struct airunner_event event;
	struct region r;
	struct worker w;
	int fd = device_open();

	channel_make(fd, &r);
	snprintf(key, sizeof(key), "channel: %u ", r.id);
	snprintf(pid, sizeof(pid), " pid=%d ", getpid());
	expect_line(fdinfo(fd), key, (const char *const[]){
		" state=waiting ", " turn=idle ", pid, " uid=0 ",
		" worker=0 ", " order=4 ", " pages=17 ", " priority=2 ",
		" weight=100 ", " sq_tail=0 ", " cq_head=0 ", NULL });

	attach(&w);
	snprintf(worker, sizeof(worker), " worker=%u ", w.id);
	event = expect_event(w.fd, AIRUNNER_EV_CHANNEL_NEW, r.id);
	check(worker_map(w.fd, &event));
	r.ctrl->sq_tail = 5;
	r.ctrl->cq_head = 3;
	check(!doorbell(fd, r.id));
	check(!doorbell(w.fd, r.id));
	expect_line(DEBUGFS "channels", key, (const char *const[]){
		" state=live ", " turn=ready ", worker, " sq_tail=5 ",
		" cq_head=3 ", " seq=1 ", " doorbells=1 ", " turns=0 ", NULL });
	expect_event(w.fd, AIRUNNER_EV_READY, r.id);
	report(w.fd, r.id, 0, 1234);
	expect_line(fdinfo(w.fd), key, (const char *const[]){
		" turn=serving ", " turns=1 ", " device_ns=1234 ", NULL });
	snprintf(key, sizeof(key), "worker: %u ", w.id);
	expect_line(DEBUGFS "workers", key, (const char *const[]){
		" name=test ", pid, " caps=0x1 ", " load=100 ", NULL });
	expect_line(fdinfo(w.fd), key, (const char *const[]){ NULL });

	/* Its load is the weights of its channels, as they are now. */
	prio.channel_id = r.id;
	check(!ioctl(fd, AIRUNNER_IOC_SET_PRIORITY, &prio));
	expect_line(DEBUGFS "workers", key, (const char *const[]){
		" load=7 ", NULL });

	snprintf(key, sizeof(key), "channel: %u ", r.id);
	check(!ftruncate(r.memfd, 0));
	expect_line(fdinfo(fd), key, (const char *const[]){
		" sq_tail=gone ", NULL });
	check(!destroy(&r));
	expect_line(DEBUGFS "channels", key, (const char *const[]){
		" state=closing ", NULL });
	check(!strstr(slurp(fdinfo(fd)), "channel:"));
	check(!detach(w.fd, r.id));
	check(!strstr(slurp(DEBUGFS "channels"), "channel:"));
	check(!strcmp(slurp(SYSFS "abi"), "1.0\n"));
}

/* What a user calls a process or a worker is one word of a line, and text. */
static void names_escaped(void)
{
	struct airunner_attach_worker arg = {
		.size = sizeof(arg),
		.name = "a b\nworker: 9\033[2J\\\377",
	};
	const char *want = " name=a\\040b\\nworker:\\0409\\e[2J\\\\\\377 ";
	char key[32];
	struct region r;
	int fd = device_open(), wfd = device_open();

	check(!prctl(PR_SET_NAME, "x y\n\\\033pid=1"));
	channel_make(fd, &r);
	snprintf(key, sizeof(key), "channel: %u ", r.id);
	expect_line(fdinfo(fd), key, (const char *const[]){
		" comm=x\\040y\\n\\\\\\epid=1 ", NULL });
	check(!ioctl(wfd, AIRUNNER_IOC_ATTACH_WORKER, &arg));
	snprintf(key, sizeof(key), "worker: %u ", arg.worker_id);
	expect_line(DEBUGFS "workers", key,
		    (const char *const[]){ want, NULL });
	expect_line(fdinfo(wfd), key, (const char *const[]){ want, NULL });
}

static void many_channels_listed(void)
{
	struct region r[300];
	const char *p;
	int i, n = 0, fd = device_open();

	for (i = 0; i < 300; i++) {
		region_make(&r[i], 2, 4096);
		check(!build(fd, &r[i]));
		close(r[i].memfd);
	}
	for (p = slurp(DEBUGFS "channels"); (p = strstr(p, "channel: ")); p++)
		n++;
	check_eq(n, 300);
}

/* The log says what happened, and says nothing of operators. */
static void log_lines(void)
{
	char line[4096], want[128];
	struct airunner_event event;
	struct region r;
	struct worker w;
	bool reached = false, registered = false, released = false;
	int log = open("/dev/kmsg", O_RDONLY | O_NONBLOCK), n = 0, i;
	int fd = device_open();
	ssize_t got;

	check(log >= 0);
	check(lseek(log, 0, SEEK_END) >= 0);
	attach(&w);
	channel_make(fd, &r);
	event = expect_event(w.fd, AIRUNNER_EV_CHANNEL_NEW, r.id);
	for (i = 0; i < 200; i++) {
		check(!doorbell(fd, event.channel_id));
		expect_event(w.fd, AIRUNNER_EV_READY, r.id);
		check(!doorbell(w.fd, r.id));
		report(w.fd, r.id, AIRUNNER_REPORT_IDLE, 1);
	}
	check(!detach(w.fd, r.id));
	check(!destroy(&r));
	snprintf(want, sizeof(want), "BUILD_CHANNEL: pid=%d va=0x%llx size=0x10400 channels=2",
		 getpid(), (unsigned long long)(uintptr_t)r.va);
	while ((got = read(log, line, sizeof(line) - 1)) > 0) {
		line[got] = 0;
		if (!strstr(line, "airunner: "))
			continue;
		n++;
		reached |= !!strstr(line, want);
		if (strstr(line, "registered") &&
		    strstr(line, "size=0x11000, pages=17"))
			registered = reached;
		released |= registered && strstr(line, "released, pages=17");
	}
	check(reached && registered && released);
	check(n < 10);
}

static bool trace_event(const char *name, const char *value)
{
	char path[128];

	snprintf(path, sizeof(path), TRACING "events/airunner/%s/enable", name);
	return write_text(path, value);
}

static void traced(void)
{
	static const char *const names[] = {
		"air_channel_build:", "air_channel_assign:",
		"air_channel_announce:", "air_channel_doorbell:",
		"air_channel_turn:", "air_channel_report:",
		"air_channel_completed:", "air_channel_owner_gone:",
		"air_channel_unassign:", "air_channel_release:",
		"air_channel_stop:", "air_channel_answered:",
		"air_worker_attach:", "air_worker_death:",
		"air_buffer_register:", "air_buffer_release:",
	};
	struct airunner_buffer b = {
		.size = sizeof(b), .handle = 1, .length = 4096,
	};
	struct region r, r2;
	struct worker w;
	size_t i;
	int fd = device_open();

	if (access(TRACING "events/airunner", F_OK))
		skip("no tracing here");
	check(trace_event(".", "1"));
	check(write_text(TRACING "trace", "\n"));
	attach(&w);
	channel_make(fd, &r);
	channel_make(fd, &r2);
	expect_event(w.fd, AIRUNNER_EV_CHANNEL_NEW, r.id);
	expect_event(w.fd, AIRUNNER_EV_CHANNEL_NEW, r2.id);
	b.channel_id = r.id;
	b.user_va = (uintptr_t)mmap(NULL, 4096, PROT_READ | PROT_WRITE,
				    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	check(!ioctl(fd, AIRUNNER_IOC_REGISTER_BUFFER, &b));
	check(!doorbell(fd, r.id));
	expect_event(w.fd, AIRUNNER_EV_READY, r.id);
	report(w.fd, r.id, AIRUNNER_REPORT_IDLE, 77);
	check(!doorbell(w.fd, r.id));
	check(!channel_call(fd, AIRUNNER_IOC_RESET_CHANNEL, r2.id));
	check(!destroy(&r));
	close(w.fd);
	check(trace_event(".", "0"));
	slurp(TRACING "trace");
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!strstr(text, names[i]))
			fail("no %s in the trace", names[i]);
	}
	check(strstr(text, "device_ns=77 completed=0 flags=IDLE"));
}

struct churn {
	atomic_int stop;
	int fd;
};

static void *churning(void *arg)
{
	struct churn *x = arg;
	struct region r;
	int i;

	for (i = 0; !atomic_load(&x->stop); i++) {
		struct worker w;

		if (i % 4 == 0)
			attach(&w);
		region_make(&r, 2, 4096);
		check(!build(x->fd, &r));
		check(!doorbell(x->fd, r.id));
		if (i % 3 == 0)
			check(!channel_call(x->fd, AIRUNNER_IOC_RESET_CHANNEL,
					    r.id));
		check(!destroy(&r));
		munmap(r.va, r.size);
		close(r.memfd);
		if (i % 4 == 0)
			close(w.fd);
	}
	return NULL;
}

static void readers_during_teardown(void)
{
	struct churn x = { .fd = device_open() };
	pthread_t thread[2];
	int64_t end = now_ns() + 3 * SECOND;
	int i;

	for (i = 0; i < 2; i++)
		check(!pthread_create(&thread[i], NULL, churning, &x));
	while (now_ns() < end) {
		slurp(DEBUGFS "channels");
		slurp(DEBUGFS "workers");
		slurp(fdinfo(x.fd));
		slurp(SYSFS "channels");
		slurp(SYSFS "pinned_pages");
	}
	atomic_store(&x.stop, 1);
	for (i = 0; i < 2; i++)
		check(!pthread_join(thread[i], NULL));
}

static const struct test_case cases[] = {
	/* First: the log is bounded, and others use it up. */
	{ "log_lines", log_lines },
	{ "lines", lines },
	{ "names_escaped", names_escaped },
	{ "many_channels_listed", many_channels_listed },
	{ "traced", traced },
	{ "readers_during_teardown", readers_during_teardown },
};

int main(int argc, char **argv)
{
	return RUN_CASES(cases, argc, argv);
}
