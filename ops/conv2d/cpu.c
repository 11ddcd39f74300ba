// SPDX-License-Identifier: MIT
/*
 * Convolution as a product of matrices, group by group: weights are the rows
 * of A (channels of y by what is summed over), and column p of B is what the
 * kernel sees at output pixel p. B is never stored: its tiles are made when
 * they are needed.
 */
#include <stdlib.h>

#include "ops/activation.h"
#include "ops/conv2d/conv2d.h"
#include "ops/cpu.h"
#include "ops/gemm.h"

struct plan {
	struct air_cpu_plan base;
	int64_t groups;
	int64_t m, n, k; /* per group */
	int64_t step[2], padding[2], dilation[2];
	int64_t in[2], out[2], kernel[2]; /* heights and widths */
	int64_t stride[3][4];		  /* bytes, of y, x and weight */
	struct air_vec y;		  /* along a row of pixels */
	struct air_vec bias;
	air_load_fn load;
	uint32_t activation;
};

enum { Y = AIR_CONV2D_Y, X = AIR_CONV2D_X, WEIGHT = AIR_CONV2D_WEIGHT };

/* One group. */
struct product {
	const struct plan *plan;
	char *y;
	const char *x;
	const char *weight;
	const char *bias;
};

/* A pixel of y: image, row, column. */
struct pixel {
	int64_t image, row, col;
};

static struct pixel pixel_at(const struct plan *plan, int64_t j)
{
	return (struct pixel){
		.image = j / plan->out[1] / plan->out[0],
		.row = j / plan->out[1] % plan->out[0],
		.col = j % plan->out[1],
	};
}

/* The first pixel of the next row. */
static void next_row(const struct plan *plan, struct pixel *p)
{
	p->col = 0;
	if (++p->row == plan->out[0]) {
		p->row = 0;
		p->image++;
	}
}

static int64_t clamp(int64_t v, int64_t low, int64_t high)
{
	return v < low ? low : v > high ? high : v;
}

/*
 * @n pixels of one row of y from column @col on: the elements of x's row @at
 * that kernel column @kw meets, 0 beyond its edges.
 */
static void pack_row(const struct plan *plan, float *dst, const char *at,
		     int64_t col, int64_t n, int64_t kw)
{
	int64_t step = plan->step[1];
	int64_t first = col * step + kw * plan->dilation[1] - plan->padding[1];
	/* Pixels [begin, end) meet columns of x that exist. */
	int64_t begin = first >= 0 ? 0 : (-first + step - 1) / step;
	int64_t end = plan->in[1] > first
			      ? (plan->in[1] - first + step - 1) / step
			      : 0;

	end = clamp(end, 0, n);
	begin = clamp(begin, 0, end);
	memset(dst, 0, begin * sizeof(*dst));
	if (begin < end)
		plan->load(dst + begin,
			   at + (first + begin * step) * plan->stride[X][3],
			   step * plan->stride[X][3], end - begin);
	memset(dst + end, 0, (n - end) * sizeof(*dst));
}

static void pack_input(const void *source, float *dst, int64_t k0, int64_t rows,
		       int64_t j0, int64_t cols)
{
	const struct product *p = source;
	const struct plan *plan = p->plan;
	const int64_t *sx = plan->stride[X];

	for (int64_t k = k0; k < k0 + rows; k++) {
		int64_t kw = k % plan->kernel[1];
		int64_t kh = k / plan->kernel[1] % plan->kernel[0];
		int64_t channel = k / plan->kernel[1] / plan->kernel[0];
		struct pixel px = pixel_at(plan, j0);

		for (int64_t j = 0; j < cols;) {
			int64_t n = clamp(plan->out[1] - px.col, 0, cols - j);
			int64_t h = px.row * plan->step[0] +
				    kh * plan->dilation[0] - plan->padding[0];

			if (h >= 0 && h < plan->in[0])
				pack_row(plan, dst + j,
					 p->x + px.image * sx[0] +
						 channel * sx[1] + h * sx[2],
					 px.col, n, kw);
			else
				memset(dst + j, 0, n * sizeof(*dst));
			j += n;
			next_row(plan, &px);
		}
		dst += cols;
	}
}

static void pack_weight(const void *source, float *dst, int64_t m0,
			int64_t rows, int64_t k0, int64_t cols)
{
	const struct product *p = source;
	const struct plan *plan = p->plan;
	const int64_t *sw = plan->stride[WEIGHT];

	for (int64_t m = m0; m < m0 + rows; m++) {
		for (int64_t k = k0; k < k0 + cols;) {
			int64_t kw = k % plan->kernel[1];
			int64_t kh = k / plan->kernel[1] % plan->kernel[0];
			int64_t channel = k / plan->kernel[1] / plan->kernel[0];
			int64_t n =
				clamp(plan->kernel[1] - kw, 0, k0 + cols - k);

			plan->load(dst,
				   p->weight + m * sw[0] + channel * sw[1] +
					   kh * sw[2] + kw * sw[3],
				   sw[3], n);
			dst += n;
			k += n;
		}
	}
}

