// SPDX-License-Identifier: MIT
/*
 * Every kernel family of the CUDA executors against the CPU executor's
 * operators, which the conformance suite checks against float64. Inputs are
 * random, outputs poisoned, memory around the outputs watched.
 *
 *	selfcheck PLUGIN EXECUTOR [FILTER | SLICE/OF] [SECONDS]
 *
 * FILTER is a part of the line of a case ("" for all of them). SLICE/OF is one
 * of OF parts of the list, all of which take about as long. After SECONDS no
 * further case is begun; the last line says how many there were then.
 *
 * A case is a line: operator, operands (outputs first), attributes.
 *	f32[4,5]		dense
 *	f32[4,5:1,4]		with strides
 *	f32[4,5]+3		first element 3 elements off an aligned address
 *	-			left out
 *	#1			an integer attribute, %0.5 a floating point one
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/cpu.h"
#include "ops/tensor.h"
#include "tests/gpu/drive.h"

#define GUARD 256u
#define POISON 0xa5

static const char *const cases[] = {
#include "tests/gpu/cases.inc"
};

struct operand {
	uint64_t below, above, shift;
	unsigned char *host;	/* what the GPU starts with, guards included */
	unsigned char *cpu;	/* what the CPU makes of it */
	struct air_wbuffer buf;
};

static uint64_t seed = 0x9e3779b97f4a7c15ull;

static uint32_t rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)(seed >> 32);
}

/* ---------------------------------------------------------------- numbers */

static uint16_t f32_to_f16(float f)
{
	_Float16 h = (_Float16)f;
	uint16_t u;

	memcpy(&u, &h, 2);
	return u;
}

static uint16_t f32_to_bf16(float f)
{
	uint32_t u;

	memcpy(&u, &f, 4);
	if ((u & 0x7fffffff) > 0x7f800000)
		return (uint16_t)(u >> 16 | 0x40);
	u += 0x7fff + (u >> 16 & 1);
	return (uint16_t)(u >> 16);
}

static double get(uint32_t dtype, const unsigned char *p)
{
	uint32_t u;
	float f;

	switch (dtype) {
	case AIRUNNER_F32:
		memcpy(&f, p, 4);
		return f;
	case AIRUNNER_F16: {
		_Float16 h;

		memcpy(&h, p, 2);
		return (double)h;
	}
	case AIRUNNER_BF16: {
		uint16_t h;

		memcpy(&h, p, 2);
		u = (uint32_t)h << 16;
		memcpy(&f, &u, 4);
		return f;
	}
	case AIRUNNER_I32: {
		int32_t i;

		memcpy(&i, p, 4);
		return i;
	}
	case AIRUNNER_I64: {
		int64_t i;

		memcpy(&i, p, 8);
		return (double)i;
	}
	default:
		return (double)(signed char)*p;
	}
}

static void put(uint32_t dtype, unsigned char *p, float f, int64_t i)
{
	uint16_t h;
	int32_t w = (int32_t)i;

	switch (dtype) {
	case AIRUNNER_F32:
		memcpy(p, &f, 4);
		break;
	case AIRUNNER_F16:
	case AIRUNNER_BF16:
		h = dtype == AIRUNNER_F16 ? f32_to_f16(f) : f32_to_bf16(f);
		memcpy(p, &h, 2);
		break;
	case AIRUNNER_I32:
		memcpy(p, &w, 4);
		break;
	case AIRUNNER_I64:
		memcpy(p, &i, 8);
		break;
	default:
		*p = (unsigned char)i;
	}
}

/* Fill all memory of an operand, elements or not, with fresh numbers. */
static void fill(struct operand *o, const struct airunner_desc *d, uint32_t i)
{
	uint32_t dtype = d->tensor[i].dtype, size = air_elem_size(dtype);
	uint64_t n = (o->below + o->above) / size;
	unsigned char *p = o->host + GUARD + o->shift;
	int64_t limit = 0;

	if (d->op == AIR_OP_embedding && i == 2)
		limit = d->tensor[1].shape[0];
	if (d->op == AIR_OP_rope && i == 4)
		limit = d->tensor[2].shape[0];
	for (uint64_t k = 0; k < n; k++, p += size) {
		uint32_t r = rnd();
		float f = (float)(r & 0xffff) / 16384.0f - 2.0f;

		put(dtype, p, f,
		    limit ? (int64_t)(r % (uint32_t)limit) :
			    (int64_t)(r >> 16) % 256 - 128);
	}
}

