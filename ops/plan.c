// SPDX-License-Identifier: MIT
#include "ops/plan.h"

#include <string.h>

#include "ops/tensor.h"

static bool all_zero(const void *p, size_t n)
{
	const unsigned char *b = p;

	while (n--)
		if (*b++)
			return false;
	return true;
}

/* What holds for every operator's operands. */
static air_status check_tensors(const struct air_op *op,
				const struct airunner_desc *d,
				struct air_error *e)
{
	if (d->n_tensors < op->n_required || d->n_tensors > op->n_tensors)
		return air_fail(e, AIR_BAD_ARGUMENT,
				"%s: %u operands; it takes %u to %u", op->name,
				d->n_tensors, op->n_required, op->n_tensors);
	for (uint32_t i = 0; i < AIRUNNER_MAX_TENSORS; i++) {
		const struct airunner_tensor *t = &d->tensor[i];
		air_status st;

		if (i >= d->n_tensors) {
			if (!all_zero(t, sizeof(*t)))
				return air_fail(e, AIR_BAD_RESERVED,
					"%s: tensor %u beyond its %u operands must be zero",
					op->name, i, d->n_tensors);
			continue;
		}
		if (!t->dtype) {
			if (i < op->n_required)
				return air_fail(e, AIR_BAD_ARGUMENT,
						"%s: operand %s is missing",
						op->name, op->operand[i]);
			if (!all_zero(t, sizeof(*t)))
				return air_fail(e, AIR_BAD_RESERVED,
					"%s: operand %s: has no dtype; then all of it must be zero",
					op->name, op->operand[i]);
			continue;
		}
		st = air_tensor_check(t, op->name, op->operand[i], e);
		if (st)
			return st;
	}
	if (!air_tensor_distinct(&d->tensor[0]))
		return air_fail(e, AIR_BAD_STRIDES,
			"%s: operand %s: elements of an output must not share memory (a stride of 0, or too small)",
			op->name, op->operand[0]);
	return AIR_OK;
}

static void fill_extents(struct air_plan *plan)
{
	const struct airunner_tensor *t = plan->desc.tensor;

	for (uint32_t i = 0; i < plan->desc.n_tensors; i++) {
		struct air_extent *x = &plan->extent[i];

		if (!t[i].dtype)
			continue;
		x->present = 1;
		x->align = air_elem_size(t[i].dtype);
		air_tensor_extent(&t[i], &x->below, &x->above);
		if (i && air_tensor_same_layout(&t[0], &t[i]))
			plan->same_layout |= 1U << i;
	}
}

air_status air_plan_init(struct air_plan *plan,
			 const struct airunner_desc *desc, struct air_error *e)
{
	const struct airunner_desc *d = &plan->desc;
	const struct air_op *op;
	air_status st;

	memset(plan, 0, sizeof(*plan));
	/* From here on only the copy is looked at: @desc may be changing. */
	memcpy(&plan->desc, desc, sizeof(plan->desc));

	if (d->size != sizeof(*d))
		return air_fail(e, AIR_ABI,
				"descriptor: size is %u; this build knows %zu",
				d->size, sizeof(*d));
	op = air_op_find(d->op);
	if (!op)
		return air_fail(e, AIR_BAD_OPERATOR,
				"descriptor: there is no operator %u", d->op);
	if (d->executor > AIRUNNER_EXEC_CUDA_RESIDENT)
		return air_fail(e, AIR_BAD_ARGUMENT,
				"%s: there is no executor %u", op->name,
				d->executor);
	if (!all_zero(d->resv, sizeof(d->resv)))
		return air_fail(e, AIR_BAD_RESERVED,
			"%s: reserved words of the descriptor must be zero",
			op->name);
	for (uint32_t i = op->n_attrs; i < AIRUNNER_MAX_ATTRS; i++)
		if (d->attr[i])
			return air_fail(e, AIR_BAD_ATTRIBUTE,
					"%s: attribute %u is set; it has %u",
					op->name, i, op->n_attrs);
	st = check_tensors(op, d, e);
	if (st)
		return st;
	st = op->check(d, e);
	if (st)
		return st;

	plan->op = op;
	plan->workspace = op->cpu_workspace ? op->cpu_workspace(d) : 0;
	fill_extents(plan);
	return AIR_OK;
}

