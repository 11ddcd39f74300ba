/* SPDX-License-Identifier: MIT */
#ifndef AIR_ACTIVATION_H
#define AIR_ACTIVATION_H

#include <stdint.h>

/* Apply enum air_activation @act to a block in place. */
void air_activate(uint32_t act, float *y, uint64_t n);

#endif /* AIR_ACTIVATION_H */
