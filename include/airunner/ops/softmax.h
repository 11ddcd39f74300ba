/* SPDX-License-Identifier: MIT */
/*
 * y = exp(x - max) / sum(exp(x - max)) along one dimension.
 *
 * Operands
 *	y	any shape of 1 to 8 dimensions; f32, f16 or bf16
 *	x	shape and dtype of y
 *
 * @axis is the dimension; negative ones count from the end (-1 is the last).
 *
 * The maximum is subtracted, so nothing overflows however large the spread. NaN
 * or +Inf in a row make all of it NaN, and so does a row of nothing but -Inf,
 * as in PyTorch; a -Inf among others gives 0. In place is allowed. No
 * workspace.
 *
 * Attributes in the descriptor: [0] axis, not negative.
 *
 * What the functions do is the same for every operator: airunner/ops.h.
 */
#ifndef AIRUNNER_OPS_SOFTMAX_H
#define AIRUNNER_OPS_SOFTMAX_H

#include <airunner/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

AIR_API air_status air_create_softmax_descriptor(air_channel *ch,
						 air_descriptor **out,
						 const air_tensor_desc *y,
						 const air_tensor_desc *x,
						 int32_t axis);

AIR_API air_status air_get_softmax_workspace_size(const air_descriptor *d,
						  size_t *bytes);

AIR_API air_status air_prepare_softmax(const air_descriptor *d,
				       struct air_call *call, air_ref workspace,
				       air_ref y, air_ref x);

AIR_API air_status air_execute_softmax(const air_descriptor *d,
				       air_ref workspace, air_ref y, air_ref x,
				       air_token *token);

AIR_API air_status air_destroy_softmax_descriptor(air_descriptor *d);

#ifdef __cplusplus
}
#endif

#endif /* AIRUNNER_OPS_SOFTMAX_H */
