// SPDX-License-Identifier: MIT
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "tests/bench/decode.h"

#define D	DECODE_D
#define EPSILON 1e-5f

typedef __nv_bfloat16 bf16;

static cudaStream_t stream;
static cudaGraphExec_t graph;

static void check(cudaError_t e, const char *what)
{
	if (e == cudaSuccess)
		return;
	fprintf(stderr, "bench: %s: %s\n", what, cudaGetErrorString(e));
	exit(1);
}

/* ---------------------------------------------------------------- kernels */

struct eight {
	float v[8];
};

__device__ static eight load(const bf16 *p)
{
	uint4 raw = *(const uint4 *)p;
	uint32_t w[4] = { raw.x, raw.y, raw.z, raw.w };
	eight r;

#pragma unroll
	for (int i = 0; i < 4; i++) {
		r.v[2 * i] = __uint_as_float(w[i] << 16);
		r.v[2 * i + 1] = __uint_as_float(w[i] & 0xffff0000u);
	}
	return r;
}

__device__ static void store(bf16 *p, const eight &x)
{
	__nv_bfloat162 w[4];

#pragma unroll
	for (int i = 0; i < 4; i++)
		w[i] = __floats2bfloat162_rn(x.v[2 * i], x.v[2 * i + 1]);
	*(uint4 *)p = *(const uint4 *)w;
}

__device__ static float warp_sum(float v)
{
	for (int o = 16; o; o /= 2)
		v += __shfl_xor_sync(~0u, v, o);
	return v;
}

/* One block of D / 8 threads. */
__global__ void __launch_bounds__(D / 8)
	norm_kernel(bf16 *y, const bf16 *x, const bf16 *gain)
{
	__shared__ float part[D / 8 / 32];
	eight v = load(x + threadIdx.x * 8), g = load(gain + threadIdx.x * 8);
	float s = 0;

#pragma unroll
	for (int i = 0; i < 8; i++)
		s += v.v[i] * v.v[i];
	s = warp_sum(s);
	if (threadIdx.x % 32 == 0)
		part[threadIdx.x / 32] = s;
	__syncthreads();
	s = 0;
	for (int i = 0; i < D / 8 / 32; i++)
		s += part[i];
	s = rsqrtf(s / D + EPSILON);
#pragma unroll
	for (int i = 0; i < 8; i++)
		v.v[i] *= s * g.v[i];
	store(y + threadIdx.x * 8, v);
}

/* A warp an output, all of its weights on their way at once. */
__global__ void __launch_bounds__(256)
	matrix_kernel(bf16 *y, const bf16 *x, const bf16 *w)
{
	uint32_t lane = threadIdx.x % 32;
	uint32_t row = blockIdx.x * 8 + threadIdx.x / 32;
	const uint4 *at = (const uint4 *)(w + (size_t)row * D) + lane;
	float s = 0;

#pragma unroll
	for (int half = 0; half < 2; half++) {
		uint4 raw[8];

#pragma unroll
		for (int k = 0; k < 8; k++)
			raw[k] = __ldcs(at + (half * 8 + k) * 32);
#pragma unroll
		for (int k = 0; k < 8; k++) {
			eight a = load((const bf16 *)&raw[k]);
			eight b = load(x + ((half * 8 + k) * 32 + lane) * 8);

#pragma unroll
			for (int i = 0; i < 8; i++)
				s = fmaf(a.v[i], b.v[i], s);
		}
	}
	s = warp_sum(s);
	if (lane == 0)
		y[row] = __float2bfloat16(s);
}

/* A warp a head. */
__global__ void rope_kernel(bf16 *y, const bf16 *x, const bf16 *cos,
			    const bf16 *sin)
{
	const int half = DECODE_HEAD / 2;

	x += blockIdx.x * DECODE_HEAD;
	y += blockIdx.x * DECODE_HEAD;
	for (int i = threadIdx.x; i < half; i += 32) {
		float a = __bfloat162float(x[i]);
		float b = __bfloat162float(x[i + half]);
		float c = __bfloat162float(cos[i]);
		float s = __bfloat162float(sin[i]);

		y[i] = __float2bfloat16(a * c - b * s);
		y[i + half] = __float2bfloat16(b * c + a * s);
	}
}

__global__ void softmax_kernel(bf16 *y, const bf16 *x)
{
	float v[DECODE_HEAD / 32], most = -INFINITY, sum = 0;

	x += blockIdx.x * DECODE_HEAD;
	y += blockIdx.x * DECODE_HEAD;
#pragma unroll
	for (int k = 0; k < DECODE_HEAD / 32; k++) {
		v[k] = __bfloat162float(x[k * 32 + threadIdx.x]);
		most = fmaxf(most, v[k]);
	}
	for (int o = 16; o; o /= 2)
		most = fmaxf(most, __shfl_xor_sync(~0u, most, o));
#pragma unroll
	for (int k = 0; k < DECODE_HEAD / 32; k++) {
		v[k] = __expf(v[k] - most);
		sum += v[k];
	}
	sum = warp_sum(sum);
#pragma unroll
	for (int k = 0; k < DECODE_HEAD / 32; k++)
		y[k * 32 + threadIdx.x] = __float2bfloat16(v[k] / sum);
}

