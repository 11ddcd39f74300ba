#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# source.sh FOLDER: put what DKMS builds the module from into FOLDER, which
# becomes /usr/src/airunner-VERSION. Prints the version.
set -eu

kmod=$(cd "$(dirname "$0")/.." && pwd)
to=$1
version=$(sed -n 's/^MODULE_VERSION("\(.*\)");/\1/p' "$kmod/main.c")

mkdir -p "$to/compat" "$to/uapi"
cp "$kmod"/*.c "$kmod"/*.h "$kmod/Makefile" "$kmod/Kbuild" "$to"
rm -f "$to"/*.mod.c "$to/air-compat-config.h"
cp "$kmod"/compat/*.c "$kmod/compat/probe.sh" "$to/compat"
cp "$kmod/../include/uapi/airunner.h" "$to/uapi"
sed "s/#MODULE_VERSION#/$version/" "$kmod/dkms.conf" > "$to/dkms.conf"
echo "$version"
