// SPDX-License-Identifier: MIT
/*
 * Descriptors: checked here for a sentence at once, then made by the worker,
 * which checks again. What is needed to make them once more stays here, for a
 * worker that is restarted has none.
 */
#include <stdlib.h>
#include <string.h>

#include <airunner.h>

#include "libairunner/channel.h"
#include "libairunner/descriptor.h"
#include "libairunner/descriptor_object.h"
#include "libairunner/error.h"

static __thread air_executor preferred;

void air_prefer_executor(air_executor executor)
{
	preferred = executor;
}

struct air_descriptor *air_descriptor_find(struct air_channel *ch, uint32_t id)
{
	struct air_list *pos;

	for (pos = ch->descriptors.next; pos != &ch->descriptors;
	     pos = pos->next) {
		struct air_descriptor *d =
			air_list_entry(pos, struct air_descriptor, node);

		if (d->id == id)
			return d;
	}
	return NULL;
}

/* ------------------------------------------------------- arena records */

/*
 * Waits while others use them all: each is needed for one creation only. -1:
 * the worker failed to answer so often that none is left.
 */
static int take_record(struct air_channel *ch)
{
	int found = -1;

	pthread_mutex_lock(&ch->lock);
	while (found < 0 && ch->arena_lost < ch->arena_records) {
		for (uint32_t i = 0; i < ch->arena_records && found < 0; i++)
			if (!(ch->arena_used >> i & 1))
				found = (int)i;
		if (found < 0)
			pthread_cond_wait(&ch->arena_free, &ch->lock);
	}
	if (found >= 0)
		ch->arena_used |= UINT64_C(1) << found;
	pthread_mutex_unlock(&ch->lock);
	return found;
}

static void give_record(struct air_channel *ch, int i)
{
	pthread_mutex_lock(&ch->lock);
	ch->arena_used &= ~(UINT64_C(1) << i);
	pthread_cond_signal(&ch->arena_free);
	pthread_mutex_unlock(&ch->lock);
}

/*
 * A worker that did not answer in time may still write its reply: the record
 * stays in use for as long as the channel lives.
 */
static void lose_record(struct air_channel *ch)
{
	pthread_mutex_lock(&ch->lock);
	ch->arena_lost++;
	pthread_cond_broadcast(&ch->arena_free);
	pthread_mutex_unlock(&ch->lock);
}

static air_status take_id(struct air_channel *ch, uint32_t *id)
{
	pthread_mutex_lock(&ch->lock);
	*id = air_ids_take(&ch->descriptor_ids);
	pthread_mutex_unlock(&ch->lock);
	if (*id)
		return AIR_OK;
	return air_error_set(
		AIR_QUOTA,
		"the channel has %u descriptors, as many as there can be",
		AIR_IDS_MAX);
}

static void give_id(struct air_channel *ch, uint32_t id)
{
	pthread_mutex_lock(&ch->lock);
	air_ids_give(&ch->descriptor_ids, id);
	pthread_mutex_unlock(&ch->lock);
}

/* ------------------------------------------------------------ creation */

/*
 * Have the worker make @d. On refusal its sentence goes to the user and its
 * status is returned.
 */
static air_status make(struct air_channel *ch, struct air_descriptor *d)
{
	struct airunner_desc_record *record;
	struct airunner_desc_reply reply;
	struct air_call call;
	struct air_cqe cqe;
	air_status status;
	bool abandoned;
	uint64_t offset;
	int i = take_record(ch);

	if (i < 0)
		return air_error_static(AIR_NO_WORKER,
					"the worker left every earlier "
					"creation of a descriptor unanswered");
	offset = ch->arena + (uint64_t)i * sizeof(*record);
	record = (struct airunner_desc_record *)((char *)ch->region.addr +
						 offset);
	memcpy(&record->desc, &d->plan.desc, sizeof(record->desc));
	memset(&record->reply, 0, sizeof(record->reply));

	memset(&call, 0, sizeof(call));
	call.word[0] = airunner_sqe_head(AIRUNNER_OP_DESC_CREATE, 0, 0, d->id);
	call.word[AIRUNNER_WORD_OPERAND] =
		airunner_ref(AIRUNNER_HANDLE_REGION, offset);
	status = air_channel_call(ch, &call, &cqe, &abandoned);
	if (abandoned) {
		lose_record(ch);
		return status;
	}
	memcpy(&reply, &record->reply, sizeof(reply));
	give_record(ch, i);
	if (status != AIR_OK)
		return status;
	reply.why[sizeof(reply.why) - 1] = '\0';
	if (cqe.status != AIRUNNER_S_OK)
		return air_error_set(
			(air_status)cqe.status, "%s",
			reply.why[0] ?
				reply.why :
				air_status_string((air_status)cqe.status));
	d->workspace = reply.workspace;
	d->executor = reply.executor;
	memcpy(d->why, reply.why, sizeof(d->why));
	return AIR_OK;
}

