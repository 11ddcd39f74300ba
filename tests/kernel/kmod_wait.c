// SPDX-License-Identifier: MIT
/*
 * kmod_wait: every way to wait: time-outs, signals, poll and epoll, eventfd,
 * io_uring, and being stopped and frozen meanwhile. See kmod_test.h for how it
 * is run.
 */
#include <liburing.h>
#include <sys/epoll.h>

#include "kmod_test.h"

/* A channel and its worker, introduced to each other. */
struct pair {
	struct region r;
	struct worker w;
};

static void pair_make(struct pair *p)
{
	attach(&p->w);
	channel_make(device_open(), &p->r);
	expect_event(p->w.fd, AIRUNNER_EV_CHANNEL_NEW, p->r.id);
}

static void complete(struct pair *p)
{
	check(!doorbell(p->w.fd, p->r.id));
}

/* ------------------------------------------------------- time */

static void timeouts(void)
{
	struct airunner_event event;
	struct pair p;
	uint64_t seq = 0;
	int64_t start;

	pair_make(&p);
	start = now_ns();
	check_errno(client_wait(p.r.fd, p.r.id, &seq, 50000000), ETIME);
	check(now_ns() - start >= 50000000);
	start = now_ns();
	check(worker_wait(p.w.fd, NULL, 0, &event, 1, 50000000) == -1);
	check_eq(errno, ETIME);
	check(now_ns() - start >= 50000000);
	/* Not a round number of ticks: hrtimers. */
	start = now_ns();
	check_errno(client_wait(p.r.fd, p.r.id, &seq, 1), ETIME);
	/* As far away as there is. */
	complete(&p);
	check(!client_wait(p.r.fd, p.r.id, &seq, INT64_MAX));
	check_eq(seq, 1);
	/* One that has been missed is not waited for. */
	complete(&p);
	complete(&p);
	check(!client_wait(p.r.fd, p.r.id, &seq, -1));
	check_eq(seq, 3);
	/* A sequence from elsewhere differs as well. */
	seq = 12345;
	check(!client_wait(p.r.fd, p.r.id, &seq, -1));
	check_eq(seq, 3);
}

static void wait_refused(void)
{
	struct airunner_wait arg;
	struct pair p;

	pair_make(&p);
#define WAIT_REFUSED(on, field, value, error)				\
	do {								\
		memset(&arg, 0, sizeof(arg));				\
		arg.size = sizeof(arg);					\
		arg.channel_id = (on) == p.r.fd ? p.r.id : 0;		\
		arg.field = (value);					\
		check_errno(ioctl(on, AIRUNNER_IOC_WAIT, &arg), error);	\
	} while (0)
	WAIT_REFUSED(p.r.fd, flags, 1, EINVAL);
	WAIT_REFUSED(p.r.fd, resv, 1, EINVAL);
	WAIT_REFUSED(p.r.fd, nr_reports, 1, EINVAL);
	WAIT_REFUSED(p.r.fd, channel_id, 0, ENXIO);
	WAIT_REFUSED(p.r.fd, channel_id, p.r.id + 1, ENXIO);
	WAIT_REFUSED(p.w.fd, flags, 1, EINVAL);
	WAIT_REFUSED(p.w.fd, channel_id, p.r.id, EINVAL);
	WAIT_REFUSED(p.w.fd, nr_reports, 1, EFAULT);
	/* Nothing is lost when it cannot be told. */
	check(!doorbell(p.r.fd, p.r.id));
	WAIT_REFUSED(p.w.fd, nr_events, 1, EFAULT);
	expect_event(p.w.fd, AIRUNNER_EV_READY, p.r.id);
	/* Reports that make no sense. */
	{
		struct airunner_report r = { .channel_id = p.r.id };

		r.flags = AIRUNNER_REPORT_IDLE | AIRUNNER_REPORT_MORE;
		check(worker_wait(p.w.fd, &r, 1, NULL, 0, 0) == -1);
		check_eq(errno, EINVAL);
		r.flags = 4;
		check(worker_wait(p.w.fd, &r, 1, NULL, 0, 0) == -1);
		check_eq(errno, EINVAL);
		/* Of a channel that it does not have: no harm. */
		r.flags = AIRUNNER_REPORT_IDLE;
		r.channel_id = 999999;
		check_eq(worker_wait(p.w.fd, &r, 1, NULL, 0, 0), 0);
	}
}

