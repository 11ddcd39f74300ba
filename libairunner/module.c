// SPDX-License-Identifier: MIT
/*
 * Device code of the user's own: modules and functions.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "libairunner/channel.h"
#include "libairunner/error.h"
#include "libairunner/module.h"

/* Behind the image: the worker's sentence about it, and a function record. */
#define TEXT_BYTES sizeof(((struct airunner_desc_reply *)0)->why)

_Static_assert(AIR_MAX_PARAMS == AIRUNNER_MAX_PARAMS, "the ABI's number");

static size_t text_offset(const struct air_module *m)
{
	return (m->bytes + 15) & ~(size_t)15;
}

static size_t record_offset(const struct air_module *m)
{
	return text_offset(m) + TEXT_BYTES;
}

static void *at(const struct air_module *m, size_t offset)
{
	return (char *)air_buffer_data(m->buf) + offset;
}

static uint64_t ref(const struct air_module *m, size_t offset)
{
	return air_buffer_ref(m->buf, offset).bits;
}

static air_status worker_says(air_status status, const char *text, size_t size,
			      const char *what)
{
	char sentence[TEXT_BYTES];

	memcpy(sentence, text, size);
	sentence[size - 1] = '\0';
	return air_error_set(status, "%s: %s", what,
			     sentence[0] ? sentence :
					   air_status_string(status));
}

/* ---------------------------------------------------------- to the worker */

static air_status load(struct air_module *m)
{
	struct air_call call;
	struct air_cqe cqe;
	air_status status;

	memset(at(m, text_offset(m)), 0, TEXT_BYTES);
	memset(&call, 0, sizeof(call));
	call.word[0] = airunner_sqe_head(AIRUNNER_OP_MODULE_LOAD, 0, 0, m->id);
	call.word[1] = ref(m, 0);
	call.word[2] = ref(m, text_offset(m));
	call.word[AIRUNNER_WORD_ARG] = m->bytes;
	status = air_channel_call(m->ch, &call, &cqe, NULL);
	if (status != AIR_OK || cqe.status == AIRUNNER_S_OK)
		return status;
	return worker_says((air_status)cqe.status, at(m, text_offset(m)),
			   TEXT_BYTES, "module");
}

/* The caller holds ch->replay_lock: there is one record a module. */
static air_status look_up(struct air_function *f)
{
	struct air_module *m = f->module;
	struct airunner_function_record *record = at(m, record_offset(m)), got;
	struct air_call call;
	struct air_cqe cqe;
	air_status status;

	memset(record, 0, sizeof(*record));
	record->size = sizeof(*record);
	record->module = m->id;
	strcpy(record->name, f->name);
	memset(&call, 0, sizeof(call));
	call.word[0] = airunner_sqe_head(AIRUNNER_OP_FUNCTION_GET, 0, 0, f->id);
	call.word[1] = ref(m, record_offset(m));
	status = air_channel_call(m->ch, &call, &cqe, NULL);
	if (status != AIR_OK)
		return status;
	memcpy(&got, record, sizeof(got));
	if (cqe.status != AIRUNNER_S_OK)
		return worker_says((air_status)cqe.status, got.why,
				   sizeof(got.why), f->name);
	f->info.n_params =
		got.n_params < AIR_MAX_PARAMS ? got.n_params : AIR_MAX_PARAMS;
	f->info.param_bytes = got.param_bytes;
	f->info.max_threads = got.max_threads;
	f->info.static_shared = got.static_shared;
	for (uint32_t i = 0; i < f->info.n_params; i++) {
		f->info.param[i].offset = got.param[i].offset;
		f->info.param[i].size = got.param[i].size;
	}
	return AIR_OK;
}

/* What is on a list stays there: unloading takes ch->replay_lock. */
air_status air_module_replay(struct air_channel *ch)
{
	air_status status = AIR_OK;
	struct air_list *pos, *fpos;

	for (pos = ch->modules.next; pos != &ch->modules && status == AIR_OK;
	     pos = pos->next) {
		struct air_module *m =
			air_list_entry(pos, struct air_module, node);

		status = air_replay_status(load(m));
		for (fpos = m->functions.next;
		     fpos != &m->functions && status == AIR_OK;
		     fpos = fpos->next)
			status = air_replay_status(look_up(air_list_entry(
				fpos, struct air_function, node)));
	}
	return status;
}

/* ----------------------------------------------------------------- modules */

