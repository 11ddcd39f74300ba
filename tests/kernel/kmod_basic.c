// SPDX-License-Identifier: MIT
/*
 * kmod_basic: every call once, as it is meant to be used, and the ways in
 * which it refuses. See kmod_test.h for how it is run.
 */
#include "kmod_test.h"

static void get_info(void)
{
	struct airunner_info info = { .size = sizeof(info) };
	int fd = device_open();

	check(!ioctl(fd, AIRUNNER_IOC_GET_INFO, &info));
	check_eq(info.size, sizeof(info));
	check_eq(info.abi_major, AIRUNNER_ABI_MAJOR);
	check_eq(info.workers, 0);
	check_eq(info.max_order, AIRUNNER_MAX_ORDER);
	check_eq(info.page_size, sysconf(_SC_PAGESIZE));
	check(info.max_region >= 1ULL << 30);
	check(info.max_channels >= 1000);
	check_eq(info.worker_caps, 0);
}

static void ioctl_form(void)
{
	struct {
		struct airunner_info info;
		uint64_t more;
	} grown = { .info.size = sizeof(grown) };
	struct airunner_info info = { .size = sizeof(info) - 1 };
	int fd = device_open();

	check_errno(ioctl(fd, AIRUNNER_IOC_GET_INFO, NULL), EFAULT);
	check_errno(ioctl(fd, AIRUNNER_IOC_GET_INFO, &info), EINVAL);
	info.size = 0;
	check_errno(ioctl(fd, AIRUNNER_IOC_GET_INFO, &info), EINVAL);
	/* A caller from the future is served as long as it asks for nothing. */
	check(!ioctl(fd, AIRUNNER_IOC_GET_INFO, &grown));
	memset(&grown, 0, sizeof(grown));
	grown.info.size = sizeof(grown);
	grown.more = 1;
	check_errno(ioctl(fd, AIRUNNER_IOC_GET_INFO, &grown), E2BIG);
	info.size = 1 << 20;
	check_errno(ioctl(fd, AIRUNNER_IOC_GET_INFO, &info), E2BIG);
	check_errno(ioctl(fd, _IO(AIRUNNER_IOC_MAGIC, 0x7f), &info), ENOTTY);
	check_errno(ioctl(fd, _IO(AIRUNNER_IOC_MAGIC, 0xff), &info), ENOTTY);
	check_errno(ioctl(fd, _IO('x', 0), &info), ENOTTY);
}

static void build_destroy(void)
{
	struct region r;
	int fd = device_open();

	channel_make(fd, &r);
	check(r.id);
	check_eq(r.mapped_size, 0x11000);
	check_eq(read_number(SYSFS "channels"), 1);
	check_eq(read_number(SYSFS "pinned_pages"), 17);
	check_eq(status_kb("VmPin:"), 17 * 4);
	check(r.ctrl->sq_flags & AIRUNNER_SQ_NEED_WAKEUP);
	check(!destroy(&r));
	check_eq(read_number(SYSFS "channels"), 0);
	check_eq(read_number(SYSFS "pinned_pages"), 0);
	check_eq(status_kb("VmPin:"), 0);
	check_errno(destroy(&r), ENXIO);
	check_errno(doorbell(fd, r.id), ENXIO);
	/* The same memory can be a region again, at once. */
	check(!build(fd, &r));
}

static void build_refused(void)
{
	struct airunner_build_channel arg;
	struct region r;
	int fd = device_open();

	region_make(&r, 4, REGION_SIZE);
#define REFUSED(field, value, error)					\
	do {								\
		arg = build_arg(&r);					\
		arg.field = (value);					\
		check_errno(build_with(fd, &r, &arg), error);		\
	} while (0)
	REFUSED(flags, 1, EINVAL);
	REFUSED(resv, 1, EINVAL);
	REFUSED(channels, 0, EINVAL);
	REFUSED(channels, 3, EINVAL);
	REFUSED(order, 0, EINVAL);
	REFUSED(order, AIRUNNER_MAX_ORDER + 1, EINVAL);
	REFUSED(order, 12, EINVAL);	/* rings do not fit */
	REFUSED(priority, AIRUNNER_PRIO_CLASSES, EINVAL);
	REFUSED(weight, AIRUNNER_WEIGHT_MAX + 1, EINVAL);
	REFUSED(size, sizeof(arg) - 4, EINVAL);
	check_eq(read_number(SYSFS "pinned_pages"), 0);
	/* A result that cannot be handed over leaves nothing behind. */
	{
		void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		arg = build_arg(&r);
		memcpy(page, &arg, sizeof(arg));
		check(!mprotect(page, 4096, PROT_READ));
		check_errno(ioctl(fd, AIRUNNER_IOC_BUILD_CHANNEL, page),
			    EFAULT);
	}
	check_eq(read_number(SYSFS "channels"), 0);
	check_eq(read_number(SYSFS "pinned_pages"), 0);
}

