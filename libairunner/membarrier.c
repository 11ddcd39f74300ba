// SPDX-License-Identifier: MIT
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "libairunner/membarrier.h"

static long membarrier(int cmd)
{
	return syscall(__NR_membarrier, cmd, 0, 0);
}

bool air_membarrier_register(void)
{
	return membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) == 0;
}

bool air_membarrier(void)
{
	return membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED) == 0;
}
