// SPDX-License-Identifier: MIT
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "tests/bench/direct.h"

extern "C" {
#include "include/uapi/airunner.h"
#include "tests/gpu/peer_lt.h"
}

static cudaStream_t stream;
static volatile uint32_t *flag;		/* host memory, mapped */
static uint32_t *flag_device;
static uint32_t *blocks_done;
static void *lt_workspace;
static uint32_t flag_value;

static void check(cudaError_t e, const char *what)
{
	if (e == cudaSuccess)
		return;
	fprintf(stderr, "bench: %s: %s\n", what, cudaGetErrorString(e));
	exit(1);
}

/* ---------------------------------------------------------------- kernels */

/* The last block to finish tells the host. @flag NULL: nobody polls. */
__device__ static void tell(uint32_t *flag, uint32_t value, uint32_t *done)
{
	if (!flag)
		return;
	__syncthreads();
	if (threadIdx.x)
		return;
	__threadfence_system();
	if (atomicAdd(done, 1) == gridDim.x - 1) {
		*done = 0;
		__threadfence_system();
		*(volatile uint32_t *)flag = value;
	}
}

__global__ void nop_kernel(uint32_t *flag, uint32_t value, uint32_t *done)
{
	tell(flag, value, done);
}

__global__ void __launch_bounds__(256)
vector_add_kernel(float *y, const float *a, const float *b, uint64_t n,
		  uint32_t *flag, uint32_t value, uint32_t *done)
{
	uint64_t i = blockIdx.x * 256ull + threadIdx.x;
	uint64_t stride = gridDim.x * 256ull;
	uint64_t quads = n / 4;

	for (uint64_t q = i; q < quads; q += stride) {
		float4 u = ((const float4 *)a)[q], v = ((const float4 *)b)[q];

		((float4 *)y)[q] = make_float4(u.x + v.x, u.y + v.y, u.z + v.z,
					       u.w + v.w);
	}
	for (uint64_t k = quads * 4 + i; k < n; k += stride)
		y[k] = a[k] + b[k];
	tell(flag, value, done);
}

/* One block a row, which stays in registers: rows of up to 8192. */
#define ROW_REGISTERS 32

__device__ static float block_reduce(float v, bool maximum)
{
	__shared__ float part[8];

	for (int d = 16; d; d /= 2) {
		float o = __shfl_xor_sync(~0u, v, d);

		v = maximum ? fmaxf(v, o) : v + o;
	}
	if (threadIdx.x % 32 == 0)
		part[threadIdx.x / 32] = v;
	__syncthreads();
	v = part[threadIdx.x % 8];
	for (int d = 4; d; d /= 2) {
		float o = __shfl_xor_sync(~0u, v, d);

		v = maximum ? fmaxf(v, o) : v + o;
	}
	__syncthreads();
	return v;
}

__global__ void __launch_bounds__(256)
softmax_kernel(float *y, const float *x, uint64_t n, uint32_t *flag,
	       uint32_t value, uint32_t *done)
{
	float v[ROW_REGISTERS], most = -INFINITY, sum = 0;

	x += blockIdx.x * n;
	y += blockIdx.x * n;
#pragma unroll
	for (int k = 0; k < ROW_REGISTERS; k++) {
		uint64_t i = k * 256 + threadIdx.x;

		v[k] = i < n ? x[i] : -INFINITY;
		most = fmaxf(most, v[k]);
	}
	most = block_reduce(most, true);
#pragma unroll
	for (int k = 0; k < ROW_REGISTERS; k++) {
		v[k] = __expf(v[k] - most);
		sum += v[k];
	}
	sum = block_reduce(sum, false);
#pragma unroll
	for (int k = 0; k < ROW_REGISTERS; k++) {
		uint64_t i = k * 256 + threadIdx.x;

		if (i < n)
			y[i] = v[k] / sum;
	}
	tell(flag, value, done);
}

__global__ void fill_kernel(float *to, uint64_t n, float first, float step,
			    uint64_t period)
{
	uint64_t i = blockIdx.x * 256ull + threadIdx.x;

	if (i < n)
		to[i] = first + step * (float)(i % period);
}

__global__ void fill_bf16_kernel(__nv_bfloat16 *to, uint64_t n, uint32_t seed)
{
	uint64_t i = blockIdx.x * 256ull + threadIdx.x;
	uint32_t x = (uint32_t)i * 2654435761u + seed;

	x ^= x >> 15;
	x *= 2246822519u;
	x ^= x >> 13;
	if (i < n)
		to[i] = __float2bfloat16((float)(x & 0xffff) / 65536.0f - 0.5f);
}

