// SPDX-License-Identifier: MIT
/*
 * main() for fuzz targets where libFuzzer is not: replays files, or makes
 * inputs up.
 *
 *	fuzz_TARGET FILE...
 *	fuzz_TARGET --random SECONDS [SEED]
 *
 * A made-up input is in a file whose name is printed, and which stays behind
 * when it crashes, for replaying.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"

#define MAX_INPUT 16384

static int replay(const char *path)
{
	static uint8_t data[1 << 20];
	FILE *f = fopen(path, "rb");
	size_t n;

	if (!f) {
		perror(path);
		return 1;
	}
	n = fread(data, 1, sizeof(data), f);
	fclose(f);
	LLVMFuzzerTestOneInput(data, n);
	printf("ok %s: %zu bytes\n", path, n);
	return 0;
}

static uint64_t state;

static uint64_t next(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

/* The file is there when the process is not any more. */
static uint8_t *input_file(char *path)
{
	int fd = mkstemp(path);
	void *p = MAP_FAILED;

	if (fd >= 0 && !ftruncate(fd, MAX_INPUT))
		p = mmap(NULL, MAX_INPUT, PROT_READ | PROT_WRITE, MAP_SHARED,
			 fd, 0);
	if (p == MAP_FAILED) {
		perror(path);
		exit(1);
	}
	close(fd);
	return p;
}

static int random_inputs(unsigned int seconds, uint64_t seed)
{
	char path[] = "/tmp/fuzz-input-XXXXXX";
	time_t end = time(NULL) + seconds;
	uint8_t *data = input_file(path);
	uint64_t n = 0;

	printf("# seed %" PRIu64 ", input in %s\n", seed, path);
	fflush(stdout);
	while (time(NULL) < end) {
		size_t size;

		state = seed + n * 0x9e3779b97f4a7c15ull;
		state = state ? state : 1;
		size = next() % MAX_INPUT;
		fuzz_make_input(data, size, next);
		LLVMFuzzerTestOneInput(data, size);
		n++;
	}
	unlink(path);
	printf("ok %" PRIu64 " inputs, seed %" PRIu64 "\n", n, seed);
	return 0;
}

int main(int argc, char **argv)
{
	int ret = 0;

	if (argc >= 3 && !strcmp(argv[1], "--random"))
		return random_inputs((unsigned int)atoi(argv[2]),
				     argc > 3 ? strtoull(argv[3], NULL, 10) :
						(uint64_t)time(NULL));
	if (argc < 2) {
		fprintf(stderr,
			"usage: %s FILE... | --random SECONDS [SEED]\n",
			argv[0]);
		return 2;
	}
	for (int i = 1; i < argc; i++)
		ret |= replay(argv[i]);
	return ret;
}
