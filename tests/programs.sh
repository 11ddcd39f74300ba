#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Build and run the test programs of one folder in one variant:
#
#	tests/programs.sh unit|stress|fuzz release|asan|tsan [SECONDS-EACH]
#
# CMocka programs report in TAP; other programs by their exit status. A fuzz
# target makes inputs up for FUZZ_SECONDS (20).

set -u
cd "$(dirname "$0")/.." || exit
kind=$1 variant=$2 limit=${3:-400}
args=()
if [ "$kind" = fuzz ]; then
	args=(--random "${FUZZ_SECONDS:-20}")
	limit=$((limit + ${FUZZ_SECONDS:-20}))
fi

make -s "$kind-tests" "VARIANT=$variant" -j2 || exit 1
export CMOCKA_MESSAGE_OUTPUT=TAP
export ASAN_OPTIONS=detect_leaks=1:abort_on_error=0
export UBSAN_OPTIONS=print_stacktrace=1
export TSAN_OPTIONS=halt_on_error=0:exitcode=66:second_deadlock_stack=1
export OPENBLAS_NUM_THREADS=${OPENBLAS_NUM_THREADS:-2}

failed=0
for src in tests/"$kind"/*.c; do
	program=build/$variant/${src%.c}
	name=$(basename "$program")
	[ -x "$program" ] || continue
	echo "# $name ($variant)"
	out=$(mktemp)
	timeout -k 5 "$limit" "$program" "${args[@]}" >"$out" 2>&1
	rc=$?
	# A test's name tells little without its program's.
	sed -E "s/^(ok|not ok) [0-9]+ - /\1 $name: /" "$out"
	case $rc in
	0)	grep -qE '^(ok|skip)' "$out" || echo "ok $name" ;;
	77)	grep -q '^skip' "$out" || echo "skip $name" ;;
	124|137) failed=1
		echo "not ok $name: not finished after $limit s" ;;
	*)	failed=1
		grep -q '^not ok' "$out" ||
			echo "not ok $name: exit status $rc" ;;
	esac
	rm -f "$out"
done
exit $failed
