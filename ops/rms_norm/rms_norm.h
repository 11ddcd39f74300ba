/* SPDX-License-Identifier: MIT */
#ifndef AIR_RMS_NORM_H
#define AIR_RMS_NORM_H

#include "ops/check.h"

/* Attributes */
enum { AIR_RMS_NORM_EPSILON = 0, AIR_RMS_NORM_ATTRS = 1 };

extern const struct air_op air_op_rms_norm;

air_status air_rms_norm_cpu_plan(const struct airunner_desc *d,
				 struct air_cpu_plan **out,
				 struct air_error *e);

#endif /* AIR_RMS_NORM_H */
