// SPDX-License-Identifier: MIT
/*
 * kmod_region: what may be a region or a buffer, and what it is charged to.
 * See kmod_test.h for how it is run.
 */
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/mount.h>
#include <sys/shm.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>

#include "kmod_test.h"

#define PAGE 4096UL

static void refused(int fd, struct region *r, int error)
{
	check_errno(build(fd, r), error);
	check_eq(read_number(SYSFS "channels"), 0);
	check_eq(read_number(SYSFS "pinned_pages"), 0);
	check_eq(status_kb("VmPin:"), 0);
}

/* The same, for a region at @va of @size. */
static void refused_at(void *va, size_t size, int error)
{
	struct region r = { .va = va, .size = size, .order = 4 };

	refused(device_open(), &r, error);
}

static void accepted_at(void *va, size_t size)
{
	struct region r = { .va = va, .size = size, .order = 4 };

	r.ctrl = va;
	check(!build(device_open(), &r));
	check(r.ctrl->sq_flags & AIRUNNER_SQ_NEED_WAKEUP);
	check(!destroy(&r));
	close(r.fd);
}

static void *map(int prot, int flags, int fd, size_t size)
{
	void *va = mmap(NULL, size, prot, flags, fd, 0);

	check(va != MAP_FAILED);
	return va;
}

static void private_mapping(void)
{
	int memfd = memfd_create("r", 0);

	check(!ftruncate(memfd, 0x11000));
	refused_at(map(PROT_READ | PROT_WRITE, MAP_PRIVATE, memfd, 0x11000),
		   REGION_SIZE, EACCES);
	refused_at(map(PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		       0x11000), REGION_SIZE, EACCES);
}

static void read_only_mapping(void)
{
	int memfd = memfd_create("r", 0);
	void *va;

	check(!ftruncate(memfd, 0x11000));
	va = map(PROT_READ, MAP_SHARED, memfd, 0x11000);
	refused_at(va, REGION_SIZE, EACCES);
	va = map(PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0x11000);
	check(!mprotect(va, 0x11000, PROT_READ));
	refused_at(va, REGION_SIZE, EACCES);
	check(!mprotect(va, 0x11000, PROT_NONE));
	refused_at(va, REGION_SIZE, EACCES);
	check(!mprotect(va, 0x11000, PROT_READ | PROT_WRITE));
	accepted_at(va, REGION_SIZE);
}

static void unmapped_in_the_middle(void)
{
	struct region r;

	region_make(&r, 4, 0x11000);
	check(!munmap((char *)r.va + 0x5000, 0x1000));
	refused(device_open(), &r, EFAULT);
	check(!munmap(r.va, 0x1000));
	refused(device_open(), &r, EFAULT);
}

static void two_adjacent_mappings(void)
{
	int a = memfd_create("a", 0), b = memfd_create("b", 0);
	char *va;

	check(!ftruncate(a, 0x8000) && !ftruncate(b, 0x10000));
	va = map(PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0x18000);
	check(mmap(va, 0x8000, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
		   a, 0) == va);
	check(mmap(va + 0x8000, 0x10000, PROT_READ | PROT_WRITE,
		   MAP_SHARED | MAP_FIXED, b, 0) == va + 0x8000);
	refused_at(va, REGION_SIZE, EFAULT);
	/* One file, but not one piece of it. */
	check(mmap(va, 0x8000, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
		   b, 0x8000) == va);
	refused_at(va, REGION_SIZE, EFAULT);
}

static void past_end_of_file(void)
{
	int memfd = memfd_create("r", 0);

	check(!ftruncate(memfd, 0x8000));
	refused_at(map(PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0x11000),
		   REGION_SIZE, EFAULT);
}

static void not_shmem(void)
{
	int fd;

	check(!mkdir("/tmp/ramfs", 0700) || errno == EEXIST);
	check(!mount("none", "/tmp/ramfs", "ramfs", 0, NULL));
	fd = open("/tmp/ramfs/file", O_RDWR | O_CREAT, 0600);
	check(fd >= 0);
	check(!ftruncate(fd, 0x11000));
	refused_at(map(PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0x11000),
		   REGION_SIZE, EOPNOTSUPP);
	check(!umount2("/tmp/ramfs", MNT_DETACH));
}