/* ------------------------------------------------------------------ cases */

static const char *parse_dims(const char *s, int64_t out[], uint32_t *n)
{
	char *end;

	for (*n = 0; *s && *s != ']' && *s != ':'; (*n)++) {
		out[*n] = strtoll(s, &end, 10);
		s = *end == ',' ? end + 1 : end;
	}
	return s;
}

static int parse_tensor(const char *s, struct airunner_tensor *t,
			uint64_t *shift)
{
	static const char *const name[] = { "?", "f32", "f16", "bf16",
					    "i32", "i8", "i64" };
	size_t len = strcspn(s, "[");
	int64_t run = 1, dims[AIRUNNER_MAX_DIMS];
	uint32_t n = 0;

	*shift = 0;
	memset(t, 0, sizeof(*t));
	if (*s == '-')
		return 0;
	for (uint32_t i = 1; i < 7; i++)
		if (strlen(name[i]) == len && !strncmp(s, name[i], len))
			t->dtype = i;
	s = parse_dims(s + len + 1, dims, &t->ndim);
	for (uint32_t i = 0; i < t->ndim; i++)
		t->shape[i] = dims[i];
	for (uint32_t i = t->ndim; i-- > 0;) {
		t->stride[i] = run;
		run *= t->shape[i] ? t->shape[i] : 1;
	}
	if (*s == ':') {
		s = parse_dims(s + 1, dims, &n);
		for (uint32_t i = 0; i < n; i++)
			t->stride[i] = dims[i];
	}
	if (*s == ']' && s[1] == '+')
		*shift = strtoull(s + 2, NULL, 10) * air_elem_size(t->dtype);
	return t->dtype ? 0 : -1;
}

static int parse(const char *line, struct airunner_desc *d, uint64_t shift[])
{
	char copy[512], *rest = copy, *word;
	uint32_t attrs = 0;

	memset(d, 0, sizeof(*d));
	d->size = sizeof(*d);
	snprintf(copy, sizeof(copy), "%s", line);
	word = strsep(&rest, " ");
	for (uint32_t i = 1; i < AIR_OP_COUNT; i++)
		if (!strcmp(air_op_find(i)->name, word))
			d->op = i;
	while ((word = strsep(&rest, " "))) {
		double f;

		if (*word == '#') {
			d->attr[attrs++] = strtoull(word + 1, NULL, 0);
		} else if (*word == '%') {
			f = strtod(word + 1, NULL);
			memcpy(&d->attr[attrs++], &f, 8);
		} else if (*word) {
			if (parse_tensor(word, &d->tensor[d->n_tensors],
					 &shift[d->n_tensors]))
				return -1;
			d->n_tensors++;
		}
	}
	return d->op ? 0 : -1;
}

/* -------------------------------------------------------------- one check */

static struct air_pool *pool;

static void make_operand(struct drive *dr, struct operand *o,
			 const struct airunner_desc *d, uint32_t i,
			 uint64_t shift)
{
	uint64_t size;

	air_tensor_extent(&d->tensor[i], &o->below, &o->above);
	o->shift = shift;
	size = o->below + o->above + shift + 2 * GUARD;
	o->host = malloc(size);
	o->cpu = malloc(size);
	memset(o->host, POISON, size);
	if (i)
		fill(o, d, i);
	memcpy(o->cpu, o->host, size);
	if (drive_alloc(dr, &o->buf, size)) {
		puts("no device memory");
		exit(1);
	}
	drive_cuda.memcpy_htod(o->buf.addr[AIRUNNER_EXEC_CUDA_LAUNCH], o->host,
			       size);
}

static uint64_t first(const struct operand *o)
{
	return GUARD + o->shift + o->below;
}

