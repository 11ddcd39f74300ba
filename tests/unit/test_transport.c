// SPDX-License-Identifier: MIT
/*
 * The ways to reach a worker: the same things done in-process and through a
 * socket; a daemon that is killed, and comes back; one that talks nonsense.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include <airunner/cuda.h>
#include <airunner/ops/relu.h>
#include <airunner/ops/vector_add.h>

#include "libairunner/clock.h"
#include "libairunner/wire.h"
#include "ops/worker/daemon/daemon.h"

#define assert_sentence(part) assert_non_null(strstr(air_last_error(), part))
#define assert_ok(call)	      assert_int_equal(call, AIR_OK)
#define PATIENCE	      INT64_C(60000000000)
#define N		      100

static char name[64];  /* "@..." */
static char where[80]; /* "unix:@..." */
static pid_t daemon_pid;

/* ------------------------------------------------------------- the daemon */

/* In a child: what airunnerd --listen does. */
static void serve(void)
{
	struct air_unix_config config = { .path = name,
					  .mode = 0600,
					  .group = -1 };
	struct air_worker_config wc = { .threads = 1, .executors = "cpu" };
	struct air_error e = { .text = "" };
	struct air_source *source;
	struct air_worker *w;

	if (!air_guard_init() || air_worker_create(&wc, &w, &e) != AIR_OK)
		_exit(1);
	source = air_unix_create(&config, &e);
	if (!source)
		_exit(2);
	air_worker_add_source(w, source);
	_exit(air_worker_run(w, &e) == AIR_OK ? 0 : 3);
}

static void start_daemon(void)
{
	uint64_t deadline = air_now() + (uint64_t)PATIENCE;
	air_device *dev;

	daemon_pid = fork();
	assert_true(daemon_pid >= 0);
	if (!daemon_pid)
		serve();
	while (air_open(where, NULL, &dev) != AIR_OK) {
		assert_true(air_now() < deadline);
		usleep(1000);
	}
	assert_ok(air_close(dev));
}

static void kill_daemon(void)
{
	int status;

	assert_int_equal(kill(daemon_pid, SIGKILL), 0);
	assert_int_equal(waitpid(daemon_pid, &status, 0), daemon_pid);
	daemon_pid = 0;
}

/* kill() returns when the daemon has been told, not when it has stopped. */
static void stop_daemon(void)
{
	int status;

	assert_int_equal(kill(daemon_pid, SIGSTOP), 0);
	assert_int_equal(waitpid(daemon_pid, &status, WUNTRACED), daemon_pid);
	assert_true(WIFSTOPPED(status));
}

/* ------------------------------------------------------------ what is used */

struct user {
	air_device *dev;
	air_channel *ch;
	air_descriptor *add;
	air_tensor x;
	air_tensor y;
};

static struct user u;

static void begin(const char *device)
{
	struct air_device_options o = { .size = sizeof(o),
					.threads = 1,
					.executors = "cpu" };
	const int64_t shape[] = { N };
	float *x;

	assert_ok(air_open(device, &o, &u.dev));
	assert_ok(air_channel_create(u.dev, NULL, &u.ch));
	assert_ok(air_tensor_alloc(u.ch, AIR_HOST, AIR_F32, 1, shape, &u.x));
	assert_ok(air_tensor_alloc(u.ch, AIR_HOST, AIR_F32, 1, shape, &u.y));
	assert_ok(air_create_vector_add_descriptor(u.ch, &u.add, &u.y.desc,
						   &u.x.desc, &u.x.desc));
	x = air_tensor_data(&u.x);
	for (int i = 0; i < N; i++)
		x[i] = (float)i;
}

static void finish(void)
{
	assert_ok(air_destroy_vector_add_descriptor(u.add));
	assert_ok(air_buffer_free(u.x.buf));
	assert_ok(air_buffer_free(u.y.buf));
	assert_ok(air_channel_destroy(u.ch));
	assert_ok(air_close(u.dev));
}

static air_status execute(air_token *token)
{
	return air_execute_vector_add(u.add, AIR_NO_REF, air_tensor_ref(&u.y),
				      air_tensor_ref(&u.x),
				      air_tensor_ref(&u.x), token);
}

