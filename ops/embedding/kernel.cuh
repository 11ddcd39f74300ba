/* SPDX-License-Identifier: MIT */
/* Bits are moved as they are: kernels by size of the element. */
#ifndef AIR_EMBEDDING_CUH
#define AIR_EMBEDDING_CUH

#include "ops/cuda/device.cuh"
#include "ops/embedding/params.h"

template <class T>
__device__ __forceinline__ void
air_embedding_body(const air_embedding_params &p, const air_operands &ops,
		   const air_part &part)
{
	constexpr int V = 16 / sizeof(T);
	uint64_t total = p.items * p.units;
	bool vector = p.unit > 1 &&
		      (ops.addr[0] | ops.addr[1]) % 16 == 0;

	for (uint64_t i = (uint64_t)part.block * part.threads + part.thread;
	     i < total; i += (uint64_t)part.blocks * part.threads) {
		uint64_t item = p.wide ? i / p.units :
					 air_divide((uint32_t)i, p.by_units);
		uint64_t u = (i - item * p.units) * p.unit;
		int64_t y = 0, at = 0, from = 0, index;

		for (uint32_t d = 0; d < p.item_n; d++) {
			uint64_t q = d + 1 == p.item_n ? 0 :
							 item / p.item_size[d];
			int64_t k = (int64_t)(item - q * p.item_size[d]);

			y += k * p.item_y[d];
			at += k * p.item_index[d];
			item = q;
		}
		for (uint32_t d = 0; d < p.row_n; d++) {
			uint64_t q = d + 1 == p.row_n ? 0 : u / p.row_size[d];
			int64_t k = (int64_t)(u - q * p.row_size[d]);

			y += k * p.row_y[d];
			from += k * p.row_table[d];
			u = q;
		}
		index = p.index_bytes == 8 ?
				((const int64_t *)ops.addr[2])[at] :
				((const int32_t *)ops.addr[2])[at];

		bool there = index >= 0 && (uint64_t)index < p.rows;
		const T *x = (const T *)ops.addr[1] +
			     (there ? index * p.table_row + from : 0);
		T *out = (T *)ops.addr[0] + y;

		if (vector) {
			air_vec<T, V> v;

#pragma unroll
			for (int k = 0; k < V; k++)
				v.v[k] = (T)p.fill;
			if (there)
				v = *(const air_vec<T, V> *)x;
			*(air_vec<T, V> *)out = v;
			continue;
		}
		for (uint32_t k = 0; k < p.unit; k++)
			out[k] = there ? x[k] : (T)p.fill;
	}
}

template <> struct air_body<AIR_OP_embedding> {
	static __device__ __forceinline__ void run(uint32_t variant,
						   const void *params,
						   const air_operands &ops,
						   const air_part &part)
	{
		const air_embedding_params &p =
			*(const air_embedding_params *)params;

		if (variant == 4)
			air_embedding_body<uint32_t>(p, ops, part);
		else
			air_embedding_body<uint16_t>(p, ops, part);
	}
};

#endif /* AIR_EMBEDDING_CUH */
