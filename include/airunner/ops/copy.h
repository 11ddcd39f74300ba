/* SPDX-License-Identifier: MIT */
/*
 * y = x, with any strides on both sides and a change of dtype.
 *
 * Operands
 *	y	any shape; any dtype
 *	x	shape of y; any dtype
 *
 * The copy of a transposed, sliced, reversed or repeated (stride 0) view makes
 * it contiguous; between dtypes, it is the cast:
 *  - to f32, f16, bf16: rounded to nearest even; what is too large becomes
 *    Inf; NaN stays NaN. Integers go to f16 and bf16 by way of f32.
 *  - float to integer: towards zero; what is out of range becomes the nearest
 *    integer there is, NaN becomes 0.
 *  - integer to integer: what is out of range becomes the nearest integer there
 *    is.
 *
 * Between equal dtypes bits are moved as they are, NaN payloads included.
 *
 * In place is allowed (and does nothing). No workspace. No attributes.
 *
 * What the functions do is the same for every operator: airunner/ops.h.
 */
#ifndef AIRUNNER_OPS_COPY_H
#define AIRUNNER_OPS_COPY_H

#include <airunner/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

AIR_API air_status air_create_copy_descriptor(air_channel *ch,
					      air_descriptor **out,
					      const air_tensor_desc *y,
					      const air_tensor_desc *x);

AIR_API air_status air_get_copy_workspace_size(const air_descriptor *d,
					       size_t *bytes);

AIR_API air_status air_prepare_copy(const air_descriptor *d,
				    struct air_call *call, air_ref workspace,
				    air_ref y, air_ref x);

AIR_API air_status air_execute_copy(const air_descriptor *d, air_ref workspace,
				    air_ref y, air_ref x, air_token *token);

AIR_API air_status air_destroy_copy_descriptor(air_descriptor *d);

#ifdef __cplusplus
}
#endif

#endif /* AIRUNNER_OPS_COPY_H */
