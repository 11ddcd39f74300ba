#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Every test of tests/kernel in a guest with the given kernel:
#
#	tests/guest.sh KERNEL [SECONDS]

set -eu
cd "$(dirname "$0")/.."
kernel=$1 limit=${2:-1100}
mem=1536
# The checkers' shadow memory and their caution have a price.
if [ "$kernel" = debug ]; then
	limit=${2:-1500}
	mem=3072
fi
make -s -j2 all guest-tests
exec qemu/run.sh "$kernel" --smp 4 --mem $mem --timeout "$limit" \
	--logs "build/test-logs/guest-$kernel" -- \
	run-tests.sh k3_test 'kmod_*' 'daemon_*'
