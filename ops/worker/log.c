// SPDX-License-Identifier: MIT
#include <stdarg.h>
#include <stdio.h>

#include "ops/worker/internal.h"

static void (*sink)(enum air_log_level level, const char *text);

void air_worker_set_log(void (*fn)(enum air_log_level level, const char *text))
{
	air_store(&sink, fn, RELEASE);
}

static void log_va(enum air_log_level level, const char *fmt, va_list ap)
{
	void (*fn)(enum air_log_level, const char *) = air_load(&sink, ACQUIRE);
	char text[512];

	if (!fn)
		return;
	vsnprintf(text, sizeof(text), fmt, ap);
	fn(level, text);
}

void air_log(enum air_log_level level, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	log_va(level, fmt, ap);
	va_end(ap);
}

/* What executors log are events of a device: worth a look. */
static void __attribute__((format(printf, 1, 2)))
log_service(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	log_va(AIR_LOG_INFO, fmt, ap);
	va_end(ap);
}

static void (*spent)(void);

void air_worker_set_spent(void (*fn)(void))
{
	air_store(&spent, fn, RELEASE);
}

static void spent_service(void)
{
	void (*fn)(void) = air_load(&spent, ACQUIRE);

	if (fn)
		fn();
}

static uint64_t now_service(void)
{
	return air_now();
}

const struct air_worker_services air_services = {
	.work_done = air_work_done,
	.ring_returned = air_wchannel_returned,
	.block_begin = air_block_here_begin,
	.block_end = air_block_here_end,
	.now = now_service,
	.log = log_service,
	.process_spent = spent_service,
};

const char *air_wchannel_label(const struct air_wchannel *ch)
{
	return ch->label[0] ? ch->label : "a client";
}