/*
 * Until it was made by the worker that has the others: one that took over in
 * between was told of those on the list only.
 */
static air_status make_and_list(struct air_channel *ch,
				struct air_descriptor *d)
{
	air_status status;

	for (;;) {
		status = air_channel_settle(ch);
		if (status != AIR_OK)
			return status;
		status = take_id(ch, &d->id);
		if (status != AIR_OK)
			return status;
		status = make(ch, d);
		/* Where nobody answered, somebody may yet make it. */
		if (status != AIR_OK && status != AIR_NO_WORKER)
			give_id(ch, d->id);
		if (status == AIR_WORKER_DIED)
			continue;
		if (status != AIR_OK)
			return status;
		pthread_mutex_lock(&ch->lock);
		if (air_channel_is_settled(ch)) {
			air_list_append(&ch->descriptors, &d->node);
			pthread_mutex_unlock(&ch->lock);
			return AIR_OK;
		}
		pthread_mutex_unlock(&ch->lock);
	}
}

air_status air_descriptor_replay(struct air_channel *ch)
{
	air_status status = AIR_OK;
	struct air_list *pos;

	pthread_mutex_lock(&ch->lock);
	pos = ch->descriptors.next;
	while (pos != &ch->descriptors && status == AIR_OK) {
		struct air_descriptor *d =
			air_list_entry(pos, struct air_descriptor, node);

		/* It stays: destroying it takes replay_lock. */
		pthread_mutex_unlock(&ch->lock);
		status = air_replay_status(make(ch, d));
		pthread_mutex_lock(&ch->lock);
		pos = d->node.next;
	}
	pthread_mutex_unlock(&ch->lock);
	return status;
}

static air_status fill_desc(struct airunner_desc *desc, enum air_op_id op,
			    const air_tensor_desc *const *tensors,
			    uint32_t n_tensors, const uint64_t *attrs,
			    uint32_t n_attrs, uint32_t executor)
{
	if (n_tensors > AIRUNNER_MAX_TENSORS || n_attrs > AIRUNNER_MAX_ATTRS)
		return air_error_set(AIR_BAD_ARGUMENT,
				     "a descriptor has at most %u tensors and "
				     "%u attributes, not %u and %u",
				     AIRUNNER_MAX_TENSORS, AIRUNNER_MAX_ATTRS,
				     n_tensors, n_attrs);
	memset(desc, 0, sizeof(*desc));
	desc->size = sizeof(*desc);
	desc->op = op;
	desc->n_tensors = n_tensors;
	desc->executor = executor;
	if (n_attrs)
		memcpy(desc->attr, attrs, n_attrs * sizeof(*attrs));
	_Static_assert(sizeof(air_tensor_desc) ==
			       sizeof(struct airunner_tensor),
		       "air_tensor_desc has the ABI's layout");
	for (uint32_t i = 0; i < n_tensors; i++)
		if (tensors[i])
			memcpy(&desc->tensor[i], tensors[i],
			       sizeof(desc->tensor[i]));
	return AIR_OK;
}

air_status air_descriptor_create(air_channel *ch, enum air_op_id op,
				 const air_tensor_desc *const *tensors,
				 uint32_t n_tensors, const uint64_t *attrs,
				 uint32_t n_attrs, air_descriptor **out)
{
	struct air_descriptor *d;
	struct airunner_desc desc;
	struct air_error e = { .text = "" };
	air_status status;

	if (!ch || !out)
		return air_error_set(AIR_BAD_ARGUMENT, "descriptor: %s is NULL",
				     ch ? "out" : "channel");
	status = air_channel_usable(ch);
	if (status != AIR_OK)
		return status;
	status = fill_desc(&desc, op, tensors, n_tensors, attrs, n_attrs,
			   preferred ? preferred : ch->executor);
	if (status != AIR_OK)
		return status;
	d = calloc(1, sizeof(*d));
	if (!d)
		return air_error_static(AIR_NO_MEMORY,
					"no memory for a descriptor");
	d->ch = ch;
	air_list_init(&d->node);
	air_list_init(&d->destroy.node);
	status = air_plan_init(&d->plan, &desc, &e);
	if (status != AIR_OK)
		air_error_set(status, "%s",
			      e.text[0] ? e.text : air_status_string(status));
	else
		status = make_and_list(ch, d);
	if (status != AIR_OK) {
		free(d);
		return status;
	}
	*out = d;
	return AIR_OK;
}

