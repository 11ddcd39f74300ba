// SPDX-License-Identifier: MIT
/*
 * kmod_lifetime: who may die when. Each way in which an owner, a worker, both,
 * or the region under them goes away; nobody hangs, every outstanding
 * submission is answered, nothing stays pinned. See kmod_test.h for how it is
 * run.
 */
#include "kmod_test.h"

/* A page that parent and child share, to agree on where they are. */
struct shared {
	atomic_int step;
	atomic_int mapped;
	uint32_t id;
	uint64_t mmap_offset;
};

static struct shared *shared_make(void)
{
	struct shared *s = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	check(s != MAP_FAILED);
	return s;
}

static void reach(struct shared *s, int step)
{
	atomic_store(&s->step, step);
}

static void await(struct shared *s, int step)
{
	eventually(atomic_load(&s->step) >= step);
}

static void sleep_for_ever(void)
{
	for (;;)
		pause();
}

/* ------------------------------------------------------- a worker dies */

/* Attach, take the first channel and a turn, say so, and do nothing more. */
static void taking_worker(void *arg)
{
	struct shared *s = arg;
	struct airunner_event event;
	struct worker w;

	attach(&w);
	reach(s, 1);
	event = expect_event(w.fd, AIRUNNER_EV_CHANNEL_NEW, 0);
	check(worker_map(w.fd, &event));
	expect_event(w.fd, AIRUNNER_EV_READY, event.channel_id);
	reach(s, 2);
	sleep_for_ever();
}

static void worker_killed(void)
{
	struct shared *s = shared_make();
	struct airunner_event event;
	struct region r;
	struct worker w;
	uint64_t seq = 0;
	pid_t pid;
	void *va;
	int i, fd = device_open();

	pid = spawn(taking_worker, s);
	await(s, 1);
	channel_make(fd, &r);
	for (i = 0; i < 5; i++)
		submit(&r, AIRUNNER_OP_NOP);
	await(s, 2);
	/* Two are answered, out of order; three are outstanding. */
	answer(r.va, r.order, 0, AIRUNNER_S_OK);
	answer(r.va, r.order, 3, AIRUNNER_S_OK);
	/* As if it had not asked for doorbells when it died. */
	atomic_store((_Atomic uint32_t *)&r.ctrl->sq_flags, 0);
	check(!kill(pid, SIGKILL));
	reap(pid);

	check(!client_wait(fd, r.id, &seq, 30 * SECOND));
	check_eq(answer_of(&r, 0), AIRUNNER_S_OK);
	check_eq(answer_of(&r, 1), AIRUNNER_S_WORKER_DIED);
	check_eq(answer_of(&r, 2), AIRUNNER_S_WORKER_DIED);
	check_eq(answer_of(&r, 3), AIRUNNER_S_OK);
	check_eq(answer_of(&r, 4), AIRUNNER_S_WORKER_DIED);
	check_eq(answer_of(&r, 5), -1);
	check(r.ctrl->sq_flags & AIRUNNER_SQ_NEED_WAKEUP);

	/* Life goes on with the next: what comes is not answered by us. */
	submit(&r, AIRUNNER_OP_NOP);
	check_eq(answer_of(&r, 5), -1);
	attach(&w);
	event = expect_event(w.fd, AIRUNNER_EV_CHANNEL_NEW, r.id);
	va = worker_map(w.fd, &event);
	expect_event(w.fd, AIRUNNER_EV_READY, r.id);
	check(submitted(va, r.order, 5));
	answer(va, r.order, 5, AIRUNNER_S_OK);
	check(!doorbell(w.fd, r.id));
	check(!client_wait(fd, r.id, &seq, 30 * SECOND));
	check_eq(answer_of(&r, 5), AIRUNNER_S_OK);
}

