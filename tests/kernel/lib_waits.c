// SPDX-License-Identifier: MIT
/*
 * lib_waits: how the library waits at /dev/airunner, with airunnerd serving:
 * by ioctl, through io_uring where the kernel offers it, where a seccomp filter
 * forbids that and membarrier(2), through the event descriptor; time-outs; a
 * channel that is reset; refusals. Run by daemon_waits.sh.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <airunner.h>

#include "include/uapi/airunner.h"

/* Emulated and busy machines are slow; this bounds hangs only. */
#define PATIENCE_NS (90 * INT64_C(1000000000))

static int failed;

#define EXPECT(cond)                                                           \
	do {                                                                   \
		if (!(cond)) {                                                 \
			printf("line %d: %s (%s)\n", __LINE__, #cond,          \
			       air_last_error());                              \
			return 1;                                              \
		}                                                              \
	} while (0)

struct user {
	air_device *dev;
	air_channel *ch;
};

static int begin(struct user *u, uint64_t spin_ns)
{
	struct air_device_options o = { .size = sizeof(o), .spin_ns = spin_ns };

	EXPECT(air_open(AIRUNNER_DEVICE, &o, &u->dev) == AIR_OK);
	EXPECT(air_channel_create(u->dev, NULL, &u->ch) == AIR_OK);
	return 0;
}

static int finish(struct user *u)
{
	EXPECT(air_channel_destroy(u->ch) == AIR_OK);
	EXPECT(air_close(u->dev) == AIR_OK);
	return 0;
}

static air_status nop(struct user *u, air_token *token)
{
	struct air_call call;

	air_prepare_nop(&call);
	return air_submit(u->ch, &call, 1, token);
}

static int round_trips(struct user *u, int n)
{
	for (int i = 0; i < n; i++) {
		air_token token;

		EXPECT(nop(u, &token) == AIR_OK);
		EXPECT(air_wait(u->ch, token, PATIENCE_NS, NULL) == AIR_OK);
	}
	return 0;
}

static bool has_uring_fd(void)
{
	DIR *dir = opendir("/proc/self/fd");
	bool found = false;
	struct dirent *e;

	while (dir && (e = readdir(dir))) {
		char link[64] = "";

		if (readlinkat(dirfd(dir), e->d_name, link, sizeof(link) - 1) >
		    0)
			found |= !strcmp(link, "anon_inode:[io_uring]");
	}
	if (dir)
		closedir(dir);
	return found;
}

static bool uring_offered(void)
{
	struct airunner_info info = { .size = sizeof(info) };
	int fd = open(AIRUNNER_DEVICE, O_RDWR | O_CLOEXEC);
	int r = ioctl(fd, AIRUNNER_IOC_GET_INFO, &info);

	close(fd);
	return !r && info.features & AIRUNNER_FEAT_URING;
}

/* ------------------------------------------------------------- scenarios */

static int waits_asleep(void)
{
	struct user u;

	if (begin(&u, 1) || round_trips(&u, 500))
		return 1;
	EXPECT(has_uring_fd() == uring_offered());
	return finish(&u);
}

static int waits_spinning(void)
{
	struct user u;

	return begin(&u, 0) || round_trips(&u, 500) || finish(&u);
}

static int forbid(const int *syscalls, unsigned int n)
{
	struct sock_filter code[16] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
	};
	struct sock_fprog prog = { .filter = code };
	unsigned int at = 1;

	for (unsigned int i = 0; i < n; i++) {
		code[at++] =
			(struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
						     (unsigned int)syscalls[i],
						     0, 1);
		code[at++] = (struct sock_filter)BPF_STMT(
			BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
	}
	code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
						  SECCOMP_RET_ALLOW);
	prog.len = (unsigned short)at;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -1;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog);
}

static int waits_under_seccomp(void)
{
	static const int both[] = { SYS_io_uring_setup, SYS_membarrier };
	struct user u;

	if (forbid(both, 2))
		return 77;
	if (begin(&u, 1) || round_trips(&u, 200))
		return 1;
	EXPECT(!has_uring_fd());
	return finish(&u);
}

static void *wait_own(void *arg)
{
	return (void *)(intptr_t)round_trips(arg, 100);
}

static int waits_in_several_threads(void)
{
	pthread_t thread[4];
	struct user u;
	void *r, *any = NULL;

	if (begin(&u, 1))
		return 1;
	for (int i = 0; i < 4; i++)
		pthread_create(&thread[i], NULL, wait_own, &u);
	for (int i = 0; i < 4; i++) {
		pthread_join(thread[i], &r);
		any = any ? any : r;
	}
	EXPECT(!any);
	return finish(&u);
}

static int waits_for_the_descriptor(void)
{
	struct pollfd p = { .events = POLLIN };
	struct user u;

	if (begin(&u, 1))
		return 1;
	EXPECT(air_channel_fd(u.ch, &p.fd) == AIR_OK);
	for (int i = 0; i < 100; i++) {
		struct air_completion c;
		air_token token;

		EXPECT(nop(&u, &token) == AIR_OK);
		while (air_next(u.ch, &c) == AIR_PENDING) {
			air_status status = air_channel_arm(u.ch);

			EXPECT(status == AIR_OK || status == AIR_BUSY);
			if (status == AIR_OK)
				EXPECT(poll(&p, 1, 90000) == 1);
		}
		EXPECT(c.token == token && c.status == AIR_OK);
	}
	return finish(&u);
}

