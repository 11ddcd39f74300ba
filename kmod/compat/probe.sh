#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# probe.sh KDIR OUT: compile each compat/*.c against the kernel in KDIR and
# write OUT/air-compat-config.h with a #define for each that compiles. Two
# canaries, one that must compile and one that must not, tell a wrong answer
# (no compiler, no headers, flags that hide errors) from a real one.
set -eu

kdir=$1
out=$2
src=$(cd "$(dirname "$0")" && pwd)
config=$out/air-compat-config.h
# What the answers depend on; asked again only when it changes.
stamp="/* $kdir $(cat "$kdir/include/config/kernel.release" 2>/dev/null) $(cat "$src"/*.c "$0" | cksum) */"

if [ -f "$config" ] && [ "$(head -n 1 "$config")" = "$stamp" ]; then
	exit 0
fi

work=$out/compat-probes
rm -rf "$work"
mkdir -p "$work"
objects=
for probe in "$src"/*.c; do
	name=$(basename "$probe" .c)
	cp "$probe" "$work/"
	objects="$objects $name.o"
done
echo "obj-m :=$objects" > "$work/Makefile"
# -k: that some do not compile is the point. Probes must not fail for style.
# shellcheck disable=SC2086
make -k -C "$kdir" M="$work" KCFLAGS=-Wno-error W= C= $objects \
	> "$work/log" 2>&1 || true

if [ ! -f "$work/canary_good.o" ]; then
	cat "$work/log" >&2
	echo "compat: cannot compile anything against $kdir" >&2
	exit 1
fi
if [ -f "$work/canary_bad.o" ]; then
	echo "compat: $kdir accepts code that is wrong; probes mean nothing" >&2
	exit 1
fi
{
	echo "$stamp"
	for probe in "$src"/*.c; do
		name=$(basename "$probe" .c)
		case $name in canary_*) continue ;; esac
		if [ -f "$work/$name.o" ]; then
			echo "#define AIR_HAVE_$(echo "$name" | tr a-z A-Z) 1"
		fi
	done
} > "$config.tmp"
mv "$config.tmp" "$config"
rm -rf "$work"