static void kinds_of_shmem(void)
{
	int fd, id;
	void *va;

	accepted_at(map(PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
			0x11000), REGION_SIZE);
	/* A file of a tmpfs. */
	fd = open("/dev/shm/kmod_region", O_RDWR | O_CREAT, 0600);
	check(fd >= 0);
	unlink("/dev/shm/kmod_region");
	check(!ftruncate(fd, 0x11000));
	accepted_at(map(PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0x11000),
		    REGION_SIZE);
	/* System V. */
	id = shmget(IPC_PRIVATE, 0x11000, 0600);
	if (id >= 0) {
		va = shmat(id, NULL, 0);
		check(!shmctl(id, IPC_RMID, NULL));
		check(va != (void *)-1);
		accepted_at(va, REGION_SIZE);
	}
}

/* Up to 6.6, overlayfs maps the lower file by a file of its own. */
static bool overlay_maps_its_own(void)
{
	unsigned int major, minor;
	struct utsname name;

	check(!uname(&name));
	check(sscanf(name.release, "%u.%u", &major, &minor) == 2);
	return major < 6 || (major == 6 && minor < 7);
}

static int overlay_file(void)
{
	int fd;

	check(!mkdir("/tmp/overlay", 0700) || errno == EEXIST);
	check(!mount("none", "/tmp/overlay", "tmpfs", 0, NULL));
	check(!mkdir("/tmp/overlay/lower", 0700));
	check(!mkdir("/tmp/overlay/upper", 0700));
	check(!mkdir("/tmp/overlay/work", 0700));
	check(!mkdir("/tmp/overlay/all", 0700));
	if (mount("none", "/tmp/overlay/all", "overlay", 0,
		  "lowerdir=/tmp/overlay/lower,upperdir=/tmp/overlay/upper,"
		  "workdir=/tmp/overlay/work")) {
		check_eq(errno, ENODEV);
		check(!umount2("/tmp/overlay", MNT_DETACH));
		skip("no overlayfs here");
	}
	fd = open("/tmp/overlay/all/file", O_RDWR | O_CREAT, 0600);
	check(fd >= 0);
	check(!umount2("/tmp/overlay", MNT_DETACH));
	check(!ftruncate(fd, 0x11000));
	return fd;
}

/* What a mapping says it is of can be asked, whoever made it. */
static void open_map_file(void *va, size_t size)
{
	char path[64], text[256];

	snprintf(path, sizeof(path), "/proc/self/map_files/%lx-%lx",
		 (unsigned long)va, (unsigned long)va + size);
	check(readlink(path, text, sizeof(text)) > 0);
	close(open(path, O_RDWR));
}

static void overlay(void)
{
	struct region r = { .size = REGION_SIZE, .order = 4 };
	struct airunner_event event;
	struct worker w;
	void *va;

	r.memfd = overlay_file();
	r.va = map(PROT_READ | PROT_WRITE, MAP_SHARED, r.memfd, 0x11000);
	r.ctrl = r.va;
	if (overlay_maps_its_own()) {
		refused(device_open(), &r, EOPNOTSUPP);
		return;
	}
	attach(&w);
	check(!build(device_open(), &r));
	event = expect_event(w.fd, AIRUNNER_EV_CHANNEL_NEW, r.id);
	va = worker_map(w.fd, &event);
	check(((struct airunner_ctrl *)va)->sq_flags &
	      AIRUNNER_SQ_NEED_WAKEUP);
	open_map_file(va, event.region_size);
	check(!munmap(va, event.region_size));
}

static void odd_sizes_and_addresses(void)
{
	struct airunner_build_channel arg;
	struct region r;
	int fd = device_open();

	region_make(&r, 4, 0x20000);
#define ODD(va_, size_, error)						\
	do {								\
		arg = build_arg(&r);					\
		arg.user_va = (va_);					\
		arg.region_size = (size_);				\
		check_errno(build_with(fd, &r, &arg), error);		\
	} while (0)
	ODD(arg.user_va, 0, EINVAL);
	ODD(arg.user_va, 1, EINVAL);
	ODD(arg.user_va, UINT64_MAX, EINVAL);
	ODD(arg.user_va, UINT64_MAX - PAGE + 1, EINVAL);
	ODD(arg.user_va, 1ULL << 63, EINVAL);
	ODD(arg.user_va, 1ULL << 35, EFAULT);
	ODD(arg.user_va + 1, 0x10000, EINVAL);
	ODD(arg.user_va + 64, 0x10000, EINVAL);
	ODD(0, 0x10000, EFAULT);
	ODD(UINT64_MAX - PAGE + 1, 0x10000, EFAULT);
	ODD(0xffffffff81000000ULL, 0x10000, EFAULT);
	ODD(0x7ffffffff000ULL, 0x10000, EFAULT);
	check_eq(read_number(SYSFS "pinned_pages"), 0);
	/* The smallest that holds its rings. */
	arg = build_arg(&r);
	arg.region_size = airunner_arena_offset(4) - 1;
	check_errno(build_with(fd, &r, &arg), EINVAL);
	arg.region_size = airunner_arena_offset(4);
	check(!build_with(fd, &r, &arg));
	check_eq(r.mapped_size, PAGE);
}

