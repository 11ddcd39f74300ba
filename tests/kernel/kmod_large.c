// SPDX-License-Identifier: MIT
/*
 * kmod_large: regions that take long to pin. See kmod_test.h for how it is
 * run; with 1.5 GiB of memory it pins 1 GiB.
 */
#include "kmod_test.h"

#define PAGE 4096UL

/*
 * Three quarters of the memory there is, at most 1 GiB; less on a kernel that
 * checks each page, where it would take minutes.
 */
static size_t large_size(void)
{
	size_t size = (size_t)sysconf(_SC_AVPHYS_PAGES) * PAGE / 4 * 3;
	size_t most = access("/sys/kernel/debug/kmemleak", F_OK) ?
		1UL << 30 : 256UL << 20;

	size = size > most ? most : size;
	return size & ~((2UL << 20) - 1);
}

static void large_builder(void *arg)
{
	size_t *size = arg;
	struct region r;

	region_make(&r, 4, *size);
	check(!build(device_open(), &r));
	fail("built before it could be killed");
}

/* While one process pins a lot, others go on; and it can be killed. */
static void large_pin_disturbs_nobody(void)
{
	size_t size = large_size();
	struct region r;
	pid_t pid = spawn(large_builder, &size);
	int64_t start, worst = 0, took;
	int status, rounds = 0;

	eventually(read_number(SYSFS "pinned_pages") > 0);
	while (rounds < 5) {
		int fd;

		start = now_ns();
		fd = device_open();
		channel_make(fd, &r);
		check(!doorbell(fd, r.id));
		check(!destroy(&r));
		close(fd);
		munmap(r.va, r.size);
		close(r.memfd);
		took = now_ns() - start;
		worst = took > worst ? took : worst;
		rounds++;
		if (waitpid(pid, &status, WNOHANG))
			break;
	}
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	printf("# %zu MiB being pinned; open to close of another: %lld us\n",
	       size >> 20, (long long)worst / 1000);
	eventually(!read_number(SYSFS "pinned_pages"));
}

static void large_region(void)
{
	size_t size = large_size();
	struct airunner_event event;
	struct region r;
	struct worker w;
	char *va;
	int fd = device_open();

	attach(&w);
	region_make(&r, AIRUNNER_MAX_ORDER, size);
	check(!build(fd, &r));
	check_eq(read_number(SYSFS "pinned_pages"), size / PAGE);
	event = expect_event(w.fd, AIRUNNER_EV_CHANNEL_NEW, r.id);
	check_eq(event.region_size, size);
	va = worker_map(w.fd, &event);
	((char *)r.va)[size - 1] = 42;
	check_eq(va[size - 1], 42);
	check(!destroy(&r));
	expect_event(w.fd, AIRUNNER_EV_CHANNEL_GONE, r.id);
	check(!detach(w.fd, r.id));
	printf("# %zu MiB\n", size >> 20);
}

static const struct test_case cases[] = {
	{ "large_pin_disturbs_nobody", large_pin_disturbs_nobody },
	{ "large_region", large_region },
};

int main(int argc, char **argv)
{
	return RUN_CASES(cases, argc, argv);
}
