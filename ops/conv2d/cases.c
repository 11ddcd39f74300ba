// SPDX-License-Identifier: MIT
#include "ops/conv2d/conv2d.h"
#include "tests/unit/conformance_activation.h"
#include "tests/unit/conformance_cases.h"

struct sizes {
	int64_t step[2], padding[2], dilation[2];
	int64_t in[2], out[2], kernel[2];
	int64_t channels_in;  /* of a group */
	int64_t channels_out; /* of all groups */
	int64_t groups;
};

static struct sizes sizes_of(const struct airunner_desc *d)
{
	const int64_t *attr = (const int64_t *)d->attr;
	struct sizes s = {
		.channels_in = d->tensor[AIR_CONV2D_WEIGHT].shape[1],
		.channels_out = d->tensor[AIR_CONV2D_Y].shape[1],
		.groups = attr[AIR_CONV2D_GROUPS],
	};

	for (int i = 0; i < 2; i++) {
		s.step[i] = attr[AIR_CONV2D_STRIDE + i];
		s.padding[i] = attr[AIR_CONV2D_PADDING + i];
		s.dilation[i] = attr[AIR_CONV2D_DILATION + i];
		s.in[i] = d->tensor[AIR_CONV2D_X].shape[2 + i];
		s.out[i] = d->tensor[AIR_CONV2D_Y].shape[2 + i];
		s.kernel[i] = d->tensor[AIR_CONV2D_WEIGHT].shape[2 + i];
	}
	return s;
}

/* Add what the kernel of one input channel sees at pixel (@row, @col). */
static void window(const struct sizes *s, const conf_real *x,
		   const conf_real *w, int64_t row, int64_t col, conf_real *sum,
		   conf_real *mag)
{
	for (int64_t i = 0; i < s->kernel[0] * s->kernel[1]; i++) {
		int64_t h = row * s->step[0] - s->padding[0] +
			    i / s->kernel[1] * s->dilation[0];
		int64_t v = col * s->step[1] - s->padding[1] +
			    i % s->kernel[1] * s->dilation[1];
		conf_real seen = 0;

		if (h >= 0 && h < s->in[0] && v >= 0 && v < s->in[1])
			seen = x[h * s->in[1] + v];
		*sum += w[i] * seen;
		*mag += fabsl(w[i] * seen);
	}
}

static void reference(const struct conf_call *c)
{
	struct sizes s = sizes_of(c->d);
	int64_t image = s.in[0] * s.in[1], pixels = s.out[0] * s.out[1];
	int64_t kernel = s.kernel[0] * s.kernel[1];

	for (int64_t i = 0; i < c->count[AIR_CONV2D_Y]; i++) {
		int64_t n = i / pixels / s.channels_out;
		int64_t o = i / pixels % s.channels_out;
		int64_t group = o / (s.channels_out / s.groups);
		conf_real sum = 0, mag = 0;

		for (int64_t k = 0; k < s.channels_in; k++)
			window(&s,
			       c->in[AIR_CONV2D_X] +
				       ((n * s.groups + group) * s.channels_in +
					k) * image,
			       c->in[AIR_CONV2D_WEIGHT] +
				       (o * s.channels_in + k) * kernel,
			       i % pixels / s.out[1], i % s.out[1], &sum, &mag);
		if (c->in[AIR_CONV2D_BIAS]) {
			sum += c->in[AIR_CONV2D_BIAS][o];
			mag += fabsl(c->in[AIR_CONV2D_BIAS][o]);
		}
		c->out[i] =
			conf_activate(c->d->attr[AIR_CONV2D_ACTIVATION], sum);
		c->mag[i] = mag;
	}
}

#define ATTR(...) .attr = { __VA_ARGS__ }

