// SPDX-License-Identifier: MIT
/*
 * kmod_buffers: REGISTER_BUFFER, BUFFER_INFO, UNREGISTER_BUFFER, and who
 * keeps a buffer alive. See kmod_test.h for how it is run.
 */
#include "kmod_test.h"

#define PAGE 4096UL

static int buffer_call(int fd, unsigned long cmd, uint32_t id, uint32_t handle,
		       void *va, uint64_t length, struct airunner_buffer *out)
{
	struct airunner_buffer arg = {
		.size = sizeof(arg), .channel_id = id, .handle = handle,
		.user_va = (uintptr_t)va, .length = length,
	};
	int ret = ioctl(fd, cmd, &arg);

	if (out)
		*out = arg;
	return ret;
}

static int reg(int fd, uint32_t id, uint32_t handle, void *va, uint64_t length)
{
	return buffer_call(fd, AIRUNNER_IOC_REGISTER_BUFFER, id, handle, va,
			   length, NULL);
}

static int unreg(int fd, uint32_t id, uint32_t handle)
{
	return buffer_call(fd, AIRUNNER_IOC_UNREGISTER_BUFFER, id, handle,
			   NULL, 0, NULL);
}

static int info(int fd, uint32_t id, uint32_t handle,
		struct airunner_buffer *out)
{
	return buffer_call(fd, AIRUNNER_IOC_BUFFER_INFO, id, handle, NULL, 0,
			   out);
}

static void *memory(size_t size)
{
	void *va = mmap(NULL, size, PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	check(va != MAP_FAILED);
	return va;
}

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

static long pages(void)
{
	return read_number(SYSFS "pinned_pages") - 17;
}

static void life(void)
{
	struct airunner_buffer b;
	struct pair p;
	char *va = memory(8 * PAGE), *theirs;

	pair_make(&p);
	check(!reg(p.r.fd, p.r.id, 1, va, 8 * PAGE - 100));
	check_eq(pages(), 8);
	/* Its worker asks, maps, and sees the same bytes. */
	check(!info(p.w.fd, p.r.id, 1, &b));
	check_eq(b.length, 8 * PAGE);
	theirs = mmap(NULL, b.length, PROT_READ | PROT_WRITE, MAP_SHARED,
		      p.w.fd, b.mmap_offset);
	check(theirs != MAP_FAILED);
	va[8 * PAGE - 1] = 7;
	check_eq(theirs[8 * PAGE - 1], 7);
	check_errno(mmap(NULL, 9 * PAGE, PROT_READ, MAP_SHARED, p.w.fd,
			 b.mmap_offset) == MAP_FAILED ? -1 : 0, EINVAL);

	/* The client lets go; it stays until the worker does. */
	check(!unreg(p.r.fd, p.r.id, 1));
	check_errno(unreg(p.r.fd, p.r.id, 1), ENXIO);
	check_eq(pages(), 8);
	check_errno(reg(p.r.fd, p.r.id, 1, memory(PAGE), PAGE), EEXIST);
	b.handle = expect_event(p.w.fd, AIRUNNER_EV_BUFFER_GONE,
				p.r.id).handle;
	check_eq(b.handle, 1);
	check_errno(info(p.w.fd, p.r.id, 1, &b), ENXIO);
	check(!munmap(theirs, 8 * PAGE));
	check(!unreg(p.w.fd, p.r.id, 1));
	check_errno(unreg(p.w.fd, p.r.id, 1), ENXIO);
	check_eq(pages(), 0);
	/* The handle is free again. */
	check(!reg(p.r.fd, p.r.id, 1, va, PAGE));
	/* One that the worker never asked about goes at once. */
	check(!unreg(p.r.fd, p.r.id, 1));
	check_eq(pages(), 0);
	expect_no_event(p.w.fd);
}

static void worker_lets_go_first(void)
{
	struct airunner_buffer b;
	struct pair p;

	pair_make(&p);
	check(!reg(p.r.fd, p.r.id, 5, memory(PAGE), PAGE));
	check(!info(p.w.fd, p.r.id, 5, &b));
	check(!unreg(p.w.fd, p.r.id, 5));
	check_eq(pages(), 1);
	check_errno(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, p.w.fd,
			 b.mmap_offset) == MAP_FAILED ? -1 : 0, ENXIO);
	/* It may ask again. */
	check(!info(p.w.fd, p.r.id, 5, &b));
	check(!unreg(p.w.fd, p.r.id, 5));
	check(!unreg(p.r.fd, p.r.id, 5));
	check_eq(pages(), 0);
}

