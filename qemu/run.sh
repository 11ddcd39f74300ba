#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Run a command in a guest and end as it ended:
#
#	qemu/run.sh KERNEL [OPTION...] -- COMMAND [ARGUMENT...]
#
#	qemu/run.sh 6.1 -- uname -a
#	qemu/run.sh debug --smp 4 -- kmod_lifetime
#	qemu/run.sh 6.1 -- sh -c 'cat /sys/kernel/debug/airunner/*; dmesg'
#	qemu/run.sh 6.1 -- run-tests.sh 'kmod_*'
#
# KERNEL is 6.1 or 6.12 (Debian's) or debug (KASAN, lockdep, kmemleak, ...).
# The guest is busybox plus, all in its PATH: the programs of build/$VARIANT
# (airunnerd, airunner, tests/kernel/*.c, each by its name), the scripts of
# tests/kernel, libairunner.so and the libraries they need. airunner.ko is
# built for that kernel and loaded; `rmmod airunner` and `load-module
# [PARAMETER=VALUE...]` unload and load it again. Users: root, alice and bob
# (group airunner), carol (not in it). `su alice -c '...'` works.
#
#	--smp N		CPUs (2)
#	--mem MIB	memory (1024)
#	--timeout S	seconds the guest may take, boot included (180)
#	--module-args S	parameters for airunner.ko
#	--no-module	do not build or load airunner.ko
#	--no-leak-check	skip the kmemleak scan at the end (debug only, 10 s)
#	--file PATH	add a file of the host, in the guest's /airunner/bin
#	--append S	more kernel parameters
#	--logs DIR	keep console, dmesg and output there
#	--accel A	tcg or kvm (default: kvm if it really works here)
#
# The exit status is the command's; 124 after a time-out; 125 when the guest
# failed: it did not come up, the module did not load or could not be unloaded
# afterwards, or the kernel log has a line it must not have (BUG, WARNING,
# KASAN, lockdep, hung task, leak...), whatever the command said.

. "$(dirname "$0")/common.sh"

usage() { sed -n '4,/^$/s/^# \{0,1\}//p' "$0" >&2; exit 2; }

[ $# -ge 1 ] || usage
kernel=$1
shift
smp=2 mem=1024 timeout=180 module_args= load_module=1 leak_check=1 append=
logs= accel= files=()
while [ $# -gt 0 ]; do
	case $1 in
	--smp)		smp=$2; shift ;;
	--mem)		mem=$2; shift ;;
	--timeout)	timeout=$2; shift ;;
	--module-args)	module_args=$2; shift ;;
	--no-module)	load_module=0 ;;
	--no-leak-check) leak_check=0 ;;
	--file)		files+=("$2"); shift ;;
	--append)	append=$2; shift ;;
	--logs)		logs=$2; shift ;;
	--accel)	accel=$2; shift ;;
	--)		shift; break ;;
	*)		usage ;;
	esac
	shift
