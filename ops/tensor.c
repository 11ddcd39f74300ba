// SPDX-License-Identifier: MIT
#include "ops/tensor.h"

#include <stdio.h>
#include <string.h>

/* So that a stride in bytes, times anything below 2^4, fits an int64_t. */
#define MAX_STRIDE   (INT64_C(1) << 56)
#define MAX_ELEMENTS (INT64_C(1) << 62)
#define MAX_SPAN     (INT64_C(1) << 62)

static const struct {
	uint32_t size;
	const char *name;
} dtypes[] = {
	[AIRUNNER_F32] = { 4, "f32" },	 [AIRUNNER_F16] = { 2, "f16" },
	[AIRUNNER_BF16] = { 2, "bf16" }, [AIRUNNER_I32] = { 4, "i32" },
	[AIRUNNER_I8] = { 1, "i8" },	 [AIRUNNER_I64] = { 8, "i64" },
};

#define N_DTYPES (sizeof(dtypes) / sizeof(dtypes[0]))

uint32_t air_elem_size(uint32_t dtype)
{
	return dtype < N_DTYPES ? dtypes[dtype].size : 0;
}

const char *air_elem_name(uint32_t dtype)
{
	return air_elem_size(dtype) ? dtypes[dtype].name : "?";
}

static int64_t magnitude(int64_t v)
{
	return v < 0 ? -v : v;
}

air_status air_tensor_check(const struct airunner_tensor *t, const char *op,
			    const char *operand, struct air_error *e)
{
	int64_t size = air_elem_size(t->dtype);
	int64_t elements = 1;
	int64_t span = size;

	if (!size)
		return air_fail(e, AIR_BAD_DTYPE,
				"%s: operand %s: unknown dtype %u", op, operand,
				t->dtype);
	if (t->ndim > AIRUNNER_MAX_DIMS)
		return air_fail(e, AIR_BAD_SHAPE,
				"%s: operand %s: %u dimensions; at most %d", op,
				operand, t->ndim, AIRUNNER_MAX_DIMS);
	for (uint32_t i = 0; i < AIRUNNER_MAX_DIMS; i++) {
		int64_t n = t->shape[i];
		int64_t s = t->stride[i];
		int64_t reach;

		if (i >= t->ndim) {
			if (n || s)
				return air_fail(e, AIR_BAD_RESERVED,
					"%s: operand %s: shape and stride beyond its %u dimensions must be zero",
					op, operand, t->ndim);
			continue;
		}
		if (n < 0)
			return air_fail(e, AIR_BAD_SHAPE,
				"%s: operand %s: dimension %u is %lld; it must not be negative",
				op, operand, i, (long long)n);
		if (s < -MAX_STRIDE || s > MAX_STRIDE)
			return air_fail(e, AIR_BAD_STRIDES,
				"%s: operand %s: stride %u is %lld; its magnitude must not exceed 2^56",
				op, operand, i, (long long)s);
		if (__builtin_mul_overflow(elements, n ? n : 1, &elements) ||
		    elements > MAX_ELEMENTS)
			return air_fail(e, AIR_BAD_SHAPE,
				"%s: operand %s: more than 2^62 elements", op,
				operand);
		if (n > 1 && (__builtin_mul_overflow(n - 1, magnitude(s) * size,
						     &reach) ||
			      __builtin_add_overflow(span, reach, &span) ||
			      span > MAX_SPAN))
			return air_fail(e, AIR_BAD_STRIDES,
				"%s: operand %s: spans more than 2^62 bytes",
				op, operand);
	}
	return AIR_OK;
}

int64_t air_tensor_count(const struct airunner_tensor *t)
{
	int64_t n = 1;

	for (uint32_t i = 0; i < t->ndim; i++)
		n *= t->shape[i];
	return n;
}

bool air_tensor_contiguous(const struct airunner_tensor *t)
{
	int64_t expected = 1;

	if (!air_tensor_count(t))
		return true;
	for (uint32_t i = t->ndim; i-- > 0;) {
		if (t->shape[i] != 1 && t->stride[i] != expected)
			return false;
		expected *= t->shape[i];
	}
	return true;
}

bool air_tensor_same_shape(const struct airunner_tensor *a,
			   const struct airunner_tensor *b)
{
	return a->ndim == b->ndim &&
	       !memcmp(a->shape, b->shape, a->ndim * sizeof(a->shape[0]));
}

bool air_tensor_same_layout(const struct airunner_tensor *a,
			    const struct airunner_tensor *b)
{
	if (a->dtype != b->dtype || !air_tensor_same_shape(a, b))
		return false;
	for (uint32_t i = 0; i < a->ndim; i++)
		if (a->shape[i] > 1 && a->stride[i] != b->stride[i])
			return false;
	return true;
}

