#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Check every model of tests/model exhaustively with Spin. A model names its
# runs in its head comment, one a line:
#
#	run: NAME [SPIN-OPTION...] [; PAN-OPTION...]	must hold
#	break: NAME [SPIN-OPTION...] [; PAN-OPTION...]	must be found faulty
#
# The second kind removes something that the protocol needs (a fence, a
# re-check): a model that does not notice would prove nothing.

set -u
cd "$(dirname "$0")/.." || exit
out=$PWD/build/model
failed=0

verify() {
	local model=$1 kind=$2 name=$3 spin=$4 pan=$5 dir rc=0 mode=-DSAFETY
	# Acceptance and progress cycles need what -DSAFETY leaves out.
	case $pan in *-a*|*-l*) mode= ;; esac
	dir=$out/$(basename "$model" .pml)-$name
	rm -rf "$dir"
	mkdir -p "$dir"
	(
		cd "$dir" || exit 2
		# shellcheck disable=SC2086
		spin $spin -a "$model" >spin.log 2>&1 &&
		gcc -O2 -w -DCOLLAPSE -DMEMLIM=4096 $mode -o pan pan.c >cc.log 2>&1 &&
		./pan -m1000000 $pan >pan.log 2>&1
	) || rc=$?
	if [ $rc != 0 ] || ! grep -q 'errors:' "$dir/pan.log"; then
		echo "not ok $name: did not run (see $dir)"
		tail -n 5 "$dir"/*.log
		failed=1
	elif grep -qE 'search depth too small|out of memory|not completed' \
			"$dir/pan.log" && [ "$kind" = run ]; then
		echo "not ok $name: the search was cut short (see $dir/pan.log)"
		failed=1
	elif grep -q 'errors: 0' "$dir/pan.log"; then
		if [ "$kind" = run ]; then
			echo "ok $name: holds," \
				"$(grep -m1 -o '[0-9.e+]* states, stored' \
				   "$dir/pan.log")"
		else
			echo "not ok $name: the fault was not noticed"
			failed=1
		fi
	elif [ "$kind" = break ]; then
		echo "ok $name: the fault is noticed"
	else
		echo "not ok $name: violated (see $dir/pan.log)"
		grep -m3 '^pan:' "$dir/pan.log"
		failed=1
	fi
}

for model in "$PWD"/tests/model/*.pml; do
	[ -e "$model" ] || continue
	runs=0
	while read -r kind name options; do
		runs=$((runs + 1))
		spin=${options%%;*} pan=
		case $options in *';'*) pan=${options#*;} ;; esac
		verify "$model" "${kind%:}" "$name" "$spin" "$pan"
	done < <(sed -nE 's/^[ \t*]*((run|break): )/\1/p' "$model")
	if [ $runs = 0 ]; then
		echo "not ok $(basename "$model"): names no run"
		failed=1
	fi
done
exit $failed