static void execute_and_check(void)
{
	float *y = air_tensor_data(&u.y);
	air_token token;

	for (int i = 0; i < N; i++)
		y[i] = -1;
	assert_ok(execute(&token));
	assert_ok(air_wait(u.ch, token, PATIENCE, NULL));
	for (int i = 0; i < N; i++)
		assert_true(y[i] == 2 * (float)i);
}

static int start_inproc(void **state)
{
	begin("inproc:");
	return 0;
}

static int start_unix(void **state)
{
	start_daemon();
	begin(where);
	return 0;
}

static int stop(void **state)
{
	finish();
	if (daemon_pid)
		kill_daemon();
	return 0;
}

/* ---------------------------------------------------- the same everywhere */

static void test_operator(void **state)
{
	for (int i = 0; i < 20; i++)
		execute_and_check();
}

static void test_caps(void **state)
{
	struct air_backend_caps caps = { .size = sizeof(caps) };

	assert_ok(air_backend_caps(u.dev, AIR_EXEC_CPU, &caps));
	assert_int_equal(caps.present, 1);
	assert_true(caps.ops >> AIR_OP_relu & 1);
	assert_ok(air_backend_caps(u.dev, AIR_EXEC_CUDA_RESIDENT, &caps));
	assert_int_equal(caps.present, 0);
}

/* The GPU of a worker elsewhere is not this process's to have to itself. */
static void test_quiet(void **state)
{
	air_status expected = air_device_transport(u.dev) == AIR_INPROC ?
				      AIR_OK :
				      AIR_UNSUPPORTED;

	assert_int_equal(air_quiet_begin(u.dev), expected);
	assert_int_equal(air_quiet_end(u.dev), expected);
}

/* A worker elsewhere, or without CUDA, has no streams. */
static void test_stream_wait(void **state)
{
	struct air_call nop;
	air_token token;

	air_prepare_nop(&nop);
	assert_int_equal(air_stream_wait(NULL, 1, NULL), AIR_BAD_ARGUMENT);
	assert_int_equal(air_stream_wait(u.ch, 0, NULL), AIR_BAD_TOKEN);
	assert_int_equal(air_stream_wait(u.ch, UINT64_MAX, NULL),
			 AIR_BAD_TOKEN);
	assert_ok(air_submit(u.ch, &nop, 1, &token));
	assert_int_equal(air_stream_wait(u.ch, token, NULL), AIR_UNSUPPORTED);
	assert_ok(air_wait(u.ch, token, PATIENCE, NULL));
	assert_int_equal(air_stream_wait(u.ch, token, NULL), AIR_UNSUPPORTED);
}

static void test_bad_operand(void **state)
{
	struct air_completion c;
	air_token token;

	assert_ok(air_execute_vector_add(
		u.add, AIR_NO_REF, air_tensor_ref(&u.y), air_tensor_ref(&u.x),
		air_buffer_ref(u.x.buf, 1 << 20), &token));
	assert_int_equal(air_wait(u.ch, token, PATIENCE, &c), AIR_BAD_RANGE);
	assert_int_equal(c.detail, 3);
	assert_sentence("vector_add: b (operand 3)");
	execute_and_check();
}

static void test_sleeping_wait(void **state)
{
	/* Longer than anybody spins: the worker sleeps by then. */
	for (int i = 0; i < 3; i++) {
		usleep(20000);
		execute_and_check();
	}
}

static void test_buffers_come_and_go(void **state)
{
	for (int i = 0; i < 50; i++) {
		air_buffer *buf;

		assert_ok(air_buffer_alloc(u.ch, (size_t)(1 + i % 7) << 14,
					   AIR_HOST, &buf));
		memset(air_buffer_data(buf), i, air_buffer_size(buf));
		assert_ok(execute(NULL));
		assert_ok(air_buffer_free(buf));
	}
	assert_ok(air_drain(u.ch, PATIENCE));
	assert_ok(air_channel_error(u.ch, NULL));
	execute_and_check();
}

