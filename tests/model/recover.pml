/* SPDX-License-Identifier: MIT */
/*
 * Spin model of taking over a used ring (libairunner/ring.h: recover,
 * answered): a worker dies at any point, another reads from the laps alone
 * what is outstanding and where the ring stands, while producers go on
 * reserving and publishing in any order and a client goes on collecting.
 *
 * Submissions are numbered from 0 here; BASE is the ring index of the first.
 * The default lets the laps wrap between them. A word is lap * 16 + number,
 * where the number is a ghost that only assertions look at.
 *
 * Checked: no submission is completed twice, none is left out, and recovery
 * finds the lowest index without an answer.
 *
 * Each -DBUG_... takes one mechanism away, and Spin must find the error that
 * this makes. tests/model.sh runs:
 *
 *	run: recover-0 -DBASE=28
 *	run: recover-1 -DBASE=29
 *	run: recover-2 -DBASE=30
 *	run: recover-3 -DBASE=31
 *	break: recover-two-laps -DBUG_TWO_LAPS
 *	break: recover-no-skip -DBUG_SKIP
 */
#define ENTRIES	4
#define LAPS	8		/* 256 in the product; 3 neighbours must differ */
#ifndef BASE
#define BASE	(ENTRIES * (LAPS - 1) + 3)
#endif
#ifndef TOTAL
#define TOTAL	6
#endif
#define INDICES	(ENTRIES * LAPS)

#define SLOT(n)	((BASE + (n)) % ENTRIES)
#define LAP(n)	(((BASE + (n)) / ENTRIES + 1) % LAPS)
#define WORD(n)	(LAP(n) * 16 + (n))
#define LAPOF(w) ((w) / 16)
#define NUM(w)	((w) % 16)
#define STALE	15		/* of a submission before BASE */

byte sq0[ENTRIES], sq1[ENTRIES], cq0[ENTRIES], cq1[ENTRIES];
byte tail, head;
bit dead;

mtype = { none, reserved, published, completed, collected };
mtype state[TOTAL] = none;
byte gathered;

proctype producer()
{
	byte n;

	do
	:: tail == TOTAL -> break
	:: atomic { tail < TOTAL && tail - head < ENTRIES ->
		    n = tail; tail++; state[n] = reserved }
	   sq1[SLOT(n)] = WORD(n);
	   atomic { sq0[SLOT(n)] = WORD(n); state[n] = published; n = 0 }
	od
}

/* Collects in order of completion, gives room back in order of index. */
proctype client()
{
	byte n;

	do
	:: gathered == TOTAL -> break
	:: atomic {
		gathered < TOTAL;
		n = head;
		do
		:: n < tail && state[n] != collected &&
		   LAPOF(cq0[SLOT(n)]) == LAP(n) -> break
		:: n < tail && !(state[n] != collected &&
				 LAPOF(cq0[SLOT(n)]) == LAP(n)) -> n++
		:: n == tail -> goto next
		od;
		assert(state[n] == completed);
		assert(NUM(cq0[SLOT(n)]) == n && cq0[SLOT(n)] == cq1[SLOT(n)]);
		state[n] = collected;
		gathered++;
		do
		:: head < TOTAL && state[head] == collected -> head++
		:: else -> break
		od
	   }
next:	   atomic {
		/* until there is something to do */
		n = 0;
		gathered == TOTAL ||
		(head < tail && state[head] == completed) ||
		(head + 1 < tail && state[head + 1] == completed) ||
		(head + 2 < tail && state[head + 2] == completed) ||
		(head + 3 < tail && state[head + 3] == completed)
	   }
	od
}

/* Word 1, then word 0; whoever dies between them has not completed it. */
inline complete(slot, lap, w)
{
	cq1[slot] = w;
	atomic {
		assert(LAPOF(w) == lap && NUM(w) < TOTAL);
		assert(state[NUM(w)] == published);
		state[NUM(w)] = completed;
		cq0[slot] = w
	}
}

/*
 * The worker that dies: takes in order, completes in any order (up to two in
 * flight), and may stop for ever before any step.
 */
