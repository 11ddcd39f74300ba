#!/bin/sh
# SPDX-License-Identifier: MIT
# The worker and the module share one executor fairly between processes. The
# worker has one thread, so that the clients have a processor to themselves.
workers=/sys/class/misc/airunner/workers

airunnerd --threads 1 2>/tmp/airunnerd.log &
daemon=$!
n=0
until [ "$(cat $workers)" = 1 ]; do
	n=$((n + 1))
	[ $n -lt 150 ] || { echo "not ok airunnerd does not serve"; exit 1; }
	usleep 200000
done
shares 10
rc=$?
kill -TERM $daemon
wait $daemon || { echo "not ok airunnerd ends with $?"; rc=1; }
nothing-left.sh || rc=1
exit $rc
