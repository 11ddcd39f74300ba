// SPDX-License-Identifier: MIT
#include "ops/op.h"

#include <stdarg.h>
#include <stdio.h>

#define DECLARE(name) extern const struct air_op air_op_##name;
AIR_OPS(DECLARE)
#undef DECLARE

static const struct air_op *const table[AIR_OP_COUNT] = {
#define ENTRY(name) [AIR_OP_##name] = &air_op_##name,
	AIR_OPS(ENTRY)
#undef ENTRY
};

const struct air_op *air_op_find(uint32_t id)
{
	return id < AIR_OP_COUNT ? table[id] : NULL;
}

air_status air_fail(struct air_error *e, air_status status, const char *fmt,
		    ...)
{
	va_list ap;

	if (e) {
		va_start(ap, fmt);
		vsnprintf(e->text, sizeof(e->text), fmt, ap);
		va_end(ap);
	}
	return status;
}
