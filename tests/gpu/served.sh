#!/bin/bash
# SPDX-License-Identifier: MIT
#
# A command with a daemon behind it that is started again whenever it fails, as
# systemd does it: served.sh AIRUNNERD COMMAND..., which gets "unix:PATH" as its
# last argument.
set -u
daemon=$1
shift
dir=$(mktemp -d)
set -m
(
	while ! "$daemon" --listen "$dir/sock"; do
		echo "served.sh: ended by itself; starting another"
	done
) &
loop=$!
set +m
trap 'kill -- -$loop 2>/dev/null; rm -rf "$dir"' EXIT
for _ in $(seq 300); do
	[ -S "$dir/sock" ] && break
	sleep 0.1
done
"$@" "unix:$dir/sock"
