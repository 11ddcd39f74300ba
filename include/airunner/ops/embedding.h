/* SPDX-License-Identifier: MIT */
/*
 * y[i...] = table[indices[i...]]: gathers rows.
 *
 * Operands
 *	y	the shape of indices followed by that of table without its first
 *		dimension (8 dimensions at most); any dtype
 *	table	[V, ...], 1 to 8 dimensions; dtype of y
 *	indices	any shape; i32 or i64
 *
 * Bits are moved as they are. An index outside [0, V), negative ones too, fills
 * its row with NaN (0 for integer dtypes); an executor that notices also
 * completes with AIR_BAD_RANGE (cpu does). No in place. No workspace. No
 * attributes.
 *
 * What the functions do is the same for every operator: airunner/ops.h.
 */
#ifndef AIRUNNER_OPS_EMBEDDING_H
#define AIRUNNER_OPS_EMBEDDING_H

#include <airunner/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

AIR_API air_status air_create_embedding_descriptor(air_channel *ch,
	air_descriptor **out, const air_tensor_desc *y,
	const air_tensor_desc *table, const air_tensor_desc *indices);

AIR_API air_status air_get_embedding_workspace_size(const air_descriptor *d,
						    size_t *bytes);

AIR_API air_status air_prepare_embedding(const air_descriptor *d,
					 struct air_call *call,
					 air_ref workspace, air_ref y,
					 air_ref table, air_ref indices);

AIR_API air_status air_execute_embedding(const air_descriptor *d,
					 air_ref workspace, air_ref y,
					 air_ref table, air_ref indices,
					 air_token *token);

AIR_API air_status air_destroy_embedding_descriptor(air_descriptor *d);

#ifdef __cplusplus
}
#endif

#endif /* AIRUNNER_OPS_EMBEDDING_H */
