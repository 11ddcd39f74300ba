// SPDX-License-Identifier: MIT
/*
 * How fast the kernels of cuda-launch move memory, beside what the driver's
 * own device-to-device copy reaches on the same GPU in the same run, and how
 * long single small operators take.
 *
 *	measure PLUGIN [JSON]
 *
 * Each row is the median of several rounds; a round runs the operator often
 * enough to last some milliseconds, on data far larger than the cache where
 * bandwidth is asked for.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/tensor.h"
#include "tests/gpu/drive.h"

#define ROUNDS 7
#define REGION (1ull << 30)	/* of device memory for each operand */

static struct drive dr;
static struct air_wbuffer buf[3];
static double copy_rate;	/* bytes a second, read and written */
static FILE *json;
static const char *comma = "";

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

static void row(const char *name, double value, const char *unit, double ratio)
{
	printf("%-44s %10.2f %-7s", name, value, unit);
	if (ratio > 0)
		printf(" %6.3f of copy", ratio);
	putchar('\n');
	if (!json)
		return;
	fprintf(json, "%s\n\t\"%s\": {\"value\": %.4f, \"unit\": \"%s\"",
		comma, name, value, unit);
	if (ratio > 0)
		fprintf(json, ", \"of_copy\": %.4f", ratio);
	fputc('}', json);
	comma = ",";
}

static void measure_copy(void)
{
	double t[ROUNDS];
	CUstream s;

	drive_cuda.stream_create(&s, 1);
	for (int r = -1; r < ROUNDS; r++) {
		uint64_t begin = drive_now();

		for (int i = 0; i < 8; i++)
			drive_cuda.memcpy_dtod_async(addr(0), addr(1), REGION,
						     s);
		drive_cuda.stream_sync(s);
		if (r >= 0)
			t[r] = (double)(drive_now() - begin) / 8;
	}
	copy_rate = 2.0 * REGION / median(t, ROUNDS) * 1e9;
	row("cuMemcpyDtoDAsync 1 GiB", copy_rate / 1e9, "GB/s", 1.0);
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

/*
 * Seconds that one execution takes, back to back. @n operands of @desc are
 * placed in as many regions.
 */
static double time_op(struct airunner_desc *desc, unsigned int repeat)
{
	struct air_work work = { 0 };
	struct air_plan plan;
	struct air_error e = { "" };
	uint64_t workspace;
	double t[ROUNDS];
	air_status st;

	desc->size = sizeof(*desc);
	st = air_plan_init(&plan, desc, &e);
	workspace = plan.workspace;
	if (!st)
		st = dr.ops->plan(dr.ex, &plan, &work.plan_priv, &workspace,
				  &e);
	if (st) {
		printf("%s: %d %s\n", air_op_find(desc->op)->name, st, e.text);
		return 0;
	}
	work.plan = &plan;
	for (uint32_t i = 0; i < desc->n_tensors; i++)
		work.addr[i] = addr(i < 3 ? i : 2);
	for (int r = -1; r < ROUNDS; r++) {
		uint64_t begin = drive_now();

		st = drive_run(&dr, &work, repeat);
		if (st)
			printf("%s: status %d\n", air_op_find(desc->op)->name,
			       st);
		if (r >= 0)
			t[r] = (double)(drive_now() - begin) / repeat;
	}
	dr.ops->unplan(dr.ex, work.plan_priv);
	return median(t, ROUNDS) * 1e-9;
}

static void bandwidth(const char *name, struct airunner_desc *d, double bytes)
{
	double s = time_op(d, 8);

	if (s > 0)
		row(name, bytes / s / 1e9, "GB/s", bytes / s / copy_rate);
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
			char name[64];

			d.n_tensors = 1 + op[i].inputs;
			for (uint32_t j = 0; j < d.n_tensors; j++)
				tensor(&d.tensor[j], dtype[k], 1,
				       (int64_t)(REGION / size), 0);
			if (op[i].op == AIR_OP_scale)
				memcpy(&d.attr[0], &alpha, 8);
			snprintf(name, sizeof(name), "%s %s 1 GiB", op[i].name,
				 air_elem_name(dtype[k]));
			bandwidth(name, &d, (double)d.n_tensors * REGION);
		}
}

