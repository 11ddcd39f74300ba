// SPDX-License-Identifier: MIT
#include <pthread.h>

#include "libairunner/fork.h"

uint32_t air_fork_generation = 1;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int failed;

static void in_child(void)
{
	air_fork_generation++;
}

static void watch(void)
{
	failed = pthread_atfork(NULL, NULL, in_child);
}

bool air_fork_watch(void)
{
	pthread_once(&once, watch);
	return !failed;
}
