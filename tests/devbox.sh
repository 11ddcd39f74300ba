#!/bin/bash
# SPDX-License-Identifier: MIT
#
# The way of docs/dev-box.md, from sources to a working device and back, on a
# whole Debian machine in QEMU (qemu/devbox.sh): by `make install`, then by the
# DKMS package.

set -eu
cd "$(dirname "$0")/.."
if [ "${1:-}" != inside ]; then
	make -s deb
	script=$(mktemp)
	trap 'rm -f "$script"' EXIT
	echo "exec tests/devbox.sh inside" >"$script"
	qemu/devbox.sh --timeout "${1:-3400}" "$script"
	exit
fi

# From here on: in the guest, as a user who may sudo.
failed=0
check() {
	local what=$1
	shift
	if "$@" >/tmp/log 2>&1; then
		echo "ok devbox: $what"
	else
		echo "not ok devbox: $what"
		tail -n 30 /tmp/log
		failed=1
	fi
}
as_member() { sudo sg airunner -c "runuser -u user -g airunner -- $*"; }
device_is_private() {
	udevadm settle
	[ "$(stat -c '%a %U %G' /dev/airunner)" = "660 root airunner" ]
}
outsider_is_refused() { ! airunner -d /dev/airunner info; }
worker_comes() {
	for _ in $(seq 100); do
		[ "$(cat /sys/class/misc/airunner/workers)" != 1 ] || return 0
		sleep 0.2
	done
	return 1
}
worker_goes() {
	sudo pkill -TERM -x airunnerd
	for _ in $(seq 100); do
		pgrep -x airunnerd >/dev/null || return 0
		sleep 0.2
	done
	return 1
}
serve() {
	# The log is ours, the daemon is root.
	# shellcheck disable=SC2024
	sudo airunnerd -q >/tmp/airunnerd.log 2>&1 &
	check "$1: airunnerd serves" worker_comes
	check "$1: a user outside the group is refused" outsider_is_refused
	check "$1: a member of the group runs the self-test" \
		as_member airunner -d /dev/airunner selftest
	check "$1: airunnerd ends on SIGTERM" worker_goes
	check "$1: the module unloads" sudo modprobe -r airunner
}

export PATH=$PATH:/usr/sbin:/sbin:/usr/local/sbin
check "make" make -s -j2 all
check "make -C kmod" make -s -C kmod
check "sudo make install" sudo make -s install
check "sudo modprobe airunner" sudo modprobe airunner
check "udev: 0660, group airunner" device_is_private
serve installed
check "sudo make uninstall" sudo make -s uninstall
check "the module is gone" bash -c '! modinfo airunner'

# The programs stay; only the module comes from the package now.
sudo make -s install MODULE=no >/dev/null
check "dpkg -i airunner-dkms" sudo dpkg -i airunner-dkms_*.deb
check "dkms has built it" bash -c 'dkms status airunner | grep -q installed'
check "modprobe after the package" sudo modprobe airunner
check "udev: 0660, group airunner, by the package" device_is_private
serve packaged
check "dpkg --purge" sudo dpkg --purge airunner-dkms
check "the module is gone" bash -c '! modinfo airunner'
exit $failed
