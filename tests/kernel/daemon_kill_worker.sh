#!/bin/sh
# SPDX-License-Identifier: MIT
# The worker is killed at random moments and started again: every submission of
# two clients is answered, and both go on with each new worker.
workers=/sys/class/misc/airunner/workers

start() {
	airunnerd >/tmp/airunnerd.log 2>&1 &
	daemon=$!
	n=0
	until [ "$(cat $workers)" = 1 ]; do
		n=$((n + 1))
		if [ $n = 150 ] || ! kill -0 $daemon 2>/dev/null; then
			echo "not ok airunnerd does not serve"
			cat /tmp/airunnerd.log
			exit 1
		fi
		usleep 200000
	done
}

start
steady 20 deaths &
one=$!
steady 20 deaths &
two=$!
killed=0
while kill -0 $one 2>/dev/null && [ $killed -lt 40 ]; do
	usleep $((300000 + $(od -An -N2 -tu2 /dev/urandom) * 15))
	kill -KILL $daemon
	wait $daemon 2>/dev/null
	killed=$((killed + 1))
	start
done
echo "ok the worker was killed $killed times"
rc=0
wait $one || rc=1
wait $two || rc=1
kill -TERM $daemon
wait $daemon || { echo "not ok airunnerd ends with $?"; rc=1; }
nothing-left.sh || rc=1
exit $rc