static void finish_row(const struct product *p, float *acc, int64_t m,
		       int64_t j0, int64_t cols)
{
	const struct plan *plan = p->plan;
	const int64_t *sy = plan->stride[Y];
	struct pixel px = pixel_at(plan, j0);
	float bias = 0;

	if (p->bias)
		plan->bias.load(&bias, p->bias + m * plan->bias.stride, 0, 1);
	for (int64_t j = 0; p->bias && j < cols; j++)
		acc[j] += bias;
	air_activate(plan->activation, acc, cols);
	for (int64_t j = 0; j < cols;) {
		int64_t n = clamp(plan->out[1] - px.col, 0, cols - j);

		plan->y.store(p->y + px.image * sy[0] + m * sy[1] +
				      px.row * sy[2] + px.col * sy[3],
			      sy[3], acc + j, n);
		j += n;
		next_row(plan, &px);
	}
}

static void finish(void *arg, float *acc, int64_t i0, int64_t rows, int64_t j0,
		   int64_t cols)
{
	for (int64_t r = 0; r < rows; r++)
		finish_row(arg, acc + r * cols, i0 + r, j0, cols);
}

static air_status run(const struct air_cpu_plan *base,
		      void *const operand[AIRUNNER_MAX_TENSORS + 1],
		      struct air_pool *pool)
{
	const struct plan *plan = (const struct plan *)base;
	struct product p = {
		.plan = plan,
		.y = operand[Y],
		.x = operand[X],
		.weight = operand[WEIGHT],
		.bias = operand[AIR_CONV2D_BIAS],
	};
	struct air_gemm g = {
		.m = plan->m,
		.n = plan->n,
		.k = plan->k,
		.alpha = 1,
		.a = &p,
		.b = &p,
		.pack_a = pack_weight,
		.pack_b = pack_input,
		.arg = &p,
		.finish = finish,
	};
	int64_t in_group = plan->k / plan->kernel[0] / plan->kernel[1];

	if (!plan->m || !plan->n)
		return AIR_OK;
	for (int64_t i = 0; i < plan->groups; i++) {
		air_gemm(&g, operand[AIRUNNER_MAX_TENSORS], pool);
		p.y += plan->m * plan->stride[Y][1];
		p.weight += plan->m * plan->stride[WEIGHT][0];
		p.x += in_group * plan->stride[X][1];
		if (p.bias)
			p.bias += plan->m * plan->bias.stride;
	}
	return AIR_OK;
}

static void destroy(struct air_cpu_plan *base)
{
	free(base);
}

static void fill(struct plan *plan, const struct airunner_desc *d)
{
	const struct airunner_tensor *t = d->tensor;
	const struct airunner_tensor *bias = &t[AIR_CONV2D_BIAS];

	memset(plan, 0, sizeof(*plan));
	for (uint32_t i = 0; i < 2; i++) {
		plan->step[i] = (int64_t)d->attr[AIR_CONV2D_STRIDE + i];
		plan->padding[i] = (int64_t)d->attr[AIR_CONV2D_PADDING + i];
		plan->dilation[i] = (int64_t)d->attr[AIR_CONV2D_DILATION + i];
		plan->in[i] = t[X].shape[2 + i];
		plan->out[i] = t[Y].shape[2 + i];
		plan->kernel[i] = t[WEIGHT].shape[2 + i];
	}
	plan->groups = (int64_t)d->attr[AIR_CONV2D_GROUPS];
	plan->m = t[Y].shape[1] / plan->groups;
	plan->n = t[Y].shape[0] * plan->out[0] * plan->out[1];
	plan->k = t[WEIGHT].shape[1] * plan->kernel[0] * plan->kernel[1];
	plan->activation = (uint32_t)d->attr[AIR_CONV2D_ACTIVATION];
	for (uint32_t i = 0; i < 3; i++)
		for (uint32_t k = 0; k < 4; k++)
			plan->stride[i][k] =
				t[i].stride[k] * air_elem_size(t[i].dtype);
	plan->load = air_loader(t[X].dtype);
	air_vec_init(&plan->y, t[Y].dtype, plan->stride[Y][3]);
	air_vec_init(&plan->bias, bias->dtype,
		     bias->stride[0] * air_elem_size(bias->dtype));
}

uint64_t air_conv2d_cpu_workspace(const struct airunner_desc *d)
{
	struct plan plan;

	fill(&plan, d);
	return air_gemm_workspace(plan.m, plan.n, plan.k);
}

air_status air_conv2d_cpu_plan(const struct airunner_desc *d,
			       struct air_cpu_plan **out, struct air_error *e)
{
	struct plan *plan = malloc(sizeof(*plan));

	if (!plan)
		return air_fail(e, AIR_NO_MEMORY, "no memory for a plan");
	fill(plan, d);
	plan->base.run = run;
	plan->base.destroy = destroy;
	*out = &plan->base;
	return AIR_OK;
}
