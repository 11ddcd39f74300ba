/* SPDX-License-Identifier: MIT */
/*
 * y = (x - mean) / sqrt(variance + epsilon) * weight + bias, over the last
 * dimension. The variance is the mean of (x - mean)^2.
 *
 * Operands
 *	y	any shape of 1 to 8 dimensions; f32, f16 or bf16
 *	x	shape and dtype of y
 *	weight	[last dimension of y]; dtype of y, or f32; may be NULL for 1
 *	bias	[last dimension of y]; dtype of y, or f32; may be NULL for 0
 *
 * Computed in f32, the variance from the differences (large means do not spoil
 * it). NaN in a row makes all of it NaN. In place is allowed with x. @epsilon
 * is finite and not negative; with 0 constant rows give anything, NaN too. No
 * workspace.
 *
 * Attributes in the descriptor: [0] epsilon.
 *
 * What the functions do is the same for every operator: airunner/ops.h.
 */
#ifndef AIRUNNER_OPS_LAYER_NORM_H
#define AIRUNNER_OPS_LAYER_NORM_H

#include <airunner/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

AIR_API air_status air_create_layer_norm_descriptor(air_channel *ch,
	air_descriptor **out, const air_tensor_desc *y,
	const air_tensor_desc *x, const air_tensor_desc *weight,
	const air_tensor_desc *bias, double epsilon);

AIR_API air_status air_get_layer_norm_workspace_size(const air_descriptor *d,
						     size_t *bytes);

AIR_API air_status air_prepare_layer_norm(const air_descriptor *d,
					  struct air_call *call,
					  air_ref workspace, air_ref y,
					  air_ref x, air_ref weight,
					  air_ref bias);

AIR_API air_status air_execute_layer_norm(const air_descriptor *d,
					  air_ref workspace, air_ref y,
					  air_ref x, air_ref weight,
					  air_ref bias, air_token *token);

AIR_API air_status air_destroy_layer_norm_descriptor(air_descriptor *d);

#ifdef __cplusplus
}
#endif

#endif /* AIRUNNER_OPS_LAYER_NORM_H */
