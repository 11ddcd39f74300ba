// SPDX-License-Identifier: MIT
/*
 * Statuses as sentences, and the last error of each thread.
 */
#include <stdarg.h>
#include <stdio.h>

#include <airunner.h>

#include "include/uapi/airunner.h"
#include "libairunner/error.h"

#define SAME(name)                                                             \
	_Static_assert((int)AIR_##name == (int)AIRUNNER_S_##name, #name)

SAME(OK);
SAME(PENDING);
SAME(FULL);
SAME(TIMEOUT);
SAME(CANCELED);
SAME(BUSY);
SAME(BAD_OPCODE);
SAME(BAD_FLAGS);
SAME(BAD_ID);
SAME(BAD_HANDLE);
SAME(BAD_RANGE);
SAME(BAD_ALIGN);
SAME(BAD_RESERVED);
SAME(BAD_TOKEN);
SAME(BAD_ARGUMENT);
SAME(BAD_OPERATOR);
SAME(BAD_DTYPE);
SAME(BAD_SHAPE);
SAME(BAD_STRIDES);
SAME(BAD_ATTRIBUTE);
SAME(ALIASING);
SAME(WORKSPACE);
SAME(UNSUPPORTED);
SAME(NO_MEMORY);
SAME(NO_DEVICE);
SAME(DEVICE_FAULT);
SAME(DEVICE_LOST);
SAME(NO_WORKER);
SAME(WORKER_DIED);
SAME(CHANNEL_DEAD);
SAME(RESET);
SAME(PERMISSION);
SAME(MEMLOCK);
SAME(QUOTA);
SAME(SYSTEM);
SAME(FORKED);
SAME(ABI);

static const char *const sentences[256] = {
	[AIR_OK] = "success",
	[AIR_PENDING] = "not completed yet",
	[AIR_FULL] = "no room in the ring: collect completions first",
	[AIR_TIMEOUT] = "not started or not completed within its time",
	[AIR_CANCELED] = "canceled before it was started",
	[AIR_BUSY] = "in use",
	[AIR_BAD_OPCODE] = "unknown opcode in a submission",
	[AIR_BAD_FLAGS] = "unknown flag",
	[AIR_BAD_ID] = "no such descriptor, module or function",
	[AIR_BAD_HANDLE] = "an operand names a buffer that does not exist",
	[AIR_BAD_RANGE] = "an operand reaches outside its buffer",
	[AIR_BAD_ALIGN] = "an operand is not aligned to its dtype",
	[AIR_BAD_RESERVED] = "a reserved or unused field is not zero",
	[AIR_BAD_TOKEN] = "unknown token, or collected already",
	[AIR_BAD_ARGUMENT] = "invalid argument",
	[AIR_BAD_OPERATOR] = "unknown operator",
	[AIR_BAD_DTYPE] = "a tensor's dtype is not what the operator takes",
	[AIR_BAD_SHAPE] = "a tensor's shape is not what the operator takes",
	[AIR_BAD_STRIDES] =
		"a tensor's strides are not what the operator takes",
	[AIR_BAD_ATTRIBUTE] = "an attribute is out of range",
	[AIR_ALIASING] = "the output overlaps an input",
	[AIR_WORKSPACE] = "the workspace is missing or too small",
	[AIR_UNSUPPORTED] = "valid, but no executor here can do it",
	[AIR_NO_MEMORY] = "out of memory",
	[AIR_NO_DEVICE] = "no such device",
	[AIR_DEVICE_FAULT] = "the operator broke the device's context",
	[AIR_DEVICE_LOST] = "lost when another operator broke the device",
	[AIR_NO_WORKER] = "no worker drains the channel",
	[AIR_WORKER_DIED] = "outstanding when the worker died",
	[AIR_CHANNEL_DEAD] = "the channel's memory is gone or damaged",
	[AIR_RESET] = "an administrator reset the channel",
	[AIR_PERMISSION] = "permission denied",
	[AIR_MEMLOCK] = "the limit of locked memory is reached",
	[AIR_QUOTA] = "the user's quota is reached",
	[AIR_SYSTEM] = "a system call failed",
	[AIR_FORKED] = "used in a child of the process that created it",
	[AIR_ABI] = "the other side is too old or too new",
};

const char *air_status_string(air_status status)
{
	if ((unsigned int)status > 255 || !sentences[status])
		return "unknown status";
	return sentences[status];
}

static __thread struct {
	const char *text;
	char composed[320];
} last;

const char *air_last_error(void)
{
	return last.text ? last.text : "";
}

air_status air_error_set(air_status status, const char *fmt, ...)
{
	char text[sizeof(last.composed)];
	va_list args;

	/* By way of a copy: an argument may be the sentence before. */
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	__builtin_memcpy(last.composed, text, sizeof(text));
	last.text = last.composed;
	return status;
}

air_status air_error_static(air_status status, const char *text)
{
	last.text = text;
	return status;
}

#define STRING_(x) #x
#define STRING(x)  STRING_(x)

const char *air_version(void)
{
	return STRING(AIR_VERSION_MAJOR) "." STRING(
		AIR_VERSION_MINOR) "." STRING(AIR_VERSION_PATCH);
}
