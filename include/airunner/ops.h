/* SPDX-License-Identifier: MIT */
/*
 * All operators. Each has a header of its own beside this one, and five
 * functions with the same meaning everywhere:
 *
 * air_create_<op>_descriptor(ch, &d, tensors..., attributes...)
 *	Checks everything about the operator once, for tensors of these shapes,
 *	strides and dtypes (outputs first), and gives it to the channel's
 *	worker. The tensor descriptions are copied. Waits for the worker:
 *	AIR_NO_WORKER when there has been none for five seconds, AIR_NO_DEVICE
 *	when it has not the executor that was asked for.
 *	AIR_BAD_DTYPE, AIR_BAD_SHAPE, AIR_BAD_STRIDES, AIR_BAD_ATTRIBUTE,
 *	AIR_UNSUPPORTED, AIR_NO_MEMORY; air_last_error() says which operand.
 * air_get_<op>_workspace_size(d, &bytes)
 *	Scratch memory one execution needs; often 0. Concurrent executions need
 *	one each.
 * air_prepare_<op>(d, &call, workspace, operands...)
 *	Writes the submission into *call; nothing is sent. Never fails on a
 *	descriptor of that operator (AIR_BAD_ARGUMENT on another's).
 * air_execute_<op>(d, workspace, operands..., &token)
 *	Prepare and submit one: a 64-byte slot. The token may be NULL: then the
 *	call is detached (AIR_CALL_DETACHED). AIR_FULL, and AIR_BAD_ARGUMENT for
 *	a descriptor of another operator. Whether operands lie inside their
 *	buffers is the completion's status, as the worker checks it.
 * air_destroy_<op>_descriptor(d)
 *	May be called while executions are outstanding: they finish first.
 *
 * A descriptor belongs to its channel, is immutable and may be used by several
 * threads at once. Workspace is AIR_NO_REF where none is needed; where it is,
 * it begins at a multiple of 64 bytes and overlaps no operand.
 *
 * What holds for every operator unless its header says otherwise:
 *  - Operands are given outputs first. Inputs may have any strides, 0 and
 *    negative ones too; an output's elements must not share memory with each
 *    other (AIR_BAD_STRIDES). First elements must be aligned to their dtype's
 *    size (AIR_BAD_ALIGN), to nothing more.
 *  - An output may not share memory with an input (AIR_ALIASING), except that
 *    where a header says "in place" the two may be exactly the same elements:
 *    same address, shape, strides and dtype. Views that lie between each
 *    other's elements (columns of one matrix) do not share memory.
 *  - f16 and bf16 are computed in f32 and rounded once, to nearest even; what
 *    is too large becomes Inf. Subnormal numbers are numbers.
 *  - Tensors may be empty (a dimension of 0); any number of elements up to
 *    2^62 will do.
 *  - A result does not depend on the number of threads (matmul and conv2d
 *    excepted: OpenBLAS decides there), nor on what else runs.
 *    It may differ in the last bits between executors and kinds of CPU.
 */
#ifndef AIRUNNER_OPS_H
#define AIRUNNER_OPS_H

#include <airunner.h>

/*
 * Numbers are ABI. One line an operator: X(name). Adding an operator means
 * adding its line at the end, its header here, and its folder under ops/.
 */
#define AIR_OPS(X)    \
	X(copy)       \
	X(vector_add) \
	X(relu)       \
	X(reduce_sum) \
	X(softmax)    \
	X(matmul)     \
	X(add)        \
	X(mul)        \
	X(scale)      \
	X(silu)       \
	X(gelu)       \
	X(reduce_max) \
	X(rms_norm)   \
	X(layer_norm) \
	X(rope)       \
	X(conv2d)     \
	X(embedding)

enum air_op_id {
	AIR_OP_NONE = 0,
#define AIR_OP_ENUM(name) AIR_OP_##name,
	AIR_OPS(AIR_OP_ENUM)
#undef AIR_OP_ENUM
		AIR_OP_COUNT
};

/* What can be applied to the elements of a matmul's or conv2d's result. */
typedef enum air_activation {
	AIR_ACT_NONE = 0,
	AIR_ACT_RELU = 1,
	AIR_ACT_SILU = 2,
	AIR_ACT_GELU = 3,      /* by erf */
	AIR_ACT_GELU_TANH = 4, /* the tanh approximation */
} air_activation;

#endif /* AIRUNNER_OPS_H */