static void worker_serves(void)
{
	struct airunner_event event;
	struct region r;
	struct worker w;
	uint64_t seq = 0;
	void *va;
	int fd = device_open();

	attach(&w);
	channel_make(fd, &r);
	event = expect_event(w.fd, AIRUNNER_EV_CHANNEL_NEW, r.id);
	check_eq(event.order, r.order);
	check_eq(event.region_size, 0x11000);
	check_eq(event.mmap_offset, r.mmap_offset);
	check_eq(event.owner_pid, getpid());
	check_eq(event.owner_uid, 0);
	check_eq(event.priority, AIRUNNER_PRIO_NORMAL);
	check_eq(event.weight, AIRUNNER_WEIGHT_DEFAULT);
	expect_no_event(w.fd);
	va = worker_map(w.fd, &event);

	check_errno(client_wait(fd, r.id, &seq, 0), ETIME);
	submit(&r, AIRUNNER_OP_NOP);
	event = expect_event(w.fd, AIRUNNER_EV_READY, r.id);
	check(event.quantum_ns);
	check(submitted(va, r.order, 0));
	answer(va, r.order, 0, AIRUNNER_S_OK);
	check(!doorbell(w.fd, r.id));
	check(!client_wait(fd, r.id, &seq, 30 * SECOND));
	check_eq(seq, 1);
	check_eq(answer_of(&r, 0), AIRUNNER_S_OK);
	check_errno(client_wait(fd, r.id, &seq, 1000000), ETIME);
	report(w.fd, r.id, AIRUNNER_REPORT_IDLE, 1000);
	expect_no_event(w.fd);

	/* Orderly end: the worker finishes, then lets go. */
	check(!destroy(&r));
	check_errno(destroy(&r), ESHUTDOWN);
	check_errno(doorbell(fd, r.id), ESHUTDOWN);
	expect_event(w.fd, AIRUNNER_EV_CHANNEL_GONE, r.id);
	check_eq(read_number(SYSFS "pinned_pages"), 17);
	check(!munmap(va, event.region_size ?: 0x11000));
	check(!detach(w.fd, r.id));
	check_errno(detach(w.fd, r.id), ENXIO);
	check_eq(read_number(SYSFS "pinned_pages"), 0);
}

static void any_start_order(void)
{
	struct region r;
	struct worker w;
	int fd = device_open();

	/* The client is first, and has rung before there is a worker. */
	channel_make(fd, &r);
	submit(&r, AIRUNNER_OP_NOP);
	attach(&w);
	expect_event(w.fd, AIRUNNER_EV_CHANNEL_NEW, r.id);
	expect_event(w.fd, AIRUNNER_EV_READY, r.id);
	/* A doorbell during the turn is remembered. */
	check(!doorbell(fd, r.id));
	expect_no_event(w.fd);
	report(w.fd, r.id, AIRUNNER_REPORT_IDLE, 0);
	expect_event(w.fd, AIRUNNER_EV_READY, r.id);
	report(w.fd, r.id, AIRUNNER_REPORT_MORE, 0);
	expect_event(w.fd, AIRUNNER_EV_READY, r.id);
	report(w.fd, r.id, 0, 5);
	expect_no_event(w.fd);
	report(w.fd, r.id, AIRUNNER_REPORT_IDLE, 0);
	expect_no_event(w.fd);
	/* What nobody rang for, its worker may find. */
	report(w.fd, r.id, AIRUNNER_REPORT_MORE, 0);
	expect_event(w.fd, AIRUNNER_EV_READY, r.id);
	report(w.fd, r.id, AIRUNNER_REPORT_IDLE, 0);
	report(w.fd, r.id, AIRUNNER_REPORT_IDLE, 0);
	expect_no_event(w.fd);
}

