/* SPDX-License-Identifier: MIT */
/*
 * cuBLASLt called directly: what matmul is measured against. The library's
 * first choice for 16-byte aligned operands and 32 MiB of workspace.
 */
#ifndef AIR_TEST_PEER_LT_H
#define AIR_TEST_PEER_LT_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct peer_lt;

/* y[batch, m, n] = a[batch, m, k] b[batch, k, n] (or [batch, n, k]); or NULL */
struct peer_lt *peer_lt_open(uint32_t dtype, uint64_t m, uint64_t n, uint64_t k,
			     uint64_t batch, bool trans_b);
void peer_lt_close(struct peer_lt *p);

/*
 * The library's @nth choice (0: the first) when told that @sms multiprocessors
 * are there (0: all). False: it has not so many.
 */
bool peer_lt_choose(struct peer_lt *p, int32_t sms, unsigned int nth);

/* Which algorithm that is. */
void peer_lt_describe(const struct peer_lt *p, char *s, size_t size);

/* Enqueue @times. 0, or the library's status. */
int peer_lt_run(struct peer_lt *p, uint64_t y, uint64_t a, uint64_t b,
		uint64_t workspace, CUstream stream, unsigned int times);

#endif /* AIR_TEST_PEER_LT_H */