typedef bool (*find_fn)(void *arg, uint32_t handle, struct air_span *span);

static air_status bind_operand(const struct air_extent *x, uint64_t ref,
			       find_fn find, void *arg, uint64_t *addr)
{
	uint64_t offset = airunner_ref_offset(ref);
	struct air_span span;

	*addr = 0;
	if (!x->present)
		return ref && ref != AIRUNNER_REF_NONE ? AIR_BAD_RESERVED
						       : AIR_OK;
	if (ref == AIRUNNER_REF_NONE)
		return x->above ? AIR_BAD_HANDLE : AIR_OK;
	if (!find(arg, airunner_ref_handle(ref), &span))
		return AIR_BAD_HANDLE;
	if (offset > span.size || x->below > offset ||
	    x->above > span.size - offset)
		return AIR_BAD_RANGE;
	*addr = span.addr + offset;
	return *addr & (x->align - 1) ? AIR_BAD_ALIGN : AIR_OK;
}

static air_status bind_workspace(const struct air_plan *plan, uint64_t ref,
				 find_fn find, void *arg, uint64_t *addr)
{
	uint64_t offset = airunner_ref_offset(ref);
	struct air_span span;

	*addr = 0;
	if (!plan->workspace)
		return AIR_OK;
	if (ref == AIRUNNER_REF_NONE)
		return AIR_WORKSPACE;
	if (!find(arg, airunner_ref_handle(ref), &span))
		return AIR_BAD_HANDLE;
	if (offset > span.size || plan->workspace > span.size - offset)
		return AIR_WORKSPACE;
	*addr = span.addr + offset;
	return *addr & (AIR_WORKSPACE_ALIGN - 1) ? AIR_BAD_ALIGN : AIR_OK;
}

/* Whether operand @i lies in the way of what is written. */
static bool aliased(const struct air_plan *plan, const uint64_t *addr,
		    uint32_t i)
{
	const struct airunner_tensor *t = plan->desc.tensor;
	const struct air_extent *y = &plan->extent[0];
	const struct air_extent *x = &plan->extent[i];

	/* Apart is the common case and must cost two comparisons. */
	if (addr[i] - x->below >= addr[0] + y->above ||
	    addr[0] - y->below >= addr[i] + x->above)
		return false;
	if (addr[i] == addr[0] &&
	    (plan->op->in_place & plan->same_layout & (1U << i)))
		return false;
	return air_tensor_overlap(&t[0], addr[0], &t[i], addr[i]);
}

static bool in_workspace(const struct air_plan *plan, const uint64_t *addr,
			 uint32_t i)
{
	const struct air_extent *x = &plan->extent[i];
	uint64_t ws = addr[AIRUNNER_MAX_TENSORS];

	return addr[i] - x->below < ws + plan->workspace &&
	       ws < addr[i] + x->above;
}

air_status air_plan_bind(const struct air_plan *plan,
			 const uint64_t word[AIRUNNER_SQE_WORDS], find_fn find,
			 void *arg, uint64_t addr[AIRUNNER_MAX_TENSORS + 1],
			 uint32_t *operand)
{
	air_status st;

	for (uint32_t i = 0; i < AIRUNNER_MAX_TENSORS; i++) {
		uint32_t w = AIRUNNER_WORD_OPERAND + i;

		*operand = w;
		st = bind_operand(&plan->extent[i], airunner_payload(word[w]),
				  find, arg, &addr[i]);
		if (st)
			return st;
		if (i && plan->extent[i].above && plan->extent[0].above &&
		    aliased(plan, addr, i))
			return AIR_ALIASING;
	}

	*operand = AIRUNNER_WORD_WORKSPACE;
	st = bind_workspace(plan,
			    airunner_payload(word[AIRUNNER_WORD_WORKSPACE]),
			    find, arg, &addr[AIRUNNER_MAX_TENSORS]);
	if (st)
		return st;
	for (uint32_t i = 0; plan->workspace && i < AIRUNNER_MAX_TENSORS; i++)
		if (plan->extent[i].above && in_workspace(plan, addr, i))
			return AIR_ALIASING;

	*operand = AIRUNNER_WORD_ARG;
	if (airunner_payload(word[AIRUNNER_WORD_ARG]))
		return AIR_BAD_RESERVED;
	*operand = 0;
	return AIR_OK;
}
