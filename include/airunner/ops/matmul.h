/* SPDX-License-Identifier: MIT */
/*
 * y = activation(alpha * A B + beta * c + bias), batched.
 *
 * Operands
 *	y	[..., M, N], 2 to 8 dimensions
 *	a	[..., M, K], or [..., K, M] with @trans_a
 *	b	[..., K, N], or [..., N, K] with @trans_b
 *	c	shape of y; may be NULL when @beta is 0
 *	bias	[N]; may be NULL
 *
 * The dimensions before the last two (the batch) of a, b and c are y's, or
 * broadcast to them as NumPy has it: size 1, or missing in front, repeats. c's
 * last two broadcast likewise. Transposing by strides instead of by flag is the
 * same.
 *
 * dtypes: a and b both f32, f16 or bf16; y the same, or f32; c and bias as y.
 * Or a and b i8, and y, c, bias i32: then alpha is 1, beta 0 or 1, the
 * activation none or relu, and the result is exact modulo 2^32.
 *
 * Products are summed in f32; alpha and beta are rounded to f32; f16 and bf16
 * results are rounded once, after the activation. K = 0 makes the product 0.
 * With alpha 0 the product counts as 0 and a and b are not read; with beta 0, c
 * is not read: NaN and Inf in there do no harm. Elsewhere NaN and Inf propagate
 * (the order of summation is not specified). In place is allowed with c, when
 * it was not broadcast. Workspace: some MiB at most, where operands have to be
 * converted or repacked.
 *
 * Attributes in the descriptor: [0] trans_a, [1] trans_b, [2] alpha, [3] beta,
 * [4] activation. There a, b and c have y's batch dimensions, stride 0 where
 * they repeat, and c all of y's shape.
 *
 * What the functions do is the same for every operator: airunner/ops.h.
 */
#ifndef AIRUNNER_OPS_MATMUL_H
#define AIRUNNER_OPS_MATMUL_H

#include <airunner/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

AIR_API air_status air_create_matmul_descriptor(air_channel *ch,
						air_descriptor **out,
						const air_tensor_desc *y,
						const air_tensor_desc *a,
						const air_tensor_desc *b,
						const air_tensor_desc *c,
						const air_tensor_desc *bias,
						bool trans_a, bool trans_b,
						double alpha, double beta,
						air_activation activation);

AIR_API air_status air_get_matmul_workspace_size(const air_descriptor *d,
						 size_t *bytes);

AIR_API air_status air_prepare_matmul(const air_descriptor *d,
				      struct air_call *call, air_ref workspace,
				      air_ref y, air_ref a, air_ref b,
				      air_ref c, air_ref bias);

AIR_API air_status air_execute_matmul(const air_descriptor *d,
				      air_ref workspace, air_ref y, air_ref a,
				      air_ref b, air_ref c, air_ref bias,
				      air_token *token);

AIR_API air_status air_destroy_matmul_descriptor(air_descriptor *d);

#ifdef __cplusplus
}
#endif

#endif /* AIRUNNER_OPS_MATMUL_H */
