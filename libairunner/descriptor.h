/* SPDX-License-Identifier: MIT */
/*
 * What the operators' public functions (air_create_<op>_descriptor and so on,
 * in ops/<op>/) are made of. @op guards against a descriptor of another
 * operator: AIR_BAD_ARGUMENT.
 */
#ifndef AIR_DESCRIPTOR_H
#define AIR_DESCRIPTOR_H

#include <airunner.h>
#include <airunner/ops.h>

/* @tensors: in operand order; NULL entries are operands left out. */
air_status air_descriptor_create(air_channel *ch, enum air_op_id op,
				 const air_tensor_desc *const *tensors,
				 uint32_t n_tensors, const uint64_t *attrs,
				 uint32_t n_attrs, air_descriptor **out);

air_status air_descriptor_workspace(const air_descriptor *d, enum air_op_id op,
				    size_t *bytes);

air_status air_descriptor_prepare(const air_descriptor *d, enum air_op_id op,
				  struct air_call *call, air_ref workspace,
				  const air_ref *operands, uint32_t n);

air_status air_descriptor_execute(const air_descriptor *d, enum air_op_id op,
				  air_ref workspace, const air_ref *operands,
				  uint32_t n, air_token *token);

air_status air_descriptor_destroy(air_descriptor *d, enum air_op_id op);

#endif /* AIR_DESCRIPTOR_H */