/* The ring has gone round, so that laps differ within it. */
static void worker_killed_wrapped(void)
{
	struct shared *s = shared_make();
	struct region r;
	uint64_t seq = 0;
	pid_t pid;
	int i, j, fd = device_open();
	const int laps = 600, n = 16 * laps + 7;

	pid = spawn(taking_worker, s);
	await(s, 1);
	channel_make(fd, &r);
	submit(&r, AIRUNNER_OP_NOP);
	await(s, 2);
	atomic_store((_Atomic uint32_t *)&r.ctrl->sq_flags, 0);
	/* Through the wrap of the 8-bit lap, twice. */
	for (i = 0; i < n; i++) {
		answer(r.va, r.order, i, AIRUNNER_S_OK);
		submit(&r, AIRUNNER_OP_NOP);
	}
	for (j = 0; j < 10; j++)
		submit(&r, AIRUNNER_OP_NOP);
	check(!kill(pid, SIGKILL));
	reap(pid);
	check(!client_wait(fd, r.id, &seq, 30 * SECOND));
	for (j = n - 5; j < n; j++)
		check_eq(answer_of(&r, j), AIRUNNER_S_OK);
	for (j = n; j < n + 11; j++)
		check_eq(answer_of(&r, j), AIRUNNER_S_WORKER_DIED);
	check_eq(answer_of(&r, n + 11), -1);
}

/* A slot that is being published is its producer's: it is not answered. */
static void worker_killed_half_published(void)
{
	struct shared *s = shared_make();
	_Atomic uint64_t *slot;
	struct region r;
	uint64_t seq = 0;
	pid_t pid;
	int fd = device_open();

	pid = spawn(taking_worker, s);
	await(s, 1);
	channel_make(fd, &r);
	submit(&r, AIRUNNER_OP_NOP);
	slot = sq_slot(r.va, r.order, 1);
	atomic_store(&slot[3], airunner_word(1, airunner_lap(1, r.order)));
	await(s, 2);
	check(!kill(pid, SIGKILL));
	reap(pid);
	check(!client_wait(fd, r.id, &seq, 30 * SECOND));
	check_eq(answer_of(&r, 0), AIRUNNER_S_WORKER_DIED);
	check_eq(answer_of(&r, 1), -1);
}

static void worker_killed_before_told(void)
{
	struct region r;
	struct worker w, w2;
	uint64_t seq = 0;
	int fd = device_open();

	attach(&w);
	channel_make(fd, &r);
	submit(&r, AIRUNNER_OP_NOP);
	close(w.fd);
	/* It never had it: nothing to answer, the next one gets it. */
	check_errno(client_wait(fd, r.id, &seq, 0), ETIME);
	check_eq(answer_of(&r, 0), -1);
	attach(&w2);
	expect_event(w2.fd, AIRUNNER_EV_CHANNEL_NEW, r.id);
	expect_event(w2.fd, AIRUNNER_EV_READY, r.id);
}

static void worker_killed_other_takes_over(void)
{
	struct airunner_event event;
	struct shared *s = shared_make();
	struct region r;
	struct worker w;
	pid_t pid;
	int fd = device_open();

	pid = spawn(taking_worker, s);
	await(s, 1);
	channel_make(fd, &r);
	submit(&r, AIRUNNER_OP_NOP);
	await(s, 2);
	attach(&w);
	expect_no_event(w.fd);
	check(!kill(pid, SIGKILL));
	event = expect_event(w.fd, AIRUNNER_EV_CHANNEL_NEW, r.id);
	check(worker_map(w.fd, &event));
	expect_event(w.fd, AIRUNNER_EV_READY, r.id);
	reap(pid);
}

static void forking_worker(void *arg)
{
	struct shared *s = arg;
	struct worker w;

	attach(&w);
	/* A child that has the file and knows nothing of it. */
	if (!fork()) {
		prctl(PR_SET_PDEATHSIG, 0);
		s->id = getpid();
		reach(s, 1);
		sleep_for_ever();
	}
	expect_event(w.fd, AIRUNNER_EV_CHANNEL_NEW, 0);
	expect_event(w.fd, AIRUNNER_EV_READY, 0);
	reach(s, 2);
	sleep_for_ever();
}

static void worker_killed_child_has_file(void)
{
	struct shared *s = shared_make();
	struct region r;
	uint64_t seq = 0;
	pid_t pid;
	int fd = device_open();

	pid = spawn(forking_worker, s);
	await(s, 1);
	channel_make(fd, &r);
	submit(&r, AIRUNNER_OP_NOP);
	await(s, 2);
	check(!kill(pid, SIGKILL));
	reap(pid);
	check(!client_wait(fd, r.id, &seq, 30 * SECOND));
	check_eq(answer_of(&r, 0), AIRUNNER_S_WORKER_DIED);
	check_eq(read_number(SYSFS "workers"), 0);
	kill(s->id, SIGKILL);
}

