// SPDX-License-Identifier: MIT
/*
 * Tensors: descriptions, and views of buffers. Elements are never touched
 * here.
 */
#include <string.h>

#include <airunner.h>

#include "libairunner/buffer.h"
#include "libairunner/error.h"

/*
 * More elements or bytes than this cannot be addressed anyway, and below it
 * no product of a few of them overflows.
 */
#define MAX_ELEMENTS (INT64_C(1) << 62)

static const struct {
	const char *name;
	size_t size;
} dtypes[] = {
	[AIR_F32] = { "f32", 4 },   [AIR_F16] = { "f16", 2 },
	[AIR_BF16] = { "bf16", 2 }, [AIR_I32] = { "i32", 4 },
	[AIR_I8] = { "i8", 1 },	    [AIR_I64] = { "i64", 8 },
};

static bool known(air_dtype dtype)
{
	return (unsigned int)dtype < sizeof(dtypes) / sizeof(dtypes[0]) &&
	       dtypes[dtype].size;
}

size_t air_dtype_size(air_dtype dtype)
{
	return known(dtype) ? dtypes[dtype].size : 0;
}

const char *air_dtype_name(air_dtype dtype)
{
	return known(dtype) ? dtypes[dtype].name : "unknown dtype";
}

/* -------------------------------------------------------- descriptions */

static air_status check_dims(air_dtype dtype, uint32_t ndim,
			     const int64_t *shape)
{
	int64_t n = 1;

	if (!known(dtype))
		return air_error_set(AIR_BAD_DTYPE,
				     "tensor: dtype %u is unknown",
				     (unsigned int)dtype);
	if (ndim > AIR_MAX_DIMS)
		return air_error_set(
			AIR_BAD_SHAPE,
			"tensor: %u dimensions; at most %u are possible", ndim,
			AIR_MAX_DIMS);
	if (ndim && !shape)
		return air_error_static(AIR_BAD_ARGUMENT,
					"tensor: shape is NULL");
	for (uint32_t i = 0; i < ndim; i++) {
		if (shape[i] < 0)
			return air_error_set(AIR_BAD_SHAPE,
					     "tensor: dimension %u is %lld", i,
					     (long long)shape[i]);
		/* As if a 0 were a 1, so that strides fit as well. */
		if (__builtin_mul_overflow(n, shape[i] ? shape[i] : 1, &n) ||
		    n > MAX_ELEMENTS)
			return air_error_set(AIR_BAD_SHAPE,
					     "tensor: more than 2^62 elements "
					     "at dimension %u (%lld)",
					     i, (long long)shape[i]);
	}
	return AIR_OK;
}

/* All elements lie within 2^62 bytes to either side of the first. */
static air_status check_strides(const air_tensor_desc *t)
{
	int64_t size = (int64_t)air_dtype_size((air_dtype)t->dtype);
	int64_t reach = size;

	for (uint32_t i = 0; i < t->ndim; i++) {
		int64_t step = t->stride[i], span;

		if (step < 0 && __builtin_sub_overflow((int64_t)0, step, &step))
			step = INT64_MAX;
		if (__builtin_mul_overflow(step, size, &span) ||
		    __builtin_mul_overflow(
			    span, t->shape[i] ? t->shape[i] - 1 : 0, &span) ||
		    __builtin_add_overflow(reach, span, &reach) ||
		    reach > MAX_ELEMENTS)
			return air_error_set(
				AIR_BAD_STRIDES,
				"tensor: stride %lld of dimension %u (%lld "
				"elements) reaches further than 2^62 bytes",
				(long long)t->stride[i], i,
				(long long)t->shape[i]);
	}
	return AIR_OK;
}

static void set_contiguous(air_tensor_desc *t)
{
	int64_t step = 1;

	for (uint32_t i = t->ndim; i-- > 0;) {
		t->stride[i] = step;
		step *= t->shape[i] ? t->shape[i] : 1;
	}
}

air_status air_tensor_desc_init(air_tensor_desc *t, air_dtype dtype,
				uint32_t ndim, const int64_t *shape,
				const int64_t *strides)
{
	air_tensor_desc d;
	air_status status;

	if (!t)
		return air_error_static(AIR_BAD_ARGUMENT,
					"tensor: description is NULL");
	status = check_dims(dtype, ndim, shape);
	if (status != AIR_OK)
		return status;
	memset(&d, 0, sizeof(d));
	d.dtype = dtype;
	d.ndim = ndim;
	if (ndim)
		memcpy(d.shape, shape, ndim * sizeof(*shape));
	if (!strides)
		set_contiguous(&d);
	else if (ndim)
		memcpy(d.stride, strides, ndim * sizeof(*strides));
	status = check_strides(&d);
	if (status == AIR_OK)
		*t = d;
	return status;
}

int64_t air_tensor_desc_elements(const air_tensor_desc *t)
{
	int64_t n = 1;

	for (uint32_t i = 0; i < t->ndim; i++)
		n *= t->shape[i];
	return n;
}

