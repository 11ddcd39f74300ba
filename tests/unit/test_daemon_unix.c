// SPDX-License-Identifier: MIT
/*
 * The daemon's end of the socket: every malformed request is answered, nothing
 * of it stays behind, and others are served meanwhile.
 */
#include <errno.h>
#include <fcntl.h>
#include <dirent.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <airunner/ops/relu.h>

#include "ops/worker/daemon/unix.h"
#include "libairunner/wire.h"
#include "tests/unit/worker_client.h"

static struct air_worker *w;
static struct air_source *source;
static char path[108];

static int set_up(void **state)
{
	struct air_unix_config config = {
		.path = path,
		.mode = 0600,
		.group = -1,
	};
	struct air_worker_config wc = { .threads = 1 };
	struct air_error e = { "" };

	snprintf(path, sizeof(path), "/tmp/airunner-test-%d", getpid());
	assert_int_equal(air_worker_create(&wc, &w, &e), AIR_OK);
	source = air_unix_create(&config, &e);
	if (!source)
		fail_msg("%s", e.text);
	air_worker_add_source(w, source);
	assert_int_equal(air_worker_start(w, &e), AIR_OK);
	return 0;
}

static int tear_down(void **state)
{
	air_worker_stop(w);
	air_unix_destroy(source);
	air_worker_destroy(w);
	assert_int_equal(access(path, F_OK), -1);
	return 0;
}

/* ----------------------------------------------------------- a raw client */

static uint32_t seq;

static int dial(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct timeval tv = { .tv_sec = 30 };

	strcpy(addr.sun_path, path);
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)),
			 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	return fd;
}

static struct air_wire_msg request(uint32_t type)
{
	struct air_wire_msg msg = {
		.magic = AIR_WIRE_MAGIC,
		.type = type,
		.seq = ++seq,
	};

	return msg;
}

static void send_msg(int fd, const void *msg, size_t size, const int *fds,
		     unsigned int n)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(8 * sizeof(int))];
	} control = { 0 };
	struct iovec iov = { (void *)msg, size };
	struct msghdr hdr = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (n) {
		hdr.msg_control = &control;
		hdr.msg_controllen = CMSG_SPACE(n * sizeof(int));
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		control.head.cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(&control.head), fds, n * sizeof(int));
	}
	assert_int_equal(sendmsg(fd, &hdr, MSG_NOSIGNAL), (ssize_t)size);
}

static struct air_wire_msg ask_fds(int fd, struct air_wire_msg msg,
				   const int *fds, unsigned int n)
{
	struct air_wire_msg reply;

	send_msg(fd, &msg, sizeof(msg), fds, n);
	if (recv(fd, &reply, sizeof(reply), 0) != sizeof(reply))
		fail_msg("type %u: no answer: %s", msg.type, strerror(errno));
	assert_int_equal(reply.magic, AIR_WIRE_MAGIC);
	assert_int_equal(reply.type, msg.type);
	assert_int_equal(reply.seq, msg.seq);
	return reply;
}

static air_status ask(int fd, struct air_wire_msg msg)
{
	return (air_status)ask_fds(fd, msg, NULL, 0).status;
}

static int greet(void)
{
	struct air_wire_msg msg = request(AIR_WIRE_HELLO);
	int fd = dial();

	msg.abi_major = AIRUNNER_ABI_MAJOR;
	assert_int_equal(ask(fd, msg), AIR_OK);
	return fd;
}

static int memfd(size_t size, int seals)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	if (seals)
		assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

#define ORDER 4
#define LENGTH 16384

static struct air_wire_msg build(uint32_t channel)
{
	struct air_wire_msg msg = request(AIR_WIRE_BUILD_CHANNEL);

	msg.channel = channel;
	msg.order = ORDER;
	msg.length = LENGTH;
	return msg;
}

static void assert_closed(int fd)
{
	char byte;

	assert_int_equal(recv(fd, &byte, 1, 0), 0);
	close(fd);
}

static unsigned int open_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned int n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* Until the daemon, in this process, has closed all that it had. */
static void await_files(unsigned int n)
{
	uint64_t end = air_now() + PATIENCE_NS;

	while (open_files() != n) {
		if (air_now() > end)
			fail_msg("%u files are open; there were %u",
				 open_files(), n);
		sched_yield();
	}
}

