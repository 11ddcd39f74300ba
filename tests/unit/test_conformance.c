// SPDX-License-Identifier: MIT
/*
 * The operators on the CPU, without ring and worker: every version of the
 * kernels that this CPU can run, with and without threads and BLAS.
 *
 *	test_conformance [OPERATOR]
 *
 * CONF_SEED=N in the environment repeats a run's random data.
 */
#include <stdio.h>
#include <string.h>

#include "ops/blas.h"
#include "ops/simd.h"
#include "tests/unit/conformance.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LIGHT true
#else
#define LIGHT false
#endif

static void run(struct conf_options *opt, enum air_isa isa,
		unsigned int threads, bool blas, struct conf_totals *totals)
{
	struct conf_executor ex;
	struct conf_direct *c;
	char label[64];

	air_isa_limit(isa);
	air_blas_allow(blas);
	snprintf(label, sizeof(label), " (%s, %u threads, %s)",
		 air_isa_name(air_isa()), threads, blas ? "BLAS" : "no BLAS");
	opt->label = label;
	c = conf_direct_open(threads, &ex);
	conf_run(&ex, opt, totals);
	conf_direct_close(c);
}

int main(int argc, char **argv)
{
	struct conf_options opt = { .op = argc > 1 ? argv[1] : NULL,
				    .light = LIGHT };
	struct conf_totals totals = { 0 };
	enum air_isa best;

	setvbuf(stdout, NULL, _IOLBF, 0);
	opt.seed = conf_seed();
	air_isa_limit(AIR_ISA_COUNT - 1);
	best = air_isa();
	run(&opt, best, 3, true, &totals);
	opt.light = true;
	for (int isa = 0; isa <= (int)best; isa++)
		run(&opt, (enum air_isa)isa, 1, false, &totals);
	printf("# %u passed, %u failed\n", totals.passed, totals.failed);
	return totals.failed || !totals.passed;
}
