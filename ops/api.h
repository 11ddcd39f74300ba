/* SPDX-License-Identifier: MIT */
/*
 * The part of an operator's public functions that is the same for all; its
 * api.c adds the create function, where attributes have names and types.
 */
#ifndef AIR_OPS_API_H
#define AIR_OPS_API_H

#include "libairunner/descriptor.h"
#include "ops/check.h"

#define AIR_REFS(...) __VA_ARGS__

/* AIR_OP_API(relu, AIR_REFS(air_ref y, air_ref x), y, x) */
#define AIR_OP_API(name, refs, ...)                                           \
	air_status air_get_##name##_workspace_size(const air_descriptor *d,   \
						   size_t *bytes)             \
	{                                                                     \
		return air_descriptor_workspace(d, AIR_OP_##name, bytes);     \
	}                                                                     \
\
	air_status air_prepare_##name(const air_descriptor *d,                \
				      struct air_call *call,                  \
				      air_ref workspace, refs)                \
	{                                                                     \
		const air_ref r[] = { __VA_ARGS__ };                          \
\
		return air_descriptor_prepare(d, AIR_OP_##name, call,         \
					      workspace, r,                   \
					      sizeof(r) / sizeof(r[0]));      \
	}                                                                     \
\
	air_status air_execute_##name(const air_descriptor *d,                \
				      air_ref workspace, refs,                \
				      air_token *token)                       \
	{                                                                     \
		const air_ref r[] = { __VA_ARGS__ };                          \
\
		return air_descriptor_execute(d, AIR_OP_##name, workspace, r, \
					      sizeof(r) / sizeof(r[0]),       \
					      token);                         \
	}                                                                     \
\
	air_status air_destroy_##name##_descriptor(air_descriptor *d)         \
	{                                                                     \
		return air_descriptor_destroy(d, AIR_OP_##name);              \
	}

/*
 * @t repeated to the given shape as NumPy broadcasts: by strides of 0, written
 * to *@out, which is returned. Where @t cannot be repeated so, or where one of
 * the two is not sane, @t itself is returned: the operator's check then has
 * the sentence about it. NULL stays NULL.
 */
const air_tensor_desc *air_broadcast(const air_tensor_desc *t,
				     const int64_t *shape, uint32_t ndim,
				     air_tensor_desc *out);

/* A dimension counted from the end if negative; others are left for check. */
static inline int64_t air_axis(int32_t axis, const air_tensor_desc *t)
{
	if (t && t->ndim <= AIR_MAX_DIMS && axis < 0 &&
	    axis >= -(int32_t)t->ndim)
		return axis + (int32_t)t->ndim;
	return axis;
}

#endif /* AIR_OPS_API_H */
