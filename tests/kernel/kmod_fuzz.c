// SPDX-License-Identifier: MIT
/*
 * kmod_fuzz [SECONDS [SEED [PROCESSES]]]: random calls from several processes.
 *
 * Every process does random things to the device, to memory that it has made
 * regions of, and to its files, with arguments that are right, nearly right or
 * garbage; the parent kills and replaces them all the time. Nothing is
 * expected of the calls but to return; the kernel's own checks (run it on the
 * debug kernel) and the counters at the end say whether all went well.
 *
 * What process i does depends only on SEED + i: `kmod_fuzz 60 SEED` does the
 * same again, as far as scheduling lets it. The seed is printed first; when it
 * is not given it is the time. Without SECONDS: the variable
 * KMOD_FUZZ_SECONDS, or 60.
 */
#include <liburing.h>

#include "kmod_test.h"

#define PAGE 4096UL

static uint64_t rng;

static uint64_t any(void)
{
	/* splitmix64 */
	uint64_t z = rng += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

static uint32_t below(uint32_t n)
{
	return any() % n;
}

static bool one_in(uint32_t n)
{
	return !below(n);
}

/* Numbers at which things break. */
static uint64_t odd_number(void)
{
	static const uint64_t odd[] = {
		0, 1, 2, 3, 4, 7, 8, 15, 16, 17, 255, 256, 4095, 4096, 4097,
		65535, 65536, INT32_MAX, 1ULL << 31, UINT32_MAX, 1ULL << 32,
		INT64_MAX, 1ULL << 63, UINT64_MAX, UINT64_MAX - 4095,
		0x7ffffffff000ULL, 0xffff800000000000ULL,
	};

	return one_in(3) ? any() : odd[below(sizeof(odd) / sizeof(odd[0]))];
}

/* Flip, replace or keep some of an argument. */
static void mutate(void *arg, size_t size)
{
	uint8_t *p = arg;

	if (!one_in(4))
		return;
	do {
		size_t at = below(size / 4) * 4;
		uint64_t v = odd_number();

		switch (below(3)) {
		case 0:
			p[at + below(4)] ^= 1 << below(8);
			break;
		case 1:
			memcpy(p + at, &v, 4);
			break;
		default:
			if (at + 8 <= size)
				memcpy(p + at, &v, 8);
		}
	} while (one_in(2));
}

/* ------------------------------------------------------- what there is */

#define FILES 6
#define REGIONS 6
#define IDS 64

/* Files, and the channels that each has built or been told of. */
static int files[FILES];
static uint32_t theirs[FILES][8];
static int this;

static struct piece {
	int memfd;
	char *va;
	size_t size;
} pieces[REGIONS];

/* Shared by all processes: ids that somebody has seen, whoever it was. */
static struct common {
	_Atomic uint32_t ids[IDS];
	_Atomic uint64_t steps;
	/* That something worked: refusals alone reach little. */
	_Atomic uint64_t built, attached, events, mapped, registered, parked;
} *common;

#define worked(what) atomic_fetch_add(&common->what, 1)

static int some_file(void)
{
	this = below(FILES);
	if (files[this] < 0) {
		files[this] = open(AIRUNNER_DEVICE, O_RDWR | O_CLOEXEC);
		memset(theirs[this], 0, sizeof(theirs[this]));
	}
	return files[this];
}

/* For the file picked last: mostly one that it has to do with. */
static uint32_t some_id(void)
{
	if (one_in(20))
		return odd_number();
	if (one_in(5))
		return atomic_load(&common->ids[below(IDS)]);
	return theirs[this][below(8)];
}

static void note_id(uint32_t id)
{
	theirs[this][below(8)] = id;
	atomic_store(&common->ids[below(IDS)], id);
}

static struct piece *some_piece(void)
{
	struct piece *p = &pieces[below(REGIONS)];

	if (p->va && !one_in(30))
		return p;
	if (p->va) {
		munmap(p->va, p->size);
		close(p->memfd);
	}
	p->size = (1 + below(40)) * PAGE;
	p->memfd = memfd_create("fuzz", MFD_ALLOW_SEALING | MFD_CLOEXEC);
	if (ftruncate(p->memfd, p->size))
		p->size = PAGE;
	p->va = mmap(NULL, p->size, PROT_READ | PROT_WRITE, MAP_SHARED,
		     p->memfd, 0);
	if (p->va == MAP_FAILED)
		p->va = NULL;
	return p;
}

static uint64_t some_va(struct piece *p)
{
	uint64_t va = (uintptr_t)p->va;

	if (one_in(5))
		va += below(p->size / PAGE) * PAGE;
	return va;
}

/* ------------------------------------------------------- what to do */

static void do_build(void)
{
	struct piece *p = some_piece();
	struct airunner_build_channel arg = {
		.size = sizeof(arg), .user_va = some_va(p),
		.region_size = one_in(4) ? below(p->size) + 1 : p->size,
		.channels = 2, .order = 1 + below(6), .priority = below(4),
		.weight = below(3) ? 0 : below(10001),
		.need_caps = one_in(8) ? any() & 7 : 0,
		.worker_id = one_in(20) ? below(8) : 0,
	};

	mutate(&arg, sizeof(arg));
	if (ioctl(some_file(), AIRUNNER_IOC_BUILD_CHANNEL, &arg))
		return;
	worked(built);
	note_id(arg.channel_id);
}

static void do_ref(unsigned long cmd)
{
	int fd = some_file();
	struct airunner_channel_ref arg = {
		.size = sizeof(arg), .channel_id = some_id(),
	};

	mutate(&arg, sizeof(arg));
	ioctl(fd, cmd, &arg);
}

static void do_doorbell(void)
{
	int fd = some_file();
	struct airunner_doorbell arg = {
		.size = sizeof(arg), .channel_id = some_id(),
		.flags = below(2),
	};

	mutate(&arg, sizeof(arg));
	ioctl(fd, AIRUNNER_IOC_DOORBELL, &arg);
}

static void do_attach(void)
{
	struct airunner_attach_worker arg = {
		.size = sizeof(arg), .caps = any() & 7,
		.flags = one_in(4) ? AIRUNNER_WORKER_OWN : 0, .name = "fuzz",
	};

	mutate(&arg, sizeof(arg));
	if (!ioctl(some_file(), AIRUNNER_IOC_ATTACH_WORKER, &arg))
		worked(attached);
}

#define ROOM 64

/* What one may do to a mapping without touching it. */
static char *do_mapping(char *va, size_t size)
{
	size_t at = below(size / PAGE) * PAGE;
	char *to;

	switch (below(6)) {
	case 0:
		syscall(SYS_remap_file_pages, va + at, size - at, 0,
			one_in(3) ? any() : below(64), 0);
		break;
	case 1:
		madvise(va + at, PAGE, one_in(2) ? MADV_REMOVE : below(26));
		break;
	case 2:
		msync(va, size, 1 << below(3));
		break;
	case 3:
		mprotect(va + at, PAGE, below(8));
		break;
	case 4:
		to = mremap(va, size, size, MREMAP_MAYMOVE |
			    (one_in(3) ? MREMAP_DONTUNMAP : 0));
		return to == MAP_FAILED ? va : to;
	default:
		to = mremap(va, one_in(4) ? 0 : size, size * 2,
			    MREMAP_MAYMOVE);
		return to == MAP_FAILED ? va : to;
	}
	return va;
}

/* Not touched: it may have been truncated. Kept, now and then. */
static void map_at(int fd, uint64_t offset, size_t size, int prot)
{
	int n = below(4);
	char *va = mmap(NULL, size, prot,
			one_in(10) ? MAP_PRIVATE : MAP_SHARED, fd, offset);

	if (va == MAP_FAILED)
		return;
	worked(mapped);
	while (n--)
		va = do_mapping(va, size);
	if (!one_in(8))
		munmap(va, size);
}

static void do_wait(void)
{
	/* Not on the stack: the room that is told may be any. */
	static struct airunner_event events[ROOM];
	static struct airunner_report reports[ROOM];
	int fd = some_file();
	struct airunner_wait arg = {
		.size = sizeof(arg), .timeout_ns = below(2) * below(2000000),
		.reports = (uintptr_t)reports, .nr_reports = below(5),
		.events = (uintptr_t)events, .nr_events = 1 + below(4),
	};
	uint32_t i;

	if (one_in(3)) {
		memset(&arg, 0, sizeof(arg));
		arg.size = sizeof(arg);
		arg.timeout_ns = below(2) * below(2000000);
		arg.channel_id = some_id();
		arg.seq = below(4);
	}
	for (i = 0; i < 4; i++) {
		reports[i].channel_id = some_id();
		reports[i].flags = below(3);
		reports[i].device_ns = below(5000000);
		if (one_in(4))
			reports[i].device_ns = odd_number();
		reports[i].completed = below(10);
	}
	mutate(&arg, sizeof(arg));
	/* For ever is for those who get killed. */
	if (arg.timeout_ns < 0 || arg.timeout_ns > 100000000)
		arg.timeout_ns = one_in(40) ? -1 : 1000000;
	if (arg.nr_events > ROOM)
		arg.nr_events = ROOM;
	if (ioctl(fd, AIRUNNER_IOC_WAIT, &arg) || !arg.nr_events)
		return;
	worked(events);
	for (i = 0; i < arg.nr_events && i < ROOM; i++) {
		note_id(events[i].channel_id);
		if (events[i].type == AIRUNNER_EV_CHANNEL_NEW && one_in(2))
			map_at(fd, events[i].mmap_offset, events[i].region_size,
			       PROT_READ | PROT_WRITE);
	}
}

static void do_buffer(unsigned long cmd)
{
	struct piece *p = some_piece();
	int fd = some_file();
	struct airunner_buffer arg = {
		.size = sizeof(arg), .channel_id = some_id(),
		.handle = 1 + below(4), .user_va = some_va(p),
		.length = below(p->size) + 1,
	};

	/* Memory that is nobody's region. */
	if (one_in(2)) {
		arg.user_va = (uintptr_t)mmap(NULL, arg.length, PROT_READ |
					      PROT_WRITE, MAP_SHARED |
					      MAP_ANONYMOUS, -1, 0);
		if (arg.user_va == (uintptr_t)MAP_FAILED)
			return;
	}
	mutate(&arg, sizeof(arg));
	if (!ioctl(fd, cmd, &arg) &&
	    cmd == AIRUNNER_IOC_REGISTER_BUFFER)
		worked(registered);
}

static void do_priority(void)
{
	int fd = some_file();
	struct airunner_set_priority arg = {
		.size = sizeof(arg), .channel_id = some_id(),
		.priority = below(4), .weight = below(10001),
	};

	mutate(&arg, sizeof(arg));
	ioctl(fd, AIRUNNER_IOC_SET_PRIORITY, &arg);
}

static void do_eventfd(void)
{
	int efd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), fd = some_file();
	struct airunner_set_eventfd arg = {
		.size = sizeof(arg), .channel_id = one_in(2) ? some_id() : 0,
		.fd = one_in(3) ? -1 : efd,
	};

	mutate(&arg, sizeof(arg));
	ioctl(fd, AIRUNNER_IOC_SET_EVENTFD, &arg);
	close(efd);
}

