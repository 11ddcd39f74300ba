// SPDX-License-Identifier: MIT
/*
 * cuBLASLt, found at run time. It is column-major: y = a b is asked for as
 * y' = b' a', which in memory is the same thing.
 */
#include "ops/worker/cuda/cuda.h"

#include <cublasLt.h>
#include <dlfcn.h>
#include <stdlib.h>

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
	X(Matmul)

static struct {
#define MEMBER(name) __typeof__(&cublasLt##name) name;
	LT_CALLS(MEMBER)
} lt;

struct air_cublaslt {
	cublasLtHandle_t handle;
};

/*
 * @algo: [0] for operands at multiples of 16 bytes, [1] for any; chosen when
 * first needed
 */
struct air_lt_plan {
	cublasLtMatmulDesc_t desc;
	cublasLtMatrixLayout_t a, b, c, y;
	cublasLtMatmulAlgo_t algo[2];
	bool has_algo[2];
	uint32_t warm[2];	/* generation in which code was loaded */
	uint32_t element;
	bool reads_c, has_bias, integer;
	float alpha, beta;
};

static bool load(struct air_error *e)
{
	static const char *const name[] = {
		"libcublasLt.so.13",
		"libcublasLt.so.12",
		"/usr/local/cuda/lib64/libcublasLt.so",
	};
	const char *path = getenv("AIRUNNER_CUBLASLT");
	void *lib = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;

	for (size_t i = 0; !path && !lib && i < sizeof(name) / sizeof(*name);
	     i++)
		lib = dlopen(name[i], RTLD_NOW | RTLD_LOCAL);
	if (!lib) {
		air_fail(e, AIR_UNSUPPORTED, "cuBLASLt: %s", dlerror());
		return false;
	}
#define FIND(n)                                              \
	*(void **)&lt.n = dlsym(lib, "cublasLt" #n);         \
	if (!lt.n) {                                         \
		air_fail(e, AIR_UNSUPPORTED,                 \
			 "cuBLASLt: has no cublasLt" #n);    \
		return false;                                \
	}
	LT_CALLS(FIND)
	return true;
}

static bool open_lt(struct air_cuda *c, struct air_error *e)
{
	struct air_cublaslt *h;
	cublasStatus_t st;

	if (c->lt)
		return true;
	if (c->lt_tried)
		return false;
	c->lt_tried = true;
	if (!lt.Matmul && !load(e)) {
		c->services->log("%s", e->text);
		return false;
	}
	h = calloc(1, sizeof(*h));
	if (!h)
		return false;
	air_cuda_quiet_begin(c);
	st = lt.Create(&h->handle);
	air_cuda_quiet_end(c);
	if (st != CUBLAS_STATUS_SUCCESS) {
		c->services->log("cuBLASLt: cublasLtCreate says %d", st);
		free(h);
		return false;
	}
	c->lt = h;
	return true;
}

void air_lt_close(struct air_cuda *c)
{
	if (c->lt) {
		lt.Destroy(c->lt->handle);
		free(c->lt);
	}
	c->lt = NULL;
	c->lt_tried = false;
}

static cudaDataType_t type_of(uint32_t dtype)
{
	switch (dtype) {
	case AIRUNNER_F16:
		return CUDA_R_16F;
	case AIRUNNER_BF16:
		return CUDA_R_16BF;
	case AIRUNNER_I8:
		return CUDA_R_8I;
	case AIRUNNER_I32:
		return CUDA_R_32I;
	default:
		return CUDA_R_32F;
	}
}

/*
 * The layout of a row-major matrix of @rows x @columns with strides @r and @k
 * as the column-major one that it is: its transpose, or, when it is dense along
 * rows, itself (*@trans). False: it is dense along neither.
 */
static bool layout(cublasLtMatrixLayout_t *out, uint32_t dtype, uint64_t rows,
		   uint64_t columns, int64_t r, int64_t k,
		   const struct air_matmul_params *p, int64_t batch_stride,
		   bool *trans)
{
	int32_t count = (int32_t)p->batch;
	int64_t ld;

	*trans = false;
	if ((k == 1 || columns == 1) && r >= (int64_t)columns) {
		ld = r;
	} else if (rows == 1 && k == 1) {
		ld = (int64_t)columns;
	} else if ((r == 1 || rows == 1) && k >= (int64_t)rows) {
		uint64_t t = rows;

		rows = columns;
		columns = t;
		ld = k;
		*trans = true;
	} else {
		return false;
	}
	if (lt.MatrixLayoutCreate(out, type_of(dtype), columns, rows, ld) !=
	    CUBLAS_STATUS_SUCCESS)
		return false;
	if (count == 1)
		return true;
	return lt.MatrixLayoutSetAttribute(
		       *out, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
		       sizeof(count)) == CUBLAS_STATUS_SUCCESS &&
	       lt.MatrixLayoutSetAttribute(
		       *out, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
		       &batch_stride, sizeof(batch_stride)) ==
		       CUBLAS_STATUS_SUCCESS;
}

static bool set_desc(struct air_lt_plan *q, cublasLtMatmulDescAttributes_t a,
		     const void *v, size_t size)
{
	return lt.MatmulDescSetAttribute(q->desc, a, v, size) ==
	       CUBLAS_STATUS_SUCCESS;
}

static bool describe(struct air_lt_plan *q, const struct airunner_desc *d,
		     const struct air_matmul_params *p)
{
	uint32_t y = d->tensor[0].dtype, a = d->tensor[1].dtype;
	cublasOperation_t op_a, op_b;
	bool trans[4];

	if (p->n_batch > 1 || p->batch > INT32_MAX)
		return false;
	q->integer = a == AIRUNNER_I8;
	q->reads_c = p->beta != 0.0f;
	q->has_bias = d->tensor[4].dtype != 0;
	q->element = air_elem_size(a);
	q->alpha = p->alpha;
	q->beta = p->beta;
	if (q->integer && (q->has_bias || p->activation))
		return false;
	if (q->has_bias && p->bias_n != 1 && p->n != 1)
		return false;
	if (lt.MatmulDescCreate(&q->desc,
				q->integer ? CUBLAS_COMPUTE_32I :
					     CUBLAS_COMPUTE_32F,
				q->integer ? CUDA_R_32I : CUDA_R_32F) !=
	    CUBLAS_STATUS_SUCCESS)
		return false;
	if (!layout(&q->y, y, p->m, p->n, p->y_m, p->y_n, p, p->y[0],
		    &trans[0]) || trans[0] ||
	    !layout(&q->a, a, p->m, p->k, p->a_m, p->a_k, p, p->a[0],
		    &trans[1]) ||
	    !layout(&q->b, a, p->k, p->n, p->b_k, p->b_n, p, p->b[0],
		    &trans[2]))
		return false;
	if (q->reads_c && (!layout(&q->c, y, p->m, p->n, p->c_m, p->c_n, p,
				   p->c[0], &trans[3]) || trans[3]))
		return false;
	/* b comes first there */
	op_a = trans[2] ? CUBLAS_OP_T : CUBLAS_OP_N;
	op_b = trans[1] ? CUBLAS_OP_T : CUBLAS_OP_N;
	if (!set_desc(q, CUBLASLT_MATMUL_DESC_TRANSA, &op_a, sizeof(op_a)) ||
	    !set_desc(q, CUBLASLT_MATMUL_DESC_TRANSB, &op_b, sizeof(op_b)))
		return false;
	if (q->has_bias) {
		cublasLtEpilogue_t bias = CUBLASLT_EPILOGUE_BIAS;

		if (!set_desc(q, CUBLASLT_MATMUL_DESC_EPILOGUE, &bias,
			      sizeof(bias)))
			return false;
	}
	return true;
}

static bool pick(struct air_cuda *c, struct air_lt_plan *q, uint32_t which)
{
	static const cublasLtMatmulPreferenceAttributes_t align[] = {
		CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
		CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
		CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
		CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES,
	};
	uint32_t bytes = which ? q->element : 16;
	uint64_t workspace = AIR_CUDA_SCRATCH;
	cublasLtMatmulHeuristicResult_t found;
	cublasLtMatmulPreference_t pref;
	int n = 0;

	if (q->has_algo[which])
		return true;
	if (lt.MatmulPreferenceCreate(&pref) != CUBLAS_STATUS_SUCCESS)
		return false;
	lt.MatmulPreferenceSetAttribute(
		pref, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace,
		sizeof(workspace));
	for (uint32_t i = 0; i < 4; i++)
		lt.MatmulPreferenceSetAttribute(pref, align[i], &bytes,
						sizeof(bytes));
	if (lt.MatmulAlgoGetHeuristic(c->lt->handle, q->desc, q->b, q->a,
				      q->reads_c ? q->c : q->y, q->y, pref, 1,
				      &found, &n) == CUBLAS_STATUS_SUCCESS &&
	    n > 0) {
		q->algo[which] = found.algo;
		q->has_algo[which] = true;
	}
	lt.MatmulPreferenceDestroy(pref);
	return q->has_algo[which];
}

air_status air_lt_plan(struct air_cuda *c, const struct airunner_desc *d,
		       const struct air_matmul_params *p,
		       struct air_lt_plan **out, struct air_error *e)
{
	struct air_lt_plan *q;

	if (!open_lt(c, e))
		return AIR_UNSUPPORTED;
	q = calloc(1, sizeof(*q));
	if (!q)
		return air_fail(e, AIR_NO_MEMORY, "cuBLASLt: out of memory");
	/* both kinds of alignment, so that no address is refused later */
	if (!describe(q, d, p) || !pick(c, q, 0) || !pick(c, q, 1)) {
		air_lt_unplan(q);
		return AIR_UNSUPPORTED;
	}
	*out = q;
	return AIR_OK;
}

void air_lt_unplan(struct air_lt_plan *q)
{
	if (q->desc)
		lt.MatmulDescDestroy(q->desc);
	if (q->a)
		lt.MatrixLayoutDestroy(q->a);
	if (q->b)
		lt.MatrixLayoutDestroy(q->b);
	if (q->c)
		lt.MatrixLayoutDestroy(q->c);
	if (q->y)
		lt.MatrixLayoutDestroy(q->y);
	free(q);
}

/* Which algorithm operands are for. */
static uint32_t which_algo(const struct air_lt_plan *q, const uint64_t *addr)
{
	uint64_t cc = q->reads_c ? addr[3] : addr[0];

	return (addr[0] | addr[1] | addr[2] | cc) % 16 != 0;
}

bool air_lt_warm(const struct air_cuda *c, const struct air_lt_plan *q,
		 const uint64_t *addr)
{
	return q->warm[which_algo(q, addr)] == c->generation;
}

CUresult air_lt_run(struct air_cuda *c, struct air_lt_plan *q,
		    const uint64_t *addr, uint64_t workspace, CUstream stream)
{
	static const int32_t one = 1, zero;
	uint64_t cc = q->reads_c ? addr[3] : addr[0];
	uint32_t which = which_algo(q, addr);
	const void *alpha = q->integer ? (const void *)&one : &q->alpha;
	const void *beta = &q->beta;
	cublasStatus_t st;
	CUresult r;

	if (q->integer)
		beta = q->reads_c ? &one : &zero;
	/* after a new context: the handle is made again when first needed */
	if (!open_lt(c, &(struct air_error){ "" }))
		return CUDA_ERROR_NOT_SUPPORTED;
	if (q->has_bias) {
		const void *bias = (const void *)addr[4];

		if (!set_desc(q, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias,
			      sizeof(bias)))
			return CUDA_ERROR_INVALID_VALUE;
	}
	st = lt.Matmul(c->lt->handle, q->desc, alpha, (const void *)addr[2],
		       q->b, (const void *)addr[1], q->a, beta,
		       (const void *)cc, q->reads_c ? q->c : q->y,
		       (void *)addr[0], q->y, &q->algo[which],
		       (void *)workspace, AIR_CUDA_SCRATCH,
		       (cudaStream_t)stream);
	if (st == CUBLAS_STATUS_SUCCESS) {
		q->warm[which] = c->generation;
		return CUDA_SUCCESS;
	}
	c->services->log("cuBLASLt: cublasLtMatmul says %d", st);
	/* if it is an earlier failure of the GPU, the stream says so as well */
	r = cu.StreamQuery(stream);
	return r == CUDA_SUCCESS || r == CUDA_ERROR_NOT_READY ?
		       CUDA_ERROR_NOT_SUPPORTED : r;
}
