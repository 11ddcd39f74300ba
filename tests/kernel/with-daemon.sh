#!/bin/sh
# SPDX-License-Identifier: MIT
#
# In the guest: run a command while airunnerd serves /dev/airunner, then end
# the daemon by SIGTERM and see that it ends well.
#
#	with-daemon.sh COMMAND [ARGUMENT...]

airunnerd >/tmp/airunnerd.log 2>&1 &
daemon=$!
n=0
until [ "$(cat /sys/class/misc/airunner/workers)" != 0 ]; do
	n=$((n + 1))
	if [ $n = 150 ] || ! kill -0 $daemon 2>/dev/null; then
		echo "not ok airunnerd does not serve"
		cat /tmp/airunnerd.log
		exit 1
	fi
	usleep 200000
done

"$@"
rc=$?

kill -TERM $daemon
# A daemon that hangs must not take the test with it.
(sleep 30; kill -KILL $daemon) 2>/dev/null &
wait $daemon
ended=$?
tail -n 20 /tmp/airunnerd.log | sed 's/^/	airunnerd: /'
if [ $ended != 0 ]; then
	echo "not ok airunnerd ends with $ended after SIGTERM"
	[ $rc != 0 ] || rc=1
fi
exit $rc
