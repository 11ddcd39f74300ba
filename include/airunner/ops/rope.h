/* SPDX-License-Identifier: MIT */
/*
 * Rotary position embedding: pairs of elements of a head are rotated by an
 * angle that grows with the position.
 *
 * Operands
 *	y	[..., T, H, D], 3 to 8 dimensions: T tokens, H heads of D
 *		elements; f32, f16 or bf16
 *	x	shape and dtype of y
 *	cos	[P, R/2], R even and at most D: cosines for positions 0 to P-1;
 *		f32, or dtype of y
 *	sin	shape and dtype of cos
 *	positions
 *		the shape of y without its last two dimensions, or one that
 *		broadcasts to it ([T] for all batches alike); i32 or i64; may be
 *		NULL: token t is at position t, and T must not exceed P
 *
 * Element pairs (i, j) of a head become, with c = cos[p][k] and s = sin[p][k]:
 *	y[i] = x[i] * c - x[j] * s
 *	y[j] = x[j] * c + x[i] * s
 * for k from 0 to R/2 - 1, where (i, j) is (k, k + R/2) with AIR_ROPE_HALVES
 * (GPT-NeoX, Llama as in Hugging Face) and (2k, 2k + 1) with AIR_ROPE_PAIRS
 * (GPT-J, Llama as published). Elements from R on are copied. The tables are
 * the caller's, so that any scaling of frequencies will do. A layout [..., H,
 * T, D] is a permuted view (air_tensor_permute()).
 *
 * Computed in f32. NaN and Inf as IEEE 754 has them. A position outside [0, P)
 * gives NaN in the elements it rotates; an executor that notices also completes
 * with AIR_BAD_RANGE (cpu does). In place is allowed with x. No
 * workspace.
 *
 * In the descriptor positions have the full shape, stride 0 where they repeat.
 * Attributes in the descriptor: [0] style.
 *
 * What the functions do is the same for every operator: airunner/ops.h.
 */
#ifndef AIRUNNER_OPS_ROPE_H
#define AIRUNNER_OPS_ROPE_H

#include <airunner/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum air_rope {
	AIR_ROPE_HALVES = 0,
	AIR_ROPE_PAIRS = 1,
} air_rope;

AIR_API air_status air_create_rope_descriptor(air_channel *ch,
					      air_descriptor **out,
					      const air_tensor_desc *y,
					      const air_tensor_desc *x,
					      const air_tensor_desc *cos,
					      const air_tensor_desc *sin,
					      const air_tensor_desc *positions,
					      air_rope style);

AIR_API air_status air_get_rope_workspace_size(const air_descriptor *d,
					       size_t *bytes);

AIR_API air_status air_prepare_rope(const air_descriptor *d,
				    struct air_call *call, air_ref workspace,
				    air_ref y, air_ref x, air_ref cos,
				    air_ref sin, air_ref positions);

AIR_API air_status air_execute_rope(const air_descriptor *d, air_ref workspace,
				    air_ref y, air_ref x, air_ref cos,
				    air_ref sin, air_ref positions,
				    air_token *token);

AIR_API air_status air_destroy_rope_descriptor(air_descriptor *d);

#ifdef __cplusplus
}
#endif

#endif /* AIRUNNER_OPS_ROPE_H */