/* ------------------------------------------------------------------ tests */

static void test_hello(void **state)
{
	struct air_wire_msg msg = request(AIR_WIRE_CAPS), reply;
	int fd = dial();

	msg.executor = AIR_EXEC_CPU;
	assert_int_equal(ask(fd, msg), AIR_BAD_ARGUMENT);
	msg = request(AIR_WIRE_HELLO);
	msg.abi_major = AIRUNNER_ABI_MAJOR + 1;
	reply = ask_fds(fd, msg, NULL, 0);
	assert_int_equal(reply.status, AIR_ABI);
	assert_int_equal(reply.abi_major, AIRUNNER_ABI_MAJOR);
	assert_true(reply.text[0]);
	msg = request(AIR_WIRE_HELLO);
	msg.abi_major = AIRUNNER_ABI_MAJOR;
	reply = ask_fds(fd, msg, NULL, 0);
	assert_int_equal(reply.status, AIR_OK);
	assert_int_equal(reply.pid, getpid());
	msg = request(AIR_WIRE_CAPS);
	msg.executor = AIR_EXEC_CPU;
	reply = ask_fds(fd, msg, NULL, 0);
	assert_int_equal(reply.status, AIR_OK);
	assert_int_equal(reply.caps.present, 1);
	msg.executor = 17;
	assert_int_equal(ask(fd, msg), AIR_BAD_ARGUMENT);
	close(fd);
}

static void test_malformed(void **state)
{
	struct air_wire_msg msg;
	unsigned int before = open_files();
	int fds[3], fd, n;

	for (n = 1; n < 400; n += 7) {
		char junk[400] = { 0 };

		if (n == sizeof(msg))
			continue;
		fd = greet();
		send_msg(fd, junk, (size_t)n, NULL, 0);
		assert_closed(fd);
	}
	fd = greet();
	msg = request(AIR_WIRE_CAPS);
	msg.magic++;
	send_msg(fd, &msg, sizeof(msg), NULL, 0);
	assert_int_equal(recv(fd, &msg, sizeof(msg), 0), sizeof(msg));
	assert_int_equal(msg.status, AIR_BAD_ARGUMENT);
	for (uint32_t type = 0; type < 100; type++) {
		if (type >= AIR_WIRE_HELLO && type <= AIR_WIRE_ADD_NOTIFY)
			continue;
		assert_int_equal(ask(fd, request(type)), AIR_BAD_ARGUMENT);
	}
	/* Each word of each request that it does not use. */
	for (uint32_t type = AIR_WIRE_HELLO; type <= AIR_WIRE_ADD_NOTIFY;
	     type++) {
		msg = request(type);
		msg.status = 1;
		assert_int_equal(ask(fd, msg), AIR_BAD_ARGUMENT);
		msg = request(type);
		msg.resv = 1;
		assert_int_equal(ask(fd, msg), AIR_BAD_ARGUMENT);
		msg = request(type);
		msg.text[191] = 1;
		assert_int_equal(ask(fd, msg), AIR_BAD_ARGUMENT);
	}
	/* Files where none belong are closed. */
	for (n = 0; n < 3; n++)
		fds[n] = memfd(4096, 0);
	for (n = 1; n <= 3; n++) {
		msg = request(AIR_WIRE_CAPS);
		msg.executor = AIR_EXEC_CPU;
		assert_int_equal(ask_fds(fd, msg, fds, (unsigned int)n).status,
				 AIR_BAD_ARGUMENT);
		msg = build(1);
		if (n != 2)
			assert_int_equal(
				ask_fds(fd, msg, fds, (unsigned int)n).status,
				AIR_BAD_ARGUMENT);
	}
	for (n = 0; n < 3; n++)
		close(fds[n]);
	close(fd);
	await_files(before);
}

