/* SPDX-License-Identifier: MIT */
#ifndef AIR_EMBEDDING_H
#define AIR_EMBEDDING_H

#include "ops/check.h"

/* Operands */
enum { AIR_EMBEDDING_Y, AIR_EMBEDDING_TABLE, AIR_EMBEDDING_INDICES };

extern const struct air_op air_op_embedding;

air_status air_embedding_cpu_plan(const struct airunner_desc *d,
				  struct air_cpu_plan **out,
				  struct air_error *e);

#endif /* AIR_EMBEDDING_H */