/* One channel's many buffers keep no other's from being told of. */
static void told_in_turn(void)
{
	struct airunner_buffer b;
	struct airunner_event event;
	struct region other;
	struct pair p;
	void *va = memory(PAGE);
	unsigned int i;

	pair_make(&p);
	channel_make(device_open(), &other);
	expect_event(p.w.fd, AIRUNNER_EV_CHANNEL_NEW, other.id);
	for (i = 1; i <= 100; i++) {
		check(!reg(p.r.fd, p.r.id, i, va, PAGE));
		check(!info(p.w.fd, p.r.id, i, &b));
		check(!unreg(p.r.fd, p.r.id, i));
	}
	check(!reg(other.fd, other.id, 7, va, PAGE));
	check(!info(p.w.fd, other.id, 7, &b));
	check(!unreg(other.fd, other.id, 7));
	event = expect_event(p.w.fd, AIRUNNER_EV_BUFFER_GONE, p.r.id);
	check_eq(event.handle, 1);
	event = expect_event(p.w.fd, AIRUNNER_EV_BUFFER_GONE, other.id);
	check_eq(event.handle, 7);
	/* One that it lets go of before it is told of is not told of. */
	check(!unreg(p.w.fd, p.r.id, 2));
	event = expect_event(p.w.fd, AIRUNNER_EV_BUFFER_GONE, p.r.id);
	check_eq(event.handle, 3);
	/* Nor are the others, when it gives the channel back. */
	check(!detach(p.w.fd, p.r.id));
	expect_no_event(p.w.fd);
	check(!unreg(p.w.fd, other.id, 7));
	check_eq(read_number(SYSFS "pinned_pages"), 2 * 17);
}

/* Who pins it pays for it: a file is no purse. */
static void as_bob(void *arg)
{
	struct pair *p = arg;

	become(BOB);
	check(!reg(p->r.fd, p->r.id, 1, memory(256 * PAGE), 256 * PAGE));
	check_errno(reg(p->r.fd, p->r.id, 2, memory(PAGE), PAGE), EDQUOT);
}

static void quota_of_who_pins(void)
{
	struct airunner_buffer b;
	struct pair p;
	char *mb = "/sys/module/airunner/parameters/max_pinned_mb";

	pair_make(&p);
	check(write_text(mb, "1"));
	check_eq(reap(spawn(as_bob, &p)), 0);
	check_eq(pages(), 256);
	/* His end is not that of what he pinned. */
	check(!info(p.w.fd, p.r.id, 1, &b));
	check(!reg(p.r.fd, p.r.id, 2, memory(PAGE), PAGE));
	check(!unreg(p.r.fd, p.r.id, 1));
	check(!unreg(p.w.fd, p.r.id, 1));
	check_eq(pages(), 1);
	check(write_text(mb, "0"));
}