static void test_bad_channels(void **state)
{
	unsigned int before = open_files();
	int bell[2], dgram[2], fds[2], fd = greet();
	struct air_wire_msg msg;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, bell), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM, 0, dgram), 0);
	fds[0] = memfd(LENGTH, AIR_WIRE_SEALS);
	fds[1] = bell[1];

	assert_int_equal(ask_fds(fd, build(0), fds, 2).status,
			 AIR_BAD_ARGUMENT);
	msg = build(1);
	msg.length = LENGTH + 4096;
	assert_int_equal(ask_fds(fd, msg, fds, 2).status, AIR_BAD_ARGUMENT);
	msg = build(1);
	msg.length = ~0ull;
	assert_int_equal(ask_fds(fd, msg, fds, 2).status, AIR_BAD_ARGUMENT);
	msg = build(1);
	msg.order = 0;
	assert_int_equal(ask_fds(fd, msg, fds, 2).status, AIR_BAD_ARGUMENT);
	msg.order = AIRUNNER_MAX_ORDER + 1;
	msg.seq++;
	assert_int_equal(ask_fds(fd, msg, fds, 2).status, AIR_BAD_ARGUMENT);
	msg.order = 0xffffffff;
	assert_int_equal(ask_fds(fd, msg, fds, 2).status, AIR_BAD_ARGUMENT);
	msg.order = 10;	/* larger than the file */
	assert_int_equal(ask_fds(fd, msg, fds, 2).status, AIR_BAD_ARGUMENT);

	fds[1] = dgram[1];
	assert_int_equal(ask_fds(fd, build(1), fds, 2).status,
			 AIR_BAD_ARGUMENT);
	fds[1] = fds[0];
	assert_int_equal(ask_fds(fd, build(1), fds, 2).status,
			 AIR_BAD_ARGUMENT);
	fds[1] = bell[1];
	close(fds[0]);
	fds[0] = memfd(LENGTH, 0);
	assert_int_equal(ask_fds(fd, build(1), fds, 2).status,
			 AIR_BAD_ARGUMENT);
	close(fds[0]);
	fds[0] = memfd(LENGTH, F_SEAL_SHRINK | F_SEAL_GROW);
	assert_int_equal(ask_fds(fd, build(1), fds, 2).status,
			 AIR_BAD_ARGUMENT);
	close(fds[0]);
	fds[0] = memfd(LENGTH, AIR_WIRE_SEALS & ~F_SEAL_SHRINK);
	assert_int_equal(ask_fds(fd, build(1), fds, 2).status,
			 AIR_BAD_ARGUMENT);
	close(fds[0]);
	fds[0] = memfd(LENGTH, F_SEAL_WRITE | AIR_WIRE_SEALS);
	assert_int_equal(ask_fds(fd, build(1), fds, 2).status, AIR_NO_MEMORY);
	close(fds[0]);
	fds[0] = open("/dev/null", O_RDWR);
	assert_int_equal(ask_fds(fd, build(1), fds, 2).status,
			 AIR_BAD_ARGUMENT);
	close(fds[0]);

	msg = request(AIR_WIRE_DESTROY_CHANNEL);
	msg.channel = 1;
	assert_int_equal(ask(fd, msg), AIR_BAD_ID);

	/* And a good one. */
	fds[0] = memfd(LENGTH, AIR_WIRE_SEALS);
	assert_int_equal(ask_fds(fd, build(1), fds, 2).status, AIR_OK);
	assert_int_equal(ask_fds(fd, build(1), fds, 2).status, AIR_BUSY);
	msg.seq = ++seq;
	assert_int_equal(ask(fd, msg), AIR_OK);
	msg.seq = ++seq;
	assert_int_equal(ask(fd, msg), AIR_BAD_ID);
	close(fds[0]);
	for (int i = 0; i < 2; i++) {
		close(bell[i]);
		close(dgram[i]);
	}
	close(fd);
	await_files(before);
}

/* A channel made by hand, with the client's end of the rings. */
struct raw {
	int fd, bell;
	void *region;
	struct air_ring ring;
	uint8_t collected[1 << ORDER];
};

static void raw_open(struct raw *r, uint32_t channel)
{
	int bell[2], fds[2];

	memset(r, 0, sizeof(*r));
	r->fd = greet();
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, bell), 0);
	fds[0] = memfd(LENGTH, AIR_WIRE_SEALS);
	fds[1] = bell[1];
	r->region = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED,
			 fds[0], 0);
	assert_true(r->region != MAP_FAILED);
	air_ring_init(&r->ring, r->region, ORDER);
	assert_int_equal(ask_fds(r->fd, build(channel), fds, 2).status,
			 AIR_OK);
	r->bell = bell[0];
	close(fds[0]);
	close(bell[1]);
}

static void raw_close(struct raw *r)
{
	if (r->bell >= 0)
		close(r->bell);
	if (r->fd >= 0)
		close(r->fd);
	munmap(r->region, LENGTH);
}

