/* SPDX-License-Identifier: MIT */
/*
 * y = alpha * x.
 *
 * Operands
 *	y	any shape; f32, f16 or bf16
 *	x	shape and dtype of y
 *
 * @alpha is rounded to f32 and may be anything, NaN included; alpha 0
 * multiplies (0 * Inf is NaN), it does not clear. In place is allowed. No
 * workspace.
 *
 * Attributes in the descriptor: [0] alpha.
 *
 * What the functions do is the same for every operator: airunner/ops.h.
 */
#ifndef AIRUNNER_OPS_SCALE_H
#define AIRUNNER_OPS_SCALE_H

#include <airunner/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

AIR_API air_status air_create_scale_descriptor(air_channel *ch,
					       air_descriptor **out,
					       const air_tensor_desc *y,
					       const air_tensor_desc *x,
					       double alpha);

AIR_API air_status air_get_scale_workspace_size(const air_descriptor *d,
						size_t *bytes);

AIR_API air_status air_prepare_scale(const air_descriptor *d,
				     struct air_call *call, air_ref workspace,
				     air_ref y, air_ref x);

AIR_API air_status air_execute_scale(const air_descriptor *d, air_ref workspace,
				     air_ref y, air_ref x, air_token *token);

AIR_API air_status air_destroy_scale_descriptor(air_descriptor *d);

#ifdef __cplusplus
}
#endif

#endif /* AIRUNNER_OPS_SCALE_H */
