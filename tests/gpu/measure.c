// SPDX-License-Identifier: MIT
/*
 * How fast the kernels of cuda-launch are, beside what the driver's own copy
 * and cuBLASLt reach on the same GPU in the same run.
 *
 *	measure PLUGIN JSON [SECTION...]
 *
 * Sections: latency elementwise transpose matmul rows sizes; default all.
 * A row is the median of several rounds; a round runs the operator often enough
 * to last some milliseconds. Rows with a target say whether they meet it.
 * torch_peer.py adds what PyTorch needs for the rows that have a "torch".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ops/tensor.h"
#include "tests/gpu/drive.h"
#include "tests/gpu/peer_lt.h"

#define ROUNDS 7
/*
 * Between rows, each of which takes some 40 ms. What the card draws is limited
 * over about a second: without rests, rows that compute much are measured at a
 * clock that depends on the rows before (an H200 was seen to go from 1980 to
 * 1665 MHz).
 */
#define REST_US 100000
#define REGION (4ull << 30)	/* of device memory for each operand */
#define LARGE (1ull << 30)	/* far more than the cache */

static struct drive dr;
static struct air_wbuffer buf[3];
static CUstream stream;
static double copy_rate;	/* bytes a second, read and written */
static unsigned int misses;
static FILE *json;
static const char *comma = "";

/* What a row is about, besides its time. */
struct row {
	char name[80];
	double seconds;
	double bytes;		/* moved; or */
	double flop;		/* done */
	double target;		/* least ratio; 0: none */
	double peer;		/* seconds of cuBLASLt; 0: memory is the peer */
	char torch[120];	/* for torch_peer.py */
};

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median(double *v, unsigned int n)
{
	qsort(v, n, sizeof(*v), by_value);
	return v[n / 2];
}

static uint64_t addr(uint32_t i)
{
	return buf[i].addr[AIRUNNER_EXEC_CUDA_LAUNCH];
}

static void put_row(const struct row *r)
{
	double value = r->flop > 0  ? r->flop / r->seconds / 1e12 :
		       r->bytes > 0 ? r->bytes / r->seconds / 1e9 :
				      r->seconds * 1e6;
	const char *unit = r->flop > 0 ? "TFLOP/s" : r->bytes > 0 ? "GB/s" : "us";
	const char *of = r->peer > 0 ? "of cuBLASLt" : "of copy";
	double ratio = r->peer > 0  ? r->peer / r->seconds :
		       r->bytes > 0 ? r->bytes / r->seconds / copy_rate : 0;
	bool missed = r->target > 0 && ratio < r->target;

	misses += missed;
	printf("%-44s %9.2f %-7s", r->name, value, unit);
	if (ratio > 0)
		printf(" %6.3f %s", ratio, of);
	if (missed)
		printf("  MISSED %.2f", r->target);
	putchar('\n');
	if (!json)
		return;
	fprintf(json, "%s\n\t\"%s\": {\"value\": %.4f, \"unit\": \"%s\", \"us\": %.4f",
		comma, r->name, value, unit, r->seconds * 1e6);
	if (ratio > 0)
		fprintf(json, ", \"%s\": %.4f",
			r->peer > 0 ? "of_cublaslt" : "of_copy", ratio);
	if (r->target > 0)
		fprintf(json, ", \"target\": %.2f, \"meets\": %s", r->target,
			missed ? "false" : "true");
	if (r->torch[0])
		fprintf(json, ", \"torch\": %s", r->torch);
	fputc('}', json);
	comma = ",";
}

static void measure_copy(void)
{
	struct row r = { .name = "cuMemcpyDtoDAsync 1 GiB",
			 .bytes = 2.0 * LARGE };
	double t[ROUNDS];

	for (int k = -1; k < ROUNDS; k++) {
		uint64_t begin = drive_now();

		for (int i = 0; i < 8; i++)
			drive_cuda.memcpy_dtod_async(addr(0), addr(1), LARGE,
						     stream);
		drive_cuda.stream_sync(stream);
		if (k >= 0)
			t[k] = (double)(drive_now() - begin) / 8;
	}
	r.seconds = median(t, ROUNDS) * 1e-9;
	copy_rate = r.bytes / r.seconds;
	put_row(&r);
}