/* The child of a worker exits: nothing of the worker's. */
static void worker_child_exits(void)
{
	struct region r;
	struct worker w;
	pid_t pid;
	int fd = device_open();

	attach(&w);
	channel_make(fd, &r);
	expect_event(w.fd, AIRUNNER_EV_CHANNEL_NEW, r.id);
	pid = fork();
	if (!pid)
		_exit(0);
	reap(pid);
	check_eq(read_number(SYSFS "workers"), 1);
	submit(&r, AIRUNNER_OP_NOP);
	expect_event(w.fd, AIRUNNER_EV_READY, r.id);
}

static void *thread_with_files(void *arg)
{
	check(!unshare(CLONE_FILES));
	return NULL;
}

/* A thread that ends, with a table of files of its own, is not the worker. */
static void worker_thread_exits(void)
{
	struct region r;
	struct worker w;
	pthread_t thread;
	int fd = device_open();

	attach(&w);
	channel_make(fd, &r);
	expect_event(w.fd, AIRUNNER_EV_CHANNEL_NEW, r.id);
	check(!pthread_create(&thread, NULL, thread_with_files, NULL));
	check(!pthread_join(thread, NULL));
	check_eq(read_number(SYSFS "workers"), 1);
	submit(&r, AIRUNNER_OP_NOP);
	expect_event(w.fd, AIRUNNER_EV_READY, r.id);
}

static void waiting_worker(void *arg)
{
	struct airunner_event event;
	struct worker w;

	attach(&w);
	reach(arg, 1);
	for (;;)
		worker_wait(w.fd, NULL, 0, &event, 1, -1);
}

static void worker_killed_in_wait(void)
{
	struct shared *s = shared_make();
	pid_t pid = spawn(waiting_worker, s);

	await(s, 1);
	eventually(process_state(pid) == 'S');
	check(!kill(pid, SIGKILL));
	check(WIFSIGNALED(reap(pid)));
	eventually(!read_number(SYSFS "workers"));
}

/* An orderly worker gives a channel back: the next one gets it, unanswered. */
static void worker_gives_back(void)
{
	struct region r;
	struct worker w, w2;
	uint64_t seq = 0;
	int fd = device_open();

	attach(&w);
	channel_make(fd, &r);
	submit(&r, AIRUNNER_OP_NOP);
	expect_event(w.fd, AIRUNNER_EV_CHANNEL_NEW, r.id);
	expect_event(w.fd, AIRUNNER_EV_READY, r.id);
	check(!detach(w.fd, r.id));
	/* Who sleeps may have to ask the next one for something. */
	check(!client_wait(fd, r.id, &seq, 0));
	check_eq(answer_of(&r, 0), -1);
	expect_no_event(w.fd);
	attach(&w2);
	expect_event(w2.fd, AIRUNNER_EV_CHANNEL_NEW, r.id);
	expect_event(w2.fd, AIRUNNER_EV_READY, r.id);
}

/* ------------------------------------------------------- an owner dies */

static void marking_owner(void *arg)
{
	struct shared *s = arg;
	struct region r;

	channel_make(device_open(), &r);
	strcpy((char *)r.va + 0x10000, "ovchannel");
	s->id = r.id;
	reach(s, 1);
	sleep_for_ever();
}

static void owner_gone(void (*owner)(void *), bool killed)
{
	struct shared *s = shared_make();
	struct airunner_event event;
	struct worker w;
	pid_t pid;
	char *va;

	attach(&w);
	pid = spawn(owner, s);
	event = expect_event(w.fd, AIRUNNER_EV_CHANNEL_NEW, 0);
	va = worker_map(w.fd, &event);
	atomic_store(&s->mapped, 1);
	await(s, 1);
	if (killed)
		check(!kill(pid, SIGKILL));
	reap(pid);
	expect_event(w.fd, AIRUNNER_EV_CHANNEL_GONE, s->id);
	/* Still there, still what it was, for as long as we hold it. */
	check(!strcmp(va + 0x10000, "ovchannel"));
	check_eq(read_number(SYSFS "pinned_pages"), 17);
	check(mmap(NULL, 4096, PROT_READ, MAP_SHARED, w.fd,
		   event.mmap_offset) != MAP_FAILED);
	check(!detach(w.fd, s->id));
	check_eq(read_number(SYSFS "pinned_pages"), 0);
	/* The mapping outlives even that; it is only not pinned any more. */
	check(!strcmp(va + 0x10000, "ovchannel"));
}

