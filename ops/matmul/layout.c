// SPDX-License-Identifier: MIT
#include "ops/matmul/layout.h"

/*
 * A batch whose B is always the same and whose rows follow each other is a
 * product of taller matrices: one call instead of many. @t are the tensors,
 * cut down to their batch dimensions.
 */
static void fold_batches(struct air_matmul_layout *l, struct airunner_tensor *t)
{
	static const uint32_t tall[] = { AIR_MATMUL_Y, AIR_MATMUL_A,
					 AIR_MATMUL_C };

	while (t[0].ndim) {
		uint32_t last = t[0].ndim - 1;
		int64_t size = t[0].shape[last];

		if (size != 1) {
			if (t[AIR_MATMUL_B].stride[last])
				return;
			for (int i = 0; i < 3; i++)
				if (t[tall[i]].stride[last] !=
				    l->m * l->step[tall[i]].row)
					return;
			l->m *= size;
		}
		for (int i = 0; i < 4; i++)
			t[i].ndim--;
	}
}

void air_matmul_layout(struct air_matmul_layout *l,
		       const struct airunner_desc *d)
{
	struct airunner_tensor t[4];
	const struct airunner_tensor *batch[4] = { &t[0], &t[1], &t[2], &t[3] };
	uint32_t n = d->tensor[AIR_MATMUL_Y].ndim;
	bool trans[4] = { false, d->attr[AIR_MATMUL_TRANS_A],
			  d->attr[AIR_MATMUL_TRANS_B], false };

	for (uint32_t i = 0; i < 4; i++) {
		t[i] = d->tensor[i];
		if (!t[i].dtype)
			t[i] = t[AIR_MATMUL_Y];
		l->step[i].row = t[i].stride[n - 2 + trans[i]];
		l->step[i].col = t[i].stride[n - 1 - trans[i]];
		t[i].ndim = n - 2;
	}
	l->m = t[AIR_MATMUL_Y].shape[n - 2];
	l->n = t[AIR_MATMUL_Y].shape[n - 1];
	l->k = t[AIR_MATMUL_A].shape[n - 1 - trans[AIR_MATMUL_A]];
	fold_batches(l, t);
	air_iter_init(&l->batch, 4, batch, ~0U);
}