/* A client that is about to sleep has its completions watched. */
static void watch(void)
{
	struct airunner_doorbell bell = {
		.size = sizeof(bell), .flags = AIRUNNER_BELL_WATCH,
	};
	struct region r;
	struct worker w;
	int fd = device_open();

	channel_make(fd, &r);
	bell.channel_id = r.id;
	/* Asked before there is anybody to ask. */
	check(!ioctl(fd, AIRUNNER_IOC_DOORBELL, &bell));
	attach(&w);
	expect_event(w.fd, AIRUNNER_EV_CHANNEL_NEW, r.id);
	expect_event(w.fd, AIRUNNER_EV_WATCH, r.id);
	expect_event(w.fd, AIRUNNER_EV_READY, r.id);
	report(w.fd, r.id, AIRUNNER_REPORT_IDLE, 0);
	check(!ioctl(fd, AIRUNNER_IOC_DOORBELL, &bell));
	expect_event(w.fd, AIRUNNER_EV_WATCH, r.id);
	/* Twice is once. */
	check(!ioctl(fd, AIRUNNER_IOC_DOORBELL, &bell));
	check(!ioctl(fd, AIRUNNER_IOC_DOORBELL, &bell));
	expect_event(w.fd, AIRUNNER_EV_WATCH, r.id);
	expect_event(w.fd, AIRUNNER_EV_READY, r.id);
	report(w.fd, r.id, AIRUNNER_REPORT_IDLE, 0);
	expect_no_event(w.fd);
	bell.flags = 2;
	check_errno(ioctl(fd, AIRUNNER_IOC_DOORBELL, &bell), EINVAL);
	bell.flags = 0;
	bell.resv = 1;
	check_errno(ioctl(fd, AIRUNNER_IOC_DOORBELL, &bell), EINVAL);
}

static void roles(void)
{
	struct airunner_event event;
	struct region r, r2;
	struct worker w, w2;
	int fd = device_open();

	channel_make(fd, &r);
	check_errno(attach_with(&w, fd, 0, 0), EBUSY);
	check_errno(detach(fd, r.id), EPERM);
	check_errno(mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd,
			 r.mmap_offset) == MAP_FAILED ? -1 : 0, EPERM);
	attach(&w);
	check_errno(attach_with(&w2, w.fd, 0, 0), EBUSY);
	region_make(&r2, 4, REGION_SIZE);
	check_errno(build(w.fd, &r2), EPERM);
	check_errno(channel_call(w.fd, AIRUNNER_IOC_DESTROY_CHANNEL, r.id),
		    EPERM);
	/* Not told of it yet, so not its to use. */
	check_errno(doorbell(w.fd, r.id), ENXIO);
	check_errno(mmap(NULL, 4096, PROT_READ, MAP_SHARED, w.fd,
			 r.mmap_offset) == MAP_FAILED ? -1 : 0, EACCES);
	event = expect_event(w.fd, AIRUNNER_EV_CHANNEL_NEW, r.id);
	check(worker_map(w.fd, &event));

	/* Another worker's channel. */
	attach(&w2);
	check_errno(doorbell(w2.fd, r.id), ENXIO);
	check_errno(detach(w2.fd, r.id), ENXIO);
	check_errno(mmap(NULL, 4096, PROT_READ, MAP_SHARED, w2.fd,
			 r.mmap_offset) == MAP_FAILED ? -1 : 0, EACCES);
	/* Another file's channel. */
	{
		uint64_t seq = 0;
		int other = device_open();

		check_errno(doorbell(other, r.id), ENXIO);
		check_errno(client_wait(other, r.id, &seq, 0), ENXIO);
		check_errno(channel_call(other, AIRUNNER_IOC_DESTROY_CHANNEL,
					 r.id), ENXIO);
	}
}

static void worker_page(void)
{
	const volatile struct airunner_worker_page *page;
	struct airunner_event event;
	struct region r;
	struct worker w;
	int fd = device_open();

	attach(&w);
	page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, w.fd, w.page_offset);
	check(page != MAP_FAILED);
	check_errno(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, w.fd,
			 w.page_offset) == MAP_FAILED ? -1 : 0, EINVAL);
	check_errno(mprotect((void *)page, 4096, PROT_READ | PROT_WRITE),
		    EACCES);
	check_eq(page->pending, 0);
	check_eq(page->best_prio, AIRUNNER_PRIO_CLASSES);
	channel_make(fd, &r);
	check_eq(page->pending, 1);
	check_eq(page->best_prio, AIRUNNER_PRIO_CLASSES);
	event = expect_event(w.fd, AIRUNNER_EV_CHANNEL_NEW, r.id);
	check_eq(page->pending, 0);
	check(!doorbell(fd, r.id));
	check_eq(page->pending, 1);
	check_eq(page->best_prio, AIRUNNER_PRIO_NORMAL);
	event = expect_event(w.fd, AIRUNNER_EV_READY, event.channel_id);
	check_eq(page->pending, 0);
	check_eq(page->best_prio, AIRUNNER_PRIO_CLASSES);
}

