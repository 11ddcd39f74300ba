/* SPDX-License-Identifier: MIT */
/*
 * Two-dimensional convolution (cross-correlation, as everywhere in deep
 * learning).
 *
 * Operands
 *	y	[N, O, OH, OW]; f32, f16 or bf16
 *	x	[N, C, H, W]; dtype of y
 *	weight	[O, C / groups, KH, KW]; dtype of y
 *	bias	[O]; dtype of y; may be NULL
 *
 *	OH = (H + 2 padding[0] - dilation[0] (KH - 1) - 1) / stride[0] + 1
 *	OW likewise, with index 1 and W, KW. The numerators must not be
 *	negative: the kernel fits into the padded input. C and O are multiples
 *	of groups.
 *
 * y[n][o] = activation(bias[o] + sum of weight[o][c][i][j] * x[n][g C/groups +
 * c][oh stride + i dilation - padding][ow ...]), g = o / (O / groups). x beyond
 * its edges counts as 0 (and multiplies: 0 times a NaN weight is NaN). Other
 * layouts (NHWC) are strides. @stride, @padding and @dilation hold two numbers,
 * for height and width; NULL stands for 1, 0 and 1.
 *
 * Products are summed in f32 and rounded to y's dtype once, after the
 * activation. No in place. Workspace: some MiB at most.
 *
 * Attributes in the descriptor: [0] [1] stride, [2] [3] padding, [4] [5]
 * dilation, [6] groups, [7] activation.
 *
 * What the functions do is the same for every operator: airunner/ops.h.
 */
#ifndef AIRUNNER_OPS_CONV2D_H
#define AIRUNNER_OPS_CONV2D_H

#include <airunner/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

AIR_API air_status air_create_conv2d_descriptor(air_channel *ch,
						air_descriptor **out,
						const air_tensor_desc *y,
						const air_tensor_desc *x,
						const air_tensor_desc *weight,
						const air_tensor_desc *bias,
						const int32_t *stride,
						const int32_t *padding,
						const int32_t *dilation,
						int32_t groups,
						air_activation activation);

AIR_API air_status air_get_conv2d_workspace_size(const air_descriptor *d,
						 size_t *bytes);

AIR_API air_status air_prepare_conv2d(const air_descriptor *d,
				      struct air_call *call, air_ref workspace,
				      air_ref y, air_ref x, air_ref weight,
				      air_ref bias);

AIR_API air_status air_execute_conv2d(const air_descriptor *d,
				      air_ref workspace, air_ref y, air_ref x,
				      air_ref weight, air_ref bias,
				      air_token *token);

AIR_API air_status air_destroy_conv2d_descriptor(air_descriptor *d);

#ifdef __cplusplus
}
#endif

#endif /* AIRUNNER_OPS_CONV2D_H */