/* The first of many events that cannot be stored leaves the rest queued. */
static void events_partly_stored(void)
{
	struct region r[3];
	struct worker w;
	struct airunner_event *events;
	char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int i, fd = device_open();

	attach(&w);
	for (i = 0; i < 3; i++)
		channel_make(fd, &r[i]);
	check(!mprotect(page + 4096, 4096, PROT_NONE));
	events = (void *)(page + 4096 - 2 * sizeof(*events));
	check_eq(worker_wait(w.fd, NULL, 0, events, 3, 0), 2);
	check_eq(events[0].channel_id, r[0].id);
	check_eq(events[1].channel_id, r[1].id);
	expect_event(w.fd, AIRUNNER_EV_CHANNEL_NEW, r[2].id);
	expect_no_event(w.fd);
}

/* ------------------------------------------------------- signals */

static atomic_int signalled;

static void on_signal(int sig)
{
	atomic_fetch_add(&signalled, 1);
}

static void handle(int flags)
{
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = flags };

	check(!sigaction(SIGUSR1, &sa, NULL));
}

struct waiting {
	struct pair *p;
	bool worker;
	int64_t timeout;
	int ret, error;
	uint64_t seq;
	struct airunner_event event;
	atomic_int tid;
	atomic_int done;
};

static void *waiting_thread(void *arg)
{
	struct waiting *x = arg;

	atomic_store(&x->tid, syscall(SYS_gettid));
	errno = 0;
	if (x->worker)
		x->ret = worker_wait(x->p->w.fd, NULL, 0, &x->event, 1,
				     x->timeout);
	else
		x->ret = client_wait(x->p->r.fd, x->p->r.id, &x->seq,
				     x->timeout);
	x->error = errno;
	atomic_store(&x->done, 1);
	return NULL;
}

static pthread_t start_waiting(struct waiting *x)
{
	pthread_t thread;

	atomic_store(&x->tid, 0);
	atomic_store(&x->done, 0);
	check(!pthread_create(&thread, NULL, waiting_thread, x));
	eventually(atomic_load(&x->tid));
	eventually(process_state(x->tid) == 'S');
	return thread;
}

static void interrupted(void)
{
	struct pair p;
	int i;

	pair_make(&p);
	handle(0);
	for (i = 0; i < 4; i++) {
		struct waiting x = {
			.p = &p, .worker = i & 1,
			.timeout = i & 2 ? 60 * SECOND : -1,
		};
		pthread_t thread = start_waiting(&x);

		pthread_kill(thread, SIGUSR1);
		check(!pthread_join(thread, NULL));
		check_eq(x.ret, -1);
		check_eq(x.error, EINTR);
	}
}

/* With SA_RESTART the wait goes on, for what is left of its time. */
static void restarted(void)
{
	struct pair p;
	int i;

	pair_make(&p);
	handle(SA_RESTART);
	for (i = 0; i < 4; i++) {
		struct waiting x = {
			.p = &p, .worker = i & 1, .seq = i / 2,
			.timeout = i & 2 ? 60 * SECOND : -1,
		};
		pthread_t thread = start_waiting(&x);
		int before = atomic_load(&signalled);

		pthread_kill(thread, SIGUSR1);
		eventually(atomic_load(&signalled) > before);
		eventually(process_state(x.tid) == 'S');
		check(!atomic_load(&x.done));
		if (x.worker)
			check(!doorbell(p.r.fd, p.r.id));
		else
			complete(&p);
		check(!pthread_join(thread, NULL));
		check_eq(x.ret, x.worker);
		if (x.worker)
			report(p.w.fd, p.r.id, AIRUNNER_REPORT_IDLE, 0);
	}
	/* Being interrupted all the time does not make it endless. */
	{
		struct waiting x = { .p = &p, .seq = 2, .timeout = SECOND };
		pthread_t thread = start_waiting(&x);
		int64_t start = now_ns();

		while (!atomic_load(&x.done)) {
			check(now_ns() - start < 30 * SECOND);
			pthread_kill(thread, SIGUSR1);
			nap();
		}
		check(!pthread_join(thread, NULL));
		check_eq(x.error, ETIME);
	}
}

static void stopper(struct pair *p, bool worker)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		struct waiting x = { .p = p, .worker = worker, .timeout = -1 };

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		waiting_thread(&x);
		/* Neither returned early nor with an error. */
		check_eq(x.ret, worker);
		if (!worker)
			check_eq(x.seq, 1);
		fflush(stdout);
		_exit(0);
	}
	for (int i = 0; i < 3; i++) {
		eventually(process_state(pid) == 'S');
		check(!kill(pid, SIGSTOP));
		eventually(process_state(pid) == 'T');
		check(!kill(pid, SIGCONT));
	}
	eventually(process_state(pid) == 'S');
	if (worker)
		check(!doorbell(p->r.fd, p->r.id));
	else
		complete(p);
	check_eq(reap(pid), 0);
}