proctype first_worker()
{
	byte n, held = STALE, w;

	do
	:: atomic { n < TOTAL && held == STALE && sq0[SLOT(n)] == WORD(n) &&
		    sq1[SLOT(n)] == WORD(n) -> held = n; n++ }
	:: atomic { n < TOTAL && sq0[SLOT(n)] == WORD(n) &&
		    sq1[SLOT(n)] == WORD(n) -> w = WORD(n) }
	   if
	   :: complete(SLOT(NUM(w)), LAPOF(w), w); n++
	   :: cq1[SLOT(NUM(w))] = w; break	/* killed half way */
	   fi
	:: atomic { held != STALE -> w = WORD(held) }
	   complete(SLOT(NUM(w)), LAPOF(w), w);
	   held = STALE
	:: break				/* killed */
	od;
	atomic { dead = 1; n = 0; held = 0; w = 0 }
}

/* The lap after l. */
#define NEXT(l)	(((l) + 1) % LAPS)

proctype second_worker()
{
	byte s, lap, first, at, w0, w1, index;
	short ahead, lowest, before, from;

	dead;
	do
	:: s == ENTRIES -> break
	:: else ->
		lap = LAPOF(cq0[s]);
		/* air_ring_fetch() of the lap after it */
		w0 = sq0[s];
		w1 = sq1[s];
		if
		:: LAPOF(w0) == NEXT(lap) && LAPOF(w1) == NEXT(lap) ->
			complete(s, NEXT(lap), w0);
			lap = NEXT(lap)
		:: else
		fi;
		atomic {
			if
			:: s == 0 -> first = lap
			:: else
			fi;
#ifdef BUG_TWO_LAPS
			/* as if only the next index could be unanswered */
			if
			:: at == 0 && lap == (first + LAPS - 1) % LAPS ->
				at = s;
				lowest = -1
			:: else
			fi;
#else
			ahead = (lap + LAPS + LAPS / 2 - first) % LAPS -
				LAPS / 2;
			if
			:: ahead < lowest ->
				if
				:: from > before -> before = from
				:: else
				fi;
				lowest = ahead;
				from = ahead;
				at = s
			:: ahead > from -> from = ahead
			:: else
			fi;
			assert(from - lowest <= 1);
			assert(at == 0 || before - lowest <= 2);
#endif
			s++;
			w0 = 0;
			w1 = 0
		}
	od;
	atomic {
		index = ((first + LAPS + lowest) % LAPS) * ENTRIES + at;
		/* ghost: is it the lowest without an answer? */
		s = 0;
		do
		:: s < TOTAL &&
		   (state[s] == completed || state[s] == collected) -> s++
		:: else -> break
		od;
		assert(index == (BASE + s) % INDICES);
		s = 0; lap = 0; first = 0; at = 0;
		ahead = 0; lowest = 0; before = 0; from = 0
	}

	/* From there on as any consumer, but it asks what was answered. */
#define MINE		(index % ENTRIES)
#define MINE_LAP	((index / ENTRIES + 1) % LAPS)
	do
	:: gathered == TOTAL -> break
#ifndef BUG_SKIP
	:: LAPOF(cq0[MINE]) == MINE_LAP -> index = (index + 1) % INDICES
	:: LAPOF(cq0[MINE]) != MINE_LAP &&
#else
	::
#endif
	   LAPOF(sq0[MINE]) == MINE_LAP && LAPOF(sq1[MINE]) == MINE_LAP ->
		complete(MINE, MINE_LAP, sq0[MINE]);
		index = (index + 1) % INDICES
	od
}

init {
	byte s;

	atomic {
		/* Everything before BASE was submitted and collected. */
		do
		:: s == ENTRIES -> break
		:: else ->
			/* number s - ENTRIES, in the lap before number s */
			sq0[SLOT(s)] = ((LAP(s) + LAPS - 1) % LAPS) * 16 + STALE;
			sq1[SLOT(s)] = sq0[SLOT(s)];
			cq0[SLOT(s)] = sq0[SLOT(s)];
			cq1[SLOT(s)] = sq0[SLOT(s)];
			s++
		od;
		s = 0;
		run producer();
		run producer();
		run client();
		run first_worker();
		run second_worker()
	}
	_nr_pr == 1;
	assert(head == TOTAL && tail == TOTAL)
}