static void owner_killed(void)
{
	owner_gone(marking_owner, true);
}

static void closing_owner(void *arg)
{
	struct shared *s = arg;
	struct region r;
	int fd = device_open();

	channel_make(fd, &r);
	strcpy((char *)r.va + 0x10000, "ovchannel");
	s->id = r.id;
	eventually(atomic_load(&s->mapped));
	close(fd);
	check(!munmap(r.va, r.size));
	close(r.memfd);
	reach(s, 1);
}

static void owner_closes_and_unmaps(void)
{
	owner_gone(closing_owner, false);
}

static void owner_execs(void *arg)
{
	struct shared *s = arg;
	struct region r;

	channel_make(device_open(), &r);
	strcpy((char *)r.va + 0x10000, "ovchannel");
	s->id = r.id;
	eventually(atomic_load(&s->mapped));
	reach(s, 1);
	execl("/bin/busybox", "true", (char *)NULL);
	fail("exec: %s", strerror(errno));
}

static void owner_replaced_by_exec(void)
{
	owner_gone(owner_execs, false);
}

static void waiting_owner(void *arg)
{
	struct shared *s = arg;
	struct region r;
	uint64_t seq = 0;

	channel_make(device_open(), &r);
	reach(s, 1);
	for (;;)
		client_wait(r.fd, r.id, &seq, -1);
}

static void owner_killed_in_wait(void)
{
	struct shared *s = shared_make();
	pid_t pid = spawn(waiting_owner, s);

	await(s, 1);
	eventually(process_state(pid) == 'S');
	check(!kill(pid, SIGKILL));
	check(WIFSIGNALED(reap(pid)));
	eventually(!read_number(SYSFS "channels"));
	eventually(!read_number(SYSFS "pinned_pages"));
}

static void both_killed(void)
{
	int i;

	for (i = 0; i < 10; i++) {
		struct shared *s = shared_make(), *t = shared_make();
		pid_t worker = spawn(waiting_worker, s);
		pid_t owner = spawn(waiting_owner, t);

		await(s, 1);
		await(t, 1);
		kill(i & 1 ? owner : worker, SIGKILL);
		kill(i & 1 ? worker : owner, SIGKILL);
		reap(owner);
		reap(worker);
		eventually(nothing_left());
	}
}

/* The last of both lets go while nobody is left to tell. */
static void orphan_of_dead_owner_freed(void)
{
	struct shared *s = shared_make(), *t = shared_make();
	pid_t worker = spawn(waiting_worker, s), owner;

	await(s, 1);
	owner = spawn(waiting_owner, t);
	await(t, 1);
	kill(owner, SIGKILL);
	reap(owner);
	kill(worker, SIGKILL);
	reap(worker);
	eventually(nothing_left());
}

/* ------------------------------------------------------- sharing a file */

static void fork_child_exits_first(void)
{
	struct region r;
	struct worker w;
	pid_t pid;
	int fd = device_open();

	attach(&w);
	channel_make(fd, &r);
	expect_event(w.fd, AIRUNNER_EV_CHANNEL_NEW, r.id);
	pid = fork();
	if (!pid) {
		/* It is the same region and the same file. */
		submit(&r, AIRUNNER_OP_NOP);
		_exit(0);
	}
	check(!reap(pid));
	expect_event(w.fd, AIRUNNER_EV_READY, r.id);
	check(submitted(r.va, r.order, 0));
	expect_no_event(w.fd);
	check_eq(read_number(SYSFS "pinned_pages"), 17);
	check(!doorbell(fd, r.id));
}

static void forking_owner(void *arg)
{
	struct shared *s = arg;
	struct region r;

	channel_make(device_open(), &r);
	s->id = r.id;
	if (!fork()) {
		uint64_t seq = 0;

		prctl(PR_SET_PDEATHSIG, 0);
		reach(s, 1);
		/* The parent goes; the channel is ours as well. */
		await(s, 2);
		check(!doorbell(r.fd, r.id));
		check_errno(client_wait(r.fd, r.id, &seq, 0), ETIME);
		check(!destroy(&r));
		reach(s, 3);
		_exit(0);
	}
	await(s, 1);
}

static void fork_parent_exits_first(void)
{
	struct shared *s = shared_make();
	pid_t pid = spawn(forking_owner, s);

	check(!reap(pid));
	check_eq(read_number(SYSFS "channels"), 1);
	reach(s, 2);
	await(s, 3);
}