static void tensor(struct airunner_tensor *t, uint32_t dtype, uint32_t ndim,
		   int64_t a, int64_t b)
{
	memset(t, 0, sizeof(*t));
	t->dtype = dtype;
	t->ndim = ndim;
	t->shape[0] = a;
	if (ndim == 2)
		t->shape[1] = b;
	t->stride[ndim - 1] = 1;
	if (ndim == 2)
		t->stride[0] = b;
}

/* An operator planned, on operands in as many regions. */
struct subject {
	struct air_plan plan;
	struct air_work work;
};

static bool subject_open(struct subject *s, struct airunner_desc *desc)
{
	struct air_error e = { "" };
	uint64_t workspace;
	air_status st;

	memset(&s->work, 0, sizeof(s->work));
	desc->size = sizeof(*desc);
	st = air_plan_init(&s->plan, desc, &e);
	workspace = s->plan.workspace;
	if (!st)
		st = dr.ops->plan(dr.ex, &s->plan, &s->work.plan_priv,
				  &workspace, &e);
	if (st) {
		printf("%s: %d %s\n", air_op_find(desc->op)->name, st, e.text);
		misses++;
		return false;
	}
	s->work.plan = &s->plan;
	for (uint32_t i = 0; i < desc->n_tensors; i++)
		s->work.addr[i] = addr(i < 3 ? i : 2);
	return true;
}

static void subject_close(struct subject *s)
{
	dr.ops->unplan(dr.ex, s->work.plan_priv);
}

/* Seconds of one of @repeat executions back to back. */
static double subject_run(struct subject *s, unsigned int repeat)
{
	uint64_t begin = drive_now();
	air_status st = drive_run(&dr, &s->work, repeat);

	if (st) {
		printf("%s: status %d\n", s->plan.op->name, st);
		misses++;
	}
	return (double)(drive_now() - begin) * 1e-9 / repeat;
}

/* So many that a round lasts some milliseconds. */
static unsigned int repeats(double seconds)
{
	double n = 4e-3 / seconds;

	return n < 4 ? 4 : n > 500 ? 500 : (unsigned int)n;
}

static void time_op(struct row *r, struct airunner_desc *desc)
{
	struct subject s;
	unsigned int n;
	double t[ROUNDS];

	if (!subject_open(&s, desc))
		return;
	usleep(REST_US);
	subject_run(&s, 2);
	n = repeats(subject_run(&s, 4));
	for (int i = 0; i < ROUNDS; i++)
		t[i] = subject_run(&s, n);
	subject_close(&s);
	r->seconds = median(t, ROUNDS);
	put_row(r);
}

static void elementwise(void)
{
	static const struct {
		const char *name;
		uint32_t op, inputs;
	} op[] = {
		{ "copy", AIR_OP_copy, 1 },   { "add", AIR_OP_add, 2 },
		{ "mul", AIR_OP_mul, 2 },     { "scale", AIR_OP_scale, 1 },
		{ "relu", AIR_OP_relu, 1 },   { "silu", AIR_OP_silu, 1 },
		{ "gelu", AIR_OP_gelu, 1 },
	};
	static const uint32_t dtype[] = { AIRUNNER_F32, AIRUNNER_BF16 };

	for (size_t i = 0; i < sizeof(op) / sizeof(op[0]); i++)
		for (size_t k = 0; k < 2; k++) {
			struct airunner_desc d = { .op = op[i].op };
			uint32_t size = air_elem_size(dtype[k]);
			double alpha = 0.5;
			struct row r = { .target = 0.95 };

			d.n_tensors = 1 + op[i].inputs;
			for (uint32_t j = 0; j < d.n_tensors; j++)
				tensor(&d.tensor[j], dtype[k], 1,
				       (int64_t)(LARGE / size), 0);
			if (op[i].op == AIR_OP_scale)
				memcpy(&d.attr[0], &alpha, 8);
			if (op[i].op == AIR_OP_copy)
				r.target = 0.97;
			snprintf(r.name, sizeof(r.name), "%s %s 1 GiB",
				 op[i].name, air_elem_name(dtype[k]));
			r.bytes = (double)d.n_tensors * LARGE;
			time_op(&r, &d);
		}
}

