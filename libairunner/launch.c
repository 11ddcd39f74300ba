// SPDX-License-Identifier: MIT
/*
 * Launches of the user's own kernels.
 */
#include <string.h>

#include "libairunner/channel.h"
#include "libairunner/error.h"
#include "libairunner/module.h"

static air_status check_config(const struct air_function *f,
			       const struct air_launch_config *c)
{
	for (int i = 0; i < 3; i++)
		if (!c->grid[i] || !c->block[i])
			return air_error_set(
				AIR_BAD_ARGUMENT,
				"launch of %s: %s dimension %d is 0", f->name,
				c->grid[i] ? "block" : "grid", i);
	if (f->info.max_threads &&
	    (uint64_t)c->block[0] * c->block[1] * c->block[2] >
		    f->info.max_threads)
		return air_error_set(AIR_BAD_ARGUMENT,
				     "launch of %s: a block of %u x %u x %u; "
				     "it can have %u threads",
				     f->name, c->block[0], c->block[1],
				     c->block[2], f->info.max_threads);
	if (c->timeout_ms > UINT16_MAX)
		return air_error_set(AIR_BAD_ARGUMENT,
				     "launch of %s: timeout_ms is %u, above %u",
				     f->name, c->timeout_ms, UINT16_MAX);
	return AIR_OK;
}

static air_status check_args(const struct air_function *f, const void *args,
			     uint32_t arg_bytes,
			     const struct air_pointer *pointers, uint32_t n)
{
	if (arg_bytes > AIRUNNER_MAX_PARAM_BYTES)
		return air_error_set(AIR_BAD_ARGUMENT,
				     "launch of %s: %u bytes of arguments; at "
				     "most %u are possible",
				     f->name, arg_bytes,
				     AIRUNNER_MAX_PARAM_BYTES);
	if (f->info.param_bytes && arg_bytes != f->info.param_bytes)
		return air_error_set(
			AIR_BAD_ARGUMENT,
			"launch of %s: %u bytes of arguments; it takes %u",
			f->name, arg_bytes, f->info.param_bytes);
	if ((arg_bytes && !args) || (n && !pointers))
		return air_error_set(AIR_BAD_ARGUMENT,
				     "launch of %s: %s is NULL", f->name,
				     n && !pointers ? "pointers" : "args");
	if (n > AIRUNNER_MAX_PARAM_BYTES / 8)
		return air_error_set(
			AIR_BAD_ARGUMENT,
			"launch of %s: %u pointers do not fit %u bytes",
			f->name, n, AIRUNNER_MAX_PARAM_BYTES);
	for (uint32_t i = 0; i < n; i++)
		if (arg_bytes < 8 || pointers[i].offset > arg_bytes - 8)
			return air_error_set(
				AIR_BAD_ARGUMENT,
				"launch of %s: pointer %u at offset %u leaves "
				"the %u bytes of arguments",
				f->name, i + 1, pointers[i].offset, arg_bytes);
	return AIR_OK;
}

static void write_record(struct air_channel *ch, char *to,
			 const struct air_launch_config *c, const void *args,
			 uint32_t arg_bytes, const struct air_pointer *pointers,
			 uint32_t n)
{
	struct airunner_launch_record record = {
		.size = sizeof(record),
		.n_refs = n,
		.shared_bytes = c->shared_bytes,
		.arg_bytes = arg_bytes,
	};

	memcpy(record.grid, c->grid, sizeof(record.grid));
	memcpy(record.block, c->block, sizeof(record.block));
	memcpy(to, &record, sizeof(record));
	to += sizeof(record);
	for (uint32_t i = 0; i < n; i++) {
		struct airunner_launch_ref ref = {
			.ref = air_channel_live(ch, pointers[i].ref.bits),
			.bytes = pointers[i].bytes,
			.offset = pointers[i].offset,
		};

		memcpy(to, &ref, sizeof(ref));
		to += sizeof(ref);
	}
	if (arg_bytes)
		memcpy(to, args, arg_bytes);
}

static air_status submit(struct air_channel *ch, uint32_t id,
			 const struct air_launch_config *c, uint64_t ref,
			 uint32_t bytes, air_token *token)
{
	struct air_call call;

	memset(&call, 0, sizeof(call));
	call.word[0] = airunner_sqe_head(AIRUNNER_OP_LAUNCH, 0, 0, id);
	call.word[1] = ref;
	call.word[AIRUNNER_WORD_ARG] = bytes;
	call.flags = c->flags;
	call.timeout_ms = (uint16_t)c->timeout_ms;
	call.user_data = c->user_data;
	return air_submit(ch, &call, 1, token);
}

air_status air_launch(air_function *f, const struct air_launch_config *config,
		      const void *args, uint32_t arg_bytes,
		      const struct air_pointer *pointers, uint32_t n_pointers,
		      air_token *token)
{
	struct air_launch_config c;
	struct air_channel *ch;
	air_token mine = 0;
	air_status status;
	uint32_t bytes;
	uint64_t ref;
	void *at;

	if (!f || !config)
		return air_error_set(AIR_BAD_ARGUMENT, "launch: %s is NULL",
				     f ? "config" : "function");
	ch = f->module->ch;
	status = air_channel_usable(ch);
	if (status != AIR_OK)
		return status;
	status = air_options_take(&c, sizeof(c), config, "launch");
	if (status != AIR_OK)
		return status;
	status = check_config(f, &c);
	if (status != AIR_OK)
		return status;
	status = check_args(f, args, arg_bytes, pointers, n_pointers);
	if (status != AIR_OK)
		return status;
	bytes = (uint32_t)(sizeof(struct airunner_launch_record) + arg_bytes +
			   n_pointers * sizeof(struct airunner_launch_ref));
	if (bytes > AIRUNNER_MAX_LAUNCH)
		return air_error_set(AIR_BAD_ARGUMENT,
				     "launch of %s: arguments and pointers "
				     "take %u bytes; at most %u are possible",
				     f->name, bytes, AIRUNNER_MAX_LAUNCH);
	/* Before the lock of the arguments: it may take a while. */
	status = air_channel_settle(ch);
	if (status != AIR_OK)
		return status;
	status = air_arguments_take(ch, bytes, &at, &ref);
	if (status != AIR_OK)
		return status;
	write_record(ch, at, &c, args, arg_bytes, pointers, n_pointers);
	if (!token)
		c.flags |= AIR_CALL_DETACHED;
	status = submit(ch, f->id, &c, ref, bytes, &mine);
	air_arguments_commit(ch, status == AIR_OK, mine - 1);
	if (status == AIR_OK && token)
		*token = mine;
	return status;
}
