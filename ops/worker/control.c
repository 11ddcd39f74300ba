// SPDX-License-Identifier: MIT
/*
 * Descriptors and buffers, made and let go through the ring.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "ops/worker/internal.h"

void air_copy_in(void *to, const void *from, uint64_t bytes)
{
	const uint64_t *from8 = from;
	const uint8_t *from1;
	uint8_t *to1 = to;

	for (; bytes >= 8 && !((uintptr_t)from8 & 7); bytes -= 8, to1 += 8) {
		uint64_t word = air_load(from8++, RELAXED);

		memcpy(to1, &word, 8);
	}
	for (from1 = (const uint8_t *)from8; bytes; bytes--)
		*to1++ = air_load(from1++, RELAXED);
}

void air_copy_out(void *to, const void *from, uint64_t bytes)
{
	const uint8_t *from1 = from;
	uint64_t *to8 = to;
	uint8_t *to1;

	for (; bytes >= 8 && !((uintptr_t)to8 & 7); bytes -= 8, from1 += 8) {
		uint64_t word;

		memcpy(&word, from1, 8);
		air_store(to8++, word, RELAXED);
	}
	for (to1 = (uint8_t *)to8; bytes; bytes--)
		air_store(to1++, *from1++, RELAXED);
}

void *air_ref_host(struct air_wchannel *ch, uint64_t ref, uint64_t bytes,
		   uint32_t align, air_status *status)
{
	const struct air_wbuf *buf = NULL;
	uint64_t offset = airunner_ref_offset(ref);
	char *p;

	if (airunner_ref_handle(ref) != AIRUNNER_HANDLE_NONE)
		buf = air_buffer_get(ch, airunner_ref_handle(ref));
	if (!buf || !buf->b.host) {
		*status = AIR_BAD_HANDLE;
		return NULL;
	}
	if (offset > buf->b.size || bytes > buf->b.size - offset) {
		*status = AIR_BAD_RANGE;
		return NULL;
	}
	p = (char *)buf->b.host + offset;
	if ((uintptr_t)p & (align - 1)) {
		*status = AIR_BAD_ALIGN;
		return NULL;
	}
	return p;
}

void air_wdesc_free(struct air_wchannel *ch, struct air_wdesc *wd)
{
	struct air_wexec *x = &ch->w->exec[wd->executor];

	if (x->ops)
		x->ops->unplan(x->ex, wd->priv);
	free(wd);
}

/* Make the descriptor in *@out; the reply says what came of it. */
static air_status make_desc(struct air_wchannel *ch, uint32_t id,
			    const struct airunner_desc *desc,
			    struct air_wdesc **out, struct air_error *why)
{
	struct air_wdesc *wd;
	struct air_wexec *x;
	air_status st;

	if (id >= AIR_MAX_IDS)
		return air_fail(why, AIR_QUOTA,
				"descriptor %u: a channel's ids end at %u", id,
				AIR_MAX_IDS - 1);
	if (air_table_get(&ch->descs, id))
		return air_fail(why, AIR_BAD_ID, "descriptor %u exists already",
				id);
	wd = calloc(1, sizeof(*wd));
	if (!wd)
		return air_fail(why, AIR_NO_MEMORY, "descriptor %u: no memory",
				id);
	st = air_plan_init(&wd->plan, desc, why);
	if (!st)
		st = air_executor_choose(ch, wd, why);
	if (st)
		goto fail;
	if (!air_table_set(&ch->descs, id, wd)) {
		st = air_fail(why, AIR_NO_MEMORY, "descriptor %u: no memory",
			      id);
		goto unplan;
	}
	x = &ch->w->exec[wd->executor];
	if (x->ops->desc_set)
		st = x->ops->desc_set(x->ex, ch->ex_priv[wd->executor], id,
				      wd->priv);
	if (!st) {
		*out = wd;
		return AIR_OK;
	}
	air_table_set(&ch->descs, id, NULL);
	air_fail(why, st, "descriptor %u: %s: %s", id, x->ops->name,
		 air_status_string(st));
unplan:
	air_wdesc_free(ch, wd);
	return st;
fail:
	free(wd);
	return st;
}

static void desc_create(struct air_wchannel *ch, uint64_t index,
			const struct air_sqe *sqe)
{
	struct airunner_desc_reply reply = { 0 };
	struct airunner_desc_record *record;
	struct air_error why = { "" };
	struct airunner_desc desc;
	struct air_wdesc *wd = NULL;
	air_status st;

	if (!air_words_zero(ch, index, sqe, 2, 7))
		return;
	record = air_ref_host(ch, sqe->word[1], sizeof(*record), 8, &st);
	if (!record) {
		air_answer_now(ch, index, st, 1);
		return;
	}
	air_copy_in(&desc, &record->desc, sizeof(desc));
	st = make_desc(ch, airunner_sqe_id(sqe->word[0]), &desc, &wd, &why);
	if (!st) {
		reply.workspace = wd->plan.workspace;
		reply.executor = wd->executor;
	}
	memcpy(reply.why, why.text, sizeof(reply.why));
	air_copy_out(&record->reply, &reply, sizeof(reply));
	air_answer_now(ch, index, st, 0);
}

