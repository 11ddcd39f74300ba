#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Run the suites of tests/suites.list and count:
#
#	tests/run.sh [-v] SET [NAME-PATTERN...]
#
#	tests/run.sh check
#	tests/run.sh check 'unit*' kernel-6.1
#
# Prints a line a suite and what failed, and ends with `N passed, N failed[, N
# skipped]`. Exit status 0 if nothing failed and something passed. Each suite's
# output is kept in build/test-logs/NAME.log. -v shows it as it comes.
#
# A suite is a command. Lines of its output that begin with `ok`, `not ok` or
# `skip` (or TAP's `ok ... # SKIP`) are counted as a test each. Without any,
# the command is one test. An exit status that says more than its lines do
# (a crash, a time-out, a dirty kernel log) is one failed test more.

set -u
cd "$(dirname "$0")/.." || exit
verbose=0
if [ "${1:-}" = -v ]; then verbose=1; shift; fi
[ $# -ge 1 ] || { sed -n '4,/^$/s/^# \{0,1\}//p' "$0" >&2; exit 2; }
wanted=$1
shift
[ $# -gt 0 ] || set -- '*'

logs=build/test-logs
mkdir -p $logs
passed=0 failed=0 skipped=0
failures=()
suite_pid=

# Ended from outside, the suite that is running must not go on alone.
trap '[ -z "$suite_pid" ] || kill -TERM -- -"$suite_pid" 2>/dev/null; exit 130' \
	INT TERM HUP

selected() {
	local name=$1
	shift
	for p in "$@"; do
		# shellcheck disable=SC2254
		case $name in $p) return 0 ;; esac
	done
	return 1
}

# run_suite LIMIT LOG COMMAND: in a process group of its own, so that a
# time-out takes everything it started along.
run_suite() {
	local limit=$1 log=$2 cmd=$3 rc=0
	: >"$log"
	set -m
	if [ $verbose = 1 ]; then
		timeout -k 20 "$limit" bash -c "$cmd" \
			< /dev/null > >(tee "$log") 2>&1 &
	else
		timeout -k 20 "$limit" bash -c "$cmd" </dev/null >"$log" 2>&1 &
	fi
	suite_pid=$!
	set +m
	wait $suite_pid || rc=$?
	suite_pid=
	return $rc
}

count() { grep -cE "$1" "$2" || true; }

start=$SECONDS
while IFS='|' read -r name sets limit cmd; do
	name=$(echo $name) sets=" $(echo $sets) " limit=$(echo $limit)
	case $name in ''|'#'*) continue ;; esac
	case $sets in *" $wanted "*) ;; *) continue ;; esac
	selected "$name" "$@" || continue

	log=$logs/$name.log
	[ $verbose = 0 ] || echo "--- $name:$cmd"
	t=$SECONDS rc=0
	run_suite "$limit" "$log" "$cmd" || rc=$?
	s=$(count '^skip( |$)|^ok .*# SKIP' "$log")
	p=$(($(count '^ok( |$)' "$log") - $(count '^ok .*# SKIP' "$log")))
	f=$(count '^not ok( |$)' "$log")
	why=
	if [ $((p + f + s)) = 0 ]; then
		case $rc in
		0)	p=1 ;;
		77)	s=1 ;;
		esac
	fi
	case $rc in
	0|77)	;;
	124|137) f=$((f + 1)) why=" (not finished after $limit s)" ;;
	*)	if [ "$f" = 0 ]; then
			f=1 why=" (exit status $rc)"
		elif [ $rc != 1 ]; then
			f=$((f + 1)) why=" (and exit status $rc)"
		fi ;;
	esac
	passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
	verdict=ok
	[ "$f" = 0 ] || verdict=FAILED
	printf '%-6s %-24s %4d passed, %d failed, %d skipped, %d s%s\n' \
		"$verdict" "$name" "$p" "$f" "$s" $((SECONDS - t)) "$why"
	if [ "$f" != 0 ]; then
		failures+=("$name")
		if [ $verbose = 0 ]; then
			grep '^not ok' "$log" | head -n 40 | sed 's/^/	/'
			echo "	... the end of $log:"
			tail -n 40 "$log" | sed 's/^/	/'
		fi
	fi
	grep -hE '^skip( |$)|^ok .*# SKIP' "$log" | head -n 20 | sed 's/^/	/'
done <tests/suites.list

[ ${#failures[@]} = 0 ] || echo "failed: ${failures[*]}"
echo "$wanted took $((SECONDS - start)) s"
total="$passed passed, $failed failed"
[ $skipped = 0 ] || total+=", $skipped skipped"
echo "$total"
[ $failed = 0 ] && [ $passed -gt 0 ]
