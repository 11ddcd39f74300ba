/* SPDX-License-Identifier: MIT */
/*
 * y = a * b element by element, with broadcasting.
 *
 * Operands
 *	y	any shape; f32, f16 or bf16
 *	a, b	dtype of y; shape of y, or one that broadcasts to it as NumPy
 *		has it: aligned at the last dimension, size 1 (or no dimension)
 *		repeats
 *
 * NaN and Inf as IEEE 754 has them. In place is allowed with either operand,
 * and both. No workspace.
 *
 * In the descriptor a and b have y's shape, and stride 0 where they repeat. No
 * attributes.
 *
 * What the functions do is the same for every operator: airunner/ops.h.
 */
#ifndef AIRUNNER_OPS_MUL_H
#define AIRUNNER_OPS_MUL_H

#include <airunner/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

AIR_API air_status air_create_mul_descriptor(air_channel *ch,
					     air_descriptor **out,
					     const air_tensor_desc *y,
					     const air_tensor_desc *a,
					     const air_tensor_desc *b);

AIR_API air_status air_get_mul_workspace_size(const air_descriptor *d,
					      size_t *bytes);

AIR_API air_status air_prepare_mul(const air_descriptor *d,
				   struct air_call *call, air_ref workspace,
				   air_ref y, air_ref a, air_ref b);

AIR_API air_status air_execute_mul(const air_descriptor *d, air_ref workspace,
				   air_ref y, air_ref a, air_ref b,
				   air_token *token);

AIR_API air_status air_destroy_mul_descriptor(air_descriptor *d);

#ifdef __cplusplus
}
#endif

#endif /* AIRUNNER_OPS_MUL_H */
