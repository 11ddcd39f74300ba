// SPDX-License-Identifier: MIT
/*
 * The ring on a machine without an accelerator: what it costs, against what
 * else could be used. tests/bench/run.sh runs this.
 */
#include "tests/bench/cpu.h"

int main(int argc, char **argv)
{
	struct bench *b = bench_open(argc, argv);
	struct bench_partner *p = bench_partner_create(bench_cpu(1));

	bench_pin(bench_cpu(0));
	if (bench_cpu(0) == bench_cpu(1))
		bench_absent(b, "second processor",
			     "both sides share the only one: figures say little");
#ifdef HAVE_RTE_RING
	bench_machine(b, "dpdk", DPDK_VERSION);
#else
	bench_absent(b, "rte_ring", "built without libdpdk-dev");
#endif
#ifdef HAVE_URING
	bench_machine(b, "liburing", LIBURING_VERSION);
#else
	bench_absent(b, "io_uring_nop", "built without liburing-dev");
#endif
	cpu_submit(b, p);
	cpu_round_trip(b, p);
	cpu_throughput(b, p);
	cpu_producers(b, p);
	cpu_wake(b);
	cpu_idle_channels(b);
	cpu_operators(b);
	bench_partner_destroy(p);
	return bench_close(b);
}