static void test_event_loop(void **state)
{
	struct pollfd p = { .events = POLLIN };
	int again;

	assert_ok(air_channel_fd(u.ch, &p.fd));
	assert_ok(air_channel_fd(u.ch, &again));
	assert_int_equal(again, p.fd);
	for (int i = 0; i < 50; i++) {
		struct air_completion c;
		air_token token;
		air_status status;

		assert_ok(execute(&token));
		while (air_next(u.ch, &c) == AIR_PENDING) {
			status = air_channel_arm(u.ch);
			if (status == AIR_BUSY)
				continue;
			assert_int_equal(status, AIR_OK);
			assert_int_equal(poll(&p, 1, 30000), 1);
		}
		assert_int_equal(c.token, token);
		assert_int_equal(c.status, AIR_OK);
	}
	/*
	 * Nothing outstanding: nothing to read, once it is armed and what the
	 * worker was about to say of the last one has been said.
	 */
	for (int i = 0; i < 3; i++) {
		assert_ok(air_channel_arm(u.ch));
		if (poll(&p, 1, 100) == 0)
			return;
	}
	fail_msg("readable again and again, with nothing outstanding");
}

#define THREADS 4
#define ROUNDS	100

static void *wait_each(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		struct air_call call;
		air_token token;

		air_prepare_nop(&call);
		if (air_submit(u.ch, &call, 1, &token) != AIR_OK ||
		    air_wait(u.ch, token, PATIENCE, NULL) != AIR_OK)
			return "failed";
		if (i % 10 == 0)
			usleep(200);
	}
	return NULL;
}

static void test_several_waiters(void **state)
{
	pthread_t thread[THREADS];
	void *failed;

	for (int i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, wait_each, NULL);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(thread[i], &failed);
		assert_null(failed);
	}
}

static void test_import(void **state)
{
	static float mine[N];
	air_buffer *buf;
	air_token token;
	air_status status =
		air_buffer_import(u.ch, mine, sizeof(mine), AIR_HOST, &buf);

	if (air_device_transport(u.dev) != AIR_INPROC) {
		assert_int_equal(status, AIR_UNSUPPORTED);
		assert_sentence("air_buffer_alloc()");
		return;
	}
	assert_int_equal(status, AIR_OK);
	assert_ok(air_execute_vector_add(
		u.add, AIR_NO_REF, air_buffer_ref(buf, 0), air_tensor_ref(&u.x),
		air_tensor_ref(&u.x), &token));
	assert_ok(air_buffer_free(buf));
	assert_ok(air_wait(u.ch, token, PATIENCE, NULL));
	for (int i = 0; i < N; i++)
		assert_true(mine[i] == 2 * (float)i);
}

/* ------------------------------------------------- a daemon that is killed */

static void *wait_for_death(void *arg)
{
	air_token *token = arg;
	air_status status = air_wait(u.ch, *token, PATIENCE, NULL);

	return (void *)(intptr_t)status;
}

static void test_outstanding_when_it_dies(void **state)
{
	pthread_t thread[THREADS];
	air_token token[THREADS];
	uint64_t start;

	execute_and_check();
	stop_daemon();
	for (int i = 0; i < THREADS; i++) {
		assert_ok(execute(&token[i]));
		pthread_create(&thread[i], NULL, wait_for_death, &token[i]);
	}
	/* So that some of them sleep, and in different places. */
	usleep(50000);
	start = air_now();
	kill_daemon();
	for (int i = 0; i < THREADS; i++) {
		void *status;

		pthread_join(thread[i], &status);
		assert_int_equal((intptr_t)status, AIR_WORKER_DIED);
	}
	assert_true(air_now() - start < UINT64_C(20000000000));
	/* Nobody comes back: said at once. */
	assert_int_equal(execute(&token[0]), AIR_NO_WORKER);
	assert_sentence("airunnerd");
}

static void test_polling_when_it_dies(void **state)
{
	uint64_t deadline = air_now() + (uint64_t)PATIENCE;
	struct air_completion c;
	air_token token;
	air_status status;

	stop_daemon();
	assert_ok(execute(&token));
	kill_daemon();
	do {
		status = air_next(u.ch, &c);
	} while (status == AIR_PENDING && air_now() < deadline);
	assert_int_equal(status, AIR_OK);
	assert_int_equal(c.token, token);
	assert_int_equal(c.status, AIR_WORKER_DIED);
}