/* One of the operators that work on rows, of @n rows of @length elements. */
static void row_op(struct airunner_desc *d, struct row *r, uint32_t op,
		   uint32_t dtype, int64_t n, int64_t length)
{
	double eps = 1e-5;
	uint32_t size = air_elem_size(dtype);

	*d = (struct airunner_desc){ .op = op, .n_tensors = 2 };
	r->bytes = (double)n * (double)length * size * 2;
	tensor(&d->tensor[1], dtype, 2, n, length);
	d->tensor[0] = d->tensor[1];
	if (op == AIR_OP_reduce_sum) {
		tensor(&d->tensor[0], dtype, 1, n, 0);
		d->attr[0] = 2;
		r->bytes = (double)n * (double)(length + 1) * size;
	} else if (op == AIR_OP_softmax) {
		d->attr[0] = 1;
	} else {
		tensor(&d->tensor[2], dtype, 1, length, 0);
		d->n_tensors = 3;
		memcpy(&d->attr[0], &eps, 8);
	}
	snprintf(r->torch, sizeof(r->torch),
		 "[\"%s\", \"%s\", %lld, %lld]", air_op_find(op)->name,
		 air_elem_name(dtype), (long long)n, (long long)length);
}

static const uint32_t dtypes[] = { AIRUNNER_F32, AIRUNNER_BF16 };

static void rows(void)
{
	static const uint32_t op[] = { AIR_OP_reduce_sum, AIR_OP_softmax,
				       AIR_OP_rms_norm, AIR_OP_layer_norm };

	for (size_t o = 0; o < sizeof(op) / sizeof(op[0]); o++)
		for (size_t k = 0; k < 2; k++)
			for (int64_t length = 128; length <= 131072;
			     length *= 2) {
				int64_t size = air_elem_size(dtypes[k]);
				int64_t n = LARGE / 2 / size / length;
				struct row r = { .target = 0.90 };
				struct airunner_desc d;

				row_op(&d, &r, op[o], dtypes[k], n, length);
				snprintf(r.name, sizeof(r.name),
					 "%s %s rows of %lld",
					 air_op_find(op[o])->name,
					 air_elem_name(dtypes[k]),
					 (long long)length);
				time_op(&r, &d);
			}
}

/* From 1 K to 1 G elements; rows, where there are, of 1024. */
static void sizes(void)
{
	static const uint32_t op[] = { AIR_OP_copy,	AIR_OP_add,
				       AIR_OP_relu,	AIR_OP_silu,
				       AIR_OP_reduce_sum, AIR_OP_softmax,
				       AIR_OP_rms_norm, AIR_OP_layer_norm };

	for (size_t o = 0; o < sizeof(op) / sizeof(op[0]); o++)
		for (size_t k = 0; k < 2; k++)
			for (uint32_t log2 = 10; log2 <= 30; log2 += 4) {
				struct row r = { .target = 0 };
				struct airunner_desc d = { .op = op[o] };
				int64_t n = 1ll << log2;

				if (o >= 4) {
					row_op(&d, &r, op[o], dtypes[k],
					       n / 1024, 1024);
				} else {
					uint32_t t = 2 + (op[o] == AIR_OP_add);

					d.n_tensors = t;
					for (uint32_t i = 0; i < t; i++)
						tensor(&d.tensor[i], dtypes[k],
						       1, n, 0);
					snprintf(r.torch, sizeof(r.torch),
						 "[\"%s\", \"%s\", 1, %lld]",
						 air_op_find(op[o])->name,
						 air_elem_name(dtypes[k]),
						 (long long)n);
				}
				r.bytes = 0;
				snprintf(r.name, sizeof(r.name),
					 "%s %s 2^%u elements",
					 air_op_find(op[o])->name,
					 air_elem_name(dtypes[k]), log2);
				time_op(&r, &d);
			}
}

static void transposes(void)
{
	for (size_t k = 0; k < 2; k++) {
		struct airunner_desc d = { .op = AIR_OP_copy, .n_tensors = 2 };
		struct row r = { .target = 0 };

		tensor(&d.tensor[0], dtypes[k], 2, 16384, 16384);
		tensor(&d.tensor[1], dtypes[k], 2, 16384, 16384);
		d.tensor[1].stride[0] = 1;
		d.tensor[1].stride[1] = 16384;
		r.bytes = 2.0 * 16384 * 16384 * air_elem_size(dtypes[k]);
		snprintf(r.name, sizeof(r.name),
			 "copy %s transposed 16384x16384",
			 air_elem_name(dtypes[k]));
		time_op(&r, &d);
	}
}

/* In turns with cuBLASLt, as the GPU's clock goes down with its load. */
static void time_matmul(struct row *r, struct airunner_desc *d,
			struct peer_lt *peer, uint64_t workspace)
{
	double t[ROUNDS], u[ROUNDS];
	struct subject s;
	unsigned int n;

