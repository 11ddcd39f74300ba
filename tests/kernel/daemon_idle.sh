#!/bin/sh
# SPDX-License-Identifier: MIT
# An airunnerd with nothing to do does nothing; with --ai-cores all its threads
# are where the module wants them.
workers=/sys/class/misc/airunner/workers

start() {
	airunnerd "$@" 2>/tmp/airunnerd.log &
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

stop() {
	kill -TERM $daemon
	wait $daemon && return
	echo "not ok airunnerd ends with $?"
	rc=1
}

# How often any of its threads has slept, and has been made to.
switches() {
	cat /proc/$daemon/task/*/status | grep ctxt_switches
}

rc=0
start
two_clients >/tmp/clients || { cat /tmp/clients; rc=1; }
# It may have a look or two left to have.
n=0
while :; do
	before=$(switches)
	sleep 2
	[ "$before" = "$(switches)" ] && break
	n=$((n + 1))
	[ $n -lt 5 ] || break
done
if [ $n -lt 5 ]; then
	echo "ok idle: no thread of airunnerd ran for two seconds"
else
	echo "not ok idle: threads of airunnerd run without work"
	switches
	rc=1
fi
stop

rmmod airunner && load-module ai_cpus=1 || exit
start --ai-cores
cores=$(cat /proc/$daemon/task/*/status | grep Cpus_allowed_list |
	sort -u | tr -d '\t')
if [ "$cores" = "Cpus_allowed_list:1" ]; then
	echo "ok ai-cores: all threads are on the module's cores"
else
	echo "not ok ai-cores: $cores"
	rc=1
fi
two_clients >/tmp/clients || { cat /tmp/clients; rc=1; }
stop
rmmod airunner && load-module || exit
if airunnerd --ai-cores 2>/tmp/airunnerd.log; then
	echo "not ok ai-cores: accepted without any"
	rc=1
elif grep -q ai_cpus /tmp/airunnerd.log; then
	echo "ok ai-cores: refused without any, and says why"
else
	echo "not ok ai-cores: $(cat /tmp/airunnerd.log)"
	rc=1
fi
nothing-left.sh || rc=1
exit $rc