static void test_event_loop_when_it_dies(void **state)
{
	struct pollfd p = { .events = POLLIN };
	struct air_completion c;
	air_token token;
	air_status status;

	assert_ok(air_channel_fd(u.ch, &p.fd));
	stop_daemon();
	assert_ok(execute(&token));
	status = air_channel_arm(u.ch);
	kill_daemon();
	if (status == AIR_OK)
		assert_int_equal(poll(&p, 1, 30000), 1);
	/* The descriptor says that something happened; arming says what. */
	assert_int_equal(air_channel_arm(u.ch), AIR_BUSY);
	assert_ok(air_next(u.ch, &c));
	assert_int_equal(c.status, AIR_WORKER_DIED);
	/* Then there is nothing to sleep for. */
	assert_int_equal(air_channel_arm(u.ch), AIR_NO_WORKER);
}

/*
 * The bell rings, and nobody who sleeps reads it: as when a completion comes
 * just before its waiter lies down, or when the waiter is an event loop. The
 * descriptor is told after the bell.
 */
static void ring_unheard(void)
{
	struct pollfd p = { .events = POLLIN };
	struct air_completion c;
	air_token token;

	assert_ok(air_channel_fd(u.ch, &p.fd));
	assert_ok(air_channel_arm(u.ch));
	assert_ok(execute(&token));
	assert_int_equal(poll(&p, 1, 30000), 1);
	while (air_next(u.ch, &c) == AIR_PENDING)
		assert_int_equal(poll(&p, 1, 30000), 1);
	assert_int_equal(c.token, token);
	assert_int_equal(c.status, AIR_OK);
}

static void test_polling_when_it_dies_unheard(void **state)
{
	ring_unheard();
	test_polling_when_it_dies(state);
}

static void test_event_loop_when_it_dies_unheard(void **state)
{
	ring_unheard();
	test_event_loop_when_it_dies(state);
}

/* Everything is as before: descriptors, buffers, what is in them, the fd. */
static void check_after_restart(void)
{
	air_token token;
	air_status status;

	/* One may still have gone to the old one. */
	status = execute(&token);
	if (status == AIR_OK)
		status = air_wait(u.ch, token, PATIENCE, NULL);
	assert_true(status == AIR_OK || status == AIR_WORKER_DIED);
	execute_and_check();
	test_event_loop(NULL);
	test_buffers_come_and_go(NULL);
}

static void test_restarted(void **state)
{
	air_channel *other;
	struct air_call call;
	air_token token;
	int fd;

	assert_ok(air_channel_create(u.dev, NULL, &other));
	assert_ok(air_channel_fd(u.ch, &fd));
	for (int i = 0; i < 3; i++) {
		kill_daemon();
		start_daemon();
		check_after_restart();
		air_prepare_nop(&call);
		assert_ok(air_submit(other, &call, 1, &token));
		assert_ok(air_wait(other, token, PATIENCE, NULL));
	}
	assert_ok(air_channel_destroy(other));
}

/* Submit until the next daemon has taken @ch and answers. */
static void served_again(air_channel *ch)
{
	struct air_call call;
	air_status status;
	air_token token;

	air_prepare_nop(&call);
	for (int i = 0; i < 1000; i++) {
		status = air_submit(ch, &call, 1, &token);
		if (status == AIR_OK)
			status = air_wait(ch, token, PATIENCE, NULL);
		if (status == AIR_OK)
			return;
		usleep(10000);
	}
	fail_msg("not served again: %s", air_status_string(status));
}

/* An event loop takes the descriptor in once, whatever becomes of daemons. */
static void test_epoll_when_restarted(void **state)
{
	struct epoll_event ev = { .events = EPOLLIN };
	int fd, ep = epoll_create1(EPOLL_CLOEXEC);
	struct air_completion c;
	air_token token;

	assert_ok(air_channel_fd(u.ch, &fd));
	assert_int_equal(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev), 0);
	for (int i = 0; i < 3; i++) {
		kill_daemon();
		start_daemon();
		served_again(u.ch);
		for (int k = 0; k < 10; k++) {
			assert_ok(air_channel_arm(u.ch));
			assert_ok(execute(&token));
			while (air_next(u.ch, &c) == AIR_PENDING)
				assert_int_equal(epoll_wait(ep, &ev, 1, 30000),
						 1);
			assert_int_equal(c.token, token);
			assert_int_equal(c.status, AIR_OK);
		}
		assert_ok(air_channel_arm(u.ch));
	}
	close(ep);
}

/*
 * One thread is told that it may sleep; before it does, the daemon dies, and
 * another thread, with a channel of its own, finds the device the next one.
 */
