/* SPDX-License-Identifier: MIT */
/*
 * What the stress programs with a real airunnerd share: starting it, looking
 * at it from outside, and a client whose every operator is checked.
 */
#ifndef AIR_STRESS_DAEMON_H
#define AIR_STRESS_DAEMON_H

#include <dirent.h>
#include <errno.h>
#include <libgen.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <airunner.h>
#include <airunner/ops/vector_add.h>

/* Longer than anything takes on a loaded machine. */
#define PATIENCE_NS INT64_C(30000000000)

static char socket_where[64];	/* "unix:/tmp/..." */

static inline uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static inline void rest_us(unsigned int us)
{
	struct timespec ts = { us / 1000000, us % 1000000 * 1000L };

	nanosleep(&ts, NULL);
}

static inline uint64_t draw(uint64_t *seed)
{
	uint64_t x = *seed += 0x9e3779b97f4a7c15u;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

/* A child that does not outlive its parent. */
static inline pid_t spawn(void)
{
	pid_t parent = getpid(), pid = fork();

	if (pid < 0) {
		perror("fork");
		exit(1);
	}
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
	}
	return pid;
}

static inline int reap(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

/* airunnerd lies beside the tests' folder in the build folder. */
static inline const char *daemon_program(const char *argv0)
{
	static char path[4096];
	char self[4096];

	snprintf(self, sizeof(self), "%s", argv0);
	snprintf(path, sizeof(path), "%s/../../airunnerd", dirname(self));
	return path;
}

static inline pid_t daemon_start(const char *program)
{
	const char *at = socket_where + strlen("unix:");
	pid_t pid = spawn();

	if (pid == 0) {
		execl(program, "airunnerd", "--listen", at, "--own", "--quiet",
		      "--executors", "cpu", "--threads", "1", (char *)NULL);
		perror(program);
		_exit(127);
	}
	return pid;
}

static inline air_device *reach(void)
{
	uint64_t end = now_ns() + (uint64_t)PATIENCE_NS;
	air_device *dev;

	while (air_open(socket_where, NULL, &dev) != AIR_OK) {
		if (now_ns() > end) {
			fprintf(stderr, "no daemon: %s\n", air_last_error());
			return NULL;
		}
		rest_us(1000);
	}
	return dev;
}

static inline unsigned int daemon_fds(pid_t pid)
{
	char path[64];
	unsigned int n = 0;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	d = opendir(path);
	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

/* Until the daemon holds no more than @fds, as it did before. */
static inline bool daemon_lets_go(pid_t pid, unsigned int fds)
{
	uint64_t end = now_ns() + (uint64_t)PATIENCE_NS;

	while (daemon_fds(pid) > fds) {
		if (now_ns() > end)
			return false;
		rest_us(1000);
	}
	return true;
}

/* Processor time used so far, in clock ticks of 10 ms. */
static inline unsigned long daemon_ticks(pid_t pid)
{
	unsigned long user = 0, system = 0;
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "r");
	if (f) {
		if (fscanf(f, "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
			   &user, &system) != 2)
			user = system = 0;
		fclose(f);
	}
	return user + system;
}

/* ---------------------------------------------------------------- a client */

#define ADDER_ELEMENTS 64
#define ADDER_LANES 32

/* Up to ADDER_LANES vector_adds of one channel outstanding, each checked. */
struct adder {
	air_channel *ch;
	air_descriptor *d;
	air_buffer *buf;
	float *data;
	struct air_call call[ADDER_LANES];
	air_token token[ADDER_LANES];
};

static inline float *adder_lane(struct adder *x, unsigned int lane,
				unsigned int operand)
{
	return x->data + (lane * 3 + operand) * ADDER_ELEMENTS;
}

static inline air_status adder_open(struct adder *x, air_device *dev)
{
	struct air_channel_options o = { .size = sizeof(o), .order = 6 };
	int64_t shape = ADDER_ELEMENTS;
	air_tensor_desc t;
	air_status st;

	st = air_channel_create(dev, &o, &x->ch);
	if (st)
		return st;
	air_tensor_desc_init(&t, AIR_F32, 1, &shape, NULL);
	st = air_create_vector_add_descriptor(x->ch, &x->d, &t, &t, &t);
	if (st)
		return st;
	st = air_buffer_alloc(x->ch,
			      sizeof(float) * 3 * ADDER_ELEMENTS * ADDER_LANES,
			      AIR_HOST, &x->buf);
	if (st)
		return st;
	x->data = air_buffer_data(x->buf);
	for (unsigned int i = 0; i < ADDER_LANES; i++) {
		air_ref ref[3];

		for (unsigned int k = 0; k < 3; k++)
			ref[k] = air_buffer_ref(
				x->buf, (uint64_t)((char *)adder_lane(x, i, k) -
						   (char *)x->data));
		st = air_prepare_vector_add(x->d, &x->call[i], AIR_NO_REF,
					    ref[0], ref[1], ref[2]);
		if (st)
			return st;
	}
	return AIR_OK;
}

static inline void adder_fill(struct adder *x, unsigned int lane,
			      uint64_t *seed)
{
	for (unsigned int i = 0; i < ADDER_ELEMENTS; i++) {
		adder_lane(x, lane, 0)[i] = -1;
		adder_lane(x, lane, 1)[i] = (float)(draw(seed) % 4096);
		adder_lane(x, lane, 2)[i] = (float)(draw(seed) % 4096);
	}
}

static inline bool adder_right(struct adder *x, unsigned int lane)
{
	for (unsigned int i = 0; i < ADDER_ELEMENTS; i++)
		if (adder_lane(x, lane, 0)[i] != adder_lane(x, lane, 1)[i] +
						      adder_lane(x, lane, 2)[i])
			return false;
	return true;
}

#endif /* AIR_STRESS_DAEMON_H */