static void send_fd(int sock, int fd)
{
	char byte = 0, control[CMSG_SPACE(sizeof(int))] = {};
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(int));
	check_eq(sendmsg(sock, &msg, 0), 1);
}

static int receive_fd(int sock)
{
	char byte, control[CMSG_SPACE(sizeof(int))];
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
		.msg_controllen = sizeof(control),
	};
	int fd;

	check_eq(recvmsg(sock, &msg, MSG_CMSG_CLOEXEC), 1);
	check(CMSG_FIRSTHDR(&msg));
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(int));
	return fd;
}

static void fd_passed(void)
{
	struct region r;
	int socks[2], fd;
	pid_t pid;

	check(!socketpair(AF_UNIX, SOCK_STREAM, 0, socks));
	fflush(stdout);
	pid = fork();
	if (!pid) {
		fd = device_open();
		channel_make(fd, &r);
		check_eq(write(socks[1], &r, sizeof(r)), sizeof(r));
		send_fd(socks[1], fd);
		_exit(0);
	}
	check_eq(read(socks[0], &r, sizeof(r)), sizeof(r));
	fd = receive_fd(socks[0]);
	check(!reap(pid));
	/* Its builder is dead, but the file is not. */
	check_eq(read_number(SYSFS "channels"), 1);
	check(!doorbell(fd, r.id));
	r.fd = fd;
	check(!destroy(&r));
	check_eq(read_number(SYSFS "pinned_pages"), 0);
}

/* Closed while it is in a message that nobody has received. */
static void fd_in_flight(void)
{
	struct region r;
	int socks[2], fd = device_open();

	check(!socketpair(AF_UNIX, SOCK_STREAM, 0, socks));
	channel_make(fd, &r);
	send_fd(socks[1], fd);
	close(fd);
	check_eq(read_number(SYSFS "channels"), 1);
	close(socks[0]);
	close(socks[1]);
	eventually(nothing_left());
}

static void *thread_main(void *arg)
{
	struct region *r = arg;
	struct region other;
	uint64_t seq = 0;

	submit(r, AIRUNNER_OP_NOP);
	check_errno(client_wait(r->fd, r->id, &seq, 0), ETIME);
	channel_make(r->fd, &other);
	check(!destroy(&other));
	return NULL;
}

static void sibling_thread(void)
{
	struct region r;
	pthread_t thread;
	int fd = device_open();

	channel_make(fd, &r);
	check(!pthread_create(&thread, NULL, thread_main, &r));
	check(!pthread_join(thread, NULL));
	check(!destroy(&r));
}

/* ------------------------------------------------------- reset */

static void *waiting_thread(void *arg)
{
	struct region *r = arg;
	uint64_t seq = 0;
	int ret;

	errno = 0;
	ret = client_wait(r->fd, r->id, &seq, -1);
	return (void *)(intptr_t)(ret ? errno : 0);
}

static void reset(void)
{
	struct shared *s = shared_make();
	struct region r;
	pthread_t thread[4];
	uint64_t seq = 0;
	void *result;
	int64_t start;
	pid_t pid;
	int i, fd = device_open();

	/* A worker that has hung with two submissions. */
	pid = spawn(taking_worker, s);
	await(s, 1);
	channel_make(fd, &r);
	submit(&r, AIRUNNER_OP_NOP);
	submit(&r, AIRUNNER_OP_NOP);
	await(s, 2);
	for (i = 0; i < 4; i++)
		check(!pthread_create(&thread[i], NULL, waiting_thread, &r));
	nap();
	start = now_ns();
	check(!channel_call(device_open(), AIRUNNER_IOC_RESET_CHANNEL, r.id));
	for (i = 0; i < 4; i++) {
		check(!pthread_join(thread[i], &result));
		check_eq((intptr_t)result, ESHUTDOWN);
	}
	check(now_ns() - start < 10 * SECOND);
	check_eq(answer_of(&r, 0), AIRUNNER_S_RESET);
	check_eq(answer_of(&r, 1), AIRUNNER_S_RESET);
	check_errno(client_wait(fd, r.id, &seq, -1), ESHUTDOWN);
	check_errno(doorbell(fd, r.id), ESHUTDOWN);
	/* Once more changes nothing. */
	check(!channel_call(fd, AIRUNNER_IOC_RESET_CHANNEL, r.id));
	check(!destroy(&r));
	check_eq(read_number(SYSFS "pinned_pages"), 17);
	kill(pid, SIGKILL);
	reap(pid);
	check_eq(read_number(SYSFS "pinned_pages"), 0);
	check_errno(channel_call(fd, AIRUNNER_IOC_RESET_CHANNEL, r.id), ENXIO);
}