static void test_revived_before_the_sleep(void **state)
{
	struct pollfd p = { .events = POLLIN };
	struct air_completion c;
	air_channel *other;
	air_token token;

	assert_ok(air_channel_create(u.dev, NULL, &other));
	assert_ok(air_channel_fd(u.ch, &p.fd));
	stop_daemon();
	assert_ok(execute(&token));
	assert_ok(air_channel_arm(u.ch));
	kill_daemon();
	start_daemon();
	served_again(other);
	assert_int_equal(poll(&p, 1, 30000), 1);
	assert_ok(air_next(u.ch, &c));
	assert_int_equal(c.token, token);
	assert_int_equal(c.status, AIR_WORKER_DIED);
	assert_ok(air_channel_destroy(other));
}

static void test_restarted_without_notice(void **state)
{
	air_token token;

	/* Down for a while, with somebody trying. */
	kill_daemon();
	while (execute(&token) == AIR_OK)
		assert_int_equal(air_wait(u.ch, token, PATIENCE, NULL),
				 AIR_WORKER_DIED);
	start_daemon();
	check_after_restart();
}

/* Whatever is asked first of the next daemon is answered by it. */
static void test_restarted_while_idle(void **state)
{
	struct air_backend_caps caps = { .size = sizeof(caps) };
	air_channel *first, *second;
	air_device *idle;
	air_buffer *buf;

	assert_ok(air_open(where, NULL, &idle));
	kill_daemon();
	start_daemon();
	assert_ok(air_channel_create(idle, NULL, &first));
	kill_daemon();
	assert_int_equal(air_backend_caps(idle, AIR_EXEC_CPU, &caps),
			 AIR_NO_WORKER);
	assert_sentence("not back yet");
	start_daemon();
	assert_ok(air_backend_caps(idle, AIR_EXEC_CPU, &caps));
	assert_true(caps.present);
	kill_daemon();
	start_daemon();
	assert_ok(air_channel_create(idle, NULL, &second));
	kill_daemon();
	start_daemon();
	assert_ok(air_buffer_alloc(first, 4096, AIR_HOST, &buf));
	assert_ok(air_buffer_free(buf));
	assert_ok(air_channel_destroy(first));
	assert_ok(air_channel_destroy(second));
	assert_ok(air_close(idle));
	check_after_restart();
}

static uint32_t stop_now;
static uint32_t counts[2]; /* run, died */

static void *keep_going(void *arg)
{
	while (!__atomic_load_n(&stop_now, __ATOMIC_ACQUIRE)) {
		air_token token;
		air_status status = execute(&token);

		/*
		 * Nobody there just now; or a ring full of what the others did
		 * while one of us, whose completion is the oldest, did not get
		 * to run.
		 */
		if (status == AIR_NO_WORKER || status == AIR_FULL) {
			usleep(1000);
			continue;
		}
		if (status == AIR_OK)
			status = air_wait(u.ch, token, PATIENCE, NULL);
		if (status == AIR_OK)
			__atomic_fetch_add(&counts[0], 1, __ATOMIC_RELAXED);
		else if (status == AIR_WORKER_DIED)
			__atomic_fetch_add(&counts[1], 1, __ATOMIC_RELAXED);
		else
			return strdup(air_last_error());
	}
	return NULL;
}

static void test_killed_under_load(void **state)
{
	pthread_t thread[3];

	stop_now = 0;
	memset(counts, 0, sizeof(counts));
	for (int i = 0; i < 3; i++)
		pthread_create(&thread[i], NULL, keep_going, NULL);
	for (int round = 0; round < 6; round++) {
		uint32_t before = __atomic_load_n(&counts[0], __ATOMIC_ACQUIRE);
		uint64_t deadline = air_now() + (uint64_t)PATIENCE;

		while (__atomic_load_n(&counts[0], __ATOMIC_ACQUIRE) <
		       before + 50) {
			assert_true(air_now() < deadline);
			usleep(1000);
		}
		kill_daemon();
		start_daemon();
	}
	__atomic_store_n(&stop_now, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < 3; i++) {
		void *failed;

		pthread_join(thread[i], &failed);
		if (failed)
			fail_msg("%s", (char *)failed);
	}
	assert_true(counts[0] >= 300);
	execute_and_check();
}