static void overlapping(void)
{
	struct airunner_build_channel arg;
	struct region r, other;
	int fd = device_open(), fd2 = device_open();

	region_make(&r, 4, 0x40000);
	/* In the middle: 0x10000 to 0x20000. */
	arg = build_arg(&r);
	arg.user_va += 0x10000;
	arg.region_size = 0x10000;
	check(!build_with(fd, &r, &arg));

	/* The same, at its edges, around it, within it, by another mapping. */
	region_map(&other, r.memfd, 4, 0x40000);
#define OVER(at, size_, error)						\
	do {								\
		arg = build_arg(&other);				\
		arg.user_va += (at);					\
		arg.region_size = (size_);				\
		errno = 0;						\
		check_errno(build_with(fd2, &other, &arg), error);	\
	} while (0)
	OVER(0x10000, 0x10000, EEXIST);
	OVER(0x0f000, 0x2000, EEXIST);
	OVER(0x1f000, 0x2000, EEXIST);
	OVER(0x00000, 0x40000, EEXIST);
	OVER(0x14000, 0x1000, EEXIST);
	check_eq(read_number(SYSFS "channels"), 1);
	check_eq(read_number(SYSFS "pinned_pages"), 16);
	arg = build_arg(&other);
	arg.region_size = 0x10000;
	check(!build_with(fd2, &other, &arg));
	arg = build_arg(&other);
	arg.user_va += 0x20000;
	arg.region_size = 0x20000;
	check(!build_with(fd2, &other, &arg));
	check_eq(read_number(SYSFS "channels"), 3);
}

struct race {
	struct region r;
	pthread_barrier_t start;
	atomic_int built, exist;
};

static void *racing_builder(void *arg)
{
	struct race *race = arg;
	struct region r = race->r;
	int fd = device_open();

	pthread_barrier_wait(&race->start);
	if (!build(fd, &r)) {
		atomic_fetch_add(&race->built, 1);
	} else {
		check_eq(errno, EEXIST);
		atomic_fetch_add(&race->exist, 1);
	}
	return NULL;
}

static void same_region_raced(void)
{
	struct race race = {};
	pthread_t thread[8];
	int i, round;

	for (round = 0; round < 10; round++) {
		region_make(&race.r, 4, 1 << 20);
		race.built = 0;
		race.exist = 0;
		pthread_barrier_init(&race.start, NULL, 8);
		for (i = 0; i < 8; i++)
			check(!pthread_create(&thread[i], NULL, racing_builder,
					      &race));
		for (i = 0; i < 8; i++)
			check(!pthread_join(thread[i], NULL));
		check_eq(race.built, 1);
		check_eq(race.exist, 7);
	}
}

static void sealed(void)
{
	struct region r;
	struct worker w;
	struct airunner_event event;
	int fd = device_open();

	/* What others may not write is no region. */
	region_make(&r, 4, REGION_SIZE);
	check(!fcntl(r.memfd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE));
	refused(fd, &r, EACCES);

	/* Seals on the size are welcome. */
	region_make(&r, 4, REGION_SIZE);
	check(!fcntl(r.memfd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW));
	check(!build(fd, &r));
	check_errno(ftruncate(r.memfd, 0), EPERM);

	/* A region stays writable for its worker, without any mapping. */
	attach(&w);
	event = expect_event(w.fd, AIRUNNER_EV_CHANNEL_NEW, r.id);
	check(!munmap(r.va, r.size));
	check_errno(fcntl(r.memfd, F_ADD_SEALS, F_SEAL_WRITE), EBUSY);
	check(worker_map(w.fd, &event));

	/* Sealed for the future later on: no new mapping, no crash. */
	check(!fcntl(r.memfd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE));
	check_errno(mmap(NULL, event.region_size, PROT_READ | PROT_WRITE,
			 MAP_SHARED, w.fd, event.mmap_offset) == MAP_FAILED ?
		    -1 : 0, EPERM);
	check(!destroy(&r));
	expect_event(w.fd, AIRUNNER_EV_CHANNEL_GONE, r.id);
	check(!detach(w.fd, r.id));
}