static void reset_told(void)
{
	struct region r;
	struct worker w;
	int fd = device_open();

	attach(&w);
	channel_make(fd, &r);
	expect_event(w.fd, AIRUNNER_EV_CHANNEL_NEW, r.id);
	submit(&r, AIRUNNER_OP_NOP);
	check(!channel_call(fd, AIRUNNER_IOC_RESET_CHANNEL, r.id));
	/* The turn it had asked for is void. */
	expect_event(w.fd, AIRUNNER_EV_CHANNEL_RESET, r.id);
	expect_no_event(w.fd);
	report(w.fd, r.id, AIRUNNER_REPORT_MORE, 1);
	expect_no_event(w.fd);
	check(!detach(w.fd, r.id));
	check_eq(read_number(SYSFS "pinned_pages"), 17);
	check(!destroy(&r));
	check_eq(read_number(SYSFS "pinned_pages"), 0);
	/* Of one that its worker has not been told of: it never is. */
	channel_make(fd, &r);
	check(!channel_call(fd, AIRUNNER_IOC_RESET_CHANNEL, r.id));
	expect_no_event(w.fd);
	check(!destroy(&r));
}

/*
 * A slot that nothing sensible leads to ends its channel, and keeps no other
 * from being answered.
 */
static void reset_answers_the_others(void)
{
	_Atomic uint64_t *slot;
	struct region r;
	uint64_t w;
	int i, word, fd = device_open();

	channel_make(fd, &r);
	r.ctrl->client_flags = AIRUNNER_CLIENT_ASYM;
	for (i = 0; i < 5; i++)
		submit(&r, AIRUNNER_OP_NOP);
	slot = sq_slot(r.va, r.order, 1);
	for (word = 0; word < AIRUNNER_SQE_WORDS; word++) {
		w = atomic_load(&slot[word]);
		atomic_store(&slot[word], airunner_word(w, 77));
	}
	check(!channel_call(fd, AIRUNNER_IOC_RESET_CHANNEL, r.id));
	for (i = 0; i < 5; i++)
		check_eq(answer_of(&r, i), i == 1 ? -1 : AIRUNNER_S_RESET);
}

static void reset_refused(void)
{
	struct region r;
	int fd = device_open();

	channel_make(fd, &r);
	become(ALICE);
	check_errno(channel_call(fd, AIRUNNER_IOC_RESET_CHANNEL, r.id), EPERM);
	check_errno(channel_call(fd, AIRUNNER_IOC_RESET_CHANNEL, 0), EPERM);
}

/* ------------------------------------------------------- its end */

static void destroy_without_worker(void)
{
	struct region r;
	int fd = device_open();

	channel_make(fd, &r);
	submit(&r, AIRUNNER_OP_NOP);
	submit(&r, AIRUNNER_OP_NOP);
	check(!destroy(&r));
	check_eq(answer_of(&r, 0), AIRUNNER_S_NO_WORKER);
	check_eq(answer_of(&r, 1), AIRUNNER_S_NO_WORKER);
	check_eq(answer_of(&r, 2), -1);
}

static void destroy_wakes_waiter(void)
{
	struct region r;
	struct worker w;
	pthread_t thread;
	void *result;
	int fd = device_open();

	attach(&w);
	channel_make(fd, &r);
	expect_event(w.fd, AIRUNNER_EV_CHANNEL_NEW, r.id);
	check(!pthread_create(&thread, NULL, waiting_thread, &r));
	nap();
	check(!destroy(&r));
	expect_event(w.fd, AIRUNNER_EV_CHANNEL_GONE, r.id);
	check(!detach(w.fd, r.id));
	check(!pthread_join(thread, &result));
	/* Or it came too late to find the channel at all. */
	check((intptr_t)result == ESHUTDOWN || (intptr_t)result == ENXIO);
}

/* ------------------------------------------------------- the region goes */

