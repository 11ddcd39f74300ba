// SPDX-License-Identifier: MIT
#include "ops/worker/resident/form.h"

#include "ops/cuda/elementwise.h"
#include "ops/cuda/rowwise.h"
#include "ops/matmul/params.h"
#include "ops/rope/params.h"
#include "ops/tensor.h"
#include "ops/worker/resident/resident.h"

/* Rows whose offsets, in elements, 32 bits can hold. */
#define MOST_ROWS (1u << 16)
#define MOST_STEP (1 << 14)

static bool is_pow2(uint64_t n)
{
	return n && !(n & (n - 1));
}

/* Steps from row to row of whole accesses of @width elements. */
static bool steps_fit(int64_t step, uint32_t width)
{
	return step >= 0 && step <= MOST_STEP && step % width == 0;
}

/* small.cuh: vectors. */
static uint32_t elementwise(const struct air_cuda_plan *cp, uint32_t width)
{
	const struct air_ew_params *p =
		(const struct air_ew_params *)cp->params;

	if (p->mode != AIR_EW_FLAT || p->n % width ||
	    p->n / width > AIR_RES_VECTORS)
		return 0;
	return (uint32_t)(p->n / width);
}

/* norm.cuh: vectors a thread. */
static uint32_t rms_norm(const struct air_plan *plan,
			 const struct air_cuda_plan *cp, uint32_t width)
{
	const struct air_row_params *p =
		(const struct air_row_params *)cp->params;
	uint32_t piece = AIR_RES_WORKERS * width;

	if (p->rows != 1 || p->x_step != 1 || p->y_step != 1 ||
	    !plan->desc.tensor[2].dtype ||
	    plan->desc.tensor[2].dtype != plan->desc.tensor[0].dtype ||
	    p->w_step != 1)
		return 0;
	if (p->length != piece && p->length != 2 * piece)
		return 0;
	return (uint32_t)(p->length / piece);
}

/* softmax.cuh: threads a row. */
static uint32_t softmax(const struct air_cuda_plan *cp, uint32_t width)
{
	const struct air_row_params *p =
		(const struct air_row_params *)cp->params;

	if (p->rows > MOST_ROWS || p->ndim != 1 || p->x_step != 1 ||
	    p->y_step != 1 || !steps_fit(p->x_stride[0], width) ||
	    !steps_fit(p->y_stride[0], width) || p->length % width ||
	    p->length > 32 * width || !is_pow2(p->length / width))
		return 0;
	return (uint32_t)(p->length / width);
}

/* rope.cuh: vectors of half a row. */
static uint32_t rope(const struct air_plan *plan,
		     const struct air_cuda_plan *cp, uint32_t width)
{
	const struct air_rope_params *p =
		(const struct air_rope_params *)cp->params;

	/* without positions a token's is its number */
	if (p->ndim != 1 || p->pairs || p->positions ||
	    plan->desc.tensor[2].dtype != plan->desc.tensor[0].dtype ||
	    p->heads > MOST_ROWS || p->length != 2 * p->half ||
	    p->x_step != 1 || p->y_step != 1 || p->cos_k != 1 ||
	    p->sin_k != 1 || p->limit > MOST_ROWS || p->p_stride[0] < 0 ||
	    p->p_stride[0] > 1)
		return 0;
	if (!steps_fit(p->x_stride[0], width) ||
	    !steps_fit(p->y_stride[0], width) || !steps_fit(p->cos_p, width) ||
	    !steps_fit(p->sin_p, width) || p->half % width ||
	    !is_pow2(p->half / width))
		return 0;
	return (uint32_t)(p->half / width);
}

uint32_t air_res_form_vectors(const struct air_plan *plan,
			      const struct air_cuda_plan *cp)
{
	uint32_t width =
		16 / (uint32_t)air_elem_size(plan->desc.tensor[0].dtype);

	switch (plan->desc.op) {
	case AIR_OP_vector_add:
	case AIR_OP_relu:
	case AIR_OP_add:
	case AIR_OP_mul:
	case AIR_OP_scale:
	case AIR_OP_silu:
	case AIR_OP_gelu:
		return elementwise(cp, width);
	case AIR_OP_rms_norm:
		return rms_norm(plan, cp, width);
	case AIR_OP_softmax:
		return softmax(cp, width);
	case AIR_OP_rope:
		return rope(plan, cp, width);
	default:
		return 0;
	}
}

uint32_t air_res_form_gemv(const struct air_plan *plan,
			   const struct air_cuda_plan *cp)
{
	const struct air_matmul_params *p =
		(const struct air_matmul_params *)cp->params;
	const uint32_t piece = AIR_RES_WORKERS * 8;

	if (plan->desc.op != AIR_OP_matmul ||
	    (cp->variant != AIR_MATMUL_VARIANT(AIRUNNER_BF16, AIRUNNER_BF16,
					       AIR_MATMUL_DOT) &&
	     cp->variant != AIR_MATMUL_VARIANT(AIRUNNER_F16, AIRUNNER_F16,
					       AIR_MATMUL_DOT)))
		return 0;
	if (p->alpha != 1.0f || p->beta != 0.0f || p->activation ||
	    plan->desc.tensor[4].dtype)
		return 0;
	if (p->m != 1 || p->batch != 1 || p->k % piece ||
	    p->k / piece > AIR_RES_GEMV_VECTORS || p->n > 1u << 30 ||
	    p->a_k != 1 || p->b_k != 1 || p->b_n % 8)
		return 0;
	return (uint32_t)(p->k / piece);
}