/* The seal that was refused is possible once all has been let go of. */
static void seal_after_release(void)
{
	struct region r;
	int fd = device_open();

	region_make(&r, 4, REGION_SIZE);
	check(!build(fd, &r));
	check(!munmap(r.va, r.size));
	check(!destroy(&r));
	check(!fcntl(r.memfd, F_ADD_SEALS, F_SEAL_WRITE));
}

/* ------------------------------------------------------- what it costs */

static void memlock_limit(void)
{
	struct region r, r2;
	int fd = device_open();

	become(ALICE);
	limit_memlock(20 * PAGE);
	region_make(&r, 4, REGION_SIZE);
	region_make(&r2, 4, REGION_SIZE);
	check(!build(fd, &r));		/* 17 of 20 */
	check_errno(build(fd, &r2), ENOMEM);
	check_eq(status_kb("VmPin:"), 17 * 4);
	check_eq(read_number(SYSFS "pinned_pages"), 17);
	/* The limit counts the user, not the process. */
	check(!destroy(&r));
	check(!build(fd, &r2));
	check(!destroy(&r2));
	/* Exactly as much as allowed, again and again. */
	for (int i = 0; i < 50; i++) {
		struct airunner_build_channel arg;
		struct region x;

		region_make(&x, 4, 20 * PAGE);
		arg = build_arg(&x);
		check(!build_with(fd, &x, &arg));
		check(!destroy(&x));
		munmap(x.va, x.size);
		close(x.memfd);
	}
	region_make(&r, 4, 21 * PAGE);
	refused(fd, &r, ENOMEM);
}

/* Is there a line in the kernel log that says what to do? */
static void memlock_refusal_is_explained(void)
{
	char line[8192];
	struct region r;
	bool found = false;
	int fd = device_open();
	int log = open("/dev/kmsg", O_RDONLY | O_NONBLOCK);
	ssize_t n;

	check(log >= 0);
	check(lseek(log, 0, SEEK_END) >= 0);
	become(ALICE);
	limit_memlock(PAGE);
	region_make(&r, 4, REGION_SIZE);
	refused(fd, &r, ENOMEM);
	while ((n = read(log, line, sizeof(line) - 1)) > 0) {
		line[n] = 0;
		found |= strstr(line, "RLIMIT_MEMLOCK") &&
			 strstr(line, "ulimit -l");
	}
	check(found);
}

/* Charged to the builder, wherever the file ends up. */
static void memlock_of_a_dead_builder(void)
{
	struct region r;
	int socks[2], status, i;
	pid_t pid;

	for (i = 0; i < 20; i++) {
		int fd = device_open();

		check(!socketpair(AF_UNIX, SOCK_STREAM, 0, socks));
		fflush(stdout);
		pid = fork();
		if (!pid) {
			become(BOB);
			limit_memlock(20 * PAGE);
			channel_make(fd, &r);
			_exit(0);
		}
		status = reap(pid);
		check(!status);
		/* The file is ours too, so the channel lives. */
		check_eq(read_number(SYSFS "pinned_pages"), 17);
		close(fd);
		check_eq(read_number(SYSFS "pinned_pages"), 0);
		close(socks[0]);
		close(socks[1]);
	}
}

