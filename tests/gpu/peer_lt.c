// SPDX-License-Identifier: MIT
#include "tests/gpu/peer_lt.h"

#include <cublasLt.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "include/uapi/airunner.h"

#define LT_CALLS(X)                     \
	X(Create)                       \
	X(Destroy)                      \
	X(MatmulDescCreate)             \
	X(MatmulDescDestroy)            \
	X(MatmulDescSetAttribute)       \
	X(MatrixLayoutCreate)           \
	X(MatrixLayoutDestroy)          \
	X(MatrixLayoutSetAttribute)     \
	X(MatmulPreferenceCreate)       \
	X(MatmulPreferenceDestroy)      \
	X(MatmulPreferenceSetAttribute) \
	X(MatmulAlgoGetHeuristic)       \
	X(MatmulAlgoConfigGetAttribute) \
	X(Matmul)

static struct {
#define MEMBER(name) __typeof__(&cublasLt##name) name;
	LT_CALLS(MEMBER)
} lt;

static cublasLtHandle_t handle;

struct peer_lt {
	cublasLtMatmulDesc_t desc;
	cublasLtMatrixLayout_t a, b, y;
	cublasLtMatmulPreference_t pref;
	cublasLtMatmulAlgo_t algo;
};

#define WORKSPACE (32ull << 20)
#define CHOICES	  16

static bool load(void)
{
	static const char *const name[] = {
		"libcublasLt.so.13",
		"libcublasLt.so.12",
		"/usr/local/cuda/lib64/libcublasLt.so",
	};
	void *lib = NULL;

	for (size_t i = 0; !lib && i < sizeof(name) / sizeof(*name); i++)
		lib = dlopen(name[i], RTLD_NOW | RTLD_LOCAL);
	if (!lib)
		return false;
#define FIND(n)                                      \
	*(void **)&lt.n = dlsym(lib, "cublasLt" #n); \
	if (!lt.n)                                   \
		return false;
	LT_CALLS(FIND)
	return lt.Create(&handle) == CUBLAS_STATUS_SUCCESS;
}

static bool layout(cublasLtMatrixLayout_t *out, cudaDataType_t type,
		   uint64_t rows, uint64_t columns, uint64_t batch)
{
	int32_t count = (int32_t)batch;
	int64_t stride = (int64_t)(rows * columns);

	return !lt.MatrixLayoutCreate(out, type, rows, columns,
				      (int64_t)rows) &&
	       !lt.MatrixLayoutSetAttribute(*out,
					    CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
					    &count, sizeof(count)) &&
	       !lt.MatrixLayoutSetAttribute(
		       *out, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
		       &stride, sizeof(stride));
}

/* The library's @nth choice for what it has been told. */
static bool choose(struct peer_lt *p, unsigned int nth)
{
	cublasLtMatmulHeuristicResult_t found[CHOICES];
	int got = 0;

	if (nth >= CHOICES ||
	    lt.MatmulAlgoGetHeuristic(handle, p->desc, p->b, p->a, p->y, p->y,
				      p->pref, (int)nth + 1, found, &got) ||
	    got <= (int)nth)
		return false;
	p->algo = found[nth].algo;
	return true;
}

struct peer_lt *peer_lt_open(uint32_t dtype, uint64_t m, uint64_t n, uint64_t k,
			     uint64_t batch, bool trans_b)
{
	cudaDataType_t type = dtype == AIRUNNER_F16  ? CUDA_R_16F :
			      dtype == AIRUNNER_BF16 ? CUDA_R_16BF :
						       CUDA_R_32F;
	cublasOperation_t op = trans_b ? CUBLAS_OP_T : CUBLAS_OP_N;
	uint64_t workspace = WORKSPACE;
	struct peer_lt *p;

	if (!handle && !load())
		return NULL;
	p = calloc(1, sizeof(*p));
	/* column-major: y' = b' a' */
	if (!p ||
	    lt.MatmulDescCreate(&p->desc, CUBLAS_COMPUTE_32F, CUDA_R_32F) ||
	    lt.MatmulDescSetAttribute(p->desc, CUBLASLT_MATMUL_DESC_TRANSA,
				      &op, sizeof(op)) ||
	    !layout(&p->b, type, trans_b ? k : n, trans_b ? n : k, batch) ||
	    !layout(&p->a, type, k, m, batch) ||
	    !layout(&p->y, type, n, m, batch) ||
	    lt.MatmulPreferenceCreate(&p->pref) ||
	    lt.MatmulPreferenceSetAttribute(
		    p->pref, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
		    &workspace, sizeof(workspace)) ||
	    !choose(p, 0)) {
		puts("cuBLASLt: cannot be asked for this product");
		exit(1);
	}
	return p;
}

bool peer_lt_choose(struct peer_lt *p, int32_t sms, unsigned int nth)
{
	return !lt.MatmulDescSetAttribute(p->desc,
					  CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET,
					  &sms, sizeof(sms)) &&
	       choose(p, nth);
}

static uint32_t config(const struct peer_lt *p,
		       cublasLtMatmulAlgoConfigAttributes_t what, size_t size)
{
	uint32_t value = 0;
	size_t written;

	lt.MatmulAlgoConfigGetAttribute(&p->algo, what, &value, size, &written);
	return value;
}

void peer_lt_describe(const struct peer_lt *p, char *s, size_t size)
{
	/* the numbers that cublasLt.h gives to tiles and cluster shapes */
	snprintf(s, size, "algorithm %u tile %u cluster %u stages %u",
		 config(p, CUBLASLT_ALGO_CONFIG_ID, 4),
		 config(p, CUBLASLT_ALGO_CONFIG_TILE_ID, 4),
		 config(p, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, 2),
		 config(p, CUBLASLT_ALGO_CONFIG_STAGES_ID, 4));
}

void peer_lt_close(struct peer_lt *p)
{
	lt.MatmulPreferenceDestroy(p->pref);
	lt.MatrixLayoutDestroy(p->a);
	lt.MatrixLayoutDestroy(p->b);
	lt.MatrixLayoutDestroy(p->y);
	lt.MatmulDescDestroy(p->desc);
	free(p);
}

int peer_lt_run(struct peer_lt *p, uint64_t y, uint64_t a, uint64_t b,
		uint64_t workspace, CUstream stream, unsigned int times)
{
	const float one = 1, zero = 0;
	cublasStatus_t st = CUBLAS_STATUS_SUCCESS;

	for (unsigned int i = 0; i < times && !st; i++)
		st = lt.Matmul(handle, p->desc, &one, (const void *)b, p->b,
			       (const void *)a, p->a, &zero, (const void *)y,
			       p->y, (void *)y, p->y, &p->algo,
			       (void *)workspace, WORKSPACE,
			       (cudaStream_t)stream);
	return (int)st;
}