static pid_t worker_pid(void)
{
	FILE *f = popen("pidof airunnerd", "r");
	int pid = 0;

	if (f && fscanf(f, "%d", &pid) != 1)
		pid = 0;
	if (f)
		pclose(f);
	return pid;
}

static int times_out(void)
{
	pid_t worker = worker_pid();
	air_token token;
	struct user u;

	EXPECT(worker > 0);
	if (begin(&u, 1) || round_trips(&u, 1))
		return 1;
	EXPECT(kill(worker, SIGSTOP) == 0);
	EXPECT(nop(&u, &token) == AIR_OK);
	for (int i = 0; i < 3; i++)
		EXPECT(air_wait(u.ch, token, 20000000, NULL) == AIR_TIMEOUT);
	EXPECT(kill(worker, SIGCONT) == 0);
	EXPECT(air_wait(u.ch, token, PATIENCE_NS, NULL) == AIR_OK);
	return finish(&u);
}

/* There is no other channel: the one that can be reset is ours. */
static int reset_channel(void)
{
	int fd = open(AIRUNNER_DEVICE, O_RDWR | O_CLOEXEC), r = -1;

	for (uint32_t id = 1; id < 1000 && r; id++) {
		struct airunner_channel_ref ref = { .size = sizeof(ref),
						    .channel_id = id };

		r = ioctl(fd, AIRUNNER_IOC_RESET_CHANNEL, &ref);
	}
	close(fd);
	return r;
}

static int is_reset(void)
{
	pid_t worker = worker_pid();
	air_token token, late;
	air_status status;
	struct user u;

	EXPECT(worker > 0);
	if (begin(&u, 1) || round_trips(&u, 1))
		return 1;
	EXPECT(kill(worker, SIGSTOP) == 0);
	EXPECT(nop(&u, &token) == AIR_OK);
	EXPECT(reset_channel() == 0);
	EXPECT(air_wait(u.ch, token, PATIENCE_NS, NULL) == AIR_RESET);
	EXPECT(strstr(air_last_error(), "reset"));
	EXPECT(kill(worker, SIGCONT) == 0);
	/* It has ended: said at once, or by the answer. */
	status = nop(&u, &late);
	if (status == AIR_OK)
		status = air_wait(u.ch, late, PATIENCE_NS, NULL);
	EXPECT(status == AIR_CHANNEL_DEAD || status == AIR_RESET);
	EXPECT(nop(&u, &late) == AIR_CHANNEL_DEAD);
	EXPECT(strstr(air_last_error(), "ended"));
	return finish(&u);
}

static int names_the_limit(void)
{
	struct rlimit limit = { 65536, 65536 };
	air_device *dev;
	air_channel *ch;

	/* To root there is no limit. */
	EXPECT(setrlimit(RLIMIT_MEMLOCK, &limit) == 0);
	EXPECT(setresgid(1000, 1000, 1000) == 0);
	EXPECT(air_open(AIRUNNER_DEVICE, NULL, &dev) == AIR_OK);
	EXPECT(setresuid(1000, 1000, 1000) == 0);
	EXPECT(air_channel_create(dev, NULL, &ch) == AIR_MEMLOCK);
	EXPECT(strstr(air_last_error(), "limited to 65536 bytes"));
	EXPECT(strstr(air_last_error(), "ulimit -l"));
	EXPECT(strstr(air_last_error(), "LimitMEMLOCK="));
	EXPECT(air_close(dev) == AIR_OK);
	return 0;
}

static int names_the_group(void)
{
	air_device *dev;

	EXPECT(setgroups(0, NULL) == 0);
	EXPECT(setresgid(54321, 54321, 54321) == 0);
	EXPECT(setresuid(54321, 54321, 54321) == 0);
	EXPECT(air_open(AIRUNNER_DEVICE, NULL, &dev) == AIR_PERMISSION);
	EXPECT(strstr(air_last_error(), "group airunner"));
	return 0;
}

static int refuses_priority(void)
{
	struct air_channel_options o = { .size = sizeof(o), .priority = 1 };
	air_device *dev;
	air_channel *ch;

	EXPECT(air_open(AIRUNNER_DEVICE, NULL, &dev) == AIR_OK);
	EXPECT(air_channel_create(dev, &o, &ch) == AIR_OK);
	EXPECT(air_channel_destroy(ch) == AIR_OK);
	EXPECT(setresuid(1000, 1000, 1000) == 0);
	EXPECT(air_channel_create(dev, &o, &ch) == AIR_PERMISSION);
	EXPECT(strstr(air_last_error(), "CAP_SYS_NICE"));
	EXPECT(air_close(dev) == AIR_OK);
	return 0;
}

/* Each in a process of its own: some cannot be taken back. */
static void run(const char *name, int (*scenario)(void))
{
	int status = 0;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		status = scenario();
		fflush(stdout);
		_exit(status);
	}
	waitpid(pid, &status, 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
		printf("ok lib_waits: %s\n", name);
	} else if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
		printf("skip lib_waits: %s: not on this kernel\n", name);
	} else {
		printf("not ok lib_waits: %s\n", name);
		failed = 1;
	}
}

int main(void)
{
	run("asleep", waits_asleep);
	run("spinning", waits_spinning);
	run("without io_uring and membarrier", waits_under_seccomp);
	run("in several threads", waits_in_several_threads);
	run("for the event descriptor", waits_for_the_descriptor);
	run("until a time-out", times_out);
	run("on a channel that is reset", is_reset);
	run("limit of locked memory is named", names_the_limit);
	run("group is named", names_the_group);
	run("priority is refused", refuses_priority);
	return failed;
}
