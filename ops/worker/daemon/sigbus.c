// SPDX-License-Identifier: MIT
/*
 * A client owns the files behind its regions and buffers, and can truncate
 * them while the worker computes on them (seals forbid it where we can insist
 * on them). The worker then faults. The handler puts zeroes where the memory
 * was, so that the operator gets to its end, and has the channel killed.
 *
 * The handler reads a list that the worker's thread changes: blocks of entries
 * that are published by their start and never freed.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ops/worker/daemon/daemon.h"

#define GUARDS_A_BLOCK 128

struct air_guard {
	uintptr_t start;	/* 0: free */
	uintptr_t end;
	struct air_wchannel *ch;
	uint32_t hit;
};

struct block {
	struct block *next;
	struct air_guard guard[GUARDS_A_BLOCK];
};

static struct block *blocks;
static uintptr_t page_size;

static const char sentence[] = "its memory was taken away while in use";

static struct air_guard *find(uintptr_t addr)
{
	for (struct block *b = air_load(&blocks, ACQUIRE); b; b = b->next) {
		for (int i = 0; i < GUARDS_A_BLOCK; i++) {
			struct air_guard *g = &b->guard[i];
			uintptr_t start = air_load(&g->start, ACQUIRE);

			if (start && addr >= start && addr < g->end)
				return g;
		}
	}
	return NULL;
}

static bool put_zeroes(uintptr_t start, uintptr_t end)
{
	return mmap((void *)start, end - start, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1,
		    0) != MAP_FAILED;
}

static void on_sigbus(int sig, siginfo_t *info, void *context)
{
	uintptr_t addr = (uintptr_t)info->si_addr;
	uintptr_t page = addr & ~(page_size - 1);
	struct air_guard *g = find(addr);
	struct air_wchannel *ch;

	/* Pages of a hugetlb mapping only go all together. */
	if (!g || !(put_zeroes(page, page + page_size) ||
		    put_zeroes(g->start, g->end))) {
		/* Not ours: the instruction runs again and takes us along. */
		signal(SIGBUS, SIG_DFL);
		return;
	}
	air_store(&g->hit, 1, SEQ_CST);
	ch = air_load(&g->ch, SEQ_CST);
	if (ch)
		air_wchannel_kill(ch, sentence);
}

bool air_guard_init(void)
{
	struct sigaction sa = {
		.sa_sigaction = on_sigbus,
		.sa_flags = SA_SIGINFO,
	};

	page_size = (uintptr_t)sysconf(_SC_PAGESIZE);
	sigfillset(&sa.sa_mask);
	return !sigaction(SIGBUS, &sa, NULL);
}

static struct air_guard *free_guard(void)
{
	struct block *b;

	for (b = blocks; b; b = b->next)
		for (int i = 0; i < GUARDS_A_BLOCK; i++)
			if (!b->guard[i].start)
				return &b->guard[i];
	b = calloc(1, sizeof(*b));
	if (!b)
		return NULL;
	b->next = blocks;
	air_store(&blocks, b, RELEASE);
	return &b->guard[0];
}

struct air_guard *air_guard_add(void *start, uint64_t size)
{
	struct air_guard *g = free_guard();

	if (!g)
		return NULL;
	g->end = (uintptr_t)start + size;
	g->hit = 0;
	g->ch = NULL;
	air_store(&g->start, (uintptr_t)start, RELEASE);
	return g;
}

void air_guard_channel(struct air_guard *guard, struct air_wchannel *ch)
{
	air_store(&guard->ch, ch, SEQ_CST);
	if (air_load(&guard->hit, SEQ_CST))
		air_wchannel_kill(ch, sentence);
}

void air_guard_remove(struct air_guard *guard)
{
	if (guard)
		air_store(&guard->start, 0, RELEASE);
}
