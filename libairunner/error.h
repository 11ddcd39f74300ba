/* SPDX-License-Identifier: MIT */
/*
 * The sentence behind air_last_error(): one for each thread.
 */
#ifndef AIR_ERROR_H
#define AIR_ERROR_H

#include <airunner.h>

/* Compose the sentence; returns @status. */
air_status air_error_set(air_status status, const char *fmt, ...)
	__attribute__((format(printf, 2, 3), cold));

/*
 * The same for a sentence that needs no composing, for answers that are normal
 * and frequent (a full ring): @text is only pointed to.
 */
air_status air_error_static(air_status status, const char *text);

#endif /* AIR_ERROR_H */