__global__ void silu_kernel(bf16 *y, const bf16 *x)
{
	uint32_t at = (blockIdx.x * blockDim.x + threadIdx.x) * 8;
	eight v = load(x + at);

#pragma unroll
	for (int i = 0; i < 8; i++)
		v.v[i] /= 1 + __expf(-v.v[i]);
	store(y + at, v);
}

__global__ void add_kernel(bf16 *y, const bf16 *a, const bf16 *b)
{
	uint32_t at = (blockIdx.x * blockDim.x + threadIdx.x) * 8;
	eight v = load(a + at), z = load(b + at);

#pragma unroll
	for (int i = 0; i < 8; i++)
		v.v[i] += z.v[i];
	store(y + at, v);
}

/* Numbers from -1 to 1 times @scale, about @mean. */
__global__ void fill_kernel(bf16 *to, size_t n, uint32_t seed, float scale,
			    float mean)
{
	size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;

	for (; i < n; i += (size_t)gridDim.x * blockDim.x) {
		uint32_t h = ((uint32_t)i + seed) * 2654435761u;

		h ^= h >> 15;
		h *= 2246822519u;
		h ^= h >> 13;
		to[i] = __float2bfloat16(
			((int)(h % 2001) - 1000) * 1e-3f * scale + mean);
	}
}

/* ------------------------------------------------------------------- host */

static void *make(size_t n, uint32_t seed, float scale, float mean)
{
	bf16 *p;

	check(cudaMalloc(&p, n * sizeof(bf16)), "cudaMalloc");
	fill_kernel<<<1024, 256, 0, stream>>>(p, n, seed, scale, mean);
	check(cudaGetLastError(), "fill");
	return p;
}

static void enqueue(const struct decode *d)
{
	bf16 *x = (bf16 *)d->x, *h = (bf16 *)d->h, *q = (bf16 *)d->q;
	bf16 *t = (bf16 *)d->t;
	const bf16 *gain = (const bf16 *)d->gain;
	const bf16 *w = (const bf16 *)d->weights;
	const size_t matrix = (size_t)D * D;

	for (int layer = 0; layer < DECODE_LAYERS; layer++) {
		norm_kernel<<<1, D / 8, 0, stream>>>(h, x, gain);
		matrix_kernel<<<D / 8, 256, 0, stream>>>(q, h, w);
		rope_kernel<<<DECODE_HEADS, 32, 0, stream>>>(
			t, q, (const bf16 *)d->cos, (const bf16 *)d->sin);
		softmax_kernel<<<DECODE_HEADS, 32, 0, stream>>>(h, t);
		matrix_kernel<<<D / 8, 256, 0, stream>>>(t, h, w + matrix);
		add_kernel<<<D / 1024, 128, 0, stream>>>(x, x, t);
		norm_kernel<<<1, D / 8, 0, stream>>>(h, x, gain);
		matrix_kernel<<<D / 8, 256, 0, stream>>>(q, h, w + 2 * matrix);
		silu_kernel<<<D / 1024, 128, 0, stream>>>(t, q);
		add_kernel<<<D / 1024, 128, 0, stream>>>(x, x, t);
		w += DECODE_MATRICES * matrix;
	}
}

extern "C" void decode_open(struct decode *d)
{
	cudaGraph_t g;

	check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
	      "cudaStreamCreate");
	d->x = make(D, 1, 1, 0);
	d->h = make(D, 2, 0, 0);
	d->q = make(D, 3, 0, 0);
	d->t = make(D, 4, 0, 0);
	d->gain = make(D, 5, 0.1f, 1);
	d->cos = make(DECODE_HEAD / 2, 6, 0.5f, 0.5f);
	d->sin = make(DECODE_HEAD / 2, 7, 0.5f, 0);
	d->weights = make((size_t)DECODE_LAYERS * DECODE_MATRICES * D * D, 8,
			  0.03f, 0);
	d->scratch = make(DECODE_SCRATCH / sizeof(bf16), 9, 0, 0);
	check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed),
	      "cudaStreamBeginCapture");
	enqueue(d);
	check(cudaStreamEndCapture(stream, &g), "cudaStreamEndCapture");
	check(cudaGraphInstantiate(&graph, g, 0), "cudaGraphInstantiate");
	check(cudaGraphUpload(graph, stream), "cudaGraphUpload");
	check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
}

extern "C" void decode_begin(const struct decode *d)
{
	fill_kernel<<<16, 256, 0, stream>>>((bf16 *)d->x, D, 1, 1, 0);
	check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
}

extern "C" void decode_graph(const struct decode *d)
{
	(void)d;
	check(cudaGraphLaunch(graph, stream), "cudaGraphLaunch");
	check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
}

extern "C" void decode_result(const struct decode *d, float x[D])
{
	static bf16 raw[D];

	check(cudaMemcpyAsync(raw, d->x, sizeof(raw), cudaMemcpyDeviceToHost,
			      stream),
	      "cudaMemcpyAsync");
	check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
	for (int i = 0; i < D; i++)
		x[i] = __bfloat162float(raw[i]);
}