static uint64_t raw_submit(struct raw *r, const struct air_sqe *sqe)
{
	uint64_t index = 0;

	assert_true(air_ring_reserve(&r->ring, r->collected, 1, &index));
	air_ring_publish(&r->ring, index, sqe);
	if (air_ring_must_wake(&r->ring, false))
		assert_int_equal(send(r->bell, "w", 1, MSG_NOSIGNAL), 1);
	return index;
}

static void raw_wait(struct raw *r, uint64_t index)
{
	uint64_t end = air_now() + PATIENCE_NS;
	struct air_cqe cqe;

	while (!air_ring_completed(&r->ring, index, &cqe)) {
		assert_true(air_now() < end);
		sched_yield();
	}
	assert_int_equal(cqe.status, AIRUNNER_S_OK);
	air_ring_collect(&r->ring, r->collected, index);
}

static void test_bell(void **state)
{
	struct air_sqe nop = sqe_nop();
	struct raw r;

	raw_open(&r, 7);
	for (int i = 0; i < 500; i++) {
		char byte = 0;
		uint64_t index;

		/* asleep on the bell, as the library is */
		air_ring_arm_waiter(&r.ring);
		index = raw_submit(&r, &nop);
		if (!air_ring_completed(&r.ring, index, &(struct air_cqe){ 0 }))
			assert_int_equal(recv(r.bell, &byte, 1, 0), 1);
		raw_wait(&r, index);
		if (byte)
			assert_int_equal(byte, AIR_WIRE_BELL_DONE);
	}
	/* Nonsense on the bell is no bell. */
	for (int i = 0; i < 1000; i++)
		send(r.bell, "????????", 8, MSG_NOSIGNAL | MSG_DONTWAIT);
	raw_wait(&r, raw_submit(&r, &nop));
	raw_close(&r);
}

/* A bell whose other end is gone stays readable: that costs nothing. */
static void test_silent_bell(void **state)
{
	struct air_sqe nop = sqe_nop();
	struct timespec before, ts;
	clockid_t clock;
	uint64_t end;
	struct raw r;

	raw_open(&r, 1);
	raw_wait(&r, raw_submit(&r, &nop));
	close(r.bell);
	r.bell = -1;
	pthread_getcpuclockid(w->thread, &clock);
	end = air_now() + PATIENCE_NS;
	do {
		assert_true(air_now() < end);
		clock_gettime(clock, &before);
		usleep(100000);
		clock_gettime(clock, &ts);
	} while ((ts.tv_sec - before.tv_sec) * 1000000000 + ts.tv_nsec -
			 before.tv_nsec > 2000000);
	raw_close(&r);
}

static void test_notify(void **state)
{
	struct air_wire_msg msg = request(AIR_WIRE_ADD_NOTIFY);
	struct air_sqe nop = sqe_nop();
	int pair[2];
	struct raw r;
	char byte;

	raw_open(&r, 3);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	msg.channel = 4;
	assert_int_equal(ask_fds(r.fd, msg, &pair[1], 1).status, AIR_BAD_ID);
	msg.channel = 3;
	assert_int_equal(ask_fds(r.fd, msg, &pair[1], 1).status, AIR_OK);
	assert_int_equal(ask_fds(r.fd, msg, &pair[1], 1).status, AIR_BUSY);
	air_ring_arm_waiter(&r.ring);
	raw_wait(&r, raw_submit(&r, &nop));
	assert_int_equal(recv(pair[0], &byte, 1, 0), 1);
	close(pair[0]);
	close(pair[1]);
	raw_close(&r);
}