	if (!subject_open(&s, d))
		return;
	subject_run(&s, 2);
	n = repeats(subject_run(&s, 4));
	for (int i = -1; i < ROUNDS; i++) {
		double mine = subject_run(&s, n);
		uint64_t begin = drive_now();

		if (peer &&
		    peer_lt_run(peer, addr(0), addr(1), addr(2), workspace,
				stream, n))
			puts("cuBLASLt: refused");
		drive_cuda.stream_sync(stream);
		if (i < 0)
			continue;
		t[i] = mine;
		u[i] = (double)(drive_now() - begin) * 1e-9 / n;
	}
	subject_close(&s);
	r->seconds = median(t, ROUNDS);
	if (peer)
		r->peer = median(u, ROUNDS);
	put_row(r);
}

static void matmuls(void)
{
	static const struct {
		uint32_t dtype;
		int64_t batch, m, n, k;
		uint32_t trans_b, act;
	} mm[] = {
		{ AIRUNNER_BF16, 1, 8192, 8192, 8192, 0, 0 },
		{ AIRUNNER_F16, 1, 8192, 8192, 8192, 0, 0 },
		{ AIRUNNER_F32, 1, 4096, 4096, 4096, 0, 0 },
		{ AIRUNNER_BF16, 1, 4096, 4096, 4096, 1, 0 },
		{ AIRUNNER_BF16, 1, 4096, 4096, 4096, 0, 2 },
		{ AIRUNNER_BF16, 1, 2048, 2048, 2048, 0, 0 },
		{ AIRUNNER_BF16, 1, 1024, 1024, 1024, 0, 0 },
		{ AIRUNNER_F16, 1, 1024, 1024, 1024, 1, 0 },
		{ AIRUNNER_F32, 1, 1024, 1024, 1024, 0, 0 },
		{ AIRUNNER_BF16, 1, 512, 512, 512, 0, 0 },
		{ AIRUNNER_BF16, 1, 256, 256, 256, 0, 0 },
		{ AIRUNNER_BF16, 1, 128, 128, 128, 0, 0 },
		{ AIRUNNER_F32, 1, 128, 128, 128, 0, 0 },
		{ AIRUNNER_F32, 1, 64, 64, 64, 0, 0 },
		{ AIRUNNER_BF16, 64, 512, 512, 512, 0, 0 },
		{ AIRUNNER_F32, 64, 512, 512, 512, 0, 0 },
		{ AIRUNNER_BF16, 256, 128, 128, 64, 1, 0 },
		{ AIRUNNER_BF16, 1, 16, 4096, 4096, 1, 0 },
		{ AIRUNNER_BF16, 1, 8, 4096, 4096, 1, 0 },
		{ AIRUNNER_BF16, 1, 64, 8192, 8192, 1, 0 },
		{ AIRUNNER_BF16, 1, 1, 4096, 4096, 0, 0 },
		{ AIRUNNER_BF16, 1, 1, 4096, 4096, 1, 0 },
		{ AIRUNNER_F32, 1, 1, 4096, 4096, 1, 0 },
		{ AIRUNNER_BF16, 1, 1, 16384, 16384, 0, 0 },
		{ AIRUNNER_BF16, 1, 1, 16384, 16384, 1, 0 },
		{ AIRUNNER_BF16, 1, 4, 16384, 16384, 1, 0 },
		{ AIRUNNER_BF16, 1, 8192, 64, 8192, 0, 0 },
		{ AIRUNNER_BF16, 1, 8192, 1, 8192, 0, 0 },
	};
	struct air_wbuffer workspace;

	if (drive_alloc(&dr, &workspace, 32ull << 20))
		return;
	for (size_t i = 0; i < sizeof(mm) / sizeof(mm[0]); i++) {
		struct airunner_desc d = { .op = AIR_OP_matmul,
					   .n_tensors = 3 };
		int64_t z = mm[i].batch, m = mm[i].m, n = mm[i].n, k = mm[i].k;
		uint32_t tb = mm[i].trans_b;
		struct row r = { .target = 0.98 };
		struct peer_lt *peer;
		double one = 1;

		for (uint32_t t = 0; t < 3; t++) {
			struct airunner_tensor *x = &d.tensor[t];
			int64_t rows = t < 2 || !tb ? (t == 2 ? k : m) : n;
			int64_t columns = t == 1 ? k : t == 2 && tb ? k : n;

			x->dtype = mm[i].dtype;
			x->ndim = 3;
			x->shape[0] = z;
			x->shape[1] = rows;
			x->shape[2] = columns;
			x->stride[0] = rows * columns;
			x->stride[1] = columns;
			x->stride[2] = 1;
		}
		d.attr[1] = tb;
		memcpy(&d.attr[2], &one, 8);
		d.attr[4] = mm[i].act;
		r.flop = 2.0 * (double)(m * n * k * z);
		snprintf(r.name, sizeof(r.name),
			 "matmul %s %lldx%lldx%lld%s%s",
			 air_elem_name(mm[i].dtype), (long long)m,
			 (long long)n, (long long)k, tb ? " b'" : "",
			 mm[i].act ? " silu" : "");
		if (z > 1)
			snprintf(r.name + strlen(r.name),
				 sizeof(r.name) - strlen(r.name), " x%lld",
				 (long long)z);
		if (mm[i].act)
			r.target = 0;
		peer = peer_lt_open(mm[i].dtype, (uint64_t)m, (uint64_t)n,
				    (uint64_t)k, (uint64_t)z, tb);
		time_matmul(&r, &d, peer,
			    workspace.addr[AIRUNNER_EXEC_CUDA_LAUNCH]);
		if (peer)
			peer_lt_close(peer);
	}
	dr.ops->buffer_free(dr.ex, &workspace);
}