static void worker_map_exact(void)
{
	struct airunner_event event;
	struct region r;
	struct worker w;
	char *va;
	int fd = device_open();
	int memfd = memfd_create("big", MFD_CLOEXEC);

	/* The region is the middle of a larger file. */
	check(!ftruncate(memfd, 1 << 20));
	region_map(&r, memfd, 4, 1 << 20);
	strcpy((char *)r.va + 0x40000, "before");
	r.va = (char *)r.va + 0x41000;
	r.size = REGION_SIZE;
	r.ctrl = r.va;
	attach(&w);
	check(!build(fd, &r));
	event = expect_event(w.fd, AIRUNNER_EV_CHANNEL_NEW, r.id);
	va = worker_map(w.fd, &event);
	strcpy((char *)r.va + 0x10000, "inside");
	check(!strcmp(va + 0x10000, "inside"));
	/* Not larger, not private, not beside, not grown. */
#define NO_MMAP(size, flags, offset, error)				\
	check_errno(mmap(NULL, size, PROT_READ | PROT_WRITE, flags,	\
			 w.fd, offset) == MAP_FAILED ? -1 : 0, error)
	NO_MMAP(0x12000, MAP_SHARED, event.mmap_offset, EINVAL);
	NO_MMAP(0x11000, MAP_PRIVATE, event.mmap_offset, EINVAL);
	NO_MMAP(0x1000, MAP_SHARED, event.mmap_offset + 0x1000, ENXIO);
	NO_MMAP(0x1000, MAP_SHARED, event.mmap_offset - 0x1000, ENXIO);
	NO_MMAP(0x1000, MAP_SHARED, 0, ENXIO);
	check_errno(mremap(va, 0x11000, 0x20000, MREMAP_MAYMOVE) ==
		    MAP_FAILED ? -1 : 0, EFAULT);
	/* A prefix will do. */
	check(mmap(NULL, 0x1000, PROT_READ, MAP_SHARED, w.fd,
		   event.mmap_offset) != MAP_FAILED);
}

static void polls(void)
{
	struct pollfd p[2] = { { .events = POLLIN }, { .events = POLLIN } };
	struct airunner_event event;
	struct region r;
	struct worker w;
	uint64_t seq = 0;
	int fd = device_open();

	attach(&w);
	p[0].fd = w.fd;
	p[1].fd = fd;
	check_eq(poll(p, 2, 0), 0);
	channel_make(fd, &r);
	check_eq(poll(p, 2, 30000), 1);
	check_eq(p[0].revents, POLLIN);
	event = expect_event(w.fd, AIRUNNER_EV_CHANNEL_NEW, r.id);
	check_eq(poll(p, 2, 0), 0);
	check(!doorbell(w.fd, event.channel_id));
	check_eq(poll(p, 2, 30000), 1);
	check_eq(p[1].revents, POLLIN);
	check(!client_wait(fd, r.id, &seq, 0));
	check_eq(poll(p, 2, 0), 0);
	/* Two completions, one WAIT: nothing is left to see. */
	check(!doorbell(w.fd, r.id));
	check(!doorbell(w.fd, r.id));
	check_eq(poll(&p[1], 1, 30000), 1);
	check(!client_wait(fd, r.id, &seq, 0));
	check_eq(seq, 3);
	check_eq(poll(&p[1], 1, 0), 0);
	check(!channel_call(fd, AIRUNNER_IOC_RESET_CHANNEL, r.id));
	check_eq(poll(&p[1], 1, 30000), 1);
	check(p[1].revents & POLLHUP);
	check(p[1].revents & POLLERR);
	check(!destroy(&r));
	check_eq(poll(&p[1], 1, 0), 0);
}

static const struct test_case cases[] = {
	{ "get_info", get_info },
	{ "ioctl_form", ioctl_form },
	{ "build_destroy", build_destroy },
	{ "build_refused", build_refused },
	{ "worker_serves", worker_serves },
	{ "any_start_order", any_start_order },
	{ "watch", watch },
	{ "roles", roles },
	{ "worker_page", worker_page },
	{ "worker_map_exact", worker_map_exact },
	{ "polls", polls },
};

int main(int argc, char **argv)
{
	return RUN_CASES(cases, argc, argv);
}
