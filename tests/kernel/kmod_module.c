// SPDX-License-Identifier: MIT
/*
 * kmod_module: loading and unloading: refused while in use, possible after a
 * kill, a hundred times over, and with readers of all that can be read. See
 * kmod_test.h for how it is run; the guest has the module as
 * /airunner/airunner.ko.
 */
/* A kernel that checks everything takes seconds to load a module. */
#define CASE_SECONDS 400
#include "kmod_test.h"

#define KO "/airunner/airunner.ko"

static int unload(void)
{
	return syscall(SYS_delete_module, "airunner", O_NONBLOCK);
}

static int load(const char *args)
{
	int fd = open(KO, O_RDONLY | O_CLOEXEC), ret;

	check(fd >= 0);
	ret = syscall(SYS_finit_module, fd, args, 0);
	close(fd);
	return ret;
}

/* What a udev rule does, which is not there. */
static void give_to_group(void)
{
	eventually(!access(AIRUNNER_DEVICE, F_OK));
	check(!chown(AIRUNNER_DEVICE, 0, GROUP_AIRUNNER));
	check(!chmod(AIRUNNER_DEVICE, 0660));
}

static void mode_is_0660(void)
{
	struct stat st;

	eventually(!unload());
	check(!load(""));
	eventually(!access(AIRUNNER_DEVICE, F_OK));
	check(!stat(AIRUNNER_DEVICE, &st));
	check_eq(st.st_mode & 07777, 0660);
	give_to_group();
}

static void refused_while_open(void)
{
	struct airunner_event event;
	struct region r;
	struct worker w;
	void *va;
	int fd = device_open();

	check_errno(unload(), EAGAIN);
	attach(&w);
	channel_make(fd, &r);
	event = expect_event(w.fd, AIRUNNER_EV_CHANNEL_NEW, r.id);
	va = worker_map(w.fd, &event);
	check_errno(unload(), EAGAIN);
	close(fd);
	check_errno(unload(), EAGAIN);
	close(w.fd);
	/* What is mapped is a file of the module's on the client's memory. */
	check_errno(unload(), EAGAIN);
	check(!munmap(va, event.region_size));
	eventually(!unload());
	check(!load(""));
	give_to_group();
}

static void user(void *arg)
{
	struct region r;
	uint64_t seq = 0;

	channel_make(device_open(), &r);
	atomic_store((atomic_int *)arg, 1);
	for (;;)
		client_wait(r.fd, r.id, &seq, -1);
}

static void possible_after_kill(void)
{
	atomic_int *ready = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid = spawn(user, ready);

	eventually(atomic_load(ready));
	check_errno(unload(), EAGAIN);
	kill(pid, SIGKILL);
	reap(pid);
	eventually(!unload());
	check(!load(""));
	give_to_group();
}

static const char *const readable[] = {
	SYSFS "channels", SYSFS "workers", SYSFS "pinned_pages", SYSFS "abi",
	"/sys/kernel/debug/airunner/channels",
	"/sys/kernel/debug/airunner/workers", "/proc/airunner_thread",
	"/sys/module/airunner/parameters/ai_cpus",
};

static void reader(void *arg)
{
	char buf[4096];
	size_t i;
	int fd;

	for (;;) {
		for (i = 0; i < sizeof(readable) / sizeof(readable[0]); i++) {
			fd = open(readable[i], O_RDONLY);
			if (fd < 0)
				continue;
			while (read(fd, buf, sizeof(buf)) > 0)
				;
			close(fd);
		}
		nap();
	}
}

static void hundred_times(void)
{
	int i, fd;
	pid_t pid = spawn(reader, NULL);
	struct region r;

	for (i = 0; i < 100; i++) {
		/* A reader may be in one of the files. */
		eventually(!unload());
		check_errno(open(AIRUNNER_DEVICE, O_RDWR), ENOENT);
		check(!load(i & 1 ? "quantum_us=500 starve_ms=50" : ""));
		eventually(!access(AIRUNNER_DEVICE, F_OK));
		fd = device_open();
		channel_make(fd, &r);
		close(fd);
		munmap(r.va, r.size);
		close(r.memfd);
	}
	kill(pid, SIGKILL);
	reap(pid);
	eventually(!unload());
	check(!load(""));
	give_to_group();
}

/* A thread that is marked when the module goes is as it was before. */
static void unload_unmarks(void)
{
	struct airunner_set_thread_class arg = {
		.size = sizeof(arg), .thread_class = AIRUNNER_THREAD_AI,
	};
	cpu_set_t before, after;
	int fd;

	check(!sched_getaffinity(0, sizeof(before), &before));
	if (CPU_COUNT(&before) < 2)
		skip("needs two CPUs");
	eventually(!unload());
	check(!load("ai_cpus=1"));
	give_to_group();
	fd = device_open();
	check(!ioctl(fd, AIRUNNER_IOC_SET_THREAD_CLASS, &arg));
	check(!sched_getaffinity(0, sizeof(after), &after));
	check_eq(CPU_COUNT(&after), 1);
	close(fd);
	eventually(!unload());
	check(!sched_getaffinity(0, sizeof(after), &after));
	check(CPU_EQUAL(&before, &after));
	check(!sched_setaffinity(0, sizeof(before), &before));
	check(!load(""));
	give_to_group();
}

static void bad_parameters(void)
{
	eventually(!unload());
	check_errno(load("ai_cpus=nonsense"), EINVAL);
	check_errno(load("quantum_us=nonsense"), EINVAL);
	check(!load(""));
	give_to_group();
}

static const struct test_case cases[] = {
	{ "mode_is_0660", mode_is_0660 },
	{ "refused_while_open", refused_while_open },
	{ "possible_after_kill", possible_after_kill },
	{ "hundred_times", hundred_times },
	{ "unload_unmarks", unload_unmarks },
	{ "bad_parameters", bad_parameters },
};

int main(int argc, char **argv)
{
	return RUN_CASES(cases, argc, argv);
}
