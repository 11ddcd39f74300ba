// SPDX-License-Identifier: MIT
/*
 * kmod_thread: accelerator threads: SET_THREAD_CLASS and
 * /proc/airunner_thread. See kmod_test.h for how it is run; with four CPUs it
 * shows all of it, with two most, with one nothing.
 */
#include <dirent.h>
#include <liburing.h>

#include "kmod_test.h"

#define PARAM "/sys/module/airunner/parameters/ai_cpus"
#define PROC "/proc/airunner_thread"

static int set_class(pid_t tid, uint32_t class)
{
	struct airunner_set_thread_class arg = {
		.size = sizeof(arg), .tid = tid, .thread_class = class,
	};
	int fd = device_open();
	int ret = ioctl(fd, AIRUNNER_IOC_SET_THREAD_CLASS, &arg);
	int error = errno;

	close(fd);
	errno = error;
	return ret;
}

static int cpus(void)
{
	return sysconf(_SC_NPROCESSORS_ONLN);
}

/* The upper half of the CPUs is for accelerator threads. */
static void configure(void)
{
	char list[32];

	if (cpus() < 2)
		skip("needs two CPUs");
	snprintf(list, sizeof(list), "%d-%d", cpus() / 2, cpus() - 1);
	check(write_text(PARAM, list));
}

static bool is_ai(int cpu)
{
	return cpu >= cpus() / 2;
}

/* Where thread @tid may run: all of it, none of it AI cores? */
static void check_allowed(pid_t tid, bool ai, bool rest)
{
	cpu_set_t set;
	int i;

	check(!sched_getaffinity(tid, sizeof(set), &set));
	for (i = 0; i < cpus(); i++) {
		if (!!CPU_ISSET(i, &set) != (is_ai(i) ? ai : rest))
			fail("thread %d: CPU %d is %sallowed", tid, i,
			     CPU_ISSET(i, &set) ? "" : "not ");
	}
}

static int move_to(pid_t tid, int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(tid, sizeof(set), &set);
}

static void not_configured(void)
{
	check(write_text(PARAM, "\n"));
	check_errno(set_class(0, AIRUNNER_THREAD_AI), ENODEV);
	check(!set_class(0, AIRUNNER_THREAD_NORMAL));
	check_allowed(0, true, true);
}

static void confined(void)
{
	int i, cpu, seen = 0;

	configure();
	check_allowed(0, true, true);
	check(!set_class(0, AIRUNNER_THREAD_AI));
	check_allowed(0, true, false);
	/* It really runs there, and cannot be made to run elsewhere. */
	for (i = 0; i < 200; i++) {
		cpu = sched_getcpu();
		check(is_ai(cpu));
		seen |= 1 << cpu;
		sched_yield();
	}
	check_errno(move_to(0, 0), EINVAL);
	check_errno(move_to(0, cpus() - 1), EINVAL);
	check_allowed(0, true, false);
	/* Twice is once. */
	check(!set_class(0, AIRUNNER_THREAD_AI));
	check(!set_class(0, AIRUNNER_THREAD_NORMAL));
	check_allowed(0, true, true);
	check(!move_to(0, 0));
	check_eq(sched_getcpu(), 0);
	check(!set_class(0, AIRUNNER_THREAD_NORMAL));
}

/* What it was allowed before, it is allowed again. */
static void restored(void)
{
	configure();
	check(!move_to(0, 0));
	check(!set_class(0, AIRUNNER_THREAD_AI));
	check_allowed(0, true, false);
	check(!set_class(0, AIRUNNER_THREAD_NORMAL));
	check_eq(sched_getcpu(), 0);
	{
		cpu_set_t set;

		check(!sched_getaffinity(0, sizeof(set), &set));
		check_eq(CPU_COUNT(&set), 1);
		check(CPU_ISSET(0, &set));
	}
}

static void *idle_thread(void *arg)
{
	atomic_int *state = arg;

	atomic_store(state, syscall(SYS_gettid));
	while (atomic_load(state) > 0)
		nap();
	return NULL;
}

