#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Build airunner.ko for a guest kernel and say where it is:
#
#	qemu/module.sh 6.1|6.12|debug [MAKE-ARGUMENT...]
#
# Objects land in build/kmod/KERNEL, so that kernels do not get in each other's
# way and the source folder stays clean; `log` there has what make said.

. "$(dirname "$0")/common.sh"

build() {
	local kernel=$1 out=$TOP/build/kmod/$1 kdir
	shift
	"$TOP/qemu/deps.sh" module
	kdir=$("$TOP/qemu/kernel.sh" "$kernel")/build
	mkdir -p "$out"
	make -C "$TOP/kmod" KDIR="$kdir" OUT="$out" -j"${JOBS:-2}" "$@" \
		>"$out/log" 2>&1 || {
		cat "$out/log" >&2
		die "airunner.ko does not build for $kernel"
	}
	# Warnings are seen even where the build goes through.
	grep -A5 -i 'warning:' "$out/log" >&2 || true
	echo "$out/airunner.ko"
}

[ $# -ge 1 ] || die "usage: qemu/module.sh KERNEL [MAKE-ARGUMENT...]"
with_lock "module-$1" build "$@"
