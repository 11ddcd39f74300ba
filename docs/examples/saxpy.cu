/* SPDX-License-Identifier: MIT */
/* The kernel of launch.c. */
extern "C" __global__ void saxpy(float *y, const float *x, float a, unsigned n)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		y[i] += a * x[i];
}
