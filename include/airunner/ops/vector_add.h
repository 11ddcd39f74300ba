/* SPDX-License-Identifier: MIT */
/*
 * c = a + b.
 *
 * Operands
 *	c	any shape; f32, f16 or bf16
 *	a, b	shape and dtype of c
 *
 * NaN and Inf as IEEE 754 has them. In place is allowed with a, with b and with
 * both. No workspace. No attributes.
 *
 * What the functions do is the same for every operator: airunner/ops.h.
 */
#ifndef AIRUNNER_OPS_VECTOR_ADD_H
#define AIRUNNER_OPS_VECTOR_ADD_H

#include <airunner/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

AIR_API air_status air_create_vector_add_descriptor(air_channel *ch,
						    air_descriptor **out,
						    const air_tensor_desc *c,
						    const air_tensor_desc *a,
						    const air_tensor_desc *b);

AIR_API air_status air_get_vector_add_workspace_size(const air_descriptor *d,
						     size_t *bytes);

AIR_API air_status air_prepare_vector_add(const air_descriptor *d,
					  struct air_call *call,
					  air_ref workspace, air_ref c,
					  air_ref a, air_ref b);

AIR_API air_status air_execute_vector_add(const air_descriptor *d,
					  air_ref workspace, air_ref c,
					  air_ref a, air_ref b,
					  air_token *token);

AIR_API air_status air_destroy_vector_add_descriptor(air_descriptor *d);

#ifdef __cplusplus
}
#endif

#endif /* AIRUNNER_OPS_VECTOR_ADD_H */