static void test_buffers(void **state)
{
	struct air_wire_msg msg = request(AIR_WIRE_REGISTER_BUFFER);
	struct air_sqe release = sqe_head(AIRUNNER_OP_BUFFER_RELEASE, 5);
	struct air_sqe use;
	struct raw r;
	int fd;

	raw_open(&r, 1);
	fd = memfd(8192, AIR_WIRE_SEALS);
	msg.channel = 2;
	msg.handle = 5;
	msg.length = 8192;
	assert_int_equal(ask_fds(r.fd, msg, &fd, 1).status, AIR_BAD_ID);
	msg.channel = 1;
	msg.handle = 0;
	assert_int_equal(ask_fds(r.fd, msg, &fd, 1).status, AIR_BAD_HANDLE);
	msg.handle = 0xffff;
	assert_int_equal(ask_fds(r.fd, msg, &fd, 1).status, AIR_BAD_HANDLE);
	msg.handle = 5;
	msg.length = 4096;
	assert_int_equal(ask_fds(r.fd, msg, &fd, 1).status, AIR_BAD_ARGUMENT);
	msg.length = 8192;
	for (int i = 0; i < 50; i++) {
		assert_int_equal(ask_fds(r.fd, msg, &fd, 1).status, AIR_OK);
		assert_int_equal(ask_fds(r.fd, msg, &fd, 1).status, AIR_BUSY);
		raw_wait(&r, raw_submit(&r, &release));
	}
	use = sqe_nop();
	raw_wait(&r, raw_submit(&r, &use));
	/* Left behind: goes with the connection. */
	assert_int_equal(ask_fds(r.fd, msg, &fd, 1).status, AIR_OK);
	close(fd);
	raw_close(&r);
}

/* Clients that vanish, with everything open and work under way. */
static void test_vanish(void **state)
{
	unsigned int before = open_files();
	struct air_sqe nop = sqe_nop();

	for (int i = 0; i < 200; i++) {
		struct air_wire_msg msg =
			request(AIR_WIRE_DESTROY_CHANNEL);
		struct raw r;

		raw_open(&r, 1);
		for (int k = 0; k < 10; k++)
			raw_submit(&r, &nop);
		msg.channel = 1;
		if (i % 3 == 0)
			send_msg(r.fd, &msg, sizeof(msg), NULL, 0);
		if (i % 4 == 0)
			shutdown(r.fd, SHUT_WR);
		raw_close(&r);
	}
	await_files(before);
}

/* One that asks and does not listen is let go; others are served. */
static void test_deaf_client(void **state)
{
	struct air_wire_msg msg = request(AIR_WIRE_CAPS);
	struct air_sqe nop = sqe_nop();
	int fd = greet();
	struct raw r;

	raw_open(&r, 1);
	msg.executor = AIR_EXEC_CPU;
	while (send(fd, &msg, sizeof(msg), MSG_NOSIGNAL) == sizeof(msg))
		;
	assert_true(errno == EPIPE || errno == ECONNRESET);
	raw_wait(&r, raw_submit(&r, &nop));
	raw_close(&r);
	close(fd);
}

static void test_quota(void **state)
{
	int bell[2], fds[2], fd = greet();

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, bell), 0);
	fds[0] = memfd(LENGTH, AIR_WIRE_SEALS);
	fds[1] = bell[1];
	for (uint32_t i = 1; i <= 256; i++)
		assert_int_equal(ask_fds(fd, build(i), fds, 2).status, AIR_OK);
	assert_int_equal(ask_fds(fd, build(257), fds, 2).status, AIR_QUOTA);
	close(fds[0]);
	close(bell[0]);
	close(bell[1]);
	close(fd);
}

/* Register buffers from handle @first on until that is refused. */
static uint32_t fill(struct raw *r, int memory, uint32_t first)
{
	struct air_wire_msg msg = request(AIR_WIRE_REGISTER_BUFFER);
	air_status st;

	msg.channel = 1;
	msg.length = 4096;
	for (msg.handle = first;; msg.handle++) {
		st = (air_status)ask_fds(r->fd, msg, &memory, 1).status;
		if (st)
			break;
	}
	assert_int_equal(st, AIR_QUOTA);
	return msg.handle - first;
}

/* One client cannot have all mappings, nor all of them more than there are. */
static void test_many_buffers(void **state)
{
	struct air_sqe release = sqe_head(AIRUNNER_OP_BUFFER_RELEASE, 1);
	int memory = memfd(4096, AIR_WIRE_SEALS);
	uint64_t end = air_now() + PATIENCE_NS;
	uint32_t total = 0, n, last;
	struct raw r[16];
	int clients = 0;

	do {
		raw_open(&r[clients], 1);
		last = fill(&r[clients], memory, 1);
		total += last + 1;
		clients++;
	} while (last == AIR_UNIX_BUFFERS && clients < 16);
	assert_true(clients > 1);
	assert_int_equal(total, AIR_UNIX_MAPPINGS);

	/* What one lets go of, one can have again. */
	raw_wait(&r[0], raw_submit(&r[0], &release));
	assert_int_equal(fill(&r[0], memory, AIR_UNIX_BUFFERS + 1), 1);
	raw_close(&r[0]);
	for (n = 0; !n; n = fill(&r[clients - 1], memory, last + 1))
		assert_true(air_now() < end);
	for (int i = 1; i < clients; i++)
		raw_close(&r[i]);
	close(memory);
}

