// SPDX-License-Identifier: MIT
/*
 * From the numbers in a failed completion to a sentence: the slot still holds
 * the submission, so its operands can be named.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <airunner.h>

#include "libairunner/channel.h"
#include "libairunner/descriptor_object.h"
#include "libairunner/error.h"
#include "libairunner/module.h"

struct text {
	char buf[256];
	size_t len;
};

static void add(struct text *t, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void add(struct text *t, const char *fmt, ...)
{
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(t->buf + t->len, sizeof(t->buf) - t->len, fmt, args);
	va_end(args);
	if (n > 0)
		t->len += (size_t)n;
	if (t->len >= sizeof(t->buf))
		t->len = sizeof(t->buf) - 1;
}

static const char *opcode_name(uint8_t opcode)
{
	switch (opcode) {
	case AIRUNNER_OP_NOP:
		return "nop";
	case AIRUNNER_OP_EXEC:
		return "execution";
	case AIRUNNER_OP_DESC_CREATE:
		return "creation of a descriptor";
	case AIRUNNER_OP_DESC_DESTROY:
		return "destruction of a descriptor";
	case AIRUNNER_OP_BUFFER_RELEASE:
		return "release of a buffer";
	case AIRUNNER_OP_BUFFER_ALLOC:
		return "allocation of device memory";
	case AIRUNNER_OP_MODULE_LOAD:
		return "loading of a module";
	case AIRUNNER_OP_MODULE_UNLOAD:
		return "unloading of a module";
	case AIRUNNER_OP_FUNCTION_GET:
		return "look-up of a function";
	case AIRUNNER_OP_LAUNCH:
		return "launch";
	case AIRUNNER_OP_CANCELED:
		return "canceled submission";
	default:
		return NULL;
	}
}

/* Where @payload points, and what is there. */
static void add_reference(struct air_channel *ch, struct text *t,
			  uint64_t payload)
{
	uint32_t handle = airunner_ref_handle(payload);
	uint64_t offset = airunner_ref_offset(payload);
	struct air_buffer *buf;

	if (payload == AIRUNNER_REF_NONE) {
		add(t, " left out");
		return;
	}
	if (handle == AIRUNNER_HANDLE_REGION) {
		add(t, " at offset %llu of the channel's region",
		    (unsigned long long)offset);
		return;
	}
	if (handle == AIR_HANDLE_FREED) {
		add(t, " at offset %llu of a buffer that was freed",
		    (unsigned long long)offset);
		return;
	}
	buf = air_buffer_by_handle(ch, handle);
	if (!buf)
		add(t, " at offset %llu of handle %u, which is no buffer",
		    (unsigned long long)offset, handle);
	else if (buf->lost)
		add(t,
		    " in device memory (handle %u) that went with its worker",
		    handle);
	else
		add(t, " at offset %llu of a buffer (handle %u) of %zu bytes",
		    (unsigned long long)offset, handle, buf->mapping.size);
}

static void add_operand(struct air_channel *ch, struct text *t,
			const struct air_descriptor *d, uint64_t index,
			uint32_t operand)
{
	const uint64_t *slot = ch->ring.sq + air_ring_slot(&ch->ring, index) *
						     AIRUNNER_SQE_WORDS;
	const char *name = NULL;

	if (!operand || operand >= AIRUNNER_WORD_ARG)
		return;
	if (operand == AIRUNNER_WORD_WORKSPACE)
		name = "workspace";
	else if (d && operand <= d->plan.op->n_tensors)
		name = d->plan.op->operand[operand - 1];
	if (name)
		add(t, ": %s (operand %u)", name, operand);
	else
		add(t, ": operand %u", operand);
	add_reference(ch, t,
		      airunner_payload(air_load(&slot[operand], RELAXED)));
	if (!d)
		return;
	if (operand == AIRUNNER_WORD_WORKSPACE) {
		add(t, ", needs %llu bytes", (unsigned long long)d->workspace);
	} else if (operand <= AIRUNNER_MAX_TENSORS) {
		const struct air_extent *x = &d->plan.extent[operand - 1];

		if (x->below)
			add(t,
			    ", needs %llu bytes before it and %llu from it on",
			    (unsigned long long)x->below,
			    (unsigned long long)x->above);
		else
			add(t, ", needs %llu bytes",
			    (unsigned long long)x->above);
		if (x->present && x->align > 1)
			add(t, " aligned to %u", x->align);
	}
}

void air_channel_explain(struct air_channel *ch, uint64_t index, uint64_t meta,
			 const struct air_cqe *cqe)
{
	const uint64_t *slot = ch->ring.sq + air_ring_slot(&ch->ring, index) *
						     AIRUNNER_SQE_WORDS;
	uint8_t opcode = airunner_sqe_opcode(air_load(slot, RELAXED));
	uint32_t id = (uint32_t)(meta & AIR_SLOT_ID);
	struct air_descriptor *d = NULL;
	const char *name = NULL;
	struct text t = { .len = 0 };

	t.buf[0] = '\0';
	pthread_mutex_lock(&ch->lock);
	if (opcode == AIRUNNER_OP_EXEC || opcode == AIRUNNER_OP_CANCELED)
		d = air_descriptor_find(ch, id);
	if (opcode == AIRUNNER_OP_LAUNCH)
		name = air_function_name(ch, id);
	if (d)
		add(&t, "%s", d->plan.op->name);
	else if (name)
		add(&t, "launch of %s", name);
	else if (opcode == AIRUNNER_OP_EXEC)
		add(&t, "execution of descriptor %u", id);
	else if (opcode_name(opcode))
		add(&t, "%s", opcode_name(opcode));
	else
		add(&t, "opcode %u", opcode);
	if (opcode == AIRUNNER_OP_EXEC)
		add_operand(ch, &t, d, index, cqe->detail & 0xf);
	else if (opcode == AIRUNNER_OP_LAUNCH && cqe->detail)
		add(&t, ": pointer %u", cqe->detail);
	pthread_mutex_unlock(&ch->lock);
	air_error_set((air_status)cqe->status, "%s: %s", t.buf,
		      air_status_string((air_status)cqe->status));
}