/* One thread of a process, by its id; the others stay where they were. */
static void other_thread(void)
{
	atomic_int state = 0;
	pthread_t thread;
	pid_t tid;

	configure();
	check(!pthread_create(&thread, NULL, idle_thread, &state));
	eventually(atomic_load(&state));
	tid = atomic_load(&state);
	check(!set_class(tid, AIRUNNER_THREAD_AI));
	check_allowed(tid, true, false);
	check_allowed(0, true, true);
	check_errno(move_to(tid, 0), EINVAL);
	check(!move_to(0, 0));
	atomic_store(&state, -1);
	check(!pthread_join(thread, NULL));
	/* It is joined a moment before it is gone. */
	eventually(set_class(tid, AIRUNNER_THREAD_AI) && errno == ESRCH);
}

/* A child is a thread like any other: where its parent ran, but not marked. */
static void not_inherited(void)
{
	pid_t pid;

	configure();
	check(!set_class(0, AIRUNNER_THREAD_AI));
	fflush(stdout);
	pid = fork();
	if (!pid) {
		check(!move_to(0, 0));
		check_eq(sched_getcpu(), 0);
		_exit(0);
	}
	check_eq(reap(pid), 0);
}

static void idle(void *arg)
{
	become(BOB);
	atomic_store((atomic_int *)arg, 1);
	for (;;)
		pause();
}

static void as_alice(void *arg)
{
	pid_t bobs = *(pid_t *)arg;

	become(ALICE);
	check_errno(set_class(bobs, AIRUNNER_THREAD_AI), EPERM);
	check_errno(set_class(bobs, AIRUNNER_THREAD_NORMAL), EPERM);
	check_errno(set_class(1, AIRUNNER_THREAD_AI), EPERM);
	/* Her own, she may. */
	check(!set_class(0, AIRUNNER_THREAD_AI));
	check_allowed(0, true, false);
	check_errno(open(PROC, O_WRONLY), EACCES);
}

static void refused(void)
{
	struct airunner_set_thread_class arg = { .size = sizeof(arg) };
	atomic_int *ready = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int fd = device_open();
	pid_t bobs;

	configure();
	bobs = spawn(idle, ready);
	eventually(atomic_load(ready));
	check_eq(reap(spawn(as_alice, &bobs)), 0);
	check_allowed(bobs, true, true);
	/* Root may; nobody may with a kernel thread, or what is not there. */
	check(!set_class(bobs, AIRUNNER_THREAD_AI));
	check_allowed(bobs, true, false);
	check_errno(set_class(2, AIRUNNER_THREAD_AI), EPERM);
	check_errno(set_class(4000000, AIRUNNER_THREAD_AI), ESRCH);
	check_errno(set_class(-1, AIRUNNER_THREAD_AI), EINVAL);
	check_errno(set_class(0, 2), EINVAL);
	arg.flags = 1;
	check_errno(ioctl(fd, AIRUNNER_IOC_SET_THREAD_CLASS, &arg), EINVAL);
	kill(bobs, SIGKILL);
	reap(bobs);
}

static int write_proc(const char *text)
{
	int fd = open(PROC, O_WRONLY), ret, error;

	check(fd >= 0);
	errno = 0;
	ret = write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : -1;
	error = errno;
	close(fd);
	errno = error;
	return ret;
}

static bool proc_lists(pid_t tid)
{
	char line[64];
	FILE *f = fopen(PROC, "r");
	bool found = false;

	check(f);
	while (fgets(line, sizeof(line), f))
		found |= strtol(line, NULL, 10) == tid && strstr(line, " ai\n");
	fclose(f);
	return found;
}

