// SPDX-License-Identifier: MIT
/*
 * A cuBLASLt that multiplies nothing, in the library of the fake driver:
 *
 *	AIRUNNER_CUBLASLT=.../libfake-cuda.so
 */
#include <cublasLt.h>

#include "tests/gpu/fake_cuda.h"

#define EXPORT __attribute__((visibility("default")))
#define OK CUBLAS_STATUS_SUCCESS
#define CALL EXPORT cublasStatus_t CUBLASWINAPI

struct fake_cuda *fake_cuda_control(void);

CALL cublasLtCreate(cublasLtHandle_t *h)
{
	*h = (cublasLtHandle_t)0x40;
	return OK;
}

CALL cublasLtDestroy(cublasLtHandle_t h)
{
	return OK;
}

CALL cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *d, cublasComputeType_t c,
			      cudaDataType_t scale)
{
	*d = (cublasLtMatmulDesc_t)0x50;
	return OK;
}

CALL cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t d)
{
	return OK;
}

CALL cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t d,
				    cublasLtMatmulDescAttributes_t a,
				    const void *v, size_t size)
{
	return OK;
}

CALL cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *l, cudaDataType type,
				uint64_t rows, uint64_t columns, int64_t ld)
{
	*l = (cublasLtMatrixLayout_t)0x60;
	return OK;
}

CALL cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t l)
{
	return OK;
}

CALL cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t l,
				      cublasLtMatrixLayoutAttribute_t a,
				      const void *v, size_t size)
{
	return OK;
}

CALL cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *p)
{
	*p = (cublasLtMatmulPreference_t)0x70;
	return OK;
}

CALL cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t p)
{
	return OK;
}

CALL cublasLtMatmulPreferenceSetAttribute(
	cublasLtMatmulPreference_t p, cublasLtMatmulPreferenceAttributes_t a,
	const void *v, size_t size)
{
	return OK;
}

CALL cublasLtMatmulAlgoGetHeuristic(
	cublasLtHandle_t h, cublasLtMatmulDesc_t d, cublasLtMatrixLayout_t a,
	cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
	cublasLtMatrixLayout_t y, cublasLtMatmulPreference_t p, int want,
	cublasLtMatmulHeuristicResult_t results[], int *found)
{
	results[0] = (cublasLtMatmulHeuristicResult_t){ .state = OK };
	*found = 1;
	return OK;
}

CALL cublasLtMatmul(cublasLtHandle_t h, cublasLtMatmulDesc_t d,
		    const void *alpha, const void *a, cublasLtMatrixLayout_t la,
		    const void *b, cublasLtMatrixLayout_t lb, const void *beta,
		    const void *c, cublasLtMatrixLayout_t lc, void *y,
		    cublasLtMatrixLayout_t ly,
		    const cublasLtMatmulAlgo_t *algo, void *workspace,
		    size_t size, cudaStream_t s)
{
	fake_cuda_control()->products++;
	return OK;
}
