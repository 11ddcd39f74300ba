// SPDX-License-Identifier: MIT
/*
 * scribble: a client that writes nonsense into its own region.
 *
 *	scribble SECONDS [SEED]
 *
 * With nothing but the ABI: builds a channel, then submits random words. Most
 * carry the right lap and a known opcode, and wait for room as they ought to,
 * so that they get past the first look and everything behind it has to hold.
 * Rarely a word anywhere in the region is overwritten; the worker then declares
 * the channel dead sooner or later, and a new one is built. That the worker
 * lives on and serves others is for those others to say (steady).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "uapi/airunner.h"

#define ORDER 3
#define REGION 0x4000
#define WORDS (REGION / 8)
#define SQ_WORDS (AIRUNNER_SQE_WORDS << ORDER)

static __u64 random_word(void)
{
	return (__u64)mrand48() << 32 ^ (__u64)(__u32)mrand48();
}

/* Word @i of the submission of ring index @index: mostly well-formed. */
static __u64 plausible(__u64 index, int i)
{
	__u8 opcode = (__u8)(lrand48() % 16);
	__u64 payload = random_word();

	if (i == 0)
		payload = airunner_sqe_head(opcode, (__u8)(lrand48() % 4), 0,
					    (__u32)(lrand48() % 4));
	else if (lrand48() % 3 == 0)
		payload = airunner_ref((__u32)(lrand48() % 3),
				       (__u64)(lrand48() % (2 * REGION)));
	else if (lrand48() % 3 == 0)
		payload = 0;
	return airunner_word(payload, airunner_lap(index, ORDER));
}

/* False if there was no room, as in a channel that is dead. */
static bool scribble_once(volatile __u64 *region, __u64 *index)
{
	volatile __u64 *sq = region + AIRUNNER_SQ_OFFSET / 8;
	volatile __u64 *cq = region + airunner_cq_offset(ORDER) / 8;
	__u64 mask = (1 << ORDER) - 1, before = *index - mask - 1;
	volatile __u64 *answer = cq + (before & mask) * AIRUNNER_CQE_WORDS;
	volatile __u64 *slot;
	bool room = *index <= mask;
	int i;

	switch (lrand48() % 200) {
	case 0:
		region[lrand48() % WORDS] = random_word();
		return true;
	case 1:
		sq[lrand48() % SQ_WORDS] = plausible(*index, 1);
		return true;
	default:
		for (i = 0; !room && i < 20; i++) {
			room = airunner_word_lap(*answer) ==
			       airunner_lap(before, ORDER);
			if (!room)
				usleep(100);
		}
		slot = sq + (*index & mask) * AIRUNNER_SQE_WORDS;
		for (i = AIRUNNER_SQE_WORDS; i--;)
			slot[i] = plausible(*index, i);
		++*index;
		return room;
	}
}

static void one_channel(unsigned long rounds)
{
	struct airunner_build_channel build = {
		.size = sizeof(build),
		.region_size = REGION,
		.channels = AIRUNNER_CHANNELS,
		.order = ORDER,
		.priority = AIRUNNER_PRIO_NORMAL,
	};
	struct airunner_doorbell bell = { .size = sizeof(bell) };
	int dev = open(AIRUNNER_DEVICE, O_RDWR | O_CLOEXEC);
	int memfd = memfd_create("scribble", MFD_CLOEXEC);
	__u64 index = 0;
	int missed = 0;
	void *va;

	if (dev < 0 || memfd < 0 || ftruncate(memfd, REGION)) {
		printf("not ok scribble: set-up: %s\n", strerror(errno));
		exit(1);
	}
	va = mmap(NULL, REGION, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
	build.user_va = (uintptr_t)va;
	if (va == MAP_FAILED || ioctl(dev, AIRUNNER_IOC_BUILD_CHANNEL, &build)) {
		printf("not ok scribble: channel: %s\n", strerror(errno));
		exit(1);
	}
	bell.channel_id = build.channel_id;
	while (rounds-- && missed < 10) {
		missed = scribble_once(va, &index) ? 0 : missed + 1;
		/* The channel may be declared dead: that is an answer. */
		if (rounds % 4 == 0 &&
		    ioctl(dev, AIRUNNER_IOC_DOORBELL, &bell) &&
		    errno != ESHUTDOWN) {
			printf("not ok scribble: doorbell: %s\n",
			       strerror(errno));
			exit(1);
		}
		if (rounds % 64 == 0)
			usleep(1000);
	}
	/* Either side may be the first to be let go. */
	if (lrand48() % 2)
		close(dev);
	munmap(va, REGION);
	close(memfd);
	close(dev);
}

int main(int argc, char **argv)
{
	int seconds = argc > 1 ? atoi(argv[1]) : 5;
	long seed = argc > 2 ? atol(argv[2]) : (long)time(NULL) ^ getpid();
	time_t end = time(NULL) + seconds;
	unsigned long channels = 0;

	alarm((unsigned int)seconds + 120);
	printf("scribble: seed %ld\n", seed);
	srand48(seed);
	for (; time(NULL) < end; channels++)
		one_channel(64 + (unsigned long)lrand48() % 2000);
	printf("ok scribble: %lu channels scribbled over\n", channels);
	return 0;
}
