// SPDX-License-Identifier: MIT
#include <errno.h>
#include <sched.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "tests/bench/bench.h"

#define MAX_CONTENDERS 12
#define MAX_TAIL (1u << 20)

void bench_fail(const char *fmt, ...)
{
	va_list ap;

	fflush(stdout);
	fputs("bench: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

/* ------------------------------------------------------------------- time */

uint64_t bench_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

uint64_t bench_ticks(void)
{
#if defined(__x86_64__)
	unsigned int aux;

	return __builtin_ia32_rdtscp(&aux);
#else
	return bench_now();
#endif
}

static double ns_per_tick(void)
{
	static double value;

	if (value == 0) {
		uint64_t t0 = bench_now(), c0 = bench_ticks(), t1;

		do
			t1 = bench_now();
		while (t1 - t0 < 50000000);
		value = (double)(t1 - t0) / (double)(bench_ticks() - c0);
	}
	return value;
}

double bench_ticks_ns(uint64_t ticks)
{
	return (double)ticks * ns_per_tick();
}

/* ---------------------------------------------------------------- pinning */

static bool read_line(const char *path, char *buf, size_t size)
{
	FILE *f = fopen(path, "r");
	bool ok = f && fgets(buf, (int)size, f);

	if (f)
		fclose(f);
	if (ok)
		buf[strcspn(buf, "\n")] = '\0';
	return ok;
}

static bool siblings(int a, int b)
{
	char path[128], list[64];
	int first, second;

	snprintf(path, sizeof(path),
		 "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list",
		 a);
	if (!read_line(path, list, sizeof(list)))
		return false;
	return sscanf(list, "%d%*[-,]%d", &first, &second) == 2 &&
	       (b == first || b == second);
}

int bench_cpu(unsigned int side)
{
	static int chosen[2] = { -1, -1 };
	cpu_set_t set;

	if (chosen[0] < 0) {
		sched_getaffinity(0, sizeof(set), &set);
		for (int c = CPU_SETSIZE - 1; c >= 0; c--) {
			if (!CPU_ISSET(c, &set))
				continue;
			if (chosen[0] < 0)
				chosen[0] = c;
			else if (chosen[1] < 0 && !siblings(chosen[0], c))
				chosen[1] = c;
		}
		if (chosen[1] < 0)
			chosen[1] = chosen[0];
	}
	return chosen[side];
}

void bench_pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		bench_fail("cannot pin to processor %d: %s", cpu,
			   strerror(errno));
}

/* All processors but the serving side's, if there are more. */
static void spread(void)
{
	cpu_set_t set;
	long n = sysconf(_SC_NPROCESSORS_ONLN);

	CPU_ZERO(&set);
	for (int c = 0; c < n; c++)
		if (c != bench_cpu(1) || n == 1)
			CPU_SET(c, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

struct bench_partner {
	pthread_t thread;
	int cpu;
	sem_t start, done;
	void (*fn)(void *arg);
	void *arg;
};

static void *partner_main(void *arg)
{
	struct bench_partner *p = arg;

	if (p->cpu >= 0)
		bench_pin(p->cpu);
	else
		spread();
	for (;;) {
		while (sem_wait(&p->start))
			;
		if (!p->fn)
			return NULL;
		p->fn(p->arg);
		sem_post(&p->done);
	}
}

struct bench_partner *bench_partner_create(int cpu)
{
	struct bench_partner *p = calloc(1, sizeof(*p));

	if (!p)
		bench_fail("no memory");
	p->cpu = cpu;
	sem_init(&p->start, 0, 0);
	sem_init(&p->done, 0, 0);
	if (pthread_create(&p->thread, NULL, partner_main, p))
		bench_fail("cannot create a thread");
	return p;
}

void bench_partner_start(struct bench_partner *p, void (*fn)(void *arg),
			 void *arg)
{
	p->fn = fn;
	p->arg = arg;
	sem_post(&p->start);
}

void bench_partner_join(struct bench_partner *p)
{
	while (sem_wait(&p->done))
		;
}

void bench_partner_destroy(struct bench_partner *p)
{
	p->fn = NULL;
	sem_post(&p->start);
	pthread_join(p->thread, NULL);
	free(p);
}

/* ---------------------------------------------------------------- samples */

struct series {
	double *value;
	size_t n, room;
};

struct bench_row {
	struct series rounds[MAX_CONTENDERS];
	struct series tails[MAX_CONTENDERS];
	unsigned int current;
	bool counted;
};

static void add(struct series *s, double value)
{
	if (s->n == s->room) {
		s->room = s->room ? 2 * s->room : 1024;
		s->value = realloc(s->value, s->room * sizeof(*s->value));
		if (!s->value)
			bench_fail("no memory for samples");
	}
	s->value[s->n++] = value;
}

void bench_tail(struct bench_row *row, double value)
{
	struct series *s = &row->tails[row->current];

	if (row->counted && s->n < MAX_TAIL)
		add(s, value);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Nearest rank, of a sorted series. */
static double quantile(const struct series *s, double q)
{
	size_t i = (size_t)(q * (double)(s->n - 1) + 0.5);

	return s->value[i];
}

static json_t *summary(struct series *s)
{
	double sum = 0;

	for (size_t i = 0; i < s->n; i++)
		sum += s->value[i];
	return json_pack("{s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "n",
			 (json_int_t)s->n, "min", s->value[0], "p10",
			 quantile(s, 0.10), "p50", quantile(s, 0.50), "p90",
			 quantile(s, 0.90), "p99", quantile(s, 0.99), "max",
			 s->value[s->n - 1], "mean", sum / (double)s->n);
}

/* ------------------------------------------------------------------- file */

struct bench {
	json_t *root, *rows, *samples, *machine, *absent;
	const char *out, *only;
	double effort;
	bool printed_head;
	unsigned int n_rows;
};

static json_t *text(const char *s)
{
	json_t *j = json_string(s);

	return j ? j : json_string("?");
}

void bench_machine(struct bench *b, const char *key, const char *value)
{
	json_object_set_new(b->machine, key, text(value));
}

static void file_value(struct bench *b, const char *key, const char *path)
{
	char line[256];

	bench_machine(b, key,
		      read_line(path, line, sizeof(line)) ? line : "unknown");
}

static void cpu_model(struct bench *b)
{
	FILE *f = fopen("/proc/cpuinfo", "r");
	bool named = false, virtual = false;
	char line[4096];

	while (f && fgets(line, sizeof(line), f)) {
		char *colon = strchr(line, ':');

		if (colon && !named && !strncmp(line, "model name", 10)) {
			line[strcspn(line, "\n")] = '\0';
			bench_machine(b, "cpu", colon + 2);
			named = true;
		}
		virtual |= !strncmp(line, "flags", 5) &&
			   strstr(line, " hypervisor");
	}
	if (f)
		fclose(f);
	bench_machine(b, "virtual", virtual ? "yes" : "no");
}

static void load_now(struct bench *b, const char *key)
{
	file_value(b, key, "/proc/loadavg");
}

static void describe_machine(struct bench *b)
{
	char buf[256], path[96];
	struct utsname u;
	time_t now = time(NULL);
	struct tm tm;

	uname(&u);
	snprintf(buf, sizeof(buf), "%s %s %s", u.sysname, u.release, u.machine);
	bench_machine(b, "kernel", buf);
	cpu_model(b);
	json_object_set_new(b->machine, "processors",
			    json_integer(sysconf(_SC_NPROCESSORS_ONLN)));
	snprintf(buf, sizeof(buf), "%d and %d%s", bench_cpu(0), bench_cpu(1),
		 bench_cpu(0) == bench_cpu(1) ? " (only one!)" : "");
	bench_machine(b, "pinned_to", buf);
	snprintf(path, sizeof(path),
		 "/sys/devices/system/cpu/cpu%d/cpufreq/scaling_governor",
		 bench_cpu(0));
	file_value(b, "governor", path);
	file_value(b, "clocksource",
		   "/sys/devices/system/clocksource/clocksource0/current_clocksource");
	snprintf(buf, sizeof(buf), "%.1f MHz (timestamp counter)",
		 1e3 / ns_per_tick());
	bench_machine(b, "clock", buf);
	bench_machine(b, "compiler", "gcc " __VERSION__);
	gmtime_r(&now, &tm);
	strftime(buf, sizeof(buf), "%Y-%m-%dT%H:%M:%SZ", &tm);
	bench_machine(b, "date", buf);
	load_now(b, "load_before");
}

struct bench *bench_open(int argc, char **argv)
{
	struct bench *b = calloc(1, sizeof(*b));
	const char *commit = getenv("BENCH_COMMIT");

	if (!b)
		bench_fail("no memory");
	setvbuf(stdout, NULL, _IOLBF, 0);
	b->effort = 1.0;
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--quick"))
			b->effort = 0.1;
		else if (!strcmp(argv[i], "--out") && i + 1 < argc)
			b->out = argv[++i];
		else if (!strcmp(argv[i], "--only") && i + 1 < argc)
			b->only = argv[++i];
		else
			bench_fail("usage: %s [--out FILE] [--quick] [--only SUBSTRING-OF-ROW]",
				   argv[0]);
	}
	b->root = json_object();
	b->machine = json_object();
	b->rows = json_object();
	b->samples = json_object();
	b->absent = json_object();
	json_object_set_new(b->root, "machine", b->machine);
	json_object_set_new(b->root, "commit",
			    text(commit && *commit ? commit : "unknown"));
	json_object_set_new(b->root, "rows", b->rows);
	json_object_set_new(b->root, "samples", b->samples);
	json_object_set_new(b->root, "absent", b->absent);
	describe_machine(b);
	return b;
}

void bench_group(struct bench *b, const char *group)
{
	json_t *all = json_object_get(b->root, "executors"), *g;

	if (!group) {
		b->rows = json_object_get(b->root, "rows");
		b->samples = json_object_get(b->root, "samples");
		return;
	}
	if (!all) {
		all = json_object();
		json_object_set_new(b->root, "executors", all);
	}
	g = json_object_get(all, group);
	if (!g) {
		g = json_pack("{s:{}, s:{}}", "rows", "samples");
		json_object_set_new(all, group, g);
	}
	b->rows = json_object_get(g, "rows");
	b->samples = json_object_get(g, "samples");
	printf("\nexecutor %s\n", group);
}

void bench_absent(struct bench *b, const char *name, const char *why)
{
	printf("(without %s: %s)\n", name, why);
	json_object_set_new(b->absent, name, text(why));
}

bool bench_wants(const struct bench *b, const char *name)
{
	return !b->only || strstr(name, b->only);
}

double bench_effort(const struct bench *b)
{
	return b->effort;
}

/* ------------------------------------------------------------------- rows */

static void report(struct bench *b, const struct bench_spec *spec,
		   struct bench_row *row, const struct bench_contender *c,
		   unsigned int n)
{
	json_t *out = json_object(), *details = json_object();
	double ring = quantile(&row->rounds[0], 0.5);
	char key[96];

	printf("\n%s: %s (%s an operation, median of %zu rounds)\n",
	       spec->name, spec->what, spec->unit, row->rounds[0].n);
	printf("  %-22s %10s %10s %10s %10s   %s\n", "", "median", "p10", "p90",
	       "p99", "ring / peer");
	for (unsigned int i = 0; i < n; i++) {
		struct series *s = &row->rounds[i];
		struct series *t = row->tails[i].n ? &row->tails[i] : s;
		double median = quantile(s, 0.5), p99 = quantile(t, 0.99);
		json_t *d = json_object();

		printf("  %-22s %10.4g %10.4g %10.4g %10.4g", c[i].name, median,
		       quantile(s, 0.1), quantile(s, 0.9), p99);
		json_object_set_new(out, c[i].name, json_real(median));
		snprintf(key, sizeof(key), "%s_p99", c[i].name);
		json_object_set_new(out, key, json_real(p99));
		if (i > 0) {
			double ratio = ring / median;

			printf("   %7.3f %s", ratio,
			       !strncmp(c[i].name, "ring_", 5) ? "" :
			       ratio < 1 ? "ring is faster" :
					   "RING IS SLOWER");
			snprintf(key, sizeof(key), "ratio_%s", c[i].name);
			json_object_set_new(out, key, json_real(ratio));
		}
		putchar('\n');
		json_object_set_new(d, "rounds", summary(s));
		if (row->tails[i].n)
			json_object_set_new(d, "operations", summary(t));
		json_object_set_new(details, c[i].name, d);
	}
	json_object_set_new(out, "unit", text(spec->unit));
	json_object_set_new(b->rows, spec->name, out);
	json_object_set_new(b->samples, spec->name, details);
}

void bench_run(struct bench *b, const struct bench_spec *spec,
	       const struct bench_contender *c, unsigned int n)
{
	unsigned int rounds = (unsigned int)(spec->rounds * b->effort + 0.5);
	struct bench_row *row;

	if (!bench_wants(b, spec->name))
		return;
	if (n > MAX_CONTENDERS)
		bench_fail("%s: %u contenders", spec->name, n);
	row = calloc(1, sizeof(*row));
	if (!row)
		bench_fail("no memory");
	if (rounds < 3)
		rounds = 3;
	for (unsigned int r = 0; r < spec->warmup + rounds; r++) {
		row->counted = r >= spec->warmup;
		/* Nobody always goes first. */
		for (unsigned int k = 0; k < n; k++) {
			double value;

			row->current = (k + r) % n;
			value = c[row->current].round(row,
						      c[row->current].ctx);
			if (row->counted)
				add(&row->rounds[row->current], value);
		}
	}
	for (unsigned int i = 0; i < n; i++) {
		qsort(row->rounds[i].value, row->rounds[i].n, sizeof(double),
		      compare);
		qsort(row->tails[i].value, row->tails[i].n, sizeof(double),
		      compare);
	}
	report(b, spec, row, c, n);
	for (unsigned int i = 0; i < n; i++) {
		free(row->rounds[i].value);
		free(row->tails[i].value);
	}
	free(row);
	b->n_rows++;
}

int bench_close(struct bench *b)
{
	int rc = 0;

	load_now(b, "load_after");
	if (!b->n_rows) {
		fprintf(stderr, "bench: no row is called like that\n");
		rc = 1;
	}
	if (b->out && json_dump_file(b->root, b->out,
				     JSON_INDENT(2) | JSON_REAL_PRECISION(6))) {
		fprintf(stderr, "bench: cannot write %s\n", b->out);
		rc = 1;
	} else if (b->out) {
		printf("\nwritten: %s\n", b->out);
	}
	json_decref(b->root);
	free(b);
	return rc;
}