static void refused(void)
{
	struct airunner_buffer arg, b;
	struct pair p;
	struct region other;
	struct worker w2;
	void *va = memory(4 * PAGE);
	uint32_t max = AIRUNNER_HANDLE_NONE - 1;

	pair_make(&p);
	check_errno(reg(p.r.fd, p.r.id, 0, va, PAGE), EINVAL);
	check_errno(reg(p.r.fd, p.r.id, AIRUNNER_HANDLE_NONE, va, PAGE),
		    EINVAL);
	check_errno(reg(p.r.fd, p.r.id, 1 << 16, va, PAGE), EINVAL);
	check_errno(reg(p.r.fd, p.r.id, 1, va, 0), EINVAL);
	check_errno(reg(p.r.fd, p.r.id, 1, (char *)va + 8, PAGE), EINVAL);
	check_errno(reg(p.r.fd, p.r.id, 1, va, 1ULL << 40), EINVAL);
	check_errno(reg(p.r.fd, p.r.id, 1, va, 64 * PAGE), EFAULT);
	check_errno(reg(p.r.fd, p.r.id, 1, NULL, PAGE), EFAULT);
	check_errno(reg(p.r.fd, p.r.id, 1,
			mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), PAGE),
		    EACCES);
	check_errno(reg(p.r.fd, p.r.id + 1, 1, va, PAGE), ENXIO);
	/* A ring is not a tensor. */
	check_errno(reg(p.r.fd, p.r.id, 1, p.r.va, PAGE), EEXIST);
	check_errno(reg(p.w.fd, p.r.id, 1, va, PAGE), EPERM);
	check_errno(info(p.r.fd, p.r.id, 1, &b), EPERM);
	check_errno(info(p.w.fd, p.r.id, 1, &b), ENXIO);
	check_eq(pages(), 0);
	check(!reg(p.r.fd, p.r.id, max, va, PAGE));
	check_errno(reg(p.r.fd, p.r.id, max, va, PAGE), EEXIST);
	check_eq(pages(), 1);
	/* A worker that serves something else. */
	attach(&w2);
	check_errno(info(w2.fd, p.r.id, max, &b), ENXIO);
	check_errno(unreg(w2.fd, p.r.id, max), ENXIO);
	/* Somebody else's channel. */
	channel_make(device_open(), &other);
	check_errno(reg(other.fd, p.r.id, 3, va, PAGE), ENXIO);
	check_errno(unreg(other.fd, p.r.id, max), ENXIO);
	memset(&arg, 0, sizeof(arg));
	arg = (struct airunner_buffer){
		.size = sizeof(arg), .channel_id = p.r.id, .handle = 3,
		.flags = 1, .user_va = (uintptr_t)va, .length = PAGE,
	};
	check_errno(ioctl(p.r.fd, AIRUNNER_IOC_REGISTER_BUFFER, &arg), EINVAL);
	/* After the end. */
	check(!channel_call(p.r.fd, AIRUNNER_IOC_RESET_CHANNEL, p.r.id));
	check_errno(reg(p.r.fd, p.r.id, 4, va, PAGE), ESHUTDOWN);
	check(!unreg(p.r.fd, p.r.id, max));
}

/* The same memory for several channels: weights that all of them read. */
static void shared_by_channels(void)
{
	struct region r, r2;
	void *va = memory(16 * PAGE);
	int fd = device_open();

	channel_make(fd, &r);
	channel_make(fd, &r2);
	check(!reg(fd, r.id, 1, va, 16 * PAGE));
	check(!reg(fd, r2.id, 1, va, 16 * PAGE));
	check(!reg(fd, r2.id, 2, va, 16 * PAGE));
	check(!destroy(&r));
	check(!unreg(fd, r2.id, 2));
	check_eq(pages(), 16);
	check(!destroy(&r2));
}

static void ends_with_channel(void)
{
	struct airunner_buffer b;
	struct pair p;
	int i;

	pair_make(&p);
	for (i = 1; i <= 100; i++)
		check(!reg(p.r.fd, p.r.id, i, memory(PAGE), PAGE));
	for (i = 1; i <= 50; i++)
		check(!info(p.w.fd, p.r.id, i, &b));
	for (i = 40; i <= 60; i++)
		check(!unreg(p.r.fd, p.r.id, i));
	check_eq(pages(), 90);
	check(!destroy(&p.r));
	check_eq(pages(), 90);
	check(!detach(p.w.fd, p.r.id));
	check_eq(read_number(SYSFS "pinned_pages"), 0);
}