static void stopped(void)
{
	struct pair p, q;

	pair_make(&p);
	stopper(&p, false);
	/* The next worker is to have nothing of this one's. */
	check(!destroy(&p.r));
	check(!detach(p.w.fd, p.r.id));
	close(p.w.fd);
	pair_make(&q);
	stopper(&q, true);
}

#define CGROUP "/sys/fs/cgroup/kmod_wait"

static bool cgroup_frozen(void)
{
	char text[256] = "";
	int fd = open(CGROUP "/cgroup.events", O_RDONLY);

	if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
		text[0] = 0;
	close(fd);
	return strstr(text, "frozen 1");
}

/* As a suspend does it: everybody, client and worker, is frozen and thawed. */
static void frozen(void)
{
	struct pair p;
	char text[16];
	pid_t pid[2];
	int i;

	if (mkdir(CGROUP, 0700) && errno != EEXIST)
		skip("no cgroup v2 here");
	if (access(CGROUP "/cgroup.freeze", F_OK)) {
		rmdir(CGROUP);
		skip("no cgroup freezer here");
	}
	pair_make(&p);
	for (i = 0; i < 2; i++) {
		fflush(stdout);
		pid[i] = fork();
		if (!pid[i]) {
			struct waiting x = {
				.p = &p, .worker = i, .timeout = -1,
			};

			prctl(PR_SET_PDEATHSIG, SIGKILL);
			waiting_thread(&x);
			check_eq(x.ret, i);
			fflush(stdout);
			_exit(0);
		}
		snprintf(text, sizeof(text), "%d", pid[i]);
		check(write_text(CGROUP "/cgroup.procs", text));
		eventually(process_state(pid[i]) == 'S');
	}
	for (i = 0; i < 5; i++) {
		check(write_text(CGROUP "/cgroup.freeze", "1"));
		eventually(cgroup_frozen());
		/* What happens meanwhile is there afterwards. */
		if (i == 4) {
			complete(&p);
			check(!doorbell(p.r.fd, p.r.id));
		}
		check(write_text(CGROUP "/cgroup.freeze", "0"));
		eventually(!cgroup_frozen());
	}
	check_eq(reap(pid[0]), 0);
	check_eq(reap(pid[1]), 0);
	rmdir(CGROUP);
}

/* ------------------------------------------------------- poll, eventfd */

static void epolls(void)
{
	struct epoll_event e = { .events = EPOLLIN | EPOLLET };
	struct pair p;
	uint64_t seq = 0;
	int ep = epoll_create1(0);

	pair_make(&p);
	check(!epoll_ctl(ep, EPOLL_CTL_ADD, p.r.fd, &e));
	check_eq(epoll_wait(ep, &e, 1, 0), 0);
	complete(&p);
	check_eq(epoll_wait(ep, &e, 1, 30000), 1);
	/* Edge-triggered: said once, and again for the next. */
	check_eq(epoll_wait(ep, &e, 1, 0), 0);
	complete(&p);
	check_eq(epoll_wait(ep, &e, 1, 30000), 1);
	check(!client_wait(p.r.fd, p.r.id, &seq, 0));
	/* Closed under the epoll. */
	close(p.r.fd);
	check_eq(epoll_wait(ep, &e, 1, 0), 0);
}

/* Whoever polls the file already hears of it when it becomes a worker's. */
static void epolled_before_attach(void)
{
	struct epoll_event e = { .events = EPOLLIN };
	struct region r[2];
	struct worker w;
	int ep = epoll_create1(0), fd = device_open();

	/* What is there at once. */
	channel_make(device_open(), &r[0]);
	check(!epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e));
	check_eq(epoll_wait(ep, &e, 1, 0), 0);
	check(!attach_with(&w, fd, AIRUNNER_CAP_CPU, 0));
	check_eq(epoll_wait(ep, &e, 1, 30000), 1);
	check_eq(e.events, EPOLLIN);
	expect_event(w.fd, AIRUNNER_EV_CHANNEL_NEW, r[0].id);
	check_eq(epoll_wait(ep, &e, 1, 0), 0);
	/* What comes later. */
	channel_make(device_open(), &r[1]);
	check_eq(epoll_wait(ep, &e, 1, 30000), 1);
	expect_event(w.fd, AIRUNNER_EV_CHANNEL_NEW, r[1].id);
	check_eq(epoll_wait(ep, &e, 1, 0), 0);
}

