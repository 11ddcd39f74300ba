#!/bin/bash
# SPDX-License-Identifier: MIT
#
# `make install` into an empty folder gives a user all that is needed: a
# program is built with pkg-config against it, shared and static, as C and C++,
# and runs. `make uninstall` leaves nothing.

set -u
cd "$(dirname "$0")/.." || exit
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
failed=0

check() {
	local what=$1
	shift
	if "$@" >"$root/log" 2>&1; then
		echo "ok install: $what"
	else
		echo "not ok install: $what"
		tail -n 20 "$root/log"
		failed=1
	fi
}

make_target() {
	make -s "$1" DESTDIR="$root/dest" PREFIX=/opt/air MODULE=no
}

check "make install" make_target install
prefix=$root/dest/opt/air
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root/dest
export LD_LIBRARY_PATH=$prefix/lib
export AIRUNNER=inproc:
example=docs/examples/quickstart.c

build_with() {
	local out=$1
	shift
	# shellcheck disable=SC2046
	"$@" $(pkg-config --cflags airunner) $example -o "$root/$out" \
		$(pkg-config --libs airunner)
}

build_static() {
	# shellcheck disable=SC2046
	gcc $(pkg-config --cflags airunner) $example -o "$root/static" \
		"$prefix/lib/libairunner.a" \
		$(pkg-config --libs --static airunner |
		  tr ' ' '\n' | grep -v 'airunner\|^-L')
}

only_ours() {
	! nm -D --defined-only "$prefix/lib/libairunner.so" |
		awk '$2 != "A" { print $3 }' | grep -v '^air_'
}

check "the quick start builds with pkg-config" build_with quickstart gcc
check "and runs" "$root/quickstart"
check "it builds against the static library" build_static
check "and runs" "$root/static"
check "airunner selftest" "$prefix/bin/airunner" selftest
check "airunner --version" "$prefix/bin/airunner" --version
check "airunnerd --version" "$prefix/sbin/airunnerd" --version
check "the library exports air_ names only" only_ours
check "make uninstall" make_target uninstall
check "nothing is left" test -z "$(find "$root/dest" -type f -o -type l)"
exit $failed