static void do_thread_class(void)
{
	struct airunner_set_thread_class arg = {
		.size = sizeof(arg), .thread_class = below(2),
		/* Not just anybody: this machine has other work to do. */
		.tid = one_in(3) ? getpid() : 0,
	};

	ioctl(some_file(), AIRUNNER_IOC_SET_THREAD_CLASS, &arg);
}

static void do_raw_ioctl(void)
{
	static uint8_t bytes[PAGE];
	uint32_t size = one_in(2) ? below(128) : odd_number();
	size_t i;

	for (i = 0; i < 160; i += 8) {
		uint64_t v = odd_number();

		memcpy(bytes + i, &v, 8);
	}
	memcpy(bytes, &size, 4);
	ioctl(some_file(), _IOC(below(4), AIRUNNER_IOC_MAGIC, below(0x24),
				below(128)),
	      one_in(10) ? (void *)(uintptr_t)odd_number() : bytes);
}

static void do_mmap(void)
{
	int fd = some_file();
	uint64_t handle = one_in(3) ? below(4) : 0;
	uint64_t offset = ((uint64_t)some_id() << 16 | handle) << 12;
	size_t size = (1 + below(one_in(2) ? 3 : 40)) * PAGE;
	int prot = one_in(4) ? PROT_READ : PROT_READ | PROT_WRITE;

	if (one_in(10))
		offset = one_in(2) ? PAGE : odd_number() & ~(PAGE - 1);
	map_at(fd, offset, size, prot);
}

