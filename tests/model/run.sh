#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Model-check the ring protocol. Usage: tests/model/run.sh [deep]
#
# Every model is searched exhaustively and must be free of errors; then every
# mechanism is taken out in turn and Spin must find the error that this makes:
# a model that cannot fail proves nothing. One line a search; exit status 0
# when all went as expected, 77 when spin or a compiler is missing.
#
# Takes about 20 seconds and 600 MB; `deep` adds larger searches (minutes).
# Needs: spin, gcc.

set -u
here=$(cd "$(dirname "$0")" && pwd)
out=${MODEL_OUT:-$here/../../build/model}
mkdir -p "$out"
command -v spin >/dev/null && command -v "${CC:=gcc}" >/dev/null || {
	echo "SKIP model: needs spin and a C compiler"
	exit 77
}
failed=0

# search none|found MODEL [-D...]
search()
{
	expect=$1 model=$2
	shift 2
	name="$model${*:+ $*}"
	# a search that ends at once is not worth optimising for
	opt=-O2
	[ "$expect" = none ] || opt=-O0
	dir=$out/$(echo "$name" | tr -c 'A-Za-z0-9_\n' _)
	rm -rf "$dir"
	mkdir -p "$dir"
	cp "$here/$model.pml" "$dir/"
	# -w: gcc 12 misreads the bounds in what spin generates
	if ! (cd "$dir" && spin "$@" -a "$model.pml" >spin.log 2>&1 &&
	      "$CC" -w $opt -DSAFETY -DCOLLAPSE -DMEMLIM=4000 -o pan pan.c \
		      >cc.log 2>&1); then
		echo "FAIL model: $name does not build (see $dir)"
		failed=1
		return
	fi
	(cd "$dir" && timeout 900 ./pan -m100000 -w23 >pan.log 2>&1)
	states=$(sed -n 's/ *\([0-9e+.]*\) states, stored.*/\1/p' "$dir/pan.log")
	errors=$(sed -n 's/.*errors: \([0-9]*\).*/\1/p' "$dir/pan.log")
	what=$(sed -n 's/^pan:1: //p' "$dir/pan.log" | head -n 1)
	if grep -qE 'not completed|depth too small|out of memory' \
	   "$dir/pan.log" && [ "$expect" = none ] || [ -z "$errors" ]; then
		what="search not finished: ${what:-see $dir/pan.log}"
		result=broken
	elif [ "$errors" = 0 ]; then
		result=none
	else
		result=found
	fi
	if [ "$result" != "$expect" ]; then
		echo "FAIL model: $name: expected errors: $expect;" \
		     "got: $result $what (see $dir)"
		failed=1
	elif [ "$expect" = none ]; then
		echo "PASS model: $name: no error in $states states"
		rm -rf "$dir"
	else
		echo "PASS model: $name: found: $what"
		rm -rf "$dir"
	fi
}

# The data path: two producers through a wrap of the laps; two collectors
# that miss each other's marks; both; and cancel.
search none ring -DPRODUCERS=2 -DCOLLECTORS=1 -DTOTAL=5 -DLAPS=2
search none ring -DPRODUCERS=1 -DCOLLECTORS=2 -DTOTAL=7 -DLAPS=3
search none ring -DPRODUCERS=2 -DCOLLECTORS=2 -DTOTAL=3 -DLAPS=2
search none ring -DPRODUCERS=1 -DCOLLECTORS=1 -DTOTAL=7 -DLAPS=3 -DCANCEL
for bug in TORN NO_LAP CREDIT CQE_ORDER; do
	search found ring -DPRODUCERS=2 -DCOLLECTORS=1 -DTOTAL=5 -DLAPS=2 \
		-DBUG_$bug
done
search found ring -DPRODUCERS=1 -DCOLLECTORS=2 -DTOTAL=5 -DLAPS=2 -DBUG_ADVANCE
search found ring -DPRODUCERS=1 -DCOLLECTORS=1 -DTOTAL=7 -DLAPS=3 -DCANCEL \
	-DBUG_CANCEL

# Sleep and wake on a machine with store buffers, both directions, with
# fences and with membarrier.
search none wake_consumer
search none wake_consumer -DASYM
search found wake_consumer -DBUG_PRODUCER_FENCE
search found wake_consumer -DBUG_CONSUMER_FENCE
search found wake_consumer -DASYM -DBUG_MEMBARRIER
search none wake_waiters
search none wake_waiters -DASYM
search found wake_waiters -DBUG_WORKER_FENCE
search found wake_waiters -DBUG_BELL_FIRST
search found wake_waiters -DASYM -DBUG_MEMBARRIER
for side in wake_consumer wake_waiters; do
	for bug in RECHECK BELL_LATE; do
		search found $side -DBUG_$bug
		search found $side -DASYM -DBUG_$bug
	done
done

# A worker dies, another takes over: each slot as the first one, and laps that
# wrap in between.
for base in 28 29 30 31; do
	search none recover -DBASE=$base -DTOTAL=6
done
search found recover -DBASE=31 -DBUG_TWO_LAPS
search found recover -DBASE=31 -DBUG_SKIP

if [ "${1:-}" = deep ]; then
	search none ring -DPRODUCERS=3 -DCOLLECTORS=1 -DTOTAL=3 -DLAPS=2
	search none ring -DPRODUCERS=2 -DCOLLECTORS=2 -DTOTAL=4 -DLAPS=2
	search none ring -DPRODUCERS=2 -DCOLLECTORS=1 -DTOTAL=7 -DLAPS=3
	search none recover -DBASE=30 -DTOTAL=9
fi

exit $failed
