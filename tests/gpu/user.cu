/* SPDX-License-Identifier: MIT */
/* Kernels of a user's, for launch.c. */
#include <stdint.h>

extern "C" __global__ void saxpy(float *y, const float *x, float a, unsigned n)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		y[i] += a * x[i];
}

/* A null pointer among the arguments is told from one that is not. */
extern "C" __global__ void choose(int *y, const int *x)
{
	*y = x ? *x : -1;
}

/* Through as much shared memory as the launch asks for. */
extern "C" __global__ void reverse(float *y, const float *x, unsigned n)
{
	extern __shared__ float row[];

	for (unsigned i = threadIdx.x; i < n; i += blockDim.x)
		row[i] = x[i];
	__syncthreads();
	for (unsigned i = threadIdx.x; i < n; i += blockDim.x)
		y[i] = row[n - 1 - i];
}

/* Each thread writes where it is, in three dimensions. */
extern "C" __global__ void whereabouts(uint32_t *y)
{
	uint32_t bx = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x +
		      blockIdx.x;
	uint32_t tx = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x +
		      threadIdx.x;

	y[bx * blockDim.x * blockDim.y * blockDim.z + tx] = bx << 16 | tx;
}

/* Holds up what is behind it until somebody opens, ten seconds at most. */
extern "C" __global__ void gate(volatile int *open)
{
	uint64_t begin, now;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
	do {
		asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
	} while (!*open && now - begin < 10000000000ull);
}

extern "C" __global__ void open_gate(volatile int *open)
{
	*open = 1;
}

/* Writes where nothing is. */
extern "C" __global__ void stray(uint64_t where)
{
	*(volatile int *)where = 1;
}