/* A privileged program that was given the file decides nothing. */
static void proc_of_opener(void)
{
	char text[32];
	pid_t bobs;
	atomic_int *ready = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int fd;

	configure();
	bobs = spawn(idle, ready);
	eventually(atomic_load(ready));
	check(!chmod(PROC, 0666));
	check(!seteuid(ALICE));
	fd = open(PROC, O_WRONLY);
	check(fd >= 0);
	check(!seteuid(0));
	check(!chmod(PROC, 0660));
	snprintf(text, sizeof(text), "%d", bobs);
	check_errno(write(fd, text, strlen(text)), EPERM);
	check_allowed(bobs, true, true);
	/* Opened by who may. */
	check(!write_proc(text));
	check_allowed(bobs, true, false);
	kill(bobs, SIGKILL);
	reap(bobs);
}

/* A thread of this process that is called @name, or 0. */
static pid_t thread_called(const char *name)
{
	struct dirent *e;
	DIR *dir = opendir("/proc/self/task");
	pid_t tid = 0;

	check(dir);
	while ((e = readdir(dir))) {
		char path[300], comm[32] = "";
		FILE *f;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm",
			 e->d_name);
		f = fopen(path, "r");
		if (!f)
			continue;
		if (fgets(comm, sizeof(comm), f) &&
		    !strncmp(comm, name, strlen(name)))
			tid = atoi(e->d_name);
		fclose(f);
	}
	closedir(dir);
	return tid;
}

/* Threads of io_uring are the kernel's to place. */
static void io_worker_refused(void)
{
	struct io_uring_sqe *sqe;
	struct io_uring ring;
	int pipes[2];
	char byte;
	pid_t tid;

	configure();
	if (io_uring_queue_init(4, &ring, 0))
		skip("no io_uring here");
	check(!pipe(pipes));
	sqe = io_uring_get_sqe(&ring);
	io_uring_prep_read(sqe, pipes[0], &byte, 1, 0);
	sqe->flags |= IOSQE_ASYNC;
	check_eq(io_uring_submit(&ring), 1);
	eventually((tid = thread_called("iou-wrk-")));
	check_errno(set_class(tid, AIRUNNER_THREAD_AI), EPERM);
	check_errno(set_class(tid, AIRUNNER_THREAD_NORMAL), EPERM);
	check(!proc_lists(tid));
	check_eq(write(pipes[1], "x", 1), 1);
	io_uring_queue_exit(&ring);
}

/*
 * The kernel changes flags of a thread without atomics while the thread runs:
 * marks that come and go meanwhile leave none behind.
 */
static void *busy_with_flags(void *arg)
{
	atomic_int *state = arg;
	void *p;

	atomic_store(state, gettid());
	while (atomic_load(state) >= 0) {
		/* Page faults and allocations of all kinds do. */
		p = mmap(NULL, 16 * 4096, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
		if (p != MAP_FAILED)
			munmap(p, 16 * 4096);
		prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0);
		prctl(PR_SET_IO_FLUSHER, 0, 0, 0, 0);
	}
	return NULL;
}

static void unmarked_for_good(void)
{
	atomic_int state = 0;
	pthread_t thread;
	pid_t tid;
	int i;

	configure();
	check(!pthread_create(&thread, NULL, busy_with_flags, &state));
	eventually(atomic_load(&state));
	tid = atomic_load(&state);
	for (i = 0; i < 100; i++) {
		check(!set_class(tid, AIRUNNER_THREAD_AI));
		check(!set_class(tid, AIRUNNER_THREAD_NORMAL));
		check(!move_to(tid, i % cpus()));
	}
	atomic_store(&state, -1);
	check(!pthread_join(thread, NULL));
}

static void proc_file(void)
{
	atomic_int state = 0;
	pthread_t thread;
	char text[64];
	pid_t tid;

	configure();
	check(!pthread_create(&thread, NULL, idle_thread, &state));
	eventually(atomic_load(&state));
	tid = atomic_load(&state);
	check(!proc_lists(tid));
	snprintf(text, sizeof(text), "%d\n", tid);
	check(!write_proc(text));
	check(proc_lists(tid));
	check_allowed(tid, true, false);
	snprintf(text, sizeof(text), "%d normal\n", tid);
	check(!write_proc(text));
	check(!proc_lists(tid));
	check_allowed(tid, true, true);
	snprintf(text, sizeof(text), "%d  ai", tid);
	check(!write_proc(text));
	check_allowed(tid, true, false);
	snprintf(text, sizeof(text), "%d fast", tid);
	check_errno(write_proc(text), EINVAL);
	check_errno(write_proc("x"), EINVAL);
	check_errno(write_proc("12 ai 12 ai 12 ai 12 ai 12 ai 12 ai 12 ai"),
		    EINVAL);
	check_errno(write_proc("99999999999"), ERANGE);
	check_errno(write_proc("4000000"), ESRCH);
	/* A thread that has gone is not listed, and forgotten by itself. */
	atomic_store(&state, -1);
	check(!pthread_join(thread, NULL));
	eventually(!proc_lists(tid));
}

