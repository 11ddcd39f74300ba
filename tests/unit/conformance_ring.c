// SPDX-License-Identifier: MIT
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <airunner/ops/copy.h>

#include "libairunner/descriptor.h"
#include "tests/unit/conformance.h"

#define MEMORIES (AIRUNNER_MAX_TENSORS + 1)

/*
 * The cases through a channel. With device memory each operand also has a host
 * buffer, and the ring's own copies bring it there and back.
 */
struct conf_ring {
	air_device *dev;
	air_channel *ch;
	air_executor executor;
	air_memory memory;
	air_buffer *host[MEMORIES];
	air_buffer *device[MEMORIES]; /* host[] itself without device memory */
	uint64_t used[MEMORIES];
};

static void must(air_status st, const char *what)
{
	if (st) {
		printf("not ok %s: %s (%s)\n", what, air_status_string(st),
		       air_last_error());
		exit(1);
	}
}

static void free_memory(struct conf_ring *c, uint32_t i)
{
	if (c->device[i] != c->host[i])
		air_buffer_free(c->device[i]);
	air_buffer_free(c->host[i]);
}

static void *memory(void *arg, uint32_t i, uint64_t bytes)
{
	struct conf_ring *c = arg;

	c->used[i] = bytes;
	if (c->host[i] && air_buffer_size(c->host[i]) >= bytes)
		return air_buffer_data(c->host[i]);
	if (c->host[i])
		free_memory(c, i);
	must(air_buffer_alloc(c->ch, bytes, AIR_HOST, &c->host[i]),
	     "air_buffer_alloc, host");
	c->device[i] = c->host[i];
	if (c->memory == AIR_DEVICE)
		must(air_buffer_alloc(c->ch, bytes, AIR_DEVICE, &c->device[i]),
		     "air_buffer_alloc, device");
	return air_buffer_data(c->host[i]);
}

static air_status create(void *arg, const struct airunner_desc *d,
			 void **handle, uint64_t *workspace,
			 struct air_error *e)
{
	struct conf_ring *c = arg;
	const air_tensor_desc *t[AIRUNNER_MAX_TENSORS];
	air_descriptor *out;
	size_t bytes;
	air_status st;

	for (uint32_t i = 0; i < d->n_tensors; i++)
		t[i] = air_has_operand(d, i)
			       ? (const air_tensor_desc *)&d->tensor[i]
			       : NULL;
	air_prefer_executor(c->executor);
	st = air_descriptor_create(c->ch, (enum air_op_id)d->op, t,
				   d->n_tensors, (const uint64_t *)d->attr,
				   AIRUNNER_MAX_ATTRS, &out);
	if (st) {
		snprintf(e->text, sizeof(e->text), "%s", air_last_error());
		return st;
	}
	must(air_descriptor_workspace(out, (enum air_op_id)d->op, &bytes),
	     "workspace size");
	*workspace = bytes;
	*handle = out;
	return AIR_OK;
}

/* All that is used of operand @i's memory, to the device or back. */
static void transfer(struct conf_ring *c, uint32_t i, bool back)
{
	int64_t n = (int64_t)c->used[i];
	air_tensor_desc t;
	air_descriptor *copy;
	air_token token;
	air_ref host = air_buffer_ref(c->host[i], 0);
	air_ref device = air_buffer_ref(c->device[i], 0);

	if (c->device[i] == c->host[i])
		return;
	must(air_tensor_desc_init(&t, AIR_I8, 1, &n, NULL), "copy");
	air_prefer_executor(AIR_EXEC_ANY);
	must(air_create_copy_descriptor(c->ch, &copy, &t, &t), "copy");
	must(air_execute_copy(copy, AIR_NO_REF, back ? host : device,
			      back ? device : host, &token),
	     "copy");
	must(air_wait(c->ch, token, AIR_FOREVER, NULL), "copy");
	must(air_destroy_copy_descriptor(copy), "copy");
}

static air_status execute(void *arg, void *handle, const uint64_t *offset,
			  uint32_t in_place)
{
	struct conf_ring *c = arg;
	air_ref ref[MEMORIES];
	air_token token;
	air_status st;
	uint32_t op;

	for (op = 1; op < AIR_OP_COUNT; op++)
		if (!strcmp(air_op_find(op)->name, air_descriptor_name(handle)))
			break;
	for (uint32_t i = 0; i < MEMORIES; i++) {
		uint32_t where = i && i == in_place ? 0 : i;

		ref[i] = AIR_NO_REF;
		if (offset[i] == UINT64_MAX)
			continue;
		ref[i] = air_buffer_ref(c->device[where], offset[i]);
		if (where == i)
			transfer(c, i, false);
	}
	st = air_descriptor_execute(handle, (enum air_op_id)op,
				    ref[AIRUNNER_MAX_TENSORS], ref,
				    air_op_find(op)->n_tensors, &token);
	if (st)
		return st;
	st = air_wait(c->ch, token, AIR_FOREVER, NULL);
	for (uint32_t i = 0; i < AIRUNNER_MAX_TENSORS; i++)
		if (offset[i] != UINT64_MAX && !(i && i == in_place))
			transfer(c, i, true);
	return st;
}

static void destroy(void *arg, void *handle)
{
	uint32_t op;

	for (op = 1; op < AIR_OP_COUNT; op++)
		if (!strcmp(air_op_find(op)->name, air_descriptor_name(handle)))
			break;
	must(air_descriptor_destroy(handle, (enum air_op_id)op),
	     "descriptor destroy");
}

struct conf_ring *conf_ring_open(const char *where, air_executor executor,
				 air_memory mem, struct conf_executor *ex)
{
	static const char *const names[] = { "any executor", "cpu",
					     "cuda-launch", "cuda-resident" };
	struct conf_ring *c = calloc(1, sizeof(*c));

	c->executor = executor;
	c->memory = mem;
	must(air_open(where, NULL, &c->dev), "air_open");
	must(air_channel_create(c->dev, NULL, &c->ch), "air_channel_create");
	*ex = (struct conf_executor){ .name = names[executor],
				      .is_cpu = executor == AIR_EXEC_CPU,
				      .arg = c,
				      .memory = memory,
				      .create = create,
				      .execute = execute,
				      .destroy = destroy };
	return c;
}

void conf_ring_close(struct conf_ring *c)
{
	for (uint32_t i = 0; i < MEMORIES; i++)
		if (c->host[i])
			free_memory(c, i);
	must(air_channel_destroy(c->ch), "air_channel_destroy");
	must(air_close(c->dev), "air_close");
	free(c);
}