static double tolerance(uint32_t dtype)
{
	switch (dtype) {
	case AIRUNNER_F32:
		return 2e-5;
	case AIRUNNER_F16:
		return 2e-3;
	case AIRUNNER_BF16:
		return 1.6e-2;
	default:
		return 0;
	}
}

/*
 * The smallest number of a dtype: subnormal results are its multiples, and two
 * that are the same but for the last bit may be rounded to neighbours.
 */
static double least(uint32_t dtype)
{
	switch (dtype) {
	case AIRUNNER_F16:
		return 0x1p-24;
	case AIRUNNER_BF16:
		return 0x1p-133;
	default:
		return 0;
	}
}

/* Compare all of the output's memory: elements closely, the rest exactly. */
static int compare(const char *line, const struct airunner_tensor *y,
		   const struct operand *o, const unsigned char *got)
{
	uint64_t size = o->below + o->above + o->shift + 2 * GUARD;
	uint32_t bytes = air_elem_size(y->dtype), bad = 0;
	double tol = tolerance(y->dtype), norm = 0, worst = 0;
	int64_t n = air_tensor_count(y), at[AIRUNNER_MAX_DIMS] = { 0 };
	unsigned char *seen = calloc(1, size);

	for (int pass = 0; pass < 2; pass++) {
		memset(at, 0, sizeof(at));
		for (int64_t k = 0; k < n; k++) {
			int64_t off = (int64_t)first(o);
			double a, b, err;

			for (uint32_t i = 0; i < y->ndim; i++)
				off += at[i] * y->stride[i] * (int64_t)bytes;
			for (uint32_t i = y->ndim; i-- > 0;) {
				if (++at[i] < y->shape[i])
					break;
				at[i] = 0;
			}
			a = get(y->dtype, o->cpu + off);
			b = get(y->dtype, got + off);
			if (!pass) {
				norm += isfinite(a) ? a * a / (double)n : 0;
				memset(seen + off, 1, bytes);
				continue;
			}
			if (isnan(a) || isnan(b) || isinf(a) || isinf(b)) {
				if (isnan(a) != isnan(b) ||
				    (!isnan(a) && a != b))
					bad++;
				continue;
			}
			err = fabs(a - b) / (fabs(a) + sqrt(norm) + 1e-30);
			if (fabs(a - b) <= least(y->dtype))
				continue;
			if (err > worst)
				worst = err;
			if (err > tol) {
				if (!bad)
					printf("  element %lld: %g, not %g\n",
					       (long long)k, b, a);
				bad++;
			}
		}
	}
	for (uint64_t i = 0; i < size; i++)
		if (!seen[i] && got[i] != o->host[i]) {
			printf("  byte %llu outside the output was written\n",
			       (unsigned long long)i);
			bad++;
			break;
		}
	free(seen);
	if (bad)
		printf("FAIL %s: %u wrong, worst %.2g\n", line, bad, worst);
	return bad ? 1 : 0;
}

