#!/bin/sh
# SPDX-License-Identifier: MIT
# In the guest: the module holds no channel and no pinned page any more. What
# was let go may take the worker a moment.
n=0
while :; do
	channels=$(cat /sys/class/misc/airunner/channels)
	pages=$(cat /sys/class/misc/airunner/pinned_pages)
	[ "$channels $pages" != "0 0" ] || break
	n=$((n + 1))
	if [ $n = 100 ]; then
		echo "not ok $channels channels and $pages pages are left"
		exit 1
	fi
	usleep 200000
done
echo "ok nothing is left in the module"
