#!/bin/sh
# SPDX-License-Identifier: MIT
# Clients are killed at random moments and scribble over their rings; another
# client and the worker do not notice.
exec with-daemon.sh sh -c '
	steady 20 &
	steady=$!
	scribble 18 &
	scribble=$!
	killed=0
	while [ $killed -lt 20 ]; do
		steady 60 >/dev/null 2>&1 &
		usleep $((200000 + $(od -An -N2 -tu2 /dev/urandom) * 10))
		kill -KILL $!
		wait $! 2>/dev/null
		killed=$((killed + 1))
	done
	echo "ok $killed clients killed"
	rc=0
	wait $steady || rc=1
	wait $scribble || rc=1
	nothing-left.sh || rc=1
	exit $rc'