/* Another thread changes what is mapped while it is being pinned. */
static void *remapper(void *arg)
{
	struct region *r = arg;
	atomic_int *stop = (atomic_int *)&r->tail;
	char *at = (char *)r->va + r->size / 2;

	while (!atomic_load(stop)) {
		mmap(at, 64 * PAGE, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		mmap(at, 64 * PAGE, PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_FIXED, r->memfd, r->size / 2);
	}
	return NULL;
}

static void remapped_while_pinning(void)
{
	struct region r;
	pthread_t thread;
	int i, fd = device_open();

	region_make(&r, 4, 16 << 20);
	check(!pthread_create(&thread, NULL, remapper, &r));
	for (i = 0; i < 50; i++) {
		if (!build(fd, &r)) {
			check_eq(read_number(SYSFS "pinned_pages"),
				 r.size / PAGE);
			check(!destroy(&r));
		} else {
			check(errno == EFAULT || errno == EACCES);
		}
		check_eq(read_number(SYSFS "pinned_pages"), 0);
	}
	atomic_store((atomic_int *)&r.tail, 1);
	check(!pthread_join(thread, NULL));
}

/* ------------------------------------------------------- a worker's view */

/* Four pages of a larger file, each of which says which it is. */
static char *part_of_a_file(struct region *r, struct worker *w)
{
	struct airunner_build_channel arg;
	struct airunner_event event;
	int i, memfd = memfd_create("part", 0);

	check(!ftruncate(memfd, 16 * PAGE));
	region_map(r, memfd, 2, 16 * PAGE);
	for (i = 0; i < 16; i++)
		((char *)r->va)[i * PAGE + PAGE - 1] = 'a' + i;
	attach(w);
	arg = build_arg(r);
	arg.user_va += 8 * PAGE;
	arg.region_size = 4 * PAGE;
	check(!build_with(device_open(), r, &arg));
	event = expect_event(w->fd, AIRUNNER_EV_CHANNEL_NEW, r->id);
	return worker_map(w->fd, &event);
}

static void check_part(const char *va, int pages)
{
	int i;

	for (i = 0; i < pages; i++)
		check_eq(va[i * PAGE + PAGE - 1], 'i' + i);
}

/* It sees the region, and by no way anything else of the file it is in. */
static void only_the_region(void)
{
	struct airunner_event event = {};
	struct region r;
	struct worker w;
	char *va = part_of_a_file(&r, &w), *to;
	int pgoff;

	check_part(va, 4);
	for (pgoff = 0; pgoff < 16; pgoff++) {
		check_eq(syscall(SYS_remap_file_pages, va, PAGE, 0, pgoff, 0),
			 -1);
		check_eq(syscall(SYS_remap_file_pages, va + PAGE, 3 * PAGE, 0,
				 pgoff, 0), -1);
	}
	check_part(va, 4);
	/* It can be moved, and be made less, but not more or two. */
	check(mremap(va, 4 * PAGE, 5 * PAGE, MREMAP_MAYMOVE) == MAP_FAILED);
	check(mremap(va, 0, 8 * PAGE, MREMAP_MAYMOVE) == MAP_FAILED);
	to = mmap(NULL, 64 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		  0);
	check(to != MAP_FAILED);
	to = mremap(va, 4 * PAGE, 4 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to);
	check(to != MAP_FAILED);
	check_part(to, 4);
	check_eq(syscall(SYS_remap_file_pages, to, PAGE, 0, 0, 0), -1);
	/* Sync is what it was; holes are the client's to punch. */
	check(!msync(to, 4 * PAGE, MS_SYNC));
	check_eq(madvise(to + PAGE, PAGE, MADV_REMOVE), -1);
	check_part(to, 4);
	/* Nor is a part of it more than a part. */
	check(!munmap(to, PAGE));
	check_eq(syscall(SYS_remap_file_pages, to + PAGE, PAGE, 0, 0, 0), -1);
	check_eq(to[2 * PAGE - 1], 'j');
	event.region_size = PAGE;
	event.mmap_offset = r.mmap_offset + PAGE;
	check(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, w.fd,
		   event.mmap_offset) == MAP_FAILED);
}

/* Who watches the client's file is not told what workers do with theirs. */
static void view_is_not_noticed(void)
{
	static const char path[] = "/dev/shm/kmod_region";
	struct inotify_event event;
	struct airunner_event new;
	struct region r;
	struct worker w;
	int fd = open(path, O_RDWR | O_CREAT, 0600);
	int watch = inotify_init1(IN_NONBLOCK);

	if (watch < 0 && errno == ENOSYS)
		skip("no inotify here");
	check(fd >= 0 && watch >= 0);
	check(!ftruncate(fd, 0x11000));
	region_map(&r, fd, 4, REGION_SIZE);
	attach(&w);
	check(!build(device_open(), &r));
	new = expect_event(w.fd, AIRUNNER_EV_CHANNEL_NEW, r.id);
	check(inotify_add_watch(watch, path, IN_OPEN | IN_CLOSE) >= 0);
	check(!munmap(worker_map(w.fd, &new), new.region_size));
	check_errno(read(watch, &event, sizeof(event)), EAGAIN);
	/* Of an open by its name it is told. */
	close(open(path, O_RDWR));
	check(read(watch, &event, sizeof(event)) > 0);
	check(event.mask & IN_OPEN);
	check(!unlink(path));
}