/* 0 right, 1 wrong, 2 not for this executor. */
static int check(struct drive *dr, const char *line)
{
	struct operand o[AIRUNNER_MAX_TENSORS] = { 0 };
	uint64_t shift[AIRUNNER_MAX_TENSORS] = { 0 }, workspace, size;
	void *operand[AIRUNNER_MAX_TENSORS + 1] = { NULL };
	struct air_work work = { 0 };
	struct air_cpu_plan *cpu;
	struct airunner_desc desc;
	struct air_plan plan;
	struct air_error e = { "" };
	unsigned char *got;
	air_status st;
	int bad = 0;

	if (parse(line, &desc, shift)) {
		printf("FAIL %s: cannot be read\n", line);
		return 1;
	}
	st = air_plan_init(&plan, &desc, &e);
	if (!st)
		st = plan.op->cpu_plan(&desc, &cpu, &e);
	workspace = plan.workspace;
	if (!st) {
		st = dr->ops->plan(dr->ex, &plan, &work.plan_priv, &workspace,
				   &e);
		if (st == AIR_UNSUPPORTED) {
			cpu->destroy(cpu);
			return 2;
		}
	}
	if (st) {
		printf("FAIL %s: plan: %d %s\n", line, st, e.text);
		return 1;
	}
	for (uint32_t i = 0; i < desc.n_tensors; i++) {
		if (!desc.tensor[i].dtype)
			continue;
		make_operand(dr, &o[i], &desc, i, shift[i]);
		operand[i] = o[i].cpu + first(&o[i]);
		work.addr[i] = o[i].buf.addr[AIRUNNER_EXEC_CUDA_LAUNCH] +
			       first(&o[i]);
	}
	if (plan.op->cpu_workspace)
		operand[AIRUNNER_MAX_TENSORS] =
			malloc(plan.op->cpu_workspace(&desc) + 64);
	work.plan = &plan;
	cpu->run(cpu, operand, pool);
	st = drive_run(dr, &work, 1);
	size = o[0].below + o[0].above + o[0].shift + 2 * GUARD;
	got = malloc(size);
	drive_cuda.memcpy_dtoh(got, o[0].buf.addr[AIRUNNER_EXEC_CUDA_LAUNCH],
			       size);
	if (st) {
		printf("FAIL %s: status %d (%s)\n", line, st, e.text);
		bad = 1;
	} else {
		bad = compare(line, &desc.tensor[0], &o[0], got);
		if (bad)
			printf("  %s\n", e.text);
	}
	for (uint32_t i = 0; i < desc.n_tensors; i++) {
		if (!o[i].host)
			continue;
		dr->ops->buffer_free(dr->ex, &o[i].buf);
		free(o[i].host);
		free(o[i].cpu);
	}
	free(got);
	free(operand[AIRUNNER_MAX_TENSORS]);
	cpu->destroy(cpu);
	dr->ops->unplan(dr->ex, work.plan_priv);
	return bad;
}

static size_t common_divisor(size_t a, size_t b)
{
	return b ? common_divisor(b, a % b) : a;
}

/*
 * Which case is the @i-th: far from the one before, so that slices, and what
 * there was time for, are a bit of everything.
 */
static const char *spread(size_t i)
{
	const size_t n = sizeof(cases) / sizeof(cases[0]);
	size_t far = n / 3;

	/* steps of such a length come to every case */
	while (common_divisor(far, n) != 1)
		far++;
	return cases[i * far % n];
}

int main(int argc, char **argv)
{
	const size_t count = sizeof(cases) / sizeof(cases[0]);
	unsigned int n[3] = { 0 }, slice = 1, of = 1;
	uint64_t begin = drive_now(), told = begin, limit = ~0ull;
	const char *filter = argc > 3 ? argv[3] : "";
	size_t left = 0;
	struct drive dr;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc < 3) {
		puts("selfcheck PLUGIN EXECUTOR [FILTER | SLICE/OF] [SECONDS]");
		return 2;
	}
	if (sscanf(filter, "%u/%u", &slice, &of) == 2)
		filter = "";
	if (argc > 4)
		limit = begin + strtoull(argv[4], NULL, 10) * 1000000000ull;
	drive_open(&dr, argv[1], argv[2]);
	pool = air_pool_create(0);
	for (size_t i = 0; i < count; i++) {
		const char *line = spread(i);

		if (i % of != slice - 1 || !strstr(line, filter))
			continue;
		if (drive_now() > limit) {
			left++;
			continue;
		}
		n[check(&dr, line)]++;
		if (drive_now() - told < 5000000000ull)
			continue;
		told = drive_now();
		printf("  %u cases, %llu s\n", n[0] + n[1] + n[2],
		       (unsigned long long)((told - begin) / 1000000000ull));
	}
	printf("selfcheck %s: %u right, %u wrong, %u not for it", argv[2],
	       n[0], n[1], n[2]);
	if (left)
		printf(", %zu not begun: time was up", left);
	if (dr.attached)
		printf(" (ring lent %u times, %u came back undone)",
		       dr.attached, dr.ran_here);
	putchar('\n');
	air_pool_destroy(pool);
	drive_close(&dr);
	return n[1] || !n[0] ? 1 : 0;
}