static int set_eventfd(int fd, uint32_t id, int efd)
{
	struct airunner_set_eventfd arg = {
		.size = sizeof(arg), .channel_id = id, .fd = efd,
	};

	return ioctl(fd, AIRUNNER_IOC_SET_EVENTFD, &arg);
}

static uint64_t drain(int efd)
{
	uint64_t n = 0;

	if (read(efd, &n, sizeof(n)) < 0)
		check_eq(errno, EAGAIN);
	return n;
}

static void eventfds(void)
{
	struct pair p;
	int c = eventfd(0, EFD_NONBLOCK), w = eventfd(0, EFD_NONBLOCK);

	pair_make(&p);
	check(!set_eventfd(p.r.fd, p.r.id, c));
	check(!set_eventfd(p.w.fd, 0, w));
	check_eq(drain(c), 0);
	check_eq(drain(w), 0);
	complete(&p);
	complete(&p);
	check_eq(drain(c), 2);
	check(!doorbell(p.r.fd, p.r.id));
	check(drain(w));
	expect_event(p.w.fd, AIRUNNER_EV_READY, p.r.id);
	/* Set while something is queued: told at once. */
	report(p.w.fd, p.r.id, AIRUNNER_REPORT_MORE, 0);
	drain(w);
	check(!set_eventfd(p.w.fd, 0, w));
	check(drain(w));
	/* Taken off. */
	check(!set_eventfd(p.r.fd, p.r.id, -1));
	complete(&p);
	check_eq(drain(c), 0);
	/* Replaced, and left to the module. */
	check(!set_eventfd(p.r.fd, p.r.id, c));
	check(!set_eventfd(p.r.fd, p.r.id, c));
	close(c);
	complete(&p);

	check_errno(set_eventfd(p.r.fd, p.r.id + 1, w), ENXIO);
	check_errno(set_eventfd(p.r.fd, p.r.id, p.r.memfd), EINVAL);
	check_errno(set_eventfd(p.r.fd, p.r.id, 999), EBADF);
	check_errno(set_eventfd(p.r.fd, p.r.id, -2), EINVAL);
	check_errno(set_eventfd(p.w.fd, p.r.id, w), EINVAL);
}

/* ------------------------------------------------------- io_uring */

static bool uring_offered(void)
{
	struct airunner_info info = { .size = sizeof(info) };
	int fd = device_open();

	check(!ioctl(fd, AIRUNNER_IOC_GET_INFO, &info));
	close(fd);
	return info.features & AIRUNNER_FEAT_URING;
}

static void ring_make(struct io_uring *ring)
{
	int ret = io_uring_queue_init(64, ring, 0);

	if (ret)
		skip("no io_uring here");
}

/* liburing 2.3 has no helper for commands that carry an argument. */
static void uring_wait(struct io_uring *ring, int fd, uint32_t id,
		       uint64_t seq, uint64_t user)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);
	struct airunner_uring_wait arg = { .channel_id = id, .seq = seq };

	check(sqe);
	io_uring_prep_rw(IORING_OP_URING_CMD, sqe, fd, NULL, 0, 0);
	sqe->off = AIRUNNER_URING_WAIT;	/* cmd_op */
	sqe->user_data = user;
	memcpy((char *)sqe + 48, &arg, sizeof(arg));
	check_eq(io_uring_submit(ring), 1);
}

static int uring_result(struct io_uring *ring, uint64_t user)
{
	struct __kernel_timespec ts = { .tv_sec = 30 };
	struct io_uring_cqe *cqe;
	int ret = io_uring_wait_cqe_timeout(ring, &cqe, &ts);

	check_eq(ret, 0);
	check_eq(cqe->user_data, user);
	ret = cqe->res;
	io_uring_cqe_seen(ring, cqe);
	return ret;
}

static void uring_refused_cleanly(void)
{
	struct io_uring ring;
	struct pair p;

	if (uring_offered())
		skip("it is offered here");
	ring_make(&ring);
	pair_make(&p);
	uring_wait(&ring, p.r.fd, p.r.id, 0, 1);
	check_eq(uring_result(&ring, 1), -EOPNOTSUPP);
}

static void need_uring(struct io_uring *ring)
{
	if (!uring_offered())
		skip("this kernel cannot cancel io_uring commands");
	ring_make(ring);
}

/* Is there room for one more? If so, it is there now. */
static bool uring_parked(struct io_uring *ring, int fd, uint32_t id,
			 uint64_t seq, uint64_t user)
{
	struct io_uring_cqe *cqe;

	uring_wait(ring, fd, id, seq, user);
	if (io_uring_peek_cqe(ring, &cqe))
		return true;
	check_eq(cqe->res, -EBUSY);
	io_uring_cqe_seen(ring, cqe);
	return false;
}