static void rows(void)
{
	static const int64_t length[] = { 128, 256, 512, 1024, 2048, 4096,
					  8192, 16384, 32768, 65536, 131072 };
	static const struct {
		const char *name;
		uint32_t op;
	} op[] = {
		{ "reduce_sum", AIR_OP_reduce_sum },
		{ "softmax", AIR_OP_softmax },
		{ "rms_norm", AIR_OP_rms_norm },
		{ "layer_norm", AIR_OP_layer_norm },
	};
	static const uint32_t dtype[] = { AIRUNNER_F32, AIRUNNER_BF16 };

	for (size_t o = 0; o < sizeof(op) / sizeof(op[0]); o++)
		for (size_t k = 0; k < 2; k++)
			for (size_t l = 0; l < sizeof(length) / 8; l++) {
				uint32_t size = air_elem_size(dtype[k]);
				int64_t n = (int64_t)(REGION / 2 / size) /
					    length[l];
				struct airunner_desc d = { .op = op[o].op };
				double eps = 1e-5, bytes = REGION / 2;
				char name[64];

				d.n_tensors = 2;
				tensor(&d.tensor[1], dtype[k], 2, n,
				       length[l]);
				d.tensor[0] = d.tensor[1];
				if (op[o].op == AIR_OP_reduce_sum) {
					tensor(&d.tensor[0], dtype[k], 1, n,
					       0);
					d.attr[0] = 2;
				} else if (op[o].op == AIR_OP_softmax) {
					d.attr[0] = 1;
					bytes *= 2;
				} else {
					tensor(&d.tensor[2], dtype[k], 1,
					       length[l], 0);
					d.n_tensors = 3;
					memcpy(&d.attr[0], &eps, 8);
					bytes *= 2;
				}
				snprintf(name, sizeof(name),
					 "%s %s rows of %lld", op[o].name,
					 air_elem_name(dtype[k]),
					 (long long)length[l]);
				bandwidth(name, &d, bytes);
			}
}

static void transposes(void)
{
	static const uint32_t dtype[] = { AIRUNNER_F32, AIRUNNER_BF16 };

	for (size_t k = 0; k < 2; k++) {
		struct airunner_desc d = { .op = AIR_OP_copy, .n_tensors = 2 };
		char name[64];

		tensor(&d.tensor[0], dtype[k], 2, 8192, 8192);
		tensor(&d.tensor[1], dtype[k], 2, 8192, 8192);
		d.tensor[1].stride[0] = 1;
		d.tensor[1].stride[1] = 8192;
		snprintf(name, sizeof(name), "copy %s transposed 8192x8192",
			 air_elem_name(dtype[k]));
		bandwidth(name, &d,
			  2.0 * 8192 * 8192 * air_elem_size(dtype[k]));
	}
}

static void matmuls(void)
{
	static const struct {
		uint32_t dtype;
		int64_t m, n, k;
		uint32_t trans_b, act, repeat;
	} mm[] = {
		{ AIRUNNER_BF16, 8192, 8192, 8192, 0, 0, 4 },
		{ AIRUNNER_F16, 8192, 8192, 8192, 0, 0, 4 },
		{ AIRUNNER_F32, 4096, 4096, 4096, 0, 0, 4 },
		{ AIRUNNER_BF16, 4096, 4096, 4096, 0, 2, 4 },
		{ AIRUNNER_BF16, 1, 4096, 4096, 0, 0, 64 },
		{ AIRUNNER_BF16, 1, 4096, 4096, 1, 0, 64 },
		{ AIRUNNER_BF16, 1, 16384, 16384, 0, 0, 16 },
		{ AIRUNNER_BF16, 1, 16384, 16384, 1, 0, 16 },
		{ AIRUNNER_BF16, 4, 16384, 16384, 1, 0, 16 },
	};

	for (size_t i = 0; i < sizeof(mm) / sizeof(mm[0]); i++) {
		struct airunner_desc d = { .op = AIR_OP_matmul,
					   .n_tensors = 3 };
		double one = 1, s, flop, bytes;
		char name[64];

		tensor(&d.tensor[0], mm[i].dtype, 2, mm[i].m, mm[i].n);
		tensor(&d.tensor[1], mm[i].dtype, 2, mm[i].m, mm[i].k);
		if (mm[i].trans_b)
			tensor(&d.tensor[2], mm[i].dtype, 2, mm[i].n, mm[i].k);
		else
			tensor(&d.tensor[2], mm[i].dtype, 2, mm[i].k, mm[i].n);
		d.attr[1] = mm[i].trans_b;
		memcpy(&d.attr[2], &one, 8);
		d.attr[4] = mm[i].act;
		s = time_op(&d, mm[i].repeat);
		if (s <= 0)
			continue;
		flop = 2.0 * (double)mm[i].m * (double)mm[i].n *
		       (double)mm[i].k;
		bytes = (double)mm[i].n * (double)mm[i].k *
			air_elem_size(mm[i].dtype);
		snprintf(name, sizeof(name), "matmul %s %lldx%lldx%lld%s%s",
			 air_elem_name(mm[i].dtype), (long long)mm[i].m,
			 (long long)mm[i].n, (long long)mm[i].k,
			 mm[i].trans_b ? " b'" : "", mm[i].act ? " silu" : "");
		if (mm[i].m > 4)
			row(name, flop / s / 1e12, "TFLOP/s", 0);
		else
			row(name, bytes / s / 1e9, "GB/s",
			    bytes / s / copy_rate);
	}
}