/* ------------------------------------------- a daemon that talks nonsense */

/**
 * struct script - a daemon that answers as told
 * @listen: its socket
 * @answer: change the good answer to request number @n; false: hang up
 * @keep: the channel whose bell stays open; 0: of none
 * @bell: that bell
 * @once: nobody else is let in
 */
struct script {
	int listen;
	bool once;
	bool (*answer)(struct air_wire_msg *msg, int n);
	uint32_t keep;
	int bell;
};

/* The next request; of the files with it only the bell wanted is kept. */
static bool receive(struct script *s, int fd, struct air_wire_msg *msg)
{
	struct iovec iov = { .iov_base = msg, .iov_len = sizeof(*msg) };
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(AIR_WIRE_MAX_FDS * sizeof(int))];
	} control;
	struct msghdr hdr = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.buf,
		.msg_controllen = sizeof(control.buf),
	};
	bool good = recvmsg(fd, &hdr, MSG_CMSG_CLOEXEC) == sizeof(*msg);
	struct cmsghdr *c = CMSG_FIRSTHDR(&hdr);
	size_t n = good && c ? (c->cmsg_len - CMSG_LEN(0)) / sizeof(int) : 0;

	for (size_t i = 0; i < n; i++) {
		int got;

		memcpy(&got, CMSG_DATA(c) + i * sizeof(int), sizeof(got));
		if (i == 1 && msg->channel == s->keep)
			__atomic_store_n(&s->bell, got, __ATOMIC_RELEASE);
		else
			close(got);
	}
	return good;
}

static void *act(void *arg)
{
	struct script *s = arg;
	int fd = accept(s->listen, NULL, NULL);
	struct air_wire_msg msg;

	if (s->once)
		close(s->listen);
	for (int n = 0; receive(s, fd, &msg); n++) {
		msg.abi_major = AIRUNNER_ABI_MAJOR;
		if (!s->answer(&msg, n))
			break;
		if (send(fd, &msg, sizeof(msg), MSG_NOSIGNAL) < 0)
			break;
	}
	close(fd);
	return NULL;
}

static void listen_as_told(struct script *s)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) +
				    strlen(name));

	s->listen = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	memcpy(addr.sun_path + 1, name + 1, strlen(name) - 1);
	assert_int_equal(bind(s->listen, (struct sockaddr *)&addr, len), 0);
	assert_int_equal(listen(s->listen, 1), 0);
}

static air_status open_scripted(bool (*answer)(struct air_wire_msg *, int),
				air_status *channel)
{
	struct script s = { .answer = answer, .once = true };
	struct air_backend_caps caps = { .size = sizeof(caps) };
	pthread_t thread;
	air_status status;
	air_channel *ch;
	air_device *dev;

	listen_as_told(&s);
	pthread_create(&thread, NULL, act, &s);
	status = air_open(where, NULL, &dev);
	if (status == AIR_OK) {
		*channel = air_channel_create(dev, NULL, &ch);
		assert_int_not_equal(*channel, AIR_OK);
		/* An answer out of step ends the connection: no more of it. */
		if (*channel == AIR_NO_WORKER)
			assert_int_equal(air_backend_caps(dev, AIR_EXEC_CPU,
							  &caps),
					 AIR_NO_WORKER);
		assert_ok(air_close(dev));
	}
	pthread_join(thread, NULL);
	return status;
}

static bool hang_up(struct air_wire_msg *msg, int n)
{
	return false;
}

static bool other_abi(struct air_wire_msg *msg, int n)
{
	msg->abi_major = 77;
	return true;
}

static bool wrong_seq(struct air_wire_msg *msg, int n)
{
	msg->seq += 5;
	return true;
}

static bool wrong_magic(struct air_wire_msg *msg, int n)
{
	msg->magic = 1;
	return true;
}

static bool refuse_channel(struct air_wire_msg *msg, int n)
{
	if (n) {
		msg->status = AIR_QUOTA;
		/* Without an end, to see that one is put there. */
		memset(msg->text, 'q', sizeof(msg->text));
	}
	return true;
}

static bool die_at_channel(struct air_wire_msg *msg, int n)
{
	return !n;
}

/* As if it were the answer to an earlier request; the next would be good. */
static bool out_of_step(struct air_wire_msg *msg, int n)
{
	if (n == 1)
		msg->seq--;
	return true;
}

