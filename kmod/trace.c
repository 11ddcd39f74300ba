// SPDX-License-Identifier: GPL-2.0-only
/* airunner: where the tracepoints of trace.h live. */
#include "airunner.h"

#define CREATE_TRACE_POINTS
#include "trace.h"