static const struct conf_case cases[] = {
	{ "3 by 3",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 2, 5, 8, 9), CONF_T(DENSE, 2, 4, 10, 11),
	    CONF_T(DENSE, 5, 4, 3, 3) },
	  ATTR(1, 1, 0, 0, 1, 1, 1, 0) },
	{ "1 by 1",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 2, 5, 10, 11), CONF_T(DENSE, 2, 4, 10, 11),
	    CONF_T(DENSE, 5, 4, 1, 1) },
	  ATTR(1, 1, 0, 0, 1, 1, 1, 0) },
	{ "all widths",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 1, 3, 4, CONF_N1), CONF_T(DENSE, 1, 2, 6, CONF_N1),
	    CONF_T(DENSE, 3, 2, 3, 1) },
	  ATTR(1, 1, 0, 0, 1, 1, 1, 0) },
	{ "padding",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 2, 5, 10, 11), CONF_T(DENSE, 2, 4, 10, 11),
	    CONF_T(DENSE, 5, 4, 3, 3) },
	  ATTR(1, 1, 1, 1, 1, 1, 1, 0) },
	{ "more padding than kernel",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 1, 2, 16, 14), CONF_T(DENSE, 1, 3, 5, 5),
	    CONF_T(DENSE, 2, 3, 2, 2) },
	  ATTR(1, 1, 6, 5, 1, 1, 1, 0) },
	{ "stride",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 2, 5, 4, 3), CONF_T(DENSE, 2, 4, 10, 11),
	    CONF_T(DENSE, 5, 4, 3, 3) },
	  ATTR(2, 4, 0, 0, 1, 1, 1, 0) },
	{ "dilation",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 2, 5, 6, 5), CONF_T(DENSE, 2, 4, 10, 11),
	    CONF_T(DENSE, 5, 4, 3, 3) },
	  ATTR(1, 1, 0, 0, 2, 3, 1, 0) },
	{ "everything",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 2, 6, 5, 3), CONF_T(DENSE, 2, 4, 12, 13),
	    CONF_T(DENSE, 6, 2, 3, 4), CONF_T(DENSE, 6) },
	  ATTR(3, 5, 2, 3, 1, 2, 2, AIR_ACT_SILU) },
	{ "not square",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 1, 5, 10, 5), CONF_T(DENSE, 1, 4, 10, 11),
	    CONF_T(DENSE, 5, 4, 1, 7) },
	  ATTR(1, 1, 0, 0, 1, 1, 1, 0) },
	{ "as large as the input",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 3, 5, 1, 1), CONF_T(DENSE, 3, 4, 6, 7),
	    CONF_T(DENSE, 5, 4, 6, 7), CONF_T(DENSE, 5) },
	  ATTR(1, 1, 0, 0, 1, 1, 1, 0) },
	{ "groups",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 2, 6, 8, 9), CONF_T(DENSE, 2, 4, 10, 11),
	    CONF_T(DENSE, 6, 2, 3, 3), CONF_T(DENSE, 6) },
	  ATTR(1, 1, 0, 0, 1, 1, 2, 0) },
	{ "depthwise",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 2, 8, 8, 9), CONF_T(DENSE, 2, 8, 10, 11),
	    CONF_T(DENSE, 8, 1, 3, 3), CONF_T(DENSE, 8) },
	  ATTR(1, 1, 0, 0, 1, 1, 8, 0) },
	{ "depthwise, two for each",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 2, 8, 8, 9), CONF_T(DENSE, 2, 4, 10, 11),
	    CONF_T(DENSE, 8, 1, 3, 3) },
	  ATTR(1, 1, 0, 0, 1, 1, 4, 0) },
	{ "bias and relu",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 2, 5, 8, 9), CONF_T(DENSE, 2, 4, 10, 11),
	    CONF_T(DENSE, 5, 4, 3, 3), CONF_T(DENSE, 5) },
	  ATTR(1, 1, 0, 0, 1, 1, 1, AIR_ACT_RELU) },
	{ "bias and silu",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 2, 5, 8, 9), CONF_T(DENSE, 2, 4, 10, 11),
	    CONF_T(DENSE, 5, 4, 3, 3), CONF_T(DENSE, 5) },
	  ATTR(1, 1, 0, 0, 1, 1, 1, AIR_ACT_SILU) },
	{ "bias and gelu",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 2, 5, 8, 9), CONF_T(DENSE, 2, 4, 10, 11),
	    CONF_T(DENSE, 5, 4, 3, 3), CONF_T(DENSE, 5) },
	  ATTR(1, 1, 0, 0, 1, 1, 1, AIR_ACT_GELU) },
	{ "bias and gelu_tanh",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 2, 5, 8, 9), CONF_T(DENSE, 2, 4, 10, 11),
	    CONF_T(DENSE, 5, 4, 3, 3), CONF_T(DENSE, 5) },
	  ATTR(1, 1, 0, 0, 1, 1, 1, AIR_ACT_GELU_TANH) },
	{ "with gaps",
	  CONF_FLOATS,
	  { CONF_T(GAPS, 2, 5, 8, 9), CONF_T(GAPS, 2, 4, 10, 11),
	    CONF_T(GAPS, 5, 4, 3, 3), CONF_T(GAPS, 5) },
	  ATTR(1, 1, 0, 0, 1, 1, 1, 0) },
	{ "channels last",
	  CONF_FLOATS,
	  { CONF_T(PERMUTED, 2, 5, 8, 9), CONF_T(PERMUTED, 2, 4, 10, 11),
	    CONF_T(PERMUTED, 5, 4, 3, 3) },
	  ATTR(1, 1, 0, 0, 1, 1, 1, 0) },
	{ "reversed",
	  CONF_FLOATS,
	  { CONF_T(REVERSED, 2, 5, 8, 9), CONF_T(REVERSED, 2, 4, 10, 11),
	    CONF_T(REVERSED, 5, 4, 3, 3) },
	  ATTR(1, 1, 0, 0, 1, 1, 1, 0) },
	{ "padded rows",
	  CONF_FLOATS,
	  { CONF_T(PADDED, 2, 5, 10, 11), CONF_T(PADDED, 2, 4, 10, 11),
	    CONF_T(PADDED, 5, 4, 3, 3) },
	  ATTR(1, 1, 1, 1, 1, 1, 1, 0) },
	{ "unaligned",
	  CONF_FLOATS,
	  { CONF_TX(DENSE, CONF_SHAPE(2, 5, 8, 9), .misalign = 1),
	    CONF_TX(DENSE, CONF_SHAPE(2, 4, 10, 11), .misalign = 3),
	    CONF_TX(DENSE, CONF_SHAPE(5, 4, 3, 3), .misalign = 1) },
	  ATTR(1, 1, 0, 0, 1, 1, 1, 0) },
	{ "one image repeated",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 3, 5, 8, 9),
	    CONF_TX(DENSE, CONF_SHAPE(3, 4, 10, 11), .repeat = 1),
	    CONF_T(DENSE, 5, 4, 3, 3) },
	  ATTR(1, 1, 0, 0, 1, 1, 1, 0) },
	{ "no images",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 0, 5, 8, 9), CONF_T(DENSE, 0, 4, 10, 11),
	    CONF_T(DENSE, 5, 4, 3, 3) },
	  ATTR(1, 1, 0, 0, 1, 1, 1, 0) },
	{ "no channels out",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 2, 0, 8, 9), CONF_T(DENSE, 2, 4, 10, 11),
	    CONF_T(DENSE, 0, 4, 3, 3) },
	  ATTR(1, 1, 0, 0, 1, 1, 1, 0) },
	{ "no channels in",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 2, 5, 8, 9), CONF_T(DENSE, 2, 0, 10, 11),
	    CONF_T(DENSE, 5, 0, 3, 3), CONF_T(DENSE, 5) },
	  ATTR(1, 1, 0, 0, 1, 1, 1, 0) },
	{ "no input but padding",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 2, 5, 2, 2), CONF_T(DENSE, 2, 4, 0, 0),
	    CONF_T(DENSE, 5, 4, 3, 3), CONF_T(DENSE, 5) },
	  ATTR(1, 1, 2, 2, 1, 1, 1, 0) },
	{ "NaN in bias",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 1, 5, 8, 9), CONF_T(DENSE, 1, 4, 10, 11),
	    CONF_T(DENSE, 5, 4, 3, 3),
	    CONF_TX(DENSE, CONF_SHAPE(5), .fill = CONF_NAN) },
	  ATTR(1, 1, 0, 0, 1, 1, 1, 0) },
	{ "NaN in x",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 1, 5, 8, 9),
	    CONF_TX(DENSE, CONF_SHAPE(1, 4, 10, 11), .fill = CONF_NAN),
	    CONF_T(DENSE, 5, 4, 3, 3) },
	  ATTR(1, 1, 0, 0, 1, 1, 1, 0) },
	{ "many channels",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 1, 70, 6, 6), CONF_T(DENSE, 1, 90, 8, 8),
	    CONF_T(DENSE, 70, 90, 3, 3) },
	  ATTR(1, 1, 0, 0, 1, 1, 1, 0),
	  .heavy = true },
	{ "large images",
	  CONF_FLOATS,
	  { CONF_T(DENSE, 2, 4, 70, 66), CONF_T(DENSE, 2, 3, 70, 66),
	    CONF_T(DENSE, 4, 3, 3, 3) },
	  ATTR(1, 1, 1, 1, 1, 1, 1, 0),
	  .heavy = true },
	{ "groups that do not divide",
	  CONF_F32,
	  { CONF_T(DENSE, 2, 5, 8, 9), CONF_T(DENSE, 2, 4, 10, 11),
	    CONF_T(DENSE, 5, 2, 3, 3) },
	  ATTR(1, 1, 0, 0, 1, 1, 2, 0),
	  .refused = AIR_BAD_SHAPE },
	{ "images differ",
	  CONF_F32,
	  { CONF_T(DENSE, 3, 5, 8, 9), CONF_T(DENSE, 2, 4, 10, 11),
	    CONF_T(DENSE, 5, 4, 3, 3) },
	  ATTR(1, 1, 0, 0, 1, 1, 1, 0),
	  .refused = AIR_BAD_SHAPE },
	{ "channels out differ",
	  CONF_F32,
	  { CONF_T(DENSE, 2, 5, 8, 9), CONF_T(DENSE, 2, 4, 10, 11),
	    CONF_T(DENSE, 6, 4, 3, 3) },
	  ATTR(1, 1, 0, 0, 1, 1, 1, 0),
	  .refused = AIR_BAD_SHAPE },
	{ "channels in differ",
	  CONF_F32,
	  { CONF_T(DENSE, 2, 5, 8, 9), CONF_T(DENSE, 2, 4, 10, 11),
	    CONF_T(DENSE, 5, 3, 3, 3) },
	  ATTR(1, 1, 0, 0, 1, 1, 1, 0),
	  .refused = AIR_BAD_SHAPE },
	{ "height differs",
	  CONF_F32,
	  { CONF_T(DENSE, 2, 5, 9, 9), CONF_T(DENSE, 2, 4, 10, 11),
	    CONF_T(DENSE, 5, 4, 3, 3) },
	  ATTR(1, 1, 0, 0, 1, 1, 1, 0),
	  .refused = AIR_BAD_SHAPE },
	{ "width differs",
	  CONF_F32,
	  { CONF_T(DENSE, 2, 5, 8, 8), CONF_T(DENSE, 2, 4, 10, 11),
	    CONF_T(DENSE, 5, 4, 3, 3) },
	  ATTR(1, 1, 0, 0, 1, 1, 1, 0),
	  .refused = AIR_BAD_SHAPE },
	{ "kernel larger than the input",
	  CONF_F32,
	  { CONF_T(DENSE, 2, 5, 1, 1), CONF_T(DENSE, 2, 4, 2, 2),
	    CONF_T(DENSE, 5, 4, 3, 3) },
	  ATTR(1, 1, 0, 0, 1, 1, 1, 0),
	  .refused = AIR_BAD_SHAPE },
	{ "kernel of 0",
	  CONF_F32,
	  { CONF_T(DENSE, 2, 5, 10, 11), CONF_T(DENSE, 2, 4, 10, 11),
	    CONF_T(DENSE, 5, 4, 0, 1) },
	  ATTR(1, 1, 0, 0, 1, 1, 1, 0),
	  .refused = AIR_BAD_SHAPE },
	{ "three dimensions",
	  CONF_F32,
	  { CONF_T(DENSE, 2, 5, 8, 9), CONF_T(DENSE, 4, 10, 11),
	    CONF_T(DENSE, 5, 4, 3, 3) },
	  ATTR(1, 1, 0, 0, 1, 1, 1, 0),
	  .refused = AIR_BAD_SHAPE },
	{ "bias of another length",
	  CONF_F32,
	  { CONF_T(DENSE, 2, 5, 8, 9), CONF_T(DENSE, 2, 4, 10, 11),
	    CONF_T(DENSE, 5, 4, 3, 3), CONF_T(DENSE, 4) },
	  ATTR(1, 1, 0, 0, 1, 1, 1, 0),
	  .refused = AIR_BAD_SHAPE },
	{ "stride of 0",
	  CONF_F32,
	  { CONF_T(DENSE, 2, 5, 8, 9), CONF_T(DENSE, 2, 4, 10, 11),
	    CONF_T(DENSE, 5, 4, 3, 3) },
	  ATTR(0, 1, 0, 0, 1, 1, 1, 0),
	  .refused = AIR_BAD_ATTRIBUTE },
	{ "negative padding",
	  CONF_F32,
	  { CONF_T(DENSE, 2, 5, 8, 9), CONF_T(DENSE, 2, 4, 10, 11),
	    CONF_T(DENSE, 5, 4, 3, 3) },
	  ATTR(1, 1, 0, -1, 1, 1, 1, 0),
	  .refused = AIR_BAD_ATTRIBUTE },
	{ "dilation of 0",
	  CONF_F32,
	  { CONF_T(DENSE, 2, 5, 8, 9), CONF_T(DENSE, 2, 4, 10, 11),
	    CONF_T(DENSE, 5, 4, 3, 3) },
	  ATTR(1, 1, 0, 0, 0, 1, 1, 0),
	  .refused = AIR_BAD_ATTRIBUTE },
	{ "no groups",
	  CONF_F32,
	  { CONF_T(DENSE, 2, 5, 8, 9), CONF_T(DENSE, 2, 4, 10, 11),
	    CONF_T(DENSE, 5, 4, 3, 3) },
	  ATTR(1, 1, 0, 0, 1, 1, 0, 0),
	  .refused = AIR_BAD_ATTRIBUTE },
	{ "no such activation",
	  CONF_F32,
	  { CONF_T(DENSE, 2, 5, 8, 9), CONF_T(DENSE, 2, 4, 10, 11),
	    CONF_T(DENSE, 5, 4, 3, 3) },
	  ATTR(1, 1, 0, 0, 1, 1, 1, 9),
	  .refused = AIR_BAD_ATTRIBUTE },
	{ "other dtype",
	  CONF_F32,
	  { CONF_T(DENSE, 2, 5, 8, 9), CONF_T(DENSE, 2, 4, 10, 11),
	    CONF_TX(DENSE, CONF_SHAPE(5, 4, 3, 3), .dtype = AIRUNNER_F16) },
	  ATTR(1, 1, 0, 0, 1, 1, 1, 0),
	  .refused = AIR_BAD_DTYPE },
	{ "integers",
	  CONF_I8,
	  { CONF_T(DENSE, 2, 5, 8, 9), CONF_T(DENSE, 2, 4, 10, 11),
	    CONF_T(DENSE, 5, 4, 3, 3) },
	  ATTR(1, 1, 0, 0, 1, 1, 1, 0),
	  .refused = AIR_BAD_DTYPE },
	{ "output repeats",
	  CONF_F32,
	  { CONF_TX(DENSE, CONF_SHAPE(2, 5, 8, 9), .repeat = 1),
	    CONF_T(DENSE, 2, 4, 10, 11), CONF_T(DENSE, 5, 4, 3, 3) },
	  ATTR(1, 1, 0, 0, 1, 1, 1, 0),
	  .refused = AIR_BAD_STRIDES },
};

const struct conf_op air_cases_conv2d = {
	.id = AIR_OP_conv2d,
	.reference = reference,
	.error = 8,
	CONF_CASES(cases),
};
