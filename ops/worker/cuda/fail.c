// SPDX-License-Identifier: MIT
/* The plug-in links nothing of libairunner, so it has its own of this. */
#include <stdarg.h>
#include <stdio.h>

#include "ops/op.h"

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