static void latencies(void)
{
	struct airunner_desc d = { .op = AIR_OP_vector_add, .n_tensors = 3 };
	struct row r = { .name = "vector_add 1024, run to completion" };
	static double t[2000];
	struct subject s;

	for (uint32_t i = 0; i < 3; i++)
		tensor(&d.tensor[i], AIRUNNER_F32, 1, 1024, 0);
	if (!subject_open(&s, &d))
		return;
	for (size_t i = 0; i < 2000; i++)
		t[i] = subject_run(&s, 1);
	r.seconds = median(t, 2000);
	put_row(&r);
	for (size_t i = 0; i < 20; i++)
		t[i] = subject_run(&s, 1000);
	strcpy(r.name, "vector_add 1024, back to back");
	r.seconds = median(t, 20);
	put_row(&r);
	s.work.flags = AIRUNNER_SQE_UNORDERED;
	for (size_t i = 0; i < 20; i++)
		t[i] = subject_run(&s, 1000);
	strcpy(r.name, "vector_add 1024, unordered");
	r.seconds = median(t, 20);
	put_row(&r);
	subject_close(&s);
}

/* Random bits that are numbers of moderate size in f32, f16 and bf16 alike. */
static void fill(void)
{
	uint32_t *p = malloc(LARGE), x = 12345;

	for (uint64_t i = 0; i < LARGE / 4; i++) {
		x ^= x << 13;
		x ^= x >> 17;
		x ^= x << 5;
		p[i] = (x & 0x83ff83ff) | 0x3c003c00;
	}
	for (uint32_t i = 0; i < 3; i++)
		for (uint64_t at = 0; at < REGION; at += LARGE)
			drive_cuda.memcpy_htod(addr(i) + at, p, LARGE);
	free(p);
}

static bool wanted(int argc, char **argv, const char *section)
{
	for (int i = 3; i < argc; i++)
		if (!strcmp(argv[i], section))
			return true;
	return argc < 4;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} section[] = {
		{ "latency", latencies },   { "elementwise", elementwise },
		{ "transpose", transposes }, { "matmul", matmuls },
		{ "rows", rows },	    { "sizes", sizes },
	};

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc < 3) {
		puts("measure PLUGIN JSON [SECTION...]");
		return 2;
	}
	drive_open(&dr, argv[1], "cuda-launch");
	for (uint32_t i = 0; i < 3; i++)
		if (drive_alloc(&dr, &buf[i], REGION)) {
			puts("no device memory");
			return 1;
		}
	drive_cuda.stream_create(&stream, 1);
	fill();
	json = fopen(argv[2], "w");
	if (!json) {
		perror(argv[2]);
		return 1;
	}
	fputs("{", json);
	measure_copy();
	for (size_t i = 0; i < sizeof(section) / sizeof(section[0]); i++)
		if (wanted(argc, argv, section[i].name))
			section[i].run();
	fputs("\n}\n", json);
	fclose(json);
	printf("%u rows miss their target\n", misses);
	for (uint32_t i = 0; i < 3; i++)
		dr.ops->buffer_free(dr.ex, &buf[i]);
	drive_close(&dr);
	return 0;
}