/* ----------------------------------------------------------------- use */

static air_status check(const air_descriptor *d, enum air_op_id op)
{
	const struct air_op *wanted;

	if (!d)
		return air_error_static(AIR_BAD_ARGUMENT, "descriptor is NULL");
	if (d->plan.op->id == op)
		return AIR_OK;
	wanted = air_op_find(op);
	return air_error_set(AIR_BAD_ARGUMENT,
			     "a descriptor of %s was given to a call of %s",
			     d->plan.op->name, wanted ? wanted->name : "?");
}

air_status air_descriptor_workspace(const air_descriptor *d, enum air_op_id op,
				    size_t *bytes)
{
	air_status status = check(d, op);

	if (status != AIR_OK)
		return status;
	if (!bytes)
		return air_error_set(AIR_BAD_ARGUMENT,
				     "%s: where to store the size is NULL",
				     d->plan.op->name);
	*bytes = d->workspace;
	return AIR_OK;
}

air_status air_descriptor_prepare(const air_descriptor *d, enum air_op_id op,
				  struct air_call *call, air_ref workspace,
				  const air_ref *operands, uint32_t n)
{
	air_status status = check(d, op);

	if (__builtin_expect(status != AIR_OK, 0))
		return status;
	memset(call, 0, sizeof(*call));
	call->word[0] = airunner_sqe_head(AIRUNNER_OP_EXEC, 0, 0, d->id);
	for (uint32_t i = 0; i < n; i++)
		call->word[AIRUNNER_WORD_OPERAND + i] = operands[i].bits;
	call->word[AIRUNNER_WORD_WORKSPACE] = workspace.bits;
	return AIR_OK;
}

air_status air_descriptor_execute(const air_descriptor *d, enum air_op_id op,
				  air_ref workspace, const air_ref *operands,
				  uint32_t n, air_token *token)
{
	struct air_call call;
	air_status status;

	status = air_descriptor_prepare(d, op, &call, workspace, operands, n);
	if (__builtin_expect(status != AIR_OK, 0))
		return status;
	if (!token)
		call.flags = AIR_CALL_DETACHED;
	return air_submit(d->ch, &call, 1, token);
}

air_executor air_descriptor_executor(const air_descriptor *d, const char **why)
{
	if (why)
		*why = d->why;
	return (air_executor)d->executor;
}

const char *air_descriptor_name(const air_descriptor *d)
{
	return d->plan.op->name;
}

/* ----------------------------------------------------------------- end */

static void destroy_submitted(struct air_deferred *deferred, uint64_t end)
{
	struct air_descriptor *d =
		air_list_entry(deferred, struct air_descriptor, destroy);

	air_ids_give(&d->ch->descriptor_ids, d->id);
	free(d);
}

air_status air_descriptor_destroy(air_descriptor *d, enum air_op_id op)
{
	struct air_channel *ch;
	air_status status;

	if (!d)
		return AIR_OK;
	status = check(d, op);
	if (status != AIR_OK)
		return status;
	ch = d->ch;
	status = air_channel_usable(ch);
	if (status != AIR_OK)
		return status;
	/* Not from under a thread that is making it again. */
	pthread_mutex_lock(&ch->replay_lock);
	pthread_mutex_lock(&ch->lock);
	air_list_remove(&d->node);
	d->destroy.word0 =
		airunner_sqe_head(AIRUNNER_OP_DESC_DESTROY, 0, 0, d->id);
	d->destroy.done = destroy_submitted;
	air_deferred_submit(ch, &d->destroy);
	pthread_mutex_unlock(&ch->lock);
	pthread_mutex_unlock(&ch->replay_lock);
	return AIR_OK;
}

void air_descriptor_destroy_all(struct air_channel *ch)
{
	struct air_list *pos, *next;

	air_list_each(pos, next, &ch->descriptors)
		free(air_list_entry(pos, struct air_descriptor, node));
	/* Those whose DESC_DESTROY never found room. */
	air_list_each(pos, next, &ch->deferred) {
		struct air_deferred *d =
			air_list_entry(pos, struct air_deferred, node);

		if (d->done != destroy_submitted)
			continue;
		air_list_remove(pos);
		free(air_list_entry(d, struct air_descriptor, destroy));
	}
}