static void test_nonsense(void **state)
{
	air_status channel;

	assert_int_equal(open_scripted(hang_up, &channel), AIR_NO_DEVICE);
	assert_int_equal(open_scripted(wrong_seq, &channel), AIR_NO_DEVICE);
	assert_int_equal(open_scripted(wrong_magic, &channel), AIR_NO_DEVICE);
	assert_sentence("does not answer");
	assert_int_equal(open_scripted(other_abi, &channel), AIR_ABI);
	assert_sentence("ABI is 77.");
	assert_int_equal(open_scripted(refuse_channel, &channel), AIR_OK);
	assert_int_equal(channel, AIR_QUOTA);
	assert_int_equal(strspn(air_last_error(), "q"), 191);
	assert_int_equal(open_scripted(die_at_channel, &channel), AIR_OK);
	assert_int_equal(channel, AIR_NO_WORKER);
	assert_int_equal(open_scripted(out_of_step, &channel), AIR_OK);
	assert_int_equal(channel, AIR_NO_WORKER);
}

static air_status submit_nop(air_channel *ch, air_token *token)
{
	struct air_call call;

	air_prepare_nop(&call);
	return air_submit(ch, &call, 1, token);
}

static uint32_t builds; /* of the first channel */

static bool refuse_first_again(struct air_wire_msg *msg, int n)
{
	if (msg->type == AIR_WIRE_BUILD_CHANNEL && msg->channel == 1 &&
	    __atomic_fetch_add(&builds, 1, __ATOMIC_RELAXED))
		msg->status = AIR_QUOTA;
	return true;
}

/*
 * One channel loses its bell, the daemon still has the other: that one is not
 * cut before its bell goes as well. Then the first is refused, for good, and
 * the other does not suffer.
 */
