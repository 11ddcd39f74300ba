// SPDX-License-Identifier: MIT
/*
 * Users' kernels through the ring: modules, functions, launches. Which
 * executor takes them: the first that can.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "ops/worker/internal.h"

static struct air_wexec *find_executor(struct air_worker *w)
{
	for (const uint32_t *id = w->prefer; *id; id++)
		if (w->exec[*id].ops->module_load)
			return &w->exec[*id];
	return NULL;
}

void air_wmodule_free(struct air_wchannel *ch, struct air_wmodule *m)
{
	struct air_wexec *x = &ch->w->exec[m->executor];

	if (x->ops)
		x->ops->module_unload(x->ex, m->module);
	free(m);
}

static air_status load(struct air_wchannel *ch, uint32_t id, const void *image,
		       uint64_t bytes, struct air_error *why)
{
	struct air_wexec *x = find_executor(ch->w);
	struct air_wmodule *m;
	air_status st;

	if (!x)
		return air_fail(why, AIR_UNSUPPORTED,
				"no executor of this worker takes device code");
	if (id >= AIR_MAX_IDS)
		return air_fail(why, AIR_QUOTA,
				"module %u: a channel's ids end at %u", id,
				AIR_MAX_IDS - 1);
	if (air_table_get(&ch->modules, id))
		return air_fail(why, AIR_BAD_ID, "module %u exists already",
				id);
	st = air_wchannel_use(ch, x->ops->id, why);
	if (st)
		return st;
	m = calloc(1, sizeof(*m));
	if (!m)
		return air_fail(why, AIR_NO_MEMORY, "module %u: no memory", id);
	m->executor = x->ops->id;
	st = x->ops->module_load(x->ex, image, bytes, &m->module, why);
	if (st)
		goto fail;
	if (!air_table_set(&ch->modules, id, m)) {
		x->ops->module_unload(x->ex, m->module);
		st = air_fail(why, AIR_NO_MEMORY, "module %u: no memory", id);
		goto fail;
	}
	return AIR_OK;
fail:
	free(m);
	return st;
}

static void module_load(struct air_wchannel *ch, uint64_t index,
			const struct air_sqe *sqe)
{
	uint64_t bytes = sqe->word[AIRUNNER_WORD_ARG];
	struct air_error why = { "" };
	void *text = NULL, *copy;
	const void *image;
	air_status st;

	if (!air_words_zero(ch, index, sqe, 3, 6))
		return;
	if (!bytes || bytes > AIR_MAX_IMAGE) {
		air_answer_now(ch, index, AIR_BAD_ARGUMENT, AIRUNNER_WORD_ARG);
		return;
	}
	image = air_ref_host(ch, sqe->word[1], bytes, 1, &st);
	if (!image) {
		air_answer_now(ch, index, st, 1);
		return;
	}
	if (sqe->word[2] != AIRUNNER_REF_NONE) {
		text = air_ref_host(ch, sqe->word[2], sizeof(why.text), 1, &st);
		if (!text) {
			air_answer_now(ch, index, st, 2);
			return;
		}
	}
	copy = malloc(bytes);
	if (!copy) {
		air_answer_now(ch, index, AIR_NO_MEMORY, 0);
		return;
	}
	air_copy_in(copy, image, bytes);
	st = load(ch, airunner_sqe_id(sqe->word[0]), copy, bytes, &why);
	free(copy);
	if (text)
		air_copy_out(text, why.text, sizeof(why.text));
	air_answer_now(ch, index, st, 0);
}

/* Its functions are gone at once, the code when nothing runs it any more. */
static void module_unload(struct air_wchannel *ch, uint64_t index,
			  const struct air_sqe *sqe)
{
	uint32_t id = airunner_sqe_id(sqe->word[0]);
	struct air_wmodule *m = air_table_get(&ch->modules, id);
	struct air_late *late;

	if (!air_words_zero(ch, index, sqe, 1, 7))
		return;
	if (!m) {
		air_answer_now(ch, index, AIR_BAD_ID, 0);
		return;
	}
	late = calloc(1, sizeof(*late));
	if (!late) {
		air_answer_now(ch, index, AIR_NO_MEMORY, 0);
		return;
	}
	for (uint32_t i = 0; i < ch->functions.size; i++) {
		struct air_wfunction *f = ch->functions.slot[i];

		if (f && f->module == m) {
			ch->functions.slot[i] = NULL;
			free(f);
		}
	}
	air_table_set(&ch->modules, id, NULL);
	late->kind = AIR_LATE_MODULE;
	late->answer = true;
	late->index = index;
	late->start = ch->w->now;
	late->object = m;
	air_late_add(ch, late);
}

