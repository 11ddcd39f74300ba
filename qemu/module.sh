#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Build airunner.ko for a guest kernel and say where it is:
#
#	qemu/module.sh 6.1|6.12|debug [MAKE-ARGUMENT...]
#
# Works on a copy of kmod/ in build/kmod/KERNEL, so that kernels do not get in
# each other's way and the source folder stays clean.

. "$(dirname "$0")/common.sh"

build() {
	local kernel=$1 dir=$TOP/build/kmod/$1 kdir log f
	shift
	"$TOP/qemu/deps.sh" module
	kdir=$("$TOP/qemu/kernel.sh" "$kernel")/build
	log=$dir/log
	mkdir -p "$dir/include"
	# Sources that are gone must not be built again; objects may stay.
	if [ -d "$dir/kmod" ]; then
		(cd "$dir/kmod" && find . -name '*.[chS]' ! -name '*.mod.c') |
		while read -r f; do
			[ -e "$TOP/kmod/$f" ] || rm -f "$dir/kmod/$f"
		done
	fi
	(cd "$TOP" && find kmod include/uapi -type f \
		! -name '*.o' ! -name '*.ko' ! -name '*.cmd' ! -name '*.mod*' \
		! -name '.*' -print0 |
		xargs -0 cp -u --parents --preserve=timestamps -t "$dir")
	# Without vmlinux there is no BTF to be had for the module.
	make -C "$dir/kmod" KDIR="$kdir" -j"${JOBS:-2}" \
		CONFIG_DEBUG_INFO_BTF_MODULES= "$@" >"$log" 2>&1 || {
		cat "$log" >&2
		die "airunner.ko does not build for $kernel"
	}
	# Warnings are seen even where the build goes through.
	grep -A5 -i 'warning:' "$log" >&2 || true
	echo "$dir/kmod/airunner.ko"
}

[ $# -ge 1 ] || die "usage: qemu/module.sh KERNEL [MAKE-ARGUMENT...]"
with_lock "module-$1" build "$@"