/* The memory outlives the worker's file and the client, as any mapping does. */
static void view_outlives_files(void)
{
	struct region r;
	struct worker w;
	char *va = part_of_a_file(&r, &w);

	close(w.fd);
	close(r.fd);
	munmap(r.va, r.size);
	close(r.memfd);
	check_eq(read_number(SYSFS "pinned_pages"), 0);
	check_part(va, 4);
}

/* A window may in turn be a buffer's memory: it is the file's after all. */
static void view_as_buffer(void)
{
	struct airunner_buffer b = { .size = sizeof(b), .handle = 1 };
	struct region r, other;
	struct worker w;
	char *va = part_of_a_file(&r, &w), *again;

	channel_make(device_open(), &other);
	expect_event(w.fd, AIRUNNER_EV_CHANNEL_NEW, other.id);
	b.channel_id = other.id;
	b.user_va = (uintptr_t)va;
	b.length = 4 * PAGE;
	/* While it is a ring, it is nothing else. */
	check_errno(ioctl(other.fd, AIRUNNER_IOC_REGISTER_BUFFER, &b), EEXIST);
	check(!destroy(&r));
	expect_event(w.fd, AIRUNNER_EV_CHANNEL_GONE, r.id);
	check(!detach(w.fd, r.id));
	check(!ioctl(other.fd, AIRUNNER_IOC_REGISTER_BUFFER, &b));
	check(!ioctl(w.fd, AIRUNNER_IOC_BUFFER_INFO, &b));
	again = mmap(NULL, b.length, PROT_READ, MAP_SHARED, w.fd,
		     b.mmap_offset);
	check(again != MAP_FAILED);
	check(!munmap(va, 4 * PAGE));
	check_part(again, 4);
	check_eq(syscall(SYS_remap_file_pages, again, PAGE, 0, 0, 0), -1);
}

/* ------------------------------------------------------- hugetlb */

#define HUGE (2UL << 20)

static int huge_memfd(void)
{
	int fd;

	if (!write_text("/proc/sys/vm/nr_hugepages", "8") ||
	    read_number("/proc/sys/vm/nr_hugepages") < 4)
		skip("no huge pages here");
	fd = memfd_create("huge", MFD_HUGETLB | MFD_ALLOW_SEALING);
	if (fd < 0)
		skip("no huge memfd here");
	return fd;
}

/* Everything that asks the mapping's operations about it. */
static void look_at_mappings(void)
{
	static const char *const file[] = {
		"/proc/self/maps", "/proc/self/smaps", "/proc/self/numa_maps",
	};
	char text[4096];
	size_t i;
	int fd;

	for (i = 0; i < sizeof(file) / sizeof(file[0]); i++) {
		fd = open(file[i], O_RDONLY);
		check(fd >= 0 || errno == ENOENT);
		while (fd >= 0 && read(fd, text, sizeof(text)) > 0)
			;
		close(fd);
	}
}

/*
 * A worker that ends with one part of three changed and one unmapped. Huge
 * pages stay in one piece: 6.1.192 warns by itself when any mapping of them is
 * split (hugetlb_split() without the lock that it asserts).
 */
static void worker_of_thirds(void *arg)
{
	const struct region *r = arg;
	const size_t third = r->size / 3;
	struct airunner_event event;
	struct worker w;
	char *va, *to;
	size_t i;

	attach(&w);
	event = expect_event(w.fd, AIRUNNER_EV_CHANNEL_NEW, r->id);
	check_eq(event.region_size, r->size);
	va = worker_map(w.fd, &event);
	for (i = PAGE; i < r->size; i += PAGE) {
		check_eq(va[i], 'c');
		va[i] = 'w';
	}
	look_at_mappings();
	if (third >= HUGE)
		check(!mprotect(va, r->size, PROT_READ));
	else
		check(!mprotect(va + third, third, PROT_READ));
	look_at_mappings();
	for (i = PAGE; i < r->size; i += PAGE)
		check_eq(va[i], 'w');
	check(!madvise(va + third, third, MADV_WILLNEED) || errno == EINVAL);
	check(!msync(va, r->size, MS_SYNC));
	if (third >= HUGE)
		return;
	check(!munmap(va + 2 * third, third));
	to = mmap(NULL, 2 * third, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		  0);
	check(to != MAP_FAILED);
	to = (char *)(((uintptr_t)to + third - 1) / third * third);
	check(mremap(va, third, third, MREMAP_MAYMOVE | MREMAP_FIXED, to) ==
	      to);
	check_eq(to[third - PAGE], 'w');
	look_at_mappings();
}