/* ------------------------------------------------------------------- device */

extern "C" bool direct_init(char *why, size_t size)
{
	int count = 0;
	cudaError_t e = cudaGetDeviceCount(&count);
	void *host;

	if (e != cudaSuccess || count == 0) {
		snprintf(why, size, "%s", e ? cudaGetErrorString(e) : "no GPU");
		return false;
	}
	check(cudaSetDevice(0), "cudaSetDevice");
	check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
	      "cudaStreamCreateWithFlags");
	check(cudaHostAlloc(&host, 4096, cudaHostAllocMapped), "cudaHostAlloc");
	flag = (volatile uint32_t *)host;
	*flag = 0;
	check(cudaHostGetDevicePointer(&flag_device, host, 0),
	      "cudaHostGetDevicePointer");
	blocks_done = (uint32_t *)direct_alloc(4096);
	check(cudaMemset(blocks_done, 0, 4096), "cudaMemset");
	lt_workspace = direct_alloc(32 << 20);
	return true;
}

extern "C" void direct_describe(char *name, size_t name_size, char *versions,
				size_t versions_size)
{
	int driver = 0, runtime = 0, clock = 0;
	cudaDeviceProp p;

	check(cudaGetDeviceProperties(&p, 0), "cudaGetDeviceProperties");
	cudaDriverGetVersion(&driver);
	cudaRuntimeGetVersion(&runtime);
	cudaDeviceGetAttribute(&clock, cudaDevAttrClockRate, 0);
	snprintf(name, name_size, "%s, %d multiprocessors, %.1f GiB, %d MHz",
		 p.name, p.multiProcessorCount,
		 (double)p.totalGlobalMem / (1 << 30), clock / 1000);
	snprintf(versions, versions_size, "driver's CUDA %d.%d, runtime %d.%d",
		 driver / 1000, driver % 1000 / 10, runtime / 1000,
		 runtime % 1000 / 10);
}

extern "C" void *direct_alloc(size_t bytes)
{
	void *p;

	check(cudaMalloc(&p, bytes), "cudaMalloc");
	return p;
}

extern "C" void direct_fill(void *to, uint64_t n, float first, float step,
			    uint64_t period)
{
	fill_kernel<<<(n + 255) / 256, 256, 0, stream>>>((float *)to, n, first,
							step, period);
	direct_sync();
}

extern "C" void direct_fill_bf16(void *to, uint64_t n, uint32_t seed)
{
	fill_bf16_kernel<<<(n + 255) / 256, 256, 0, stream>>>(
		(__nv_bfloat16 *)to, n, seed);
	direct_sync();
}

extern "C" void direct_poison(void *to, size_t bytes)
{
	check(cudaMemsetAsync(to, 0xff, bytes, stream), "cudaMemsetAsync");
	direct_sync();
}

extern "C" void direct_copy_out(void *host, const void *device, size_t bytes)
{
	check(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost,
			      stream),
	      "cudaMemcpyAsync");
	direct_sync();
}

/* ------------------------------------------------------------------- launch */

static unsigned int grid_of(const struct direct_op *op)
{
	uint64_t blocks;

	switch (op->kind) {
	case DIRECT_VECTOR_ADD:
		blocks = (op->n + 1023) / 1024;
		return blocks < 1 ? 1 : blocks > 65536 ? 65536 : blocks;
	case DIRECT_SOFTMAX:
		return op->rows;
	default:
		return 1;
	}
}

static void launch(const struct direct_op *op, uint32_t *to, uint32_t value)
{
	unsigned int grid = grid_of(op);

	switch (op->kind) {
	case DIRECT_NOP:
		nop_kernel<<<1, 32, 0, stream>>>(to, value, blocks_done);
		break;
	case DIRECT_VECTOR_ADD:
		vector_add_kernel<<<grid, 256, 0, stream>>>(
			(float *)op->y, (const float *)op->a,
			(const float *)op->b, op->n, to, value, blocks_done);
		break;
	case DIRECT_SOFTMAX:
		softmax_kernel<<<grid, 256, 0, stream>>>(
			(float *)op->y, (const float *)op->a, op->n, to, value,
			blocks_done);
		break;
	case DIRECT_MATMUL:
		if (peer_lt_run((struct peer_lt *)op->lt, (uint64_t)op->y,
				(uint64_t)op->a, (uint64_t)op->b,
				(uint64_t)lt_workspace, (CUstream)stream, 1)) {
			fprintf(stderr, "bench: cublasLtMatmul failed\n");
			exit(1);
		}
		break;
	}
}