static void uring_waits(void)
{
	struct io_uring ring, other;
	struct io_uring_cqe *cqe;
	struct pair p;
	int i;

	need_uring(&ring);
	pair_make(&p);
	/* One that need not wait, one that has to. */
	uring_wait(&ring, p.r.fd, p.r.id, 77, 1);
	check_eq(uring_result(&ring, 1), 0);
	uring_wait(&ring, p.r.fd, p.r.id, 0, 2);
	check_eq(io_uring_peek_cqe(&ring, &cqe), -EAGAIN);
	complete(&p);
	check_eq(uring_result(&ring, 2), 0);
	/* Many at once: as many as the ring has entries. */
	for (i = 0; i < 16; i++)
		uring_wait(&ring, p.r.fd, p.r.id, 1, 3);
	check_eq(io_uring_peek_cqe(&ring, &cqe), -EAGAIN);
	uring_wait(&ring, p.r.fd, p.r.id, 1, 10);
	check_eq(uring_result(&ring, 10), -EBUSY);
	uring_wait(&ring, p.r.fd, p.r.id, 77, 11);
	check_eq(uring_result(&ring, 11), 0);
	complete(&p);
	for (i = 0; i < 16; i++)
		check_eq(uring_result(&ring, 3), 0);
	/* Those that are cancelled make room as well. */
	ring_make(&other);
	for (i = 0; i < 16; i++)
		uring_wait(&other, p.r.fd, p.r.id, 2, 12);
	io_uring_queue_exit(&other);
	eventually(uring_parked(&ring, p.r.fd, p.r.id, 2, 13));
	complete(&p);
	check_eq(uring_result(&ring, 13), 0);
	/* Wrong. */
	uring_wait(&ring, p.r.fd, p.r.id + 1, 0, 4);
	check_eq(uring_result(&ring, 4), -ENXIO);
	uring_wait(&ring, p.w.fd, p.r.id, 0, 5);
	check_eq(uring_result(&ring, 5), -EPERM);
	/* The end of the channel ends the wait. */
	uring_wait(&ring, p.r.fd, p.r.id, 3, 6);
	check(!channel_call(p.r.fd, AIRUNNER_IOC_RESET_CHANNEL, p.r.id));
	check_eq(uring_result(&ring, 6), -ESHUTDOWN);
	uring_wait(&ring, p.r.fd, p.r.id, 2, 7);
	check_eq(uring_result(&ring, 7), -ESHUTDOWN);
}

static void uring_cancelled(void)
{
	struct io_uring_sqe *sqe;
	struct io_uring ring;
	struct pair p;
	int i;

	need_uring(&ring);
	pair_make(&p);
	/* Parked when the ring goes. */
	uring_wait(&ring, p.r.fd, p.r.id, 0, 1);
	io_uring_queue_exit(&ring);
	complete(&p);
	/* Parked when the process goes, by itself or killed. */
	for (i = 0; i < 2; i++) {
		pid_t pid;

		fflush(stdout);
		pid = fork();
		if (!pid) {
			ring_make(&ring);
			uring_wait(&ring, p.r.fd, p.r.id, 1, 1);
			if (i)
				kill(getpid(), SIGKILL);
			_exit(0);
		}
		reap(pid);
	}
	complete(&p);
	/* The file is closed while a command on it is parked. */
	ring_make(&ring);
	uring_wait(&ring, p.r.fd, p.r.id, 2, 8);
	close(p.r.fd);
	check_eq(read_number(SYSFS "channels"), 1);
	/* A time-out is the usual way out. */
	sqe = io_uring_get_sqe(&ring);
	io_uring_prep_cancel64(sqe, 8, 0);
	sqe->user_data = 9;
	check_eq(io_uring_submit(&ring), 1);
	io_uring_queue_exit(&ring);
	expect_event(p.w.fd, AIRUNNER_EV_CHANNEL_GONE, p.r.id);
}

static const struct test_case cases[] = {
	{ "timeouts", timeouts },
	{ "wait_refused", wait_refused },
	{ "events_partly_stored", events_partly_stored },
	{ "interrupted", interrupted },
	{ "restarted", restarted },
	{ "stopped", stopped },
	{ "frozen", frozen },
	{ "epolls", epolls },
	{ "epolled_before_attach", epolled_before_attach },
	{ "eventfds", eventfds },
	{ "uring_refused_cleanly", uring_refused_cleanly },
	{ "uring_waits", uring_waits },
	{ "uring_cancelled", uring_cancelled },
};

int main(int argc, char **argv)
{
	return RUN_CASES(cases, argc, argv);
}