/*
 * The file of System V memory is not that of shmem or hugetlbfs, but one
 * around it that knows who has attached the segment.
 */
static void view_of_system_v(int flags, size_t third)
{
	struct region r = { .size = 3 * third, .order = 4 };
	int id = shmget(IPC_PRIVATE, r.size, 0600 | flags);
	size_t i;

	if (id < 0)
		skip("no such System V memory here");
	r.va = shmat(id, NULL, 0);
	check(!shmctl(id, IPC_RMID, NULL));
	check(r.va != (void *)-1);
	r.ctrl = r.va;
	for (i = PAGE; i < r.size; i += PAGE)
		((char *)r.va)[i] = 'c';
	check(!build(device_open(), &r));
	check_eq(r.mapped_size, r.size);
	check_eq(reap(spawn(worker_of_thirds, &r)), 0);
	for (i = PAGE; i < r.size; i += PAGE)
		check_eq(((char *)r.va)[i], 'w');
	/* The segment is gone from all but the channel. */
	check(!shmdt(r.va));
	check_eq(read_number(SYSFS "pinned_pages"), r.size / PAGE);
	close(r.fd);
	check_eq(read_number(SYSFS "pinned_pages"), 0);
}

static void system_v(void)
{
	view_of_system_v(0, 8 * PAGE);
}

static void system_v_hugetlb(void)
{
	close(huge_memfd());
	view_of_system_v(SHM_HUGETLB, HUGE);
}

static void hugetlb(void)
{
	struct airunner_event event;
	struct airunner_build_channel arg;
	struct region r;
	struct worker w;
	char *va, *moved;
	int memfd = huge_memfd(), fd = device_open();

	check(!ftruncate(memfd, 2 * HUGE));
	region_map(&r, memfd, 4, 2 * HUGE);
	/* Not within a huge page. */
	arg = build_arg(&r);
	arg.user_va += 0x10000;
	arg.region_size = 0x10000;
	check_errno(build_with(fd, &r, &arg), EINVAL);
	check_eq(read_number(SYSFS "pinned_pages"), 0);

	/* The second of them; rounded up to all of it. */
	attach(&w);
	arg = build_arg(&r);
	arg.user_va += HUGE;
	arg.region_size = REGION_SIZE;
	check(!build_with(fd, &r, &arg));
	check_eq(r.mapped_size, HUGE);
	check_eq(read_number(SYSFS "pinned_pages"), 512);
	event = expect_event(w.fd, AIRUNNER_EV_CHANNEL_NEW, r.id);
	check_eq(event.region_size, HUGE);
	va = worker_map(w.fd, &event);
	check(!((uintptr_t)va & (HUGE - 1)));
	strcpy((char *)r.va + HUGE + 0x10000, "huge");
	check(!strcmp(va + 0x10000, "huge"));
	check(((struct airunner_ctrl *)va)->sq_flags &
	      AIRUNNER_SQ_NEED_WAKEUP);
	/* Not the first, and wherever it is moved to, at a huge page. */
	check_eq(syscall(SYS_remap_file_pages, va, HUGE, 0, 0, 0), -1);
	check(!strcmp(va + 0x10000, "huge"));
	moved = mremap(va, HUGE, HUGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP);
	check(moved == MAP_FAILED || !((uintptr_t)moved & (HUGE - 1)));
	/* Where it cannot be. */
	check_errno(mmap((void *)((uintptr_t)va + 0x10000000 + PAGE), HUGE,
			 PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, w.fd,
			 event.mmap_offset) == MAP_FAILED ? -1 : 0, EINVAL);
	check(!destroy(&r));
	expect_event(w.fd, AIRUNNER_EV_CHANNEL_GONE, r.id);
	check(!munmap(va, HUGE));
	check(!detach(w.fd, r.id));
	check_eq(read_number(SYSFS "pinned_pages"), 0);
}

