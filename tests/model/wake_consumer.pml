/* SPDX-License-Identifier: MIT */
/*
 * Spin model of the consumer's sleep (libairunner/ring.h: must_wake,
 * arm_consumer, disarm_consumer) on a machine with store buffers.
 *
 * Each producer's stores pass through a buffer that drains when it likes, or
 * at a fence (TSO). Without -DASYM producers fence between publishing and
 * reading NEED_WAKEUP. With it they do not, and the consumer that goes to
 * sleep drains their buffers instead, one after the other, as membarrier(2)
 * interrupts the processors they run on; or does not, as membarrier(2) may
 * pass them over. So it looks a second time once that much time has passed
 * that the buffers have drained by themselves, and only then sleeps for good.
 *
 * What is published is only counted here; ring.pml has the slots. The bell is
 * a futex: sleeping ends as soon as it differs from what was read before.
 *
 * Checked: the consumer never sleeps for good with something published (it
 * would be an invalid end state), and everything is consumed.
 *
 * Each -DBUG_... takes one mechanism away, and Spin must find the error that
 * this makes. tests/model.sh runs:
 *
 *	run: wake-consumer
 *	run: wake-consumer-asym -DASYM
 *	break: wake-consumer-no-producer-fence -DBUG_PRODUCER_FENCE
 *	break: wake-consumer-no-consumer-fence -DBUG_CONSUMER_FENCE
 *	break: wake-consumer-no-second-look -DASYM -DBUG_SECOND_LOOK
 *	break: wake-consumer-no-recheck -DBUG_RECHECK
 *	break: wake-consumer-bell-read-late -DBUG_BELL_LATE
 */
#define PRODUCERS	2
#define ITEMS		2	/* of each producer */

byte buffered[PRODUCERS];	/* published, still in the store buffer */
byte visible[PRODUCERS];	/* published, seen by all */
bit need_wakeup;
byte bell;

/* The consumer's own store buffer, for its flag: the value + 1, 0 is empty. */
byte flag_buffer;

byte got[PRODUCERS];

#define SOMETHING (visible[0] > got[0] || visible[1] > got[1])
#define ALL	(got[0] == ITEMS && got[1] == ITEMS)

/* Draining in the order of the stores, whenever the machine likes. */
proctype store_buffer(byte p)
{
end:	do
	:: atomic { buffered[p] > 0 -> buffered[p]--; visible[p]++ }
	od
}

proctype flag_store_buffer()
{
end:	do
	:: atomic { flag_buffer > 0 -> need_wakeup = flag_buffer - 1;
		    flag_buffer = 0 }
	od
}

inline drain_flag()
{
	if
	:: flag_buffer > 0 -> need_wakeup = flag_buffer - 1; flag_buffer = 0
	:: else
	fi
}

proctype producer(byte p)
{
	byte n;

	do
	:: n == ITEMS -> break
	:: else ->
		atomic { buffered[p]++; n++ }
#if !defined(ASYM) && !defined(BUG_PRODUCER_FENCE)
		buffered[p] == 0;
#endif
		if
		:: need_wakeup ->
			/* a locked increment and a system call: both drain */
			atomic {
				visible[p] = visible[p] + buffered[p];
				buffered[p] = 0;
				bell++
			}
		:: !need_wakeup
		fi
	od
}

proctype consumer()
{
	byte before;

	do
	:: atomic { visible[0] > got[0] -> got[0]++ }
	:: atomic { visible[1] > got[1] -> got[1]++ }
	:: ALL -> break
	:: !SOMETHING && !ALL ->
#ifndef BUG_BELL_LATE
		before = bell;
#endif
		/* air_ring_arm_consumer() */
#ifdef BUG_CONSUMER_FENCE
		atomic { drain_flag(); flag_buffer = 1 + 1 }
#else
		atomic { drain_flag(); need_wakeup = 1 }
#endif
#ifdef ASYM
		if
		:: atomic { visible[0] = visible[0] + buffered[0];
			    buffered[0] = 0 }
		:: true
		fi;
		if
		:: atomic { visible[1] = visible[1] + buffered[1];
			    buffered[1] = 0 }
		:: true
		fi;
#endif
		if
#ifdef BUG_RECHECK
		:: true ->
#else
		:: SOMETHING
		:: !SOMETHING ->
#endif
#ifdef BUG_BELL_LATE
			before = bell;
#endif
#if defined(ASYM) && !defined(BUG_SECOND_LOOK)
			if
			:: bell != before
			:: buffered[0] == 0 && buffered[1] == 0 ->
				if
				:: SOMETHING
				:: !SOMETHING -> bell != before
				fi
			fi
#else
			bell != before
#endif
		fi;
		/* air_ring_disarm_consumer() */
		atomic { drain_flag(); flag_buffer = 0 + 1; before = 0 }
	od
}

init {
	atomic {
		run store_buffer(0);
		run store_buffer(1);
		run flag_store_buffer();
		run producer(0);
		run producer(1);
		run consumer()
	}
}
