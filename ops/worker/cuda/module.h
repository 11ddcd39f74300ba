/* SPDX-License-Identifier: MIT */
/*
 * Users' kernels: modules, their functions, launches. A module keeps a copy of
 * its image: after the context was lost it is loaded again when it is used.
 */
#ifndef AIR_CUDA_MODULE_H
#define AIR_CUDA_MODULE_H

#include "ops/worker/cuda/cuda.h"

struct air_module;
struct air_module_function;

/* A cubin, PTX or fatbin; the copy is NUL-terminated, as PTX needs. */
air_status air_module_load(struct air_cuda *c, const void *image,
			   uint64_t size, struct air_module **out,
			   struct air_error *e);
void air_module_unload(struct air_cuda *c, struct air_module *m);

/* Fills in what @record returns. The function belongs to @m. */
air_status air_module_function(struct air_cuda *c, struct air_module *m,
			       struct airunner_function_record *record,
			       struct air_module_function **out,
			       struct air_error *e);

/* Whether the function has to be loaded before it can be launched. */
bool air_module_is_stale(const struct air_launch *l);

/*
 * Enqueue. CUDA_ERROR_INVALID_VALUE when the argument bytes are not what the
 * function takes.
 */
CUresult air_module_launch(const struct air_launch *l, CUstream stream);

#endif /* AIR_CUDA_MODULE_H */