static void hugetlb_punched(void)
{
	struct region r;
	struct worker w;
	uint64_t seq = 0;
	int memfd = huge_memfd(), fd = device_open();

	check(!ftruncate(memfd, HUGE));
	region_map(&r, memfd, 4, HUGE);
	attach(&w);
	check(!build(fd, &r));
	expect_event(w.fd, AIRUNNER_EV_CHANNEL_NEW, r.id);
	check(!fallocate(memfd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
			 HUGE));
	close(w.fd);
	while (!client_wait(fd, r.id, &seq, 30 * SECOND))
		;
	check_eq(errno, ESHUTDOWN);
}

/* ------------------------------------------------------- quotas */

#define PARAM "/sys/module/airunner/parameters/"

static void quota(const char *param, const char *value, int (*probe)(int))
{
	char old[32], path[128];
	int fd = device_open();

	snprintf(path, sizeof(path), PARAM "%s", param);
	snprintf(old, sizeof(old), "%ld", read_number(path));
	check(write_text(path, value));
	errno = 0;
	if (!probe(fd) || errno != EDQUOT) {
		int e = errno;

		write_text(path, old);
		fail("%s=%s: %s", param, value, strerror(e));
	}
	check(write_text(path, old));
	check_eq(read_number(SYSFS "pinned_pages"), 0);
}

static int third_channel(int fd)
{
	struct region r[3];
	int i;

	for (i = 0; i < 3; i++)
		region_make(&r[i], 4, REGION_SIZE);
	if (build(fd, &r[0]) || build(fd, &r[1]) || !build(fd, &r[2]))
		return 0;
	i = errno;
	destroy(&r[0]);
	/* What one lets go of, another may have. */
	if (build(fd, &r[2]))
		return 0;
	destroy(&r[1]);
	destroy(&r[2]);
	errno = i;
	return -1;
}

static int large_ring(int fd)
{
	struct region r;

	region_make(&r, 7, 0x10000);
	return build(fd, &r);
}

static int two_mib(int fd)
{
	struct region r, small;
	int ret, e;

	region_make(&small, 4, REGION_SIZE);
	if (build(fd, &small))
		return 0;
	region_make(&r, 4, 1 << 20);
	ret = build(fd, &r);
	e = errno;
	destroy(&small);
	errno = e;
	return ret;
}

static int third_worker(int fd)
{
	struct worker w[3];
	int ret, e;

	attach(&w[0]);
	attach(&w[1]);
	w[2].fd = device_open();
	ret = attach_with(&w[2], w[2].fd, 0, 0);
	e = errno;
	close(w[0].fd);
	close(w[1].fd);
	/* Refused, it is a file like any other; and there is room again. */
	if (attach_with(&w[2], w[2].fd, 0, 0))
		return 0;
	close(w[2].fd);
	errno = e;
	return ret;
}

static void quotas(void)
{
	quota("max_workers", "2", third_worker);
	quota("max_channels", "2", third_channel);
	quota("max_entries", "64", large_ring);
	quota("max_pinned_mb", "1", two_mib);
}

static const struct test_case cases[] = {
	{ "private_mapping", private_mapping },
	{ "read_only_mapping", read_only_mapping },
	{ "unmapped_in_the_middle", unmapped_in_the_middle },
	{ "two_adjacent_mappings", two_adjacent_mappings },
	{ "past_end_of_file", past_end_of_file },
	{ "not_shmem", not_shmem },
	{ "kinds_of_shmem", kinds_of_shmem },
	{ "overlay", overlay },
	{ "odd_sizes_and_addresses", odd_sizes_and_addresses },
	{ "overlapping", overlapping },
	{ "same_region_raced", same_region_raced },
	{ "sealed", sealed },
	{ "seal_after_release", seal_after_release },
	{ "memlock_limit", memlock_limit },
	{ "memlock_refusal_is_explained", memlock_refusal_is_explained },
	{ "memlock_of_a_dead_builder", memlock_of_a_dead_builder },
	{ "remapped_while_pinning", remapped_while_pinning },
	{ "only_the_region", only_the_region },
	{ "view_is_not_noticed", view_is_not_noticed },
	{ "view_outlives_files", view_outlives_files },
	{ "view_as_buffer", view_as_buffer },
	{ "system_v", system_v },
	{ "system_v_hugetlb", system_v_hugetlb },
	{ "hugetlb", hugetlb },
	{ "hugetlb_punched", hugetlb_punched },
	{ "quotas", quotas },
};

int main(int argc, char **argv)
{
	return RUN_CASES(cases, argc, argv);
}