bool air_tensor_desc_contiguous(const air_tensor_desc *t)
{
	int64_t step = 1;

	if (!air_tensor_desc_elements(t))
		return true;
	for (uint32_t i = t->ndim; i-- > 0;) {
		if (t->shape[i] == 1)
			continue;
		if (t->stride[i] != step)
			return false;
		step *= t->shape[i];
	}
	return true;
}

void air_tensor_desc_extent(const air_tensor_desc *t, uint64_t *below,
			    uint64_t *above)
{
	uint64_t size = air_dtype_size((air_dtype)t->dtype);

	*below = 0;
	*above = 0;
	if (!air_tensor_desc_elements(t))
		return;
	*above = size;
	for (uint32_t i = 0; i < t->ndim; i++) {
		uint64_t n = (uint64_t)(t->shape[i] - 1);

		if (t->stride[i] < 0)
			*below += -(uint64_t)t->stride[i] * n * size;
		else
			*above += (uint64_t)t->stride[i] * n * size;
	}
}

/* --------------------------------------------------------------- views */

air_status air_tensor_alloc(air_channel *ch, air_memory memory, air_dtype dtype,
			    uint32_t ndim, const int64_t *shape,
			    air_tensor *out)
{
	uint64_t below, above;
	air_tensor t;
	air_status status;

	if (!out)
		return air_error_static(AIR_BAD_ARGUMENT,
					"tensor: out is NULL");
	t.offset = 0;
	status = air_tensor_desc_init(&t.desc, dtype, ndim, shape, NULL);
	if (status != AIR_OK)
		return status;
	air_tensor_desc_extent(&t.desc, &below, &above);
	/* An empty tensor has a buffer too: there is one way to free it. */
	status = air_buffer_alloc(ch, above ? above : 1, memory, &t.buf);
	if (status == AIR_OK)
		*out = t;
	return status;
}

/* The caller has made sure that the description is sane. */
static air_status make_view(air_buffer *buf, uint64_t offset,
			    const air_tensor_desc *desc, air_tensor *out)
{
	uint64_t below, above, size = air_buffer_size(buf);

	air_tensor_desc_extent(desc, &below, &above);
	if (offset > size || below > offset || above > size - offset)
		return air_error_set(
			AIR_BAD_RANGE,
			"tensor: reaches from %llu bytes before to %llu bytes "
			"behind offset %llu of a buffer of %llu bytes",
			(unsigned long long)below, (unsigned long long)above,
			(unsigned long long)offset, (unsigned long long)size);
	out->desc = *desc;
	out->buf = buf;
	out->offset = offset;
	return AIR_OK;
}

air_status air_tensor_view(air_buffer *buf, uint64_t offset,
			   const air_tensor_desc *desc, air_tensor *out)
{
	air_tensor_desc d;
	air_status status;

	if (!buf || !desc || !out)
		return air_error_set(AIR_BAD_ARGUMENT, "tensor: %s is NULL",
				     !buf  ? "buffer" :
				     !desc ? "description" :
					     "out");
	status = air_tensor_desc_init(&d, (air_dtype)desc->dtype, desc->ndim,
				      desc->shape, desc->stride);
	if (status != AIR_OK)
		return status;
	return make_view(buf, offset, &d, out);
}

static air_status check_pair(const air_tensor *t, const air_tensor *out)
{
	if (!t || !out)
		return air_error_set(AIR_BAD_ARGUMENT, "tensor: %s is NULL",
				     t ? "out" : "tensor");
	if (!t->buf)
		return air_error_static(AIR_BAD_ARGUMENT,
					"tensor: has no buffer");
	return AIR_OK;
}

air_status air_tensor_slice(const air_tensor *t, uint32_t dim, int64_t start,
			    int64_t n, int64_t step, air_tensor *out)
{
	air_status status = check_pair(t, out);
	int64_t last, size, offset;
	air_tensor_desc d;

	if (status != AIR_OK)
		return status;
	d = t->desc;
	if (dim >= d.ndim)
		return air_error_set(
			AIR_BAD_ARGUMENT,
			"slice: dimension %u of a tensor that has %u", dim,
			d.ndim);
	size = d.shape[dim];
	if (n < 0 || start < 0 || start > size || (n && start == size) ||
	    (n > 1 && !step) ||
	    __builtin_mul_overflow(n ? n - 1 : 0, step, &last) ||
	    __builtin_add_overflow(last, start, &last) || last < 0 ||
	    (n && last >= size))
		return air_error_set(AIR_BAD_RANGE,
				     "slice: %lld elements from %lld by %lld "
				     "leave dimension %u, which has %lld",
				     (long long)n, (long long)start,
				     (long long)step, dim, (long long)size);
	/* An empty slice at the very end would point behind the buffer. */
	offset = n ? start * d.stride[dim] *
				 (int64_t)air_dtype_size((air_dtype)d.dtype) :
		     0;
	d.shape[dim] = n;
	if (n > 1)
		d.stride[dim] *= step;
	return make_view(t->buf, t->offset + (uint64_t)offset, &d, out);
}