static void test_one_of_two(void **state)
{
	struct script s = { .answer = refuse_first_again, .keep = 2 };
	air_token token, kept;
	pthread_t thread[3];
	air_channel *ch[2];
	struct pollfd p;
	air_device *dev;

	__atomic_store_n(&builds, 0, __ATOMIC_RELAXED);
	listen_as_told(&s);
	for (int i = 0; i < 3; i++)
		pthread_create(&thread[i], NULL, act, &s);
	assert_ok(air_open(where, NULL, &dev));
	assert_ok(air_channel_create(dev, NULL, &ch[0]));
	assert_ok(air_channel_create(dev, NULL, &ch[1]));

	assert_ok(submit_nop(ch[0], &token));
	assert_int_equal(air_wait(ch[0], token, PATIENCE, NULL),
			 AIR_WORKER_DIED);
	assert_ok(submit_nop(ch[1], &kept));
	assert_int_equal(submit_nop(ch[0], &token), AIR_NO_WORKER);
	assert_sentence("not let go");
	assert_int_equal(air_poll(ch[1], kept, NULL), AIR_PENDING);

	close(__atomic_load_n(&s.bell, __ATOMIC_ACQUIRE));
	assert_int_equal(submit_nop(ch[0], &token), AIR_CHANNEL_DEAD);
	assert_int_equal(air_wait(ch[1], kept, PATIENCE, NULL),
			 AIR_WORKER_DIED);
	assert_ok(submit_nop(ch[1], &kept));
	assert_int_equal(submit_nop(ch[0], &token), AIR_CHANNEL_DEAD);
	assert_int_equal(air_poll(ch[1], kept, NULL), AIR_PENDING);
	p = (struct pollfd){ .fd = s.listen, .events = POLLIN };
	assert_int_equal(poll(&p, 1, 0), 0);

	close(__atomic_load_n(&s.bell, __ATOMIC_ACQUIRE));
	assert_int_equal(air_wait(ch[1], kept, PATIENCE, NULL),
			 AIR_WORKER_DIED);
	assert_ok(air_channel_destroy(ch[0]));
	assert_ok(air_channel_destroy(ch[1]));
	assert_ok(air_close(dev));
	for (int i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	close(s.listen);
}

static uint32_t registrations;

static bool refuse_buffer_again(struct air_wire_msg *msg, int n)
{
	if (msg->type == AIR_WIRE_REGISTER_BUFFER && msg->channel == 1 &&
	    __atomic_fetch_add(&registrations, 1, __ATOMIC_RELAXED))
		msg->status = AIR_QUOTA;
	return true;
}

/* The next daemon refuses a channel's buffer: that is the end of that one. */
static void test_buffer_refused(void **state)
{
	struct script s = { .answer = refuse_buffer_again, .keep = 2 };
	pthread_t thread[2];
	air_channel *ch[2];
	air_device *dev;
	air_buffer *buf;
	air_token token;

	__atomic_store_n(&registrations, 0, __ATOMIC_RELAXED);
	listen_as_told(&s);
	for (int i = 0; i < 2; i++)
		pthread_create(&thread[i], NULL, act, &s);
	assert_ok(air_open(where, NULL, &dev));
	assert_ok(air_channel_create(dev, NULL, &ch[0]));
	assert_ok(air_buffer_alloc(ch[0], 4096, AIR_HOST, &buf));
	assert_ok(air_channel_create(dev, NULL, &ch[1]));
	close(__atomic_load_n(&s.bell, __ATOMIC_ACQUIRE));

	/* The first one's bell was closed at once: it may know already. */
	if (submit_nop(ch[0], &token) == AIR_OK)
		assert_int_equal(air_wait(ch[0], token, PATIENCE, NULL),
				 AIR_WORKER_DIED);
	assert_int_equal(submit_nop(ch[0], &token), AIR_CHANNEL_DEAD);
	assert_int_equal(air_buffer_alloc(ch[0], 4096, AIR_HOST, &buf),
			 AIR_CHANNEL_DEAD);
	if (submit_nop(ch[1], &token) == AIR_OK)
		assert_int_equal(air_poll(ch[1], token, NULL), AIR_PENDING);
	close(__atomic_load_n(&s.bell, __ATOMIC_ACQUIRE));
	assert_ok(air_channel_destroy(ch[0]));
	assert_ok(air_channel_destroy(ch[1]));
	assert_ok(air_close(dev));
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	close(s.listen);
}

static void test_not_a_daemon(void **state)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	char path[64], device[80];
	air_device *dev;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(path, sizeof(path), "/tmp/airunner-transport-%d", getpid());
	snprintf(device, sizeof(device), "unix:%s", path);
	strcpy(addr.sun_path, path);
	/* Of a process that had this number and was killed. */
	unlink(path);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(air_open(device, NULL, &dev), AIR_NO_DEVICE);
	assert_sentence("not airunnerd's socket");
	/* Left behind by one that was killed. */
	close(fd);
	assert_int_equal(air_open(device, NULL, &dev), AIR_NO_DEVICE);
	assert_sentence("airunnerd running");
	unlink(path);
}

#define I(name)                                                                \
	{                                                                      \
#name " in-process", name, start_inproc, stop, NULL            \
	}
#define U(name)                                                                \
	{                                                                      \
#name " through a socket", name, start_unix, stop, NULL        \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		I(test_operator),
		I(test_caps),
		I(test_quiet),
		I(test_stream_wait),
		I(test_bad_operand),
		I(test_sleeping_wait),
		I(test_buffers_come_and_go),
		I(test_event_loop),
		I(test_several_waiters),
		I(test_import),
		U(test_operator),
		U(test_caps),
		U(test_quiet),
		U(test_stream_wait),
		U(test_bad_operand),
		U(test_sleeping_wait),
		U(test_buffers_come_and_go),
		U(test_event_loop),
		U(test_several_waiters),
		U(test_import),
		U(test_outstanding_when_it_dies),
		U(test_polling_when_it_dies),
		U(test_event_loop_when_it_dies),
		U(test_polling_when_it_dies_unheard),
		U(test_event_loop_when_it_dies_unheard),
		U(test_restarted),
		U(test_epoll_when_restarted),
		U(test_revived_before_the_sleep),
		U(test_restarted_without_notice),
		U(test_restarted_while_idle),
		U(test_killed_under_load),
		cmocka_unit_test(test_nonsense),
		cmocka_unit_test(test_one_of_two),
		cmocka_unit_test(test_buffer_refused),
		cmocka_unit_test(test_not_a_daemon),
	};

	snprintf(name, sizeof(name), "@airunner-transport-%d", getpid());
	snprintf(where, sizeof(where), "unix:%s", name);
	return cmocka_run_group_tests_name("transport", tests, NULL, NULL);
}
