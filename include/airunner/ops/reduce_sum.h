/* SPDX-License-Identifier: MIT */
/*
 * y = the sum of x over any of its dimensions.
 *
 * Operands
 *	y	the shape of x without the reduced dimensions (@keepdim false)
 *		or with each of them 1 (@keepdim true); dtype below
 *	x	any shape; f32, f16, bf16, i32, i8 or i64
 *
 * @axes lists @n_axes different dimensions of x, in any order; negative ones
 * count from the end (-1 is the last). @n_axes 0 reduces all of them.
 *
 * dtypes: y has that of x; or f32 for x in f16 or bf16; or i32 or i64 for x in
 * i8; or i64 for x in i32.
 *
 * Floating point: summed in f32 by blocks and in f64 across blocks, so that
 * many small values do not get lost; rounded to f32, then to y's dtype. NaN
 * propagates; Inf and -Inf together give NaN. Integers: exact, modulo 2^bits of
 * y. A sum of nothing is 0. No in place. No workspace.
 *
 * Attributes in the descriptor: [0] bit i: dimension i is reduced, [1] keepdim.
 *
 * What the functions do is the same for every operator: airunner/ops.h.
 */
#ifndef AIRUNNER_OPS_REDUCE_SUM_H
#define AIRUNNER_OPS_REDUCE_SUM_H

#include <airunner/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

AIR_API air_status air_create_reduce_sum_descriptor(air_channel *ch,
						    air_descriptor **out,
						    const air_tensor_desc *y,
						    const air_tensor_desc *x,
						    const int32_t *axes,
						    uint32_t n_axes,
						    bool keepdim);

AIR_API air_status air_get_reduce_sum_workspace_size(const air_descriptor *d,
						     size_t *bytes);

AIR_API air_status air_prepare_reduce_sum(const air_descriptor *d,
					  struct air_call *call,
					  air_ref workspace, air_ref y,
					  air_ref x);

AIR_API air_status air_execute_reduce_sum(const air_descriptor *d,
					  air_ref workspace, air_ref y,
					  air_ref x, air_token *token);

AIR_API air_status air_destroy_reduce_sum_descriptor(air_descriptor *d);

#ifdef __cplusplus
}
#endif

#endif /* AIRUNNER_OPS_REDUCE_SUM_H */