static air_status load_and_list(struct air_module *m)
{
	struct air_channel *ch = m->ch;
	air_status status;

	for (;;) {
		status = air_channel_settle(ch);
		if (status != AIR_OK)
			return status;
		pthread_mutex_lock(&ch->lock);
		m->id = air_ids_take(&ch->module_ids);
		pthread_mutex_unlock(&ch->lock);
		if (!m->id)
			return air_error_set(AIR_QUOTA,
					     "the channel has %u modules",
					     AIR_IDS_MAX);
		pthread_mutex_lock(&ch->replay_lock);
		status = load(m);
		pthread_mutex_lock(&ch->lock);
		if (status == AIR_OK && air_channel_is_settled(ch))
			air_list_append(&ch->modules, &m->node);
		else if (status != AIR_OK && status != AIR_NO_WORKER)
			air_ids_give(&ch->module_ids, m->id);
		pthread_mutex_unlock(&ch->lock);
		pthread_mutex_unlock(&ch->replay_lock);
		if (status != AIR_WORKER_DIED &&
		    (status != AIR_OK || !air_list_empty(&m->node)))
			return status;
	}
}

air_status air_module_load(air_channel *ch, const void *image, size_t bytes,
			   air_module **out)
{
	struct air_module *m;
	air_status status;

	if (!ch || !image || !bytes || !out)
		return air_error_set(AIR_BAD_ARGUMENT, "module: %s",
				     !ch    ? "channel is NULL" :
				     !image ? "image is NULL" :
				     !out   ? "out is NULL" :
					      "0 bytes");
	status = air_channel_usable(ch);
	if (status != AIR_OK)
		return status;
	if (bytes > AIRUNNER_OFFSET_MASK / 2)
		return air_error_set(AIR_BAD_ARGUMENT,
				     "module: %zu bytes are no image", bytes);
	m = calloc(1, sizeof(*m));
	if (!m)
		return air_error_static(AIR_NO_MEMORY,
					"no memory for a module");
	m->ch = ch;
	m->bytes = bytes;
	air_list_init(&m->functions);
	air_list_init(&m->node);
	air_list_init(&m->unload.node);
	status = air_buffer_alloc(
		ch, record_offset(m) + sizeof(struct airunner_function_record),
		AIR_HOST, &m->buf);
	if (status != AIR_OK)
		goto fail;
	memcpy(at(m, 0), image, bytes);
	status = load_and_list(m);
	if (status != AIR_OK)
		goto fail_buffer;
	*out = m;
	return AIR_OK;
fail_buffer:
	air_buffer_free(m->buf);
fail:
	free(m);
	return status;
}

static air_status cannot_read(const char *path)
{
	return air_error_set(AIR_SYSTEM, "%s: %s", path, strerror(errno));
}

air_status air_module_load_file(air_channel *ch, const char *path,
				air_module **out)
{
	char *image = NULL;
	air_status status;
	struct stat st;
	size_t size;
	FILE *f;

	if (!path)
		return air_error_static(AIR_BAD_ARGUMENT,
					"module: path is NULL");
	f = fopen(path, "rbe");
	if (!f)
		return cannot_read(path);
	if (fstat(fileno(f), &st)) {
		status = cannot_read(path);
		goto out;
	}
	if (!S_ISREG(st.st_mode)) {
		status = air_error_set(AIR_SYSTEM, "%s: not a file", path);
		goto out;
	}
	/* One byte more, a zero: text (PTX) must end with one. */
	size = (size_t)st.st_size;
	image = calloc(1, size + 1);
	if (!image) {
		status = air_error_set(AIR_NO_MEMORY,
				       "%s: no memory for %zu bytes", path,
				       size);
		goto out;
	}
	size = fread(image, 1, size, f);
	if (ferror(f)) {
		status = cannot_read(path);
		goto out;
	}
	status = air_module_load(ch, image, size + 1, out);
out:
	free(image);
	fclose(f);
	return status;
}

static void free_module(struct air_module *m)
{
	struct air_list *pos, *next;

	air_list_each(pos, next, &m->functions) {
		struct air_function *f =
			air_list_entry(pos, struct air_function, node);

		air_ids_give(&m->ch->function_ids, f->id);
		free(f);
	}
	air_ids_give(&m->ch->module_ids, m->id);
	free(m);
}

static void unload_submitted(struct air_deferred *d, uint64_t end)
{
	free_module(air_list_entry(d, struct air_module, unload));
}

air_status air_module_unload(air_module *m)
{
	struct air_channel *ch;
	air_status status;

	if (!m)
		return AIR_OK;
	ch = m->ch;
	status = air_channel_usable(ch);
	if (status != AIR_OK)
		return status;
	pthread_mutex_lock(&ch->replay_lock);
	air_buffer_free(m->buf);
	pthread_mutex_lock(&ch->lock);
	air_list_remove(&m->node);
	m->unload.word0 =
		airunner_sqe_head(AIRUNNER_OP_MODULE_UNLOAD, 0, 0, m->id);
	m->unload.done = unload_submitted;
	air_deferred_submit(ch, &m->unload);
	pthread_mutex_unlock(&ch->lock);
	pthread_mutex_unlock(&ch->replay_lock);
	return AIR_OK;
}

