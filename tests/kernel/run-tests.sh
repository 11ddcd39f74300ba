#!/bin/sh
# SPDX-License-Identifier: MIT
#
# In the guest: run test programs one after the other, each on a freshly loaded
# module, and see after each that the kernel log is clean and the module can be
# unloaded again.
#
#	run-tests.sh [-t SECONDS] [-a 'MODULE-PARAMETERS'] PATTERN...
#
# PATTERN names programs or scripts in the guest's PATH ('kmod_*' for all of
# the module's). A test program
#
#	- prints a line `ok NAME`, `not ok NAME: why` or `skip NAME: why` for
#	  each scenario, whatever else it prints;
#	- ends with 0, 1 if any failed, or 77 if it cannot run here at all;
#	- finds the module loaded, and may reload it (load-module [P=V...]);
#	- is ended after SECONDS (120).

limit=120 args=
while getopts t:a: opt; do
	case $opt in
	t)	limit=$OPTARG ;;
	a)	args=$OPTARG ;;
	*)	exit 2 ;;
	esac
done
shift $((OPTIND - 1))

failed=0
bad() {
	echo "not ok $*"
	failed=1
}

unload() {
	n=0
	while grep -q '^airunner ' /proc/modules && ! rmmod airunner 2>/tmp/why
	do
		n=$((n + 1))
		[ $n -lt 50 ] || { cat /tmp/why; return 1; }
		usleep 200000
	done
}

run_one() {
	name=$(basename "$1" .sh)
	if ! unload; then
		bad "$name: the module cannot be unloaded beforehand"
		return
	fi
	load-module $args || {
		bad "$name: the module does not load"
		return
	}
	echo "run-tests: begin $name" >/dev/kmsg
	timeout -k 5 "$limit" "$1" >/tmp/out 2>&1
	rc=$?
	cat /tmp/out
	case $rc in
	0)	grep -qE '^(ok|skip) ' /tmp/out || echo "ok $name" ;;
	77)	grep -q '^skip ' /tmp/out || echo "skip $name" ;;
	124|143) bad "$name: not finished after $limit s" ;;
	*)	grep -q '^not ok ' /tmp/out || bad "$name: exit status $rc" ;;
	esac
	if grep -q '^not ok ' /tmp/out; then failed=1; fi
	if unload; then
		echo "ok $name: the module unloads"
	else
		bad "$name: the module cannot be unloaded afterwards"
	fi
	dmesg | sed "1,/run-tests: begin $name\$/d" >/tmp/dmesg.one
	if grep -qEf /airunner/bad-dmesg /tmp/dmesg.one; then
		bad "$name: the kernel log has lines it must not have"
		grep -E -B5 -A30 -m3 -f /airunner/bad-dmesg /tmp/dmesg.one
	fi
}

found=0
for pattern in "$@"; do
	for program in /airunner/bin/$pattern /airunner/tests/$pattern; do
		[ -x "$program" ] || continue
		found=1
		run_one "$program"
	done
done
[ $found = 1 ] || bad "no test matches $*"
exit $failed
