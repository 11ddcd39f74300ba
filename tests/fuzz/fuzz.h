/* SPDX-License-Identifier: MIT */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* libFuzzer's name for it. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/*
 * Fill in an input that gets further than noise would; @next is a source of
 * random numbers. For fuzz_main.c.
 */
void fuzz_make_input(uint8_t *data, size_t size, uint64_t (*next)(void));

#endif /* TESTS_FUZZ_H */