static air_status get(struct air_wchannel *ch, uint32_t id,
		      struct airunner_function_record *record)
{
	struct air_error why = { "" };
	struct air_wfunction *f = NULL;
	struct air_wmodule *m;
	struct air_wexec *x;
	air_status st;

	m = air_table_get(&ch->modules, record->module);
	if (record->size != sizeof(*record)) {
		st = air_fail(&why, AIR_ABI,
			      "function record: size is %u; this build knows %zu",
			      record->size, sizeof(*record));
	} else if (!m) {
		st = air_fail(&why, AIR_BAD_ID, "there is no module %u",
			      record->module);
	} else if (id >= AIR_MAX_IDS) {
		st = air_fail(&why, AIR_QUOTA,
			      "function %u: a channel's ids end at %u", id,
			      AIR_MAX_IDS - 1);
	} else if (air_table_get(&ch->functions, id)) {
		st = air_fail(&why, AIR_BAD_ID, "function %u exists already",
			      id);
	} else if (!memchr(record->name, 0, sizeof(record->name))) {
		st = air_fail(&why, AIR_BAD_ARGUMENT,
			      "function name does not end within %zu bytes",
			      sizeof(record->name));
	} else if (!(f = calloc(1, sizeof(*f)))) {
		st = air_fail(&why, AIR_NO_MEMORY, "function %u: no memory",
			      id);
	} else {
		x = &ch->w->exec[m->executor];
		st = x->ops->function_get(x->ex, m->module, record,
					  &f->function, &why);
	}
	if (!st) {
		f->module = m;
		f->param_bytes = record->param_bytes;
		if (!air_table_set(&ch->functions, id, f))
			st = air_fail(&why, AIR_NO_MEMORY,
				      "function %u: no memory", id);
	}
	if (st)
		free(f);
	memcpy(record->why, why.text, sizeof(record->why));
	return st;
}

static void function_get(struct air_wchannel *ch, uint64_t index,
			 const struct air_sqe *sqe)
{
	const uint64_t in = offsetof(struct airunner_function_record, n_params);
	struct airunner_function_record record = { 0 };
	char *where;
	air_status st;

	if (!air_words_zero(ch, index, sqe, 2, 7))
		return;
	where = air_ref_host(ch, sqe->word[1], sizeof(record), 8, &st);
	if (!where) {
		air_answer_now(ch, index, st, 1);
		return;
	}
	air_copy_in(&record, where, in);
	st = get(ch, airunner_sqe_id(sqe->word[0]), &record);
	air_copy_out(where + in, (char *)&record + in, sizeof(record) - in);
	air_answer_now(ch, index, st, 0);
}

void air_launch_control(struct air_wchannel *ch, uint64_t index,
			const struct air_sqe *sqe)
{
	switch (airunner_sqe_opcode(sqe->word[0])) {
	case AIRUNNER_OP_MODULE_LOAD:
		module_load(ch, index, sqe);
		break;
	case AIRUNNER_OP_MODULE_UNLOAD:
		module_unload(ch, index, sqe);
		break;
	case AIRUNNER_OP_FUNCTION_GET:
		function_get(ch, index, sqe);
		break;
	}
}

/* A launch as the client wrote it, copied. */
struct launch_bytes {
	_Alignas(16) unsigned char bytes[AIRUNNER_MAX_LAUNCH];
};

/* Put the address that a reference stands for into the argument bytes. */
static air_status place(struct air_wchannel *ch, unsigned char *args,
			uint32_t arg_bytes,
			const struct airunner_launch_ref *ref)
{
	struct air_span span;
	uint64_t addr = 0;
	uint64_t offset = airunner_ref_offset(ref->ref);

	if (ref->resv || ref->ref & ~AIRUNNER_PAYLOAD_MASK)
		return AIR_BAD_RESERVED;
	if (arg_bytes < sizeof(addr) ||
	    ref->offset > arg_bytes - sizeof(addr))
		return AIR_BAD_ARGUMENT;
	if (ref->ref != AIRUNNER_REF_NONE) {
		if (!air_buffer_find(ch, airunner_ref_handle(ref->ref), &span))
			return AIR_BAD_HANDLE;
		if (offset > span.size || ref->bytes > span.size - offset)
			return AIR_BAD_RANGE;
		addr = span.addr + offset;
	}
	memcpy(args + ref->offset, &addr, sizeof(addr));
	return AIR_OK;
}