/* Through the file, so that a hole is not our death. */
static void do_scribble(void)
{
	struct piece *p = some_piece();
	uint64_t words[64];
	size_t i;

	for (i = 0; i < 64; i++) {
		words[i] = one_in(2) ? 0 : any();
		if (one_in(2))
			words[i] = airunner_word(words[i], below(4));
	}
	/* Whole slots, often: those are looked at. */
	if (pwrite(p->memfd, words, 8 * (1 + below(64)),
		   one_in(2) ? 0x400 + 64 * below(64) : below(p->size)) < 0)
		return;
}

static void do_truncate(void)
{
	struct piece *p = some_piece();

	switch (below(4)) {
	case 0:
		if (ftruncate(p->memfd, below(p->size)))
			return;
		break;
	case 1:
		if (ftruncate(p->memfd, p->size))
			return;
		break;
	case 2:
		fallocate(p->memfd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			  below(p->size / PAGE) * PAGE, PAGE);
		break;
	default:
		fcntl(p->memfd, F_ADD_SEALS, 1 << below(6) & ~F_SEAL_SEAL);
	}
}

static void do_remap(void)
{
	struct piece *p = some_piece();
	char *at = p->va + below(p->size / PAGE) * PAGE;

	switch (below(4)) {
	case 0:
		mprotect(at, PAGE, below(4));
		break;
	case 1:
		mmap(at, PAGE, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		break;
	case 2:
		madvise(at, PAGE, MADV_REMOVE);
		break;
	default:
		mmap(p->va, p->size, PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_FIXED, p->memfd, 0);
	}
}

static void do_close(void)
{
	int i = below(FILES);

	if (files[i] >= 0)
		close(files[i]);
	files[i] = -1;
}

static void do_dup(void)
{
	int i = below(FILES), j = below(FILES);

	if (i == j || files[i] < 0)
		return;
	if (files[j] >= 0)
		close(files[j]);
	files[j] = fcntl(files[i], F_DUPFD_CLOEXEC, 3);
	memcpy(theirs[j], theirs[i], sizeof(theirs[j]));
}

static void do_poll(void)
{
	struct pollfd p = { .fd = some_file(), .events = POLLIN };

	poll(&p, 1, below(2));
}

static void do_look(void)
{
	static const char *const paths[] = {
		"/sys/kernel/debug/airunner/channels",
		"/sys/kernel/debug/airunner/workers", SYSFS "channels",
		SYSFS "workers", "/proc/airunner_thread",
	};
	char buf[1000], path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", some_file());
	fd = open(one_in(2) ? path : paths[below(5)], O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	while (read(fd, buf, sizeof(buf)) > 0)
		;
	close(fd);
}

static void do_uring(void)
{
	int fd = some_file();
	struct airunner_uring_wait arg = {
		.channel_id = some_id(), .seq = below(4),
	};
	struct __kernel_timespec ts = { .tv_nsec = below(1000000) };
	struct io_uring_sqe *sqe;
	struct io_uring_cqe *cqe;
	struct io_uring ring;
	int i, n = 1 + below(4);

	if (io_uring_queue_init(8, &ring, 0))
		return;
	for (i = 0; i < n; i++) {
		mutate(&arg, sizeof(arg));
		sqe = io_uring_get_sqe(&ring);
		io_uring_prep_rw(IORING_OP_URING_CMD, sqe, fd, NULL, 0, 0);
		sqe->off = one_in(10) ? below(4) : AIRUNNER_URING_WAIT;
		if (one_in(4))
			sqe->flags |= IOSQE_ASYNC;
		memcpy((char *)sqe + 48, &arg, sizeof(arg));
	}
	/* What has not completed is parked. */
	if (io_uring_submit(&ring) == n && io_uring_peek_cqe(&ring, &cqe))
		worked(parked);
	if (one_in(2))
		io_uring_wait_cqe_timeout(&ring, &cqe, &ts);
	if (one_in(3))
		do_ref(AIRUNNER_IOC_DESTROY_CHANNEL);
	io_uring_queue_exit(&ring);
}

static void step(int depth);

/* A child goes on for a while with what we have. */
static void do_fork(int depth)
{
	int n = below(30);
	pid_t pid;

	if (depth > 1)
		return;
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		alarm(5);
		while (n--)
			step(depth + 1);
		_exit(0);
	}
	if (pid > 0 && one_in(2))
		kill(pid, SIGKILL);
	if (pid > 0)
		waitpid(pid, NULL, 0);
}

static void step(int depth)
{
	atomic_fetch_add(&common->steps, 1);
	switch (below(40)) {
	case 0 ... 5:
		do_build();
		break;
	case 6 ... 8:
		do_ref(AIRUNNER_IOC_DESTROY_CHANNEL);
		break;
	case 9:
		do_ref(AIRUNNER_IOC_RESET_CHANNEL);
		break;
	case 10 ... 11:
		do_ref(AIRUNNER_IOC_DETACH_CHANNEL);
		break;
	case 12 ... 14:
		do_doorbell();
		break;
	case 15 ... 16:
		do_attach();
		break;
	case 17 ... 21:
		do_wait();
		break;
	case 22:
		do_buffer(AIRUNNER_IOC_REGISTER_BUFFER);
		break;
	case 23:
		do_buffer(AIRUNNER_IOC_UNREGISTER_BUFFER);
		break;
	case 24:
		do_buffer(AIRUNNER_IOC_BUFFER_INFO);
		break;
	case 25:
		do_priority();
		break;
	case 26:
		do_eventfd();
		break;
	case 27:
		do_thread_class();
		break;
	case 28:
		do_raw_ioctl();
		break;
	case 29 ... 30:
		do_mmap();
		break;
	case 31 ... 32:
		do_scribble();
		break;
	case 33:
		do_truncate();
		break;
	case 34:
		do_remap();
		break;
	case 35:
		do_close();
		break;
	case 36:
		one_in(2) ? do_dup() : do_poll();
		break;
	case 37:
		do_look();
		break;
	case 38:
		do_uring();
		break;
	default:
		do_fork(depth);
	}
}

static void fuzz(uint64_t seed)
{
	int i;

	rng = seed;
	for (i = 0; i < FILES; i++)
		files[i] = -1;
	/* Some as an ordinary user with a small limit. */
	if (one_in(3)) {
		become(one_in(2) ? ALICE : BOB);
		limit_memlock(below(200) * PAGE);
	}
	for (;;)
		step(0);
}

int main(int argc, char **argv)
{
	const char *env = getenv("KMOD_FUZZ_SECONDS");
	int seconds = argc > 1 ? atoi(argv[1]) : env ? atoi(env) : 60;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) :
		(uint64_t)time(NULL);
	int processes = argc > 3 ? atoi(argv[3]) : 4;
	int64_t end = now_ns() + seconds * SECOND;
	uint64_t next = 0;
	pid_t pid[64] = {};
	int i;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (processes < 1 || processes > 64)
		processes = 4;
	printf("# kmod_fuzz %d %llu %d\n", seconds, (unsigned long long)seed,
	       processes);
	common = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	/* So that thread classes do something. */
	write_text("/sys/module/airunner/parameters/ai_cpus", "0");
	rng = seed;
	while (now_ns() < end) {
		for (i = 0; i < processes; i++) {
			if (pid[i] && waitpid(pid[i], NULL, WNOHANG) != pid[i])
				continue;
			next++;
			pid[i] = fork();
			if (!pid[i]) {
				prctl(PR_SET_PDEATHSIG, SIGKILL);
				fuzz(seed + next);
			}
		}
		usleep(below(100000));
		if (one_in(8))
			kill(pid[below(processes)], SIGKILL);
	}
	for (i = 0; i < processes; i++)
		kill(pid[i], SIGKILL);
	while (waitpid(-1, NULL, 0) > 0)
		;
#define N(what) ((unsigned long long)atomic_load(&common->what))
	printf("# %llu steps, %llu processes; %llu channels, %llu workers, %llu times events, %llu mappings, %llu buffers, %llu parked\n",
	       N(steps), (unsigned long long)next, N(built), N(attached),
	       N(events), N(mapped), N(registered), N(parked));
	end = now_ns() + 20 * SECOND;
	while (!nothing_left() && now_ns() < end)
		nap();
	if (!nothing_left()) {
		printf("not ok fuzz: left %ld channels, %ld workers, %ld pages (seed %llu)\n",
		       read_number(SYSFS "channels"),
		       read_number(SYSFS "workers"),
		       read_number(SYSFS "pinned_pages"),
		       (unsigned long long)seed);
		return 1;
	}
	if (N(steps) < 1000 || !N(built) || !N(attached) || !N(events) ||
	    !N(mapped) || !N(registered)) {
		printf("not ok fuzz: too little worked to mean anything\n");
		return 1;
	}
	printf("ok fuzz\n");
	return 0;
}
