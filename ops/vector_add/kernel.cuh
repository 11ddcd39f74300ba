/* SPDX-License-Identifier: MIT */
#ifndef AIR_VECTOR_ADD_CUH
#define AIR_VECTOR_ADD_CUH

#include "ops/add/kernel.cuh"

template <>
struct air_body<AIR_OP_vector_add> : air_ew_float_body<air_add> {};

#endif /* AIR_VECTOR_ADD_CUH */
