#!/bin/bash
# SPDX-License-Identifier: MIT
#
# compute-sanitizer over the cases of selfcheck:
#
#	tests/gpu/sanitize.sh memcheck|racecheck|initcheck EXECUTOR SLICES [SECONDS]
#
# The tools slow everything down many times, the start of a process most of
# all, on one core: the cases are checked in SLICES processes side by side.
# SECONDS: no case is begun later; one that is 30 seconds late is ended. A
# kernel that stays on the GPU keeps other processes' off it: cuda-resident
# wants one slice.
#
# Ends with 0 when no slice has an error of the tool's or a wrong result, with
# 77 when the tool is not there or could not begin at all: the message says so.
set -u
cd "$(dirname "$0")/../.." || exit 1
tool=$1 executor=$2 slices=$3 seconds=${4:-90}
B=${B:-build/release}
SELFCHECK=${SELFCHECK:-$B/tests/gpu/selfcheck}
PLUGIN=${PLUGIN:-$B/libairunner-cuda.so}
SANITIZER=${SANITIZER:-compute-sanitizer}
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT

if ! command -v "$SANITIZER" >/dev/null; then
	echo "sanitize $tool: skipped: there is no $SANITIZER"
	exit 77
fi
# Limits of the executor's and the test's are for a GPU at full speed.
export AIRUNNER_TEST_PATIENCE=10 CUDA_MODULE_LOADING=LAZY
begin=$SECONDS
pids=()
for i in $(seq "$slices"); do
	timeout -k 5 $((seconds + 30)) "$SANITIZER" --tool "$tool" \
		--error-exitcode 9 "$SELFCHECK" "$PLUGIN" "$executor" \
		"$i/$slices" "$seconds" >"$logs/$i" 2>&1 &
	pids+=($!)
done
bad=0 begun=0
for i in $(seq "$slices"); do
	wait "${pids[i - 1]}"
	rc=$?
	grep -q '^selfcheck' "$logs/$i" && begun=1
	[ $rc -eq 0 ] && continue
	# What racecheck says of cuBLASLt's kernels is not ours to mend. (To have
	# the tool leave them out makes it crash.)
	if [ "$tool $rc" = "racecheck 9" ] && grep -q ' 0 wrong' "$logs/$i" &&
		! grep -A1 'Race reported' "$logs/$i" | grep -q ' air_'; then
		echo "-- slice $i/$slices: hazards in kernels of cuBLASLt only"
		sed -i 's/^\(=*\) RACECHECK SUMMARY.*/\1 (not ours)/' "$logs/$i"
		continue
	fi
	bad=$((bad + 1))
	echo "-- slice $i/$slices: status $rc ($([ $rc -eq 124 ] &&
		echo "no end after $((seconds + 30)) s" ||
		echo "9: errors, 1: wrong results, 77: no GPU"))"
	grep -v '^========= *$' "$logs/$i" | head -n 20
	echo ...
	tail -n 5 "$logs/$i"
done
cat "$logs"/* | awk -v name="$tool $executor" -v n="$slices" -v bad="$bad" \
	-v time=$((SECONDS - begin)) '
	/^selfcheck/ {
		right += $3; wrong += $5; other += $7
		for (i = 8; i < NF; i++)
			if ($(i + 1) == "not" && $(i + 2) == "begun:")
				left += $i
	}
	/ERROR SUMMARY:/ { errors += $4; told++ }
	/RACECHECK SUMMARY:/ { errors += $4; told++ }
	END {
		printf "sanitize %s: %d right, %d wrong, %d not for it, " \
			"%d not begun; %d errors; %d of %d slices ended " \
			"well, %d s\n", name, right, wrong, other, left,
			errors, n - bad, n, time
	}'
if [ $begun -eq 0 ] && ! grep -q '^  [0-9]* cases' "$logs"/*; then
	echo "sanitize $tool: $executor did not come to check anything under $SANITIZER"
	[ $bad -eq "$slices" ] && exit 77
fi
[ $bad -eq 0 ]