extern "C" void direct_prepare(struct direct_op *op)
{
	if (op->kind != DIRECT_MATMUL)
		return;
	op->lt = peer_lt_open(AIRUNNER_BF16, op->n, op->n, op->n, 1, false);
	if (!op->lt) {
		fprintf(stderr, "bench: no cuBLASLt\n");
		exit(1);
	}
}

extern "C" void direct_launch(const struct direct_op *op)
{
	launch(op, NULL, 0);
}

extern "C" void direct_sync(void)
{
	check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
}

extern "C" bool direct_can_poll(const struct direct_op *op)
{
	return op->kind != DIRECT_MATMUL;
}

extern "C" void direct_launch_poll(const struct direct_op *op)
{
	launch(op, flag_device, ++flag_value);
	while (*flag != flag_value)
		;
}

/* ------------------------------------------------------------------- graphs */

struct direct_graph {
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	std::vector<cudaGraphNode_t> nodes;
	std::vector<struct direct_op> ops;
};

/* The parameters of one node; what @args points to lives in the caller. */
struct node_args {
	void *y, *a, *b, *args[7];
	uint64_t n;
	uint32_t *flag, value, *done;
};

static cudaKernelNodeParams params_of(const struct direct_op *op,
				      struct node_args *s)
{
	cudaKernelNodeParams p = {};

	s->y = op->y;
	s->a = op->a;
	s->b = op->b;
	s->n = op->n;
	s->flag = NULL;
	s->value = 0;
	s->done = blocks_done;
	p.gridDim = dim3(grid_of(op));
	p.blockDim = dim3(op->kind == DIRECT_NOP ? 32 : 256);
	p.kernelParams = s->args;
	switch (op->kind) {
	case DIRECT_VECTOR_ADD:
		p.func = (void *)vector_add_kernel;
		s->args[0] = &s->y;
		s->args[1] = &s->a;
		s->args[2] = &s->b;
		s->args[3] = &s->n;
		s->args[4] = &s->flag;
		s->args[5] = &s->value;
		s->args[6] = &s->done;
		break;
	case DIRECT_SOFTMAX:
		p.func = (void *)softmax_kernel;
		s->args[0] = &s->y;
		s->args[1] = &s->a;
		s->args[2] = &s->n;
		s->args[3] = &s->flag;
		s->args[4] = &s->value;
		s->args[5] = &s->done;
		break;
	default:
		p.func = (void *)nop_kernel;
		s->args[0] = &s->flag;
		s->args[1] = &s->value;
		s->args[2] = &s->done;
	}
	return p;
}

extern "C" struct direct_graph *
direct_graph_create(const struct direct_op *ops, unsigned int nodes, bool chain)
{
	struct direct_graph *g = new direct_graph;

	check(cudaGraphCreate(&g->graph, 0), "cudaGraphCreate");
	for (unsigned int i = 0; i < nodes; i++) {
		struct node_args s;
		cudaKernelNodeParams p = params_of(&ops[i], &s);
		cudaGraphNode_t node;

		check(cudaGraphAddKernelNode(
			      &node, g->graph,
			      chain && i ? &g->nodes.back() : NULL,
			      chain && i ? 1 : 0, &p),
		      "cudaGraphAddKernelNode");
		g->nodes.push_back(node);
		g->ops.push_back(ops[i]);
	}
	check(cudaGraphInstantiate(&g->exec, g->graph, 0),
	      "cudaGraphInstantiate");
	check(cudaGraphUpload(g->exec, stream), "cudaGraphUpload");
	direct_sync();
	return g;
}

extern "C" void direct_graph_launch(struct direct_graph *g)
{
	check(cudaGraphLaunch(g->exec, stream), "cudaGraphLaunch");
}

extern "C" void direct_graph_update(struct direct_graph *g)
{
	for (size_t i = 0; i < g->nodes.size(); i++) {
		struct node_args s;
		cudaKernelNodeParams p = params_of(&g->ops[i], &s);

		check(cudaGraphExecKernelNodeSetParams(g->exec, g->nodes[i],
						       &p),
		      "cudaGraphExecKernelNodeSetParams");
	}
}
