/* SPDX-License-Identifier: MIT */
/*
 * y = x / sqrt(mean(x^2) + epsilon) * weight, over the last dimension.
 *
 * Operands
 *	y	any shape of 1 to 8 dimensions; f32, f16 or bf16
 *	x	shape and dtype of y
 *	weight	[last dimension of y]; dtype of y, or f32; may be NULL for 1
 *
 * Computed in f32. NaN in a row makes all of it NaN. In place is allowed with
 * x. @epsilon is finite and not negative; with 0 a row of zeros gives NaN. No
 * workspace.
 *
 * Attributes in the descriptor: [0] epsilon.
 *
 * What the functions do is the same for every operator: airunner/ops.h.
 */
#ifndef AIRUNNER_OPS_RMS_NORM_H
#define AIRUNNER_OPS_RMS_NORM_H

#include <airunner/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

AIR_API air_status air_create_rms_norm_descriptor(air_channel *ch,
	air_descriptor **out, const air_tensor_desc *y,
	const air_tensor_desc *x, const air_tensor_desc *weight,
	double epsilon);

AIR_API air_status air_get_rms_norm_workspace_size(const air_descriptor *d,
						   size_t *bytes);

AIR_API air_status air_prepare_rms_norm(const air_descriptor *d,
					struct air_call *call,
					air_ref workspace, air_ref y, air_ref x,
					air_ref weight);

AIR_API air_status air_execute_rms_norm(const air_descriptor *d,
					air_ref workspace, air_ref y, air_ref x,
					air_ref weight, air_token *token);

AIR_API air_status air_destroy_rms_norm_descriptor(air_descriptor *d);

#ifdef __cplusplus
}
#endif

#endif /* AIRUNNER_OPS_RMS_NORM_H */