void air_tensor_extent(const struct airunner_tensor *t, uint64_t *below,
		       uint64_t *above)
{
	int64_t size = air_elem_size(t->dtype);

	*below = 0;
	*above = 0;
	if (!air_tensor_count(t))
		return;
	*above = size;
	for (uint32_t i = 0; i < t->ndim; i++) {
		int64_t reach = (t->shape[i] - 1) * (t->shape[i] > 1) *
				t->stride[i] * size;

		if (reach < 0)
			*below += -reach;
		else
			*above += reach;
	}
}

bool air_tensor_distinct(const struct airunner_tensor *t)
{
	uint32_t order[AIRUNNER_MAX_DIMS];
	uint32_t n = 0;
	int64_t reach = 0;

	if (!air_tensor_count(t))
		return true;
	for (uint32_t i = 0; i < t->ndim; i++) {
		uint32_t j = n;

		if (t->shape[i] == 1)
			continue;
		for (; j && magnitude(t->stride[order[j - 1]]) >
				    magnitude(t->stride[i]);
		     j--)
			order[j] = order[j - 1];
		order[j] = i;
		n++;
	}
	for (uint32_t i = 0; i < n; i++) {
		int64_t s = magnitude(t->stride[order[i]]);

		if (s <= reach)
			return false;
		reach += s * (t->shape[order[i]] - 1);
	}
	return true;
}

/*
 * The interval that the elements of @t at @p cover once steps of the
 * dimensions whose stride is a multiple of @period bytes are left out.
 */
static void residue(const struct airunner_tensor *t, uint64_t p,
		    uint64_t period, uint64_t *start, uint64_t *length)
{
	int64_t size = air_elem_size(t->dtype);

	*start = p;
	*length = size;
	for (uint32_t i = 0; i < t->ndim; i++) {
		uint64_t step = (uint64_t)magnitude(t->stride[i]) * size;

		if (t->shape[i] <= 1 || !step || step % period == 0)
			continue;
		if (t->stride[i] < 0)
			*start -= step * (t->shape[i] - 1);
		*length += step * (t->shape[i] - 1);
	}
}

/*
 * Elements that differ by multiples of @period coincide on a circle of that
 * circumference; if the rest of both tensors lies apart there, they lie apart.
 */
static bool apart(const struct airunner_tensor *a, uint64_t pa,
		  const struct airunner_tensor *b, uint64_t pb, uint64_t period)
{
	uint64_t start_a, start_b, len_a, len_b, gap;

	residue(a, pa, period, &start_a, &len_a);
	residue(b, pb, period, &start_b, &len_b);
	if (len_a > period || len_b > period)
		return false;
	if (start_b >= start_a) {
		gap = (start_b - start_a) % period;
	} else {
		gap = (start_a - start_b) % period;
		gap = gap ? period - gap : 0;
	}
	return gap >= len_a && gap <= period - len_b;
}

bool air_tensor_overlap(const struct airunner_tensor *a, uint64_t pa,
			const struct airunner_tensor *b, uint64_t pb)
{
	const struct airunner_tensor *t[2] = { a, b };
	uint64_t below_a, above_a, below_b, above_b;

	air_tensor_extent(a, &below_a, &above_a);
	air_tensor_extent(b, &below_b, &above_b);
	if (!above_a || !above_b)
		return false;
	if (pa + above_a <= pb - below_b || pb + above_b <= pa - below_a)
		return false;
	for (int k = 0; k < 2; k++) {
		for (uint32_t i = 0; i < t[k]->ndim; i++) {
			uint64_t period = (uint64_t)magnitude(t[k]->stride[i]) *
					  air_elem_size(t[k]->dtype);

			if (t[k]->shape[i] > 1 && period &&
			    apart(a, pa, b, pb, period))
				return false;
		}
	}
	return true;
}

const char *air_shape_string(char buf[AIR_SHAPE_STRING], const __s64 *shape,
			     uint32_t ndim)
{
	int n = snprintf(buf, AIR_SHAPE_STRING, "[");

	for (uint32_t i = 0; i < ndim && n < AIR_SHAPE_STRING; i++)
		n += snprintf(buf + n, AIR_SHAPE_STRING - n, "%s%lld",
			      i ? ", " : "", (long long)shape[i]);
	if (n < AIR_SHAPE_STRING)
		snprintf(buf + n, AIR_SHAPE_STRING - n, "]");
	return buf;
}
