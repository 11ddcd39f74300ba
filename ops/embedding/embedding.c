// SPDX-License-Identifier: MIT
#include "ops/embedding/embedding.h"

static air_status check(const struct airunner_desc *d, struct air_error *e)
{
	const struct air_op *op = &air_op_embedding;
	const struct airunner_tensor *y = &d->tensor[AIR_EMBEDDING_Y];
	const struct airunner_tensor *table = &d->tensor[AIR_EMBEDDING_TABLE];
	const struct airunner_tensor *indices =
		&d->tensor[AIR_EMBEDDING_INDICES];
	char got[AIR_SHAPE_STRING], want[AIR_SHAPE_STRING];
	__s64 shape[2 * AIRUNNER_MAX_DIMS];
	uint32_t ndim;
	air_status st = air_check_dtype_as(op, d, AIR_EMBEDDING_TABLE,
					   AIR_EMBEDDING_Y, e);

	if (!st)
		st = air_check_dtype(op, d, AIR_EMBEDDING_INDICES,
				     AIR_DTYPE_BIT(AIRUNNER_I32) |
					     AIR_DTYPE_BIT(AIRUNNER_I64),
				     e);
	if (!st)
		st = air_check_ndim(op, d, AIR_EMBEDDING_TABLE, 1,
				    AIRUNNER_MAX_DIMS, e);
	if (st)
		return st;
	ndim = indices->ndim + table->ndim - 1;
	memcpy(shape, indices->shape, indices->ndim * sizeof(shape[0]));
	memcpy(shape + indices->ndim, table->shape + 1,
	       (table->ndim - 1) * sizeof(shape[0]));
	if (y->ndim == ndim &&
	    !memcmp(y->shape, shape, ndim * sizeof(shape[0])))
		return AIR_OK;
	return air_fail(e, AIR_BAD_SHAPE,
		"embedding: operand y: shape is %s; indices and table make %s",
		air_shape_string(got, y->shape, y->ndim),
		air_shape_string(want, shape, ndim));
}

const struct air_op air_op_embedding = {
	.name = "embedding",
	.id = AIR_OP_embedding,
	.n_tensors = 3,
	.n_required = 3,
	.operand = { "y", "table", "indices" },
	.check = check,
	.cpu_plan = air_embedding_cpu_plan,
};