/* What a dead worker held, nobody holds; the next one asks for itself. */
static void worker_dies(void)
{
	struct airunner_buffer b;
	struct pair p;
	struct worker w2;

	pair_make(&p);
	check(!reg(p.r.fd, p.r.id, 1, memory(PAGE), PAGE));
	check(!reg(p.r.fd, p.r.id, 2, memory(PAGE), PAGE));
	check(!info(p.w.fd, p.r.id, 1, &b));
	check(!info(p.w.fd, p.r.id, 2, &b));
	check(!unreg(p.r.fd, p.r.id, 1));
	check_eq(pages(), 2);
	close(p.w.fd);
	check_eq(pages(), 1);
	attach(&w2);
	expect_event(w2.fd, AIRUNNER_EV_CHANNEL_NEW, p.r.id);
	expect_event(w2.fd, AIRUNNER_EV_READY, p.r.id);
	check_errno(info(w2.fd, p.r.id, 1, &b), ENXIO);
	check(!info(w2.fd, p.r.id, 2, &b));
	check(!unreg(p.r.fd, p.r.id, 2));
	check_eq(pages(), 1);
	expect_event(w2.fd, AIRUNNER_EV_BUFFER_GONE, p.r.id);
	check(!unreg(w2.fd, p.r.id, 2));
	check_eq(pages(), 0);
}

static void memlock(void)
{
	struct region r;
	int fd = device_open();

	become(ALICE);
	limit_memlock(20 * PAGE);
	channel_make(fd, &r);
	check(!reg(fd, r.id, 1, memory(3 * PAGE), 3 * PAGE));
	check_errno(reg(fd, r.id, 2, memory(PAGE), PAGE), ENOMEM);
	check_eq(status_kb("VmPin:"), 20 * 4);
	check(!unreg(fd, r.id, 1));
	check(!reg(fd, r.id, 2, memory(PAGE), PAGE));
}

struct racer {
	struct pair *p;
	atomic_int stop;
};

static void *registering(void *arg)
{
	struct racer *x = arg;
	void *va = memory(64 * PAGE);
	int i;

	for (i = 0; !atomic_load(&x->stop); i++) {
		if (reg(x->p->r.fd, x->p->r.id, 1 + i % 4, va, 64 * PAGE))
			check(errno == EEXIST || errno == ESHUTDOWN ||
			      errno == ENXIO);
		if (unreg(x->p->r.fd, x->p->r.id, 1 + (i + 1) % 4))
			check_eq(errno, ENXIO);
	}
	return NULL;
}

static void *asking(void *arg)
{
	struct racer *x = arg;
	struct airunner_buffer b;
	int i;

	for (i = 0; !atomic_load(&x->stop); i++) {
		if (!info(x->p->w.fd, x->p->r.id, 1 + i % 4, &b)) {
			void *va = mmap(NULL, b.length, PROT_READ, MAP_SHARED,
					x->p->w.fd, b.mmap_offset);

			if (va != MAP_FAILED)
				munmap(va, b.length);
		}
		unreg(x->p->w.fd, x->p->r.id, 1 + (i + 2) % 4);
	}
	return NULL;
}

/* Registering, asking and letting go, while the channel ends. */
static void raced(void)
{
	struct airunner_event event;
	int round, i;

	for (round = 0; round < 6; round++) {
		pthread_t thread[4];
		struct racer x = {};
		struct pair p;
		int64_t end;

		pair_make(&p);
		x.p = &p;
		for (i = 0; i < 4; i++)
			check(!pthread_create(&thread[i], NULL, i & 1 ?
					      asking : registering, &x));
		end = now_ns() + SECOND / 4;
		while (now_ns() < end)
			worker_wait(p.w.fd, NULL, 0, &event, 1, 1000000);
		if (round & 1)
			check(!destroy(&p.r));
		check(!detach(p.w.fd, p.r.id));
		nap();
		atomic_store(&x.stop, 1);
		for (i = 0; i < 4; i++)
			check(!pthread_join(thread[i], NULL));
		close(p.r.fd);
		close(p.w.fd);
		check_eq(read_number(SYSFS "pinned_pages"), 0);
	}
}

static const struct test_case cases[] = {
	{ "life", life },
	{ "worker_lets_go_first", worker_lets_go_first },
	{ "told_in_turn", told_in_turn },
	{ "quota_of_who_pins", quota_of_who_pins },
	{ "refused", refused },
	{ "shared_by_channels", shared_by_channels },
	{ "ends_with_channel", ends_with_channel },
	{ "worker_dies", worker_dies },
	{ "memlock", memlock },
	{ "raced", raced },
};

int main(int argc, char **argv)
{
	return RUN_CASES(cases, argc, argv);
}
