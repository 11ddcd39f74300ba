/* SPDX-License-Identifier: MIT */
/*
 * y = x / (1 + exp(-x)), also known as swish.
 *
 * Operands
 *	y	any shape; f32, f16 or bf16
 *	x	shape and dtype of y
 *
 * NaN stays NaN; +Inf stays; -Inf gives NaN (-Inf / Inf), as in PyTorch, while
 * finite negative numbers, however large, go to -0: results keep their digits
 * down to 1e-36, where they may become 0. In place is allowed. No workspace. No
 * attributes.
 *
 * What the functions do is the same for every operator: airunner/ops.h.
 */
#ifndef AIRUNNER_OPS_SILU_H
#define AIRUNNER_OPS_SILU_H

#include <airunner/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

AIR_API air_status air_create_silu_descriptor(air_channel *ch,
					      air_descriptor **out,
					      const air_tensor_desc *y,
					      const air_tensor_desc *x);

AIR_API air_status air_get_silu_workspace_size(const air_descriptor *d,
					       size_t *bytes);

AIR_API air_status air_prepare_silu(const air_descriptor *d,
				    struct air_call *call, air_ref workspace,
				    air_ref y, air_ref x);

AIR_API air_status air_execute_silu(const air_descriptor *d, air_ref workspace,
				    air_ref y, air_ref x, air_token *token);

AIR_API air_status air_destroy_silu_descriptor(air_descriptor *d);

#ifdef __cplusplus
}
#endif

#endif /* AIRUNNER_OPS_SILU_H */
