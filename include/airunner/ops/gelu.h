/* SPDX-License-Identifier: MIT */
/*
 * y = x * Phi(x), Phi the distribution function of the normal distribution.
 *
 * Operands
 *	y	any shape; f32, f16 or bf16
 *	x	shape and dtype of y
 *
 * @approximate is AIR_GELU_ERF: x/2 * (1 + erf(x / sqrt(2))); or AIR_GELU_TANH:
 * x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3))).
 *
 * NaN stays NaN; +Inf stays; -Inf gives NaN (-Inf * 0), as in PyTorch. Results
 * keep their digits down to 1e-36, where they may become 0. In place is
 * allowed. No workspace.
 *
 * Attributes in the descriptor: [0] approximate.
 *
 * What the functions do is the same for every operator: airunner/ops.h.
 */
#ifndef AIRUNNER_OPS_GELU_H
#define AIRUNNER_OPS_GELU_H

#include <airunner/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum air_gelu {
	AIR_GELU_ERF = 0,
	AIR_GELU_TANH = 1,
} air_gelu;

AIR_API air_status air_create_gelu_descriptor(air_channel *ch,
					      air_descriptor **out,
					      const air_tensor_desc *y,
					      const air_tensor_desc *x,
					      air_gelu approximate);

AIR_API air_status air_get_gelu_workspace_size(const air_descriptor *d,
					       size_t *bytes);

AIR_API air_status air_prepare_gelu(const air_descriptor *d,
				    struct air_call *call, air_ref workspace,
				    air_ref y, air_ref x);

AIR_API air_status air_execute_gelu(const air_descriptor *d, air_ref workspace,
				    air_ref y, air_ref x, air_token *token);

AIR_API air_status air_destroy_gelu_descriptor(air_descriptor *d);

#ifdef __cplusplus
}
#endif

#endif /* AIRUNNER_OPS_GELU_H */
