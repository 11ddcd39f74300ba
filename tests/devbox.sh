#!/bin/bash
# SPDX-License-Identifier: MIT
#
# docs/dev-box.md, step by step, on a whole Debian machine in QEMU
# (qemu/devbox.sh): from sources to a working device and back, by `make
# install`, then by the DKMS package, with airunnerd started by hand and by
# systemd. The commands are those of the document; the numbers are its steps.

set -eu
cd "$(dirname "$0")/.."
if [ "${1:-}" != inside ]; then
	script=$(mktemp)
	trap 'rm -f "$script"' EXIT
	echo "exec tests/devbox.sh inside" >"$script"
	qemu/devbox.sh --timeout "${1:-3400}" "$script"
	exit
fi

# From here on: in the guest, as a user who may sudo.
failed=0
check() {
	local what=$1 since=$SECONDS
	shift
	if "$@" >/tmp/log 2>&1; then
		echo "ok devbox: $what ($((SECONDS - since)) s)"
	else
		echo "not ok devbox: $what"
		tail -n 30 /tmp/log
		failed=1
	fi
}
# A member of the group is one from the next login on.
login() { sudo runuser -l user -c "cd $PWD && $*"; }
device_is_private() {
	udevadm settle
	[ "$(stat -c '%a %U %G' /dev/airunner)" = "660 root airunner" ] &&
		[ "$(stat -c '%a %U %G' /proc/airunner_thread)" = \
			"660 root airunner" ]
}
outsider_is_refused() { ! airunner -d /dev/airunner info; }
workers_are() {
	for _ in $(seq 300); do
		[ "$(cat /sys/class/misc/airunner/workers)" != "$1" ] ||
			return 0
		sleep 0.2
	done
	return 1
}
worker_goes() {
	sudo pkill -TERM -x airunnerd
	for _ in $(seq 300); do
		pgrep -x airunnerd >/dev/null || return 0
		sleep 0.2
	done
	return 1
}
module_is_gone() {
	! /usr/sbin/modinfo airunner && [ ! -e /dev/airunner ]
}
look() {
	check "$1: airunner info" login airunner -d /dev/airunner info
	check "$1: airunner selftest" login airunner -d /dev/airunner selftest
	check "$1: debugfs" sudo cat /sys/kernel/debug/airunner/channels
}
# Killed, it comes back; stopped, it does not.
systemd_restarts() {
	local before after
	before=$(systemctl show -P MainPID airunnerd)
	sudo kill -KILL "$before"
	for _ in $(seq 300); do
		after=$(systemctl show -P MainPID airunnerd)
		[ "$after" = "$before" ] || [ "$after" = 0 ] || break
		sleep 0.2
	done
	[ "$after" != "$before" ] && [ "$after" != 0 ] && workers_are 1
}
serve_by_systemd() {
	check "$1: systemctl start airunnerd" sudo systemctl start airunnerd
	check "$1: it serves" workers_are 1
	look "$1"
	check "$1: systemd restarts it when it is killed" systemd_restarts
	check "$1: and it serves" login airunner -d /dev/airunner selftest
	check "$1: systemctl stop airunnerd" sudo systemctl stop airunnerd
	check "$1: it has gone" workers_are 0
}
memlock_is_named() {
	# Nobody but the limits may say so: root is exempt.
	! login "ulimit -l 64; airunner -d /dev/airunner selftest" &&
		sudo dmesg | grep "exceed RLIMIT_MEMLOCK"
}
limits_raise_it() {
	echo "@airunner - memlock unlimited" |
		sudo tee /etc/security/limits.d/airunner.conf
	[ "$(login ulimit -l)" = unlimited ]
}
sign_it() {
	openssl req -new -x509 -newkey rsa:2048 -nodes -subj /CN=devbox/ \
		-keyout mok.key -outform DER -out mok.der &&
		make -C kmod sign KEY="$PWD/mok.key" CERT="$PWD/mok.der" &&
		/usr/sbin/modinfo kmod/airunner.ko | grep 'signer:.*devbox'
}
options_are_taken() {
	sudo cp kmod/packaging/airunner.modprobe.conf \
		/etc/modprobe.d/airunner.conf &&
		sudo sed -i 's/^#\(options airunner ai_cpus=\).*/\11/' \
			/etc/modprobe.d/airunner.conf &&
		sudo modprobe -r airunner && sudo modprobe airunner &&
		[ "$(cat /sys/module/airunner/parameters/ai_cpus)" = 1 ]
}
boots_with_it() {
	# systemd-modules-load does at boot what it does here.
	sudo modprobe -r airunner &&
		sudo systemctl restart systemd-modules-load &&
		[ -e /dev/airunner ]
}

export DEBIAN_FRONTEND=noninteractive

check "1: apt install" \
	sudo apt-get -y install make gcc "linux-headers-$(uname -r)"
check "1: make" make -s -j2 all
check "1: make -C kmod" make -s -C kmod

check "2: make install" sudo make -s install
check "2: modprobe airunner" sudo modprobe airunner
check "2: the device and the proc file are the group's" device_is_private
check "2: a user outside the group is refused" outsider_is_refused
check "2: adduser" sudo adduser "$USER" airunner

# The log is ours, the daemon is root.
# shellcheck disable=SC2024
sudo airunnerd >/tmp/airunnerd.log 2>&1 &
check "3: airunnerd serves" workers_are 1
look 4
check "5: a refusal names RLIMIT_MEMLOCK" memlock_is_named
check "5: limits.d raises it" limits_raise_it
check "3: airunnerd ends on SIGTERM" worker_goes
serve_by_systemd 3
check "6: make sign" sign_it
check "8: options" options_are_taken
check "9: modprobe -r airunner" sudo modprobe -r airunner
check "9: make uninstall" sudo make -s uninstall
check "9: the module is gone" module_is_gone

# The programs stay; only the module comes from the package now.
check "7: make install MODULE=no" sudo make -s install MODULE=no
check "7: make deb" make -s deb
check "7: apt install" \
	sudo apt-get -y install ./build/deb/airunner-dkms_*.deb
check "7: dkms has built it" bash -c '/usr/sbin/dkms status airunner |
	grep installed'
check "7: it is signed with the machine's key" bash -c \
	'/usr/sbin/modinfo airunner | grep "^signer:.*[^ ]"'
check "7: it is loaded" test -d /sys/module/airunner
check "7: the device and the proc file are the group's" device_is_private
check "7: it is loaded at boot" boots_with_it
serve_by_systemd 7
check "9: apt purge" sudo apt-get -y purge airunner-dkms
check "9: the module is gone" module_is_gone
check "9: make uninstall MODULE=no" sudo make -s uninstall MODULE=no
check "9: nothing is left in /usr/local" test -z "$(find /usr/local -type f)"
exit $failed
