// SPDX-License-Identifier: MIT
/*
 * air_ring_recover() on every state that a small ring can be left in: each
 * submission of the window not there, outstanding, or answered out of turn,
 * from each slot, across the wrap of the laps. Then on nonsense.
 */
#include <stdbool.h>

#include "tests/stress/stress.h"

#define MAX_ORDER 3

static struct air_ring ring;
static uint8_t collected[1 << MAX_ORDER];
static uint64_t answers[1 << MAX_ORDER];
static unsigned int n_answered;

static void answer(void *arg, uint64_t index)
{
	struct air_cqe cqe = { .status = AIRUNNER_S_WORKER_DIED };

	answers[n_answered++] = index;
	air_ring_complete(&ring, index, &cqe);
}

enum { ABSENT, OUTSTANDING, ANSWERED, STATES };

/* The same index, as far as a consumer that took over knows it. */
static bool same(uint64_t a, uint64_t b)
{
	return ((a ^ b) & ((256ULL << ring.order) - 1)) == 0;
}

static bool check(uint64_t base, const int *state)
{
	struct air_sqe sqe = { { AIRUNNER_OP_NOP } };
	struct air_cqe cqe = { .status = AIRUNNER_S_OK };
	unsigned int entries = 1U << ring.order;
	unsigned int outstanding = 0, next = entries;
	int64_t got;

	memset(ring.ctrl, 0, ring_bytes(ring.order));
	ring_start_at(&ring, collected, base);
	for (unsigned int i = 0; i < entries; i++) {
		if (state[i] != ABSENT)
			air_ring_publish(&ring, base + i, &sqe);
		if (state[i] == ANSWERED)
			air_ring_complete(&ring, base + i, &cqe);
		outstanding += state[i] == OUTSTANDING;
		if (state[i] == ABSENT && next == entries)
			next = i;
	}
	n_answered = 0;
	got = air_ring_recover(&ring, answer, NULL);
	if (got < 0 || !same((uint64_t)got, base + next)) {
		printf("not ok recover_states: order %u, base %#llx: next %#llx, expected %#llx\n",
		       ring.order, (unsigned long long)base,
		       (unsigned long long)got,
		       (unsigned long long)(base + next));
		return false;
	}
	if (n_answered != outstanding) {
		printf("not ok recover_states: order %u, base %#llx: %u answered, %u were outstanding\n",
		       ring.order, (unsigned long long)base, n_answered,
		       outstanding);
		return false;
	}
	for (unsigned int i = 0; i < n_answered; i++) {
		unsigned int k = 0;

		while (k < entries && !(state[k] == OUTSTANDING &&
					same(answers[i], base + k)))
			k++;
		if (k == entries) {
			printf("not ok recover_states: answered %#llx, which was not outstanding\n",
			       (unsigned long long)answers[i]);
			return false;
		}
	}
	for (unsigned int i = 0; i < entries; i++) {
		bool answered = air_ring_answered(&ring, base + i);

		if (answered != (state[i] != ABSENT)) {
			printf("not ok recover_states: answered() is wrong of %#llx\n",
			       (unsigned long long)(base + i));
			return false;
		}
	}
	return true;
}

static uint64_t check_order(uint32_t order, bool *ok)
{
	unsigned int entries = 1U << order;
	uint64_t states = 1, n = 0;

	air_ring_init(&ring, ring.ctrl, order);
	for (unsigned int i = 0; i < entries; i++)
		states *= STATES;
	/* every slot as the first one, before, at and after the lap's wrap */
	for (uint64_t base = entries; base < 5 * entries && *ok; base++)
		for (uint64_t s = 0; s < states && *ok; s++, n++) {
			int state[1 << MAX_ORDER];
			uint64_t v = s;

			for (unsigned int i = 0; i < entries; i++, v /= STATES)
				state[i] = (int)(v % STATES);
			*ok = check(base + (253ULL << order), state);
		}
	return n;
}

/* Laps that cannot be: it must say so, and answer no slot twice. */
static bool check_nonsense(void)
{
	unsigned int refused = 0;
	uint64_t seed = 1;

	air_ring_init(&ring, ring.ctrl, MAX_ORDER);
	for (int round = 0; round < 100000; round++) {
		int64_t got;

		for (size_t i = 0; i < ring_bytes(MAX_ORDER) / 8; i++)
			((uint64_t *)ring.ctrl)[i] = draw(&seed);
		n_answered = 0;
		got = air_ring_recover(&ring, answer, NULL);
		refused += got < 0;
		if (got >= 256 << MAX_ORDER) {
			printf("not ok recover_states: next %#llx\n",
			       (unsigned long long)got);
			return false;
		}
	}
	if (refused < 99000) {
		printf("not ok recover_states: only %u of 100000 scribbled rings refused\n",
		       refused);
		return false;
	}
	return true;
}

int main(void)
{
	bool ok = true;
	uint64_t n = 0;

	ring.ctrl = map_shared(ring_bytes(MAX_ORDER));
	for (uint32_t order = 1; order <= MAX_ORDER && ok; order++)
		n += check_order(order, &ok);
	if (ok)
		printf("ok recover_states: %llu states of a ring\n",
		       (unsigned long long)n);
	if (!ok || !check_nonsense())
		return 1;
	puts("ok recover_states: scribbled laps are refused");
	return 0;
}