static void latencies(void)
{
	struct airunner_desc d = { .op = AIR_OP_vector_add, .n_tensors = 3,
				   .size = sizeof(d) };
	struct air_work work = { 0 };
	struct air_plan plan;
	struct air_error e = { "" };
	uint64_t workspace = 0;
	static double t[2000];

	for (uint32_t i = 0; i < 3; i++)
		tensor(&d.tensor[i], AIRUNNER_F32, 1, 1024, 0);
	if (air_plan_init(&plan, &d, &e) ||
	    dr.ops->plan(dr.ex, &plan, &work.plan_priv, &workspace, &e))
		return;
	work.plan = &plan;
	for (uint32_t i = 0; i < 3; i++)
		work.addr[i] = addr(i);
	for (size_t i = 0; i < 2000; i++) {
		uint64_t begin = drive_now();

		drive_run(&dr, &work, 1);
		t[i] = (double)(drive_now() - begin) * 1e-3;
	}
	row("vector_add 1024, run to completion", median(t, 2000), "us", 0);
	for (size_t i = 0; i < 20; i++) {
		uint64_t begin = drive_now();

		drive_run(&dr, &work, 1000);
		t[i] = (double)(drive_now() - begin) * 1e-6;
	}
	row("vector_add 1024, back to back", median(t, 20), "us", 0);
	work.flags = AIRUNNER_SQE_UNORDERED;
	for (size_t i = 0; i < 20; i++) {
		uint64_t begin = drive_now();

		drive_run(&dr, &work, 1000);
		t[i] = (double)(drive_now() - begin) * 1e-6;
	}
	row("vector_add 1024, unordered", median(t, 20), "us", 0);
	dr.ops->unplan(dr.ex, work.plan_priv);
}

/* Random bits that are numbers of moderate size in f32, f16 and bf16 alike. */
static void fill(void)
{
	uint32_t *p = malloc(REGION), x = 12345;

	for (uint64_t i = 0; i < REGION / 4; i++) {
		x ^= x << 13;
		x ^= x >> 17;
		x ^= x << 5;
		p[i] = (x & 0x83ff83ff) | 0x3c003c00;
	}
	for (uint32_t i = 0; i < 3; i++)
		drive_cuda.memcpy_htod(addr(i), p, REGION);
	free(p);
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc < 2) {
		puts("measure PLUGIN [JSON]");
		return 2;
	}
	drive_open(&dr, argv[1], "cuda-launch");
	for (uint32_t i = 0; i < 3; i++)
		if (drive_alloc(&dr, &buf[i], REGION)) {
			puts("no device memory");
			return 1;
		}
	fill();
	if (argc > 2) {
		json = fopen(argv[2], "w");
		if (json)
			fputs("{", json);
	}
	measure_copy();
	latencies();
	elementwise();
	transposes();
	matmuls();
	rows();
	if (json) {
		fputs("\n}\n", json);
		fclose(json);
	}
	for (uint32_t i = 0; i < 3; i++)
		dr.ops->buffer_free(dr.ex, &buf[i]);
	drive_close(&dr);
	return 0;
}