/*
 * Check the copied bytes and make a launch of them. *@detail: for a refused
 * reference its number, 1 is the first.
 */
static air_status decode(struct air_wchannel *ch, struct launch_bytes *in,
			 uint64_t bytes, const struct air_wfunction *f,
			 struct air_launch *launch, uint32_t *detail)
{
	struct airunner_launch_record record;
	struct airunner_launch_ref ref;
	unsigned char *args;
	air_status st;

	memcpy(&record, in->bytes, sizeof(record));
	if (record.size != sizeof(record))
		return AIR_ABI;
	if (record.resv[0] | record.resv[1] | record.resv[2])
		return AIR_BAD_RESERVED;
	if (record.arg_bytes > AIRUNNER_MAX_PARAM_BYTES ||
	    (f->param_bytes && record.arg_bytes != f->param_bytes))
		return AIR_BAD_ARGUMENT;
	if (sizeof(record) + (uint64_t)record.n_refs * sizeof(ref) +
		    record.arg_bytes != bytes)
		return AIR_BAD_ARGUMENT;
	for (int i = 0; i < 3; i++)
		if (!record.grid[i] || !record.block[i])
			return AIR_BAD_ARGUMENT;
	args = in->bytes + sizeof(record) + record.n_refs * sizeof(ref);
	for (uint32_t i = 0; i < record.n_refs; i++) {
		memcpy(&ref, in->bytes + sizeof(record) + i * sizeof(ref),
		       sizeof(ref));
		st = place(ch, args, record.arg_bytes, &ref);
		if (st) {
			*detail = i + 1;
			return st;
		}
	}
	launch->function = f->function;
	memcpy(launch->grid, record.grid, sizeof(launch->grid));
	memcpy(launch->block, record.block, sizeof(launch->block));
	launch->shared_bytes = record.shared_bytes;
	launch->arg_bytes = record.arg_bytes;
	launch->args = args;
	return AIR_OK;
}

bool air_launch_begin(struct air_wchannel *ch, uint64_t index,
		const struct air_sqe *sqe, uint64_t deadline)
{
	uint64_t bytes = sqe->word[AIRUNNER_WORD_ARG];
	uint32_t id = airunner_sqe_id(sqe->word[0]), detail = 0;
	const struct air_wfunction *f = air_table_get(&ch->functions, id);
	struct launch_bytes in;
	struct air_launch launch;
	struct air_work *work;
	const void *record;
	air_status st;

	if (!air_words_zero(ch, index, sqe, 2, 6))
		return true;
	if (!f) {
		air_answer_now(ch, index, AIR_BAD_ID, 0);
		return true;
	}
	if (!air_may_start(ch, airunner_sqe_flags(sqe->word[0]),
			   f->module->executor))
		return false;
	if (bytes < sizeof(struct airunner_launch_record) ||
	    bytes > sizeof(in.bytes)) {
		air_answer_now(ch, index, AIR_BAD_ARGUMENT, AIRUNNER_WORD_ARG);
		return true;
	}
	record = air_ref_host(ch, sqe->word[1], bytes, 8, &st);
	if (!record) {
		air_answer_now(ch, index, st, 1);
		return true;
	}
	air_copy_in(in.bytes, record, bytes);
	ch->bind_executor = f->module->executor;
	st = decode(ch, &in, bytes, f, &launch, &detail);
	if (st) {
		air_answer_now(ch, index, st, detail);
		return true;
	}
	work = air_work_get(ch->w);
	if (!work) {
		air_answer_now(ch, index, AIR_NO_MEMORY, 0);
		return true;
	}
	memset(work, 0, sizeof(*work));
	work->ch = ch;
	work->executor = f->module->executor;
	work->ch_priv = ch->ex_priv[work->executor];
	work->index = index;
	work->launch = &launch;
	work->flags = airunner_sqe_flags(sqe->word[0]);
	work->start = ch->w->now;
	work->deadline = deadline;
	return air_work_start(work);
}
