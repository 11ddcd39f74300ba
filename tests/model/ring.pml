/* SPDX-License-Identifier: MIT */
/*
 * Spin model of the ring's data path (libairunner/ring.h): producers that
 * reserve and publish in any order, a consumer that fetches by index,
 * completion and collection in any order, a full ring, credit by collection,
 * the wrap of laps, and cancel.
 *
 * Memory: the words of an entry are stored and loaded one by one and in any
 * order, as on a weakly ordered machine or over PCIe. The collectors' marks go
 * through a store buffer, so that two collectors can miss each other's.
 *
 * A word is lap * 16 + the index it was written for. The protocol looks only
 * at the lap; the index is a ghost that assertions look at.
 *
 * Checked: an accepted entry is whole and of its index; no entry is written
 * before the last one in its slot was read and collected; each submission is
 * completed once and collected once; a canceled word is this submission's; the
 * ring is not full for ever (no invalid end state), and once everything is
 * collected, head can catch up with tail.
 *
 * Each -DBUG_... takes one mechanism away, and Spin must find the error that
 * this makes. tests/model.sh runs:
 *
 *	run: ring-producers -DPRODUCERS=2 -DCOLLECTORS=1 -DTOTAL=5 -DLAPS=2
 *	run: ring-collectors -DPRODUCERS=1 -DCOLLECTORS=2 -DTOTAL=7 -DLAPS=3
 *	run: ring-both -DPRODUCERS=2 -DCOLLECTORS=2 -DTOTAL=3 -DLAPS=2
 *	run: ring-cancel -DPRODUCERS=1 -DCOLLECTORS=1 -DTOTAL=7 -DCANCEL
 *	break: ring-torn -DBUG_TORN -DCOLLECTORS=1 -DTOTAL=5 -DLAPS=2
 *	break: ring-no-lap -DBUG_NO_LAP -DCOLLECTORS=1 -DTOTAL=5 -DLAPS=2
 *	break: ring-credit-at-fetch -DBUG_CREDIT -DCOLLECTORS=1 -DTOTAL=5 -DLAPS=2
 *	break: ring-cqe-order -DBUG_CQE_ORDER -DCOLLECTORS=1 -DTOTAL=5 -DLAPS=2
 *	break: ring-no-advance -DBUG_ADVANCE -DPRODUCERS=1 -DTOTAL=5 -DLAPS=2
 *	break: ring-cancel-by-store -DBUG_CANCEL -DCANCEL -DPRODUCERS=1 -DCOLLECTORS=1
 */
#define ENTRIES	2
#ifndef LAPS
#define LAPS	3		/* 256 in the product */
#endif
#ifndef TOTAL
#define TOTAL	7		/* submissions; laps wrap after ENTRIES * LAPS */
#endif

#ifdef BUG_NO_LAP		/* a valid bit instead of a lap */
#define LAP(i)	1
#else
#define LAP(i)	(((i) / ENTRIES + 1) % LAPS)
#endif
#define SLOT(i)	((i) % ENTRIES)
#define WORD(i)	(LAP(i) * 16 + (i))
#define LAPOF(w) ((w) / 16)
#define IDX(w)	((w) % 16)

/* Two words an entry stand for eight: two are enough to be torn. */
byte sq0[ENTRIES], sq1[ENTRIES];
bit canceled[ENTRIES];		/* belongs to sq0: the opcode in word 0 */
byte cq0[ENTRIES], cq1[ENTRIES];
byte tail, head;
byte mark[ENTRIES];		/* the library's collected[] */

#ifndef PRODUCERS
#define PRODUCERS	2
#endif
#ifndef COLLECTORS
#define COLLECTORS	2
#endif
#define THREADS		(PRODUCERS + COLLECTORS + 1)

/* A thread's store buffer: one mark, for slot buf_slot - 1; 0 is empty. */
byte buf_slot[THREADS], buf_mark[THREADS];

/* Ghosts. */
mtype = { none, reserved, published, taken, completed, claimed, collected };
mtype state[TOTAL] = none;
byte fetched, answered, gathered;
byte changes;			/* of anything a full ring depends on */

inline drain(me)
{
	if
	:: buf_slot[me] > 0 ->
		mark[buf_slot[me] - 1] = buf_mark[me];
		buf_slot[me] = 0;
		buf_mark[me] = 0;
		changes++
	:: else
	fi
}

/* A load of mark[] sees the thread's own store buffer first. */
#define MARKED(me, i) \
	((buf_slot[me] == SLOT(i) + 1 && buf_mark[me] == LAP(i)) || \
	 (buf_slot[me] != SLOT(i) + 1 && mark[SLOT(i)] == LAP(i)))

/* air_ring_advance(): over all marks that it sees, then one exchange */
inline advance(me, h, next)
{
	h = head;
	next = h;
	do
	:: MARKED(me, next) -> next++
	:: !MARKED(me, next) ->
		atomic {
			if
			:: next == h -> next = 0; break
			:: else ->
				drain(me);
				if
				:: head == h -> head = next; h = next
				:: else -> h = head; next = h
				fi
			fi
		}
	od
}