done
[ $# -gt 0 ] || usage

# kvm_works: an answer good until the next boot of this machine. A /dev/kvm
# that exists may still be unable to run anything (nested virtualisation), and
# then hangs before the first instruction: only a guest that speaks is proof.
kvm_works() {
	local memo=$CACHE/kvm-probe
	local boot answer=no
	[ -w /dev/kvm ] || return 1
	boot=$(cat /proc/sys/kernel/random/boot_id)
	if ! grep -qs "^$boot " "$memo"; then
		if [ "$("$0" 6.1 --no-module --accel kvm --timeout 10 -- \
			echo spoken 2>/dev/null)" = spoken ]; then
			answer=yes
		fi
		echo "$boot $answer" >"$memo"
	fi
	grep -q "^$boot yes" "$memo"
}

"$TOP/qemu/deps.sh" qemu
kdir=$("$TOP/qemu/kernel.sh" "$kernel")
module=
[ $load_module = 0 ] || module=$("$TOP/qemu/module.sh" "$kernel")
if [ -z "$accel" ]; then
	accel=tcg
	if kvm_works; then accel=kvm; fi
fi

dir=$(mktemp -d "${TMPDIR:-/tmp}/airunner-guest.XXXXXX")
qemu=
reader=
cleanup() {
	[ -z "$qemu" ] || kill -KILL "$qemu" 2>/dev/null || true
	[ -z "$reader" ] || kill "$reader" 2>/dev/null || true
	if [ -n "$logs" ] && [ "$logs" != "$dir" ]; then
		mkdir -p "$logs"
		cp "$dir"/{console,dmesg,output,status} "$logs" 2>/dev/null ||
			true
	fi
	rm -rf "$dir"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# The command, quoted for the guest's shell.
for word in "$@"; do
	printf "'%s' " "$(printf %s "$word" | sed "s/'/'\\\\''/g")"
done >"$dir/command"
printf "module_args='%s' load_module=%s leak_check=%s\n" \
	"$module_args" $load_module $leak_check >"$dir/settings"

"$TOP/qemu/image.sh" "$dir/initrd" "$dir/command" "$dir/settings" \
	${module:+"$module"} "${files[@]}"

# mitigations cost emulation time and are not what is tested here.
params="console=ttyS0,115200 loglevel=6 panic=-1 oops=panic mitigations=off"
params+=" nokaslr log_buf_len=4M no_timer_check"
params+=" rcupdate.rcu_cpu_stall_timeout=100 random.trust_cpu=on"
params+=" cgroup_no_v1=all kmemleak=on $append"
# Emulated, the TSC is the host's, and its frequency is guessed at boot: wrong
# by a factor when the machine is busy, and with it every time-out. The HPET
# keeps to real time.
[ "$accel" != tcg ] || params+=" clocksource=hpet tsc=unstable"
case $accel in
tcg)	accel_args=(-accel tcg,thread=multi,tb-size=256 -cpu max,la57=off) ;;
kvm)	accel_args=(-accel kvm -cpu host) ;;
*)	usage ;;
esac

touch "$dir"/{console,output,status,dmesg}
mkfifo "$dir/stream"
tee "$dir/output" <"$dir/stream" &
reader=$!
# If this script is killed, timeout goes; if that is killed, qemu goes.
setpriv --pdeathsig TERM timeout -k 5 "$timeout" setpriv --pdeathsig KILL \
qemu-system-x86_64 -nodefaults -no-user-config -display none -no-reboot \
	-machine pc "${accel_args[@]}" -smp "$smp" -m "$mem" \
	-kernel "$kdir/vmlinuz" -initrd "$dir/initrd" -append "$params" \
	-serial file:"$dir/console" -serial file:"$dir/stream" \
	-serial file:"$dir/status" -serial file:"$dir/dmesg" \
	</dev/null 2>"$dir/qemu" &
qemu=$!
rc=0
wait $qemu || rc=$?
qemu=
# A qemu that never opened it would leave the reader waiting for ever.
: 1<>"$dir/stream"
wait $reader || true
reader=

told() { sed -n "s/^$1 //p" "$dir/status" | head -n1; }

fail() {
	say "$kernel guest: $*"
	exit 125
}

if [ $rc = 124 ] || [ $rc = 137 ]; then
	say "$kernel guest: not finished after $timeout s; its console ends:"
	tail -n 30 "$dir/console" >&2
	exit 124
fi
# What must never be in a kernel log: qemu/bad-dmesg, a pattern a line. The
# boot messages of the checkers themselves do not match.
bad=$TOP/qemu/bad-dmesg
if grep -nEf "$bad" "$dir/dmesg" "$dir/console" >"$dir/bad"; then
	say "$kernel guest: the kernel log has lines it must not have:"
	log=$dir/console
	! grep -qEf "$bad" "$dir/dmesg" || log=$dir/dmesg
	grep -E -B5 -A40 -m5 -f "$bad" "$log" | head -n 200 >&2
	exit 125
fi
grep -q '^up' "$dir/status" || {
	cat "$dir/qemu" >&2
	tail -n 30 "$dir/console" >&2
	fail "did not come up"
}
status=$(told status)
[ -n "$status" ] || {
	tail -n 30 "$dir/console" >&2
	fail "ended without a status"
}
if [ $load_module = 1 ] && ! grep -q '^module loaded' "$dir/status"; then
	tail -n 30 "$dir/console" >&2
	fail "airunner.ko did not load"
fi
stuck=$(told stuck)
[ -z "$stuck" ] || fail "the module cannot be unloaded: $stuck"
grep -q '^end' "$dir/status" || fail "was interrupted before its log was out"
exit "$status"
