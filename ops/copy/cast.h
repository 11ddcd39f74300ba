/* SPDX-License-Identifier: MIT */
#ifndef AIR_CAST_H
#define AIR_CAST_H

#include <stdint.h>

/*
 * Move @n elements; steps in bytes. Between equal dtypes bits are moved, else
 * values are converted as include/airunner/ops/copy.h says.
 */
typedef void (*air_cast_fn)(void *dst, int64_t to, const void *src,
			    int64_t from, uint64_t n);

air_cast_fn air_cast(uint32_t dst_dtype, uint32_t src_dtype);

#endif /* AIR_CAST_H */
