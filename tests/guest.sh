#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Tests of tests/kernel in a guest:
#
#	tests/guest.sh KERNEL [PATTERN...]	(all of them)
#
# On the debug kernel the fuzzer runs for a minute, elsewhere for ten seconds;
# FUZZ_SECONDS=N says otherwise.

set -eu
cd "$(dirname "$0")/.."
kernel=$1
shift
[ $# -gt 0 ] || set -- k3_test 'kmod_*' 'daemon_*'
fuzz=10 mem=1536 limit=900 each=200
# The checkers' shadow memory and their caution have a price.
if [ "$kernel" = debug ]; then
	fuzz=60 mem=3072 limit=2400 each=500
fi
fuzz=${FUZZ_SECONDS:-$fuzz}
make -s -j2 all guest-tests
exec qemu/run.sh "$kernel" --smp 4 --mem $mem --timeout $((limit + 2 * fuzz)) \
	--logs "build/test-logs/guest-$kernel" -- \
	env KMOD_FUZZ_SECONDS="$fuzz" \
	run-tests.sh -t $((each + 2 * fuzz)) "$@"
