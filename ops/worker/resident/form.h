/* SPDX-License-Identifier: MIT */
/*
 * Which of the resident kernel's own bodies an operator fits. They do what is
 * common and small and nothing else, so that there is nothing to find out when
 * it runs: what the descriptor decides is decided here.
 */
#ifndef AIR_RESIDENT_FORM_H
#define AIR_RESIDENT_FORM_H

#include "ops/cuda/cuda_op.h"
#include "ops/plan.h"

/* struct air_res_plan.vectors, of an operator that one block does. */
uint32_t air_res_form_vectors(const struct air_plan *plan,
			      const struct air_cuda_plan *cp);

/* struct air_res_plan.gemv */
uint32_t air_res_form_gemv(const struct air_plan *plan,
			   const struct air_cuda_plan *cp);

#endif /* AIR_RESIDENT_FORM_H */
