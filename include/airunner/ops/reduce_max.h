/* SPDX-License-Identifier: MIT */
/*
 * y = the largest element of x over any of its dimensions.
 *
 * Operands
 *	y	the shape of x without the reduced dimensions (@keepdim false)
 *		or with each of them 1 (@keepdim true); dtype of x
 *	x	any shape; f32, f16, bf16, i32, i8 or i64
 *
 * @axes lists @n_axes different dimensions of x, in any order; negative ones
 * count from the end (-1 is the last). @n_axes 0 reduces all of them.
 *
 * A NaN anywhere makes the result NaN. Which of +0 and -0 is returned is not
 * specified. The largest of nothing does not exist: AIR_BAD_SHAPE, unless y is
 * empty as well. No in place. No workspace.
 *
 * Attributes in the descriptor: [0] bit i: dimension i is reduced, [1] keepdim.
 *
 * What the functions do is the same for every operator: airunner/ops.h.
 */
#ifndef AIRUNNER_OPS_REDUCE_MAX_H
#define AIRUNNER_OPS_REDUCE_MAX_H

#include <airunner/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

AIR_API air_status air_create_reduce_max_descriptor(air_channel *ch,
						    air_descriptor **out,
						    const air_tensor_desc *y,
						    const air_tensor_desc *x,
						    const int32_t *axes,
						    uint32_t n_axes,
						    bool keepdim);

AIR_API air_status air_get_reduce_max_workspace_size(const air_descriptor *d,
						     size_t *bytes);

AIR_API air_status air_prepare_reduce_max(const air_descriptor *d,
					  struct air_call *call,
					  air_ref workspace, air_ref y,
					  air_ref x);

AIR_API air_status air_execute_reduce_max(const air_descriptor *d,
					  air_ref workspace, air_ref y,
					  air_ref x, air_token *token);

AIR_API air_status air_destroy_reduce_max_descriptor(air_descriptor *d);

#ifdef __cplusplus
}
#endif

#endif /* AIRUNNER_OPS_REDUCE_MAX_H */