static struct air_late *late_new(struct air_wchannel *ch, uint64_t index,
				 enum air_late_kind kind)
{
	struct air_late *late = calloc(1, sizeof(*late));

	if (!late) {
		air_answer_now(ch, index, AIR_NO_MEMORY, 0);
		return NULL;
	}
	late->kind = kind;
	late->answer = true;
	late->index = index;
	late->start = ch->w->now;
	return late;
}

static void desc_destroy(struct air_wchannel *ch, uint64_t index,
			 const struct air_sqe *sqe)
{
	uint32_t id = airunner_sqe_id(sqe->word[0]);
	struct air_wdesc *wd = air_table_get(&ch->descs, id);
	struct air_late *late;
	struct air_wexec *x;

	if (!air_words_zero(ch, index, sqe, 1, 7))
		return;
	if (!wd) {
		air_answer_now(ch, index, AIR_BAD_ID, 0);
		return;
	}
	late = late_new(ch, index, AIR_LATE_DESC);
	if (!late)
		return;
	late->object = wd;
	x = &ch->w->exec[wd->executor];
	if (x->ops->desc_set)
		x->ops->desc_set(x->ex, ch->ex_priv[wd->executor], id, NULL);
	air_table_set(&ch->descs, id, NULL);
	air_late_add(ch, late);
}

/* The handle is free at once, the memory when nothing uses it any more. */
static void forget(struct air_wchannel *ch, uint32_t handle,
		   struct air_wbuf *buf, struct air_late *late)
{
	late->id = handle;
	late->object = buf;
	for (uint32_t id = 1; ch->opened >> id; id++) {
		struct air_wexec *x = &ch->w->exec[id];

		if ((ch->opened & (1U << id)) && x->ops->buffer_set)
			x->ops->buffer_set(x->ex, ch->ex_priv[id], handle,
					   NULL);
	}
	air_table_set(&ch->bufs, handle, NULL);
	air_late_add(ch, late);
}

static void buffer_release(struct air_wchannel *ch, uint64_t index,
			   const struct air_sqe *sqe)
{
	uint32_t handle = airunner_sqe_id(sqe->word[0]);
	struct air_wbuf *buf = NULL;
	struct air_late *late;

	if (!air_words_zero(ch, index, sqe, 1, 7))
		return;
	if (handle && handle < AIRUNNER_HANDLE_NONE)
		buf = air_buffer_get(ch, handle);
	if (!buf) {
		air_answer_now(ch, index, AIR_BAD_HANDLE, 0);
		return;
	}
	late = late_new(ch, index, AIR_LATE_BUFFER);
	if (late)
		forget(ch, handle, buf, late);
}

static void buffer_alloc(struct air_wchannel *ch, uint64_t index,
			 const struct air_sqe *sqe)
{
	uint32_t handle = airunner_sqe_id(sqe->word[0]);
	uint64_t bytes = sqe->word[AIRUNNER_WORD_ARG];
	air_status st;

	if (!air_words_zero(ch, index, sqe, 1, 6))
		return;
	if (!bytes || bytes > AIRUNNER_OFFSET_MASK) {
		air_answer_now(ch, index, AIR_BAD_ARGUMENT, AIRUNNER_WORD_ARG);
		return;
	}
	st = air_buffer_alloc_device(ch, handle, bytes);
	air_answer_now(ch, index, st, 0);
}

void air_control(struct air_wchannel *ch, uint64_t index,
		 const struct air_sqe *sqe)
{
	switch (airunner_sqe_opcode(sqe->word[0])) {
	case AIRUNNER_OP_DESC_CREATE:
		desc_create(ch, index, sqe);
		break;
	case AIRUNNER_OP_DESC_DESTROY:
		desc_destroy(ch, index, sqe);
		break;
	case AIRUNNER_OP_BUFFER_RELEASE:
		buffer_release(ch, index, sqe);
		break;
	case AIRUNNER_OP_BUFFER_ALLOC:
		buffer_alloc(ch, index, sqe);
		break;
	}
}

air_status air_buffer_drop(struct air_wchannel *ch, uint32_t handle)
{
	struct air_wbuf *buf = handle ? air_table_get(&ch->bufs, handle) : NULL;
	struct air_late *late;

	if (!buf)
		return AIR_BAD_HANDLE;
	late = calloc(1, sizeof(*late));
	if (!late)
		return AIR_NO_MEMORY;
	late->kind = AIR_LATE_BUFFER;
	/* Everything taken so far may use it. */
	late->index = ch->next;
	forget(ch, handle, buf, late);
	return AIR_OK;
}
