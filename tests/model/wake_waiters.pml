/* SPDX-License-Identifier: MIT */
/*
 * Spin model of the waiters' sleep (libairunner/ring.h: client_sleeps,
 * disarm_waiters, arm_waiter) on a machine with store buffers: several
 * threads of a client, each waiting for a completion of its own, share one
 * NEED_WAKEUP flag and one bell.
 *
 * The worker's stores pass through a buffer, as the producers' do in
 * wake_consumer.pml, and -DASYM means the same with the roles changed: the
 * worker does not fence, the waiter calls membarrier(2), which may have no
 * effect, and sleeps for good only when it has looked again later with nobody
 * woken and the flag set all the while (libairunner/wait.c: arm).
 *
 * Checked: no waiter sleeps for good with its completion written (an invalid
 * end state).
 *
 * Each -DBUG_... takes one mechanism away, and Spin must find the error that
 * this makes. tests/model.sh runs:
 *
 *	run: wake-waiters
 *	run: wake-waiters-asym -DASYM
 *	break: wake-waiters-no-worker-fence -DBUG_WORKER_FENCE
 *	break: wake-waiters-no-second-look -DASYM -DBUG_SECOND_LOOK
 *	break: wake-waiters-flag-cleared -DASYM -DBUG_STILL_ARMED
 *	break: wake-waiters-bell-before-disarm -DBUG_BELL_FIRST
 *	break: wake-waiters-no-recheck -DBUG_RECHECK
 *	break: wake-waiters-bell-read-late -DBUG_BELL_LATE
 */
#define WAITERS	2
#define ROUNDS	2

byte submitted[WAITERS];	/* by each waiter, one at a time */
byte buffered[WAITERS];		/* completions in the worker's store buffer */
byte visible[WAITERS];		/* completions that all see */
bit need_wakeup;
byte bell;

proctype store_buffer(byte w)
{
end:	do
	:: atomic { buffered[w] > 0 -> buffered[w]--; visible[w]++ }
	od
}

/* One buffer for each waiter's completions drains in any order: weaker than
 * one for all. */
inline drain()
{
	visible[0] = visible[0] + buffered[0];
	buffered[0] = 0;
	visible[1] = visible[1] + buffered[1];
	buffered[1] = 0
}

proctype worker()
{
	byte done[WAITERS];

	do
	:: done[0] == ROUNDS && done[1] == ROUNDS -> break
	:: atomic { submitted[0] > done[0] -> done[0]++; buffered[0]++ }
	   goto wake
	:: atomic { submitted[1] > done[1] -> done[1]++; buffered[1]++ }
wake:
#if !defined(ASYM) && !defined(BUG_WORKER_FENCE)
	   buffered[0] == 0 && buffered[1] == 0;
#endif
	   if
	   :: need_wakeup ->
		/* locked operations, they drain */
#ifdef BUG_BELL_FIRST
		atomic { drain(); bell++ }
		need_wakeup = 0
#else
		atomic { drain(); need_wakeup = 0 }
		bell++
#endif
	   :: !need_wakeup
	   fi
	od
}

proctype waiter(byte w)
{
	byte n, before, seq;
	bit sure, armed;

	do
	:: n == ROUNDS -> break
	:: else ->
		atomic { n++; submitted[w] = n; sure = 0 }
		do
		:: visible[w] == n -> break
		:: visible[w] < n ->
#ifndef BUG_BELL_LATE
			before = bell;
#endif
			atomic { armed = need_wakeup; need_wakeup = 1 }
#ifdef ASYM
#ifndef BUG_STILL_ARMED
			sure = sure && armed && seq == before;
#endif
			if
			:: atomic { drain() }
			:: true
			fi;
#endif
			if
#ifdef BUG_RECHECK
			:: true ->
#else
			:: visible[w] == n
			:: visible[w] < n ->
#endif
#ifdef BUG_BELL_LATE
				before = bell;
#endif
#if defined(ASYM) && !defined(BUG_SECOND_LOOK)
				seq = before;
				if
				:: bell != before
				:: !sure && buffered[0] == 0 &&
				   buffered[1] == 0 -> sure = 1
				fi
#else
				bell != before
#endif
			fi;
			before = 0
		od
	od
}

init {
	atomic {
		run store_buffer(0);
		run store_buffer(1);
		run worker();
		run waiter(0);
		run waiter(1)
	}
}