proctype producer(byte me)
{
	byte t, h, next, before;
	bit advanced;

reserve:
	atomic { t = tail; advanced = 0; before = changes }
	do
	:: t == TOTAL -> goto out
	:: else ->
#ifdef BUG_CREDIT		/* room as soon as it was fetched */
		h = fetched;
#else
		h = head;
#endif
		if
		:: t + 1 - h <= ENTRIES ->
			atomic {
				if
				:: tail == t ->
					tail++;
					state[t] = reserved;
					h = 0;
					before = 0;
					advanced = 0;
					break
				:: else -> t = tail
				fi
			}
#ifndef BUG_ADVANCE
		:: t + 1 - h > ENTRIES && !advanced ->
			advance(me, h, next);
			atomic { advanced = 1; t = tail }
		:: t + 1 - h > ENTRIES && advanced ->
#else
		:: else ->
#endif
			/* AIR_FULL; trying again is of use after a change */
			atomic { changes != before || tail != t; goto reserve }
		fi
	od;

	assert(t < ENTRIES || state[t - ENTRIES] == collected);
	if
	:: atomic { sq0[SLOT(t)] = WORD(t); canceled[SLOT(t)] = 0 }
	   atomic { sq1[SLOT(t)] = WORD(t); state[t] = published }
	:: sq1[SLOT(t)] = WORD(t);
	   atomic { sq0[SLOT(t)] = WORD(t); canceled[SLOT(t)] = 0;
		    state[t] = published }
	fi;
	goto reserve;
out:
	skip
}

proctype consumer()
{
	byte i, w0, w1;

	do
	:: i == TOTAL -> break
	:: LAPOF(sq0[SLOT(i)]) == LAP(i) || LAPOF(sq1[SLOT(i)]) == LAP(i) ->
		if
		:: w0 = sq0[SLOT(i)]; w1 = sq1[SLOT(i)]
		:: w1 = sq1[SLOT(i)]; w0 = sq0[SLOT(i)]
		fi;
		atomic {
			if
#ifdef BUG_TORN
			:: LAPOF(w0) == LAP(i) ->
#else
			:: LAPOF(w0) == LAP(i) && LAPOF(w1) == LAP(i) ->
#endif
				assert(IDX(w0) == i && IDX(w1) == i);
				assert(state[i] == published);
				state[i] = taken;
				i++;
				fetched = i
			:: else
			fi;
			w0 = 0;
			w1 = 0
		}
	od
}

/* Up to ENTRIES are in flight; any of them completes next. */
proctype executor()
{
	byte i;

	do
	:: answered == TOTAL -> break
	:: atomic { fetched > 0 && state[fetched - 1] == taken ->
		    i = fetched - 1 }
	   goto complete
	:: atomic { fetched > 1 && state[fetched - 2] == taken ->
		    i = fetched - 2 }
complete:
	   assert(i < ENTRIES || state[i - ENTRIES] == collected);
#ifdef BUG_CQE_ORDER		/* word 0 no longer is the release */
	   cq0[SLOT(i)] = WORD(i);
#endif
	   cq1[SLOT(i)] = WORD(i);
	   atomic {
		cq0[SLOT(i)] = WORD(i);
		assert(state[i] == taken);
		state[i] = completed;
		answered++;
		i = 0
	   }
	od
}

#define READY(i) \
	((i) < tail && LAPOF(cq0[SLOT(i)]) == LAP(i) && \
	 state[i] != claimed && state[i] != collected)

inline claim(index)
{
	i = index;
	assert(state[i] == completed && IDX(cq0[SLOT(i)]) == i);
	state[i] = claimed
}

/* A waiter for whichever token it is given; one waiter a token. */
proctype collector(byte me)
{
	byte i, h, next;

	do
	:: atomic { gathered == TOTAL -> drain(me); break }
	:: atomic { READY(head) -> claim(head) }
	   goto copy
	:: atomic { READY(head + 1) -> claim(head + 1) }
copy:
		/* air_ring_completed(): word 0 had the lap; now word 1 */
		assert(LAPOF(cq1[SLOT(i)]) == LAP(i) && IDX(cq1[SLOT(i)]) == i);
		/* air_ring_collect() */
		atomic {
			drain(me);
			buf_slot[me] = SLOT(i) + 1;
			buf_mark[me] = LAP(i);
			state[i] = collected;
			gathered++;
			i = 0
		}
		advance(me, h, next);
		h = 0
	/* the store buffer may drain at any time */
	:: atomic { buf_slot[me] > 0 -> drain(me) }
	od
}

/* Cancels whatever it finds, at any time, without asking whether it may. */
proctype canceler()
{
	byte i, w0;

	do
	:: gathered == TOTAL -> break
	:: atomic { fetched < TOTAL && state[fetched] == published ->
		    i = fetched; w0 = sq0[SLOT(i)] }
#ifdef BUG_CANCEL		/* a plain store instead of an exchange */
	   atomic {
		sq0[SLOT(i)] = w0;
		canceled[SLOT(i)] = 1;
		w0 = 0
	   }
#else
	   atomic {
		if
		:: sq0[SLOT(i)] == w0 ->
			assert(IDX(sq0[SLOT(i)]) == i);
			canceled[SLOT(i)] = 1
		:: else
		fi;
		w0 = 0;
		i = 0
	   }
#endif
	   break
	od
}

init {
	byte h, next;

	atomic {
		do
		:: h < PRODUCERS -> run producer(h); h++
		:: h >= PRODUCERS && h < PRODUCERS + COLLECTORS ->
			run collector(h);
			h++
		:: else -> break
		od;
		h = 0;
		run consumer();
		run executor();
#ifdef CANCEL
		run canceler()
#endif
	}
	/* When all is over nothing is left behind. */
	_nr_pr == 1;
	advance(PRODUCERS + COLLECTORS, h, next);
	assert(tail == TOTAL && head == TOTAL && answered == TOTAL)
}
