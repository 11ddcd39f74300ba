// SPDX-License-Identifier: MIT
/*
 * A CUDA stream of the caller's waits for a submission.
 */
#include <sched.h>

#include <airunner/cuda.h>

#include "libairunner/channel.h"
#include "libairunner/error.h"

/*
 * Whether it may be that the worker cannot come to @index while a stream waits:
 * what the library has it make or load before that may wait for all streams
 * (ops/worker/handover.c). What is not published yet may be such, too.
 */
static bool is_in_doubt(struct air_channel *ch, uint64_t index)
{
	for (uint64_t i = air_channel_head(ch); i <= index; i++) {
		uint64_t at = air_ring_slot(&ch->ring, i) * AIRUNNER_SQE_WORDS;
		uint64_t word = air_load(&ch->ring.sq[at], RELAXED);

		if (air_channel_done(ch, i))
			continue;
		if (airunner_word_lap(word) != airunner_lap(i, ch->ring.order))
			return true;
		switch (airunner_sqe_opcode(word)) {
		case AIRUNNER_OP_DESC_CREATE:
		case AIRUNNER_OP_DESC_DESTROY:
		case AIRUNNER_OP_BUFFER_ALLOC:
		case AIRUNNER_OP_MODULE_LOAD:
		case AIRUNNER_OP_MODULE_UNLOAD:
		case AIRUNNER_OP_FUNCTION_GET:
			return true;
		}
	}
	return false;
}

/* Instead of the stream, which then has nothing to wait for. */
static air_status wait_here(struct air_channel *ch, uint64_t index)
{
	struct air_cqe cqe;
	air_status status = air_channel_await(ch, index, UINT64_MAX, &cqe);

	return status == AIR_BAD_TOKEN ? AIR_OK : status;
}

air_status air_stream_wait(air_channel *ch, air_token token, void *stream)
{
	uint64_t index = token - 1;
	air_status status;

	if (!ch)
		return air_error_static(AIR_BAD_ARGUMENT,
					"air_stream_wait: channel is NULL");
	status = air_channel_usable(ch);
	if (status != AIR_OK)
		return status;
	if (!token || index >= air_channel_tail(ch))
		return air_error_set(
			AIR_BAD_TOKEN,
			"air_stream_wait: token %llu is not of this channel",
			(unsigned long long)token);
	if (!ch->ops->handover)
		return air_error_static(AIR_UNSUPPORTED,
					"air_stream_wait: the worker is "
					"another process");
	status = ch->ops->handover(ch);
	if (status != AIR_OK)
		return status;
	if (air_channel_done(ch, index))
		return AIR_OK;
	if (is_in_doubt(ch, index))
		return wait_here(ch, index);
	/* The worker is in a call that waits for streams: soon it is not. */
	while ((status = ch->ops->stream_wait(ch, index, stream)) == AIR_BUSY &&
	       !air_channel_done(ch, index))
		sched_yield();
	/* It would be one too many of those that wait. */
	if (status == AIR_FULL)
		return wait_here(ch, index);
	return status == AIR_BUSY ? AIR_OK : status;
}
