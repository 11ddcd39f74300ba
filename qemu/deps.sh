#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Install what a part of the project needs, from Debian's own archive:
#
#	qemu/deps.sh GROUP...
#
# Quick and silent when all of it is there. Groups:
#
#	build	library, worker, command, operators
#	test	unit tests
#	module	building airunner.ko for a guest's kernel
#	qemu	running guests
#	debug	building the debug kernel
#	model	the Spin model
#	lint	make lint
#	deb	make deb
#	bench	make bench: peers to compare with
#	devbox	a whole Debian machine to try the documentation on

. "$(dirname "$0")/common.sh"

packages() {
	case $1 in
	build)	echo gcc libc6-dev make pkg-config libopenblas0 liburing-dev ;;
	test)	echo libcmocka-dev g++ python3 python3-numpy ;;
	module)	echo gcc libc6-dev make xz-utils libelf1 bzip2 ;;
	qemu)	echo qemu-system-x86 busybox-static cpio procps ;;
	debug)	echo flex bison bc libelf-dev libssl-dev perl xz-utils bzip2 \
		     cpio gcc libc6-dev make ;;
	model)	echo spin gcc libc6-dev ;;
	lint)	echo git shellcheck sparse coccinelle pahole perl gawk ;;
	deb)	echo dpkg ;;
	bench)	echo libjansson-dev libdpdk-dev liburing-dev \
		     python3-matplotlib python3-numpy ;;
	devbox)	echo debootstrap e2fsprogs ;;
	*)	die "no group '$1' (see the top of this file)" ;;
	esac
}

# A package counts as there when its files are, whichever way it came.
missing() {
	local status
	for p in $(for g in "$@"; do packages "$g"; done | tr ' ' '\n' | sort -u); do
		status=$(dpkg-query -W -f '${Status}' "$p" 2>/dev/null || true)
		[ "${status##* }" = installed ] || echo "$p"
	done
}

install_packages() {
	local apt=(env DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=a
		   apt-get -q -y -o DPkg::Lock::Timeout=300
		   -o Acquire::Retries=3)

	# Package lists may be missing (a fresh container) or older than the
	# archive: try as things are, then once more with new lists.
	run_as_root "${apt[@]}" install --no-install-recommends "$@" ||
		{ run_as_root "${apt[@]}" update &&
		  run_as_root "${apt[@]}" install --no-install-recommends "$@"; }
}

[ $# -gt 0 ] || die "usage: qemu/deps.sh GROUP... (see the top of this file)"
command -v apt-get >/dev/null || {
	say "no apt-get here; please install what Debian calls: $(
		for g in "$@"; do packages "$g"; done | tr '\n' ' ')"
	exit 0
}

for g in "$@"; do packages "$g" >/dev/null; done
need=$(missing "$@")
[ -z "$need" ] && exit 0
log=$TOP/build/deps.log
mkdir -p "$TOP/build"
say "installing" $need
# shellcheck disable=SC2086
install_packages $need >"$log" 2>&1 </dev/null || {
	tail -n 20 "$log" >&2
	die "apt-get could not install: $need"
}
