#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Build the fuzz targets with sanitizers and feed each made-up inputs:
#
#	tests/fuzz.sh SECONDS-EACH [SEED]
#
# The seed is printed; an input that crashes is left in build/fuzz/fuzz-input:
#	build/asan/tests/fuzz/fuzz_TARGET build/fuzz/fuzz-input

set -u
cd "$(dirname "$0")/.." || exit
seconds=$1 seed=${2:-$(date +%s)}

make -s fuzz VARIANT=asan -j2 || exit 1
mkdir -p build/fuzz
export ASAN_OPTIONS=detect_leaks=1 UBSAN_OPTIONS=print_stacktrace=1

failed=0
for src in tests/fuzz/fuzz_*.c; do
	name=$(basename "$src" .c)
	[ "$name" != fuzz_main ] || continue
	program=$PWD/build/asan/tests/fuzz/$name
	(cd build/fuzz && timeout -k 5 $((seconds * 4 + 60)) \
		"$program" --random "$seconds" "$seed") 2>&1 |
		sed "s/^ok /ok $name: /"
	if [ "${PIPESTATUS[0]}" != 0 ]; then
		echo "not ok $name: seed $seed"
		failed=1
	fi
done
exit $failed