static void spoilt(void (*spoil)(struct region *), bool answered)
{
	struct shared *s = shared_make();
	struct region r;
	uint64_t seq = 0;
	pid_t pid;
	int fd = device_open();

	pid = spawn(taking_worker, s);
	await(s, 1);
	channel_make(fd, &r);
	submit(&r, AIRUNNER_OP_NOP);
	await(s, 2);
	spoil(&r);
	check(!kill(pid, SIGKILL));
	reap(pid);
	/* The channel is dead, the kernel is not. */
	while (!client_wait(fd, r.id, &seq, 30 * SECOND))
		;
	check_eq(errno, ESHUTDOWN);
	check_errno(doorbell(fd, r.id), ESHUTDOWN);
	if (answered)
		check_eq(answer_of(&r, 0), AIRUNNER_S_WORKER_DIED);
	check(!destroy(&r));
	check_eq(read_number(SYSFS "pinned_pages"), 0);
}

static void do_truncate(struct region *r)
{
	check(!ftruncate(r->memfd, 0));
}

static void region_truncated(void)
{
	spoilt(do_truncate, false);
}

static void do_punch(struct region *r)
{
	check(!fallocate(r->memfd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			 0, 4096));
}

static void region_punched(void)
{
	spoilt(do_punch, false);
}

static void do_remove(struct region *r)
{
	check(!madvise(r->va, 4096, MADV_REMOVE));
}

static void region_removed(void)
{
	spoilt(do_remove, false);
}

static void do_scribble(struct region *r)
{
	_Atomic uint64_t *slot = sq_slot(r->va, r->order, 1);
	int i;

	/* A whole submission, of a lap that no protocol leads to. */
	for (i = 0; i < 8; i++)
		atomic_store(&slot[i], airunner_word(0, 77));
}

static void ring_scribbled(void)
{
	spoilt(do_scribble, true);
}

/* Garbage everywhere: whatever comes of it, nobody else is affected. */
static void ring_all_garbage(void)
{
	struct shared *s = shared_make();
	struct region r, good;
	size_t i;
	pid_t pid;
	int fd = device_open();

	pid = spawn(taking_worker, s);
	await(s, 1);
	channel_make(fd, &r);
	submit(&r, AIRUNNER_OP_NOP);
	await(s, 2);
	channel_make(fd, &good);
	srand(getpid());
	for (i = 0; i < r.size; i++)
		((volatile uint8_t *)r.va)[i] = rand();
	check(!kill(pid, SIGKILL));
	reap(pid);
	check(!doorbell(fd, good.id));
}

static const struct test_case cases[] = {
	{ "worker_killed", worker_killed },
	{ "worker_killed_wrapped", worker_killed_wrapped },
	{ "worker_killed_half_published", worker_killed_half_published },
	{ "worker_killed_before_told", worker_killed_before_told },
	{ "worker_killed_other_takes_over", worker_killed_other_takes_over },
	{ "worker_killed_child_has_file", worker_killed_child_has_file },
	{ "worker_child_exits", worker_child_exits },
	{ "worker_thread_exits", worker_thread_exits },
	{ "worker_killed_in_wait", worker_killed_in_wait },
	{ "worker_gives_back", worker_gives_back },
	{ "owner_killed", owner_killed },
	{ "owner_closes_and_unmaps", owner_closes_and_unmaps },
	{ "owner_replaced_by_exec", owner_replaced_by_exec },
	{ "owner_killed_in_wait", owner_killed_in_wait },
	{ "both_killed", both_killed },
	{ "orphan_of_dead_owner_freed", orphan_of_dead_owner_freed },
	{ "fork_child_exits_first", fork_child_exits_first },
	{ "fork_parent_exits_first", fork_parent_exits_first },
	{ "fd_passed", fd_passed },
	{ "fd_in_flight", fd_in_flight },
	{ "sibling_thread", sibling_thread },
	{ "reset", reset },
	{ "reset_told", reset_told },
	{ "reset_answers_the_others", reset_answers_the_others },
	{ "reset_refused", reset_refused },
	{ "destroy_without_worker", destroy_without_worker },
	{ "destroy_wakes_waiter", destroy_wakes_waiter },
	{ "region_truncated", region_truncated },
	{ "region_punched", region_punched },
	{ "region_removed", region_removed },
	{ "ring_scribbled", ring_scribbled },
	{ "ring_all_garbage", ring_all_garbage },
};

int main(int argc, char **argv)
{
	return RUN_CASES(cases, argc, argv);
}