void air_module_destroy_all(struct air_channel *ch)
{
	struct air_list *pos, *next;

	air_list_each(pos, next, &ch->modules)
		free_module(air_list_entry(pos, struct air_module, node));
	/* Those whose MODULE_UNLOAD never found room. */
	air_list_each(pos, next, &ch->deferred) {
		struct air_deferred *d =
			air_list_entry(pos, struct air_deferred, node);

		if (d->done != unload_submitted)
			continue;
		air_list_remove(pos);
		free_module(air_list_entry(d, struct air_module, unload));
	}
}

/* --------------------------------------------------------------- functions */

const char *air_function_name(struct air_channel *ch, uint32_t id)
{
	struct air_list *pos, *fpos, *next, *fnext;

	air_list_each(pos, next, &ch->modules) {
		struct air_module *m =
			air_list_entry(pos, struct air_module, node);

		air_list_each(fpos, fnext, &m->functions) {
			struct air_function *f =
				air_list_entry(fpos, struct air_function, node);

			if (f->id == id)
				return f->name;
		}
	}
	return NULL;
}

static struct air_function *find(struct air_module *m, const char *name)
{
	struct air_list *pos, *next;

	air_list_each(pos, next, &m->functions) {
		struct air_function *f =
			air_list_entry(pos, struct air_function, node);

		if (!strcmp(f->name, name))
			return f;
	}
	return NULL;
}

/* The caller holds ch->replay_lock. AIR_WORKER_DIED: try again. */
static air_status get(struct air_module *m, struct air_function *f)
{
	struct air_channel *ch = m->ch;
	air_status status;

	pthread_mutex_lock(&ch->lock);
	f->id = air_ids_take(&ch->function_ids);
	pthread_mutex_unlock(&ch->lock);
	if (!f->id)
		return air_error_set(AIR_QUOTA, "the channel has %u functions",
				     AIR_IDS_MAX);
	status = look_up(f);
	pthread_mutex_lock(&ch->lock);
	if (status == AIR_OK && air_channel_is_settled(ch))
		air_list_append(&m->functions, &f->node);
	else if (status == AIR_OK)
		status = AIR_WORKER_DIED;
	else if (status != AIR_NO_WORKER)
		air_ids_give(&ch->function_ids, f->id);
	/* A worker that has just come does not know the module yet. */
	if (status == AIR_BAD_ID && !air_channel_is_settled(ch))
		status = AIR_WORKER_DIED;
	pthread_mutex_unlock(&ch->lock);
	return status;
}

air_status air_function_get(air_module *m, const char *name, air_function **out)
{
	struct air_function *f;
	air_status status;
	size_t len;

	if (!m || !name || !out)
		return air_error_set(AIR_BAD_ARGUMENT, "function: %s is NULL",
				     !m	   ? "module" :
				     !name ? "name" :
					     "out");
	len = strlen(name);
	if (!len || len >= AIRUNNER_FUNCTION_NAME)
		return air_error_set(AIR_BAD_ARGUMENT,
				     "function: a name of %zu characters; 1 to "
				     "%d are possible",
				     len, AIRUNNER_FUNCTION_NAME - 1);
	status = air_channel_usable(m->ch);
	if (status != AIR_OK)
		return status;
	f = calloc(1, sizeof(*f) + len + 1);
	if (!f)
		return air_error_static(AIR_NO_MEMORY,
					"no memory for a function");
	f->module = m;
	f->info.size = sizeof(f->info);
	air_list_init(&f->node);
	memcpy(f->name, name, len);
	do {
		struct air_function *known;

		status = air_channel_settle(m->ch);
		if (status != AIR_OK)
			break;
		pthread_mutex_lock(&m->ch->replay_lock);
		known = find(m, name);
		status = known ? AIR_OK : get(m, f);
		pthread_mutex_unlock(&m->ch->replay_lock);
		if (known) {
			free(f);
			f = known;
		}
	} while (status == AIR_WORKER_DIED);
	if (status != AIR_OK) {
		free(f);
		return status;
	}
	*out = f;
	return AIR_OK;
}

air_status air_function_info(const air_function *f,
			     struct air_function_info *info)
{
	uint32_t size;

	if (!f || !info)
		return air_error_set(AIR_BAD_ARGUMENT, "function: %s is NULL",
				     f ? "info" : "function");
	size = info->size;
	if (size < sizeof(size))
		return air_error_set(AIR_BAD_ARGUMENT,
				     "air_function_info: size is %u; set it to "
				     "sizeof(*info)",
				     size);
	if (size > sizeof(*info))
		size = sizeof(*info);
	memcpy(info, &f->info, size);
	info->size = size;
	return AIR_OK;
}