/* The set of cores changes under marked threads. */
static void cores_change(void)
{
	char list[32];

	configure();
	check(!set_class(0, AIRUNNER_THREAD_AI));
	check_errno(write_text(PARAM, "\n") ? 0 : -1, EBUSY);
	check_allowed(0, true, false);
	check(write_text(PARAM, "0"));
	check_eq(sched_getcpu(), 0);
	check_errno(move_to(0, cpus() - 1), EINVAL);
	snprintf(list, sizeof(list), "%d-%d", cpus() / 2, cpus() - 1);
	check(write_text(PARAM, list));
	check_allowed(0, true, false);
	check_errno(write_text(PARAM, "100000") ? 0 : -1, ERANGE);
	check_errno(write_text(PARAM, "zero") ? 0 : -1, EINVAL);
	check_allowed(0, true, false);
	check(!set_class(0, AIRUNNER_THREAD_NORMAL));
	check(write_text(PARAM, "\n"));
}

static void exec_probe(void *arg)
{
	check(!set_class(0, AIRUNNER_THREAD_AI));
	execl("/bin/busybox", "sleep", "1000", (char *)NULL);
	fail("exec");
}

/* exec takes the kernel's flag off; it is put back. */
static void survives_exec(void)
{
	pid_t pid;

	configure();
	pid = spawn(exec_probe, NULL);
	eventually(move_to(pid, 0) && errno == EINVAL &&
		   process_state(pid) == 'S');
	eventually(proc_lists(pid));
	kill(pid, SIGKILL);
	reap(pid);
}

/* Confined threads under load stay there, the others are not pushed away. */
static void under_load(void)
{
	pid_t pid[8];
	int i;

	configure();
	for (i = 0; i < 8; i++) {
		fflush(stdout);
		pid[i] = fork();
		if (!pid[i]) {
			int64_t end;
			bool ai = i & 1, rest = false;

			prctl(PR_SET_PDEATHSIG, SIGKILL);
			if (ai)
				check(!set_class(0, AIRUNNER_THREAD_AI));
			end = now_ns() + SECOND;
			while (now_ns() < end) {
				if (ai)
					check(is_ai(sched_getcpu()));
				else
					rest |= !is_ai(sched_getcpu());
				sched_yield();
			}
			fflush(stdout);
			_exit(ai || rest ? 0 : 3);
		}
	}
	for (i = 0; i < 8; i++) {
		int status = reap(pid[i]);

		/* Where it went was up to the scheduler. */
		if (i & 1)
			check_eq(status, 0);
		else
			check(WIFEXITED(status) && (!WEXITSTATUS(status) ||
						    WEXITSTATUS(status) == 3));
	}
}

static const struct test_case cases[] = {
	{ "not_configured", not_configured },
	{ "confined", confined },
	{ "restored", restored },
	{ "other_thread", other_thread },
	{ "not_inherited", not_inherited },
	{ "refused", refused },
	{ "proc_file", proc_file },
	{ "proc_of_opener", proc_of_opener },
	{ "io_worker_refused", io_worker_refused },
	{ "unmarked_for_good", unmarked_for_good },
	{ "cores_change", cores_change },
	{ "survives_exec", survives_exec },
	{ "under_load", under_load },
};

int main(int argc, char **argv)
{
	return RUN_CASES(cases, argc, argv);
}