air_status air_tensor_permute(const air_tensor *t, const uint32_t *perm,
			      air_tensor *out)
{
	air_status status = check_pair(t, out);
	air_tensor_desc d;
	uint32_t seen = 0;

	if (status != AIR_OK)
		return status;
	if (!perm && t->desc.ndim)
		return air_error_static(AIR_BAD_ARGUMENT,
					"permute: perm is NULL");
	d = t->desc;
	for (uint32_t i = 0; i < d.ndim; i++) {
		if (perm[i] >= d.ndim || seen >> perm[i] & 1)
			return air_error_set(AIR_BAD_ARGUMENT,
					     "permute: entry %u is %u: not a "
					     "permutation of 0 to %u",
					     i, perm[i], d.ndim - 1);
		seen |= 1U << perm[i];
		d.shape[i] = t->desc.shape[perm[i]];
		d.stride[i] = t->desc.stride[perm[i]];
	}
	return make_view(t->buf, t->offset, &d, out);
}

/*
 * Strides for the same elements in a new shape. Runs of old dimensions that
 * are contiguous among themselves are cut up into new ones.
 */
static bool reshape_strides(const air_tensor_desc *from, air_tensor_desc *to)
{
	int64_t shape[AIR_MAX_DIMS], stride[AIR_MAX_DIMS];
	uint32_t n = 0, old = 0, new = 0;

	for (uint32_t i = 0; i < from->ndim; i++) {
		if (from->shape[i] == 1)
			continue;
		shape[n] = from->shape[i];
		stride[n++] = from->stride[i];
	}
	while (new < to->ndim && old < n) {
		uint32_t old_end = old + 1, new_end = new + 1;
		int64_t a = shape[old], b = to->shape[new], step;

		while (a != b) {
			if (a < b) {
				if (old_end == n)
					return false;
				a *= shape[old_end++];
			} else {
				if (new_end == to->ndim)
					return false;
				b *= to->shape[new_end++];
			}
		}
		for (uint32_t i = old; i + 1 < old_end; i++)
			if (stride[i] != stride[i + 1] * shape[i + 1])
				return false;
		step = stride[old_end - 1];
		for (uint32_t i = new_end; i-- > new;) {
			to->stride[i] = step;
			step *= to->shape[i];
		}
		old = old_end;
		new = new_end;
	}
	/* Only size-1 dimensions are left; any stride does. */
	for (; new < to->ndim; new ++)
		to->stride[new] = 1;
	return true;
}

air_status air_tensor_reshape(const air_tensor *t, uint32_t ndim,
			      const int64_t *shape, air_tensor *out)
{
	air_status status = check_pair(t, out);
	air_tensor_desc d;
	int64_t n;

	if (status != AIR_OK)
		return status;
	status = air_tensor_desc_init(&d, (air_dtype)t->desc.dtype, ndim, shape,
				      NULL);
	if (status != AIR_OK)
		return status;
	n = air_tensor_desc_elements(&t->desc);
	if (air_tensor_desc_elements(&d) != n)
		return air_error_set(
			AIR_BAD_SHAPE,
			"reshape: %lld elements into a shape of %lld",
			(long long)n, (long long)air_tensor_desc_elements(&d));
	if (n && !air_tensor_desc_contiguous(&t->desc) &&
	    !reshape_strides(&t->desc, &d))
		return air_error_static(AIR_BAD_STRIDES,
					"reshape: these strides do not allow "
					"that shape; copy the tensor first");
	return make_view(t->buf, t->offset, &d, out);
}

air_status air_tensor_broadcast(const air_tensor *t, uint32_t ndim,
				const int64_t *shape, air_tensor *out)
{
	air_status status = check_pair(t, out);
	air_tensor_desc d;
	uint32_t lead;

	if (status != AIR_OK)
		return status;
	status = air_tensor_desc_init(&d, (air_dtype)t->desc.dtype, ndim, shape,
				      NULL);
	if (status != AIR_OK)
		return status;
	if (ndim < t->desc.ndim)
		return air_error_set(AIR_BAD_SHAPE,
				     "broadcast: from %u dimensions to only %u",
				     t->desc.ndim, ndim);
	lead = ndim - t->desc.ndim;
	for (uint32_t i = 0; i < ndim; i++) {
		if (i < lead) {
			d.stride[i] = 0;
			continue;
		}
		if (t->desc.shape[i - lead] == d.shape[i])
			d.stride[i] = t->desc.stride[i - lead];
		else if (t->desc.shape[i - lead] == 1)
			d.stride[i] = 0;
		else
			return air_error_set(
				AIR_BAD_SHAPE,
				"broadcast: dimension %u has %lld elements, "
				"which cannot become %lld",
				i - lead, (long long)t->desc.shape[i - lead],
				(long long)d.shape[i]);
	}
	return make_view(t->buf, t->offset, &d, out);
}

air_ref air_tensor_ref(const air_tensor *t)
{
	return air_buffer_ref(t->buf, t->offset);
}

void *air_tensor_data(const air_tensor *t)
{
	char *data = air_buffer_data(t->buf);

	return data ? data + t->offset : NULL;
}