/* A path in use is refused, a leftover is taken over. */
static void test_paths(void **state)
{
	struct air_unix_config config = {
		.path = path,
		.mode = 0600,
		.group = -1,
	};
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct air_source *second;
	char other[128], long_path[200];
	struct air_error e = { "" };
	struct stat st;
	int fd;

	assert_null(air_unix_create(&config, &e));
	assert_non_null(strstr(e.text, path));
	/* which did not take the socket away from who has it */
	close(greet());

	snprintf(other, sizeof(other), "%s.old", path);
	fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	strcpy(addr.sun_path, other);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	close(fd);
	config.path = other;
	config.mode = 0640;
	second = air_unix_create(&config, &e);
	assert_non_null(second);
	assert_int_equal(stat(other, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0640);
	air_unix_destroy(second);
	assert_int_equal(access(other, F_OK), -1);

	memset(long_path, 'x', sizeof(long_path));
	long_path[199] = '\0';
	config.path = long_path;
	assert_null(air_unix_create(&config, &e));
	config.path = "";
	assert_null(air_unix_create(&config, &e));
	config.path = "@airunner-test-abstract";
	second = air_unix_create(&config, &e);
	assert_non_null(second);
	air_unix_destroy(second);
}

/* The library's side of it: an operator, through the socket. */
static void test_library(void **state)
{
	const int64_t n = 1000;
	char where[128];

	snprintf(where, sizeof(where), "unix:%s", path);
	for (int round = 0; round < 3; round++) {
		struct air_completion done;
		air_descriptor *relu;
		air_tensor_desc t;
		air_device *dev;
		air_channel *ch;
		air_buffer *buf;
		air_token token;
		float *x;

		assert_int_equal(air_open(where, NULL, &dev), AIR_OK);
		assert_int_equal(air_channel_create(dev, NULL, &ch), AIR_OK);
		assert_int_equal(air_buffer_alloc(ch, 8000, AIR_HOST, &buf),
				 AIR_OK);
		x = air_buffer_data(buf);
		for (int i = 0; i < n; i++)
			x[i] = (float)(i - 500);
		air_tensor_desc_init(&t, AIR_F32, 1, &n, NULL);
		assert_int_equal(air_create_relu_descriptor(ch, &relu, &t, &t),
				 AIR_OK);
		assert_int_equal(air_execute_relu(relu, AIR_NO_REF,
						  air_buffer_ref(buf, 4000),
						  air_buffer_ref(buf, 0),
						  &token),
				 AIR_OK);
		assert_int_equal(air_wait(ch, token, 30000000000, &done),
				 AIR_OK);
		for (int i = 0; i < n; i++)
			assert_true(x[1000 + i] == (x[i] > 0 ? x[i] : 0));
		air_destroy_relu_descriptor(relu);
		air_buffer_free(buf);
		assert_int_equal(air_channel_destroy(ch), AIR_OK);
		assert_int_equal(air_close(dev), AIR_OK);
	}
}

/* Stopped with clients connected: they see the end, nothing stays. */
static void test_stop(void **state)
{
	struct air_sqe nop = sqe_nop();
	struct raw r;

	set_up(NULL);
	raw_open(&r, 1);
	for (int i = 0; i < 10; i++)
		raw_submit(&r, &nop);
	tear_down(NULL);
	for (uint64_t i = 0; i < 10; i++)
		raw_wait(&r, i);
	{
		char byte;

		assert_int_equal(recv(r.fd, &byte, 1, 0), 0);
	}
	raw_close(&r);
}

#define both(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		both(test_hello),
		both(test_malformed),
		both(test_bad_channels),
		both(test_bell),
		both(test_silent_bell),
		both(test_notify),
		both(test_buffers),
		both(test_vanish),
		both(test_deaf_client),
		both(test_quota),
		both(test_many_buffers),
		both(test_paths),
		both(test_library),
		cmocka_unit_test(test_stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
